/* SPDX-License-Identifier: MIT */
/*
 * test-store - the index: lifetimes of rows, transactions, the schema; and what lies under it: the workspace, trees, sets of xattrs
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "layered.h"
#include "snapshot/schema.h"
#include "snapshot/store_private.h"
#include "snapshot/tree.h"
#include "snapshot/xattr.h"

typedef struct layered layered_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(layered_t, layered_free)

static char *store_at(struct layered *l)
{
	return g_build_filename(l->dir, "store", NULL);
}

static void reopen(struct layered *l)
{
	g_autofree char *dir = store_at(l);
	g_autoptr(GError) error = NULL;

	store_close(l->store);
	l->store = store_open(dir, STORE_WRITE, &error);
	assert_null(error);
}

static int64_t snapshot(struct layered *l, const char *name)
{
	int64_t epoch;

	assert_int_equal(store_snapshot_create(l->store, name, &epoch), 0);
	return epoch;
}

static void put_node(struct layered *l, uint64_t ino, uint32_t mode)
{
	struct node_row n;

	assert_int_equal(store_node_get(l->store, EPOCH_LIVE, ino, &n), 0);
	n.ino = ino;
	n.attr.mode = mode;
	n.attr.nlink = 1;
	assert_int_equal(store_node_put(l->store, &n), 0);
	node_row_clear(&n);
}

static uint32_t mode_at(struct layered *l, int64_t epoch, uint64_t ino)
{
	struct node_row n;
	uint32_t mode;

	assert_int_equal(store_node_get(l->store, epoch, ino, &n), 0);
	mode = n.ino ? n.attr.mode : 0;
	node_row_clear(&n);
	return mode;
}

static void put_name(struct layered *l, const char *name, uint64_t ino)
{
	struct name_row n;

	assert_int_equal(store_name_get(l->store, EPOCH_LIVE, ROOT_INO, name, &n), 0);
	if (!n.born)
		n = (struct name_row){ .parent = ROOT_INO, .name = g_strdup(name) };
	n.ino = ino;
	assert_int_equal(store_name_put(l->store, &n), 0);
	name_row_clear(&n);
}

/* -1 = no row. */
static int64_t name_at(struct layered *l, int64_t epoch, const char *name)
{
	struct name_row n;
	int64_t ino;

	assert_int_equal(store_name_get(l->store, epoch, ROOT_INO, name, &n), 0);
	ino = n.born ? (int64_t)n.ino : -1;
	name_row_clear(&n);
	return ino;
}

/* Rows */

static void test_versions(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	int64_t one, two, three;

	(void)state;
	put_node(l, 10, 1);
	put_name(l, "a", 10);
	put_node(l, 10, 2);
	one = snapshot(l, "one");
	put_node(l, 10, 3);
	put_name(l, "a", 0);
	put_name(l, "b", 10);
	two = snapshot(l, "two");
	assert_int_equal(store_node_drop(l->store, 10), 0);
	assert_int_equal(store_name_drop(l->store, ROOT_INO, "a"), 0);
	assert_int_equal(store_name_drop(l->store, ROOT_INO, "b"), 0);
	three = snapshot(l, "three");
	put_node(l, 10, 4);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mode_at(l, one - 1, 10), 0);
		assert_int_equal(mode_at(l, one, 10), 2);
		assert_int_equal(mode_at(l, two, 10), 3);
		assert_int_equal(mode_at(l, three, 10), 0);
		assert_int_equal(mode_at(l, EPOCH_LIVE, 10), 4);
		assert_int_equal(name_at(l, one, "a"), 10);
		assert_int_equal(name_at(l, one, "b"), -1);
		assert_int_equal(name_at(l, two, "a"), 0);
		assert_int_equal(name_at(l, two, "b"), 10);
		assert_int_equal(name_at(l, three, "b"), -1);
		reopen(l);
	}
}

/* A row that came and went within one epoch leaves nothing. */
static void test_drop_in_the_epoch_of_birth(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	struct db_query *q;

	(void)state;
	put_node(l, 10, 1);
	put_name(l, "a", 10);
	assert_int_equal(store_node_drop(l->store, 10), 0);
	assert_int_equal(store_name_drop(l->store, ROOT_INO, "a"), 0);
	q = db_query(store_db(l->store), "SELECT (SELECT count(*) FROM node) + (SELECT count(*) FROM name)");
	assert_int_equal(db_step(q), 1);
	assert_int_equal(db_int(q, 0), 0);
	db_done(q);
}

struct changed {
	GPtrArray *names;
	GArray *nodes;
};

static void add_name(uint64_t parent, const char *name, void *user)
{
	assert_int_equal(parent, ROOT_INO);
	g_ptr_array_add(((struct changed *)user)->names, g_strdup(name));
}

static void add_node(uint64_t ino, void *user)
{
	g_array_append_val(((struct changed *)user)->nodes, ino);
}

static void test_restore(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	struct changed c = { g_ptr_array_new_with_free_func(g_free), g_array_new(FALSE, FALSE, sizeof(uint64_t)) };
	int64_t epoch, before;

	(void)state;
	put_node(l, 10, 1);
	put_node(l, 11, 1);
	put_name(l, "same", 11);
	put_name(l, "changed", 10);
	put_name(l, "gone", 10);
	epoch = snapshot(l, "s");
	put_node(l, 10, 2);
	put_name(l, "changed", 12);
	put_name(l, "new", 12);
	put_node(l, 12, 5);
	assert_int_equal(store_name_drop(l->store, ROOT_INO, "gone"), 0);
	before = snapshot(l, "@before");
	assert_int_equal(store_rows_since(l->store, epoch, add_name, add_node, &c), 0);
	assert_int_equal(c.names->len, 3);
	assert_int_equal(c.nodes->len, 2);
	for (guint i = 0; i < c.names->len; i++)
		assert_int_equal(store_name_restore(l->store, epoch, ROOT_INO, g_ptr_array_index(c.names, i)), 0);
	for (guint i = 0; i < c.nodes->len; i++)
		assert_int_equal(store_node_restore(l->store, epoch, g_array_index(c.nodes, uint64_t, i)), 0);
	assert_int_equal(mode_at(l, EPOCH_LIVE, 10), 1);
	assert_int_equal(mode_at(l, EPOCH_LIVE, 12), 0);
	assert_int_equal(name_at(l, EPOCH_LIVE, "changed"), 10);
	assert_int_equal(name_at(l, EPOCH_LIVE, "gone"), 10);
	assert_int_equal(name_at(l, EPOCH_LIVE, "new"), -1);
	assert_int_equal(name_at(l, EPOCH_LIVE, "same"), 11);
	/* What was dropped is still there to go back to. */
	assert_int_equal(mode_at(l, before, 10), 2);
	assert_int_equal(name_at(l, before, "new"), 12);
	g_ptr_array_unref(c.names);
	g_array_unref(c.nodes);
}

/* Snapshots cost the same however much there is: a row, whose size is that of its name. */
static void test_snapshots(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autoptr(GPtrArray) list = NULL;
	int64_t epoch, one;

	(void)state;
	one = snapshot(l, "one");
	assert_int_equal(snapshot(l, "two"), one + 1);
	assert_int_equal(store_snapshot_create(l->store, "one", &epoch), -EEXIST);
	assert_int_equal(store_snapshot_find(l->store, "one", &epoch), 0);
	assert_int_equal(epoch, one);
	assert_int_equal(store_snapshot_find(l->store, "three", &epoch), -ENOENT);
	assert_int_equal(store_snapshot_list(l->store, &list), 0);
	assert_int_equal(list->len, 2);
	assert_string_equal(((struct snapshot *)g_ptr_array_index(list, 0))->name, "one");
	assert_int_equal(store_snapshot_delete(l->store, "one"), 0);
	assert_int_equal(store_snapshot_delete(l->store, "one"), -ENOENT);
	assert_int_equal(store_epoch(l->store), one + 2);
	reopen(l);
	assert_int_equal(store_epoch(l->store), one + 2);
}

static void test_abort(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	int64_t epoch = store_epoch(l->store), taken;

	(void)state;
	put_node(l, 10, 1);
	assert_int_equal(store_begin(l->store), 0);
	put_node(l, 10, 2);
	put_name(l, "a", 10);
	assert_int_equal(store_snapshot_create(l->store, "s", &taken), 0);
	store_abort(l->store);
	assert_int_equal(store_epoch(l->store), epoch);
	assert_int_equal(mode_at(l, EPOCH_LIVE, 10), 1);
	assert_int_equal(name_at(l, EPOCH_LIVE, "a"), -1);
	assert_int_equal(store_snapshot_find(l->store, "s", &taken), -ENOENT);
	store_abort(l->store);
	assert_int_equal(store_begin(l->store), 0);
	assert_int_equal(store_commit(l->store), 0);
}

static void test_values_come_back(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autoptr(GBytes) set = xattrs_with(NULL, "user.a", "1", 1);
	struct origin o = { .path = (char *)"not\xffutf8/\n", .seen = 7, .print = { .dev = 1, .ino = UINT64_MAX, .btime = -5 } },
		      back;
	struct node_row n = { .ino = UINT64_C(1) << 63,
			      .flags = 7,
			      .content = 3,
			      .origin = 4,
			      .target = (char *)"\xfe->",
			      .xattrs = set },
			got;
	struct name_row name = { .parent = 9, .name = (char *)"\xff\n", .ino = UINT64_MAX - 1, .covers = 5 }, name_back;

	(void)state;
	n.attr = (struct attr){ S_IFLNK | 0777, UINT32_MAX, 2, 3, UINT64_MAX, INT64_MAX, 0, -1, INT64_MIN, INT64_MAX };
	assert_int_equal(store_origin_add(l->store, &o), 0);
	assert_int_equal(store_node_put(l->store, &n), 0);
	assert_int_equal(store_name_put(l->store, &name), 0);
	reopen(l);
	assert_int_equal(store_origin_get(l->store, o.id, &back), 0);
	assert_string_equal(back.path, o.path);
	assert_true(back.print.ino == UINT64_MAX && back.print.btime == -5 && back.seen == 7 && !back.has_sha256);
	assert_int_equal(store_origin_get(l->store, o.id + 1, &back), -ENOENT);
	origin_clear(&back);
	assert_int_equal(store_node_get(l->store, EPOCH_LIVE, n.ino, &got), 0);
	assert_true(got.ino == n.ino && got.flags == 7 && got.content == 3 && got.origin == 4);
	assert_memory_equal(&got.attr, &n.attr, sizeof(n.attr));
	assert_string_equal(got.target, n.target);
	assert_true(xattrs_equal(got.xattrs, set));
	node_row_clear(&got);
	assert_int_equal(store_name_get(l->store, EPOCH_LIVE, 9, name.name, &name_back), 0);
	assert_true(name_back.ino == name.ino && name_back.covers == 5);
	name_row_clear(&name_back);
}

/* Only the numbers that the store gives are counted up: those of the workspace may be any. */
static void test_new_numbers(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	uint64_t first = store_new_ino(l->store);

	(void)state;
	assert_true(first >= FIRST_OWN_INO);
	put_node(l, first, 1);
	put_node(l, 12345, 1);
	reopen(l);
	assert_int_equal(store_new_ino(l->store), first + 1);
}

static bool has_content(struct layered *l, int64_t id)
{
	struct db_query *q = db_query(store_db(l->store), "SELECT 1 FROM content WHERE id = ?");
	int r;

	db_bind_int(q, 0, id);
	r = db_step(q);
	assert_true(r >= 0);
	if (r > 0)
		db_done(q);
	return r > 0;
}

/* Unlinked nodes that only descriptors held end with the process. */
static void test_orphans_go(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	struct node_row n = { .ino = 20, .attr = { .mode = S_IFREG }, .content = 30 };

	(void)state;
	assert_int_equal(db_exec(store_db(l->store), "INSERT INTO content (id, epoch, kind, size, data) VALUES (30, 1, 0, 1, 'x'), (31, 0, 0, 1, 'x'), (32, 1, 0, 1, 'x')"), 0);
	assert_int_equal(store_node_put(l->store, &n), 0);
	n.ino = 22;
	n.content = 31;
	assert_int_equal(store_node_put(l->store, &n), 0);
	put_node(l, 21, S_IFREG);
	reopen(l);
	assert_int_equal(mode_at(l, EPOCH_LIVE, 20), 0);
	assert_int_equal(mode_at(l, EPOCH_LIVE, 22), 0);
	assert_int_equal(mode_at(l, EPOCH_LIVE, 21), S_IFREG);
	/* A content of an older epoch may be a snapshot's. */
	assert_false(has_content(l, 30));
	assert_true(has_content(l, 31));
	assert_true(has_content(l, 32));
}

/* Opening */

static void test_locks(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *dir = store_at(l), *none = g_build_filename(l->dir, "none", NULL);
	g_autoptr(GError) error = NULL;
	struct store *reader;

	(void)state;
	assert_null(store_open(dir, STORE_WRITE, &error));
	assert_true(g_error_matches(error, STORE_ERROR, STORE_ERROR_BUSY));
	g_clear_error(&error);
	assert_null(store_create(dir, "/w", &error));
	assert_true(g_error_matches(error, STORE_ERROR, STORE_ERROR_EXISTS));
	g_clear_error(&error);
	assert_null(store_open(none, STORE_WRITE, &error));
	assert_true(g_error_matches(error, STORE_ERROR, STORE_ERROR_NOT_FOUND));
	reader = store_open(dir, STORE_READ, NULL);
	assert_non_null(reader);
	put_node(l, 10, 1);
	assert_int_equal(store_begin(reader), -EROFS);
	store_close(reader);
}

static void test_newer_schema_is_refused(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *dir = store_at(l), *text = g_strdup_printf("PRAGMA user_version = %d", SCHEMA_VERSION + 1);

	(void)state;
	assert_int_equal(db_exec(store_db(l->store), text), 0);
	g_clear_pointer(&l->store, store_close);
	for (int mode = STORE_READ; mode <= STORE_WRITE; mode++) {
		g_autoptr(GError) error = NULL;

		assert_null(store_open(dir, mode, &error));
		assert_true(g_error_matches(error, STORE_ERROR, STORE_ERROR_SCHEMA));
		assert_non_null(strstr(error->message, dir));
	}
}

/* An empty database file, as a crash before the first transaction leaves it, becomes one of today. */
static void test_migration_from_nothing(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *dir = store_at(l), *command = g_strdup_printf("rm -f '%s'/store.db*; : >'%s'/store.db", dir, dir);
	g_autoptr(GError) error = NULL;
	int64_t version;

	(void)state;
	g_clear_pointer(&l->store, store_close);
	assert_int_equal(system(command), 0);
	l->store = store_open(dir, STORE_WRITE, &error);
	assert_null(error);
	assert_int_equal(schema_check(store_db(l->store), &version), 0);
	assert_int_equal(version, SCHEMA_VERSION);
	put_node(l, 10, 1);
}

static void test_damage_is_an_error(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *dir = store_at(l), *path = g_build_filename(dir, "store.db", NULL);
	g_autofree char *command = g_strdup_printf("rm -f '%s'/store.db-*", dir);
	g_autoptr(GError) error = NULL;

	(void)state;
	g_clear_pointer(&l->store, store_close);
	assert_int_equal(system(command), 0);
	assert_true(g_file_set_contents(path, "this is no database, however one looks at it", -1, NULL));
	assert_null(store_open(dir, STORE_WRITE, &error));
	assert_non_null(error);
}

/* The workspace */

static void test_lower(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *secret = g_build_filename(l->dir, "secret", NULL);
	g_autoptr(GPtrArray) names = NULL;
	g_autofree char *target = NULL;
	struct fingerprint a, b;

	(void)state;
	host_text(l, "d/f", "text");
	host_symlink(l, "link", "../secret");
	host_symlink(l, "dir", "..");
	assert_true(g_file_set_contents(secret, "x", -1, NULL));
	assert_int_equal(lower_stat(l->lower, "d/f", &a), 0);
	assert_int_equal(a.attr.size, 4);
	assert_int_equal(lower_stat(l->lower, "", &b), 0);
	assert_true(S_ISDIR(b.attr.mode));
	/* Never through a symlink, never out. */
	assert_true(lower_open_file(l->lower, "link", O_RDONLY) < 0);
	assert_true(lower_stat(l->lower, "dir/secret", &b) < 0);
	assert_true(lower_open_file(l->lower, "../secret", O_RDONLY) < 0);
	assert_true(lower_open_file(l->lower, secret, O_RDONLY) < 0);
	assert_int_equal(lower_stat(l->lower, "link", &b), 0);
	assert_true(S_ISLNK(b.attr.mode));
	assert_int_equal(lower_readlink(l->lower, "link", &target), 0);
	assert_string_equal(target, "../secret");
	g_clear_pointer(&target, g_free);
	assert_int_equal(lower_readlink(l->lower, "d/f", &target), -EINVAL);
	assert_int_equal(lower_stat(l->lower, "none", &b), -ENOENT);
	assert_int_equal(lower_stat(l->lower, "d/f/x", &b), -ENOTDIR);
	assert_int_equal(lower_list(l->lower, "", &names), 0);
	assert_int_equal(names->len, 3);
	assert_int_equal(lower_stat(l->lower, "d/f", &b), 0);
	assert_true(fingerprint_same(&a, &b));
	host_text(l, "d/f", "TEXT");
	assert_int_equal(lower_stat(l->lower, "d/f", &b), 0);
	assert_false(fingerprint_same(&a, &b));
}

/* 40 times 200 bytes: twice what the kernel takes as one path. */
static void test_lower_paths_beyond_the_limit(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autoptr(GString) path = g_string_new(NULL);
	g_autoptr(GPtrArray) names = NULL;
	struct fingerprint print;
	char part[201];
	int fd = open(l->workspace, O_PATH | O_DIRECTORY), file;

	(void)state;
	memset(part, 'p', 200);
	part[200] = '\0';
	for (int i = 0; i < 40; i++) {
		int next;

		assert_int_equal(mkdirat(fd, part, 0755), 0);
		next = openat(fd, part, O_PATH | O_DIRECTORY);
		close(fd);
		fd = next;
		g_string_append_printf(path, "%s%s", i ? "/" : "", part);
	}
	file = openat(fd, "f", O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(file, "abc", 3), 3);
	close(file);
	close(fd);
	assert_int_equal(lower_list(l->lower, path->str, &names), 0);
	assert_int_equal(names->len, 1);
	g_string_append(path, "/f");
	assert_int_equal(lower_stat(l->lower, path->str, &print), 0);
	assert_int_equal(print.attr.size, 3);
}

static void test_lower_leaves_no_times(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	g_autofree char *f = g_build_filename(l->workspace, "d", "f", NULL), *d = g_build_filename(l->workspace, "d", NULL);
	g_autoptr(GPtrArray) names = NULL;
	struct stat st;
	char buf[8];
	int fd;

	(void)state;
	host_text(l, "d/f", "text");
	assert_int_equal(utimensat(AT_FDCWD, f, old, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, d, old, 0), 0);
	assert_int_equal(lower_list(l->lower, "d", &names), 0);
	fd = lower_open_file(l->lower, "d/f", O_RDONLY);
	assert_int_equal(read(fd, buf, sizeof(buf)), 4);
	close(fd);
	assert_int_equal(stat(f, &st), 0);
	assert_int_equal(st.st_atim.tv_sec, 1000);
	assert_int_equal(stat(d, &st), 0);
	assert_int_equal(st.st_atim.tv_sec, 1000);
}

/* Trees */

static char *list_text(struct tree *t, const char *path)
{
	g_autoptr(entry_t) dir = NULL;
	g_autoptr(GPtrArray) list = NULL;
	GString *s = g_string_new(NULL);

	assert_int_equal(tree_lookup_path(t, path, &dir), 0);
	assert_non_null(dir);
	assert_int_equal(tree_list(t, dir, &list), 0);
	for (guint i = 0; i < list->len; i++)
		g_string_append_printf(s, "%s%s", i ? " " : "", ((struct entry *)g_ptr_array_index(list, i))->name);
	return g_string_free(s, FALSE);
}

static void check_tree(struct layered *l, int64_t epoch, const char *path, const char *want)
{
	g_autoptr(tree_t) t = tree_open(l->store, l->lower, epoch);
	g_autofree char *got = list_text(t, path);

	assert_string_equal(got, want);
}

static void test_trees(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autoptr(tree_t) live = NULL;
	g_autoptr(entry_t) e = NULL;
	int64_t epoch;

	(void)state;
	host_text(l, "a", "1");
	host_text(l, "d/f", "2");
	host_text(l, "d/g", "3");
	view_remove(l, "a");
	view_text(l, "n", "4");
	view_rename(l, "d", "e");
	epoch = snapshot(l, "s");
	view_remove(l, "e/f");
	view_mkdir(l, "a");
	check_tree(l, TREE_LOWER, "", "a d");
	check_tree(l, TREE_LOWER, "d", "f g");
	check_tree(l, 0, "", "a d");
	check_tree(l, epoch, "", "e n");
	check_tree(l, epoch, "e", "f g");
	check_tree(l, EPOCH_LIVE, "", "a e n");
	check_tree(l, EPOCH_LIVE, "e", "g");
	check_tree(l, EPOCH_LIVE, "a", "");
	live = tree_open(l->store, l->lower, EPOCH_LIVE);
	assert_int_equal(tree_lookup_path(live, "a/f", &e), 0);
	assert_null(e);
	assert_int_equal(tree_lookup_path(live, "n/x", &e), 0);
	assert_null(e);
}

/* What the owner takes away is not there; what was made below it still is. */
static void test_tree_without_its_workspace(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *command = g_strdup_printf("rm -r '%s'/d", l->workspace);

	(void)state;
	host_text(l, "d/f", "2");
	view_chmod(l, "d/f", 0600);
	view_text(l, "d/own", "own");
	assert_int_equal(system(command), 0);
	check_tree(l, EPOCH_LIVE, "", "d");
	check_tree(l, EPOCH_LIVE, "d", "own");
	host_text(l, "d", "a file");
	check_tree(l, EPOCH_LIVE, "d", "own");
}

/* Sets of extended attributes */

static void test_xattr_sets(void **state)
{
	g_autoptr(GBytes) a = xattrs_with(NULL, "user.b", "2", 1), b = xattrs_with(a, "user.a", "", 0),
			  c = xattrs_with(b, "user.b", "22", 2);
	g_autoptr(GBytes) other = xattrs_with(NULL, "user.a", "", 0), same = xattrs_with(other, "user.b", "22", 2);
	g_autoptr(GBytes) less = xattrs_with(c, "user.b", NULL, 0), none = xattrs_with(less, "user.a", NULL, 0);
	g_autoptr(GByteArray) names = xattrs_names(c);
	const void *value;
	size_t size;

	(void)state;
	assert_true(xattrs_get(c, "user.b", &value, &size));
	assert_int_equal(size, 2);
	assert_memory_equal(value, "22", 2);
	assert_true(xattrs_get(c, "user.a", &value, &size));
	assert_int_equal(size, 0);
	assert_false(xattrs_get(c, "user", &value, &size));
	assert_int_equal(names->len, 14);
	assert_memory_equal(names->data, "user.a\0user.b", 14);
	assert_true(xattrs_equal(c, same));
	assert_false(xattrs_equal(b, c));
	assert_null(none);
	assert_true(xattrs_equal(NULL, none));
	assert_false(xattrs_equal(NULL, a));
	assert_null(xattrs_with(NULL, "user.none", NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_drop_in_the_epoch_of_birth),
		cmocka_unit_test(test_restore),
		cmocka_unit_test(test_snapshots),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_values_come_back),
		cmocka_unit_test(test_new_numbers),
		cmocka_unit_test(test_orphans_go),
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_newer_schema_is_refused),
		cmocka_unit_test(test_migration_from_nothing),
		cmocka_unit_test(test_damage_is_an_error),
		cmocka_unit_test(test_lower),
		cmocka_unit_test(test_lower_paths_beyond_the_limit),
		cmocka_unit_test(test_lower_leaves_no_times),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_tree_without_its_workspace),
		cmocka_unit_test(test_xattr_sets),
	};

	umask(022);
	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
