/* SPDX-License-Identifier: MIT */
/*
 * test-rollback - a past state comes back, all of it or some paths, under a view in use
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "view_checks.h"

static void test_snapshots_and_rollback(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *start = NULL, *middle = NULL, *now = NULL;
	int64_t epoch;

	(void)state;
	host_text(v, "a", "A");
	host_text(v, "d/f", "f");
	start = view_describe(v, DESCRIBE_INO | DESCRIBE_TIMES);
	assert_int_equal(view_text(v, "a", "1"), 0);
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	middle = view_describe(v, 0);
	epoch = view_snapshot(v, "s");
	assert_int_equal(view_text(v, "a", "2"), 0);
	assert_int_equal(view_unlink(v, "e/f"), 0);
	assert_int_equal(view_rmdir(v, "e"), 0);
	assert_int_equal(view_text(v, "e", "file"), 0);
	view_rollback(v, epoch, NULL);
	now = view_describe(v, 0);
	assert_true(describe_same(middle, now));
	view_check(v);
	view_rollback(v, 0, NULL);
	g_free(now);
	now = view_describe(v, DESCRIBE_INO | DESCRIBE_TIMES);
	assert_true(describe_same(start, now));
	check_changes(v, "");
	view_check(v);
}

/* A shell stands in a directory that goes and comes back; an editor holds a changed file that goes and comes back. */
static void test_rollback_gives_held_nodes_back(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	uint64_t d, f;

	(void)state;
	host_text(v, "d/f", "old");
	host_dir(v, "empty");
	d = view_ino(v, "d");
	f = view_ino(v, "d/f");
	assert_int_not_equal(view_ino(v, "empty"), 0);
	assert_int_equal(view_text(v, "d/f", "new"), 0);
	assert_int_equal(view_unlink(v, "d/f"), 0);
	assert_int_equal(view_rmdir(v, "d"), 0);
	assert_int_equal(view_rmdir(v, "empty"), 0);
	view_rollback(v, 0, NULL);
	check_list(v, "", "d empty");
	check_list(v, "d", "f");
	check_text(v, "d/f", "old");
	assert_int_equal(view_ino(v, "d"), d);
	assert_int_equal(view_ino(v, "d/f"), f);
	view_check(v);
	host_text(v, "empty/later", "x");
	check_list(v, "empty", "later");
}

static void test_rollback_of_paths(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "a", "A");
	host_text(v, "b", "B");
	host_text(v, "d/f", "f");
	assert_int_equal(view_text(v, "a", "1"), 0);
	assert_int_equal(view_text(v, "b", "2"), 0);
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	assert_int_equal(view_text(v, "e/f", "3"), 0);
	view_rollback(v, 0, "a");
	check_text(v, "a", "A");
	check_text(v, "b", "2");
	view_check(v);
	/* A rename is one change, by either of its names. */
	view_rollback(v, 0, "e");
	check_list(v, "", "a b d");
	check_text(v, "d/f", "f");
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	view_rollback(v, 0, "d");
	check_list(v, "", "a b d");
	check_changes(v, "M b\n");
	view_check(v);
}

/* What comes back lay in a directory that is gone by now. */
static void test_rollback_of_a_path_brings_its_directory(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t epoch;

	(void)state;
	assert_int_equal(view_mkdir(v, "n"), 0);
	assert_int_equal(view_mkdir(v, "n/p"), 0);
	assert_int_equal(view_text(v, "n/p/f", "f"), 0);
	epoch = view_snapshot(v, "s");
	assert_int_equal(view_rename(v, "n/p", "p", 0), 0);
	assert_int_equal(view_rmdir(v, "n"), 0);
	view_rollback(v, epoch, "p");
	check_list(v, "", "n");
	check_text(v, "n/p/f", "f");
	view_check(v);
}

/* What was seen at its own place may come back as a change that put it elsewhere, without a whiteout there: its owner had taken it away. */
static void test_rollback_moves_a_directory_in_use(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t before, after;
	uint64_t a;

	(void)state;
	host_text(v, "a/f", "f");
	before = view_snapshot(v, "before");
	assert_int_equal(view_chmod(v, "a", 0700), 0);
	assert_int_equal(view_mkdir(v, "c"), 0);
	host_run(v, "mv a ../away");
	assert_int_equal(view_rename(v, "a", "c/a", 0), 0);
	after = view_snapshot(v, "after");
	host_run(v, "mv ../away a");
	view_rollback(v, before, NULL);
	kernel_forget_all(v);
	a = view_ino(v, "a");
	check_text(v, "a/f", "f");
	view_rollback(v, after, NULL);
	check_text(v, "a/f", "f");
	assert_int_not_equal(view_ino(v, "a"), a);
	assert_int_equal(view_ino(v, "c/a"), a);
	assert_int_equal(view_rows(v, "name"), 2);
	view_check(v);
}

/* A directory of the workspace does not count its subdirectories right, but is there as long as it has a name. */
static void test_rollback_keeps_a_directory_without_count(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t before, after;
	struct attr a;

	(void)state;
	host_text(v, "b/c/f", "f");
	before = view_snapshot(v, "before");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(view_rename(v, "b/c", "x", 0), 0);
		view_rollback(v, before, "b/c");
	}
	assert_int_equal(view_stat(v, "b", &a), 0);
	assert_int_equal(a.nlink, 1);
	assert_int_equal(view_text(v, "b/own", "own"), 0);
	after = view_snapshot(v, "after");
	assert_int_equal(view_chmod(v, "b", 0700), 0);
	view_rollback(v, after, NULL);
	check_text(v, "b/own", "own");
	view_check(v);
}

/* Names of a directory that can't be loaded while another is still in its place follow the index all the same. */
static void test_rollback_of_directories_that_changed_places(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t epoch;

	(void)state;
	host_dir(v, "a");
	host_dir(v, "b");
	assert_int_equal(view_mkdir(v, "a/b"), 0);
	assert_int_equal(view_mkdir(v, "b/b"), 0);
	assert_int_equal(view_text(v, "b/b/a", "file"), 0);
	epoch = view_snapshot(v, "s");
	assert_int_equal(view_rename(v, "b/b", "a/b", RENAME_EXCHANGE), 0);
	assert_int_equal(view_rename(v, "a/b/a", "b", RENAME_EXCHANGE), 0);
	assert_int_equal(view_mkdir(v, "a/b/a/a"), 0);
	view_rollback(v, epoch, "a");
	check_list(v, "b", "b");
	check_text(v, "b/b/a", "file");
	view_check(v);
}

static void test_rollback_of_a_path_counts_links(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t epoch;

	(void)state;
	assert_int_equal(view_mkdir(v, "n"), 0);
	assert_int_equal(view_mkdir(v, "n/old"), 0);
	epoch = view_snapshot(v, "s");
	assert_int_equal(view_mkdir(v, "n/x"), 0);
	assert_int_equal(view_mkdir(v, "n/y"), 0);
	assert_int_equal(links_of(v, "n"), 5);
	view_rollback(v, epoch, "n/x");
	assert_int_equal(links_of(v, "n"), 4);
	view_check(v);
}

/*
 * Halves
 *
 * A rename or an exchange is one change: rolled back by either of its names it is undone whole.
 */

static void scene(struct viewed *v)
{
	host_text(v, "a", "A");
	host_text(v, "b", "BB");
	host_text(v, "d/1", "d1");
	host_text(v, "d/same", "ds");
	host_text(v, "d/sub/x", "x");
	host_text(v, "e/2", "e2");
	host_text(v, "e/same", "es");
}

struct half {
	const char *renames[3][2]; /* "=" in front of the target: an exchange */
	const char *paths[4];	   /* each undoes them all */
};

static const struct half halves[] = {
	{ { { "a", "=b" } }, { "a", "b" } },
	{ { { "a", "c" } }, { "a", "c" } },
	{ { { "a", "c" }, { "b", "a" } }, { "a", "b", "c" } },
	{ { { "d", "=e" } }, { "d", "e" } },
	{ { { "d", "f" }, { "e", "d" }, { "f", "e" } }, { "d", "e" } },
	{ { { "d", "f" }, { "e", "d" }, { "f", "d/in" } }, { "d", "e", "d/in" } },
	{ { { "d/sub", "sub" }, { "d", "sub/d" } }, { "sub", "d", "sub/d" } },
	{ { { "d/1", "top" }, { "d/same", "d/1" } }, { "top", "d/1", "d/same" } },
};

static void do_renames(struct viewed *v, const struct half *h)
{
	for (int i = 0; i < 3 && h->renames[i][0]; i++) {
		const char *from = h->renames[i][0], *to = h->renames[i][1];
		bool exchange = to[0] == '=';

		assert_int_equal(view_rename(v, from, to + exchange, exchange ? RENAME_EXCHANGE : RENAME_NOREPLACE), 0);
	}
}

/* Over the workspace, and over rows that were there before. */
static void check_half(const struct half *h, const char *path, bool rows)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *start = NULL, *now = NULL;
	int64_t epoch;

	scene(v);
	if (rows) {
		assert_int_equal(view_chmod(v, "a", 0600), 0);
		assert_int_equal(view_text(v, "d/1", "changed"), 0);
		assert_int_equal(view_text(v, "e/new", "new"), 0);
		assert_int_equal(view_chmod(v, "d/sub", 0700), 0);
	}
	start = view_describe(v, DESCRIBE_INO);
	epoch = view_snapshot(v, "s");
	do_renames(v, h);
	view_rollback(v, epoch, path);
	now = view_describe(v, DESCRIBE_INO);
	if (!describe_same(start, now))
		fail_msg("rollback of %s after %s to %s", path, h->renames[0][0], h->renames[0][1]);
	view_check(v);
}

static void test_rollback_of_halves(void **state)
{
	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(halves); i++) {
		for (int k = 0; k < 4 && halves[i].paths[k]; k++) {
			check_half(&halves[i], halves[i].paths[k], false);
			check_half(&halves[i], halves[i].paths[k], true);
		}
	}
}

/* A directory that was moved before stays where it is, when what was exchanged with something in it comes back. */
static void test_rollback_in_a_moved_directory(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t epoch;

	(void)state;
	scene(v);
	assert_int_equal(view_rename(v, "d", "m", 0), 0);
	epoch = view_snapshot(v, "s");
	assert_int_equal(view_rename(v, "m/1", "e/2", RENAME_EXCHANGE), 0);
	assert_int_equal(view_text(v, "m/new", "new"), 0);
	view_rollback(v, epoch, "e/2");
	check_text(v, "m/1", "d1");
	check_text(v, "e/2", "e2");
	check_text(v, "m/new", "new");
	view_check(v);
	/* What is where it is by its directory alone does not move without it. */
	view_rollback(v, 0, "m/same");
	check_list(v, "m", "1 new same sub");
	view_rollback(v, 0, "d");
	check_list(v, "", "a b d e");
	check_list(v, "d", "1 same sub");
	view_check(v);
}

/*
 * Nothing is lost, nothing shows twice
 *
 * Files and directories are only moved, so whatever is rolled back, each file is there exactly once.
 */

static char *random_path(struct viewed *v, GRand *rand, bool new)
{
	g_autoptr(GPtrArray) all = view_paths(v);
	const char *path = g_ptr_array_index(all, g_rand_int_range(rand, 0, all->len));

	return new ? g_strdup_printf("%s/n%d", path, g_rand_int_range(rand, 0, 1000)) : g_strdup(path);
}

static void move_some(struct viewed *v, GRand *rand, int count)
{
	for (int i = 0; i < count; i++) {
		bool exchange = g_rand_boolean(rand);
		g_autofree char *from = random_path(v, rand, false), *to = random_path(v, rand, !exchange && g_rand_boolean(rand));

		view_rename(v, from, to, exchange ? RENAME_EXCHANGE : RENAME_NOREPLACE);
	}
}

static gint text_order(gconstpointer a, gconstpointer b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The texts of all files, sorted. */
static char *texts(struct viewed *v)
{
	g_autoptr(GPtrArray) all = view_paths(v), found = g_ptr_array_new_with_free_func(g_free);

	for (guint i = 0; i < all->len; i++) {
		char *text;

		if (view_read(v, all->pdata[i], &text) == 0)
			g_ptr_array_add(found, text);
	}
	g_ptr_array_sort(found, text_order);
	g_ptr_array_add(found, NULL);
	return g_strjoinv(" ", (char **)found->pdata);
}

static void check_moves(guint32 seed)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
	g_autofree char *all = NULL, *end = NULL, *path = NULL;
	int64_t epoch;

	host_run(v, "mkdir -p a/b/c d/e f; for f in 1 a/2 a/3 a/b/4 a/b/c/5 d/6 d/e/7 d/e/8; do echo $f >$f; done");
	all = texts(v);
	move_some(v, rand, g_rand_int_range(rand, 0, 4));
	epoch = g_rand_boolean(rand) ? view_snapshot(v, "s") : 0;
	move_some(v, rand, g_rand_int_range(rand, 1, 6));
	for (int i = 0; i < 3; i++) {
		g_autofree char *now = NULL;

		g_free(path);
		path = random_path(v, rand, false);
		view_rollback(v, epoch, path);
		now = texts(v);
		if (strcmp(all, now) != 0)
			fail_msg("seed %u: rollback of %s: %s, not %s", seed, path, now, all);
		view_check(v);
	}
	view_rollback(v, epoch, NULL);
	end = texts(v);
	assert_string_equal(end, all);
	view_check(v);
}

static void test_rollback_of_paths_loses_nothing(void **state)
{
	(void)state;
	for (guint32 seed = 1; seed <= 200; seed++)
		check_moves(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_snapshots_and_rollback),
		cmocka_unit_test(test_rollback_gives_held_nodes_back),
		cmocka_unit_test(test_rollback_of_paths),
		cmocka_unit_test(test_rollback_of_a_path_brings_its_directory),
		cmocka_unit_test(test_rollback_moves_a_directory_in_use),
		cmocka_unit_test(test_rollback_keeps_a_directory_without_count),
		cmocka_unit_test(test_rollback_of_directories_that_changed_places),
		cmocka_unit_test(test_rollback_of_a_path_counts_links),
		cmocka_unit_test(test_rollback_of_halves),
		cmocka_unit_test(test_rollback_in_a_moved_directory),
		cmocka_unit_test(test_rollback_of_paths_loses_nothing),
	};

	umask(022);
	return cmocka_run_group_tests_name("rollback", tests, NULL, NULL);
}
