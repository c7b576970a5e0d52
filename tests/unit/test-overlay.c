/* SPDX-License-Identifier: MIT */
/*
 * test-overlay - the view without a mount: names, attributes and contents over a workspace, the rules, and what the owner does meanwhile
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "faults.h"
#include "view_checks.h"

static int exists(struct viewed *v, const char *path)
{
	struct attr a;

	return view_stat(v, path, &a);
}

/* Names */

static void test_whiteouts(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "f", "f");
	host_text(v, "d/g", "g");
	assert_int_equal(view_unlink(v, "f"), 0);
	assert_int_equal(exists(v, "f"), -ENOENT);
	assert_int_equal(view_unlink(v, "f"), -ENOENT);
	check_list(v, "", "d");
	assert_int_equal(view_text(v, "f", "new"), 0);
	check_text(v, "f", "new");
	assert_int_equal(view_unlink(v, "f"), 0);
	view_check(v);
	assert_int_equal(exists(v, "f"), -ENOENT);
	/* What never was in the workspace leaves nothing. */
	assert_int_equal(view_text(v, "own", "own"), 0);
	assert_int_equal(view_unlink(v, "own"), 0);
	kernel_forget_all(v);
	viewed_reopen(v);
	assert_int_equal(view_rows(v, "name"), 1);
	assert_int_equal(view_rows(v, "content"), 0);
	check_changes(v, "D f\n");
}

static void test_made_again_directory_is_empty(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "d/g", "g");
	assert_int_equal(view_rmdir(v, "d"), -ENOTEMPTY);
	assert_int_equal(view_unlink(v, "d/g"), 0);
	assert_int_equal(view_rmdir(v, "d"), 0);
	assert_int_equal(view_mkdir(v, "d"), 0);
	check_list(v, "d", "");
	viewed_reopen(v);
	check_list(v, "d", "");
	assert_int_equal(exists(v, "d/g"), -ENOENT);
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	check_list(v, "", "e");
	view_check(v);
}

static void test_attributes_copy_no_data(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *value = NULL;
	struct attr a;

	(void)state;
	host_text(v, "f", "bytes");
	assert_int_equal(view_chmod(v, "f", 0600), 0);
	assert_int_equal(view_utimens(v, "f", 12345), 0);
	assert_int_equal(view_setxattr(v, "f", "user.t", "x"), 0);
	assert_int_equal(view_rename(v, "f", "g", 0), 0);
	assert_int_equal(view_link(v, "g", "h"), 0);
	assert_int_equal(view_rows(v, "content"), 0);
	viewed_reopen(v);
	assert_int_equal(view_stat(v, "g", &a), 0);
	assert_int_equal(a.mode, S_IFREG | 0600);
	assert_int_equal(a.mtime, 12345);
	assert_int_equal(a.nlink, 2);
	assert_int_equal(view_getxattr(v, "h", "user.t", &value), 0);
	assert_string_equal(value, "x");
	check_text(v, "h", "bytes");
}

static void test_rename_of_a_directory_is_few_rows(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t rows;

	(void)state;
	host_run(v, "mkdir big small; for i in $(seq 500); do echo $i >big/$i; done; echo 1 >small/1");
	assert_int_equal(view_rename(v, "small", "s", 0), 0);
	rows = view_rows(v, "name") + view_rows(v, "node");
	assert_int_equal(view_rename(v, "big", "b", 0), 0);
	assert_true(view_rows(v, "name") + view_rows(v, "node") <= 2 * rows);
	check_text(v, "b/77", "77\n");
	view_check(v);
}

static void test_hard_links_stay_one(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "a", "old");
	host_run(v, "ln a b; mkdir d; ln a d/c");
	assert_int_equal(view_ino(v, "a"), view_ino(v, "b"));
	assert_int_equal(view_text(v, "a", "new"), 0);
	check_text(v, "b", "new");
	check_text(v, "d/c", "new");
	assert_int_equal(links_of(v, "b"), 3);
	viewed_reopen(v);
	check_text(v, "d/c", "new");
	assert_int_equal(view_ino(v, "a"), view_ino(v, "d/c"));
	view_check(v);
}

/* The only name that was looked up goes, and the kernel forgets it: the bytes are those of the other names. */
static void test_hard_link_unlinked_before_the_others_are_seen(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "a", "old");
	host_run(v, "ln a b; ln a c");
	assert_int_equal(view_text(v, "a", "new"), 0);
	assert_int_equal(view_unlink(v, "a"), 0);
	kernel_forget_all(v);
	check_text(v, "b", "new");
	assert_int_equal(links_of(v, "c"), 2);
	assert_int_equal(view_unlink(v, "b"), 0);
	kernel_forget_all(v);
	viewed_reopen(v);
	check_text(v, "c", "new");
	assert_int_equal(links_of(v, "c"), 1);
	assert_int_equal(view_unlink(v, "c"), 0);
	view_check(v);
	kernel_forget_all(v);
	assert_int_equal(view_rows(v, "content"), 0);
}

/* Its owner takes away the name by which the view knows, or follows, a file: whatever asks for it next goes by another one. */
static void test_hard_link_survives_the_end_of_the_other(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	g_autoptr(viewed_t) v = viewed_new(NULL);
	struct attr attr;
	uint64_t ino;

	(void)state;
	host_text(v, "a", "linked\n");
	host_run(v, "ln a b; ln a c; ln a d; echo y >y; ln y z");
	ino = view_ino(v, "z");
	assert_int_equal(view_ino(v, "y"), ino);
	host_run(v, "rm z");
	assert_int_equal(view_chmod(v, "y", 0640), 0);
	assert_int_equal(view_stat(v, "z", &attr), -ENOENT);
	for (size_t i = 0; i + 1 < G_N_ELEMENTS(names); i++) {
		g_autofree char *text = NULL, *after = NULL, *gone = g_strconcat("rm ", names[i], NULL);

		/* The one that was looked up last is the first that is known. */
		for (size_t k = G_N_ELEMENTS(names); k-- > i;)
			ino = view_ino(v, names[k]);
		host_run(v, gone);
		assert_int_equal(view_read_ino(v, ino, &text), 0);
		assert_string_equal(text, "linked\n");
		assert_int_equal(view_stat(v, "d", &attr), 0);
		assert_int_equal(view_read(v, "d", &after), 0);
		assert_string_equal(after, "linked\n");
		assert_int_equal(view_ino(v, "d"), ino);
		/* From now on it has a row. */
		assert_int_equal(view_chmod(v, "d", 0640), 0);
		assert_int_equal(view_stat(v, "d", &attr), 0);
		assert_int_equal(attr.mode & 07777, 0640);
	}
	assert_int_equal(view_stat(v, "a", &attr), -ENOENT);
	view_check(v);
}

static void test_hard_link_survives_the_commit_of_the_other(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "a", "bytes");
	host_run(v, "ln a b; ln a c");
	assert_int_equal(view_unlink(v, "a"), 0);
	check_text(v, "b", "bytes");
	assert_true(view_commit(v, NULL));
	check_text(v, "b", "bytes");
	check_text(v, "c", "bytes");
	check_list(v, "", "b c");
	view_check(v);
}

static void test_numbers_are_stable(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	uint64_t f, d, own;

	(void)state;
	host_text(v, "f", "f");
	host_text(v, "d/g", "g");
	f = view_ino(v, "f");
	d = view_ino(v, "d");
	assert_int_equal(view_text(v, "f", "changed"), 0);
	assert_int_equal(view_text(v, "d/own", "own"), 0);
	own = view_ino(v, "d/own");
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	assert_int_equal(view_ino(v, "f"), f);
	assert_int_equal(view_ino(v, "e"), d);
	viewed_reopen(v);
	assert_int_equal(view_ino(v, "f"), f);
	assert_int_equal(view_ino(v, "e"), d);
	assert_int_equal(view_ino(v, "e/own"), own);
	/* Nor is one given twice. */
	assert_int_equal(view_text(v, "later", ""), 0);
	assert_true(view_ino(v, "later") > own);
}

struct pages {
	GPtrArray *names;
	unsigned int left;
	uint64_t offset;
};

static bool page_one(const char *name, const struct overlay_entry *entry, uint64_t next_offset, void *user)
{
	struct pages *p = user;

	(void)entry;
	if (p->left == 0)
		return false;
	p->left--;
	p->offset = next_offset;
	g_ptr_array_add(p->names, g_strdup(name));
	return true;
}

/* Names come and go between two pages, and the view is opened anew: every name that stayed is given once. */
static void test_cookies_are_stable(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
	struct pages p = { .names = g_ptr_array_new_with_free_func(g_free) };
	guint before;

	(void)state;
	host_run(v, "mkdir d; for i in $(seq 100); do echo >d/$i; done");
	for (int i = 0;; i++) {
		g_autofree char *gone = g_strdup_printf("d/%d", i + 1), *more = g_strdup_printf("d/new%d", i);
		uint64_t d = view_ino(v, "d");

		before = p.names->len;
		p.left = 7;
		assert_int_equal(overlay_readdir(v->overlay, d, p.offset, i % 2, page_one, &p), 0);
		if (p.names->len == before)
			break;
		if (i < 10) {
			assert_int_equal(view_unlink(v, gone), 0);
			assert_int_equal(view_text(v, more, ""), 0);
		}
		if (i % 5 == 4)
			viewed_reopen(v);
	}
	for (guint i = 0; i < p.names->len; i++)
		assert_true(g_hash_table_add(seen, g_ptr_array_index(p.names, i)));
	for (int i = 11; i <= 100; i++) {
		g_autofree char *name = g_strdup_printf("%d", i);

		assert_true(g_hash_table_contains(seen, name));
	}
	g_ptr_array_unref(p.names);
}

static void test_unlinked_but_open(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *text = NULL, *own_text = NULL;
	struct overlay_entry e;
	uint64_t f, own;
	guint64 nodes;

	(void)state;
	host_text(v, "f", "lower");
	f = view_ino(v, "f");
	assert_int_equal(view_text(v, "own", "upper"), 0);
	own = view_ino(v, "own");
	assert_int_equal(view_unlink(v, "f"), 0);
	assert_int_equal(view_unlink(v, "own"), 0);
	assert_int_equal(view_read_ino(v, f, &text), 0);
	assert_string_equal(text, "lower");
	assert_int_equal(overlay_write(v->overlay, f, "X", 1, 0, &somebody), 0);
	assert_int_equal(overlay_write(v->overlay, own, "X", 1, 0, &somebody), 0);
	g_clear_pointer(&text, g_free);
	assert_int_equal(view_read_ino(v, f, &text), 0);
	assert_string_equal(text, "Xower");
	assert_int_equal(view_read_ino(v, own, &own_text), 0);
	assert_string_equal(own_text, "Xpper");
	assert_int_equal(overlay_getattr(v->overlay, f, false, &e), 0);
	assert_int_equal(e.attr.nlink, 0);
	kernel_forget_all(v);
	assert_int_equal(overlay_getattr(v->overlay, own, false, &e), -ESTALE);
	{
		struct overlay_counters c;

		overlay_counters(v->overlay, &c);
		nodes = c.nodes;
	}
	assert_int_equal(nodes, 1);
	viewed_reopen(v);
	assert_int_equal(view_rows(v, "content"), 0);
}

/* Their rows wait for each other, but not for ever, and not for the next epoch. */
static void test_orphans_wait_for_each_other(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t epoch;

	(void)state;
	for (int i = 0; i < 200; i++) {
		g_autofree char *name = g_strdup_printf("f%d", i);

		assert_int_equal(view_text(v, name, "text"), 0);
		assert_int_equal(view_unlink(v, name), 0);
	}
	kernel_forget_all(v);
	assert_in_range(view_rows(v, "content"), 1, 63);
	assert_int_equal(overlay_snapshot(v->overlay, "s", &epoch), 0);
	assert_int_equal(view_rows(v, "content"), 0);
	assert_int_equal(view_text(v, "f", "text"), 0);
	assert_int_equal(view_unlink(v, "f"), 0);
	kernel_forget_all(v);
	assert_int_equal(view_rows(v, "content"), 1);
	assert_int_equal(overlay_pin(v->overlay, &epoch), 0);
	assert_int_equal(view_rows(v, "content"), 0);
}

static void test_forgotten_nodes_are_freed(void **state)
{
	g_autoptr(viewed_t) v = viewed_new("write = **\nhide = /h/**");
	struct overlay_counters c;

	(void)state;
	host_run(v, "mkdir h d; for i in $(seq 50); do echo >h/$i; echo >d/$i; done");
	for (int i = 1; i <= 50; i++) {
		g_autofree char *hidden = g_strdup_printf("h/%d", i), *shown = g_strdup_printf("d/%d", i),
				*own = g_strdup_printf("d/own%d", i);

		assert_int_equal(exists(v, hidden), -ENOENT);
		assert_int_equal(exists(v, shown), 0);
		assert_int_equal(view_text(v, own, "x"), 0);
	}
	g_free(view_describe(v, 0));
	kernel_forget_all(v);
	overlay_counters(v->overlay, &c);
	assert_true(c.nodes <= 3);
}

/* Renaming */

static void test_rename_flags(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "a", "A");
	host_text(v, "b", "B");
	host_text(v, "d/x", "x");
	host_text(v, "e/y", "y");
	host_dir(v, "empty");
	assert_int_equal(view_rename(v, "a", "b", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(view_rename(v, "a", "n", RENAME_EXCHANGE), -ENOENT);
	assert_int_equal(view_rename(v, "a", "b", RENAME_NOREPLACE | RENAME_EXCHANGE), -EINVAL);
	assert_int_equal(view_rename(v, "a", "b", RENAME_WHITEOUT), -EINVAL);
	assert_int_equal(view_rename(v, "a", "d", 0), -EISDIR);
	assert_int_equal(view_rename(v, "d", "a", 0), -ENOTDIR);
	assert_int_equal(view_rename(v, "d", "e", 0), -ENOTEMPTY);
	assert_int_equal(view_rename(v, "d", "d/z", 0), -EINVAL);
	assert_int_equal(view_rename(v, "d/x", "d", RENAME_EXCHANGE), -EINVAL);
	assert_int_equal(view_rename(v, "d/x", "d", 0), -ENOTEMPTY);
	assert_int_equal(view_rename(v, "none", "x", 0), -ENOENT);
	assert_int_equal(view_rename(v, "a", "a", 0), 0);
	assert_int_equal(view_rename(v, "a", "b", RENAME_EXCHANGE), 0);
	check_text(v, "a", "B");
	check_text(v, "b", "A");
	assert_int_equal(view_rename(v, "d", "a", RENAME_EXCHANGE), 0);
	check_text(v, "a/x", "x");
	check_text(v, "d", "B");
	assert_int_equal(view_rename(v, "a", "empty", 0), 0);
	check_text(v, "empty/x", "x");
	view_check(v);
	check_list(v, "", "b d e empty");
	/* There and back again leaves no change. */
	assert_int_equal(view_rename(v, "e", "tmp", 0), 0);
	assert_int_equal(view_rename(v, "tmp", "e", 0), 0);
	view_check(v);
	view_rollback(v, 0, NULL);
	view_check(v);
	check_changes(v, "");
}

static void test_names_and_paths_to_the_limit(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	char longest[257];
	uint64_t dir = ROOT_INO;
	struct overlay_entry e;
	int fd;

	(void)state;
	memset(longest, 'n', 255);
	longest[255] = '\0';
	assert_int_equal(view_text(v, longest, "x"), 0);
	longest[255] = 'n';
	longest[256] = '\0';
	assert_int_equal(view_text(v, longest, "x"), -ENAMETOOLONG);
	longest[200] = '\0';
	/* In the workspace: 30 times 200 bytes, by relative steps. */
	fd = open(v->workspace, O_PATH | O_DIRECTORY);
	for (int i = 0; i < 30; i++) {
		int next;

		assert_int_equal(mkdirat(fd, longest, 0755), 0);
		next = openat(fd, longest, O_PATH | O_DIRECTORY);
		close(fd);
		fd = next;
	}
	close(openat(fd, "f", O_CREAT | O_WRONLY, 0644));
	close(fd);
	for (int i = 0; i < 30; i++) {
		assert_int_equal(overlay_lookup(v->overlay, dir, longest, &e), 0);
		assert_int_not_equal(e.ino, 0);
		dir = e.ino;
	}
	assert_int_equal(overlay_lookup(v->overlay, dir, "f", &e), 0);
	assert_int_equal(overlay_write(v->overlay, e.ino, "D", 1, 0, &somebody), 0);
	assert_int_equal(overlay_unlink(v->overlay, dir, "f"), 0);
	assert_int_equal(overlay_mknod(v->overlay, dir, "g", S_IFREG | 0644, 0, &somebody, &e), 0);
	for (int i = 0; i < 30; i++) {
		assert_int_equal(overlay_mkdir(v->overlay, dir, longest, 0755, &somebody, &e), 0);
		dir = e.ino;
	}
	assert_int_equal(overlay_lookup(v->overlay, ROOT_INO, "..", &e), -EINVAL);
	assert_int_equal(overlay_lookup(v->overlay, ROOT_INO, "a/b", &e), -EINVAL);
	view_check(v);
}

static void test_large_offsets(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	struct attr a;
	char c[2];

	(void)state;
	host_text(v, "f", "x");
	assert_int_equal(view_write(v, "f", "end", 3, UINT64_C(5) << 30), 0);
	assert_int_equal(view_stat(v, "f", &a), 0);
	assert_int_equal(a.size, (UINT64_C(5) << 30) + 3);
	assert_true(a.blocks < 1000);
	assert_int_equal(overlay_read(v->overlay, view_ino(v, "f"), c, 2, (UINT64_C(5) << 30) + 1), 2);
	assert_memory_equal(c, "nd", 2);
	assert_int_equal(view_write(v, "f", "x", 1, INT64_MAX), -EFBIG);
	assert_int_equal(view_truncate(v, "f", UINT64_MAX), -EFBIG);
	assert_int_equal(overlay_lseek(v->overlay, view_ino(v, "f"), 4096 * 16, SEEK_DATA) > 4096 * 16, true);
}

/* The rules */

#define RULES "write = **\nread = /ro\ndeny = **/*.key\nhide = **/*.hid"

static void test_denied(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(RULES);
	struct overlay_entry e;
	GByteArray *names;
	GBytes *value;
	struct attr a;
	char buf[8];
	uint64_t ino;

	(void)state;
	host_text(v, "d/s.key", "secret");
	host_run(v, "setfattr -n user.t -v secret d/s.key 2>/dev/null || true");
	ino = view_ino(v, "d/s.key");
	assert_int_equal(view_stat(v, "d/s.key", &a), 0);
	assert_int_equal(a.mode, S_IFREG);
	assert_int_equal(a.size + a.blocks + a.mtime + a.ctime, 0);
	assert_int_equal(overlay_getattr(v->overlay, ino, true, &e), -EACCES);
	assert_int_equal(overlay_read(v->overlay, ino, buf, 8, 0), -EACCES);
	assert_int_equal(overlay_write(v->overlay, ino, buf, 1, 0, &somebody), -EACCES);
	assert_int_equal(overlay_lseek(v->overlay, ino, 0, SEEK_DATA), -EACCES);
	assert_int_equal(overlay_fallocate(v->overlay, ino, 0, 0, 1), -EACCES);
	assert_int_equal(overlay_getxattr(v->overlay, ino, "user.t", &value), -EACCES);
	assert_int_equal(overlay_listxattr(v->overlay, ino, &names), -EACCES);
	assert_int_equal(view_setxattr(v, "d/s.key", "user.t", "x"), -EACCES);
	assert_int_equal(view_setxattr(v, "d/s.key", "user.t", NULL), -EACCES);
	assert_int_equal(view_chmod(v, "d/s.key", 0644), -EACCES);
	assert_int_equal(view_truncate(v, "d/s.key", 0), -EACCES);
	assert_int_equal(view_unlink(v, "d/s.key"), -EACCES);
	assert_int_equal(view_rename(v, "d/s.key", "plain", 0), -EACCES);
	assert_int_equal(view_link(v, "d/s.key", "plain"), -EACCES);
	assert_int_equal(view_text(v, "plain", "x"), 0);
	assert_int_equal(view_rename(v, "plain", "d/s.key", 0), -EACCES);
	assert_int_equal(view_rename(v, "plain", "d/s.key", RENAME_EXCHANGE), -EACCES);
	assert_int_equal(view_rename(v, "plain", "new.key", 0), -EACCES);
	assert_int_equal(view_link(v, "plain", "new.key"), -EACCES);
	assert_int_equal(view_create(v, "new.key", 0644), -EACCES);
	assert_int_equal(view_mkdir(v, "new.key"), -EACCES);
	assert_int_equal(view_symlink(v, "plain", "new.key"), -EACCES);
	check_list(v, "d", "s.key");
}

static void test_hidden(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(RULES);

	(void)state;
	host_text(v, "d/s.hid", "secret");
	assert_int_equal(exists(v, "d/s.hid"), -ENOENT);
	check_list(v, "d", "");
	assert_int_equal(view_unlink(v, "d/s.hid"), -ENOENT);
	assert_int_equal(view_rename(v, "d/s.hid", "plain", 0), -ENOENT);
	assert_int_equal(view_rmdir(v, "d"), -ENOTEMPTY);
	/* Whether it is there makes no difference. */
	assert_int_equal(view_create(v, "d/s.hid", 0644), -EACCES);
	assert_int_equal(view_create(v, "d/t.hid", 0644), -EACCES);
	assert_int_equal(view_mkdir(v, "d/s.hid"), view_mkdir(v, "d/t.hid"));
	assert_int_equal(view_symlink(v, "x", "d/s.hid"), view_symlink(v, "x", "d/t.hid"));
	assert_int_equal(view_text(v, "plain", "x"), 0);
	for (unsigned int flags = 0; flags < 3; flags++)
		assert_int_equal(view_rename(v, "plain", "d/s.hid", flags), view_rename(v, "plain", "d/t.hid", flags));
	assert_int_equal(view_link(v, "plain", "d/s.hid"), view_link(v, "plain", "d/t.hid"));
}

static void test_read_only(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(RULES);
	struct attr a;

	(void)state;
	host_text(v, "ro/f", "text");
	host_dir(v, "ro/d");
	check_text(v, "ro/f", "text");
	assert_int_equal(view_stat(v, "ro/f", &a), 0);
	assert_int_equal(a.mode & 0222, 0);
	assert_int_equal(view_write(v, "ro/f", "x", 1, 0), -EROFS);
	assert_int_equal(view_truncate(v, "ro/f", 0), -EROFS);
	assert_int_equal(view_chmod(v, "ro/f", 0777), -EROFS);
	assert_int_equal(view_setxattr(v, "ro/f", "user.t", "x"), -EROFS);
	assert_int_equal(view_unlink(v, "ro/f"), -EROFS);
	assert_int_equal(view_rmdir(v, "ro/d"), -EROFS);
	assert_int_equal(view_create(v, "ro/n", 0644), -EROFS);
	assert_int_equal(view_mkdir(v, "ro/n"), -EROFS);
	assert_int_equal(view_rename(v, "ro/f", "f", 0), -EROFS);
	assert_int_equal(view_rename(v, "ro", "rw", 0), -EROFS);
	assert_int_equal(view_link(v, "ro/f", "f"), -EROFS);
	assert_int_equal(view_text(v, "plain", "x"), 0);
	assert_int_equal(view_rename(v, "plain", "ro/f", 0), -EROFS);
	assert_int_equal(view_rename(v, "plain", "ro/n", 0), -EROFS);
	assert_int_equal(view_rows(v, "name"), 1);
}

static void test_verdict_sticks(void **state)
{
	g_autoptr(viewed_t) v = viewed_new("write = **\ndeny = /conf/key\ndeny = /x/free\nread = /conf/ro");
	g_autofree char *text = NULL;

	(void)state;
	host_text(v, "conf/key", "secret");
	host_text(v, "conf/ro", "ro");
	host_text(v, "conf/free", "free");
	assert_int_equal(exists(v, "conf/free"), 0);
	assert_int_equal(exists(v, "conf/key"), 0);
	assert_int_equal(view_rename(v, "conf", "x", 0), 0);
	assert_int_equal(view_read(v, "x/key", &text), -EACCES);
	assert_int_equal(view_write(v, "x/ro", "x", 1, 0), -EROFS);
	/* At its new place another rule holds. */
	assert_int_equal(view_read(v, "x/free", &text), -EACCES);
	viewed_reopen(v);
	assert_int_equal(view_read(v, "x/key", &text), -EACCES);
	assert_int_equal(view_write(v, "x/ro", "x", 1, 0), -EROFS);
	assert_int_equal(view_read(v, "x/free", &text), -EACCES);
	assert_int_equal(view_mkdir(v, "deep"), 0);
	assert_int_equal(view_rename(v, "x", "deep/y", 0), 0);
	assert_int_equal(view_read(v, "deep/y/key", &text), -EACCES);
	check_text(v, "deep/y/free", "free");
	view_rollback(v, 0, NULL);
	check_text(v, "conf/free", "free");
	assert_int_equal(view_read(v, "conf/key", &text), -EACCES);
}

static void test_way_through_a_denied_directory(void **state)
{
	g_autoptr(viewed_t) v = viewed_new("write = **\ndeny = /vault\nwrite = /vault/pub");
	g_autofree char *names = NULL;
	struct attr a;

	(void)state;
	host_text(v, "vault/pub/f", "open");
	host_text(v, "vault/secret", "secret");
	check_text(v, "vault/pub/f", "open");
	assert_int_equal(view_list(v, "vault", &names), -EACCES);
	/* What is there can't be told from what is not. */
	assert_int_equal(view_stat(v, "vault/secret", &a), -EACCES);
	assert_int_equal(view_stat(v, "vault/nothing", &a), -EACCES);
	assert_int_equal(view_create(v, "vault/new", 0644), -EACCES);
	assert_int_equal(view_text(v, "vault/pub/g", "g"), 0);
	view_check(v);
}

/* The owner */

static void test_owner_removes_what_the_sandbox_touched(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *fresh = NULL;

	(void)state;
	host_text(v, "d/f", "f");
	host_text(v, "d/g", "g");
	assert_int_equal(view_chmod(v, "d/f", 0600), 0);
	assert_int_equal(view_text(v, "d/own", "own"), 0);
	host_run(v, "rm -r d");
	check_list(v, "", "d");
	check_list(v, "d", "own");
	check_text(v, "d/own", "own");
	assert_int_equal(exists(v, "d/f"), -ENOENT);
	/* Over the row that shows nothing: its node ends. */
	assert_int_equal(view_text(v, "d/f", "again"), 0);
	kernel_forget_all(v);
	assert_int_equal(view_rows(v, "node"), 3); /* d, d/own and the new d/f */
	check_list(v, "d", "f own");
	view_check(v);
	host_text(v, "d", "a file now");
	check_list(v, "d", "f own");
	host_run(v, "rm d; ln -s / d");
	check_list(v, "d", "f own");
	assert_int_equal(exists(v, "d/etc"), -ENOENT);
	view_check(v);
}

/* The owner puts each of two directories into the other, one after the other. What is known of the first move must not make a ring. */
static void test_owner_turns_directories_inside_out(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	uint64_t a, b;
	int r;

	(void)state;
	host_text(v, "a/f", "f");
	host_dir(v, "b");
	a = kernel_walk(v, "a", &r);
	b = kernel_walk(v, "b", &r);
	host_run(v, "mv a b/");
	assert_int_equal(kernel_walk(v, "b/a", &r), a);
	host_run(v, "mv b/a . && mv b a/");
	assert_int_equal(kernel_walk(v, "a/b", &r), b);
	assert_int_equal(view_rename(v, "a", "z", 0), 0);
	check_text(v, "z/f", "f");
	assert_int_equal(view_ino(v, "z/b"), b);
	assert_int_equal(view_ino(v, "z/b/a"), 0);
}

static void test_owner_removes_a_directory_in_use(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	struct overlay_entry e;
	uint64_t d;

	(void)state;
	host_text(v, "d/f", "f");
	d = view_ino(v, "d");
	assert_int_not_equal(view_ino(v, "d/f"), 0);
	host_run(v, "rm -r d");
	assert_int_equal(exists(v, "d/f"), -ENOENT);
	assert_true(overlay_mknod(v->overlay, d, "n", S_IFREG | 0644, 0, &somebody, &e) < 0);
	assert_true(overlay_getattr(v->overlay, d, false, &e) < 0);
	host_text(v, "d/f", "another");
	check_text(v, "d/f", "another");
	/* Where the file system gives a number again, the new object has another one while the kernel knows the old. */
	kernel_forget_all(v);
	view_check(v);
}

static bool count_name(const char *name, const struct overlay_entry *entry, uint64_t next_offset, void *count)
{
	(void)name;
	(void)entry;
	(void)next_offset;
	++*(int *)count;
	return true;
}

/* Who is still in a directory whose owner put another in its place changes nothing: no way would lead to it. */
static void test_owner_replaces_a_directory_in_use(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	struct overlay_entry e;
	uint64_t d, f;
	int names = 0;

	(void)state;
	host_text(v, "d/f", "f");
	host_text(v, "d/g", "g");
	d = view_ino(v, "d");
	f = view_ino(v, "d/f");
	host_run(v, "mkdir s; mv d ../old; mkdir d; cp ../old/g d/f; cp ../old/g d/g");
	check_text(v, "d/f", "g");
	assert_int_not_equal(view_ino(v, "d"), d);
	assert_int_equal(overlay_lookup(v->overlay, d, "g", &e), 0);
	assert_int_equal(e.ino, 0);
	assert_int_equal(overlay_readdir(v->overlay, d, 0, false, count_name, &names), 0);
	assert_int_equal(names, 2); /* . and .. */
	assert_int_equal(overlay_mkdir(v->overlay, d, "n", 0755, &somebody, &e), -ENOENT);
	assert_int_equal(overlay_unlink(v->overlay, d, "f"), -ENOENT);
	assert_int_equal(overlay_rename(v->overlay, d, "f", ROOT_INO, "f", 0), -ENOENT);
	assert_int_equal(overlay_rename(v->overlay, ROOT_INO, "s", d, "s", 0), -ENOENT);
	assert_int_equal(overlay_link(v->overlay, f, ROOT_INO, "f", &e), -ENOENT);
	assert_int_equal(view_rows(v, "name"), 0);
	/* What was in it is held by whoever has it open, and by no name. */
	assert_int_equal(overlay_write(v->overlay, f, "x", 1, 0, &somebody), 0);
	assert_int_equal(view_rows(v, "name"), 0);
	check_text(v, "d/f", "g");
	check_list(v, "d", "f g");
	kernel_forget_all(v);
	assert_int_equal(view_rows(v, "node"), 0);
	view_check(v);
}

static void test_rmdir_of_what_shows_nothing(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "d/f", "f");
	assert_int_equal(view_chmod(v, "d/f", 0600), 0);
	host_run(v, "rm d/f; mkdir d/f");
	check_list(v, "d", "");
	assert_int_equal(view_rmdir(v, "d"), 0);
	check_list(v, "", "");
	view_check(v);
}

/* Failures */

static int change_everything(struct viewed *v, int step)
{
	switch (step) {
	case 0:
		return view_chmod(v, "d/f", 0600);
	case 1:
		return view_write(v, "d/f", "x", 1, 3);
	case 2:
		return view_rename(v, "d", "e", 0);
	case 3:
		return view_link(v, "e/f", "link");
	case 4:
		return view_unlink(v, "e/g");
	case 5:
		return view_rename(v, "link", "h1", RENAME_EXCHANGE);
	case 6:
		return view_mkdir(v, "e/n");
	case 7:
		return view_setxattr(v, "h2", "user.t", "x");
	case 8:
		return view_truncate(v, "big", 70000);
	case 9:
		return view_rmdir(v, "e/n");
	case 10:
		return view_rename(v, "big", "h2", 0);
	default:
		return 1;
	}
}

/* Every write to the store fails once: nothing is left of the call, in memory or on the disk. */
static void test_failures_leave_nothing(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	const unsigned int all = DESCRIBE_INO | DESCRIBE_TIMES | DESCRIBE_LINKS;
	int points = 0;

	(void)state;
	host_text(v, "d/f", "f");
	host_text(v, "d/g", "g");
	host_run(v, "head -c 300000 /dev/zero >big; echo h >h1; ln h1 h2");
	for (int step = 0;; step++) {
		for (unsigned int n = 1;; n++) {
			g_autofree char *before = NULL, *after = NULL, *fresh = NULL;
			bool fired;
			int r;

			g_free(view_describe(v, 0));
			before = view_describe(v, all);
			fault_arm(n, -EIO);
			r = change_everything(v, step);
			fired = fault_disarm();
			if (r > 0) {
				assert_true(points > 50);
				return;
			}
			if (r == 0)
				break;
			assert_true(fired);
			points++;
			after = view_describe(v, all);
			fresh = fresh_describe(v, all);
			assert_true(describe_same(before, after));
			assert_true(describe_same(before, fresh));
		}
	}
}

/* Every file of the store at its limit, as on a full disk: what fails is refused, what is there stays, deleting goes on. */
static void test_no_room(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	struct rlimit before, limit;
	int r = 0, made = 0;

	(void)state;
	host_text(v, "a", "lower");
	host_run(v, "ln a b");
	assert_int_equal(view_text(v, "a", "upper"), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 2 * 1024 * 1024;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	while (r == 0 && made < 20000) {
		g_autofree char *name = g_strdup_printf("f%d", made++);

		r = view_text(v, name, "some text in a file that is small");
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(r < 0);
	check_text(v, "a", "upper");
	view_check(v);
	assert_int_equal(view_text(v, "after", "x"), 0);
	view_check(v);
}

static unsigned int objects(struct viewed *v)
{
	g_autofree char *path = g_build_filename(store_dir(overlay_store(v->overlay)), "objects", NULL);
	GDir *dir = g_dir_open(path, 0, NULL);
	unsigned int n = 0;

	while (g_dir_read_name(dir))
		n++;
	g_dir_close(dir);
	return n;
}

/* A large file that could not be made takes no room, before the next start either. */
static void test_failures_leave_no_objects(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *data = g_malloc0(300000);
	struct store_usage u;
	bool fired = true;

	(void)state;
	viewed_open(v);
	assert_int_equal(store_set_limit(overlay_store(v->overlay), 1 << 30), 0);
	for (unsigned int n = 1; fired; n++) {
		g_autofree char *name = g_strdup_printf("f%u", n);

		assert_int_equal(view_create(v, name, 0644), 0);
		fault_arm(n, -ENOSPC);
		view_write(v, name, data, 300000, 0);
		fired = fault_disarm();
		if (fired)
			assert_int_equal(objects(v), 0);
	}
	assert_int_equal(objects(v), 1);
	store_usage(overlay_store(v->overlay), &u);
	assert_true(u.used >= 300000 && u.used < 600000);
}

/* The second name of a changed inode is looked up when nothing can be written: it is shown all the same. */
static void test_lookup_needs_no_room(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "a", "old");
	host_run(v, "ln a b");
	assert_int_equal(view_text(v, "a", "new"), 0);
	for (unsigned int n = 1; n < 4; n++) {
		fault_arm(n, -ENOSPC);
		check_text(v, "b", "new");
		fault_disarm();
		viewed_reopen(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whiteouts),
		cmocka_unit_test(test_made_again_directory_is_empty),
		cmocka_unit_test(test_attributes_copy_no_data),
		cmocka_unit_test(test_rename_of_a_directory_is_few_rows),
		cmocka_unit_test(test_hard_links_stay_one),
		cmocka_unit_test(test_hard_link_survives_the_end_of_the_other),
		cmocka_unit_test(test_hard_link_unlinked_before_the_others_are_seen),
		cmocka_unit_test(test_hard_link_survives_the_commit_of_the_other),
		cmocka_unit_test(test_numbers_are_stable),
		cmocka_unit_test(test_cookies_are_stable),
		cmocka_unit_test(test_unlinked_but_open),
		cmocka_unit_test(test_orphans_wait_for_each_other),
		cmocka_unit_test(test_forgotten_nodes_are_freed),
		cmocka_unit_test(test_rename_flags),
		cmocka_unit_test(test_names_and_paths_to_the_limit),
		cmocka_unit_test(test_large_offsets),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_verdict_sticks),
		cmocka_unit_test(test_way_through_a_denied_directory),
		cmocka_unit_test(test_owner_removes_what_the_sandbox_touched),
		cmocka_unit_test(test_owner_removes_a_directory_in_use),
		cmocka_unit_test(test_owner_replaces_a_directory_in_use),
		cmocka_unit_test(test_owner_turns_directories_inside_out),
		cmocka_unit_test(test_rmdir_of_what_shows_nothing),
		cmocka_unit_test(test_failures_leave_nothing),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_failures_leave_no_objects),
		cmocka_unit_test(test_lookup_needs_no_room),
	};

	umask(022);
	return cmocka_run_group_tests_name("overlay", tests, NULL, NULL);
}
