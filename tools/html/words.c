/* SPDX-License-Identifier: MIT */
#include "tools/html/words.h"

#include <stdbool.h>
#include <string.h>

#include "snapshot/lines.h"

/* Of longer lines only what both begin and end with is told apart. */
#define MATCHED_MAX (16 * 1024)
/* Percent of the words' bytes that have to be equal for the rest to be worth a mark. */
#define COMMON_MIN 25
/* With more spans in a line they are one, from the first to the last: each is an element of the page. */
#define SPANS_MAX 64
/* What words_likeness() looks at. */
#define LIKENESS_BYTES 256

struct word {
	size_t start, end;
	bool differs;
};

struct text {
	const char *bytes;
	GArray *words; /* struct word */
};

static bool is_letter(unsigned char c)
{
	return g_ascii_isalnum(c) || c == '_' || c >= 0x80;
}

static bool is_blank(unsigned char c)
{
	return c == ' ' || c == '\t';
}

static void split(struct text *t, const char *bytes, size_t size)
{
	t->bytes = bytes;
	t->words = g_array_new(FALSE, FALSE, sizeof(struct word));
	for (size_t at = 0; at < size;) {
		struct word w = { .start = at++ };

		while (at < size &&
		       ((is_letter(bytes[w.start]) && is_letter(bytes[at])) || (is_blank(bytes[w.start]) && is_blank(bytes[at]))))
			at++;
		w.end = at;
		g_array_append_val(t->words, w);
	}
}

static struct word *word_at(const struct text *t, guint i)
{
	return &g_array_index(t->words, struct word, i);
}

static bool words_equal(const struct text *a, guint i, const struct text *b, guint j)
{
	const struct word *x = word_at(a, i), *y = word_at(b, j);

	return x->end - x->start == y->end - y->start && memcmp(a->bytes + x->start, b->bytes + y->start, x->end - x->start) == 0;
}

/* The matcher's view of the words from @from to before @to: one a line. A line break in a word is in no line. */
static GBytes *as_lines(const struct text *t, guint from, guint to)
{
	GString *s = g_string_new(NULL);

	for (guint i = from; i < to; i++) {
		const struct word *w = word_at(t, i);

		g_string_append_len(s, t->bytes + w->start, w->end - w->start);
		g_string_append_c(s, '\n');
	}
	return g_string_free_to_bytes(s);
}

struct marking {
	struct text *before, *after;
	guint first; /* the word that the first line stands for, on both sides */
};

static void ignore_hunk(const struct lines_hunk *hunk, void *user)
{
	(void)hunk;
	(void)user;
}

static void mark_word(const struct lines_line *line, void *user)
{
	const struct marking *m = user;

	if (line->origin == '-')
		word_at(m->before, m->first + line->old_line - 1)->differs = true;
	else if (line->origin == '+')
		word_at(m->after, m->first + line->new_line - 1)->differs = true;
}

static void mark_all(struct text *t, guint from, guint to)
{
	for (guint i = from; i < to; i++)
		word_at(t, i)->differs = true;
}

static void mark(struct text *a, struct text *b)
{
	static const struct lines_visitor visitor = { .hunk = ignore_hunk, .line = mark_word };
	guint x = a->words->len, y = b->words->len, first = 0;
	struct marking m = { .before = a, .after = b };

	while (first < MIN(x, y) && words_equal(a, first, b, first))
		first++;
	while (x > first && y > first && words_equal(a, x - 1, b, y - 1)) {
		x--;
		y--;
	}
	m.first = first;
	if (x > first && y > first) {
		g_autoptr(GBytes) before = as_lines(a, first, x), after = as_lines(b, first, y);

		if (lines_each(before, after, &visitor, &m, NULL) == 0)
			return;
	}
	mark_all(a, first, x);
	mark_all(b, first, y);
}

/* Blanks between two words that differ are not worth an interruption. */
static void join(struct text *t)
{
	for (guint i = 1; i + 1 < t->words->len; i++) {
		struct word *w = word_at(t, i);

		if (is_blank(t->bytes[w->start]) && word_at(t, i - 1)->differs && word_at(t, i + 1)->differs)
			w->differs = true;
	}
}

static size_t common_bytes(const struct text *t)
{
	size_t n = 0;

	for (guint i = 0; i < t->words->len; i++) {
		const struct word *w = word_at(t, i);

		n += w->differs || is_blank(t->bytes[w->start]) ? 0 : w->end - w->start;
	}
	return n;
}

static size_t word_bytes(const struct text *t)
{
	size_t n = 0;

	for (guint i = 0; i < t->words->len; i++) {
		const struct word *w = word_at(t, i);

		n += is_blank(t->bytes[w->start]) ? 0 : w->end - w->start;
	}
	return n;
}

static void collect(const struct text *t, GArray *ret)
{
	for (guint i = 0; i < t->words->len; i++) {
		const struct word *w = word_at(t, i);
		struct word_span s = { w->start, w->end };

		if (!w->differs)
			continue;
		if (ret->len && g_array_index(ret, struct word_span, ret->len - 1).end == s.start)
			g_array_index(ret, struct word_span, ret->len - 1).end = s.end;
		else
			g_array_append_val(ret, s);
	}
	if (ret->len > SPANS_MAX) {
		g_array_index(ret, struct word_span, 0).end = g_array_index(ret, struct word_span, ret->len - 1).end;
		g_array_set_size(ret, 1);
	}
}

static void add_span(GArray *spans, size_t start, size_t end)
{
	struct word_span s = { start, end };

	if (end > start)
		g_array_append_val(spans, s);
}

/* Of very long lines: one span, between what both begin and end with. */
static void compare_ends(const char *a, size_t a_size, const char *b, size_t b_size, GArray *ret_a, GArray *ret_b)
{
	size_t limit = MIN(a_size, b_size), head = 0, tail = 0;

	while (head < limit && a[head] == b[head])
		head++;
	while (tail < limit - head && a[a_size - tail - 1] == b[b_size - tail - 1])
		tail++;
	if ((head + tail) * 100 < MAX(a_size, b_size) * COMMON_MIN)
		return;
	add_span(ret_a, head, a_size - tail);
	add_span(ret_b, head, b_size - tail);
}

void words_compare(const char *before, size_t before_size, const char *after, size_t after_size, GArray *ret_before,
		   GArray *ret_after)
{
	struct text a, b;

	g_array_set_size(ret_before, 0);
	g_array_set_size(ret_after, 0);
	if (MAX(before_size, after_size) > MATCHED_MAX) {
		compare_ends(before, before_size, after, after_size, ret_before, ret_after);
		return;
	}
	split(&a, before, before_size);
	split(&b, after, after_size);
	mark(&a, &b);
	if (common_bytes(&a) * 100 >= MAX(word_bytes(&a), word_bytes(&b)) * COMMON_MIN) {
		join(&a);
		join(&b);
		collect(&a, ret_before);
		collect(&b, ret_after);
	}
	g_array_unref(a.words);
	g_array_unref(b.words);
}

unsigned words_likeness(const char *before, size_t before_size, const char *after, size_t after_size)
{
	size_t limit, head = 0, tail = 0;

	for (; before_size && is_blank(*before); before_size--)
		before++;
	for (; after_size && is_blank(*after); after_size--)
		after++;
	limit = MIN(before_size, after_size);
	while (head < MIN(limit, LIKENESS_BYTES) && before[head] == after[head])
		head++;
	while (tail < MIN(limit - head, LIKENESS_BYTES) && before[before_size - tail - 1] == after[after_size - tail - 1])
		tail++;
	return limit ? (head + tail) * 100 / MIN(MAX(before_size, after_size), 2 * LIKENESS_BYTES) : 0;
}
