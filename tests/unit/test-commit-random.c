/* SPDX-License-Identifier: MIT */

/*
 * Random change sets, made through a view of everything that it knows to make. Of each set:
 *  - its patch, applied by `git apply` to a copy of the workspace, gives what git can see of the view (which is no special file and
 *    no empty directory);
 *  - its commit makes the workspace what the view is, to the mode, owner, time, xattr and which names are one inode; the view stays the
 *    same, and nothing is pending;
 *  - the undo makes the workspace what it was, to the same, and all is pending again; where nothing was exchanged, the view shows the same
 *    after each of its steps;
 *  - a commit of some of it, and another, and the rest, leave the view as it is each time, and so does undoing them one by one;
 *  - commit and undo, killed and recovered, are one or the other: again and again on the same workspace, whose change times nobody puts
 *    back. Killed is at COMMIT_KILLS and UNDO_KILLS points of each set, drawn from all at which a crash leaves something of its own on
 *    the disk, and the recovery at points of its own; of each EXHAUSTIVE-th set at every point.
 *
 * Usage: test-commit-random [SETS [FIRST SEED]]. An ordinary user has other seeds than root, those from 151 on, so that tests/run has 300 sets.
 */

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "snapshot/apply.h"
#include "snapshot/diff.h"
#include "viewed.h"

#define COMMIT_KILLS 2
#define UNDO_KILLS 1
#define EXHAUSTIVE 50
#define PARTS 3

extern void (*boundary_hook)(const char *what); /* of snapshot/journal.h, whose names clash with those of fs/overlay.h */

static int kill_at;
static int *points; /* shared with the children */
static unsigned total_kills, total_points, parts, parts_refused;

struct trial {
	struct viewed *v;
	GRand *rand;
	guint32 seed;
	bool xattrs;
	bool links; /* files of the workspace with several names */
	int fifo;
	bool exchanged; /* something was, in the view */
	char *start, *end; /* the workspace before and after */
	char *pending;
	int64_t epoch; /* of the commit at work */
	unsigned to_undo; /* commits that wrote something */
};

#define CHECK(t, x, ...)                                                                                                           \
	do {                                                                                                                       \
		if (!(x)) {                                                                                                        \
			fprintf(stderr, "seed %u: %s: ", (t)->seed, #x);                                                           \
			fprintf(stderr, __VA_ARGS__);                                                                              \
			fputc('\n', stderr);                                                                                       \
			_exit(1);                                                                                                  \
		}                                                                                                                  \
	} while (0)

/* Scenes */

/* The view at each step of an undo */

static struct trial *looked_at; /* NULL = not now */
static char *shown;
static unsigned looks;

static void look(const char *what)
{
	g_autofree char *now = NULL;

	if (!looked_at || strcmp(what, "step undone") != 0)
		return;
	now = view_describe(looked_at->v, DESCRIBE_MTIME | DESCRIBE_OWNER);
	CHECK(looked_at, describe_same(shown, now), "the view at point %d of an undo: %s", *points, looked_at->pending);
	looks++;
}

/* A file that is no longer inline was changed: of which maybe a part was written. */
static bool has_changed_large(const struct trial *t)
{
	g_autoptr(GRegex) large = g_regex_new("^.* 10[0-7]{4} ([0-9]{6,}|[7-9][0-9]{4}) .*$", G_REGEX_MULTILINE | G_REGEX_RAW, 0, NULL);
	g_autoptr(GMatchInfo) match = NULL;
	bool found = false;

	for (g_regex_match(large, t->start, 0, &match); g_match_info_matches(match) && !found; g_match_info_next(match, NULL)) {
		g_autofree char *line = g_match_info_fetch(match, 0);

		found = !strstr(t->end, line);
	}
	return found;
}

/* What was exchanged follows the workspace, which has it in the place of the other until that is taken back: see fs/overlay_unsettle.c. */
static void look_at(struct trial *t)
{
	if (t->exchanged || has_changed_large(t))
		return;
	shown = view_describe(t->v, DESCRIBE_MTIME | DESCRIBE_OWNER);
	looked_at = t;
}

static void look_away(void)
{
	looked_at = NULL;
	g_clear_pointer(&shown, g_free);
}

static void be_busy(const char *what);

static void kill_hook(const char *what)
{
	if (++*points == kill_at)
		kill(getpid(), SIGKILL);
	look(what);
	be_busy(what);
}

static int pick(struct trial *t, int n)
{
	return g_rand_int_range(t->rand, 0, n);
}

static char *random_name(struct trial *t)
{
	static const char *const odd[] = { "sp ace",	  "\xff\xfe", "new\nline", "\"quote\"", "-dash", "\xc3\xa9t\xc3\xa9",
					   "back\\slash", "tab\tbed", ":(glob)*",  "\x1b[31m",	" b",	 "trail " };
	int n = pick(t, 40);

	if (n == 39)
		return g_strnfill(200 + pick(t, 56), 'L');
	return n < (int)G_N_ELEMENTS(odd) ? g_strdup_printf("%s%d", odd[n], pick(t, 100)) : g_strdup_printf("n%d", pick(t, 1000));
}

/* Never the same twice: a file that is written back unchanged has new times, and times alone are no change. */
static GString *random_bytes(struct trial *t)
{
	static const int sizes[] = { 0, 1, 20, 300, 5000, 70000, 200000 };
	static int serial;
	int size = sizes[pick(t, G_N_ELEMENTS(sizes))];
	GString *data = g_string_new(NULL);
	bool binary = pick(t, 4) == 0;

	g_string_printf(data, "%d\n", serial++);
	for (int i = 0; i < size; i++)
		g_string_append_c(data, i % 30 == 29 ? '\n' : binary && i % 7 == 0 ? '\0' : 'a' + (i / 7) % 26);
	return data;
}

static mode_t random_mode(struct trial *t)
{
	static const mode_t modes[] = { 0644, 0755, 0600, 0640, 0444, 0777, 04755, 02755, 0700 };

	return modes[pick(t, G_N_ELEMENTS(modes))];
}

static mode_t random_dir_mode(struct trial *t)
{
	static const mode_t modes[] = { 0755, 0700, 01777, 02755, 0750 };

	return modes[pick(t, G_N_ELEMENTS(modes))];
}

/* Only directories can be alike: a file that was exchanged with its like is no change, and has the other's times after a commit. */
static void host_object(struct trial *t, const char *full, GPtrArray *dirs, GPtrArray *files)
{
	g_autofree char *target = NULL;
	GString *data;

	switch (pick(t, t->links ? 13 : 10)) {
	case 0:
	case 1:
		CHECK(t, g_mkdir(full, 0755) == 0 && chmod(full, random_dir_mode(t)) == 0, "mkdir");
		g_ptr_array_add(dirs, g_strdup(full));
		break;
	case 2:
		target = g_strdup_printf("n1/\xc3\xa9%u", dirs->len + files->len);
		CHECK(t, symlink(target, full) == 0, "symlink");
		g_ptr_array_add(files, g_strdup(full));
		break;
	case 3:
		if (!t->fifo++)
			CHECK(t, mkfifo(full, 0640) == 0, "mkfifo");
		break;
	case 4:
	case 10:
	case 11:
	case 12:
		if (files->len && t->links)
			CHECK(t, link(files->pdata[pick(t, files->len)], full) == 0, "link");
		break;
	default:
		data = random_bytes(t);
		CHECK(t,
		      g_file_set_contents_full(full, data->str, data->len, G_FILE_SET_CONTENTS_NONE, 0600, NULL) &&
			      chmod(full, random_mode(t)) == 0,
		      "write");
		g_string_free(data, TRUE);
		g_ptr_array_add(files, g_strdup(full));
	}
}

static void host_random(struct trial *t)
{
	g_autoptr(GPtrArray) dirs = g_ptr_array_new_with_free_func(g_free), files = g_ptr_array_new_with_free_func(g_free);

	g_ptr_array_add(dirs, g_strdup(t->v->workspace));
	for (int i = 5 + pick(t, 25); i > 0; i--) {
		g_autofree char *name = random_name(t), *full = g_build_filename(dirs->pdata[pick(t, dirs->len)], name, NULL);

		if (!g_file_test(full, G_FILE_TEST_EXISTS) && !g_file_test(full, G_FILE_TEST_IS_SYMLINK))
			host_object(t, full, dirs, files);
	}
}

/* What is refused (into a file, over a directory, ...) is no change. */

static void remove_below(struct trial *t, const char *path)
{
	struct attr a;

	if (view_stat(t->v, path, &a) < 0)
		return;
	if (S_ISDIR(a.mode)) {
		g_autoptr(GPtrArray) all = view_paths(t->v);
		g_autofree char *prefix = g_strconcat(path, "/", NULL);

		for (guint i = all->len; i-- > 0;)
			if (g_str_has_prefix(all->pdata[i], prefix) && view_unlink(t->v, all->pdata[i]) < 0)
				view_rmdir(t->v, all->pdata[i]);
		view_rmdir(t->v, path);
	} else {
		view_unlink(t->v, path);
	}
}

static char *new_path(struct trial *t, GPtrArray *all)
{
	for (int i = 0; i < 20 && all->len; i++) {
		const char *dir = all->pdata[pick(t, all->len)];
		g_autofree char *name = random_name(t);
		struct attr a;

		if (view_stat(t->v, dir, &a) == 0 && S_ISDIR(a.mode))
			return g_strconcat(dir, "/", name, NULL);
	}
	return random_name(t);
}

static void write_new(struct trial *t, const char *path, mode_t mode)
{
	GString *data = random_bytes(t);

	if (view_create(t->v, path, S_IFREG | mode) == 0)
		view_write(t->v, path, data->str, data->len, 0);
	g_string_free(data, TRUE);
}

/* Two names of a file that the sandbox made. */
static void link_new(struct trial *t, GPtrArray *all, const char *path)
{
	g_autofree char *other = new_path(t, all);

	write_new(t, path, random_mode(t));
	view_link(t->v, path, other);
}

static void rewrite(struct trial *t, const char *path, bool append)
{
	GString *data = random_bytes(t);
	struct attr a;

	if (view_stat(t->v, path, &a) == 0 && S_ISREG(a.mode)) {
		if (!append)
			view_truncate(t->v, path, 0);
		view_write(t->v, path, data->str, data->len, append ? a.size : 0);
	}
	g_string_free(data, TRUE);
}

static void halve(struct trial *t, const char *path)
{
	struct attr a;

	if (view_stat(t->v, path, &a) == 0 && S_ISREG(a.mode) && a.size > 0)
		view_truncate(t->v, path, a.size / 2);
}

static void change_mode(struct trial *t, const char *path)
{
	struct attr a;

	if (view_stat(t->v, path, &a) == 0 && !S_ISLNK(a.mode))
		view_chmod(t->v, path, S_ISDIR(a.mode) ? random_dir_mode(t) : random_mode(t));
}

static void change_xattr(struct trial *t, const char *path)
{
	struct attr a;

	if (t->xattrs && view_stat(t->v, path, &a) == 0 && (S_ISREG(a.mode) || S_ISDIR(a.mode)))
		view_setxattr(t->v, path, "user.random", pick(t, 2) ? "one" : "two");
}

static void change_one(struct trial *t)
{
	g_autoptr(GPtrArray) all = view_paths(t->v);
	g_autofree char *new = new_path(t, all);
	const char *path = all->len ? all->pdata[pick(t, all->len)] : "none",
		   *other = all->len ? all->pdata[pick(t, all->len)] : "none";

	switch (pick(t, 20)) {
	case 0:
	case 1:
	case 2:
		write_new(t, new, random_mode(t));
		break;
	case 3:
		if (view_mkdir(t->v, new) == 0)
			view_chmod(t->v, new, random_dir_mode(t));
		break;
	case 4:
		view_symlink(t->v, "some/where", new);
		break;
	case 5:
		view_create(t->v, new, S_IFIFO | 0600);
		break;
	case 6:
		if (pick(t, 2))
			link_new(t, all, new);
		else
			view_link(t->v, path, new);
		break;
	case 7:
	case 8:
	case 9:
		rewrite(t, path, pick(t, 2));
		break;
	case 10:
		halve(t, path);
		break;
	case 11:
	case 12:
		change_mode(t, path);
		break;
	case 13:
		change_xattr(t, path);
		break;
	case 14:
		if (geteuid() == 0)
			view_chown(t->v, path, 1000 + pick(t, 3), 1000);
		break;
	case 15:
	case 16:
		remove_below(t, path);
		break;
	case 17:
	case 18:
		if (pick(t, 2))
			t->exchanged |= view_rename(t->v, path, other, RENAME_EXCHANGE) == 0;
		else
			view_rename(t->v, path, other, 0);
		break;
	default:
		view_rename(t->v, path, new, 0);
	}
}

/* tmpfs has user xattrs only since Linux 6.6. */
static bool has_xattrs(struct trial *t)
{
	g_autofree char *full = g_build_filename(t->v->workspace, "probe", NULL), *value = NULL;
	bool has;

	g_file_set_contents(full, "", 0, NULL);
	has = view_setxattr(t->v, "probe", "user.random", "x") == 0 && view_chmod(t->v, "probe", 0600) == 0;
	view_unlink(t->v, "probe");
	g_unlink(full);
	return has;
}

/* One state to read from, as a tool of its own has it */

struct reading {
	struct store *store;
	struct lower *lower;
	struct tree *from, *to;
	GPtrArray *changes;
};

static void reading_open(struct trial *t, struct reading *r)
{
	GError *error = NULL;

	CHECK(t, !t->v->overlay || overlay_flush(t->v->overlay) == 0, "flush");
	r->store = store_open(t->v->store_dir, STORE_READ, &error);
	CHECK(t, r->store, "%s", error->message);
	CHECK(t, lower_open(t->v->workspace, &r->lower) == 0, "lower");
	r->from = tree_open(r->store, r->lower, TREE_LOWER);
	r->to = tree_open(r->store, r->lower, t->epoch);
	changes_between(r->from, r->to, NULL, &r->changes, &error);
	CHECK(t, !error, "%s", error->message);
}

static void reading_close(struct reading *r)
{
	g_ptr_array_unref(r->changes);
	tree_close(r->from);
	tree_close(r->to);
	lower_close(r->lower);
	store_close(r->store);
}

/* The patch */

static void put(const char *data, size_t size, void *user)
{
	g_string_append_len(user, data, size);
}

/* What git knows of a tree, sorted. */
static void describe_git(struct trial *t, struct tree *tree, const struct entry *dir, const char *path, GPtrArray *lines)
{
	g_autoptr(GPtrArray) list = NULL;

	CHECK(t, tree_list(tree, dir, &list) == 0, "list");
	for (guint i = 0; i < list->len; i++) {
		const struct entry *e = list->pdata[i];
		g_autofree char *child = path_join(path, e->name), *target = NULL;
		uint8_t sum[32];

		if (S_ISDIR(e->attr.mode)) {
			describe_git(t, tree, e, child, lines);
		} else if (S_ISLNK(e->attr.mode)) {
			CHECK(t, tree_readlink(tree, e, &target) == 0, "readlink");
			g_ptr_array_add(lines, g_strdup_printf("%s -> %s", child, target));
		} else if (S_ISREG(e->attr.mode)) {
			g_autofree char *hex = NULL;

			CHECK(t, tree_hash(tree, e, sum) == 0, "hash");
			hex = g_compute_checksum_for_data(G_CHECKSUM_MD5, sum, sizeof(sum));
			g_ptr_array_add(lines, g_strdup_printf("%s %c %s", child, e->attr.mode & S_IXUSR ? 'x' : '-', hex));
		}
	}
}

static char *git_text(struct trial *t, struct tree *tree)
{
	g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(entry_t) root = NULL;

	CHECK(t, tree_root(tree, &root) == 0, "root");
	describe_git(t, tree, root, "", lines);
	g_ptr_array_add(lines, NULL);
	return g_strjoinv("\n", (char **)lines->pdata);
}

static void check_patch(struct trial *t, const struct reading *r)
{
	g_autofree char *file = g_build_filename(t->v->dir, "patch", NULL), *copy = g_build_filename(t->v->dir, "copy", NULL);
	g_autofree char *command = g_strdup_printf(
		"cd '%s' && rm -rf copy && cp -a workspace copy && find copy -type p -delete && chmod -R u+w copy && "
		"find copy -mindepth 1 -type d -empty -delete && cd copy && "
		"if [ -s ../patch ]; then GIT_CEILING_DIRECTORIES=.. git apply --allow-empty --whitespace=nowarn ../patch; fi",
		t->v->dir);
	g_autofree char *want = git_text(t, r->to), *got = NULL;
	GString *patch = g_string_new(NULL);
	GError *error = NULL;
	struct lower *lower;
	struct tree *tree;

	diff_patch(r->changes, r->from, r->to, put, patch, &error);
	CHECK(t, !error, "%s", error->message);
	CHECK(t, g_file_set_contents(file, patch->str, patch->len, NULL), "patch");
	CHECK(t, system(command) == 0, "git apply");
	CHECK(t, lower_open(copy, &lower) == 0, "copy");
	tree = tree_open(NULL, lower, TREE_LOWER);
	got = git_text(t, tree);
	CHECK(t, describe_same(want, got), "the patched copy is not the view");
	tree_close(tree);
	lower_close(lower);
	g_string_free(patch, TRUE);
}

/* Commit, undo and recovery, as the tools do them: what can be killed, and the rest, which the view does */

static void check_none(struct trial *t, GPtrArray *conflicts, GError *error)
{
	const struct conflict *first = conflicts ? g_ptr_array_index(conflicts, 0) : NULL;

	CHECK(t, !error, "%s", error->message);
	CHECK(t, !first, "conflict: %s %s", conflict_kind_name(first->kind), first->path);
}

static void apply(struct trial *t, struct reading *r, struct apply_result *ret)
{
	const struct apply_job job = {
		.store = r->store, .lower = r->lower, .to = r->to, .epoch = t->epoch, .changes = r->changes
	};
	GPtrArray *conflicts = NULL;
	GError *error = NULL;

	apply_changes(&job, ret, &conflicts, &error);
	check_none(t, conflicts, error);
}

/* Where nobody serves the view, as a command does that finds no mount; maybe twice. */
static int tell(struct trial *t, const struct apply_result *undone, int (*fn)(const struct apply_result *, void *, GError **), GError **error)
{
	bool served = t->v->overlay;
	int code;

	viewed_open(t->v);
	code = fn(undone, t->v, error);
	if (code == 0 && pick(t, 2))
		code = fn(undone, t->v, error);
	if (!served)
		viewed_close(t->v);
	return code;
}

static int unfollow(const struct apply_result *undone, void *user, GError **error)
{
	return tell(user, undone, view_unfollow, error);
}

static int refollow(const struct apply_result *undone, void *user, GError **error)
{
	return tell(user, undone, view_refollow, error);
}

static void undo(struct trial *t, struct reading *r, struct apply_result *ret)
{
	const struct undo_view view = { .begins = unfollow, .returns = refollow, .user = t };
	GPtrArray *conflicts = NULL;
	GError *error = NULL;

	apply_undo(r->store, r->lower, NULL, &view, ret, &conflicts, &error);
	check_none(t, conflicts, error);
}

static void recover(struct trial *t, struct reading *r, struct apply_result *ret)
{
	const struct undo_view view = { .begins = unfollow, .returns = refollow, .user = t };
	GError *error = NULL;

	apply_recover(r->store, r->lower, &view, ret, &error);
	CHECK(t, !error, "%s", error->message);
}

typedef void (*step_fn)(struct trial *t, struct reading *r, struct apply_result *ret);

static void tell_view(struct trial *t, const struct reading *r, struct apply_result *result)
{
	GError *error = NULL;
	int code = 0;

	viewed_open(t->v);
	if (result->paths && result->paths->len) {
		g_ptr_array_add(result->paths, NULL);
		/* Whoever serves the view may be killed before the answer: then it is told again. */
		for (int times = 1 + pick(t, 2); code == 0 && times > 0; times--) {
			code = result->undone ? overlay_unsettle(t->v->overlay, result->epoch, (const char *const *)result->paths->pdata)
					      : overlay_settle(t->v->overlay, result->epoch, (const char *const *)result->paths->pdata, NULL);
			if (times > 1 && pick(t, 2))
				viewed_reopen(t->v);
		}
		g_ptr_array_set_size(result->paths, result->paths->len - 1);
	}
	CHECK(t, code == 0, "settle: %d", code);
	if (result->id)
		apply_finish(r->store, result->id, &error);
	CHECK(t, !error, "%s", error->message);
	apply_result_clear(result);
}

/* The state to be committed. */
static void pin(struct trial *t)
{
	viewed_open(t->v);
	CHECK(t, overlay_pin(t->v->overlay, &t->epoch) == 0, "pin");
}

static void keep(struct trial *t, const struct reading *r)
{
	g_autoptr(GPtrArray) paths = changes_paths(r->changes);
	int code;

	g_ptr_array_add(paths, NULL);
	code = overlay_keep(t->v->overlay, t->epoch, (const char *const *)paths->pdata);
	CHECK(t, code == 0, "keep: %d", code);
}

/* To its end, in this process. How many points it has. */
static int run(struct trial *t, step_fn fn)
{
	struct apply_result result = { 0 };
	struct reading r;

	pin(t);
	reading_open(t, &r);
	keep(t, &r);
	*points = 0;
	kill_at = 0;
	fn(t, &r, &result);
	tell_view(t, &r, &result);
	reading_close(&r);
	return *points;
}

/* Killed at point @at, without anybody who serves the view. False when it came to its end before. */
static bool run_killed(struct trial *t, step_fn fn, int at)
{
	int status;
	pid_t pid;

	viewed_close(t->v); /* no database is open across the fork */
	pid = fork();
	if (pid == 0) {
		struct apply_result result = { 0 };
		struct reading r;

		reading_open(t, &r);
		*points = 0;
		kill_at = at;
		fn(t, &r, &result);
		_exit(0);
	}
	CHECK(t, waitpid(pid, &status, 0) == pid, "waitpid");
	CHECK(t, WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : status == 0, "the child failed at point %d", at);
	return WIFSIGNALED(status);
}

/* Checking */

/* The digits of an inode number at @p, as a description has it; 0 = there is none. */
static size_t inode_digits(const char *p)
{
	return p[0] == ' ' && p[1] == '#' ? strspn(p + 2, "0123456789") : 0;
}

/*
 * Takes a description with inode numbers, and puts in their place which names are one inode: a number for those that have several. The number
 * of names will not do: a name that was deleted lives on in the store, as a pre-image.
 */
static char *number_inodes(char *text)
{
	g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL); /* 1 = one, else the number plus 1 */
	g_autofree char *taken = text;
	GString *s = g_string_new(NULL);
	guint several = 0, number;

	for (const char *p = text; *p; p++) {
		size_t digits = inode_digits(p);
		char *ino = digits ? g_strndup(p + 2, digits) : NULL;

		number = ino ? GPOINTER_TO_UINT(g_hash_table_lookup(names, ino)) : 0;
		if (ino)
			g_hash_table_insert(names, ino, GUINT_TO_POINTER(number == 0 ? 1 : number > 1 ? number : ++several + 1));
	}
	for (const char *p = text; *p;) {
		size_t digits = inode_digits(p);
		g_autofree char *ino = digits ? g_strndup(p + 2, digits) : NULL;

		if (!ino) {
			g_string_append_c(s, *p++);
			continue;
		}
		p += 2 + digits;
		number = GPOINTER_TO_UINT(g_hash_table_lookup(names, ino));
		if (number > 1)
			g_string_append_printf(s, " #%u", number - 1);
	}
	return g_string_free(s, FALSE);
}

static char *describe_disk(struct trial *t)
{
	return number_inodes(disk_describe(t->v->workspace, DESCRIBE_INO | DESCRIBE_MTIME | DESCRIBE_OWNER));
}

static char *describe_view(struct trial *t)
{
	return number_inodes(view_describe(t->v, DESCRIBE_INO | DESCRIBE_MTIME | DESCRIBE_OWNER));
}

/* True for the end. */
static bool at_end(struct trial *t, const char *what)
{
	g_autofree char *now = describe_disk(t);

	if (strcmp(now, t->end) == 0)
		return true;
	if (strcmp(t->start, now) != 0)
		describe_same(t->end, now); /* says where */
	CHECK(t, describe_same(t->start, now), "%s: between", what);
	return false;
}

static void check_state(struct trial *t, bool end, const char *what)
{
	g_autofree char *view = describe_view(t), *pending = NULL;

	CHECK(t, describe_same(t->end, view), "%s: the view", what);
	CHECK(t, at_end(t, what) == end, "%s: the workspace is at the %s", what, end ? "start" : "end");
	pending = view_changes(t->v);
	CHECK(t, strcmp(pending, end ? "" : t->pending) == 0, "%s: pending: %s, not %s", what, pending, end ? "" : t->pending);
}

/* From the one side, @fn is killed at @at, and the recovery at points of its own. Ends at the start again. */
static void kill_one(struct trial *t, step_fn fn, int at, int recovery_points)
{
	struct apply_result result = { 0 };
	struct reading r;
	bool end;

	pin(t);
	reading_open(t, &r);
	keep(t, &r);
	reading_close(&r);
	/* It can have a few points less than the last time. */
	total_kills += run_killed(t, fn, at);
	while (pick(t, 2) && run_killed(t, recover, 1 + pick(t, recovery_points)))
		total_kills++;
	reading_open(t, &r);
	recover(t, &r, &result);
	tell_view(t, &r, &result);
	reading_close(&r);
	end = at_end(t, "killed and recovered");
	check_state(t, end, "killed and recovered");
}

static void go_to(struct trial *t, bool end)
{
	if (at_end(t, "on the way") != end)
		run(t, end ? apply : undo);
	check_state(t, end, end ? "committed" : "undone");
}

static void kill_some(struct trial *t, step_fn fn, int all, int kills)
{
	bool every = t->seed % EXHAUSTIVE == 0;

	for (int i = 0; i < (every ? all : MIN(kills, all)); i++) {
		go_to(t, fn == undo);
		kill_one(t, fn, every ? i + 1 : 1 + pick(t, all), all);
	}
}

/* The trial */

static void trial_init(struct trial *t, guint32 seed)
{
	struct reading r;

	*t = (struct trial){ .v = viewed_new(NULL), .rand = g_rand_new_with_seed(seed), .seed = seed, .links = seed % 2 == 0 };
	host_random(t);
	viewed_open(t->v);
	t->xattrs = has_xattrs(t);
	for (int i = 1 + pick(t, 30); i > 0; i--)
		change_one(t);
	/* A file with several names shows its changes under those that were looked up. */
	t->end = describe_view(t);
	t->start = describe_disk(t);
	t->pending = view_changes(t->v);
	pin(t);
	reading_open(t, &r);
	check_patch(t, &r);
	reading_close(&r);
}

static void trial_clear(struct trial *t)
{
	viewed_free(t->v);
	g_rand_free(t->rand);
	g_free(t->start);
	g_free(t->end);
	g_free(t->pending);
}

/* In parts */

/* Some of what is pending, as a list for view_commit(); NULL = there is none, or a name that such a list can't have. */
static char *pick_pending(struct trial *t)
{
	struct committing *c = view_commit_begin(t->v, NULL);
	g_autoptr(GPtrArray) paths = view_commit_paths(c);
	GString *list = g_string_new(NULL);

	for (guint i = 0; i < paths->len; i++)
		if (!strpbrk(paths->pdata[i], " *?[") && pick(t, 3) == 0)
			g_string_append_printf(list, "%s%s", list->len ? " " : "", (char *)paths->pdata[i]);
	view_commit_free(c);
	return g_string_free(list, list->len == 0);
}

static void check_view(struct trial *t, const char *want, const char *what, const char *paths)
{
	g_autofree char *got = view_describe(t->v, DESCRIBE_MTIME | DESCRIBE_OWNER);
	g_autofree char *fresh = fresh_describe(t->v, DESCRIBE_MTIME | DESCRIBE_OWNER);

	CHECK(t, describe_same(want, got), "%s: the view: %s", what, paths);
	CHECK(t, describe_same(want, fresh), "%s: another view: %s", what, paths);
	CHECK(t, view_unreachable_rows(t->v) == 0, "%s: lost rows: %s", what, paths);
}

/*
 * What is refused does nothing: a part may need what was not chosen, and the xattrs of a directory are a conflict when an earlier part made
 * something in it (snapshot/conflict.h).
 */
static bool commit_part(struct trial *t, const char *view, const char *paths)
{
	g_autofree char *before = describe_disk(t), *after = NULL;
	bool done = view_commit(t->v, paths);

	after = describe_disk(t);
	CHECK(t, done || strcmp(before, after) == 0, "refused, but written: %s", paths);
	t->to_undo += strcmp(before, after) != 0;
	check_view(t, view, "a part", paths ? paths : "the rest");
	parts += done;
	parts_refused += !done;
	return done;
}

static void commit_parts(struct trial *t)
{
	g_autofree char *view = view_describe(t->v, DESCRIBE_MTIME | DESCRIBE_OWNER), *left = NULL;

	for (int i = 0; i < PARTS; i++) {
		g_autofree char *paths = pick_pending(t);

		if (paths)
			commit_part(t, view, paths);
	}
	if (!commit_part(t, view, NULL))
		return;
	left = view_changes(t->v);
	CHECK(t, !*left, "pending: %s", left);
}

/* What was shown of a fifo is the sandbox's own by now, so a rename may be a deletion and an addition: what is pending is told by a commit. */
static void undo_parts(struct trial *t)
{
	g_autofree char *view = view_describe(t->v, DESCRIBE_MTIME | DESCRIBE_OWNER), *disk = NULL, *end = NULL;

	for (; t->to_undo > 0; t->to_undo--) {
		view_undo(t->v);
		check_view(t, view, "undo of a part", "");
	}
	disk = describe_disk(t);
	CHECK(t, describe_same(t->start, disk), "the parts undone");
	if (!commit_part(t, view, NULL))
		return;
	end = describe_disk(t);
	CHECK(t, describe_same(t->end, end), "committed again");
}

static void trial_parts(guint32 seed)
{
	struct trial t;

	trial_init(&t, seed);
	commit_parts(&t);
	undo_parts(&t);
	trial_clear(&t);
}

/* While a commit runs */

static struct trial *busy; /* NULL = not now */

static void change_or_remove(struct trial *t)
{
	g_autoptr(GPtrArray) all = view_paths(t->v);

	if (all->len && pick(t, 2))
		remove_below(t, all->pdata[pick(t, all->len)]);
	else
		change_one(t);
	if (pick(t, 4) == 0)
		kernel_forget_all(t->v);
}

static void be_busy(const char *what)
{
	if (busy && strcmp(what, "step done") == 0 && pick(busy, 3) == 0)
		change_or_remove(busy);
}

/* The view is used between all that a commit does; it shows what was done to it, and no more. */
static void trial_meanwhile(guint32 seed)
{
	g_autofree char *before = NULL;
	struct committing *c;
	struct trial t;
	bool done;

	trial_init(&t, seed);
	c = view_commit_begin(t.v, NULL);
	for (int i = pick(&t, 6); i > 0; i--)
		change_or_remove(&t);
	busy = &t;
	done = view_commit_end(t.v, c);
	busy = NULL;
	CHECK(&t, view_unreachable_rows(t.v) == 0, "lost rows after a commit that was %s", done ? "done" : "refused");
	before = view_describe(t.v, DESCRIBE_MTIME | DESCRIBE_OWNER);
	check_view(&t, before, "used meanwhile", "");
	trial_clear(&t);
}

static void trial(guint32 seed)
{
	struct trial t;
	int commit_points, undo_points;

	trial_init(&t, seed);
	if (*t.pending) {
		commit_points = run(&t, apply);
		check_state(&t, true, "committed");
		look_at(&t);
		undo_points = run(&t, undo);
		look_away();
		check_state(&t, false, "undone");
		total_points += commit_points + undo_points;
		kill_some(&t, apply, commit_points, COMMIT_KILLS);
		kill_some(&t, undo, undo_points, UNDO_KILLS);
	}
	trial_clear(&t);
}

int main(int argc, char **argv)
{
	int sets = argc > 1 ? atoi(argv[1]) : 300;
	guint32 first = (argc > 2 ? atoi(argv[2]) : 1) + (geteuid() == 0 ? 0 : 150);

	umask(022);
	points = mmap(NULL, sizeof(*points), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 0);
	boundary_hook = kill_hook;
	for (int i = 0; i < sets; i++) {
		trial_parts(first + i);
		trial_meanwhile(first + i);
		trial(first + i);
	}
	printf("%d random change sets, %u kills at their %u points, %u looks at undos, %u parts, %u of them refused\n", sets, total_kills,
	       total_points, looks, parts + parts_refused, parts_refused);
	return 0;
}
