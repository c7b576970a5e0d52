/* SPDX-License-Identifier: MIT */
#include "snapshot/pagemap.h"

#include <string.h>

struct page_map {
	GHashTable *chunks; /* number (guint64 *, first member of struct chunk) -> struct chunk */
};

struct chunk {
	guint64 number;
	bool raw;
	uint8_t bits[CHUNK_BYTES];
};

struct page_map *page_map_new(void)
{
	struct page_map *m = g_new0(struct page_map, 1);

	m->chunks = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
	return m;
}

void page_map_free(struct page_map *m)
{
	if (!m)
		return;
	g_hash_table_unref(m->chunks);
	g_free(m);
}

static struct chunk *chunk_get(const struct page_map *m, uint64_t number)
{
	guint64 key = number;

	return g_hash_table_lookup(m->chunks, &key);
}

static struct chunk *chunk_make(struct page_map *m, uint64_t number)
{
	struct chunk *c = chunk_get(m, number);

	if (!c) {
		c = g_new0(struct chunk, 1);
		c->number = number;
		g_hash_table_insert(m->chunks, &c->number, c);
	}
	return c;
}

static bool bit_has(const uint8_t *bits, unsigned i)
{
	return bits[i / 8] & (1u << i % 8);
}

/* Sets [i, end); false when all were set. */
static bool bits_set(uint8_t *bits, unsigned i, unsigned end)
{
	bool changed = false;

	while (i < end) {
		unsigned n = MIN(8 - i % 8, end - i);
		uint8_t mask = ((1u << n) - 1) << i % 8;

		changed |= (bits[i / 8] & mask) != mask;
		bits[i / 8] |= mask;
		i += n;
	}
	return changed;
}

bool page_map_has(const struct page_map *m, uint64_t page)
{
	const struct chunk *c = chunk_get(m, page / CHUNK_PAGES);

	return c && bit_has(c->bits, page % CHUNK_PAGES);
}

/* The part of the pages [first, end) that lies in @chunk, counted from its start. */
static void chunk_clip(uint64_t chunk, uint64_t first, uint64_t end, unsigned *ret_first, unsigned *ret_end)
{
	uint64_t start = chunk * CHUNK_PAGES;

	*ret_first = first > start ? first - start : 0;
	*ret_end = MIN(end - start, CHUNK_PAGES);
}

void page_map_set(struct page_map *m, uint64_t first, uint64_t end)
{
	unsigned i, stop;

	for (uint64_t n = first / CHUNK_PAGES; n * CHUNK_PAGES < end; n++) {
		chunk_clip(n, first, end, &i, &stop);
		bits_set(chunk_make(m, n)->bits, i, stop);
	}
}

uint64_t page_map_run(const struct page_map *m, uint64_t first, uint64_t end, bool *ret_has)
{
	bool has = page_map_has(m, first);
	uint64_t page = first + 1;

	while (page < end) {
		const struct chunk *c = chunk_get(m, page / CHUNK_PAGES);
		unsigned i = page % CHUNK_PAGES;

		if (c && has && i % 8 == 0 && c->bits[i / 8] == 0xff) {
			page += 8;
		} else if (c && !has && i % 8 == 0 && c->bits[i / 8] == 0) {
			page += 8;
		} else if (c) {
			if (bit_has(c->bits, i) != has)
				break;
			page++;
		} else {
			if (has)
				break;
			page += CHUNK_PAGES - i;
		}
	}
	*ret_has = has;
	return MIN(page, end) - first;
}

uint64_t page_map_count(const struct page_map *m, uint64_t end)
{
	GHashTableIter iter;
	struct chunk *c;
	uint64_t count = 0;

	g_hash_table_iter_init(&iter, m->chunks);
	while (g_hash_table_iter_next(&iter, NULL, (gpointer *)&c)) {
		uint64_t start = c->number * CHUNK_PAGES;
		unsigned stop = start < end ? MIN(end - start, CHUNK_PAGES) : 0;

		for (unsigned i = 0; i < stop / 8; i++)
			count += __builtin_popcount(c->bits[i]);
		if (stop % 8)
			count += __builtin_popcount(c->bits[stop / 8] & ((1u << stop % 8) - 1));
	}
	return count;
}

void page_map_add(struct page_map *m, const struct page_map *other)
{
	GHashTableIter iter;
	struct chunk *o;

	g_hash_table_iter_init(&iter, other->chunks);
	while (g_hash_table_iter_next(&iter, NULL, (gpointer *)&o)) {
		struct chunk *c = chunk_make(m, o->number);

		for (unsigned i = 0; i < CHUNK_BYTES; i++)
			c->bits[i] |= o->bits[i];
	}
}

void page_map_put_chunk(struct page_map *m, uint64_t chunk, const void *bits, size_t size, bool raw)
{
	struct chunk *c = chunk_make(m, chunk);

	memset(c->bits, 0, CHUNK_BYTES);
	memcpy(c->bits, bits, MIN(size, CHUNK_BYTES));
	c->raw = raw;
}

bool page_map_is_raw(const struct page_map *m, uint64_t chunk)
{
	const struct chunk *c = chunk_get(m, chunk);

	return c && c->raw;
}

void page_map_settle(struct page_map *m, uint64_t chunk, const struct page_map *other)
{
	struct chunk *c = chunk_get(m, chunk);
	const struct chunk *o = other ? chunk_get(other, chunk) : NULL;

	for (unsigned i = 0; other && i < CHUNK_BYTES; i++)
		c->bits[i] &= o ? o->bits[i] : 0;
	c->raw = false;
}

int page_map_foreach(const struct page_map *m, page_map_fn fn, void *user)
{
	GHashTableIter iter;
	struct chunk *c;
	int r = 0;

	g_hash_table_iter_init(&iter, m->chunks);
	while (r == 0 && g_hash_table_iter_next(&iter, NULL, (gpointer *)&c))
		r = fn(c->number, c->bits, user);
	return r;
}

bool page_map_chunk_with(const struct page_map *m, uint64_t chunk, uint64_t first, uint64_t end,
			 uint8_t ret[CHUNK_BYTES])
{
	const struct chunk *c = chunk_get(m, chunk);
	unsigned i, stop;

	if (c)
		memcpy(ret, c->bits, CHUNK_BYTES);
	else
		memset(ret, 0, CHUNK_BYTES);
	chunk_clip(chunk, first, end, &i, &stop);
	return bits_set(ret, i, stop);
}
