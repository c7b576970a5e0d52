/* SPDX-License-Identifier: MIT */
#include "fs/roster.h"

#include <glib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PAGE 4096
#define UNIT 16 /* bytes; what an entry takes is a multiple of it */
#define UNITS_MAX 8192
#define SIZE_LEAST (16u * 1024 * 1024)

/* At the beginning of the shared memory. */
struct shared {
	uint64_t used[2]; /* bytes of each half */
	uint32_t active;  /* the half in use */
	uint32_t lacking; /* something found no room */
};

enum { OTHER_OBJECT = 16 }; /* in @kind: the number is not that of the workspace object */

struct roster_entry {
	uint16_t units; /* set once, before the half grows by it */
	uint16_t name_size, origin_size; /* with the final NUL; 0 = none */
	uint8_t mark_size;
	uint8_t kind; /* type >> 12, OTHER_OBJECT */
	uint64_t ino; /* last of all; 0 = free */
	uint32_t serial;
	uint32_t lookups;
	uint64_t parent; /* of a free one: the offset of the next one, plus 1 */
	int64_t btime;
	char data[]; /* dev and print_ino (OTHER_OBJECT), name, origin, mark */
};
G_STATIC_ASSERT(sizeof(struct roster_entry) == 40);

struct roster {
	struct shared *shared;
	size_t size; /* of all of it */
	size_t half;
	unsigned writing; /* the half that is written */
	uint32_t serial;
	uint64_t ahead; /* bytes of the half that is written whose pages are there */
	uint64_t *free; /* by units: offset of the first free entry, plus 1 */
};

static char *half_of(const struct roster *r, unsigned which)
{
	return (char *)r->shared + PAGE + which * r->half;
}

/* Life */

struct roster *roster_new(size_t size)
{
	struct roster *r;
	void *memory = MAP_FAILED;

	for (; size >= SIZE_LEAST; size /= 2) {
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory != MAP_FAILED)
			break;
	}
	if (memory == MAP_FAILED)
		return NULL;
	r = g_new0(struct roster, 1);
	r->shared = memory;
	r->size = size;
	r->half = (size - PAGE) / 2 / PAGE * PAGE;
	r->free = g_new0(uint64_t, UNITS_MAX + 1);
	return r;
}

void roster_free(struct roster *r)
{
	if (!r)
		return;
	munmap(r->shared, r->size);
	g_free(r->free);
	g_free(r);
}

bool roster_is_whole(const struct roster *r)
{
	return !__atomic_load_n(&r->shared->lacking, __ATOMIC_RELAXED);
}

/* Entries */

static size_t object_size(const struct roster_node *n)
{
	return n->print_ino ? 2 * sizeof(uint64_t) : 0;
}

static size_t string_size(const char *s)
{
	size_t size = s ? strlen(s) + 1 : 0;

	/* Longer than any path that can be opened: as good as none. */
	return size > UINT16_MAX ? 0 : size;
}

static char *add(char *p, const void *data, size_t size)
{
	if (size > 0)
		memcpy(p, data, size);
	return p + size;
}

/* All but what makes it valid. */
static void entry_fill(struct roster_entry *e, const struct roster_node *n)
{
	const uint64_t object[] = { n->dev, n->print_ino };
	char *p = e->data;

	e->name_size = (uint16_t)string_size(n->name);
	e->origin_size = (uint16_t)string_size(n->origin);
	e->mark_size = (uint8_t)n->mark_size;
	e->kind = (uint8_t)(n->type >> 12 | (n->print_ino ? OTHER_OBJECT : 0));
	e->lookups = (uint32_t)MIN(n->lookups, UINT32_MAX);
	e->parent = n->parent;
	e->btime = n->btime;
	p = add(p, object, object_size(n));
	p = add(p, n->name, e->name_size);
	p = add(p, n->origin, e->origin_size);
	add(p, n->mark, e->mark_size);
}

static void entry_read(const struct roster_entry *e, struct roster_node *ret)
{
	const char *p = e->data;
	uint64_t object[2] = { 0 };

	if (e->kind & OTHER_OBJECT) {
		memcpy(object, p, sizeof(object));
		p += sizeof(object);
	}
	*ret = (struct roster_node){ .ino = e->ino, .lookups = e->lookups, .type = (uint32_t)(e->kind & 15) << 12, .parent = e->parent,
				     .dev = object[0], .print_ino = object[1], .btime = e->btime,
				     .mark_size = e->mark_size };
	ret->name = e->name_size ? p : NULL;
	p += e->name_size;
	ret->origin = e->origin_size ? p : NULL;
	p += e->origin_size;
	ret->mark = e->mark_size ? p : NULL;
}

static bool same_string(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool entry_says(const struct roster_entry *e, const struct roster_node *n)
{
	struct roster_node now;

	entry_read(e, &now);
	return now.parent == n->parent && now.type == n->type && now.btime == n->btime && now.dev == n->dev && now.print_ino == n->print_ino &&
	       same_string(now.name, n->name) && same_string(now.origin, n->origin) && now.mark_size == n->mark_size &&
	       (n->mark_size == 0 || memcmp(now.mark, n->mark, n->mark_size) == 0);
}

/* Room */

#define AHEAD ((uint64_t)256 * 1024)

/* Pages one by one, as each is written first, would be most of what a roster costs a walk. */
static void get_pages(struct roster *r, uint64_t end)
{
	uint64_t size = MIN(AHEAD, r->half - r->ahead);

	if (end <= r->ahead)
		return;
	if (madvise(half_of(r, r->writing) + r->ahead, size, MADV_POPULATE_WRITE) < 0)
		size = r->half - r->ahead; /* before Linux 5.14: they come as they are written */
	r->ahead += size;
}

static struct roster_entry *entry_new(struct roster *r, size_t size)
{
	uint64_t *used = &r->shared->used[r->writing];
	char *half = half_of(r, r->writing);
	size_t units = (sizeof(struct roster_entry) + size + UNIT - 1) / UNIT;
	struct roster_entry *e;

	if (units <= UNITS_MAX && r->free[units]) {
		e = (void *)(half + r->free[units] - 1);
		r->free[units] = e->parent;
		return e;
	}
	if (units > UNITS_MAX || *used + units * UNIT > r->half) {
		__atomic_store_n(&r->shared->lacking, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	get_pages(r, *used + units * UNIT);
	e = (void *)(half + *used);
	e->units = (uint16_t)units;
	e->ino = 0;
	__atomic_store_n(used, *used + units * UNIT, __ATOMIC_RELEASE);
	return e;
}

void roster_drop(struct roster *r, struct roster_entry *e)
{
	if (!e)
		return;
	__atomic_store_n(&e->ino, 0, __ATOMIC_RELEASE);
	e->parent = r->free[e->units];
	r->free[e->units] = (uint64_t)((char *)e - half_of(r, r->writing)) + 1;
}

void roster_put(struct roster *r, struct roster_entry **entry, const struct roster_node *n)
{
	struct roster_entry *e, *old = *entry;

	if (old && entry_says(old, n)) {
		__atomic_store_n(&old->lookups, (uint32_t)MIN(n->lookups, UINT32_MAX), __ATOMIC_RELEASE);
		return;
	}
	e = entry_new(r, object_size(n) + string_size(n->name) + string_size(n->origin) + n->mark_size);
	if (e) {
		entry_fill(e, n);
		e->serial = ++r->serial;
		__atomic_store_n(&e->ino, n->ino, __ATOMIC_RELEASE);
	}
	roster_drop(r, old);
	*entry = e;
}

/* Reading */

void roster_each(const struct roster *r, void (*fn)(const struct roster_node *n, void *user), void *user)
{
	g_autoptr(GHashTable) found = g_hash_table_new(g_int64_hash, g_int64_equal);
	unsigned half = __atomic_load_n(&r->shared->active, __ATOMIC_ACQUIRE);
	uint64_t used = __atomic_load_n(&r->shared->used[half], __ATOMIC_ACQUIRE);
	const char *start = half_of(r, half);
	GHashTableIter iter;
	gpointer value;

	for (uint64_t at = 0; at < used; at += (uint64_t)((const struct roster_entry *)(const void *)(start + at))->units * UNIT) {
		struct roster_entry *e = (void *)(start + at);
		const struct roster_entry *other = e->ino ? g_hash_table_lookup(found, &e->ino) : NULL;

		/* Of the two that a kill between publishing and dropping leaves, the later one. A serial may have wrapped. */
		if (e->ino && (!other || (int32_t)(e->serial - other->serial) > 0))
			g_hash_table_replace(found, &e->ino, e);
	}
	g_hash_table_iter_init(&iter, found);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct roster_node n;

		entry_read(value, &n);
		fn(&n, user);
	}
}

/* The other half */

static void half_clear(struct roster *r, unsigned which)
{
	__atomic_store_n(&r->shared->used[which], 0, __ATOMIC_RELEASE);
	/* Where that fails its pages stay; nothing is read beyond what is used. */
	if (madvise(half_of(r, which), r->half, MADV_REMOVE) < 0)
		g_debug("the memory of the last roster is kept");
}

void roster_renew(struct roster *r)
{
	r->writing = !r->shared->active;
	r->ahead = 0;
	memset(r->free, 0, (UNITS_MAX + 1) * sizeof(*r->free));
	half_clear(r, r->writing);
}

void roster_renewed(struct roster *r)
{
	__atomic_store_n(&r->shared->active, r->writing, __ATOMIC_RELEASE);
	half_clear(r, !r->writing);
}
