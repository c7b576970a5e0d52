/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * pagemap - a sparse set of page numbers
 *
 * Kept in chunks of 4096 pages (16 MiB of a file, 512 bytes of bits); a chunk without any page takes nothing, so a map
 * for a sparse file of exabytes costs what is in it. A chunk is also the unit in which snapshot/content.c stores a map.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define PAGE_BYTES 4096u
#define CHUNK_PAGES 4096u
#define CHUNK_BYTES (CHUNK_PAGES / 8)

struct page_map;

struct page_map *page_map_new(void);
void page_map_free(struct page_map *m);
typedef struct page_map page_map_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(page_map_t, page_map_free)

/* Pages from the one that holds byte @offset on, and up to (not with) the one after the byte before @end. */
static inline uint64_t page_of(uint64_t offset)
{
	return offset / PAGE_BYTES;
}

static inline uint64_t page_end_of(uint64_t end)
{
	return end / PAGE_BYTES + (end % PAGE_BYTES ? 1 : 0);
}

bool page_map_has(const struct page_map *m, uint64_t page);
void page_map_set(struct page_map *m, uint64_t first, uint64_t end);
/*
 * page_map_run() - how many pages from @first on, below @end, are like @first: in the map or not (@ret_has). At least
 * 1.
 */
uint64_t page_map_run(const struct page_map *m, uint64_t first, uint64_t end, bool *ret_has);
/* page_map_count() - the pages below @end that are in the map. */
uint64_t page_map_count(const struct page_map *m, uint64_t end);
/* page_map_add() - everything that is in @other. */
void page_map_add(struct page_map *m, const struct page_map *other);

/* Chunks, for storing: @bits are CHUNK_BYTES, or fewer when the rest is zero. */

/* page_map_put_chunk() - @raw: page_map_settle() is still to come for it. */
void page_map_put_chunk(struct page_map *m, uint64_t chunk, const void *bits, size_t size, bool raw);
bool page_map_is_raw(const struct page_map *m, uint64_t chunk);
/* page_map_settle() - drops from @chunk what is not in @other (NULL: nothing), and it is no longer raw. */
void page_map_settle(struct page_map *m, uint64_t chunk, const struct page_map *other);
/*
 * page_map_chunk_with() - the bits of @chunk with pages [first, end) added, @m unchanged; false when they were all
 * there.
 */
bool page_map_chunk_with(const struct page_map *m, uint64_t chunk, uint64_t first, uint64_t end,
			 uint8_t ret[CHUNK_BYTES]);
/* page_map_foreach() - until @fn returns something else than 0, which is returned. */
typedef int (*page_map_fn)(uint64_t chunk, const uint8_t bits[CHUNK_BYTES], void *user);
int page_map_foreach(const struct page_map *m, page_map_fn fn, void *user);
