/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include <sys/xattr.h>

#include "layered.h"
#include "snapshot/pathspec.h"
#include "snapshot/xattr.h"

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

static void expect(struct layered *l, int64_t from, int64_t to, const struct change_options *options, const char *want)
{
	g_autoptr(GPtrArray) changes = layered_changes(l, from, to, options);
	g_autofree char *got = changes_text(changes);

	assert_string_equal(got, want);
}

/* The whole sandbox against its workspace, with and without hashes: both must find the same. */
static void expect_live(struct layered *l, const char *want)
{
	const struct change_options quick = { .no_hash = true };

	expect(l, TREE_LOWER, EPOCH_LIVE, NULL, want);
	expect(l, TREE_LOWER, EPOCH_LIVE, &quick, want);
}

static void test_nothing_changed(void **state)
{
	host_text(*state, "a/b", "x\n");
	expect_live(*state, "");
}

static void test_kinds(void **state)
{
	struct layered *l = *state;

	host_text(l, "d/mod", "one\n");
	host_text(l, "d/same-size", "one\n");
	host_text(l, "d/del", "x\n");
	host_text(l, "d/mode", "x\n");
	host_text(l, "d/owner", "x\n");
	host_text(l, "d/attr", "x\n");
	host_text(l, "d/type", "x\n");
	host_symlink(l, "d/link", "old");
	view_text(l, "d/mod", "one\ntwo\n");
	view_text(l, "d/same-size", "two\n");
	view_remove(l, "d/del");
	view_chmod(l, "d/mode", 0600);
	view_chown(l, "d/owner", 4711);
	view_xattr(l, "d/attr", "user.a", "1");
	view_remove(l, "d/type");
	view_symlink(l, "d/type", "mod");
	view_remove(l, "d/link");
	view_symlink(l, "d/link", "new");
	view_text(l, "d/new", "x\n");
	view_mkdir(l, "empty");
	view_mkfifo(l, "fifo");
	view_chmod(l, "", 0700);
	expect_live(l, "D d/del\nP \nX d/attr\nM d/link\nM d/mod\nP d/mode\nA d/new\nP d/owner\nM d/same-size\nT "
		       "d/type\nA empty\nA fifo\n");
}

static void test_net_zero(void **state)
{
	struct layered *l = *state;

	for (int i = 1; i <= 5; i++) {
		g_autofree char *path = g_strdup_printf("d/f%d", i), *text = g_strdup_printf("%d\n", i);

		host_text(l, path, text);
	}
	host_mkdir(l, "d/e");
	host_text(l, "d/s/x", "x\n");
	host_text(l, "d/s/t/y", "y\n");
	host_symlink(l, "d/l", "f1");
	view_text(l, "d/tmp", "t\n");
	view_remove(l, "d/tmp");
	view_text(l, "d/f1", "1\nx\n");
	view_text(l, "d/f1", "1\n");
	view_rename(l, "d/f2", "d/q");
	view_rename(l, "d/q", "d/f2");
	view_touch(l, "d/f3");
	view_chmod(l, "d/f4", 0600);
	view_chmod(l, "d/f4", 0644);
	view_remove(l, "d/f5");
	view_text(l, "d/f5", "5\n");
	view_remove(l, "d/e");
	view_mkdir(l, "d/e");
	view_remove(l, "d/s");
	view_mkdir(l, "d/s");
	view_text(l, "d/s/x", "x\n");
	view_mkdir(l, "d/s/t");
	view_text(l, "d/s/t/y", "y\n");
	view_remove(l, "d/l");
	view_symlink(l, "d/l", "f1");
	view_xattr(l, "d/f4", "user.a", "1");
	view_xattr(l, "d/f4", "user.a", NULL);
	expect_live(l, "");
}

static void test_rename_directory(void **state)
{
	struct layered *l = *state;

	host_text(l, "src/c/f1", "1\n");
	host_text(l, "src/c/f2", "a\nb\nc\nd\n");
	host_text(l, "src/c/deep/g1", "g\n");
	host_text(l, "src/c/deep/g2", "g\n");
	host_symlink(l, "src/c/l", "f1");
	view_rename(l, "src/c", "src/c2");
	view_text(l, "src/c2/f2", "a\nb\nc\nd\ne\n");
	view_remove(l, "src/c2/deep/g2");
	view_rename(l, "src/c2/deep", "deep2");
	expect_live(l, "D src/c\nD src/c/deep\nD src/c/deep/g2\nA deep2\nR src/c/deep/g1 -> deep2/g1\nA src/c2\n"
		       "R src/c/f1 -> src/c2/f1\nR src/c/f2 -> src/c2/f2\nR src/c/l -> src/c2/l\n");
}

static void test_rename_details(void **state)
{
	struct layered *l = *state;
	g_autoptr(GPtrArray) changes = NULL;
	const struct change *c;

	host_text(l, "a", "a\nb\nc\nd\n");
	host_text(l, "b", "x\n");
	view_rename(l, "a", "a2");
	view_text(l, "a2", "a\nb\nc\nX\n");
	view_rename(l, "b", "b2");
	changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	assert_int_equal(changes->len, 2);
	c = g_ptr_array_index(changes, 0);
	assert_int_equal(c->similarity, 75);
	assert_true(c->content_changed && c->has_sha256_before && c->has_sha256_after);
	c = g_ptr_array_index(changes, 1);
	assert_int_equal(c->similarity, 100);
	assert_false(c->content_changed);
	assert_memory_equal(c->sha256_before, c->sha256_after, 32);
}

static void test_rename_is_identity(void **state)
{
	struct layered *l = *state;

	/* A copy is no rename, a new file of the same bytes neither; a replaced name keeps its path. */
	host_text(l, "a", "same\n");
	host_text(l, "b", "other\n");
	host_text(l, "c", "third\n");
	view_remove(l, "a");
	view_text(l, "new", "same\n");
	view_remove(l, "c");
	view_rename(l, "b", "c");
	expect_live(l, "D a\nD b\nM c\nA new\n");
}

static void test_rename_once(void **state)
{
	struct layered *l = *state;

	/* Two names for one deleted one; and a deleted path that by now is something else. */
	host_text(l, "a", "a\n");
	host_text(l, "x", "x\n");
	view_add_name(l, "a", "b");
	view_add_name(l, "a", "c");
	view_remove(l, "a");
	view_rename(l, "x", "y");
	view_text(l, "y", "y\n");
	expect_live(l, "R a -> b\nA c\nR x -> y\n");
	host_replace(l, "x", "target");
	expect_live(l, "D x\nR a -> b\nA c\nA y\n");
}

static void test_type_changes(void **state)
{
	struct layered *l = *state;

	host_text(l, "dir/x", "x\n");
	host_text(l, "dir/y", "y\n");
	host_text(l, "file", "f\n");
	view_remove(l, "dir");
	view_text(l, "dir", "now a file\n");
	view_remove(l, "file");
	view_mkdir(l, "file");
	view_text(l, "file/z", "z\n");
	expect_live(l, "D dir/x\nD dir/y\nT dir\nT file\nA file/z\n");
}

static void test_snapshots(void **state)
{
	struct layered *l = *state;
	int64_t one, two;

	host_text(l, "d/a", "a\n");
	host_text(l, "d/b", "b\n");
	view_text(l, "d/a", "a1\n");
	view_mkdir(l, "n");
	view_text(l, "n/x", "x\n");
	view_text(l, "n/y", "y\n");
	assert_int_equal(store_snapshot_create(l->store, "one", &one), 0);
	view_rename(l, "n", "m");
	view_text(l, "m/x", "x2\n");
	view_rename(l, "d/b", "d/c");
	assert_int_equal(store_snapshot_create(l->store, "two", &two), 0);
	view_text(l, "d/a", "a\n");
	expect(l, TREE_LOWER, one, NULL, "M d/a\nA n\nA n/x\nA n/y\n");
	expect(l, one, two, NULL, "D n\nR d/b -> d/c\nA m\nR n/x -> m/x\nR n/y -> m/y\n");
	expect(l, two, one, NULL, "D m\nR d/c -> d/b\nA n\nR m/x -> n/x\nR m/y -> n/y\n");
	expect(l, two, EPOCH_LIVE, NULL, "M d/a\n");
	expect(l, two, two, NULL, "");
	expect(l, EPOCH_LIVE, TREE_LOWER, NULL, "D m\nD m/x\nD m/y\nR d/c -> d/b\n");
}

static void test_paths(void **state)
{
	struct layered *l = *state;
	const char *directory[] = { "d/", NULL }, *file[] = { "./d/e/g", NULL }, *glob[] = { "*.c", NULL };
	const char *in_glob[] = { "d/*/g", NULL }, *none[] = { "d/x", "other", NULL }, *literal[] = { "s[1]", NULL };
	struct change_options o = { 0 };

	view_mkdir(l, "d");
	view_mkdir(l, "d/e");
	view_mkdir(l, "d/x.c");
	view_text(l, "d/e/g", "x\n");
	view_text(l, "d/x.c/inside", "x\n");
	view_text(l, "dd", "x\n");
	view_text(l, "top.c", "x\n");
	view_text(l, "s[1]", "x\n");
	o.paths = directory;
	expect(l, TREE_LOWER, EPOCH_LIVE, &o, "A d\nA d/e\nA d/e/g\nA d/x.c\nA d/x.c/inside\n");
	o.paths = file;
	expect(l, TREE_LOWER, EPOCH_LIVE, &o, "A d/e/g\n");
	o.paths = glob;
	expect(l, TREE_LOWER, EPOCH_LIVE, &o, "A d/x.c\nA d/x.c/inside\nA top.c\n");
	o.paths = in_glob;
	expect(l, TREE_LOWER, EPOCH_LIVE, &o, "A d/e/g\n");
	o.paths = none;
	expect(l, TREE_LOWER, EPOCH_LIVE, &o, "");
	o.paths = literal;
	expect(l, TREE_LOWER, EPOCH_LIVE, &o, "A s[1]\n");
}

static void test_pathspec_descends_where_needed(void **state)
{
	const char *items[] = { "src/sub/*.c", "doc", NULL };
	g_autoptr(pathspec_t) p = pathspec_new(items);

	(void)state;
	assert_int_equal(pathspec_match(p, ""), PATHSPEC_BELOW);
	assert_int_equal(pathspec_match(p, "src"), PATHSPEC_BELOW);
	assert_int_equal(pathspec_match(p, "src/sub"), PATHSPEC_BELOW);
	assert_int_equal(pathspec_match(p, "src/sub/deeper"), PATHSPEC_BELOW);
	assert_int_equal(pathspec_match(p, "src/other"), PATHSPEC_NONE);
	assert_int_equal(pathspec_match(p, "src/sub/a.c"), PATHSPEC_ALL);
	assert_int_equal(pathspec_match(p, "doc/x/y"), PATHSPEC_ALL);
	assert_int_equal(pathspec_match(p, "docs"), PATHSPEC_NONE);
}

static bool record(const char *path, const char *lower, bool is_dir, void *user)
{
	(void)lower;
	(void)is_dir;
	g_string_append_printf(user, "%s ", path);
	return true;
}

static void test_paths_are_not_walked_beside(void **state)
{
	struct layered *l = *state;
	const char *paths[] = { "d/e/g", NULL };
	g_autoptr(GString) asked = g_string_new(NULL);
	const struct change_options o = { .paths = paths, .filter = record, .filter_user = asked };

	host_text(l, "d/e/g", "x\n");
	host_text(l, "d/other/x", "x\n");
	view_text(l, "d/e/g", "y\n");
	view_text(l, "d/other/x", "y\n");
	expect(l, TREE_LOWER, EPOCH_LIVE, &o, "M d/e/g\n");
	assert_string_equal(asked->str, "d d d/e d/e d/e/g d/e/g ");
}

static void test_only_rows_are_looked_at(void **state)
{
	struct layered *l = *state;
	g_autoptr(GString) asked = g_string_new(NULL);
	const struct change_options o = { .filter = record, .filter_user = asked };

	host_text(l, "d/a", "x\n");
	host_text(l, "d/b", "x\n");
	host_text(l, "e/c", "x\n");
	view_text(l, "d/b", "y\n");
	expect(l, TREE_LOWER, EPOCH_LIVE, &o, "M d/b\n");
	assert_string_equal(asked->str, "d d d/b d/b ");
}

static bool hide_env(const char *path, const char *lower, bool is_dir, void *user)
{
	g_ptr_array_add(user, g_strdup_printf("%s %s %d", path, lower ? lower : "-", is_dir));
	return !g_str_has_suffix(path, ".env") && !(lower && g_str_has_suffix(lower, ".env")) &&
	       !g_str_has_suffix(path, "vault");
}

static void test_filter(void **state)
{
	struct layered *l = *state;
	g_autoptr(GPtrArray) asked = g_ptr_array_new_with_free_func(g_free);
	const struct change_options o = { .filter = hide_env, .filter_user = asked };

	host_text(l, "d/.env", "secret\n");
	host_text(l, "d/vault/v", "secret\n");
	host_text(l, "d/pub", "pub\n");
	host_text(l, "e/.env", "secret\n");
	view_remove(l, "d/.env");
	view_remove(l, "d/vault");
	view_rename(l, "d/pub", "d/pub2");
	/* Whatever is at a new path, its content stays what it was; also when it was written to since. */
	view_rename(l, "e/.env", "e/free");
	host_text(l, "e/second.env", "secret\n");
	view_rename(l, "e/second.env", "e/freed");
	view_text(l, "e/freed", "secret and more\n");
	expect(l, TREE_LOWER, EPOCH_LIVE, &o, "R d/pub -> d/pub2\n");
	assert_true(g_ptr_array_find_with_equal_func(asked, "d/vault d/vault 1", g_str_equal, NULL));
	assert_true(g_ptr_array_find_with_equal_func(asked, "e/freed e/second.env 0", g_str_equal, NULL));
	for (guint i = 0; i < asked->len; i++)
		assert_null(strstr(g_ptr_array_index(asked, i), "vault/v"));
}

static void test_unread(void **state)
{
	struct layered *l = *state;
	const struct change_options quick = { .no_hash = true };
	g_autoptr(GPtrArray) changes = NULL;

	host_text(l, "gone", "x\n");
	view_remove(l, "gone");
	view_mkfifo(l, "fifo");
	changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, &quick);
	for (guint i = 0; i < changes->len; i++) {
		const struct change *c = g_ptr_array_index(changes, i);

		assert_false(c->has_sha256_before || c->has_sha256_after);
	}
}

static void test_xattrs_show_through(void **state)
{
	struct layered *l = *state;
	g_autofree char *full = g_build_filename(l->workspace, "a", NULL);
	g_autoptr(tree_t) to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(entry_t) e = NULL;
	g_autoptr(GBytes) set = NULL;
	const void *value;
	size_t size;

	host_text(l, "a", "a\n");
	if (setxattr(full, "user.k", "v", 1, 0) < 0)
		skip(); /* a file system without them */
	view_text(l, "a", "b\n");
	assert_int_equal(tree_lookup_path(to, "a", &e), 0);
	assert_int_equal(change_xattrs(to, e, &set), 0);
	assert_true(xattrs_get(set, "user.k", &value, &size));
	view_text(l, "a", "a\n");
	expect_live(l, "");
	view_xattr(l, "a", "user.k", "w");
	expect_live(l, "X a\n");
}

static char *digest_of(struct layered *l, bool no_hash)
{
	const struct change_options o = { .no_hash = no_hash };
	g_autoptr(tree_t) to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(GPtrArray) changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, &o);
	g_autoptr(GError) error = NULL;
	char *digest = changes_digest(changes, to, &error);

	assert_null(error);
	return digest;
}

static void test_digest(void **state)
{
	struct layered *l = *state;
	g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	char *digest;

	host_text(l, "a", "a\n");
	assert_true(g_hash_table_add(seen, digest_of(l, false)));
	view_text(l, "a", "b\n");
	assert_true(g_hash_table_add(seen, digest_of(l, false)));
	assert_false(g_hash_table_add(seen, digest_of(l, true)));
	view_touch(l, "a");
	assert_false(g_hash_table_add(seen, digest_of(l, false)));
	view_text(l, "a", "c\n");
	assert_true(g_hash_table_add(seen, digest_of(l, false)));
	view_chmod(l, "a", 0755);
	assert_true(g_hash_table_add(seen, digest_of(l, false)));
	view_xattr(l, "a", "user.x", "1");
	assert_true(g_hash_table_add(seen, digest_of(l, false)));
	view_chown(l, "a", 4711);
	assert_true(g_hash_table_add(seen, digest_of(l, false)));
	view_symlink(l, "l", "x");
	assert_true(g_hash_table_add(seen, digest_of(l, false)));
	view_rename(l, "a", "b");
	digest = digest_of(l, false);
	assert_int_equal(strlen(digest), 64);
	assert_true(g_hash_table_add(seen, digest));
}

static void test_digest_is_fixed(void **state)
{
	struct layered *l = *state;
	g_autofree char *digest = NULL;

	/* Other versions and machines must find the same. */
	host_text(l, "a", "a\n");
	view_remove(l, "a");
	view_symlink(l, "l", "target");
	view_chown(l, "l", 0);
	digest = digest_of(l, false);
	assert_string_equal(digest, "2083ba65c82d105d682dc0d076885e736a255b2be5902e39a6c8fd05012bcbd2");
}

static void test_error_names_path(void **state)
{
	struct layered *l = *state;
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER),
			  to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(GError) error = NULL;
	GPtrArray *changes = NULL;
	struct node_row n = { .ino = store_new_ino(l->store),
			      .flags = NODE_OWN_ATTR,
			      .attr = { .mode = S_IFREG | 0644, .nlink = 1, .size = 5 },
			      .content = 4711 };
	struct name_row name = { .parent = ROOT_INO, .name = (char *)"broken", .ino = n.ino };

	assert_int_equal(store_begin(l->store), 0);
	assert_int_equal(store_node_put(l->store, &n), 0);
	assert_int_equal(store_name_put(l->store, &name), 0);
	assert_int_equal(store_commit(l->store), 0);
	assert_true(changes_between(from, to, NULL, &changes, &error) < 0);
	assert_null(changes);
	assert_non_null(strstr(error->message, "broken"));
}

static void test_deep(void **state)
{
	struct layered *l = *state;
	g_autoptr(GPtrArray) changes = NULL;
	uint64_t parent = ROOT_INO;

	/* Far beyond PATH_MAX. */
	assert_int_equal(store_begin(l->store), 0);
	for (int i = 0; i < 3000; i++) {
		struct node_row n = { .ino = store_new_ino(l->store),
				      .flags = NODE_OWN_ATTR,
				      .attr = { .mode = S_IFDIR | 0755, .nlink = 2 } };
		struct name_row name = { .parent = parent, .name = (char *)"d", .ino = n.ino };

		assert_int_equal(store_node_put(l->store, &n), 0);
		assert_int_equal(store_name_put(l->store, &name), 0);
		parent = n.ino;
	}
	assert_int_equal(store_commit(l->store), 0);
	changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	assert_int_equal(changes->len, 3000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_changed),
		TEST(test_kinds),
		TEST(test_net_zero),
		TEST(test_rename_directory),
		TEST(test_rename_details),
		TEST(test_rename_is_identity),
		TEST(test_rename_once),
		TEST(test_type_changes),
		TEST(test_snapshots),
		TEST(test_paths),
		TEST(test_paths_are_not_walked_beside),
		TEST(test_only_rows_are_looked_at),
		TEST(test_pathspec_descends_where_needed),
		TEST(test_filter),
		TEST(test_unread),
		TEST(test_xattrs_show_through),
		TEST(test_digest),
		TEST(test_digest_is_fixed),
		TEST(test_error_names_path),
		TEST(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
