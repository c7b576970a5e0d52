/* SPDX-License-Identifier: MIT */
#include "gate/token_pattern.h"

#include <stdlib.h>
#include <string.h>

struct element {
	uint8_t bytes[32]; /* a bit for each that it takes */
	unsigned min, max;
};

struct token_pattern {
	GArray *elements;
	GString *literal;
};

static bool element_takes(const struct element *e, uint8_t b)
{
	return e->bytes[b >> 3] & 1 << (b & 7);
}

static void element_add(struct element *e, uint8_t b)
{
	e->bytes[b >> 3] |= (uint8_t)(1 << (b & 7));
}

/* Making */

static const char *parse_class(const char *p, struct element *e)
{
	bool negated = *p == '^';

	for (p += negated; *p != ']'; p++) {
		g_assert(*p);
		if (*p == '\\')
			p++;
		if (p[1] == '-' && p[2] != ']') {
			for (int b = (uint8_t)p[0]; b <= (uint8_t)p[2]; b++)
				element_add(e, (uint8_t)b);
			p += 2;
		} else {
			element_add(e, (uint8_t)*p);
		}
	}
	for (unsigned i = 0; negated && i < sizeof(e->bytes); i++)
		e->bytes[i] = (uint8_t)~e->bytes[i];
	return p + 1;
}

static const char *parse_count(const char *p, struct element *e)
{
	char *end;

	e->min = e->max = 1;
	if (*p == '?') {
		e->min = 0;
		return p + 1;
	}
	if (*p != '{')
		return p;
	e->min = e->max = (unsigned)strtoul(p + 1, &end, 10);
	if (*end == ',') {
		p = end + 1;
		e->max = (unsigned)strtoul(p, &end, 10);
		if (end == p)
			e->max = TOKEN_PATTERN_MAX;
	}
	g_assert(*end == '}' && e->min <= e->max && e->max > 0);
	return end + 1;
}

struct token_pattern *token_pattern_new(const char *text)
{
	struct token_pattern *t = g_new0(struct token_pattern, 1);
	bool in_literal = true;

	t->elements = g_array_new(FALSE, FALSE, sizeof(struct element));
	t->literal = g_string_new(NULL);
	for (const char *p = text; *p;) {
		struct element e = { 0 };
		char c = *p;
		bool is_class = c == '[';

		if (is_class) {
			p = parse_class(p + 1, &e);
		} else {
			if (c == '\\')
				c = *++p;
			g_assert(c);
			element_add(&e, (uint8_t)c);
			p++;
		}
		p = parse_count(p, &e);
		in_literal = in_literal && !is_class && e.min == 1 && e.max == 1;
		if (in_literal)
			g_string_append_c(t->literal, c);
		g_array_append_val(t->elements, e);
	}
	return t;
}

void token_pattern_free(struct token_pattern *p)
{
	if (!p)
		return;
	g_array_unref(p->elements);
	g_string_free(p->literal, TRUE);
	g_free(p);
}

/* Asking */

const char *token_pattern_literal(const struct token_pattern *p)
{
	return p->literal->str;
}

size_t token_pattern_match(const struct token_pattern *p, const uint8_t *data, size_t size)
{
	size_t at = 0;

	for (guint i = 0; i < p->elements->len; i++) {
		const struct element *e = &g_array_index(p->elements, struct element, i);
		unsigned n = 0;

		while (n < e->max && at < size && element_takes(e, data[at])) {
			n++;
			at++;
		}
		if (n < e->min)
			return 0;
	}
	return at;
}

size_t token_pattern_match_back(const struct token_pattern *p, const uint8_t *data, size_t end)
{
	size_t at = end;

	for (guint i = p->elements->len; i-- > 0;) {
		const struct element *e = &g_array_index(p->elements, struct element, i);
		unsigned n = 0;

		while (n < e->max && at > 0 && element_takes(e, data[at - 1])) {
			n++;
			at--;
		}
		if (n < e->min)
			return 0;
	}
	return end - at;
}

bool token_pattern_goes_on(const struct token_pattern *p, uint8_t byte)
{
	return element_takes(&g_array_index(p->elements, struct element, p->elements->len - 1), byte);
}
