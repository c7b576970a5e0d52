/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "viewed.h"

#define ROUNDS 60

static void check_disk(struct viewed *v, const char *path, const char *want)
{
	g_autofree char *full = host_path(v, path), *got = NULL;

	g_file_get_contents(full, &got, NULL, NULL);
	assert_string_equal(got ? got : "(none)", want);
}

static void check_changes(struct viewed *v, const char *want)
{
	g_autofree char *got = view_changes(v);

	assert_string_equal(got, want);
}

/* The offers, each as its path and the number of its parts. */
static void list_offers(struct selection *s, void *user)
{
	for (guint i = 0; i < selection_count(s); i++) {
		const struct offer *o = selection_at(s, i);

		assert_int_equal(selection_load(s, i, NULL), 0);
		g_string_append_printf(user, "%s %u%s\n", o->change->path, o->hunks ? hunks_count(o->hunks) : 0,
				       o->attributes ? "+" : "");
	}
}

static void check_offers(struct viewed *v, const char *want)
{
	g_autoptr(GString) got = g_string_new(NULL);
	struct committing *c = view_commit_begin(v, NULL);

	view_commit_choose(c, list_offers, got);
	assert_true(view_commit_end(v, c)); /* of nothing */
	assert_string_equal(got->str, want);
}

static struct offer *find_offer(struct selection *s, const char *path, guint *ret_number)
{
	for (guint i = 0; i < selection_count(s); i++) {
		if (strcmp(selection_at(s, i)->change->path, path) != 0)
			continue;
		assert_int_equal(selection_load(s, i, NULL), 0);
		if (ret_number)
			*ret_number = i;
		return selection_at(s, i);
	}
	fail_msg("%s is not on offer", path);
	return NULL;
}

/* "path", "path:0" for a hunk, "path:+" for the attributes; separated by blanks. */
static void take(struct selection *s, void *user)
{
	g_auto(GStrv) words = g_strsplit(user, " ", -1);

	for (char **word = words; *word; word++) {
		char *part = strchr(*word, ':');
		struct offer *o;
		guint i;

		if (part)
			*part++ = '\0';
		o = find_offer(s, *word, &i);
		if (!part)
			selection_choose(s, i, CHOICE_TAKEN);
		else if (*part == '+')
			o->attributes_choice = CHOICE_TAKEN;
		else
			hunks_choose(o->hunks, *part - '0', CHOICE_TAKEN);
	}
}

static void commit_chosen(struct viewed *v, const char *what)
{
	g_autofree char *words = g_strdup(what), *before = view_describe(v, DESCRIBE_INO), *after = NULL;
	struct committing *c = view_commit_begin(v, NULL);

	view_commit_choose(c, take, words);
	assert_true(view_commit_end(v, c));
	after = view_describe(v, DESCRIBE_INO);
	assert_true(describe_same(before, after));
	view_check(v);
}

static char *numbers(const char *two, const char *eighteen)
{
	GString *s = g_string_new(NULL);

	for (int i = 1; i <= 20; i++)
		if (i == 2 || i == 18)
			g_string_append_printf(s, "%s\n", i == 2 ? two : eighteen);
		else
			g_string_append_printf(s, "%d\n", i);
	return g_string_free(s, FALSE);
}

/* A text of 20 lines in the workspace, of which the view changes two. */
static void edit_numbers(struct viewed *v, const char *path)
{
	g_autofree char *old = numbers("2", "18"), *new = numbers("two", "eighteen");

	host_text(v, path, old);
	assert_int_equal(view_text(v, path, new), 0);
}

static void test_offers(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "gone/a", "a\n");
	host_text(v, "gone/sub/b", "b\n");
	host_text(v, "file", "f\n");
	host_text(v, "moved", "m\n");
	host_text(v, "kind/inside", "i\n");
	host_text(v, "binary", "b\n");
	host_run(v, "echo h >h1; ln h1 h2; yes line | head -20000 >large; echo s >script");
	edit_numbers(v, "numbers");
	assert_int_equal(view_unlink(v, "gone/a"), 0);
	assert_int_equal(view_unlink(v, "gone/sub/b"), 0);
	assert_int_equal(view_rmdir(v, "gone/sub"), 0);
	assert_int_equal(view_rmdir(v, "gone"), 0);
	assert_int_equal(view_mkdir(v, "new"), 0);
	assert_int_equal(view_mkdir(v, "new/empty"), 0);
	assert_int_equal(view_text(v, "new/n", "n\n"), 0);
	assert_int_equal(view_rename(v, "moved", "new/moved", 0), 0);
	assert_int_equal(view_unlink(v, "kind/inside"), 0);
	assert_int_equal(view_rmdir(v, "kind"), 0);
	assert_int_equal(view_text(v, "kind", "a file now\n"), 0);
	assert_int_equal(view_write(v, "binary", "a\0b", 3, 0), 0);
	assert_int_equal(view_text(v, "h1", "one of two names\n"), 0);
	assert_int_equal(view_append(v, "large", "a page of it\n"), 0);
	assert_int_equal(view_chmod(v, "file", 0600), 0);
	assert_int_equal(view_text(v, "script", "#!/bin/sh\n"), 0);
	assert_int_equal(view_chmod(v, "script", 0755), 0);
	/* Directories follow what is in them, kind/inside follows kind. */
	check_offers(
		v, "gone/a 0\ngone/sub/b 0\nbinary 0\nfile 0\nh1 0\nkind 0\nlarge 0\nnew/empty 0\nnew/moved 0\nnew/n 0\nnumbers 2\n"
		   "script 1+\n");
}

static void test_a_hunk(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *one = numbers("two", "18"), *both = numbers("two", "eighteen"), *none = numbers("2", "18");

	(void)state;
	edit_numbers(v, "d/f");
	commit_chosen(v, "d/f:0");
	check_disk(v, "d/f", one);
	check_changes(v, "M d/f\n");
	viewed_reopen(v);
	check_changes(v, "M d/f\n");
	commit_chosen(v, "d/f:0"); /* the rest has one */
	check_disk(v, "d/f", both);
	check_changes(v, "");
	view_undo(v);
	check_disk(v, "d/f", one);
	view_undo(v);
	check_disk(v, "d/f", none);
	check_changes(v, "M d/f\n");
	view_check(v);
}

static void test_hunks_and_attributes(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *old = numbers("2", "18"), *full = NULL;

	(void)state;
	edit_numbers(v, "f");
	assert_int_equal(view_chmod(v, "f", 0755), 0);
	full = host_path(v, "f");
	commit_chosen(v, "f:+");
	check_disk(v, "f", old);
	assert_true(g_file_test(full, G_FILE_TEST_IS_EXECUTABLE));
	check_changes(v, "M f\n");
	view_undo(v);
	commit_chosen(v, "f:0 f:1");
	check_changes(v, "P f\n");
	commit_chosen(v, "f");
	check_changes(v, "");
}

/* As editors save, the file is another one; what it does not have goes by itself. */
static void test_a_file_saved_by_rename(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *new = numbers("two", "eighteen"), *old = numbers("2", "18"), *one = numbers("2", "eighteen"), *got = NULL;

	(void)state;
	host_text(v, "f", old);
	assert_int_equal(view_text(v, "f.tmp", new), 0);
	assert_int_equal(view_setxattr(v, "f.tmp", "user.own", "1"), 0);
	assert_int_equal(view_rename(v, "f.tmp", "f", 0), 0);
	commit_chosen(v, "f:1");
	check_disk(v, "f", one);
	assert_int_equal(view_getxattr(v, "f", "user.own", &got), 0);
	check_changes(v, "M f\n");
	commit_chosen(v, "f");
	check_changes(v, "");
}

static void test_directories_follow(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);

	(void)state;
	host_text(v, "gone/a", "a\n");
	host_text(v, "gone/b", "b\n");
	assert_int_equal(view_unlink(v, "gone/a"), 0);
	assert_int_equal(view_unlink(v, "gone/b"), 0);
	assert_int_equal(view_rmdir(v, "gone"), 0);
	assert_int_equal(view_mkdir(v, "new"), 0);
	assert_int_equal(view_text(v, "new/a", "a\n"), 0);
	assert_int_equal(view_text(v, "new/b", "b\n"), 0);
	commit_chosen(v, "gone/a new/a");
	check_changes(v, "D gone\nD gone/b\nA new/b\n");
	commit_chosen(v, "gone/b new/b");
	check_changes(v, "");
}

static void refuse_first_hunk(struct selection *s, void *user)
{
	g_autoptr(GPtrArray) refused = NULL;
	struct offer *o = find_offer(s, "f", NULL);

	(void)user;
	hunks_choose(o->hunks, 0, CHOICE_REFUSED);
	refused = selection_refused(s);
	assert_int_equal(refused->len, 0); /* the other one is open */
	g_clear_pointer(&refused, g_ptr_array_unref);
	hunks_choose(o->hunks, 1, CHOICE_TAKEN);
	refused = selection_refused(s);
	assert_int_equal(refused->len, 1);
	assert_string_equal(refused->pdata[0], "f");
}

/* With every hunk decided, the rest can be rolled back after the commit. */
static void test_refused_hunks(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *one = numbers("2", "eighteen"), *got = NULL;
	struct committing *c;

	(void)state;
	edit_numbers(v, "f");
	c = view_commit_begin(v, NULL);
	view_commit_choose(c, refuse_first_hunk, NULL);
	assert_true(view_commit_end(v, c));
	view_rollback(v, 0, "f");
	check_disk(v, "f", one);
	assert_int_equal(view_read(v, "f", &got), 0);
	assert_string_equal(got, one);
	check_changes(v, "");
}

/* The part is made of what the workspace had when it was compared. */
static void test_edits_of_the_owner_are_conflicts(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autofree char *mine = numbers("by the owner", "18"), *old = numbers("2", "18");
	char words[] = "f:1";
	struct committing *c;

	(void)state;
	edit_numbers(v, "f");
	c = view_commit_begin(v, NULL);
	view_commit_choose(c, take, words);
	host_text(v, "f", mine);
	assert_false(view_commit_end(v, c));
	check_disk(v, "f", mine);
	/* And so they are when they come first. */
	c = view_commit_begin(v, NULL);
	view_commit_choose(c, take, words);
	assert_false(view_commit_end(v, c));
	check_disk(v, "f", mine);
	/* Taken back meanwhile, so that the file is what the sandbox knows; but the part is made of the edited one. */
	c = view_commit_begin(v, NULL);
	view_commit_choose(c, take, words);
	host_run(v, "seq 20 >f");
	assert_false(view_commit_end(v, c));
	check_disk(v, "f", old);
	commit_chosen(v, "f:1");
}

/* Random: the workspace gets what was chosen, the view stays, and the rest is what is left */

static GRand *dice;

static char *random_text(const char *like)
{
	g_auto(GStrv) old = g_strsplit(like ? like : "", "\n", -1);
	GString *s = g_string_new(NULL);
	guint n = like ? g_strv_length(old) : (guint)g_rand_int_range(dice, 0, 80);

	for (guint i = 0; i < n; i++) {
		if (like && g_rand_int_range(dice, 0, 12))
			g_string_append_printf(s, "%s\n", old[i]);
		else
			g_string_append_printf(s, "%d%s\n", g_rand_int_range(dice, 0, 30),
					       g_rand_int_range(dice, 0, 4) ? "" : "\r");
	}
	if (s->len && g_rand_int_range(dice, 0, 3) == 0)
		g_string_truncate(s, s->len - 1);
	return g_string_free(s, FALSE);
}

static void random_change(struct viewed *v, int i)
{
	g_autofree char *path = g_strdup_printf("d%d/f%d", i % 3, i), *temporary = g_strdup_printf("d%d/tmp", i % 3);
	g_autofree char *other = g_strdup_printf("new%d/g%d", i % 2, i), *dir = g_strdup_printf("new%d", i % 2);
	g_autofree char *old = random_text(NULL), *new = random_text(old);

	host_text(v, path, old);
	switch (g_rand_int_range(dice, 0, 10)) {
	case 0:
		view_unlink(v, path);
		break;
	case 1:
		view_mkdir(v, dir);
		view_rename(v, path, other, 0);
		break;
	case 2:
		view_mkdir(v, dir);
		view_text(v, other, new);
		break;
	case 3:
		view_text(v, temporary, new);
		view_rename(v, temporary, path, 0);
		break;
	case 4:
		view_text(v, path, new);
		view_chmod(v, path, 0600);
		break;
	default:
		view_text(v, path, new);
	}
}

/* path -> GBytes that the workspace is to have, NULL for one that it is not */
static void choose_randomly(struct selection *s, void *user)
{
	for (guint i = 0; i < selection_count(s); i++) {
		struct offer *o = selection_at(s, i);
		const struct change *c = o->change;

		assert_int_equal(selection_load(s, i, NULL), 0);
		selection_choose(s, i, g_rand_int_range(dice, 0, 2) ? CHOICE_TAKEN : CHOICE_OPEN);
		for (guint k = 0; o->hunks && k < hunks_count(o->hunks); k++)
			if (g_rand_int_range(dice, 0, 2))
				hunks_split(o->hunks, k);
		for (guint k = 0; o->hunks && k < hunks_count(o->hunks); k++)
			hunks_choose(o->hunks, k, g_rand_int_range(dice, 0, 3));
		if (o->hunks)
			g_hash_table_insert(user, g_strdup(c->path), hunks_compose(o->hunks));
	}
}

static void check_composed(struct viewed *v, GHashTable *want)
{
	GHashTableIter iter;
	gpointer path, bytes;

	g_hash_table_iter_init(&iter, want);
	while (g_hash_table_iter_next(&iter, &path, &bytes)) {
		g_autofree char *full = host_path(v, path), *got = NULL;
		gsize size = 0;

		assert_true(g_file_get_contents(full, &got, &size, NULL));
		assert_int_equal(size, g_bytes_get_size(bytes));
		assert_memory_equal(got, size ? g_bytes_get_data(bytes, NULL) : "", size);
	}
}

static void one_round(guint32 seed)
{
	g_autoptr(viewed_t) v = viewed_new(NULL);
	g_autoptr(GHashTable) want = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_bytes_unref);
	g_autofree char *disk = NULL, *view = NULL, *pending = NULL, *disk2 = NULL, *view2 = NULL, *view3 = NULL, *disk3 = NULL;
	struct committing *c;

	dice = g_rand_new_with_seed(seed);
	for (int i = 0; i < 12; i++)
		random_change(v, i);
	disk = disk_describe(v->workspace, 0);
	view = view_describe(v, DESCRIBE_INO);
	pending = view_changes(v);
	c = view_commit_begin(v, NULL);
	view_commit_choose(c, choose_randomly, want);
	assert_true(view_commit_end(v, c));
	check_composed(v, want);
	view2 = view_describe(v, DESCRIBE_INO);
	assert_true(describe_same(view, view2));
	view_check(v);
	if (strcmp(disk, (disk2 = disk_describe(v->workspace, 0))) != 0) {
		view_undo(v);
		disk3 = disk_describe(v->workspace, 0);
		view3 = view_describe(v, 0);
		g_free(g_steal_pointer(&view2));
		view2 = fresh_describe(v, 0);
		assert_true(describe_same(disk, disk3));
		assert_true(describe_same(view3, view2));
		check_changes(v, pending);
		view_check(v);
	}
	assert_true(view_commit(v, NULL));
	check_changes(v, "");
	g_rand_free(dice);
}

static void test_random_choices(void **state)
{
	(void)state;
	for (guint32 seed = 1; seed <= ROUNDS; seed++)
		one_round(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offers),
		cmocka_unit_test(test_a_hunk),
		cmocka_unit_test(test_hunks_and_attributes),
		cmocka_unit_test(test_a_file_saved_by_rename),
		cmocka_unit_test(test_directories_follow),
		cmocka_unit_test(test_refused_hunks),
		cmocka_unit_test(test_edits_of_the_owner_are_conflicts),
		cmocka_unit_test(test_random_choices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
