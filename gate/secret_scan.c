/* SPDX-License-Identifier: MIT */
#include "gate/secret_scan.h"

#include <string.h>

#include "gate/secret_assign.h"
#include "gate/secret_match.h"
#include "gate/secret_rules.h"
#include "gate/secret_value.h"
#include "gate/token_pattern.h"

#define DEFAULT_ENTROPY 2.7
#define BLOB_MIN 64 /* base64 digits in a row that make a blob */
#define PREFIX_MIN 2

/* One literal to look for, and what to ask where it stands. */
struct anchor {
	const char *literal;
	size_t size;
	bool nocase;
	bool (*match)(const struct scan_view *v, size_t at, struct secret_match *ret);
	const struct secret_rule *rule; /* with ->pattern and ->back made, when @match is NULL */
	struct token_pattern *pattern, *back;
	int next; /* with the same first two bytes, -1 = none */
};

static struct {
	GArray *anchors;
	uint8_t bits[65536 / 8];
	int first[65536];
} table;

/* Formats */

static bool is_word_byte(uint8_t b)
{
	return g_ascii_isalnum(b) || b == '_';
}

/* The start of a word; what an escape such as \n or %3D ends with is no part of it. */
static bool starts_here(const struct scan_view *v, size_t at)
{
	const uint8_t *d = v->data;

	if (at == 0 || !is_word_byte(d[at - 1]))
		return true;
	if (at >= 2 && d[at - 2] == '\\' && strchr("nrt", d[at - 1]))
		return true;
	return at >= 3 && d[at - 3] == '%' && g_ascii_isxdigit(d[at - 2]) && g_ascii_isxdigit(d[at - 1]);
}

static bool is_base64_byte(uint8_t b)
{
	return g_ascii_isalnum(b) || b == '+' || b == '/';
}

/* Does the match lie in a long run of base64, such as an image? Separators of URLs are among its digits, so short runs don't count. */
static bool in_blob(const struct scan_view *v, size_t start, size_t end)
{
	size_t before = 0, after = 0;

	while (before < BLOB_MIN && start > before && is_base64_byte(v->data[start - before - 1]))
		before++;
	while (after < BLOB_MIN && end + after < v->size && is_base64_byte(v->data[end + after]))
		after++;
	return before + after >= BLOB_MIN / 2;
}

static bool ends_here(const struct anchor *a, const struct scan_view *v, size_t end)
{
	uint8_t next;

	if (end >= v->size)
		return true;
	next = v->data[end];
	return !g_ascii_isalnum(next) && (next == '=' || !token_pattern_goes_on(a->pattern, next));
}

static bool match_rule(const struct anchor *a, const struct scan_view *v, size_t at, struct secret_match *ret)
{
	const struct secret_rule *rule = a->rule;
	size_t n = token_pattern_match(a->pattern, v->data + at, v->size - at), back = 0;
	const char *text = (const char *)v->data;

	if (n == 0 || !ends_here(a, v, at + n))
		return false;
	if (a->back) {
		back = token_pattern_match_back(a->back, v->data, at);
		if (back == 0)
			return false;
	}
	if (!(rule->flags & SECRET_ANYWHERE && !a->back) && !starts_here(v, at - back))
		return false;
	if (rule->flags & SECRET_NOT_IN_BLOB && in_blob(v, at, at + n))
		return false;
	if (secret_value_is_placeholder(text + at + a->size, n - a->size) ||
	    secret_value_is_placeholder(text + at - back, back))
		return false;
	if (back == 0 && secret_entropy(text + at + a->size, n - a->size) < (rule->entropy > 0 ? rule->entropy : DEFAULT_ENTROPY))
		return false;
	if (back > 0 && secret_entropy(text + at - back, back + n) < (rule->entropy > 0 ? rule->entropy : DEFAULT_ENTROPY))
		return false;
	*ret = (struct secret_match){ .rule = rule->id, .what = rule->what, .start = at - back, .end = at + n };
	if (back == 0) {
		ret->shown = at;
		ret->shown_end = at + a->size;
	}
	return true;
}

static bool match_anchor(const struct anchor *a, const struct scan_view *v, size_t at, struct secret_match *ret)
{
	const char *here = (const char *)v->data + at;

	if (v->size - at < a->size)
		return false;
	if (a->nocase ? g_ascii_strncasecmp(here, a->literal, a->size) != 0 : memcmp(here, a->literal, a->size) != 0)
		return false;
	return a->match ? a->match(v, at, ret) : match_rule(a, v, at, ret);
}

/* The table */

static void enter(int index, uint8_t a, uint8_t b)
{
	struct anchor *anchor = &g_array_index(table.anchors, struct anchor, index);
	unsigned key = a | (unsigned)b << 8;

	anchor->next = table.first[key];
	table.first[key] = index;
	table.bits[key >> 3] |= (uint8_t)(1 << (key & 7));
}

static void add(struct anchor a)
{
	const char *l = a.literal;
	bool nocase = a.nocase;

	a.size = strlen(l);
	g_assert(a.size >= PREFIX_MIN);
	/* An entry is in one chain, so each case of the first two letters has its own. */
	for (int i = 0; i < (nocase ? 4 : 1); i++) {
		uint8_t x = (uint8_t)(i & 1 ? g_ascii_toupper(l[0]) : l[0]), y = (uint8_t)(i & 2 ? g_ascii_toupper(l[1]) : l[1]);

		if ((i & 1 && x == (uint8_t)l[0]) || (i & 2 && y == (uint8_t)l[1]))
			continue;
		g_array_append_val(table.anchors, a);
		enter((int)table.anchors->len - 1, x, y);
	}
}

static void table_make(void)
{
	table.anchors = g_array_new(FALSE, FALSE, sizeof(struct anchor));
	memset(table.first, -1, sizeof(table.first));
	/* The last entered is asked first: a provider's format before a mere name. */
	for (const struct secret_anchor *s = secret_assign_anchors(); s->literal; s++)
		add((struct anchor){ .literal = s->literal, .nocase = s->nocase, .match = s->match });
	for (const struct secret_anchor *s = secret_match_anchors(); s->literal; s++)
		add((struct anchor){ .literal = s->literal, .nocase = s->nocase, .match = s->match });
	for (const struct secret_rule *r = secret_rules(); r->id; r++) {
		struct anchor a = { .rule = r, .pattern = token_pattern_new(r->pattern) };

		a.back = r->back ? token_pattern_new(r->back) : NULL;
		a.literal = token_pattern_literal(a.pattern);
		add(a);
	}
}

static void table_init(void)
{
	static gsize once;

	if (g_once_init_enter(&once)) {
		table_make();
		g_once_init_leave(&once, 1);
	}
}

/* Scanning */

static bool match_at(const struct scan_view *v, size_t at, bool formats_only, struct secret_match *ret)
{
	unsigned key = v->data[at] | (unsigned)v->data[at + 1] << 8;

	if (!(table.bits[key >> 3] & 1 << (key & 7)))
		return false;
	for (int i = table.first[key]; i >= 0;) {
		const struct anchor *a = &g_array_index(table.anchors, struct anchor, i);

		if (!(formats_only && !a->rule) && match_anchor(a, v, at, ret))
			return true;
		i = a->next;
	}
	return false;
}

static char *excerpt_of(const struct scan_view *v, const struct secret_match *m)
{
	return g_strdup_printf("%.*s%s**** (%zu characters)", (int)MIN(m->shown_end - m->shown, 80), (const char *)v->data + m->shown,
			       m->joint ? m->joint : "", m->end - m->start);
}

static bool report(struct scan *s, const struct scan_view *v, const struct secret_match *m)
{
	g_autofree char *excerpt = excerpt_of(v, m);

	return scan_report(s, v, m->start, m->end, m->rule, m->what, excerpt);
}

void secret_scan_look(struct scan *s, const struct scan_view *v)
{
	size_t to = MIN(v->to, v->size > 0 ? v->size - 1 : 0);

	table_init();
	for (size_t at = v->from; at < to; at++) {
		unsigned key = v->data[at] | (unsigned)v->data[at + 1] << 8;
		struct secret_match m = { 0 }, format;

		if (G_LIKELY(!(table.bits[key >> 3] & 1 << (key & 7))) || !match_at(v, at, false, &m))
			continue;
		/* A value with a format of its own is better told by that. */
		if (m.assigned && m.start + 1 < v->size && match_at(v, m.start, true, &format))
			m = format;
		if (!report(s, v, &m))
			return;
	}
}
