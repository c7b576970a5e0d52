/* SPDX-License-Identifier: MIT */
#include "gate/added.h"

#include <errno.h>
#include <string.h>

#define CHUNK (256 * 1024)
/* Different lines of the old version that are told apart: 96 MiB. */
#define LINES_MAX (4u * 1024 * 1024)
/* Runs of new lines: with more of them the gaps between count as new too. */
#define SPANS_MAX (1024u * 1024)

struct span {
	uint64_t start, end;
};

/* How often the old version has each line: open addressing, 0 = free (no line hashes to it). */
struct lines {
	uint64_t *hashes;
	uint32_t *counts;
	size_t room; /* a power of two */
	size_t used;
	bool full;
};

struct added {
	bool all;
	GArray *spans; /* in order, none touching the next */
	uint64_t added, removed;
};

typedef void (*line_fn)(uint64_t hash, uint64_t start, uint64_t end, void *user);

/* Lines */

/* Nobody who writes a file knows the seed, so lines that only look alike can't be made. */
static uint64_t hash_seed(void)
{
	static uint64_t seed;
	static gsize once;

	if (g_once_init_enter(&once)) {
		seed = (uint64_t)g_random_int() << 32 | g_random_int();
		g_once_init_leave(&once, 1);
	}
	return seed;
}

static uint64_t hash_bytes(uint64_t h, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x9fb21c651e98df25);
	return h;
}

static uint64_t hash_finish(uint64_t h, uint64_t len)
{
	h ^= len;
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	h ^= h >> 32;
	return h ? h : 1;
}

static int each_line(struct tree *t, const struct entry *e, line_fn fn, void *user)
{
	g_autoptr(tree_file_t) f = NULL;
	g_autofree uint8_t *buf = g_malloc(CHUNK);
	const uint64_t seed = hash_seed();
	uint64_t offset = 0, line = 0, h = seed;
	ssize_t n;
	int r = tree_file_open(t, e, &f);

	if (r < 0)
		return r;
	while ((n = tree_file_read(f, buf, CHUNK, offset)) > 0) {
		const uint8_t *p = buf, *end = buf + n, *nl;

		while ((nl = memchr(p, '\n', end - p))) {
			uint64_t at = offset + (nl - buf) + 1;

			fn(hash_finish(hash_bytes(h, p, nl - p), at - 1 - line), line, at, user);
			line = at;
			h = seed;
			p = nl + 1;
		}
		h = hash_bytes(h, p, end - p);
		offset += n;
	}
	if (n == 0 && offset > line)
		fn(hash_finish(h, offset - line), line, offset, user);
	return n;
}

static size_t lines_slot(const struct lines *l, uint64_t hash)
{
	size_t i = hash & (l->room - 1);

	while (l->hashes[i] && l->hashes[i] != hash)
		i = (i + 1) & (l->room - 1);
	return i;
}

static void lines_grow(struct lines *l)
{
	struct lines old = *l;

	l->room = old.room ? old.room * 2 : 64;
	l->hashes = g_new0(uint64_t, l->room);
	l->counts = g_new0(uint32_t, l->room);
	for (size_t i = 0; i < old.room; i++) {
		if (!old.hashes[i])
			continue;
		size_t to = lines_slot(l, old.hashes[i]);

		l->hashes[to] = old.hashes[i];
		l->counts[to] = old.counts[i];
	}
	g_free(old.hashes);
	g_free(old.counts);
}

static void lines_clear(struct lines *l)
{
	g_free(l->hashes);
	g_free(l->counts);
}

/* Passes */

struct pass {
	struct lines lines;
	struct added *added;
	uint64_t before; /* lines of the old version */
	uint64_t matched;
};

static void take_before(uint64_t hash, uint64_t start, uint64_t end, void *user)
{
	struct pass *p = user;
	struct lines *l = &p->lines;
	size_t i;

	(void)start;
	(void)end;
	p->before++;
	if (l->used * 2 >= l->room && l->used < LINES_MAX)
		lines_grow(l);
	i = lines_slot(l, hash);
	if (!l->hashes[i]) {
		if (l->used >= LINES_MAX) {
			l->full = true;
			return;
		}
		l->hashes[i] = hash;
		l->used++;
	}
	if (l->counts[i] < UINT32_MAX)
		l->counts[i]++;
}

static void add_span(struct added *a, uint64_t start, uint64_t end)
{
	struct span s = { start, end };

	if (a->spans->len > 0) {
		struct span *last = &g_array_index(a->spans, struct span, a->spans->len - 1);

		if (last->end == start || a->spans->len >= SPANS_MAX) {
			last->end = end;
			return;
		}
	}
	g_array_append_val(a->spans, s);
}

static void take_after(uint64_t hash, uint64_t start, uint64_t end, void *user)
{
	struct pass *p = user;
	size_t i = lines_slot(&p->lines, hash);

	if (p->lines.counts[i] > 0) {
		p->lines.counts[i]--;
		p->matched++;
		return;
	}
	p->added->added++;
	add_span(p->added, start, end);
}

static bool is_file(const struct entry *e)
{
	return e && S_ISREG(e->attr.mode);
}

int added_new(const struct change *c, struct tree *from, struct tree *to, struct added **ret)
{
	g_autoptr(added_t) a = g_new0(struct added, 1);
	struct pass p = { .added = a };
	int r = 0;

	a->spans = g_array_new(FALSE, FALSE, sizeof(struct span));
	if (!c->content_changed) {
		*ret = g_steal_pointer(&a);
		return 0;
	}
	a->all = !is_file(c->before);
	lines_grow(&p.lines);
	if (is_file(c->before))
		r = each_line(from, c->before, take_before, &p);
	if (r == 0 && is_file(c->after))
		r = each_line(to, c->after, take_after, &p);
	a->all = a->all || p.lines.full;
	a->removed = p.before - p.matched;
	lines_clear(&p.lines);
	if (r < 0)
		return r;
	*ret = g_steal_pointer(&a);
	return 0;
}

void added_free(struct added *a)
{
	if (!a)
		return;
	g_array_unref(a->spans);
	g_free(a);
}

bool added_is_all(const struct added *a)
{
	return a->all;
}

bool added_is_none(const struct added *a)
{
	return !a->all && a->spans->len == 0;
}

bool added_touches(const struct added *a, uint64_t start, uint64_t end)
{
	guint low = 0, high = a->spans->len;

	if (a->all)
		return true;
	/* The first span that ends after @start. */
	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (g_array_index(a->spans, struct span, middle).end <= start)
			low = middle + 1;
		else
			high = middle;
	}
	return low < a->spans->len && g_array_index(a->spans, struct span, low).start < end;
}

uint64_t added_lines(const struct added *a)
{
	return a->added;
}

uint64_t added_removed_lines(const struct added *a)
{
	return a->removed;
}
