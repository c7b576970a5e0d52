/* SPDX-License-Identifier: MIT */
/*
 * test-settle - what the view is after a commit of all or some of its changes, and after the undo: what it was before
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "view_checks.h"

static void test_settle(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *view = NULL, *disk = NULL;
	uint64_t ino;

	(void)state;
	host_text(v, "a", "A");
	host_text(v, "gone", "x");
	host_text(v, "d/f", "f");
	host_text(v, "d/sub/g", "g");
	assert_int_equal(view_text(v, "a", "changed"), 0);
	assert_int_equal(view_text(v, "new", "new"), 0);
	assert_int_equal(view_unlink(v, "gone"), 0);
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	assert_int_equal(view_link(v, "new", "e/linked"), 0);
	ino = view_ino(v, "a");
	assert_true(view_commit(v, NULL));
	assert_int_equal(view_ino(v, "a"), ino);
	view = view_describe(v, DESCRIBE_LINKS);
	disk = disk_describe(v->workspace, DESCRIBE_LINKS);
	assert_true(describe_same(disk, view));
	check_changes(v, "");
	view_check(v);
	/* From now on they follow the workspace. */
	host_text(v, "new", "by the owner");
	check_text(v, "new", "by the owner");
}

/* Whoever serves the view may be killed before the answer: what was settled follows the workspace all the same, and what was not is its own. */
static void test_settle_that_is_told_twice(void **state)
{
	static const char *const paths[] = { "edited", "moved", "from", "new", "d", "d/f", "again", NULL };
	g_autoptr(viewed_t) v = viewed_new(NULL);
	struct attr a;
	int64_t epoch;

	(void)state;
	host_text(v, "edited", "one");
	host_text(v, "from", "moved");
	host_text(v, "again", "one");
	assert_int_equal(view_text(v, "edited", "two"), 0);
	assert_int_equal(view_text(v, "again", "two"), 0);
	assert_int_equal(view_text(v, "new", "new"), 0);
	assert_int_equal(view_mkdir(v, "d"), 0);
	assert_int_equal(view_text(v, "d/f", "f"), 0);
	assert_int_equal(view_rename(v, "from", "moved", 0), 0);
	assert_int_equal(overlay_pin(v->overlay, &epoch), 0);
	assert_true(view_commit(v, NULL));
	overlay_unpin(v->overlay, epoch);
	assert_int_equal(view_append(v, "again", " three"), 0);
	assert_int_equal(overlay_settle(v->overlay, epoch, paths, NULL), 0);
	viewed_reopen(v);
	check_changes(v, "M again\n");
	host_run(v, "chmod 600 edited new d/f moved; touch -d @86400 edited new d/f moved");
	for (size_t i = 0; paths[i]; i++) {
		if (strcmp(paths[i], "from") == 0 || strcmp(paths[i], "d") == 0 || strcmp(paths[i], "again") == 0)
			continue;
		assert_int_equal(view_stat(v, paths[i], &a), 0);
		assert_int_equal(a.mode & 07777, 0600);
		assert_int_equal(a.mtime, 86400 * NSEC_PER_SEC);
	}
	check_text(v, "again", "two three");
	check_changes(v, "M again\n");
	view_check(v);
}

static void test_settle_of_a_file_with_two_names(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *one = host_path(v, "h1"), *other = host_path(v, "h2"), *view = NULL, *disk = NULL;
	struct stat a, b;
	bool xattrs;

	(void)state;
	host_run(v, "echo h >h1; ln h1 h2");
	/* tmpfs has user xattrs only since Linux 6.6. */
	xattrs = setxattr(one, "user.probe", "", 0, 0) == 0 && removexattr(one, "user.probe") == 0;
	view_ino(v, "h2");
	assert_int_equal(view_chmod(v, "h1", 0600), 0);
	if (xattrs)
		assert_int_equal(view_setxattr(v, "h1", "user.own", "1"), 0);
	/* The second commit meets change times that the first one and its undo left at both names. */
	for (int i = 0; i < 2; i++) {
		assert_true(view_commit(v, NULL));
		assert_int_equal(stat(one, &a) + stat(other, &b), 0);
		assert_int_equal(a.st_ino, b.st_ino);
		assert_int_equal(a.st_mode & 07777, 0600);
		if (i == 0)
			view_undo(v);
	}
	check_changes(v, "");
}

/* The only name that was looked up is gone, and what it followed with it: another one is followed, after a rollback too. */
static void test_settle_of_a_name_that_was_followed(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t epoch;

	(void)state;
	host_run(v, "echo h >h1; ln h1 h2; ln h1 h3");
	assert_int_equal(view_unlink(v, "h1"), 0);
	assert_true(view_commit(v, NULL));
	epoch = view_snapshot(v, "s");
	check_text(v, "h2", "h\n");
	check_text(v, "h3", "h\n");
	view_rollback(v, epoch, NULL);
	check_text(v, "h2", "h\n");
	check_text(v, "h3", "h\n");
	view_check(v);
}

/* What lies at the old place of either is what the commit put there. */
static void test_settle_of_exchanged_directories(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *before = NULL, *after = NULL;

	(void)state;
	host_text(v, "a/1", "1");
	host_text(v, "a/2", "2");
	host_text(v, "b/3", "3");
	host_run(v, "chmod 700 b");
	assert_int_equal(view_rename(v, "a", "b", RENAME_EXCHANGE), 0);
	assert_int_equal(view_text(v, "a/new", "new"), 0);
	before = view_describe(v, 0);
	assert_true(view_commit(v, NULL));
	after = view_describe(v, 0);
	assert_true(describe_same(before, after));
	check_changes(v, "");
}

/* Between what a commit writes and its end the workspace has it, which must not bring back what was deleted meanwhile. */
static void test_deleted_during_a_commit(void **state)
{
	static const char *const names[] = { "gone", "moved", "twice" };
	g_autoptr(viewed_t) v = viewed_new(NULL);
	struct committing *c;

	(void)state;
	assert_int_equal(view_text(v, "gone", "1"), 0);
	assert_int_equal(view_text(v, "moved", "1"), 0);
	assert_int_equal(view_text(v, "again", "1"), 0);
	assert_int_equal(view_text(v, "twice", "1"), 0);
	c = view_commit_begin(v, NULL);
	assert_int_equal(view_unlink(v, "gone"), 0);
	assert_int_equal(view_rename(v, "moved", "there", 0), 0);
	assert_int_equal(view_unlink(v, "again"), 0);
	assert_int_equal(view_text(v, "again", "2"), 0);
	assert_int_equal(view_unlink(v, "twice"), 0);
	assert_int_equal(view_text(v, "twice", "2"), 0);
	assert_int_equal(view_unlink(v, "twice"), 0);
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		g_autofree char *remove = g_strdup_printf("rm %s", names[i]);

		/* As the commit will. */
		host_text(v, names[i], "1");
		assert_int_equal(view_ino(v, names[i]), 0);
		host_run(v, remove);
	}
	assert_true(view_commit_end(v, c));
	check_changes(v, "D gone\nD twice\nM again\nR moved -> there\n");
	view_check(v);
	assert_true(view_commit(v, NULL));
	check_changes(v, "");
	view_check(v);
}

/* A reader that commits nothing leaves nothing behind, and what the owner makes is seen. */
static void test_deleted_while_somebody_reads(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t rows, first, second;

	(void)state;
	assert_int_equal(view_mkdir(v, "d"), 0);
	rows = view_rows(v, "name");
	assert_int_equal(view_text(v, "gone", "1"), 0);
	assert_int_equal(view_text(v, "again", "1"), 0);
	assert_int_equal(view_mkdir(v, "d/e"), 0);
	assert_int_equal(view_text(v, "d/e/f", "1"), 0);
	assert_int_equal(overlay_pin(v->overlay, &first), 0);
	assert_int_equal(overlay_pin(v->overlay, &second), 0);
	assert_int_equal(view_unlink(v, "gone"), 0);
	assert_int_equal(view_unlink(v, "again"), 0);
	assert_int_equal(view_text(v, "again", "2"), 0);
	assert_int_equal(view_unlink(v, "d/e/f"), 0);
	assert_int_equal(view_rmdir(v, "d/e"), 0);
	host_text(v, "gone", "by the owner");
	overlay_unpin(v->overlay, first);
	assert_int_equal(view_ino(v, "gone"), 0);
	overlay_unpin(v->overlay, second);
	check_text(v, "gone", "by the owner");
	check_text(v, "again", "2");
	assert_int_equal(view_unlink(v, "again"), 0);
	assert_int_equal(view_rows(v, "name"), rows);
	check_changes(v, "A d\n");
	view_check(v);
}

/* The process died before it let go of them. */
static void test_deleted_while_somebody_read(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t rows, epoch;

	(void)state;
	assert_int_equal(view_mkdir(v, "d"), 0);
	rows = view_rows(v, "name");
	for (int takeover = 0; takeover < 2; takeover++) {
		assert_int_equal(view_text(v, "d/gone", "1"), 0);
		assert_int_equal(view_text(v, "gone", "1"), 0);
		assert_int_equal(overlay_pin(v->overlay, &epoch), 0);
		assert_int_equal(view_unlink(v, "d/gone"), 0);
		assert_int_equal(view_unlink(v, "gone"), 0);
		viewed_reopen(v);
		assert_int_equal(view_rows(v, "name"), rows + 2);
		host_text(v, "gone", "by the owner");
		assert_int_equal(view_ino(v, "gone"), 0);
		if (takeover) {
			assert_int_equal(overlay_pin(v->overlay, &epoch), 0);
			overlay_release(v->overlay);
			assert_int_equal(view_ino(v, "gone"), 0);
			overlay_unpin(v->overlay, epoch);
		} else {
			overlay_release(v->overlay);
		}
		check_text(v, "gone", "by the owner");
		assert_int_equal(view_rows(v, "name"), rows);
		view_check(v);
		host_run(v, "rm gone");
	}
}

static void test_settle_keeps_later_changes(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	struct committing *c;

	(void)state;
	host_text(v, "a", "A");
	host_text(v, "b", "B");
	host_text(v, "c", "C");
	assert_int_equal(view_text(v, "a", "1"), 0);
	assert_int_equal(view_text(v, "b", "1"), 0);
	assert_int_equal(view_unlink(v, "c"), 0);
	assert_int_equal(view_text(v, "n", "1"), 0);
	c = view_commit_begin(v, NULL);
	assert_int_equal(view_text(v, "a", "2"), 0);
	assert_int_equal(view_unlink(v, "b"), 0);
	assert_int_equal(view_text(v, "c", "2"), 0);
	assert_int_equal(view_unlink(v, "n"), 0);
	assert_true(view_commit_end(v, c));
	check_text(v, "a", "2");
	check_list(v, "", "a c");
	check_changes(v, "D b\nD n\nM a\nA c\n");
	view_check(v);
	assert_true(view_commit(v, NULL));
	check_changes(v, "");
	view_check(v);
}

static void test_settle_of_a_part_of_a_renamed_directory(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *disk = NULL;
	struct committing *c;

	(void)state;
	host_text(v, "d/f", "f");
	host_text(v, "d/g", "g");
	host_text(v, "d/h", "h");
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	c = view_commit_begin(v, "e/f e/g");
	/* Meanwhile one of them is changed, and one goes. */
	assert_int_equal(view_text(v, "e/f", "later"), 0);
	assert_int_equal(view_unlink(v, "e/g"), 0);
	assert_true(view_commit_end(v, c));
	check_text(v, "e/f", "later");
	check_list(v, "e", "f h");
	check_text(v, "e/h", "h");
	check_list(v, "", "e");
	view_check(v);
	assert_true(view_commit(v, NULL));
	check_changes(v, "");
	disk = disk_describe(v->workspace, 0);
	assert_non_null(strstr(disk, "e/h"));
	assert_null(strstr(disk, "e/g"));
	view_check(v);
}

/* A file moved over another brings its own xattrs, not those of the one that was there. */
static void test_commit_of_a_file_over_another_keeps_xattrs(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *view = NULL, *disk = NULL;

	(void)state;
	host_text(v, "a", "A");
	host_text(v, "b", "B");
	host_text(v, "c", "C");
	host_text(v, "d", "D");
	host_run(v, "for f in a b c; do setfattr -n user.t -v $f $f; done");
	assert_int_equal(view_rename(v, "a", "b", 0), 0);
	assert_int_equal(view_text(v, "c", "changed"), 0);
	assert_int_equal(view_rename(v, "c", "d", 0), 0);
	view = view_describe(v, 0);
	assert_true(view_commit(v, NULL));
	disk = disk_describe(v->workspace, 0);
	assert_true(describe_same(view, disk));
	view_check(v);
}

static void test_commit_of_a_directory_over_a_symlink(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "d/sub/f", "f");
	host_run(v, "ln -s d link");
	assert_int_equal(view_rename(v, "d", "link", RENAME_EXCHANGE), 0);
	assert_true(view_commit(v, NULL));
	check_text(v, "link/sub/f", "f");
	check_changes(v, "");
	view_check(v);
}

/*
 * Directories that are alike
 *
 * They are no changes themselves when they change places.
 */

/* A commit leaves the view as it is and nothing pending, and its undo takes all of it back. */
static void check_commit_and_undo(struct viewed *v)
{
	g_autofree char *start = disk_describe(v->workspace, 0), *view = view_describe(v, 0), *pending = view_changes(v);
	g_autofree char *committed = NULL, *undone = NULL, *disk = NULL, *back = NULL, *again = NULL;

	assert_true(view_commit(v, NULL));
	committed = view_describe(v, 0);
	disk = disk_describe(v->workspace, 0);
	assert_true(describe_same(view, committed));
	assert_true(describe_same(view, disk));
	check_changes(v, "");
	kernel_forget_all(v);
	view_check(v);
	view_undo(v);
	undone = view_describe(v, 0);
	back = disk_describe(v->workspace, 0);
	again = view_changes(v);
	assert_true(describe_same(view, undone));
	assert_true(describe_same(start, back));
	assert_string_equal(again, pending);
	kernel_forget_all(v);
	view_check(v);
}

static void alike(struct viewed *v)
{
	host_text(v, "a/1", "1");
	host_text(v, "a/same", "A");
	host_text(v, "a/sub/x", "x");
	host_text(v, "a/sub/same", "same");
	host_text(v, "b/2", "2");
	host_text(v, "b/same", "BB");
	host_text(v, "b/sub/y", "y");
	host_text(v, "b/sub/same", "same");
}

static void test_alike_directories_that_are_exchanged(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	alike(v);
	assert_int_equal(view_rename(v, "a", "b", RENAME_EXCHANGE), 0);
	check_commit_and_undo(v);
}

static void test_alike_directories_that_are_renamed_in_a_ring(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	alike(v);
	assert_int_equal(view_rename(v, "a", "c", 0), 0);
	assert_int_equal(view_rename(v, "b", "a", 0), 0);
	assert_int_equal(view_rename(v, "c", "b", 0), 0);
	check_commit_and_undo(v);
}

static void test_alike_directories_with_rows_in_them(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	alike(v);
	assert_int_equal(view_unlink(v, "a/1"), 0);
	assert_int_equal(view_chmod(v, "b/sub/same", 0600), 0);
	assert_int_equal(view_chmod(v, "b/sub/same", 0644), 0);
	assert_int_equal(view_rename(v, "a", "b", RENAME_EXCHANGE), 0);
	assert_int_equal(view_text(v, "b/sub/new", "new"), 0);
	assert_int_equal(view_rename(v, "a/sub", "b/sub", RENAME_EXCHANGE), 0);
	check_commit_and_undo(v);
}

/* Equal in all, so their exchange is no change at all; but the one shows what a commit writes at the place of the other. */
static void test_equal_objects_that_are_exchanged(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "a/f", "f");
	host_text(v, "b/f", "f");
	host_text(v, "one", "file");
	host_text(v, "two", "file");
	assert_int_equal(view_rename(v, "a", "b", RENAME_EXCHANGE), 0);
	assert_int_equal(view_rename(v, "one", "two", RENAME_EXCHANGE), 0);
	check_changes(v, "");
	assert_int_equal(view_text(v, "b/f", "changed"), 0);
	assert_int_equal(view_text(v, "two", "changed"), 0);
	check_commit_and_undo(v);
	check_text(v, "a/f", "f");
	check_text(v, "one", "file");
	/* They follow the workspace at their own place. */
	assert_true(view_commit(v, NULL));
	host_text(v, "a/f", "by the owner");
	host_text(v, "one", "by the owner");
	check_text(v, "a/f", "by the owner");
	check_text(v, "one", "by the owner");
	check_text(v, "two", "changed");
}

/* What moves while the commit is under way follows the place that its directory has got. */
static void test_settle_of_what_leaves_a_moved_directory(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	struct committing *c;

	(void)state;
	host_text(v, "d/f", "f");
	host_text(v, "d/sub/g", "g");
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	c = view_commit_begin(v, NULL);
	assert_int_equal(view_rename(v, "e/f", "f", 0), 0);
	assert_int_equal(view_rename(v, "e/sub", "sub", 0), 0);
	assert_true(view_commit_end(v, c));
	check_text(v, "f", "f");
	check_text(v, "sub/g", "g");
	check_changes(v, "D e/sub\nR e/f -> f\nA sub\nR e/sub/g -> sub/g\n");
	kernel_forget_all(v);
	view_check(v);
	view_undo(v);
	check_text(v, "f", "f");
	check_text(v, "sub/g", "g");
	assert_true(view_commit(v, NULL));
	check_changes(v, "");
}

/* The commit makes directories anew; those that somebody stands in keep their number, also in the next mount. */
static void test_settle_keeps_numbers(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	uint64_t sub, deep, f;

	(void)state;
	host_text(v, "d/sub/deep/f", "f");
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	sub = view_ino(v, "e/sub");
	deep = view_ino(v, "e/sub/deep");
	f = view_ino(v, "e/sub/deep/f");
	assert_true(view_commit(v, NULL));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(view_ino(v, "e/sub"), sub);
		assert_int_equal(view_ino(v, "e/sub/deep"), deep);
		assert_int_equal(view_ino(v, "e/sub/deep/f"), f);
		view_check(v);
		viewed_reopen(v);
	}
	check_changes(v, "");
	view_undo(v);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(view_ino(v, "e/sub"), sub);
		assert_int_equal(view_ino(v, "e/sub/deep"), deep);
		view_check(v);
		viewed_reopen(v);
	}
	check_text(v, "e/sub/deep/f", "f");
	check_changes(v, "D d\nD d/sub\nD d/sub/deep\nA e\nA e/sub\nA e/sub/deep\nR d/sub/deep/f -> e/sub/deep/f\n");
}

/* A name in it covers what was committed, but there is nothing to be covered in a directory that is gone. */
static void test_settle_of_a_directory_that_was_removed_since(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	struct committing *c;

	(void)state;
	host_text(v, "d/f", "f");
	assert_int_equal(view_mkdir(v, "n"), 0);
	assert_int_equal(view_text(v, "n/f", "f"), 0);
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	c = view_commit_begin(v, NULL);
	assert_int_equal(view_unlink(v, "n/f"), 0);
	assert_int_equal(view_rmdir(v, "n"), 0);
	assert_int_equal(view_unlink(v, "e/f"), 0);
	assert_int_equal(view_rmdir(v, "e"), 0);
	assert_true(view_commit_end(v, c));
	check_list(v, "", "");
	view_check(v);
	check_changes(v, "D e\nD e/f\nD n\nD n/f\n");
	assert_true(view_commit(v, NULL));
	check_changes(v, "");
	view_check(v);
}

/* What an undo takes back step by step is in the view all the while: it has its rows before the first step. */
static const char *const undo_scene[] = { "edit", "gone", "mode", "d/a", "d/e/b", "f2d", "d2f/in", "rm/x/y", "touched", "h1" };

static void change_undo_scene(struct viewed *v)
{
	assert_int_equal(view_text(v, "edit", "edited"), 0);
	assert_int_equal(view_unlink(v, "gone"), 0);
	assert_int_equal(view_chmod(v, "mode", 0755), 0);
	assert_int_equal(view_utimens(v, "touched", 1000000007), 0);
	assert_int_equal(view_text(v, "new", "new"), 0);
	assert_int_equal(view_link(v, "new", "d/new-too"), 0);
	assert_int_equal(view_link(v, "h1", "h2"), 0);
	assert_int_equal(view_mkdir(v, "n"), 0);
	assert_int_equal(view_mkdir(v, "n/m"), 0);
	assert_int_equal(view_text(v, "n/m/f", "f"), 0);
	assert_int_equal(view_symlink(v, "edit", "n/l"), 0);
	assert_int_equal(view_text(v, "d/a", "a2"), 0);
	assert_int_equal(view_unlink(v, "f2d"), 0);
	assert_int_equal(view_mkdir(v, "f2d"), 0);
	assert_int_equal(view_text(v, "f2d/in", "in"), 0);
	assert_int_equal(view_unlink(v, "d2f/in"), 0);
	assert_int_equal(view_rmdir(v, "d2f"), 0);
	assert_int_equal(view_text(v, "d2f", "file"), 0);
	assert_int_equal(view_unlink(v, "rm/x/y"), 0);
	assert_int_equal(view_rmdir(v, "rm/x"), 0);
	assert_int_equal(view_rmdir(v, "rm"), 0);
}

static struct viewed *committed_undo_scene(char **ret_pending)
{
	struct viewed *v = viewed_new(NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(undo_scene); i++)
		host_text(v, undo_scene[i], undo_scene[i]);
	change_undo_scene(v);
	*ret_pending = view_changes(v);
	assert_true(view_commit(v, NULL));
	check_changes(v, "");
	return v;
}

static void test_undo_is_not_seen(void **state)
{
	g_autofree char *pending = NULL;
	g_autoptr(viewed_t) v = committed_undo_scene(&pending);

	(void)state;
	assert_true(view_undo_looked_at(v) > 15);
	check_changes(v, pending);
	view_check(v);
	assert_true(view_commit(v, NULL));
	check_changes(v, "");
	view_check(v);
}

/* Without rows in the view: of another process, and after a rollback, which took them away. */
static void test_undo_is_not_seen_without_rows(void **state)
{
	g_autofree char *pending = NULL;
	g_autoptr(viewed_t) v = committed_undo_scene(&pending);

	(void)state;
	view_rollback(v, 0, NULL);
	viewed_reopen(v);
	assert_true(view_undo_looked_at(v) > 15);
	check_changes(v, pending);
	view_check(v);
}

/* What was changed since the commit is, too. */
static void test_undo_of_what_was_changed_since_is_not_seen(void **state)
{
	g_autofree char *pending = NULL;
	g_autoptr(viewed_t) v = committed_undo_scene(&pending);

	(void)state;
	assert_int_equal(view_append(v, "edit", " again"), 0);
	assert_int_equal(view_unlink(v, "new"), 0);
	assert_int_equal(view_text(v, "gone", "again"), 0);
	assert_int_equal(view_rename(v, "n/m/f", "moved", 0), 0);
	assert_int_equal(view_unlink(v, "n/l"), 0);
	assert_int_equal(view_rename(v, "f2d", "f3d", 0), 0);
	assert_int_equal(view_chmod(v, "d2f", 0600), 0);
	view_undo_looked_at(v);
	view_check(v);
	assert_true(view_commit(v, NULL));
	check_changes(v, "");
	view_check(v);
}

/* Somebody is in a directory that is gone: nothing comes back in it. */
static void test_undo_of_a_directory_that_was_removed_since(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "kept", "k");
	assert_int_equal(view_mkdir(v, "n"), 0);
	assert_int_equal(view_mkdir(v, "n/m"), 0);
	assert_int_equal(view_text(v, "n/m/f", "f"), 0);
	assert_true(view_commit(v, NULL));
	assert_int_not_equal(view_ino(v, "n/m"), 0);
	assert_int_equal(view_unlink(v, "n/m/f"), 0);
	assert_int_equal(view_rmdir(v, "n/m"), 0);
	assert_int_equal(view_rmdir(v, "n"), 0);
	view_undo_looked_at(v);
	check_list(v, "", "kept");
	check_changes(v, "");
	view_check(v);
}

/* A crash after the view was told has it told once more: what was deleted since has no row by then, and does not come back. */
static void test_undo_that_is_told_twice(void **state)
{
	static const char *const paths[] = { "n", "n/f", "new", NULL };
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t epoch;

	(void)state;
	host_text(v, "kept", "k");
	assert_int_equal(view_mkdir(v, "n"), 0);
	assert_int_equal(view_text(v, "n/f", "f"), 0);
	assert_int_equal(view_text(v, "new", "new"), 0);
	assert_int_equal(overlay_pin(v->overlay, &epoch), 0);
	assert_true(view_commit(v, NULL));
	overlay_unpin(v->overlay, epoch);
	assert_int_equal(view_unlink(v, "n/f"), 0);
	assert_int_equal(view_rmdir(v, "n"), 0);
	assert_int_equal(view_unlink(v, "new"), 0);
	kernel_forget_all(v);
	view_undo_looked_at(v);
	check_list(v, "", "kept");
	assert_int_equal(overlay_unsettle(v->overlay, epoch, paths), 0);
	check_list(v, "", "kept");
	check_changes(v, "");
	view_check(v);
}

/* What was moved is shown at every point, and what is deleted of it in between stays deleted, whoever is told the rest. */
static void test_deleted_between_the_halves_of_an_undo(void **state)
{
	static const char *const paths[] = { "from", "moved", "from2", "moved2", NULL };
	g_autoptr(viewed_t) v = viewed_new(NULL);
	int64_t epoch;

	(void)state;
	host_text(v, "from", "one");
	host_text(v, "from2", "two");
	assert_int_equal(view_rename(v, "from", "moved", 0), 0);
	assert_int_equal(view_rename(v, "from2", "moved2", 0), 0);
	assert_int_equal(overlay_pin(v->overlay, &epoch), 0);
	assert_true(view_commit(v, NULL));
	overlay_unpin(v->overlay, epoch);
	assert_int_equal(overlay_unfollow(v->overlay, epoch, paths), 0);
	host_run(v, "ln moved from; ln moved2 from2");
	assert_int_equal(overlay_refollow(v->overlay, epoch, paths), 0);
	host_run(v, "rm moved moved2");
	check_list(v, "", "moved moved2");
	check_text(v, "moved", "one");
	assert_int_equal(view_unlink(v, "moved"), 0);
	viewed_reopen(v);
	assert_int_equal(overlay_unsettle(v->overlay, epoch, paths), 0);
	check_list(v, "", "moved2");
	check_changes(v, "D from\nR from2 -> moved2\n");
	view_check(v);
}

/* Nor does what was moved, which gets its rows only when the workspace is back. */
static void test_undo_of_what_was_moved_and_deleted_since(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "d/f", "f");
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	assert_int_equal(view_text(v, "e/new", "new"), 0);
	assert_true(view_commit(v, NULL));
	assert_int_equal(view_unlink(v, "e/new"), 0);
	assert_int_equal(view_unlink(v, "e/f"), 0);
	assert_int_equal(view_rmdir(v, "e"), 0);
	kernel_forget_all(v);
	view_undo(v);
	check_list(v, "", "");
	check_changes(v, "D d\nD d/f\n");
	view_check(v);
}

/*
 * Parts
 *
 * What is shown of a place that is written, at a place that is not, stays in the view.
 */

/* A commit of @paths, after which @pending is left; and back. */
static void check_part(struct viewed *v, const char *paths, const char *pending)
{
	g_autofree char *start = disk_describe(v->workspace, 0), *view = view_describe(v, 0);
	g_autofree char *committed = NULL, *undone = NULL, *back = NULL;

	assert_true(view_commit(v, paths));
	committed = view_describe(v, 0);
	assert_true(describe_same(view, committed));
	check_changes(v, pending);
	kernel_forget_all(v);
	view_check(v);
	view_undo(v);
	undone = view_describe(v, 0);
	back = disk_describe(v->workspace, 0);
	assert_true(describe_same(view, undone));
	assert_true(describe_same(start, back));
	kernel_forget_all(v);
	view_check(v);
}

static void test_commit_of_half_an_exchange(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *disk = NULL;

	(void)state;
	host_text(v, "a", "A");
	host_text(v, "b", "BB");
	assert_int_equal(view_rename(v, "a", "b", RENAME_EXCHANGE), 0);
	check_part(v, "a", "M b\n");
	check_part(v, "b", "M a\n");
	assert_true(view_commit(v, "a"));
	assert_true(view_commit(v, "b"));
	check_changes(v, "");
	check_text(v, "a", "BB");
	check_text(v, "b", "A");
	disk = disk_describe(v->workspace, 0);
	assert_non_null(strstr(disk, "b 100644 1 "));
}

static void test_commit_of_half_a_rename(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *a = NULL, *value = NULL;
	bool xattrs;

	(void)state;
	host_text(v, "a", "A");
	a = host_path(v, "a");
	/* tmpfs has user xattrs only since Linux 6.6. */
	xattrs = setxattr(a, "user.t", "kept", 4, 0) == 0;
	host_text(v, "x", "X");
	host_run(v, "ln -s target l; mkfifo p; head -c 300000 /dev/zero | tr '\\0' z >large");
	assert_int_equal(view_rename(v, "a", "moved-a", 0), 0);
	assert_int_equal(view_rename(v, "l", "moved-l", 0), 0);
	assert_int_equal(view_rename(v, "p", "moved-p", 0), 0);
	assert_int_equal(view_rename(v, "large", "moved-large", 0), 0);
	assert_int_equal(view_write(v, "moved-large", "!", 1, 100000), 0);
	assert_int_equal(view_chmod(v, "moved-p", 0600), 0);
	check_part(v, "a l p large", "A moved-a\nA moved-l\nA moved-large\nA moved-p\n");
	assert_true(view_commit(v, "a l p large"));
	if (xattrs) {
		assert_int_equal(view_getxattr(v, "moved-a", "user.t", &value), 0);
		assert_string_equal(value, "kept");
	}
	assert_true(view_commit(v, NULL));
	check_text(v, "moved-a", "A");
	check_changes(v, "");
}

/* The place of what moved is taken by something else, and only that is committed. */
static void test_commit_of_what_took_the_place(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "a", "A");
	host_text(v, "b", "BB");
	assert_int_equal(view_rename(v, "a", "c", 0), 0);
	assert_int_equal(view_rename(v, "b", "a", 0), 0);
	check_part(v, "a", "D b\nA c\n");
	check_part(v, "b", "M a\nA c\n");
	check_part(v, "a b", "A c\n");
}

static void test_commit_of_parts_of_exchanged_directories(void **state)
{
	static const char *const parts[] = { "a",     "b",	 "a/1",	    "a/2",     "a/same", "b/same",     "a/sub",
					     "b/sub", "a/sub/x", "b/sub/x", "a/sub/y", "a b/1",	 "a/sub b/sub" };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
		g_autoptr(viewed_t) v = viewed_new(NULL);
		g_autofree char *view = NULL, *now = NULL, *undone = NULL;

		alike(v);
		assert_int_equal(view_rename(v, "a", "b", RENAME_EXCHANGE), 0);
		view = view_describe(v, 0);
		assert_true(view_commit(v, parts[i]));
		now = view_describe(v, 0);
		if (!describe_same(view, now))
			fail_msg("a commit of %s", parts[i]);
		kernel_forget_all(v);
		view_check(v);
		view_undo(v);
		undone = view_describe(v, 0);
		if (!describe_same(view, undone))
			fail_msg("the undo of a commit of %s", parts[i]);
		assert_true(view_commit(v, parts[i]));
		assert_true(view_commit(v, NULL));
		check_changes(v, "");
		g_free(now);
		now = view_describe(v, 0);
		if (!describe_same(view, now))
			fail_msg("a commit of the rest after %s", parts[i]);
	}
}

/* At the place where the one directory would go there is still what the other had, as that was not committed as deleted. */
static void test_commit_of_a_part_that_leaves_the_place_taken(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_dir(v, "a/sub");
	host_dir(v, "b");
	assert_int_equal(view_rename(v, "a", "b", RENAME_EXCHANGE), 0);
	check_part(v, "b/sub", "D a/sub\n");
}

/* A file of two names that moved by one of them. */
static void test_commit_of_a_part_of_hard_links(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_run(v, "echo h >h1; ln h1 h2");
	view_ino(v, "h2");
	assert_int_equal(view_rename(v, "h1", "c", 0), 0);
	check_part(v, "h1", "A c\n");
	check_part(v, "c", "D h1\n");
}

/* After an undo, what the commit wrote may be shown elsewhere, too. */
/* What the commit of one name did to the file is no change of the owner's to the commits of the others. */
static void test_commit_of_hard_links_one_by_one(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *c = host_path(v, "c"), *x = host_path(v, "x"), *d = host_path(v, "d");
	struct stat own, moved, kept;

	(void)state;
	host_run(v, "echo h >a; ln a b; ln a c; ln a d; ln a gone; echo x >x");
	for (const char *name = "abcd"; *name; name++)
		assert_int_not_equal(view_ino(v, (char[]){ *name, '\0' }), 0);
	assert_int_equal(view_chmod(v, "a", 0600), 0);
	assert_int_equal(view_unlink(v, "gone"), 0);
	assert_int_equal(view_text(v, "new", "own\n"), 0);
	assert_int_equal(view_rename(v, "new", "c", 0), 0);
	assert_int_equal(view_rename(v, "b", "x", 0), 0);
	assert_true(view_commit(v, "a"));
	check_changes(v, "D b\nD gone\nM c\nM x\n");
	assert_true(view_commit(v, "gone"));
	assert_true(view_commit(v, "c"));
	assert_true(view_commit(v, "x b"));
	check_changes(v, "");
	assert_int_equal(stat(c, &own) | stat(x, &moved) | stat(d, &kept), 0);
	assert_int_equal(own.st_mode & 07777, 0644);
	assert_int_equal(moved.st_mode & 07777, 0600);
	assert_int_equal(moved.st_ino, kept.st_ino);
	view_check(v);
}

static void test_undo_after_a_committed_file_moved(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "d/f", "f");
	host_text(v, "g", "g");
	assert_int_equal(view_rename(v, "d", "e", 0), 0);
	assert_int_equal(view_text(v, "g", "changed"), 0);
	assert_true(view_commit(v, NULL));
	assert_int_equal(view_rename(v, "e/f", "f", 0), 0);
	assert_int_equal(view_rename(v, "g", "h", 0), 0);
	view_undo(v);
	check_text(v, "f", "f");
	check_text(v, "h", "changed");
	check_list(v, "", "e f h");
	check_list(v, "e", "");
	kernel_forget_all(v);
	view_check(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settle),
		cmocka_unit_test(test_settle_that_is_told_twice),
		cmocka_unit_test(test_settle_of_a_file_with_two_names),
		cmocka_unit_test(test_settle_of_a_name_that_was_followed),
		cmocka_unit_test(test_settle_of_exchanged_directories),
		cmocka_unit_test(test_deleted_during_a_commit),
		cmocka_unit_test(test_deleted_while_somebody_reads),
		cmocka_unit_test(test_deleted_while_somebody_read),
		cmocka_unit_test(test_settle_keeps_later_changes),
		cmocka_unit_test(test_settle_of_a_part_of_a_renamed_directory),
		cmocka_unit_test(test_commit_of_a_file_over_another_keeps_xattrs),
		cmocka_unit_test(test_commit_of_a_directory_over_a_symlink),
		cmocka_unit_test(test_alike_directories_that_are_exchanged),
		cmocka_unit_test(test_alike_directories_that_are_renamed_in_a_ring),
		cmocka_unit_test(test_alike_directories_with_rows_in_them),
		cmocka_unit_test(test_equal_objects_that_are_exchanged),
		cmocka_unit_test(test_settle_of_what_leaves_a_moved_directory),
		cmocka_unit_test(test_settle_keeps_numbers),
		cmocka_unit_test(test_settle_of_a_directory_that_was_removed_since),
		cmocka_unit_test(test_undo_is_not_seen),
		cmocka_unit_test(test_undo_is_not_seen_without_rows),
		cmocka_unit_test(test_undo_of_what_was_changed_since_is_not_seen),
		cmocka_unit_test(test_undo_of_a_directory_that_was_removed_since),
		cmocka_unit_test(test_undo_that_is_told_twice),
		cmocka_unit_test(test_deleted_between_the_halves_of_an_undo),
		cmocka_unit_test(test_undo_of_what_was_moved_and_deleted_since),
		cmocka_unit_test(test_commit_of_half_an_exchange),
		cmocka_unit_test(test_commit_of_half_a_rename),
		cmocka_unit_test(test_commit_of_what_took_the_place),
		cmocka_unit_test(test_commit_of_parts_of_exchanged_directories),
		cmocka_unit_test(test_commit_of_a_part_that_leaves_the_place_taken),
		cmocka_unit_test(test_commit_of_a_part_of_hard_links),
		cmocka_unit_test(test_commit_of_hard_links_one_by_one),
		cmocka_unit_test(test_undo_after_a_committed_file_moved),
	};

	umask(022);
	return cmocka_run_group_tests_name("settle", tests, NULL, NULL);
}
