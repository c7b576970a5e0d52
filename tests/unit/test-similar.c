/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <glib/gstdio.h>
#include <string.h>

#include "layered.h"
#include "snapshot/similar.h"
#include "snapshot/spans.h"

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

static char *joined_text(struct layered *l, GPtrArray *changes)
{
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER), to = tree_open(l->store, l->lower, EPOCH_LIVE);

	similar_join(changes, from, to);
	return changes_text(changes);
}

/* The list as it is read, whether it came with hashes or without. */
static void check_joined(struct layered *l, const char *want)
{
	for (int no_hash = 0; no_hash < 2; no_hash++) {
		const struct change_options options = { .no_hash = no_hash };
		g_autoptr(GPtrArray) changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, &options);
		g_autofree char *got = joined_text(l, changes);

		assert_string_equal(got, want);
	}
}

/* @n lines: numbers from @first on. Caller frees. */
static char *numbers(int first, int n)
{
	GString *s = g_string_new(NULL);

	for (int i = first; i < first + n; i++)
		g_string_append_printf(s, "%06d\n", i);
	return g_string_free(s, FALSE);
}

static void host_numbers(struct layered *l, const char *path, int first, int n)
{
	g_autofree char *text = numbers(first, n);

	host_text(l, path, text);
}

static void view_numbers(struct layered *l, const char *path, int first, int n)
{
	g_autofree char *text = numbers(first, n);

	view_text(l, path, text);
}

static guint count_status(struct layered *l, enum change_status status)
{
	g_autoptr(GPtrArray) changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	g_autofree char *text = joined_text(l, changes);
	guint n = 0;

	for (guint i = 0; i < changes->len; i++)
		n += ((struct change *)changes->pdata[i])->status == status;
	return n;
}

/* Equal files */

static void test_equal(void **state)
{
	struct layered *l = *state;

	host_text(l, "a", "x\n");
	host_text(l, "stays", "y\n");
	host_text(l, "gone", "other\n");
	view_remove(l, "a");
	view_remove(l, "gone");
	view_text(l, "b", "x\n");
	view_text(l, "copy", "y\n");
	check_joined(l, "D gone\nR a -> b\nA copy\n");
}

static void test_equal_prefers_the_name(void **state)
{
	struct layered *l = *state;

	host_text(l, "d/x", "same\n");
	host_text(l, "d/y", "same\n");
	host_text(l, "d/z", "same\n");
	view_mkdir(l, "e");
	view_text(l, "e/a", "same\n");
	view_text(l, "e/x", "same\n");
	view_text(l, "e/z", "same\n");
	view_text(l, "e/zz", "same\n");
	view_remove(l, "d/x");
	view_remove(l, "d/y");
	view_remove(l, "d/z");
	check_joined(l, "A e\nR d/y -> e/a\nR d/x -> e/x\nR d/z -> e/z\nA e/zz\n");
}

/* Each but one is the same: equal files are found in one step each, without a limit on pairs. */
static void test_equal_many(void **state)
{
	struct layered *l = *state;

	for (int i = 0; i < 1100; i++) {
		g_autofree char *old = g_strdup_printf("o%d", i), *new = g_strdup_printf("n%d", i);

		host_text(l, old, "same\n");
		view_remove(l, old);
		view_text(l, new, i ? "same\n" : "Same\n");
	}
	assert_int_equal(count_status(l, CHANGE_RENAMED), 1099);
	assert_int_equal(count_status(l, CHANGE_ADDED), 1);
	assert_int_equal(count_status(l, CHANGE_DELETED), 1);
}

/* What is between two identities is not for contents to decide. */
static void test_identity_is_first(void **state)
{
	struct layered *l = *state;

	host_numbers(l, "a", 0, 10);
	host_numbers(l, "b", 0, 10);
	view_rename(l, "a", "c");
	view_numbers(l, "c", 0, 12);
	view_remove(l, "b");
	view_numbers(l, "d", 0, 12);
	check_joined(l, "R a -> c\nR b -> d\n");
}

/* Similar files */

static void test_half_is_enough(void **state)
{
	struct layered *l = *state;
	g_autoptr(GPtrArray) changes = NULL;
	g_autofree char *text = NULL;
	const struct change *c;

	host_numbers(l, "a", 0, 100);
	host_numbers(l, "b", 1000, 100);
	view_remove(l, "a");
	view_remove(l, "b");
	view_numbers(l, "half", 50, 100);
	view_numbers(l, "less", 1051, 100);
	changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	text = joined_text(l, changes);
	assert_string_equal(text, "D b\nR a -> half\nA less\n");
	c = changes->pdata[1];
	assert_int_equal(c->similarity, 50);
	assert_true(c->content_changed);
	assert_true(c->has_sha256_before && c->has_sha256_after);
	assert_int_equal(c->before->attr.size, 700);
}

static void test_best_first(void **state)
{
	struct layered *l = *state;

	host_numbers(l, "a", 1000, 100);
	host_numbers(l, "b", 1020, 100);
	view_remove(l, "a");
	view_remove(l, "b");
	view_numbers(l, "c", 1018, 100);
	view_numbers(l, "d", 980, 100);
	/* c is 98 % of b and 82 of a, d 60 of b and 80 of a. */
	check_joined(l, "R b -> c\nR a -> d\n");
}

static void test_same_name_breaks_a_tie(void **state)
{
	struct layered *l = *state;

	host_numbers(l, "a/x", 0, 100);
	host_numbers(l, "b/y", 0, 100);
	view_remove(l, "a/x");
	view_remove(l, "b/y");
	view_mkdir(l, "c");
	view_numbers(l, "c/x", 1, 100);
	view_numbers(l, "c/a", 1, 100);
	check_joined(l, "A c\nR b/y -> c/a\nR a/x -> c/x\n");
}

static void test_what_is_never_paired(void **state)
{
	struct layered *l = *state;
	g_autofree char *binary = g_malloc0(9000), *other = g_malloc0(9000);

	other[5] = 1;
	host_text(l, "empty", "");
	host_symlink(l, "link", "a\nb\nc\n");
	host_write(l, "binary", binary, 9000, 0644);
	view_remove(l, "empty");
	view_remove(l, "link");
	view_remove(l, "binary");
	view_text(l, "empty2", "");
	view_text(l, "file", "a\nb\nc\nd\n");
	view_symlink(l, "link2", "a\nb\nc\nd\n");
	view_mkfifo(l, "fifo");
	view_write(l, "binary2", other, 9000);
	check_joined(l, "D binary\nD empty\nD link\nA binary2\nA empty2\nA fifo\nA file\nA link2\n");
	view_write(l, "binary2", binary, 9000);
	check_joined(l, "D empty\nD link\nR binary -> binary2\nA empty2\nA fifo\nA file\nA link2\n");
}

static void test_what_else_differs(void **state)
{
	struct layered *l = *state;
	g_autoptr(GPtrArray) changes = NULL;
	g_autofree char *text = NULL;
	const struct change *c;

	host_text(l, "a", "x\n");
	view_remove(l, "a");
	view_text(l, "b", "x\n");
	view_chmod(l, "b", 0755);
	view_xattr(l, "b", "user.k", "v");
	changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	text = joined_text(l, changes);
	assert_string_equal(text, "R a -> b\n");
	c = changes->pdata[0];
	assert_int_equal(c->similarity, 100);
	assert_false(c->content_changed);
	assert_true(c->xattrs_changed);
	assert_true(change_mode_changed(c));
}

/* What may not be seen, and what can't be read */

static bool not_denied(const char *path, const char *lower, bool is_dir, void *user)
{
	(void)lower;
	(void)is_dir;
	(void)user;
	return !strstr(path, "denied");
}

static void test_filtered(void **state)
{
	struct layered *l = *state;
	const struct change_options options = { .filter = not_denied };
	g_autoptr(GPtrArray) changes = NULL;
	g_autofree char *text = NULL;

	host_text(l, "denied", "x\n");
	host_text(l, "a", "y\n");
	view_remove(l, "denied");
	view_remove(l, "a");
	view_text(l, "b", "x\n");
	view_text(l, "denied2", "y\n");
	changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, &options);
	text = joined_text(l, changes);
	assert_string_equal(text, "D a\nA b\n");
}

static void test_unreadable(void **state)
{
	struct layered *l = *state;
	const struct change_options options = { .no_hash = true };
	g_autofree char *gone = g_build_filename(l->workspace, "a", NULL), *text = NULL;
	g_autoptr(GPtrArray) changes = NULL;

	host_text(l, "a", "1\n2\n3\n");
	host_text(l, "b", "4\n5\n6\n7\n");
	view_remove(l, "a");
	view_remove(l, "b");
	view_text(l, "c", "1\n2\n3\n");
	view_text(l, "d", "4\n5\n6\n7\n8\n");
	view_text(l, "e", "1\n2\n3\n4\n");
	changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, &options);
	assert_int_equal(g_unlink(gone), 0);
	text = joined_text(l, changes);
	assert_string_equal(text, "D a\nA c\nR b -> d\nA e\n");
}

/* Limits: beyond them only equal files are paired. */

/* @n files of @lines lines that move with a line more, and one that moves as it is. */
static void move_files(struct layered *l, int n, int lines)
{
	host_text(l, "equal", "moves as it is\n");
	view_remove(l, "equal");
	view_text(l, "equal2", "moves as it is\n");
	for (int i = 0; i < n; i++) {
		g_autofree char *old = g_strdup_printf("o%d", i), *new = g_strdup_printf("n%d", i);

		host_numbers(l, old, i * lines, lines);
		view_remove(l, old);
		view_numbers(l, new, i * lines, lines + 1);
	}
}

static void test_limit_of_size(void **state)
{
	struct layered *l = *state;
	const int fits = SIMILAR_SIZE_MAX / 8; /* lines of a number of seven digits */

	host_numbers(l, "equal", 1000000, fits + 1);
	host_numbers(l, "larger", 2000000, fits + 1);
	host_numbers(l, "fits", 3000000, fits - 1);
	view_remove(l, "equal");
	view_remove(l, "larger");
	view_remove(l, "fits");
	view_numbers(l, "equal2", 1000000, fits + 1);
	view_numbers(l, "larger2", 2000000, fits);
	view_numbers(l, "fits2", 3000000, fits - 2);
	check_joined(l, "D larger\nR equal -> equal2\nR fits -> fits2\nA larger2\n");
}

static void test_limit_of_pairs(void **state)
{
	struct layered *l = *state;

	move_files(l, 1000, 2);
	assert_int_equal(count_status(l, CHANGE_RENAMED), 1001);
	host_text(l, "one-more", "another\n");
	view_remove(l, "one-more");
	assert_int_equal(count_status(l, CHANGE_RENAMED), 1);
}

static void test_limit_of_steps(void **state)
{
	struct layered *l = *state;

	/* 160 * 160 pairs of 1,000 and 1,001 lines are some 51 million steps, 190 * 190 some 72. */
	move_files(l, 160, 1000);
	assert_int_equal(count_status(l, CHANGE_RENAMED), 161);
	move_files(l, 190, 1000);
	assert_int_equal(count_status(l, CHANGE_RENAMED), 1);
}

static void test_limit_of_bytes(void **state)
{
	struct layered *l = *state;
	/* Of few different lines, so that no other limit is met. */
	g_autoptr(GString) text = g_string_new(NULL);

	while (text->len < SIMILAR_SIZE_MAX - 100)
		g_string_append(text, "the same line again\n");
	for (int i = 0; i < 33; i++) {
		g_autofree char *old = g_strdup_printf("o%d", i), *new = g_strdup_printf("n%d", i);

		if (i == 32)
			assert_int_equal(count_status(l, CHANGE_RENAMED), 32);
		g_string_append_printf(text, "%d\n", i);
		host_write(l, old, text->str, text->len, 0644);
		view_remove(l, old);
		text->str[text->len - 1] = '!';
		view_write(l, new, text->str, text->len);
	}
	assert_int_equal(count_status(l, CHANGE_RENAMED), 0);
}

/* Spans */

static struct spans *spans_of(const char *text, size_t piece)
{
	struct spans *s = spans_new();

	for (size_t at = 0; at < strlen(text); at += piece)
		spans_add(s, text + at, MIN(piece, strlen(text) - at));
	spans_end(s);
	return s;
}

static void test_spans(void **state)
{
	static const struct {
		const char *a, *b;
		int percent;
	} cases[] = {
		{ "", "", 0 },
		{ "", "x", 0 },
		{ "a\nb\n", "a\nb\n", 100 },
		{ "a\nb\n", "b\na\n", 100 }, /* the order of lines is not looked at */
		{ "a\nb\n", "a\nb\nc\nd\n", 50 },
		{ "a\na\na\nb\n", "a\nc\nd\ne\n", 25 }, /* a line counts as often as it is there */
		{ "a\nb", "a\nb\n", 50 },
		{ "1\n2\n3\n", "1\n2\n3\n4\n", 75 },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		for (size_t piece = 1; piece < 5; piece++) {
			g_autoptr(spans_t) a = spans_of(cases[i].a, piece), b = spans_of(cases[i].b, 9);

			assert_int_equal(spans_similarity(a, b), cases[i].percent);
			assert_int_equal(spans_similarity(b, a), cases[i].percent);
		}
	}
}

static void test_spans_of_long_lines(void **state)
{
	g_autofree char *a = g_malloc0(6401), *b = g_malloc0(6401);
	g_autoptr(spans_t) x = NULL, y = NULL;

	(void)state;
	for (int i = 0; i < 6400; i++)
		a[i] = b[i] = 'a' + i / 64 % 26;
	b[100] = '!';
	x = spans_of(a, 1000);
	y = spans_of(b, 77);
	assert_int_equal(spans_length(x), 26);
	assert_int_equal(spans_similarity(x, y), 99);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_equal),
		TEST(test_equal_prefers_the_name),
		TEST(test_equal_many),
		TEST(test_identity_is_first),
		TEST(test_half_is_enough),
		TEST(test_best_first),
		TEST(test_same_name_breaks_a_tie),
		TEST(test_what_is_never_paired),
		TEST(test_what_else_differs),
		TEST(test_filtered),
		TEST(test_unreadable),
		TEST(test_limit_of_size),
		TEST(test_limit_of_pairs),
		TEST(test_limit_of_steps),
		TEST(test_limit_of_bytes),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_spans_of_long_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
