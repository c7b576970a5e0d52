/* SPDX-License-Identifier: MIT */
#include "gate/scan.h"

#include <string.h>

#define STEP (256 * 1024) /* new bytes of a window */
#define WINDOW (SCAN_BEHIND + STEP + SCAN_AHEAD)

struct range {
	uint64_t start, end;
};

struct scan {
	scan_look look;
	scan_found found;
	void *user;
	uint8_t *window;
	size_t fill;
	size_t from;       /* up to here it was looked at */
	uint64_t base;     /* offset of the window */
	uint64_t line;     /* at @counted */
	uint64_t counted;
	uint8_t *wide;     /* characters of UTF-16, made when needed */
	uint32_t *wide_map;
	GArray *reported;  /* struct range, of this window */
	bool over;
};

struct scan *scan_new(scan_look look, scan_found found, void *user)
{
	struct scan *s = g_new0(struct scan, 1);

	s->look = look;
	s->found = found;
	s->user = user;
	s->window = g_malloc(WINDOW);
	s->reported = g_array_new(FALSE, FALSE, sizeof(struct range));
	s->line = 1;
	return s;
}

void scan_free(struct scan *s)
{
	if (!s)
		return;
	g_array_unref(s->reported);
	g_free(s->window);
	g_free(s->wide);
	g_free(s->wide_map);
	g_free(s);
}

/* A character with a NUL on one side at least, or a NUL's place in UTF-32; returns how many characters there are. */
static size_t pull_together(struct scan *s, size_t from, size_t to, size_t *ret_from, size_t *ret_to)
{
	const uint8_t *w = s->window;
	size_t n = 0;

	if (!s->wide) {
		s->wide = g_malloc(WINDOW);
		s->wide_map = g_new(uint32_t, WINDOW);
	}
	*ret_from = *ret_to = SIZE_MAX;
	for (size_t i = 0; i < s->fill; i++) {
		bool beside_nul = (i > 0 && !w[i - 1]) || (i + 1 < s->fill && !w[i + 1]);

		if (i >= from && *ret_from == SIZE_MAX)
			*ret_from = n;
		if (i >= to && *ret_to == SIZE_MAX)
			*ret_to = n;
		if (!w[i] || (!beside_nul && n > 0 && s->wide[n - 1] == 0xff))
			continue;
		s->wide[n] = beside_nul && w[i] < 0x80 ? w[i] : 0xff;
		s->wide_map[n++] = (uint32_t)i;
	}
	*ret_from = MIN(*ret_from, n);
	*ret_to = MIN(*ret_to, n);
	return n;
}

static void look_wide(struct scan *s, size_t to)
{
	struct scan_view v = { .base = s->base };

	v.size = pull_together(s, s->from, to, &v.from, &v.to);
	v.data = s->wide;
	v.map = s->wide_map;
	s->look(s, &v);
}

static void look(struct scan *s, size_t to)
{
	const struct scan_view v = { .data = s->window, .size = s->fill, .from = s->from, .to = to, .base = s->base };

	s->look(s, &v);
	if (!s->over && memchr(s->window + s->from, '\0', s->fill - s->from))
		look_wide(s, to);
}

static uint64_t line_at(struct scan *s, size_t at)
{
	size_t i = s->counted > s->base ? s->counted - s->base : 0;
	uint64_t line = s->line;

	/* A match may lie in front of the last one's line. */
	for (; i > at; i--)
		line -= s->window[i - 1] == '\n';
	for (; i < at; i++)
		line += s->window[i] == '\n';
	return line;
}

/* What no match can reach any more leaves the window. */
static void move_on(struct scan *s, size_t to)
{
	size_t keep = to > SCAN_BEHIND ? to - SCAN_BEHIND : 0;

	s->line = line_at(s, to);
	s->counted = s->base + to;
	memmove(s->window, s->window + keep, s->fill - keep);
	s->fill -= keep;
	s->from = to - keep;
	s->base += keep;
	for (guint i = s->reported->len; i-- > 0;)
		if (g_array_index(s->reported, struct range, i).end <= s->base)
			g_array_remove_index_fast(s->reported, i);
}

bool scan_feed(struct scan *s, const void *data, size_t size)
{
	const uint8_t *p = data;

	while (size > 0 && !s->over) {
		size_t n = MIN(size, WINDOW - s->fill);

		memcpy(s->window + s->fill, p, n);
		s->fill += n;
		p += n;
		size -= n;
		if (s->fill < WINDOW)
			break;
		look(s, s->fill - SCAN_AHEAD);
		move_on(s, s->fill - SCAN_AHEAD);
	}
	return !s->over;
}

void scan_finish(struct scan *s)
{
	if (!s->over)
		look(s, s->fill);
	s->fill = s->from = 0;
	s->base = s->counted = 0;
	s->line = 1;
	s->over = false;
	g_array_set_size(s->reported, 0);
}

static uint64_t offset_of(const struct scan_view *v, size_t at, size_t extra)
{
	if (!v->map)
		return v->base + at + extra;
	return v->base + v->map[at] + extra;
}

static bool overlaps(const struct scan *s, uint64_t start, uint64_t end)
{
	for (guint i = 0; i < s->reported->len; i++) {
		const struct range *r = &g_array_index(s->reported, struct range, i);

		if (r->start < end && start < r->end)
			return true;
	}
	return false;
}

bool scan_is_reported(const struct scan *s, const struct scan_view *v, size_t at)
{
	uint64_t start = offset_of(v, at, 0);

	return overlaps(s, start, start + 1);
}

bool scan_report(struct scan *s, const struct scan_view *v, size_t start, size_t end, const char *rule, const char *what,
		 const char *excerpt)
{
	struct range r = { offset_of(v, start, 0), offset_of(v, end - 1, 1) };
	struct scan_match m = {
		.rule = rule,
		.what = what,
		.excerpt = excerpt,
		.value = v->data + start,
		.value_size = end - start,
		.start = r.start,
		.end = r.end,
	};

	if (s->over || overlaps(s, r.start, r.end))
		return !s->over;
	m.line = line_at(s, r.start - s->base);
	g_array_append_val(s->reported, r);
	s->over = !s->found(&m, s->user);
	return !s->over;
}
