/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <stdlib.h>
#include <string.h>

#include "layered.h"
#include "snapshot/blob.h"
#include "snapshot/change_json.h"
#include "snapshot/similar.h"

static int setup(void **state)
{
	*state = layered_new();
	return 0;
}

static int teardown(void **state)
{
	layered_free(*state);
	return 0;
}

static void collect(const char *data, size_t size, void *user)
{
	g_byte_array_append(user, (const guint8 *)data, size);
}

/* @similar: as a person gets it, with what snapshot/similar.h finds. */
static GByteArray *patch_made(struct tree *from, struct tree *to, bool similar)
{
	g_autoptr(GPtrArray) changes = NULL;
	g_autoptr(GError) error = NULL;
	GByteArray *patch = g_byte_array_new();
	const struct change_options quick = { .no_hash = true };

	changes_between(from, to, &quick, &changes, &error);
	if (!error && similar)
		similar_join(changes, from, to);
	if (!error)
		diff_patch(changes, from, to, collect, patch, &error);
	g_assert_no_error(error);
	g_byte_array_append(patch, (const guint8 *)"", 1);
	g_byte_array_set_size(patch, patch->len - 1);
	return patch;
}

static GByteArray *patch_between(struct tree *from, struct tree *to)
{
	return patch_made(from, to, false);
}

/*
 * Runs a command line in @dir with no configuration but what we know; stops the test when it fails. Its output; caller
 * frees.
 */
static char *shell(const char *dir, const char *command)
{
	g_autoptr(GSubprocessLauncher) launcher =
		g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
	g_autoptr(GSubprocess) process = NULL;
	g_autoptr(GError) error = NULL;
	g_autoptr(GBytes) out = NULL, err = NULL;
	const char *argv[] = { "/bin/sh", "-ec", command, NULL };

	g_subprocess_launcher_set_cwd(launcher, dir);
	g_subprocess_launcher_setenv(launcher, "GIT_CONFIG_NOSYSTEM", "1", TRUE);
	g_subprocess_launcher_setenv(launcher, "GIT_CONFIG_GLOBAL", "/dev/null", TRUE);
	g_subprocess_launcher_setenv(launcher, "GIT_CEILING_DIRECTORIES", g_get_tmp_dir(), TRUE);
	g_subprocess_launcher_setenv(launcher, "LC_ALL", "C", TRUE);
	process = g_subprocess_launcher_spawnv(launcher, argv, &error);
	g_assert_no_error(error);
	g_subprocess_communicate(process, NULL, NULL, &out, &err, &error);
	g_assert_no_error(error);
	if (!g_subprocess_get_successful(process))
		g_error("%s: %.*s", command, (int)g_bytes_get_size(err), (const char *)g_bytes_get_data(err, NULL));
	return g_strndup(g_bytes_get_data(out, NULL), g_bytes_get_size(out));
}

#define GIT_INIT                                                                                                       \
	"git init -q && git add -A -f . && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m t && "

/*
 * The patch, applied by git to a copy of the workspace, gives the tree. @index: in a repository, checked against its
 * index.
 */
static void check_applies(struct layered *l, struct tree *from_copy_of, struct tree *to, GByteArray *patch, bool index)
{
	g_autofree char *file = g_build_filename(l->dir, "patch", NULL), *copy = g_build_filename(l->dir, "copy", NULL);
	g_autofree char *command =
		g_strdup_printf("rm -rf copy && cp -a '%s' copy", lower_path(tree_lower(from_copy_of)));
	g_autofree char *differ = NULL;
	g_autoptr(lower_t) lower = NULL;
	g_autoptr(tree_t) result = NULL;

	/* G_FILE_SET_CONTENTS_NONE leaves the end of a longer file in place (layered.c). */
	g_unlink(file);
	g_assert_true(g_file_set_contents_full(file, (const char *)patch->data, patch->len, G_FILE_SET_CONTENTS_NONE,
					       0600, NULL));
	g_free(shell(l->dir, command));
	if (strstr((const char *)patch->data, "diff --git"))
		g_free(shell(copy,
			     index ? GIT_INIT "git apply --index ../patch && rm -rf .git" : "git apply ../patch"));
	assert_int_equal(lower_open(copy, &lower), 0);
	result = tree_open(NULL, lower, TREE_LOWER);
	differ = trees_differ(result, to);
	if (differ)
		g_error("the patched tree differs: %s", differ);
}

static void check_live(struct layered *l, bool index)
{
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER),
			  to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(GByteArray) patch = patch_between(from, to);

	check_applies(l, from, to, patch, false);
	if (index)
		check_applies(l, from, to, patch, true);
}

static char *live_patch(struct layered *l)
{
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER),
			  to = tree_open(l->store, l->lower, EPOCH_LIVE);

	return (char *)g_byte_array_free(patch_between(from, to), FALSE);
}

/* What git itself prints for the same change: the same bytes. */
static void check_as_git(struct layered *l, bool similar)
{
	g_autofree char *command = g_strdup_printf("git add -A -f . && git diff --cached --full-index --binary %s",
						   similar ? "-M" : "--no-renames");
	g_autoptr(GByteArray) patch = NULL;
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER),
			  to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autofree char *ours = NULL, *theirs = NULL, *copy = g_build_filename(l->dir, "copy", NULL);

	patch = patch_made(from, to, similar);
	check_applies(l, from, to, patch, false);
	g_free(shell(l->dir, "rm -rf git && cp -a workspace git"));
	g_free(shell(l->dir, "cd git && " GIT_INIT "mv .git ../copy/.git"));
	theirs = shell(copy, command);
	ours = g_strndup((const char *)patch->data, patch->len);
	assert_string_equal(ours, theirs);
}

/* Kinds */

static void kind_text(struct layered *l)
{
	host_text(l, "a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
	host_text(l, "d/gone", "x\n");
	host_text(l, "w", "int f(void)\n{\n\treturn 1;\n}\n\nint g(void)\n{\n\treturn 2;\n}\n");
	view_text(l, "a", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n");
	view_text(
		l, "w",
		"int f(void)\n{\n\treturn 1;\n}\n\nint h(void)\n{\n\treturn 3;\n}\n\nint g(void)\n{\n\treturn 2;\n}\n");
	view_remove(l, "d/gone");
	view_mkdir(l, "n");
	view_mkdir(l, "n/m");
	view_text(l, "n/m/new", "x\ny\n");
}

static void kind_no_newline(struct layered *l)
{
	host_text(l, "loses", "a\nb\n");
	host_text(l, "gains", "a\nb");
	host_text(l, "keeps", "a\nb\nc\nd\ne\nf\ng");
	host_text(l, "gone", "x");
	view_text(l, "loses", "a\nb");
	view_text(l, "gains", "a\nb\n");
	view_text(l, "keeps", "A\nb\nc\nd\ne\nf\ng");
	view_text(l, "new", "x");
	view_remove(l, "gone");
}

static void kind_empty(struct layered *l)
{
	host_text(l, "filled", "");
	host_text(l, "emptied", "x\n");
	host_text(l, "gone", "");
	host_text(l, "d /gone", "");
	view_remove(l, "d /gone");
	view_text(l, "filled", "x\n");
	view_text(l, "emptied", "");
	view_remove(l, "gone");
	view_text(l, "new", "");
	view_text(l, "new with space", "");
}

static void kind_modes(struct layered *l)
{
	host_text(l, "a", "x\n");
	host_write(l, "b", "x\n", 2, 0755);
	host_write(l, "gone", "x\n", 2, 0755);
	host_text(l, "both", "x\n");
	view_chmod(l, "a", 0755);
	view_chmod(l, "b", 0644);
	view_remove(l, "gone");
	view_text(l, "both", "y\n");
	view_chmod(l, "both", 0755);
	view_text(l, "new", "x\n");
	view_chmod(l, "new", 0700);
}

static void kind_symlinks(struct layered *l)
{
	host_symlink(l, "ret", "old");
	host_symlink(l, "gone", "x");
	host_text(l, "to-link", "x\n");
	host_symlink(l, "to-file", "x");
	view_remove(l, "ret");
	view_symlink(l, "ret", "new\ntarget");
	view_remove(l, "gone");
	view_symlink(l, "abs", "/etc/passwd");
	view_symlink(l, "dangling", "../../../nowhere");
	view_remove(l, "to-link");
	view_symlink(l, "to-link", "x\n");
	view_remove(l, "to-file");
	view_text(l, "to-file", "x");
}

static void kind_line_ends(struct layered *l)
{
	host_text(l, ".gitattributes", "* text=auto eol=lf\n*.sh text eol=crlf\n");
	host_text(l, "crlf", "a\r\nb\r\nc\r\n");
	host_text(l, "mixed", "a\r\nb\nc\r\n");
	host_text(l, "cr", "a\rb\rc");
	host_text(l, "bom", "\357\273\277x\r\n");
	host_text(l, "s.sh", "x\r\n");
	view_text(l, "crlf", "a\r\nB\r\nc\r\nd\r\n");
	view_text(l, "mixed", "a\r\nb\nc\r\nd\n");
	view_text(l, "cr", "a\rB\rc");
	view_text(l, "bom", "\357\273\277y\r\n");
	view_text(l, "new", "n1\r\nn2\r\n");
	view_text(l, "s.sh", "y\n");
}

static void kind_names(struct layered *l)
{
	static const char *const names[] = { "sp ace",		 "tab\there",	"new\nline", "quo\"te", "back\\slash",
					     "\303\244\303\266", "bad\377\376", "-dash",     "x b/y",	" lead",
					     "trail ",		 "a/b/a/b",	"a /b",	     " /b",	"d\001\177",
					     "\342\202\254 5",	 "dev/null",	"#x" };

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		g_autofree char *mod = g_strdup_printf("m/%s", names[i]), *gone = g_strdup_printf("g/%s", names[i]);
		g_autofree char *new = g_strdup_printf("n%" G_GSIZE_FORMAT, i), *empty = NULL;

		host_text(l, mod, "x\n");
		host_text(l, gone, "x\n");
		view_text(l, mod, "y\n");
		view_remove(l, gone);
		view_mkdir(l, new);
		if (strchr(names[i], '/'))
			continue;
		empty = g_strdup_printf("%s/e%s", new, names[i]);
		view_text(l, empty, "");
		new = (g_free(new), g_strdup_printf("n%" G_GSIZE_FORMAT "/%s", i, names[i]));
		view_text(l, new, "x\n");
	}
}

static void kind_type_exchange(struct layered *l)
{
	host_text(l, "dir/x", "x\n");
	host_text(l, "dir/sub/y", "y\n");
	host_text(l, "file", "f\n");
	host_text(l, "file-2", "f\n");
	view_remove(l, "dir");
	view_text(l, "dir", "now a file\n");
	view_remove(l, "file");
	view_mkdir(l, "file");
	view_text(l, "file/z", "z\n");
}

static char *noise(size_t size, guint32 seed)
{
	char *data = g_malloc(size + 1);

	for (size_t i = 0; i < size; i++) {
		seed = seed * 1664525 + 1013904223;
		data[i] = seed >> 24;
	}
	return data;
}

static void kind_binary(struct layered *l)
{
	g_autofree char *data = noise(300000, 1), *other = noise(300000, 2);

	host_write(l, "mod", data, 4096, 0644);
	host_write(l, "gone", data, 300000, 0644);
	host_text(l, "t2b", "text\n");
	host_write(l, "b2t", "a\0b", 3, 0644);
	host_write(l, "full", data, 300000, 0644);
	host_write(l, "grown", data, 200000, 0644);
	data[2000] ^= 1;
	view_write(l, "mod", data, 4096);
	view_remove(l, "gone");
	view_write(l, "new", other, 100000);
	view_write(l, "t2b", "x\0y\n", 4);
	view_text(l, "b2t", "text\n");
	view_write(l, "full", other, 300000);
	data[2000] ^= 1;
	view_write(l, "grown", data, 300000);
	view_write(l, "nul", "", 1);
	view_write(l, "utf16", "\377\376a\0b\0", 6);
}

static void kind_late_nul(struct layered *l)
{
	g_autofree char *data = g_malloc(9001);

	for (int i = 0; i < 9001; i++)
		data[i] = i % 50 == 49 ? '\n' : 'x';
	data[8500] = '\0';
	host_write(l, "a", data, 9001, 0644);
	data[8510] = 'y';
	view_write(l, "a", data, 9001);
}

static const struct {
	const char *name;
	void (*build)(struct layered *l);
	bool no_index; /* git itself applies attributes when it fills an index */
} kinds[] = {
	{ "text", kind_text, false },	      { "no newline", kind_no_newline, false },
	{ "empty", kind_empty, false },	      { "modes", kind_modes, false },
	{ "symlinks", kind_symlinks, false }, { "line ends", kind_line_ends, true },
	{ "names", kind_names, false },	      { "type exchange", kind_type_exchange, false },
	{ "binary", kind_binary, false },     { "late NUL", kind_late_nul, false },
};

static void test_kinds(void **state)
{
	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
		struct layered *l = layered_new();

		kinds[i].build(l);
		check_live(l, !kinds[i].no_index);
		layered_free(l);
	}
}

/* One file per sandbox, so that no order matters: the very bytes of git. */
static void test_as_git(void **state)
{
	static const struct {
		const char *name;
		const char *before; /* NULL = not there */
		const char *after;
	} cases[] = {
		{ "a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n" },
		{ "a", "x", "x\n" },
		{ "a", "x\n", "x" },
		{ "a", NULL, "x\ny" },
		{ "a", "x\ny", NULL },
		{ "a", NULL, "" },
		{ "a", "", NULL },
		{ "a", "", "x\n" },
		{ "a", "x\n", "" },
		{ "sp ace", "x\n", "y\n" },
		{ "sp \"ace", "x\n", "y\n" },
		{ "sp ace", NULL, "" },
		{ "\303\244\t\n\377", "x\n", "y\n" },
		{ "trail ", NULL, "y\n" },
		{ "crlf", "a\r\nb\r\n", "a\r\nc\r\n" },
		{ "f.c", "int f(void)\n{\n\t1;\n\t2;\n\t3;\n\t4;\n\t5;\n}\n",
		  "int f(void)\n{\n\t1;\n\t2;\n\t3;\n\t4;\n\tfive;\n}\n" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct layered *l = layered_new();

		if (cases[i].before)
			host_text(l, cases[i].name, cases[i].before);
		if (cases[i].after)
			view_text(l, cases[i].name, cases[i].after);
		else
			view_remove(l, cases[i].name);
		check_as_git(l, false);
		layered_free(l);
	}
}

/* Git's score, git's pairs, git's bytes. */
static void test_similar_as_git(void **state)
{
	static const struct {
		const char *before, *after;
	} cases[] = {
		{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n" },
		{ "same\n", "same\n" },
		{ "1\n2\n3\n4\n", "1\n2\nx\ny\n" },
		{ "1\n2\n3\n4\n", "1\n2\nx\ny\nz\n" },
		{ "1\n2\n3", "1\n2\n3\n4" },
		{ "x\n", "y\n" },
		{ "", "" },
		{ "", "x\n" },
		{ "\tone\r\n\ttwo\n\n\n\n", "\ttwo\n\n\n\n" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct layered *l = layered_new();

		host_text(l, "a name", cases[i].before);
		view_remove(l, "a name");
		view_mkdir(l, "d");
		view_text(l, "d/n\303\244w", cases[i].after);
		if (i % 2)
			view_chmod(l, "d/n\303\244w", 0755);
		/* Git takes an empty file for every other one. */
		if (*cases[i].before || *cases[i].after)
			check_as_git(l, true);
		else
			check_as_git(l, false);
		layered_free(l);
	}
}

static void test_renames_apply(void **state)
{
	struct layered *l = *state;
	g_autofree char *data = noise(100000, 3), *patch = NULL;

	host_text(l, "src/c/f1", "1\n2\n3\n");
	host_write(l, "src/c/f2", "1\n2\n3\n", 6, 0755);
	host_text(l, "src/c/deep/g 1", "g\n");
	host_symlink(l, "src/c/l", "f1");
	host_write(l, "bin", data, 100000, 0644);
	host_text(l, "moved-up/x", "up\n");
	host_text(l, "one", "one\n");
	host_text(l, "two", "two\n");
	view_rename(l, "src/c", "src/c\303\244");
	view_text(l, "src/c\303\244/f1", "1\n2\n3\n4\n");
	view_chmod(l, "src/c\303\244/f2", 0644);
	view_rename(l, "src/c\303\244/deep", "deep 2");
	view_rename(l, "bin", "bin2");
	data[5] ^= 1;
	view_write(l, "bin2", data, 100000);
	view_rename(l, "moved-up/x", "y");
	view_remove(l, "moved-up");
	view_rename(l, "y", "moved-up");
	view_rename(l, "one", "three");
	view_rename(l, "two", "one");
	check_live(l, true);
	patch = live_patch(l);
	assert_non_null(
		strstr(patch, "similarity index 100%\nrename from \"src/c/deep/g 1\"\nrename to \"deep 2/g 1\"\n") ||
				strstr(patch,
				       "similarity index 100%\nrename from src/c/deep/g 1\nrename to deep 2/g 1\n")
			? patch
			: NULL);
	assert_non_null(
		strstr(patch, "similarity index 75%\nrename from src/c/f1\nrename to \"src/c\\303\\244/f1\"\nindex "));
}

static void test_left_out(void **state)
{
	struct layered *l = *state;
	g_autofree char *patch = NULL;

	host_text(l, "mode", "x\n");
	host_text(l, "sub/.git/config", "x\n");
	host_text(l, "sub/.git/free", "x\n");
	host_text(l, "to-fifo", "x\n");
	host_text(l, "out", "x\n");
	host_text(l, "owned", "x\n");
	host_text(l, "exec", "x\n");
	host_text(l, "move", "some content\n");
	view_text(l, "owned", "y\n");
	view_chown(l, "owned", 4711);
	view_text(l, "exec", "y\n");
	view_chmod(l, "exec", 0755);
	view_rename(l, "move", "moved");
	view_xattr(l, "moved", "user.a", "1");
	view_chmod(l, "mode", 0600);
	view_text(l, "sub/.git/config", "y\n");
	view_mkdir(l, "nested");
	view_mkdir(l, "nested/.GIT");
	view_text(l, "nested/.GIT/hook", "evil\n");
	view_symlink(l, "nested/.gitmodules", "x");
	view_text(l, "nested/.gitignore", "x\n");
	view_text(l, "nested/git~1", "x\n");
	view_rename(l, "out", "sub/.git/in");
	view_rename(l, "sub/.git/free", "in");
	view_mkfifo(l, "fifo");
	view_remove(l, "to-fifo");
	view_mkfifo(l, "to-fifo");
	view_mkdir(l, "empty");
	view_xattr(l, "mode", "user.a", "1");
	patch = live_patch(l);
	assert_non_null(strstr(patch, "# sbxfs: P mode: mode 0644 -> 0600, xattrs\n"));
	/* In front of a part that shows the content, and not where git's own lines say it. */
	assert_non_null(strstr(patch, "# sbxfs: M owned: owner "));
	assert_non_null(strstr(patch, "# sbxfs: R moved: xattrs\ndiff --git a/move b/moved\nsimilarity index 100%\n"));
	assert_null(strstr(patch, "# sbxfs: M exec"));
	assert_non_null(strstr(patch, "# sbxfs: M sub/.git/config: not in this patch, git refuses the path\n"));
	assert_non_null(strstr(patch, "# sbxfs: A nested/.GIT/hook: "));
	assert_non_null(strstr(patch, "# sbxfs: A nested/.gitmodules: "));
	assert_non_null(strstr(patch, "# sbxfs: A nested/git~1: "));
	assert_non_null(strstr(patch, "# sbxfs: R sub/.git/in: "));
	assert_non_null(strstr(patch, "# sbxfs: A fifo: fifo\n"));
	assert_non_null(strstr(patch, "diff --git a/in b/in\nnew file mode 100644\n"));
	assert_non_null(strstr(patch, "diff --git a/out b/out\ndeleted file mode 100644\n"));
	assert_non_null(strstr(patch, "diff --git a/to-fifo b/to-fifo\ndeleted file mode 100644\n"));
	assert_null(strstr(patch, "evil"));
	assert_null(strstr(patch, "empty"));
	g_free(shell(l->dir, "cp -a workspace copy"));
	{
		g_autofree char *file = g_build_filename(l->dir, "patch", NULL);

		g_assert_true(g_file_set_contents(file, patch, -1, NULL));
	}
	g_free(shell(
		l->dir,
		"cd copy && git apply ../patch && test ! -e out && test ! -e to-fifo && grep -q x nested/.gitignore"));
}

static void test_only_owner_and_mode(void **state)
{
	struct layered *l = *state;
	g_autofree char *patch = NULL;

	host_text(l, "a", "x\n");
	view_chmod(l, "a", 0755);
	patch = live_patch(l);
	assert_string_equal(patch, "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n");
}

static void test_nothing(void **state)
{
	struct layered *l = *state;
	g_autofree char *patch = NULL;

	host_text(l, "a", "x\n");
	view_touch(l, "a");
	patch = live_patch(l);
	assert_string_equal(patch, "");
}

static void test_late_nul_is_text(void **state)
{
	kind_late_nul(*state);
	check_as_git(*state, false);
}

static void test_equal_by_now(void **state)
{
	struct layered *l = *state;
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER),
			  to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(GPtrArray) changes = NULL;
	g_autoptr(GByteArray) patch = g_byte_array_new();

	/*
	 * The owner makes the same edit between the comparison and the patch: a header alone would be refused by git.
	 */
	host_text(l, "a", "x\n");
	view_text(l, "a", "y\n");
	changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	host_text(l, "a", "y\n");
	assert_int_equal(diff_patch(changes, from, to, collect, patch, NULL), 0);
	assert_int_equal(patch->len, 0);
}

/* Large files */

static size_t patch_size(struct layered *l, struct tree *from, struct tree *to)
{
	g_autoptr(GByteArray) patch = patch_between(from, to);

	check_applies(l, from, to, patch, false);
	return patch->len;
}

static void test_large(void **state)
{
	struct layered *l = *state;
	const size_t size = BLOB_WHOLE_MAX + 12345;
	g_autofree char *data = noise(size + 10, 4);
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER),
			  to = tree_open(l->store, l->lower, EPOCH_LIVE);

	host_write(l, "big", data, size, 0644);
	data[size / 2] ^= 1;
	view_write(l, "big", data, size);
	assert_true(patch_size(l, from, to) < 2000);
	/* Also at both ends, and with bytes put in between and cut off. */
	data[0] ^= 1;
	data[size - 1] ^= 1;
	view_write(l, "big", data, size);
	assert_true(patch_size(l, from, to) < 50000);
	data[0] ^= 1;
	data[size - 1] ^= 1;
	memmove(data + size / 2 + 10, data + size / 2, size - size / 2);
	view_write(l, "big", data, size + 10);
	assert_true(patch_size(l, from, to) < 2000);
	memmove(data + size / 2, data + size / 2 + 10, size - size / 2);
	data[size / 2] ^= 1;
	view_write(l, "big", data + 100, size - 100);
	assert_true(patch_size(l, from, to) < 2000);
	/* A deletion does not spell out what it deletes. */
	view_remove(l, "big");
	assert_true(patch_size(l, from, to) < 500);
	/* From nothing and to something small. What is the same everywhere is not taken as common twice. */
	memset(data, 'x', size);
	host_write(l, "same", data, size, 0644);
	view_write(l, "same", data, size - 500);
	view_write(l, "new", data, size);
	view_text(l, "big", "small\n");
	assert_true(patch_size(l, from, to) < 1000000);
}

static char *alternating(size_t lines, char first, char second)
{
	char *data = g_malloc(2 * lines);

	for (size_t i = 0; i < lines; i++) {
		data[2 * i] = i % 2 ? first : second;
		data[2 * i + 1] = '\n';
	}
	return data;
}

static void test_many_lines(void **state)
{
	struct layered *l = *state;
	size_t many = BLOB_LINES_MAX + 1, some = 2 * BLOB_CHANGED_LINES_MAX;
	g_autofree char *data = alternating(many, 'a', 'b'), *other = alternating(some, 'c', 'd'), *patch = NULL;
	const char *found;

	host_write(l, "many", data, 2 * many, 0644);
	host_write(l, "some", data, 2 * some, 0644);
	host_write(l, "edited", data, 2 * some, 0644);
	view_write(l, "some", other, 2 * some);
	data[some] = 'x';
	view_write(l, "many", data, 2 * many);
	view_write(l, "edited", data, 2 * some);
	patch = live_patch(l);
	found = strstr(patch, "b/edited\nindex ");
	assert_non_null(found);
	assert_memory_equal(strchr(found + strlen("b/edited\n"), '\n'), "\n--- a/edited\n", 14);
	found = strstr(patch, "b/many\nindex ");
	assert_non_null(found);
	assert_memory_equal(strchr(found + strlen("b/many\n"), '\n'), "\nGIT binary patch\n", 18);
	found = strstr(patch, "b/some\nindex ");
	assert_non_null(found);
	assert_memory_equal(strchr(found + strlen("b/some\n"), '\n'), "\nGIT binary patch\n", 18);
	check_live(l, true);
}

/* Tables */

static char *run_stat(struct layered *l)
{
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER),
			  to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(GPtrArray) changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	g_autoptr(GError) error = NULL;
	GByteArray *out = g_byte_array_new();

	assert_int_equal(diff_stat(changes, from, to, collect, out, &error), 0);
	return g_strndup((const char *)out->data, (g_byte_array_append(out, (const guint8 *)"", 1), out->len));
}

static void table_state(struct layered *l)
{
	host_text(l, "a", "1\n2\n3\n");
	host_text(l, "gone", "1\n2");
	host_text(l, "old", "x\n");
	view_text(l, "a", "1\ntwo\n3\n4\n");
	view_remove(l, "gone");
	view_write(l, "bin", "a\0b", 3);
	view_rename(l, "old", "n\303\244w");
	view_mkdir(l, "dir");
	view_chmod(l, "dir", 0700);
}

static void test_stat(void **state)
{
	struct layered *l = *state;
	g_autofree char *nothing = run_stat(l), *got = NULL;

	assert_string_equal(nothing, "");
	table_state(l);
	got = run_stat(l);
	assert_string_equal(got, " gone                |   2 --\n"
				 " a                   |   3 ++-\n"
				 " bin                 | Bin 0 -> 3 bytes\n"
				 " dir                 |   0 (directory)\n"
				 " old => \"n\\303\\244w\" |   0\n"
				 " 5 files changed, 2 insertions(+), 3 deletions(-)\n");
}

static char *run_names(struct layered *l, bool nul)
{
	g_autoptr(GPtrArray) changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	g_autoptr(GByteArray) out = g_byte_array_new();

	assert_int_equal(diff_name_status(changes, nul, collect, out, NULL), 0);
	for (guint i = 0; i < out->len; i++)
		out->data[i] = out->data[i] ? out->data[i] : '|';
	return g_strndup((const char *)out->data, out->len);
}

static void test_name_status(void **state)
{
	g_autofree char *lines = NULL, *nul = NULL;

	table_state(*state);
	lines = run_names(*state, false);
	nul = run_names(*state, true);
	assert_string_equal(lines, "D\tgone\nM\ta\nA\tbin\nA\tdir\nR100\told\t\"n\\303\\244w\"\n");
	assert_string_equal(nul, "D|gone|M|a|A|bin|A|dir|R100|old|n\303\244w|");
}

static void test_quote(void **state)
{
	static const struct {
		const char *path;
		const char *want;
	} cases[] = {
		{ "plain/path", "plain/path" },
		{ "sp ace", "sp ace" },
		{ "", "." },
		{ "a\tb\nc\rd", "\"a\\tb\\nc\\rd\"" },
		{ "\a\b\v\f", "\"\\a\\b\\v\\f\"" },
		{ "q\"b\\", "\"q\\\"b\\\\\"" },
		{ "\001\177", "\"\\001\\177\"" },
		{ "\303\244\377", "\"\\303\\244\\377\"" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *got = diff_quote_path(cases[i].path);

		assert_string_equal(got, cases[i].want);
	}
}

static void test_json(void **state)
{
	struct layered *l = *state;
	struct change_json_names names = { .sandbox = "s", .workspace = "/w\377", .from = "start", .to = "live" };
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER),
			  to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(GPtrArray) changes = NULL;
	g_autoptr(GByteArray) out = g_byte_array_new();
	g_autoptr(GError) error = NULL;
	g_autoptr(JsonParser) parser = json_parser_new();
	g_autofree char *digest = NULL;
	JsonObject *root, *change, *side;
	JsonArray *list;

	table_state(l);
	view_text(l, "bad\377", "x\n");
	view_symlink(l, "link", "t\"");
	view_xattr(l, "a", "user.k", "v");
	changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	digest = changes_digest(changes, to, &error);
	names.digest = digest;
	assert_int_equal(change_json_write(changes, from, to, &names, collect, out, &error), 0);
	assert_true(json_parser_load_from_data(parser, (const char *)out->data, out->len, &error));
	assert_int_equal(out->data[out->len - 1], '\n');
	root = json_node_get_object(json_parser_get_root(parser));
	assert_string_equal(json_object_get_string_member(root, "schema"), "sbxfs.diff/1");
	assert_string_equal(json_object_get_string_member(root, "digest"), digest);
	assert_string_equal(json_object_get_string_member(root, "workspace_b64"), "L3f/");
	list = json_object_get_array_member(root, "changes");
	assert_int_equal(json_array_get_length(list), 7);

	change = json_array_get_object_element(list, 0);
	assert_string_equal(json_object_get_string_member(change, "path"), "gone");
	assert_string_equal(json_object_get_string_member(change, "status"), "D");
	assert_false(json_object_has_member(change, "new"));
	assert_int_equal(json_object_get_int_member(change, "removed"), 2);

	change = json_array_get_object_element(list, 1);
	assert_string_equal(json_object_get_string_member(change, "path"), "a");
	assert_int_equal(json_object_get_int_member(change, "added"), 2);
	assert_int_equal(json_object_get_int_member(change, "removed"), 1);
	side = json_object_get_object_member(change, "new");
	assert_string_equal(json_object_get_string_member(side, "mode"), "100644");
	assert_int_equal(json_object_get_int_member(side, "size"), 10);
	assert_string_equal(json_object_get_string_member(side, "sha256"),
			    "d43d429ca050a1111c628c15dec3f2a566997789b6685df13d0b8bc7b56de3be");
	assert_string_equal(json_object_get_string_member(json_object_get_object_member(side, "xattrs"), "user.k"),
			    "dg==");

	change = json_array_get_object_element(list, 2);
	assert_string_equal(json_object_get_string_member(change, "path"), "bad\357\277\275");
	assert_string_equal(json_object_get_string_member(change, "path_b64"), "YmFk/w==");

	change = json_array_get_object_element(list, 3);
	assert_true(json_object_get_boolean_member(change, "binary"));

	change = json_array_get_object_element(list, 5);
	side = json_object_get_object_member(change, "new");
	assert_string_equal(json_object_get_string_member(side, "target"), "t\"");

	change = json_array_get_object_element(list, 6);
	assert_string_equal(json_object_get_string_member(change, "status"), "R");
	assert_string_equal(json_object_get_string_member(change, "from_path"), "old");
	assert_int_equal(json_object_get_int_member(json_object_get_object_member(root, "summary"), "deleted"), 1);
}

/* Random edits */

static GRand *rnd;
static int similar_rounds; /* in which a pair of similar files was found */

static int pick(int n)
{
	return g_rand_int_range(rnd, 0, n);
}

static char *random_bytes(size_t *ret_size)
{
	static const char *const lines[] = { "",
					     "one",
					     "two",
					     "{",
					     "}",
					     "\treturn 0;",
					     "\r",
					     "-- ",
					     "+x",
					     "@@ -1 +1 @@",
					     "diff --git a/x b/x",
					     "\303\244",
					     "\377\376",
					     "GIT binary patch",
					     "--- a/x" };
	GString *s = g_string_new(NULL);

	switch (pick(8)) {
	case 0:
		break;
	case 1:
		*ret_size = pick(20000);
		g_string_free(s, TRUE);
		return noise(*ret_size, g_rand_int(rnd));
	case 2:
		for (int i = 0; i < 3000; i++)
			g_string_append_printf(s, "line %d\n", pick(50));
		break;
	case 3:
		for (int i = 0; i < 9000; i++)
			g_string_append_c(s, 'a' + pick(26));
		g_string_append_c(s, '\0');
		/* fall through */
	default:
		for (int i = pick(40); i > 0; i--)
			g_string_append_printf(s, "%s%s", lines[pick(G_N_ELEMENTS(lines))],
					       pick(15)	 ? "\n"
					       : pick(2) ? "\r\n"
							 : "");
	}
	*ret_size = s->len;
	return g_string_free(s, FALSE);
}

/* The same, with a few places changed: what an edit does. */
static char *mutated(struct layered *l, const char *path, size_t *ret_size)
{
	g_autoptr(tree_t) t = tree_open(l->store, l->lower, EPOCH_LIVE);
	struct entry *e = NULL;
	struct tree_file *f;
	char *data;

	assert_int_equal(tree_lookup_path(t, path, &e), 0);
	assert_int_equal(tree_file_open(t, e, &f), 0);
	data = g_malloc(e->attr.size + 100);
	*ret_size = tree_file_read(f, data, e->attr.size, 0);
	tree_file_close(f);
	entry_free(e);
	for (int i = pick(4); i > 0 && *ret_size; i--)
		data[pick(*ret_size)] = pick(4) ? "abc\nx\r"[pick(6)] : pick(256);
	for (int i = pick(3) ? 0 : pick(99); i > 0; i--)
		data[(*ret_size)++] = "ab\n"[pick(3)];
	if (*ret_size && !pick(4))
		*ret_size -= pick(*ret_size);
	return data;
}

static char *random_name(const char *dir)
{
	static const char *const names[] = { "a",    "b",    "c",    "d",	 "e",	 "file.c", "sp ace",
					     "t\tb", "n\nl", "q\"",  "\303\244", "\377", "x b",	   "\\",
					     "-",    "B ",   "a=>b", "#",	 "~" };

	return path_join(dir, names[pick(G_N_ELEMENTS(names))]);
}

struct listing {
	GPtrArray *files; /* all but directories */
	GPtrArray *regular;
	GPtrArray *directories;
};

static void list_tree(struct tree *t, const struct entry *dir, const char *path, struct listing *ls)
{
	g_autoptr(GPtrArray) list = NULL;

	g_ptr_array_add(ls->directories, g_strdup(path));
	assert_int_equal(tree_list(t, dir, &list), 0);
	for (guint i = 0; i < list->len; i++) {
		const struct entry *e = g_ptr_array_index(list, i);
		g_autofree char *child = path_join(path, e->name);

		if (S_ISDIR(e->attr.mode))
			list_tree(t, e, child, ls);
		else
			g_ptr_array_add(ls->files, g_strdup(child));
		if (S_ISREG(e->attr.mode))
			g_ptr_array_add(ls->regular, g_strdup(child));
	}
}

static const char *any(GPtrArray *list)
{
	return list->len ? g_ptr_array_index(list, pick(list->len)) : NULL;
}

static bool is_below(const char *path, const char *dir)
{
	return g_str_has_prefix(path, dir) && (path[strlen(dir)] == '/' || !path[strlen(dir)]);
}

static void random_edit(struct layered *l)
{
	struct listing ls = { g_ptr_array_new_with_free_func(g_free), g_ptr_array_new_with_free_func(g_free),
			      g_ptr_array_new_with_free_func(g_free) };
	struct tree *t = tree_open(l->store, l->lower, EPOCH_LIVE);
	struct entry *root = NULL;
	const char *file, *regular, *dir;
	g_autofree char *data = NULL, *new = NULL;
	size_t size;

	assert_int_equal(tree_root(t, &root), 0);
	list_tree(t, root, "", &ls);
	file = any(ls.files);
	regular = any(ls.regular);
	dir = any(ls.directories);
	new = random_name(any(ls.directories));
	switch (pick(14)) {
	case 12:
	case 13:
		/* Moved in a way that nothing tells but its bytes. */
		if (regular && !is_below(new, regular)) {
			data = mutated(l, regular, &size);
			view_remove(l, regular);
			view_remove(l, new);
			view_write(l, new, data, size);
		}
		break;
	case 0:
	case 1:
		data = random_bytes(&size);
		view_remove(l, new);
		view_write(l, new, data, size);
		break;
	case 2:
	case 3:
	case 4:
		if (regular) {
			data = pick(4) ? mutated(l, regular, &size) : random_bytes(&size);
			view_write(l, regular, data, size);
		}
		break;
	case 5:
		if (file)
			view_remove(l, file);
		break;
	case 6:
		if (*dir && !pick(2))
			view_remove(l, dir);
		break;
	case 7:
	case 8:
		if (file && !is_below(new, file))
			view_rename(l, file, new);
		break;
	case 9:
		if (*dir && !is_below(new, dir) && !is_below(dir, new))
			view_rename(l, dir, new);
		break;
	case 10:
		if (regular)
			view_chmod(l, regular, pick(2) ? 0755 : pick(2) ? 0644 : 0600);
		break;
	default:
		view_remove(l, new);
		if (pick(2))
			view_symlink(l, new, pick(2) ? "a" : "some/where else\n");
		else
			view_mkdir(l, new);
	}
	g_ptr_array_unref(ls.files);
	g_ptr_array_unref(ls.regular);
	g_ptr_array_unref(ls.directories);
	entry_free(root);
	tree_close(t);
}

static void random_workspace(struct layered *l)
{
	g_autoptr(GPtrArray) dirs = g_ptr_array_new_with_free_func(g_free);

	g_ptr_array_add(dirs, g_strdup(""));
	for (int i = pick(25); i > 0; i--) {
		g_autofree char *path = random_name(any(dirs)), *full = g_build_filename(l->workspace, path, NULL),
				*data = NULL;
		size_t size;

		if (g_file_test(full, G_FILE_TEST_EXISTS) || g_file_test(full, G_FILE_TEST_IS_SYMLINK))
			continue;
		if (!pick(3)) {
			/* Never empty: a patch can't remove an empty directory that a file replaces. */
			g_autofree char *keep = path_join(path, "keep");

			host_text(l, keep, "x\n");
			g_ptr_array_add(dirs, g_strdup(path));
		} else if (!pick(6)) {
			host_symlink(l, path, "some where");
		} else {
			data = random_bytes(&size);
			host_write(l, path, data, size, pick(4) ? 0644 : 0755);
		}
	}
}

static void random_round(guint32 seed)
{
	struct layered *l = layered_new();
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER),
			  to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(GByteArray) patch = NULL, told = NULL;

	if (g_getenv("SBXFS_TEST_VERBOSE"))
		g_printerr("seed %u\n", seed);
	g_rand_set_seed(rnd, seed);
	random_workspace(l);
	for (int i = 1 + pick(30); i > 0; i--)
		random_edit(l);
	patch = patch_between(from, to);
	check_applies(l, from, to, patch, seed % 4 == 0);
	told = patch_made(from, to, true);
	check_applies(l, from, to, told, seed % 4 == 0);
	similar_rounds += told->len != patch->len;
	/* Again as two unrelated directories: what was patched against what was there. */
	if (seed % 2) {
		g_autofree char *copy = g_build_filename(l->dir, "copy", NULL);
		g_autoptr(lower_t) lower = NULL;
		g_autoptr(tree_t) other = NULL;
		g_autoptr(GByteArray) second = NULL;

		assert_int_equal(lower_open(copy, &lower), 0);
		other = tree_open(NULL, lower, TREE_LOWER);
		second = patch_between(from, other);
		check_applies(l, from, to, second, false);
	}
	layered_free(l);
}

/* SBXFS_TEST_VERBOSE=1 names the rounds, SBXFS_TEST_SEED=N replays one, SBXFS_TEST_ROUNDS=N does more. */
static void test_random(void **state)
{
	const char *seed = g_getenv("SBXFS_TEST_SEED"), *rounds = g_getenv("SBXFS_TEST_ROUNDS");
	int n = rounds ? atoi(rounds) : 40;

	(void)state;
	rnd = g_rand_new_with_seed(0);
	if (seed) {
		random_round(atoi(seed));
	} else {
		for (int i = 1; i <= n; i++)
			random_round(i);
		assert_true(similar_rounds > n / 8);
	}
	g_rand_free(rnd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_as_git),
		cmocka_unit_test(test_similar_as_git),
		TEST(test_renames_apply),
		TEST(test_left_out),
		TEST(test_only_owner_and_mode),
		TEST(test_nothing),
		TEST(test_late_nul_is_text),
		TEST(test_equal_by_now),
		TEST(test_large),
		TEST(test_many_lines),
		TEST(test_stat),
		TEST(test_name_status),
		TEST(test_quote),
		TEST(test_json),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
