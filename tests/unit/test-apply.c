/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "applied.h"
#include "snapshot/journal.h"
#include "snapshot/place.h"

static int setup(void **state)
{
	*state = layered_new();
	return 0;
}

static int teardown(void **state)
{
	boundary_hook = NULL;
	layered_free(*state);
	return 0;
}

static struct stat host_stat(struct layered *l, const char *path)
{
	g_autofree char *full = host_at(l, path);
	struct stat st = { 0 };

	if (lstat(full, &st) < 0)
		st.st_mode = 0;
	return st;
}

static void host_chmod(struct layered *l, const char *path, mode_t mode)
{
	g_autofree char *full = host_at(l, path);

	assert_int_equal(chmod(full, mode), 0);
}

static void host_remove(struct layered *l, const char *path)
{
	g_autofree char *full = host_at(l, path);

	assert_int_equal(remove(full), 0);
}

static void host_rename(struct layered *l, const char *from, const char *to)
{
	g_autofree char *a = host_at(l, from), *b = host_at(l, to);

	assert_int_equal(rename(a, b), 0);
}

static void assert_host(struct layered *l, const char *path, const char *want)
{
	g_autofree char *got = host_read(l, path);

	if (want)
		assert_non_null(got);
	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
}

static void assert_refused(struct layered *l, const char *want)
{
	g_autofree char *got = commit_refused(l);

	assert_string_equal(got, want);
}

/* What arrives */

static void test_everything_arrives(void **state)
{
	struct layered *l = *state;
	struct apply_result r;

	scene_host(l);
	tick();
	scene_view(l);
	commit_ok(l, &r);
	assert_non_null(r.id);
	assert_int_equal(r.notes->len, 0);
	assert_true(host_stat(l, "l1").st_ino == host_stat(l, "l2").st_ino);
	assert_false(host_stat(l, "h1").st_ino == host_stat(l, "h2").st_ino);
	assert_host(l, "h2", "linked\n");
	apply_result_clear(&r);
}

static void test_nothing_to_do(void **state)
{
	struct layered *l = *state;
	struct apply_result r;

	host_text(l, "a", "a\n");
	commit_ok(l, &r);
	assert_null(r.id);
	assert_int_equal(r.paths->len, 0);
	apply_result_clear(&r);
}

static void test_moved_files_keep_inodes(void **state)
{
	struct layered *l = *state;
	struct stat before;

	host_text(l, "d/f", "f\n");
	before = host_stat(l, "d/f");
	tick();
	view_rename(l, "d", "e");
	commit_ok(l, NULL);
	assert_true(host_stat(l, "e/f").st_ino == before.st_ino);
	assert_int_equal(host_stat(l, "d").st_mode, 0);
}

static void test_new_name_of_old_file_is_a_link(void **state)
{
	struct layered *l = *state;

	host_text(l, "x", "x\n");
	view_hardlink(l, "x", "y");
	commit_ok(l, NULL);
	assert_true(host_stat(l, "x").st_ino == host_stat(l, "y").st_ino);
}

static void test_times_and_modes_are_exact(void **state)
{
	struct layered *l = *state;
	g_autoptr(entry_t) e = NULL;
	struct committing c;
	struct stat st;
	struct apply_result r = { 0 };
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;

	view_text(l, "suid", "s\n");
	view_chmod(l, "suid", 06711);
	view_mkdir(l, "ro");
	view_text(l, "ro/f", "f\n");
	view_chmod(l, "ro", 0555);
	committing_init(&c, l, NULL);
	assert_int_equal(tree_lookup_path(c.to, "ro", &e), 0);
	assert_int_equal(apply_changes(&c.job, &r, &conflicts, &error), 0);
	assert_null(conflicts);
	st = host_stat(l, "suid");
	assert_int_equal(st.st_mode & 07777, 06711);
	st = host_stat(l, "ro");
	assert_int_equal(st.st_mode & 07777, 0555);
	assert_true(nsec_from_timespec(st.st_mtim) == e->attr.mtime);
	host_chmod(l, "ro", 0755);
	apply_result_clear(&r);
	committing_clear(&c);
}

static void test_sparse_stays_sparse(void **state)
{
	struct layered *l = *state;
	g_autofree char *full = host_at(l, "sparse");
	g_autofree char *dest = NULL;
	int fd;

	host_text(l, "sparse", "");
	host_text(l, "dest", "x\n");
	fd = open(full, O_WRONLY);
	assert_int_equal(pwrite(fd, "x", 1, 8 << 20), 1);
	close(fd);
	tick();
	/* The destination exists, so it is a copy and not a move. */
	view_remove(l, "dest");
	view_rename(l, "sparse", "dest");
	commit_ok(l, NULL);
	assert_int_equal(host_stat(l, "dest").st_size, (8 << 20) + 1);
	assert_true(host_stat(l, "dest").st_blocks < 100);
}

static void test_paths_beyond_path_max(void **state)
{
	struct layered *l = *state;
	GString *path = g_string_new("d");
	g_autofree char *name = g_strnfill(200, 'n');
	struct committing c;
	struct apply_result r = { 0 };
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	struct fingerprint print;

	view_mkdir(l, "d");
	for (int i = 0; i < 25; i++) {
		g_string_append_printf(path, "/%s", name);
		view_mkdir(l, path->str);
	}
	g_string_append(path, "/f");
	view_text(l, path->str, "deep\n");
	committing_init(&c, l, NULL);
	assert_int_equal(apply_changes(&c.job, &r, &conflicts, &error), 0);
	assert_int_equal(place_stat(lower_root_fd(l->lower), path->str, &print), 0);
	assert_int_equal(print.attr.size, 5);
	assert_int_equal(apply_finish(l->store, r.id, &error), 0);
	apply_result_clear(&r);
	/* Also back again. */
	assert_int_equal(apply_undo(l->store, l->lower, NULL, NULL, &r, &conflicts, &error), 0);
	assert_int_equal(place_stat(lower_root_fd(l->lower), "d", &print), 0);
	assert_int_equal(print.attr.mode, 0);
	apply_result_clear(&r);
	committing_clear(&c);
	g_string_free(path, TRUE);
}

static void test_only_the_paths_asked_for(void **state)
{
	struct layered *l = *state;
	const char *const paths[] = { "new/sub/f", NULL };
	struct committing c;
	struct apply_result r = { 0 };
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;

	view_mkdir(l, "new");
	view_mkdir(l, "new/sub");
	view_chmod(l, "new/sub", 0750);
	view_text(l, "new/sub/f", "f\n");
	view_text(l, "new/other", "o\n");
	committing_init(&c, l, paths);
	assert_int_equal(apply_changes(&c.job, &r, &conflicts, &error), 0);
	assert_host(l, "new/sub/f", "f\n");
	assert_host(l, "new/other", NULL);
	assert_int_equal(host_stat(l, "new/sub").st_mode & 07777, 0750);
	assert_int_equal(r.paths->len, 3);
	apply_result_clear(&r);
	committing_clear(&c);
}

static void test_owner_of_somebody_else(void **state)
{
	struct layered *l = *state;

	if (geteuid() != 0)
		skip();
	host_text(l, "f", "f\n");
	view_chown(l, "f", 12345);
	view_text(l, "g", "g\n");
	view_chown(l, "g", 54321);
	commit_ok(l, NULL);
	assert_int_equal(host_stat(l, "f").st_uid, 12345);
	assert_int_equal(host_stat(l, "g").st_gid, 54321);
}

/* What the owner did meanwhile */

static void test_owners_other_files_stay(void **state)
{
	struct layered *l = *state;
	struct committing c;
	struct apply_result r = { 0 };
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;

	host_text(l, "d/a", "base\n");
	host_text(l, "d/o", "base\n");
	host_text(l, "d/del", "base\n");
	view_text(l, "d/a", "agent\n");
	view_text(l, "d/an", "agent\n");
	tick();
	host_text(l, "d/o", "owner\n");
	host_text(l, "d/on", "owner\n");
	host_remove(l, "d/del");
	committing_init(&c, l, NULL);
	assert_int_equal(apply_changes(&c.job, &r, &conflicts, &error), 0);
	assert_null(conflicts);
	assert_host(l, "d/a", "agent\n");
	assert_host(l, "d/an", "agent\n");
	assert_host(l, "d/o", "owner\n");
	assert_host(l, "d/on", "owner\n");
	assert_host(l, "d/del", NULL);
	apply_result_clear(&r);
	committing_clear(&c);
}

static void test_conflict_content(void **state)
{
	struct layered *l = *state;

	host_text(l, "both", "base\n");
	host_text(l, "other", "base\n");
	view_text(l, "both", "agent\n");
	view_text(l, "other", "agent\n");
	tick();
	host_text(l, "both", "owner\n");
	assert_refused(l, "content both\n");
}

static void test_conflict_type(void **state)
{
	struct layered *l = *state;

	host_text(l, "f", "base\n");
	host_text(l, "d/x", "x\n");
	view_text(l, "f", "agent\n");
	view_chmod(l, "d", 0700);
	host_remove(l, "f");
	host_symlink(l, "f", "/etc/passwd");
	host_rename(l, "d", "e");
	host_text(l, "d", "a file\n");
	assert_refused(l, "type d\ntype f\n");
}

static void test_conflict_exists(void **state)
{
	struct layered *l = *state;

	view_text(l, "new", "agent\n");
	view_text(l, "same", "same\n");
	view_mkdir(l, "newdir");
	view_text(l, "newdir/a", "a\n");
	host_text(l, "new", "owner\n");
	host_text(l, "same", "same\n");
	host_mkdir(l, "newdir");
	assert_refused(l, "exists new\n");
	host_remove(l, "new");
	assert_refused(l, "");
	assert_host(l, "newdir/a", "a\n");
}

static void test_conflict_missing(void **state)
{
	struct layered *l = *state;

	host_text(l, "f", "base\n");
	host_text(l, "m", "base\n");
	host_text(l, "r", "base\n");
	view_text(l, "f", "agent\n");
	view_chmod(l, "m", 0755);
	host_remove(l, "f");
	host_remove(l, "m");
	/* A file that shows the workspace's own bytes is gone with it: only what the sandbox holds itself can be missing. */
	assert_refused(l, "missing f\n");
}

static void test_conflict_parent(void **state)
{
	struct layered *l = *state;
	g_autofree char *outside = g_build_filename(l->dir, "outside", NULL);
	g_autofree char *victim = g_build_filename(outside, "f", NULL);
	g_autofree char *bytes = NULL, *deep = NULL, *sub = g_build_filename(outside, "sub", NULL);
	g_autofree char *outside2 = g_build_filename(l->dir, "outside2", NULL), *sub2 = g_build_filename(outside2, "sub", NULL);
	g_autofree char *victim2 = g_build_filename(sub2, "f", NULL);

	assert_int_equal(mkdir(outside, 0755), 0);
	assert_int_equal(g_mkdir_with_parents(sub2, 0755), 0);
	assert_true(g_file_set_contents(victim2, "victim\n", -1, NULL));
	host_text(l, "z/sub/f", "base\n");
	assert_true(g_file_set_contents(victim, "victim\n", -1, NULL));
	host_text(l, "d/f", "base\n");
	host_text(l, "g", "base\n");
	host_text(l, "gone/f", "base\n");
	host_mkdir(l, "e");
	view_text(l, "d/f", "agent\n");
	view_text(l, "g", "agent\n");
	view_text(l, "z/sub/f", "agent\n");
	view_text(l, "z/sub/new", "agent\n");
	view_text(l, "gone/new", "agent\n");
	view_mkdir(l, "e/sub");
	view_text(l, "e/sub/new", "agent\n");
	host_rename(l, "d", "d.host");
	host_symlink(l, "d", outside);
	host_rename(l, "z", "z.host");
	host_symlink(l, "z", outside2);
	host_remove(l, "g");
	host_symlink(l, "g", victim);
	host_remove(l, "e");
	host_symlink(l, "e", outside);
	host_remove(l, "gone/f");
	host_remove(l, "gone");
	assert_refused(l, "type d\nparent d/f\ntype e\nparent e/sub\nparent e/sub/new\ntype g\nmissing gone\nparent gone/new\n"
			  "type z\nparent z/sub\nparent z/sub/f\nparent z/sub/new\n");
	assert_true(g_file_get_contents(victim, &bytes, NULL, NULL));
	assert_string_equal(bytes, "victim\n");
	assert_true(g_file_get_contents(victim2, &deep, NULL, NULL));
	assert_string_equal(deep, "victim\n");
	assert_false(g_file_test(sub, G_FILE_TEST_EXISTS));
}

static void test_touched_only_is_no_conflict(void **state)
{
	struct layered *l = *state;
	g_autofree char *full = host_at(l, "f");
	struct origin o = { 0 };

	host_text(l, "f", "base\n");
	host_text(l, "big", "base\n");
	view_text(l, "f", "agent\n");
	/* As the view records it when it read the file whole. */
	{
		g_autoptr(tree_t) live = tree_open(l->store, l->lower, EPOCH_LIVE);
		g_autoptr(tree_t) lower = tree_open(l->store, l->lower, TREE_LOWER);
		g_autoptr(entry_t) e = NULL, base = NULL;
		uint8_t sha256[32];

		assert_int_equal(tree_lookup_path(live, "f", &e), 0);
		assert_int_equal(tree_lookup_path(lower, "f", &base), 0);
		assert_int_equal(tree_hash(lower, base, sha256), 0);
		assert_int_equal(store_origin_set_sha256(l->store, e->covers, sha256), 0);
	}
	tick();
	host_text(l, "f", "base\n"); /* another inode, other times, the same bytes */
	assert_refused(l, "");
	assert_host(l, "f", "agent\n");
	origin_clear(&o);
}

static void test_mode_and_content_merge(void **state)
{
	struct layered *l = *state;

	host_text(l, "owner-mode", "base\n");
	host_text(l, "agent-mode", "base\n");
	host_text(l, "same-mode", "base\n");
	view_text(l, "owner-mode", "agent\n");
	view_chmod(l, "agent-mode", 0755);
	view_text(l, "same-mode", "agent\n");
	view_chmod(l, "same-mode", 0600);
	tick();
	host_chmod(l, "owner-mode", 0755);
	host_text(l, "agent-mode", "owner\n");
	host_chmod(l, "same-mode", 0600);
	assert_refused(l, "");
	assert_host(l, "owner-mode", "agent\n");
	assert_int_equal(host_stat(l, "owner-mode").st_mode & 07777, 0755);
	assert_host(l, "agent-mode", "owner\n");
	assert_int_equal(host_stat(l, "agent-mode").st_mode & 07777, 0755);
	assert_host(l, "same-mode", "agent\n");
	assert_int_equal(host_stat(l, "same-mode").st_mode & 07777, 0600);
}

static void test_conflict_attributes(void **state)
{
	struct layered *l = *state;

	host_text(l, "m", "base\n");
	host_text(l, "del", "base\n");
	view_chmod(l, "m", 0755);
	view_remove(l, "del");
	tick();
	host_chmod(l, "m", 0600);
	host_chmod(l, "del", 0600);
	assert_refused(l, "attributes del\nattributes m\n");
}

/* Deleting */

static void test_deleted_tree_with_owners_change(void **state)
{
	struct layered *l = *state;

	host_text(l, "d/a", "a\n");
	host_text(l, "d/b/c", "c\n");
	tick();
	view_remove(l, "d");
	tick();
	host_text(l, "d/b/c", "owner\n");
	host_text(l, "d/b/new", "owner\n");
	assert_refused(l, "content d/b/c\ncontent d/b/new\n");
}

static bool hide_env(const char *path, const char *lower, bool is_dir, void *user)
{
	(void)lower;
	(void)is_dir;
	(void)user;
	return !g_str_has_suffix(path, ".env");
}

static void test_hidden_entries_keep_their_directory(void **state)
{
	struct layered *l = *state;
	struct change_options options = { .filter = hide_env };
	struct committing c;
	struct apply_result r = { 0 };
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;

	host_text(l, "d/sub/.env", "secret\n");
	host_text(l, "d/sub/f", "f\n");
	host_text(l, "d/g", "g\n");
	host_text(l, "t/.env", "secret\n");
	tick();
	view_remove(l, "d");
	committing_init(&c, l, NULL);
	g_ptr_array_unref(c.job.changes);
	c.job.changes = layered_changes(l, TREE_LOWER, c.job.epoch, &options);
	assert_int_equal(apply_changes(&c.job, &r, &conflicts, &error), 0);
	assert_null(conflicts);
	assert_host(l, "d/sub/.env", "secret\n");
	assert_host(l, "d/sub/f", NULL);
	assert_host(l, "d/g", NULL);
	assert_int_equal(r.notes->len, 1);
	assert_non_null(strstr(g_ptr_array_index(r.notes, 0), "holds 1 entry hidden"));
	apply_finish(l->store, r.id, &error);
	apply_result_clear(&r);
	committing_clear(&c);
	/* A file in its place would take the hidden one along. */
	tick();
	view_remove(l, "t");
	view_text(l, "t", "file\n");
	committing_init(&c, l, NULL);
	g_ptr_array_unref(c.job.changes);
	c.job.changes = layered_changes(l, TREE_LOWER, c.job.epoch, &options);
	assert_int_equal(apply_changes(&c.job, &r, &conflicts, &error), 0);
	assert_non_null(conflicts);
	assert_int_equal(((struct conflict *)g_ptr_array_index(conflicts, 0))->kind, CONFLICT_TYPE);
	assert_host(l, "t/.env", "secret\n");
	committing_clear(&c);
}

static void test_deleted_on_both_sides(void **state)
{
	struct layered *l = *state;

	host_text(l, "f", "f\n");
	host_text(l, "d/g", "g\n");
	tick();
	view_remove(l, "f");
	view_remove(l, "d");
	host_remove(l, "f");
	assert_refused(l, "");
	assert_int_equal(host_stat(l, "d").st_mode, 0);
}

/* Deletes as the view does it: the name keeps the record of its first touch. */
static void remove_keeping_record(struct layered *l, const char *name)
{
	struct name_row row = { 0 };

	assert_int_equal(store_name_get(l->store, EPOCH_LIVE, ROOT_INO, name, &row), 0);
	assert_true(row.covers != 0);
	row.ino = 0;
	assert_int_equal(store_begin(l->store), 0);
	assert_int_equal(store_name_put(l->store, &row), 0);
	assert_int_equal(store_commit(l->store), 0);
	name_row_clear(&row);
}

static void test_own_commit_below_a_deleted_directory(void **state)
{
	struct layered *l = *state;

	host_text(l, "d/a", "a\n");
	host_text(l, "d/b", "b\n");
	host_text(l, "d/m", "m\n");
	tick();
	view_text(l, "d/a", "agent\n");
	view_text(l, "d/n", "agent\n");
	view_chmod(l, "d/m", 0755);
	tick();
	commit_ok(l, NULL);
	/* Those are newer than the record of d, but our own. */
	remove_keeping_record(l, "d");
	assert_refused(l, "");
	assert_int_equal(host_stat(l, "d").st_mode, 0);
}

/* Races: somebody is faster, between the journal and the stroke. */

static struct layered *racer;
static const char *race_at;
static void (*race)(struct layered *l);
static int race_number;

static void race_hook(const char *what)
{
	bool now = race_at ? strcmp(what, race_at) == 0 && race_number-- == 0 : race && host_stat(racer, "tree-gone").st_mode == 0;

	if (race && now) {
		race(racer);
		race = NULL;
	}
}

static void race_edit(struct layered *l)
{
	host_text(l, "z-last", "owner\n");
}

static void race_edit_moved(struct layered *l)
{
	host_text(l, "single", "owner\n");
}

static void race_delete(struct layered *l)
{
	host_text(l, "a-gone", "owner\n");
}

static void race_create(struct layered *l)
{
	host_text(l, "z-new", "owner\n");
}

static void race_symlink(struct layered *l)
{
	host_rename(l, "z-dir", "z-moved");
	host_symlink(l, "z-dir", "/tmp");
}

/* False when the commit was through with @path before the race. */
static bool try_race(struct layered *l, void (*fn)(struct layered *l), const char *at, int number, const char *path)
{
	g_autofree char *before = NULL, *after = NULL, *gone = NULL;
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	struct apply_result r = { 0 };
	struct committing c;

	scene_host(l);
	host_text(l, "z-last", "base\n");
	host_text(l, "z-dir/f", "base\n");
	host_text(l, "a-gone", "base\n");
	tick();
	scene_view(l);
	view_remove(l, "a-gone");
	view_text(l, "z-last", "agent\n");
	view_text(l, "z-new", "agent\n");
	view_text(l, "z-dir/f", "agent\n");
	committing_init(&c, l, NULL);
	racer = l;
	race = NULL;
	race_at = at;
	race_number = number;
	/* The owner's edit alone is what is to be left. */
	before = disk_describe(l->workspace);
	race = fn;
	boundary_hook = race_hook;
	assert_int_equal(apply_changes(&c.job, &r, &conflicts, &error), 0);
	boundary_hook = NULL;
	committing_clear(&c);
	race = NULL;
	if (!conflicts) {
		apply_result_clear(&r);
		return false;
	}
	assert_string_equal(((struct conflict *)g_ptr_array_index(conflicts, 0))->path, path);
	after = disk_describe(l->workspace);
	for (char **line = g_strsplit(before, "\n", -1), **all = line;; line++) {
		if (!*line) {
			g_strfreev(all);
			break;
		}
		if (!g_str_has_prefix(*line, "z-") && !g_str_has_prefix(*line, path))
			assert_non_null(strstr(after, *line));
	}
	assert_host(l, "edit.txt", "one\n");
	return true;
}

static void run_race(struct layered *l, void (*fn)(struct layered *l), const char *at, int number, const char *path)
{
	assert_true(try_race(l, fn, at, number, path));
}

static void test_race_edit(void **state)
{
	run_race(*state, race_edit, "step done", 3, "z-last");
	assert_host(*state, "z-last", "owner\n");
}

static void test_race_create(void **state)
{
	g_autofree char *files = g_build_filename(store_dir(((struct layered *)*state)->store), "commit", "1", "files", NULL);

	run_race(*state, race_create, "step done", 3, "z-new");
	assert_host(*state, "z-new", "owner\n");
	/* Nothing of the owner's is in there, so it goes. */
	assert_false(g_file_test(files, G_FILE_TEST_EXISTS));
}

static void test_race_symlink(void **state)
{
	run_race(*state, race_symlink, "journal written", 0, "z-dir/f");
	assert_host(*state, "z-moved/f", "base\n");
	assert_false(g_file_test("/tmp/f", G_FILE_TEST_EXISTS));
}

/*
 * Also in the last moment, after the path was looked at. Which stroke belongs to the path is found by trying them all: up to that one the
 * commit is taken back, after it the owner's file is a new one. It is never lost.
 */
static void race_at_every_stroke(void (*fn)(struct layered *l), const char *path, const char *again)
{
	int refused = 0, number;

	/* All strokes up to the one of @path, and one more. */
	for (number = 0; refused == number || number < 14; number++) {
		struct layered *l = layered_new();

		if (try_race(l, fn, "stroke", number, path)) {
			assert_int_equal(refused, number);
			assert_host(l, again, NULL);
			refused++;
		}
		assert_host(l, path, "owner\n");
		boundary_hook = NULL;
		layered_free(l);
	}
	assert_true(refused > 0);
}

static void test_race_in_the_last_moment(void **state)
{
	(void)state;
	race_at_every_stroke(race_edit_moved, "single", "dir/single");
	race_at_every_stroke(race_delete, "a-gone", "z-new");
	race_at_every_stroke(race_edit, "z-last", "z-new");
}

static void test_race_before_journal(void **state)
{
	run_race(*state, race_edit, "staged", 0, "z-last");
	assert_host(*state, "z-last", "owner\n");
}

static void test_commit_again_after_a_race(void **state)
{
	struct layered *l = *state;

	/* Backing out changed the ctimes of files below deleted directories: our own doing, and no conflict. */
	tick();
	run_race(l, race_delete, NULL, 0, "a-gone");
	assert_host(l, "tree-gone/b/c", "c\n");
	host_remove(l, "a-gone");
	assert_refused(l, "");
	assert_int_equal(host_stat(l, "tree-gone").st_mode, 0);
}

/* Undo */

static void test_moved_and_changed_into_a_new_directory(void **state)
{
	struct layered *l = *state;

	host_text(l, "f", "f\n");
	view_mkdir(l, "new");
	view_rename(l, "f", "new/f");
	view_chmod(l, "new/f", 0700);
	commit_ok(l, NULL);
}

/* Two levels below what is still a symlink when the commit looks for the last time. */
static void test_a_symlink_becomes_a_tree(void **state)
{
	struct layered *l = *state;

	host_symlink(l, "s", "elsewhere");
	view_remove(l, "s");
	view_mkdir(l, "s");
	view_mkdir(l, "s/a");
	view_mkdir(l, "s/a/b");
	view_text(l, "s/a/b/c", "c\n");
	commit_ok(l, NULL);
}

static void test_undo_is_the_start(void **state)
{
	struct layered *l = *state;
	g_autofree char *start = NULL, *end = NULL;
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	struct apply_result r = { 0 };

	scene_host(l);
	start = disk_describe(l->workspace);
	tick();
	scene_view(l);
	commit_ok(l, &r);
	apply_result_clear(&r);
	assert_int_equal(apply_undo(l->store, l->lower, NULL, NULL, &r, &conflicts, &error), 0);
	assert_null(conflicts);
	assert_true(r.undone);
	end = disk_describe(l->workspace);
	assert_true(describe_same(start, end));
	assert_int_equal(apply_finish(l->store, r.id, &error), 0);
	apply_result_clear(&r);
	assert_int_equal(apply_undo(l->store, l->lower, NULL, NULL, &r, &conflicts, &error), -ENOENT);
}

static void test_undo_refuses_changed_files(void **state)
{
	struct layered *l = *state;
	g_autofree char *before = NULL, *after = NULL;
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	struct apply_result r = { 0 };

	scene_host(l);
	tick();
	scene_view(l);
	commit_ok(l, NULL);
	host_text(l, "edit.txt", "later\n");
	host_text(l, "dir/gone.txt", "again\n");
	before = disk_describe(l->workspace);
	assert_int_equal(apply_undo(l->store, l->lower, "1", NULL, &r, &conflicts, &error), 0);
	assert_non_null(conflicts);
	assert_int_equal(conflicts->len, 2);
	after = disk_describe(l->workspace);
	assert_true(describe_same(before, after));
}

static int view_cannot(const struct apply_result *undone, void *user, GError **error)
{
	assert_true(undone->undone && undone->paths->len > 0);
	++*(int *)user;
	g_set_error_literal(error, STORE_ERROR, STORE_ERROR_NO_SPACE, "the store is full");
	return -ENOSPC;
}

/* A view that could not take over what it shows: the undo was not begun, and can be later. */
static void test_undo_needs_the_view(void **state)
{
	struct layered *l = *state;
	g_autofree char *before = NULL, *after = NULL;
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	struct apply_result r = { 0 };
	int calls = 0;
	const struct undo_view view = { .begins = view_cannot, .user = &calls };

	scene_host(l);
	tick();
	scene_view(l);
	commit_ok(l, NULL);
	before = disk_describe(l->workspace);
	assert_int_equal(apply_undo(l->store, l->lower, NULL, &view, &r, &conflicts, &error), -ENOSPC);
	assert_true(g_error_matches(error, STORE_ERROR, STORE_ERROR_NO_SPACE));
	g_clear_error(&error);
	assert_int_equal(calls, 1);
	after = disk_describe(l->workspace);
	assert_true(describe_same(before, after));
	assert_int_equal(apply_recover(l->store, l->lower, &view, &r, &error), 0);
	assert_null(r.id);
	assert_int_equal(calls, 1);
	assert_int_equal(apply_undo(l->store, l->lower, NULL, NULL, &r, &conflicts, &error), 0);
	assert_true(r.undone);
	apply_result_clear(&r);
}

/* Surroundings */

static void test_one_at_a_time(void **state)
{
	struct layered *l = *state;
	g_autoptr(GError) error = NULL;
	struct apply_result r;
	int fd;

	assert_int_equal(commits_open(l->store, &fd), 0);
	assert_int_equal(apply_recover(l->store, l->lower, NULL, &r, &error), -EBUSY);
	assert_true(g_error_matches(error, STORE_ERROR, STORE_ERROR_BUSY));
	close(fd);
}

static void test_damaged_journal(void **state)
{
	struct layered *l = *state;
	g_autofree char *path = g_build_filename(store_dir(l->store), "commit", "1", "journal", NULL);
	g_autofree char *state_path = g_build_filename(store_dir(l->store), "commit", "1", "state", NULL);
	g_autofree char *text = NULL;
	g_autoptr(GError) error = NULL;
	struct apply_result r;
	gsize size;

	view_text(l, "f", "f\n");
	commit_ok(l, NULL);
	assert_int_equal(unlink(state_path), 0); /* applying again */
	assert_true(g_file_get_contents(path, &text, &size, NULL));
	text[strlen("sbxfs-journal 1\n") + 65] ^= 1; /* in the epoch: still well-formed */
	assert_true(g_file_set_contents(path, text, size, NULL));
	assert_int_equal(apply_recover(l->store, l->lower, NULL, &r, &error), -EUCLEAN);
	g_clear_error(&error);
	text[strlen("sbxfs-journal ")] = '9';
	assert_true(g_file_set_contents(path, text, size, NULL));
	assert_int_equal(apply_recover(l->store, l->lower, NULL, &r, &error), -EPROTO);
}

/* As version 1 had it: without the last field. */
static void make_version_1(const char *path)
{
	const char *type = "(xxa(yubayay(ttxuuuuttxxx)(ttxuuuuttxxx)u(ttxuuuuttxxx)ayay)aayaay)";
	g_autofree char *text = NULL, *sum = NULL, *head = NULL;
	g_autoptr(GBytes) body = NULL, old = NULL;
	g_autoptr(GVariant) v = NULL, without = NULL;
	GVariant *fields[4];
	gsize size, offset = strlen("sbxfs-journal 2\n") + 65;
	GString *file;

	assert_true(g_file_get_contents(path, &text, &size, NULL));
	body = g_bytes_new(text + offset, size - offset);
	v = g_variant_ref_sink(g_variant_new_from_bytes(G_VARIANT_TYPE(type), body, FALSE));
	for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
		fields[i] = g_variant_get_child_value(v, i);
	without = g_variant_ref_sink(g_variant_new_tuple(fields, G_N_ELEMENTS(fields)));
	for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
		g_variant_unref(fields[i]);
	old = g_variant_get_data_as_bytes(without);
	sum = g_compute_checksum_for_bytes(G_CHECKSUM_SHA256, old);
	head = g_strdup_printf("sbxfs-journal 1\n%s\n", sum);
	file = g_string_new(head);
	g_string_append_len(file, g_bytes_get_data(old, NULL), g_bytes_get_size(old));
	assert_true(g_file_set_contents(path, file->str, file->len, NULL));
	g_string_free(file, TRUE);
}

/* Whoever recovers a commit has to know which files keep their changes in the view. */
static void test_partial_paths_are_recovered(void **state)
{
	struct layered *l = *state;
	g_autofree char *path = g_build_filename(store_dir(l->store), "commit", "1", "journal", NULL);
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	struct apply_result r = { 0 };
	struct committing c;

	host_text(l, "f", "f\n");
	host_text(l, "g", "g\n");
	tick();
	view_text(l, "f", "F\n");
	view_text(l, "g", "G\n");
	committing_init(&c, l, NULL);
	((struct change *)c.job.changes->pdata[0])->partial = true;
	assert_int_equal(apply_changes(&c.job, &r, &conflicts, &error), 0);
	assert_int_equal(r.partial->len, 1);
	apply_result_clear(&r);
	committing_clear(&c);
	assert_int_equal(apply_recover(l->store, l->lower, NULL, &r, &error), 0);
	assert_int_equal(r.paths->len, 2);
	assert_int_equal(r.partial->len, 1);
	assert_string_equal(r.partial->pdata[0], "f");
	apply_result_clear(&r);
	make_version_1(path);
	assert_int_equal(apply_recover(l->store, l->lower, NULL, &r, &error), 0);
	assert_int_equal(r.paths->len, 2);
	assert_int_equal(r.partial->len, 0);
	apply_result_clear(&r);
}

/* Runs @fn in a process of its own, as it changes the mounts. */
static void in_child(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("needs to be root: mounts\n");
		skip();
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define REQUIRE(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			_exit(1); \
		} \
	} while (0)

static void read_only_workspace(void)
{
	struct layered *l = layered_new();
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	struct apply_result r = { 0 };
	struct committing c;

	if (!host_on_tmpfs(l))
		_exit(77);
	host_text(l, "f", "base\n");
	view_text(l, "f", "agent\n");
	REQUIRE(mount(NULL, l->workspace, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
	committing_init(&c, l, NULL);
	REQUIRE(apply_changes(&c.job, &r, &conflicts, &error) == -EROFS);
	REQUIRE(strstr(error->message, "read-only"));
	committing_clear(&c);
	umount2(l->workspace, MNT_DETACH);
	layered_free(l);
}

static void test_read_only_workspace(void **state)
{
	(void)state;
	in_child(read_only_workspace);
}

static void other_file_system(void)
{
	struct layered *l = layered_new();
	g_autofree char *start = NULL, *end = NULL;
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	struct apply_result r = { 0 };

	if (!host_on_tmpfs(l))
		_exit(77);
	scene_host(l);
	start = disk_describe(l->workspace);
	tick();
	scene_view(l);
	commit_ok(l, NULL);
	REQUIRE(apply_undo(l->store, l->lower, NULL, NULL, &r, &conflicts, &error) == 0);
	REQUIRE(!conflicts);
	end = disk_describe(l->workspace);
	REQUIRE(describe_same(start, end));
	apply_result_clear(&r);
	umount2(l->workspace, MNT_DETACH);
	layered_free(l);
}

static void test_other_file_system(void **state)
{
	(void)state;
	in_child(other_file_system);
}

/* What one step does to a file changes the times of its other names, which are to be changed as well. */
static void names_on_other_file_system(void)
{
	struct layered *l = layered_new();

	if (!host_on_tmpfs(l))
		_exit(77);
	host_text(l, "changed", "base\n");
	host_hardlink(l, "changed", "changed-too");
	host_text(l, "gone", "base\n");
	host_hardlink(l, "gone", "gone-too");
	tick();
	view_text(l, "changed", "agent\n");
	view_remove(l, "changed-too");
	view_remove(l, "gone");
	view_remove(l, "gone-too");
	commit_ok(l, NULL);
	umount2(l->workspace, MNT_DETACH);
	layered_free(l);
}

static void test_names_on_other_file_system(void **state)
{
	(void)state;
	in_child(names_on_other_file_system);
}

/* What was put back has other inodes; it is no change of the owner's. */
static void race_on_other_file_system(void)
{
	struct layered *l = layered_new();

	if (!host_on_tmpfs(l))
		_exit(77);
	host_text(l, "a-file", "base\n");
	host_symlink(l, "a-link", "base");
	host_text(l, "a-text", "base\n");
	tick();
	view_remove(l, "a-file");
	view_symlink(l, "a-file", "agent");
	view_remove(l, "a-link");
	view_symlink(l, "a-link", "agent");
	view_remove(l, "a-text");
	view_mkdir(l, "a-text");
	view_text(l, "a-text/in", "agent\n");
	run_race(l, race_delete, NULL, 0, "a-gone");
	host_remove(l, "a-gone");
	assert_refused(l, "");
	umount2(l->workspace, MNT_DETACH);
	layered_free(l);
}

static void test_race_on_other_file_system(void **state)
{
	(void)state;
	in_child(race_on_other_file_system);
}

static void full_file_system(void)
{
	struct layered *l = layered_new();
	g_autofree char *start = NULL, *end = NULL, *big = g_malloc0(3 << 20);
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	struct apply_result r = { 0 };
	struct committing c;

	if (!host_on_tmpfs(l))
		_exit(77);
	REQUIRE(mount(NULL, l->workspace, NULL, MS_REMOUNT, "size=2m") == 0);
	memset(big, 'b', 3 << 20);
	host_text(l, "a", "base\n");
	host_text(l, "gone", "base\n");
	start = disk_describe(l->workspace);
	view_text(l, "a", "agent\n");
	view_write(l, "b", big, 3 << 20);
	view_remove(l, "gone");
	committing_init(&c, l, NULL);
	REQUIRE(apply_changes(&c.job, &r, &conflicts, &error) == -ENOSPC);
	REQUIRE(g_error_matches(error, STORE_ERROR, STORE_ERROR_NO_SPACE));
	end = disk_describe(l->workspace);
	REQUIRE(describe_same(start, end));
	committing_clear(&c);
	umount2(l->workspace, MNT_DETACH);
	layered_free(l);
}

static void test_full_file_system(void **state)
{
	(void)state;
	in_child(full_file_system);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_on_other_file_system),
		cmocka_unit_test(test_race_on_other_file_system),
		TEST(test_everything_arrives),
		TEST(test_nothing_to_do),
		TEST(test_moved_files_keep_inodes),
		TEST(test_new_name_of_old_file_is_a_link),
		TEST(test_times_and_modes_are_exact),
		TEST(test_sparse_stays_sparse),
		TEST(test_paths_beyond_path_max),
		TEST(test_only_the_paths_asked_for),
		TEST(test_owner_of_somebody_else),
		TEST(test_owners_other_files_stay),
		TEST(test_conflict_content),
		TEST(test_conflict_type),
		TEST(test_conflict_exists),
		TEST(test_conflict_missing),
		TEST(test_conflict_parent),
		TEST(test_touched_only_is_no_conflict),
		TEST(test_mode_and_content_merge),
		TEST(test_conflict_attributes),
		TEST(test_deleted_tree_with_owners_change),
		TEST(test_hidden_entries_keep_their_directory),
		TEST(test_deleted_on_both_sides),
		TEST(test_own_commit_below_a_deleted_directory),
		TEST(test_race_edit),
		TEST(test_race_create),
		TEST(test_race_symlink),
		cmocka_unit_test(test_race_in_the_last_moment),
		TEST(test_race_before_journal),
		TEST(test_commit_again_after_a_race),
		TEST(test_moved_and_changed_into_a_new_directory),
		TEST(test_a_symlink_becomes_a_tree),
		TEST(test_partial_paths_are_recovered),
		TEST(test_undo_is_the_start),
		TEST(test_undo_refuses_changed_files),
		TEST(test_undo_needs_the_view),
		TEST(test_one_at_a_time),
		TEST(test_damaged_journal),
		cmocka_unit_test(test_read_only_workspace),
		cmocka_unit_test(test_other_file_system),
		cmocka_unit_test(test_full_file_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
