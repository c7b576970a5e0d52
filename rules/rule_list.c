/* SPDX-License-Identifier: MIT */
#include "rules/rule_list.h"

#include <string.h>

#define GRAM_MAX 3

/* One rule's literal, filed under one gram of it. */
struct entry {
	int rule;
	unsigned short before; /* bytes of the literal in front of the gram */
	unsigned short len;
	unsigned char gram; /* its length: GRAM_MAX, or less for a short literal */
	char *literal;	    /* in lower case (ASCII) */
};

/* A hash table in two arrays: bucket i is entries[start[i]] up to entries[start[i + 1]]. */
struct gram_index {
	GArray *entries;
	unsigned *start;
	unsigned mask;
	bool has[GRAM_MAX + 1]; /* is there any entry with a gram of this length? */
};

struct rule_list {
	GArray *rules;
	struct gram_index by_name; /* literals that stand in the last component */
	struct gram_index by_path;
	GArray *unfiled; /* rules without a literal, last first */
};

static unsigned gram_hash(const char *p, unsigned n)
{
	unsigned h = n;

	for (unsigned i = 0; i < n; i++)
		h = h << 8 | (unsigned char)p[i];
	h *= 0x9e3779b1u;
	return h ^ h >> 15;
}

static void entry_clear(void *data)
{
	g_free(((struct entry *)data)->literal);
}

static void rule_clear(void *data)
{
	pattern_unref(((struct rule *)data)->pattern);
}

static void gram_index_init(struct gram_index *x)
{
	x->entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
	g_array_set_clear_func(x->entries, entry_clear);
}

static void gram_index_clear(struct gram_index *x)
{
	g_array_unref(x->entries);
	g_free(x->start);
}

struct rule_list *rule_list_new(void)
{
	struct rule_list *l = g_new0(struct rule_list, 1);

	l->rules = g_array_new(FALSE, FALSE, sizeof(struct rule));
	g_array_set_clear_func(l->rules, rule_clear);
	l->unfiled = g_array_new(FALSE, FALSE, sizeof(int));
	gram_index_init(&l->by_name);
	gram_index_init(&l->by_path);
	return l;
}

void rule_list_free(struct rule_list *l)
{
	if (!l)
		return;
	gram_index_clear(&l->by_name);
	gram_index_clear(&l->by_path);
	g_array_unref(l->unfiled);
	g_array_unref(l->rules);
	g_free(l);
}

bool rule_list_add(struct rule_list *l, struct rule rule)
{
	if (l->rules->len >= RULE_LIST_MAX) {
		pattern_unref(rule.pattern);
		return false;
	}
	g_array_append_val(l->rules, rule);
	return true;
}

int rule_list_count(const struct rule_list *l)
{
	return (int)l->rules->len;
}

const struct rule *rule_list_get(const struct rule_list *l, int i)
{
	return &g_array_index(l->rules, struct rule, i);
}

/* The index */

static void gram_index_add(struct gram_index *x, int rule, const char *literal)
{
	size_t len = strlen(literal);
	struct entry e = {
		.rule = rule,
		.len = (unsigned short)len,
		.gram = (unsigned char)MIN(len, GRAM_MAX),
		.literal = g_ascii_strdown(literal, (gssize)len),
	};

	x->has[e.gram] = true;
	g_array_append_val(x->entries, e);
}

static unsigned entry_bucket(const struct gram_index *x, const struct entry *e, unsigned before)
{
	return gram_hash(e->literal + before, e->gram) & x->mask;
}

/* Of a literal's grams the one that fewest others have, so that ".js" or "src" does not fill one bucket. */
static void choose_grams(struct gram_index *x, unsigned *count)
{
	for (unsigned i = 0; i < x->entries->len; i++) {
		const struct entry *e = &g_array_index(x->entries, struct entry, i);

		for (unsigned j = 0; j + e->gram <= e->len; j++)
			count[entry_bucket(x, e, j)]++;
	}
	for (unsigned i = 0; i < x->entries->len; i++) {
		struct entry *e = &g_array_index(x->entries, struct entry, i);

		for (unsigned j = 0; j + e->gram <= e->len; j++) {
			if (count[entry_bucket(x, e, j)] < count[entry_bucket(x, e, e->before)])
				e->before = (unsigned short)j;
		}
	}
}

static int entry_compare(const void *a, const void *b, void *data)
{
	const struct entry *x = a, *y = b;
	unsigned i = entry_bucket(data, x, x->before), j = entry_bucket(data, y, y->before);

	if (i != j)
		return i < j ? -1 : 1;
	return y->rule - x->rule; /* the last rule first */
}

static void gram_index_seal(struct gram_index *x)
{
	unsigned size = 64, bucket = 0;
	g_autofree unsigned *count = NULL;

	while (size < 4 * x->entries->len)
		size *= 2;
	x->mask = size - 1;
	count = g_new0(unsigned, size);
	choose_grams(x, count);
	g_array_sort_with_data(x->entries, entry_compare, x);
	x->start = g_new0(unsigned, size + 1);
	for (unsigned i = 0; i < x->entries->len; i++) {
		const struct entry *e = &g_array_index(x->entries, struct entry, i);

		while (bucket <= entry_bucket(x, e, e->before))
			x->start[bucket++] = i;
	}
	while (bucket <= size)
		x->start[bucket++] = x->entries->len;
}

void rule_list_seal(struct rule_list *l)
{
	for (int i = rule_list_count(l) - 1; i >= 0; i--) {
		bool in_name;
		const char *literal = pattern_literal(rule_list_get(l, i)->pattern, &in_name);

		if (*literal)
			gram_index_add(in_name ? &l->by_name : &l->by_path, i, literal);
		else
			g_array_append_val(l->unfiled, i);
	}
	gram_index_seal(&l->by_name);
	gram_index_seal(&l->by_path);
}

/* Looking up */

/* One search under way. */
struct search {
	const struct rule_list *list;
	struct pattern_subject *subject;
	int best;
	bool unsure; /* some pattern could not tell; the answer is to be had by the slow way */
};

/* @i stands behind the best one so far. */
static void try_rule(struct search *q, int i)
{
	switch (pattern_match(rule_list_get(q->list, i)->pattern, q->subject)) {
	case PATTERN_YES:
		q->best = i;
		break;
	case PATTERN_UNSURE:
		q->unsure = true;
		break;
	case PATTERN_NO:
		break;
	}
}

static void try_bucket(struct search *q, const struct gram_index *x, const char *text, size_t len, size_t at, unsigned gram)
{
	unsigned bucket = gram_hash(text + at, gram) & x->mask;

	for (unsigned i = x->start[bucket]; i < x->start[bucket + 1]; i++) {
		const struct entry *e = &g_array_index(x->entries, struct entry, i);

		if (e->rule <= q->best)
			break;
		if (e->gram == gram && e->before <= at && at - e->before + e->len <= len &&
		    memcmp(text + at - e->before, e->literal, e->len) == 0)
			try_rule(q, e->rule);
	}
}

/* @text is in lower case (ASCII). */
static void try_index(struct search *q, const struct gram_index *x, const char *text, size_t len)
{
	if (x->entries->len == 0)
		return;
	for (unsigned gram = 1; gram <= GRAM_MAX; gram++) {
		for (size_t at = 0; x->has[gram] && at + gram <= len; at++)
			try_bucket(q, x, text, len, at, gram);
	}
}

int rule_list_last_match_slowly(const struct rule_list *l, int floor, enum action fallback, struct pattern_subject *s)
{
	g_autoptr(GArray) unsure = NULL;
	enum action action;
	int best = floor;

	for (int i = rule_list_count(l) - 1; i > floor && best == floor; i--) {
		enum pattern_result r = pattern_match(rule_list_get(l, i)->pattern, s);

		if (r == PATTERN_YES) {
			best = i;
		} else if (r == PATTERN_UNSURE) {
			if (!unsure)
				unsure = g_array_new(FALSE, FALSE, sizeof(int));
			g_array_append_val(unsure, i);
		}
	}
	if (!unsure)
		return best;
	/* From the first of them to the last: each stands behind what is decided so far, and may only close. */
	action = best >= 0 ? rule_list_get(l, best)->action : fallback;
	for (unsigned i = unsure->len; i-- > 0;) {
		int rule = g_array_index(unsure, int, i);

		if (rule_list_get(l, rule)->action > action) {
			best = rule;
			action = rule_list_get(l, rule)->action;
		}
	}
	return best;
}

int rule_list_last_match(const struct rule_list *l, int floor, enum action fallback, struct pattern_subject *s)
{
	struct search q = { .list = l, .subject = s, .best = floor };
	size_t before_name = (size_t)(s->name - s->path);
	char buf[512], *text = s->len <= sizeof(buf) ? buf : g_malloc(s->len);

	if (floor < rule_list_count(l) - 1) {
		for (size_t i = 0; i < s->len; i++)
			text[i] = (char)(s->path[i] + ((unsigned char)(s->path[i] - 'A') < 26 ? 'a' - 'A' : 0));
		try_index(&q, &l->by_name, text + before_name, s->len - before_name);
		try_index(&q, &l->by_path, text, s->len);
		for (unsigned i = 0; i < l->unfiled->len; i++) {
			if (g_array_index(l->unfiled, int, i) <= q.best)
				break;
			try_rule(&q, g_array_index(l->unfiled, int, i));
		}
	}
	if (text != buf)
		g_free(text);
	return q.unsure ? rule_list_last_match_slowly(l, floor, fallback, s) : q.best;
}

enum pattern_below rule_list_open_below(const struct rule_list *l, int floor, enum action action, const char *path, size_t len)
{
	enum pattern_below result = PATTERN_BELOW_NEVER;

	for (int i = rule_list_count(l) - 1; i > floor && result != PATTERN_BELOW_NAMED; i--) {
		const struct rule *r = rule_list_get(l, i);

		if (r->action < action)
			result = MAX(result, pattern_match_below(r->pattern, path, len));
	}
	return result;
}

bool rule_list_names_below(const struct rule_list *l, int floor, enum action action, const char *path, size_t len)
{
	for (int i = rule_list_count(l) - 1; i > floor; i--) {
		const struct rule *r = rule_list_get(l, i);

		if (r->action >= action && pattern_match_below(r->pattern, path, len) == PATTERN_BELOW_NAMED)
			return true;
	}
	return false;
}
