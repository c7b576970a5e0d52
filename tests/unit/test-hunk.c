/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/hunk.h"

#define ROUNDS 3000

static struct hunks *open_hunks(const char *before, gssize before_size, const char *after, gssize after_size)
{
	g_autoptr(GBytes) a = g_bytes_new(before, before_size < 0 ? strlen(before) : (gsize)before_size);
	g_autoptr(GBytes) b = g_bytes_new(after, after_size < 0 ? strlen(after) : (gsize)after_size);
	struct hunks *h;

	assert_int_equal(hunks_new(a, b, &h, NULL), 0);
	return h;
}

static char *compose(const struct hunks *h)
{
	g_autoptr(GBytes) bytes = hunks_compose(h);

	return g_bytes_get_size(bytes) ? g_strndup(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes)) : g_strdup("");
}

static void put_line(char kind, const char *line, gsize size, void *user)
{
	g_string_append_c(user, kind);
	g_string_append_len(user, line, size);
	g_string_append_c(user, '\n');
}

static char *show(const struct hunks *h, guint i)
{
	GString *s = g_string_new(NULL);

	hunks_show(h, i, put_line, s);
	return g_string_free(s, FALSE);
}

static void assert_shown(const struct hunks *h, guint i, const char *want)
{
	g_autofree char *got = show(h, i);

	assert_string_equal(got, want);
}

static void assert_composed(const struct hunks *h, const char *want)
{
	g_autofree char *got = compose(h);

	assert_string_equal(got, want);
}

/* Known texts */

static const char ten[] = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

static void test_hunks_as_a_diff_has_them(void **state)
{
	struct hunks *h = open_hunks("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n", -1,
				     "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n15\n", -1);

	(void)state;
	assert_int_equal(hunks_count(h), 2);
	assert_shown(h, 0, "@@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n");
	assert_shown(h, 1, "@@@ -11,5 +11,4 @@\n 11\n 12\n 13\n-14\n 15\n");
	assert_int_equal(hunks_state(h), CHOICE_OPEN);
	hunks_choose(h, 1, CHOICE_TAKEN);
	assert_int_equal(hunks_state(h), CHOICE_MIXED);
	assert_int_equal(hunks_choice(h, 0), CHOICE_OPEN);
	assert_composed(h, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n15\n");
	hunks_choose(h, 0, CHOICE_TAKEN);
	assert_int_equal(hunks_state(h), CHOICE_TAKEN);
	hunks_free(h);
}

static void test_split(void **state)
{
	struct hunks *h = open_hunks(ten, -1, "1\ntwo\n3\n4\nnew\n5\n6\n7\n8\n10\n", -1);

	(void)state;
	assert_int_equal(hunks_count(h), 1);
	assert_true(hunks_can_split(h, 0));
	hunks_choose(h, 0, CHOICE_REFUSED);
	hunks_split(h, 0);
	assert_int_equal(hunks_count(h), 3);
	assert_false(hunks_can_split(h, 1));
	assert_int_equal(hunks_state(h), CHOICE_REFUSED);
	assert_shown(h, 0, "@@@ -1,4 +1,4 @@\n 1\n-2\n+two\n 3\n 4\n");
	assert_shown(h, 1, "@@@ -3,5 +3,6 @@\n 3\n 4\n+new\n 5\n 6\n 7\n");
	assert_shown(h, 2, "@@@ -6,5 +7,4 @@\n 6\n 7\n 8\n-9\n 10\n");
	hunks_choose(h, 1, CHOICE_TAKEN);
	assert_composed(h, "1\n2\n3\n4\nnew\n5\n6\n7\n8\n9\n10\n");
	hunks_choose(h, 2, CHOICE_TAKEN);
	hunks_choose(h, 1, CHOICE_OPEN);
	assert_composed(h, "1\n2\n3\n4\n5\n6\n7\n8\n10\n");
	hunks_free(h);
}

static void test_line_ends(void **state)
{
	struct hunks *h = open_hunks("a\r\nb", -1, "a\r\nb\r\nc", -1);

	(void)state;
	assert_shown(h, 0, "@@@ -1,2 +1,3 @@\n a\r\n-b\n\\ No newline at end of file\n+b\r\n+c\n\\ No newline at end of file\n");
	assert_composed(h, "a\r\nb");
	hunks_choose(h, 0, CHOICE_TAKEN);
	assert_composed(h, "a\r\nb\r\nc");
	hunks_free(h);
	h = open_hunks("a\r\nb\r\n", -1, "a\nb\r\n", -1);
	hunks_choose(h, 0, CHOICE_TAKEN);
	assert_composed(h, "a\nb\r\n");
	hunks_free(h);
}

static void test_empty_texts(void **state)
{
	struct hunks *h = open_hunks("", -1, "a\n", -1);

	(void)state;
	assert_int_equal(hunks_count(h), 1);
	assert_shown(h, 0, "@@@ -0,0 +1 @@\n+a\n");
	assert_composed(h, "");
	hunks_choose(h, 0, CHOICE_TAKEN);
	assert_composed(h, "a\n");
	hunks_free(h);
	h = open_hunks("a", -1, "", -1);
	assert_shown(h, 0, "@@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n");
	hunks_choose(h, 0, CHOICE_TAKEN);
	assert_composed(h, "");
	hunks_free(h);
	h = open_hunks("a\n", -1, "a\n", -1);
	assert_int_equal(hunks_count(h), 0);
	assert_int_equal(hunks_state(h), CHOICE_OPEN);
	assert_composed(h, "a\n");
	hunks_free(h);
}

static void test_bytes_are_bytes(void **state)
{
	struct hunks *h = open_hunks("\xff\0x\n\x1b[31m", 9, "\xff\0x\nplain\n", 10);
	g_autoptr(GBytes) none = hunks_compose(h), all = NULL;

	(void)state;
	assert_int_equal(g_bytes_get_size(none), 9);
	assert_memory_equal(g_bytes_get_data(none, NULL), "\xff\0x\n\x1b[31m", 9);
	hunks_choose(h, 0, CHOICE_TAKEN);
	all = hunks_compose(h);
	assert_int_equal(g_bytes_get_size(all), 10);
	assert_memory_equal(g_bytes_get_data(all, NULL), "\xff\0x\nplain\n", 10);
	hunks_free(h);
}

/* Random texts: what is shown of the hunks is applied as a patch by code of its own */

struct patching {
	const char *old; /* what is not copied yet */
	guint at;	 /* its line */
	gint shift;	 /* by what was patched in before, against the numbers in the heads */
	guint shared;	 /* lines of context that the hunk before had too */
	GString *out;
	char last; /* the kind of the line before */
	bool bad;
};

/* One line of the old text, which has to be @line if that is given. */
static void take_old(struct patching *p, bool keep, const char *line, gsize size)
{
	const char *stop = strchrnul(p->old, '\n'), *next = *stop ? stop + 1 : stop;

	if (line && ((gsize)(stop - p->old) != size || memcmp(p->old, line, size) != 0))
		p->bad = true;
	if (keep)
		g_string_append_len(p->out, p->old, next - p->old);
	p->old = next;
	p->at++;
}

static void patch_line(char kind, const char *line, gsize size, void *user)
{
	struct patching *p = user;
	guint start, count = 1;

	if (kind == '@') {
		if (sscanf(line, "@@ -%u,%u ", &start, &count) < 1)
			p->bad = true;
		start = start - (count > 0) + p->shift;
		while (p->at < start && *p->old)
			take_old(p, true, NULL, 0);
		p->bad = p->bad || p->at < start;
		p->shared = p->at - start;
	} else if (p->shared > 0) {
		p->bad = p->bad || kind != ' ';
		p->shared--;
	} else if (kind == '+') {
		g_string_append_len(p->out, line, size);
		g_string_append_c(p->out, '\n');
	} else if (kind != '\\') {
		take_old(p, kind == ' ', line, size);
	} else if (p->last == '+') {
		g_string_truncate(p->out, p->out->len - 1);
	} else {
		p->bad = p->bad || *p->old; /* it was the last line, and had no line break to be copied */
	}
	p->last = kind;
}

/* @text with those hunks of @h that are @which; @apart: those that were not are in the text already. */
static char *patch(const struct hunks *h, const char *text, enum choice which, bool apart)
{
	struct patching p = { .old = text, .out = g_string_new(NULL) };
	gint shift = 0;

	for (guint i = 0; i < hunks_count(h); i++) {
		g_autofree char *shown = show(h, i);
		gint added = 0;

		for (const char *line = shown; *line; line = strchr(line, '\n') + 1)
			added += (*line == '+') - (*line == '-');
		p.shift = apart ? shift : 0;
		if (hunks_choice(h, i) == which)
			hunks_show(h, i, patch_line, &p);
		else
			shift += added;
	}
	while (*p.old)
		take_old(&p, true, NULL, 0);
	assert_false(p.bad);
	return g_string_free(p.out, FALSE);
}

static char *random_text(GRand *r, const char *like)
{
	static const char *const lines[] = { "a", "b", "c", "", "}", "a\r", "\xc3\xa9", "\x1b[2J" };
	g_auto(GStrv) old = g_strsplit(like ? like : "", "\n", -1);
	GString *s = g_string_new(NULL);
	guint n = like ? g_strv_length(old) : (guint)g_rand_int_range(r, 0, 60);

	for (guint i = 0; i < n; i++) {
		int what = like ? g_rand_int_range(r, 0, 20) : 0;

		if (like && what > 2) {
			g_string_append_printf(s, "%s\n", old[i]);
			continue;
		}
		if (what != 1)
			g_string_append_printf(s, "%s\n", lines[g_rand_int_range(r, 0, G_N_ELEMENTS(lines))]);
		if (what == 2)
			g_string_append_printf(s, "%s\n", old[i]);
	}
	if (s->len && g_rand_int_range(r, 0, 3) == 0)
		g_string_truncate(s, s->len - 1);
	return g_string_free(s, FALSE);
}

static void one_round(guint32 seed)
{
	GRand *r = g_rand_new_with_seed(seed);
	g_autofree char *before = random_text(r, NULL), *after = random_text(r, g_rand_int_range(r, 0, 10) ? before : NULL);
	struct hunks *h = open_hunks(before, -1, after, -1), *rest;
	g_autofree char *none = compose(h), *all = NULL, *some = NULL, *patched = NULL, *full = NULL;

	assert_string_equal(none, before);
	for (guint i = 0; i < hunks_count(h); i++)
		hunks_choose(h, i, CHOICE_TAKEN);
	all = compose(h);
	assert_string_equal(all, after);
	for (guint i = 0; i < hunks_count(h); i++)
		if (g_rand_int_range(r, 0, 2))
			hunks_split(h, i);
	for (guint i = 0; i < hunks_count(h); i++)
		hunks_choose(h, i, g_rand_int_range(r, 0, 2) ? CHOICE_TAKEN : CHOICE_REFUSED);
	some = compose(h);
	patched = patch(h, before, CHOICE_TAKEN, false);
	assert_string_equal(some, patched);
	full = patch(h, some, CHOICE_REFUSED, true);
	assert_string_equal(full, after);
	rest = open_hunks(some, -1, after, -1);
	assert_int_equal(hunks_count(rest) == 0, strcmp(some, after) == 0);
	hunks_free(rest);
	hunks_free(h);
	g_rand_free(r);
}

static void test_random_choices(void **state)
{
	(void)state;
	for (guint32 seed = 0; seed < ROUNDS; seed++)
		one_round(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hunks_as_a_diff_has_them),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_line_ends),
		cmocka_unit_test(test_empty_texts),
		cmocka_unit_test(test_bytes_are_bytes),
		cmocka_unit_test(test_random_choices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
