/* SPDX-License-Identifier: MIT */
#include "snapshot/content.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "snapshot/content_private.h"
#include "snapshot/store_private.h"

struct content_limits content_limits = {
	.inline_max = CONTENT_INLINE_MAX,
	.rewrite_max = 256 * 1024,
	.copy_max = 1024 * 1024,
	.depth_max = 8,
	.depth_full = 32,
	.merge_max = 16 * 1024 * 1024,
	.reflink = true,
};

/* A blob up to here is written as quickly as the row around it, however often. */
#define REWRITE_FREE 4096
/* A chain longer than this is not one that we made. */
#define CHAIN_MAX 64

/* Life */

static struct content *content_alloc(struct store *s, struct lower *lower, int64_t id)
{
	struct content *c = g_new0(struct content, 1);

	c->refs = 1;
	c->store = s;
	c->lower = lower;
	c->id = id;
	c->base_fd = -1;
	c->pages = page_map_new();
	g_mutex_init(&c->object_lock);
	return c;
}

struct content *content_ref(struct content *c)
{
	g_atomic_int_inc(&c->refs);
	return c;
}

void content_close(struct content *c)
{
	if (!c || !g_atomic_int_dec_and_test(&c->refs))
		return;
	content_close(c->base);
	object_unref(c->object);
	if (c->base_fd >= 0)
		close(c->base_fd);
	if (c->data)
		g_byte_array_unref(c->data);
	origin_clear(&c->origin);
	page_map_free(c->pages);
	g_mutex_clear(&c->object_lock);
	g_free(c);
}

static int content_load_pages(struct content *c)
{
	struct db_query *q = db_query(store_db(c->store), "SELECT chunk, bits FROM page WHERE content = ?");
	g_autoptr(page_map_t) pages = page_map_new();
	int r;

	db_bind_int(q, 0, c->id);
	while ((r = db_step(q)) > 0) {
		size_t size;
		const void *bits = db_blob(q, 1, &size);

		page_map_put_chunk(pages, db_int(q, 0), bits, size, true);
	}
	if (r < 0)
		return r;
	page_map_free(c->pages);
	c->pages = g_steal_pointer(&pages);
	return 0;
}

void content_set_home(struct content *c, GByteArray *data, struct object *object)
{
	g_autoptr(GByteArray) old_data = NULL;
	struct object *old_object;

	g_mutex_lock(&c->object_lock);
	old_data = c->data;
	old_object = c->object;
	c->data = data;
	c->object = object;
	g_mutex_unlock(&c->object_lock);
	object_unref(old_object);
}

/* Everything that the row says, but for the base itself: that never becomes another one. */
static int content_load(struct content *c, int64_t *ret_base, int64_t *ret_base_origin)
{
	struct db_query *q = db_query(store_db(c->store), "SELECT epoch, kind, size, data, base, base_origin, "
							  "base_size FROM content WHERE id = ?");
	const void *data;
	size_t size;
	int kind, r;

	db_bind_int(q, 0, c->id);
	r = db_step(q);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	c->epoch = db_int(q, 0);
	c->current = content_is_writable(c);
	kind = db_int(q, 1);
	c->size = db_int(q, 2);
	data = db_blob(q, 3, &size);
	*ret_base = db_int(q, 4);
	*ret_base_origin = db_int(q, 5);
	c->base_size = db_int(q, 6);
	if (kind == CONTENT_INLINE) {
		GByteArray *bytes = g_byte_array_sized_new(size);

		g_byte_array_append(bytes, data, size);
		content_set_home(c, bytes, NULL);
		r = size == c->size ? 0 : -EUCLEAN;
	} else {
		if (c->data)
			content_set_home(c, NULL, NULL);
		r = kind == CONTENT_OBJECT && c->base_size <= c->size ? 0 : -EUCLEAN;
	}
	db_done(q);
	return r < 0 || kind == CONTENT_INLINE ? r : content_load_pages(c);
}

static int content_open_depth(struct store *s, struct lower *lower, int64_t id, unsigned depth, struct content **ret)
{
	g_autoptr(content_t) c = content_alloc(s, lower, id);
	int64_t base_origin;
	int r = content_load(c, &c->base_id, &base_origin);

	if (r < 0)
		return r;
	c->durable = true;
	if (base_origin) {
		r = store_origin_get(s, base_origin, &c->origin);
		if (r < 0)
			return r == -ENOENT ? -EUCLEAN : r;
	}
	if (c->base_id) {
		r = depth < CHAIN_MAX ? content_open_depth(s, lower, c->base_id, depth + 1, &c->base) : -EUCLEAN;
		if (r < 0)
			return r == -ENOENT ? -EUCLEAN : r;
		if (c->base->size < c->base_size)
			return -EUCLEAN;
	}
	*ret = g_steal_pointer(&c);
	return 0;
}

int content_open(struct store *s, struct lower *lower, int64_t id, struct content **ret)
{
	return content_open_depth(s, lower, id, 0, ret);
}

int content_insert(struct store *s, struct lower *lower, enum content_kind kind, const void *data, uint64_t size,
		   struct content **ret)
{
	struct db_query *q = db_query(store_db(s), "INSERT INTO content (epoch, kind, size, data) VALUES (?, ?, ?, ?)");
	struct content *c;
	int r;

	db_bind_int(q, 0, store_epoch(s));
	db_bind_int(q, 1, kind);
	db_bind_int(q, 2, size);
	if (kind == CONTENT_INLINE)
		db_bind_blob(q, 3, data, size);
	else
		db_bind_null(q, 3);
	r = db_run(q);
	if (r < 0)
		return r;
	c = content_alloc(s, lower, db_last_id(store_db(s)));
	c->epoch = store_epoch(s);
	c->current = true;
	c->size = size;
	if (kind == CONTENT_INLINE) {
		c->data = g_byte_array_sized_new(size);
		g_byte_array_append(c->data, data, size);
	}
	*ret = c;
	return 0;
}

int content_new(struct store *s, struct lower *lower, struct content **ret)
{
	return content_insert(s, lower, CONTENT_INLINE, NULL, 0, ret);
}

int content_revert(struct content *c)
{
	int64_t base, base_origin;

	return content_load(c, &base, &base_origin);
}

int64_t content_id(const struct content *c)
{
	return c->id;
}

uint64_t content_size(const struct content *c)
{
	return c->size;
}

bool content_is_writable(const struct content *c)
{
	return c->epoch == store_epoch(c->store);
}

/* The index */

int content_put_inline(struct content *c)
{
	struct db_query *q = db_query(store_db(c->store), "UPDATE content SET size = ?, data = ? WHERE id = ?");

	db_bind_int(q, 0, c->data->len);
	db_bind_blob(q, 1, c->data->data, c->data->len);
	db_bind_int(q, 2, c->id);
	if (c->data->len == 0)
		c->rewritten = 0;
	else if (c->data->len > MAX(c->size, REWRITE_FREE)) /* of one as long as before SQLite writes what differs */
		c->rewritten += c->data->len;
	c->size = c->data->len;
	return db_run(q);
}

int content_put_size(struct content *c, uint64_t size, uint64_t base_size)
{
	struct db_query *q = db_query(store_db(c->store), "UPDATE content SET size = ?1, base_size = ?2, "
							  "base = iif(?2, base, 0), "
							  "base_origin = iif(?2, base_origin, 0) WHERE id = ?3");
	int r;

	db_bind_int(q, 0, size);
	db_bind_int(q, 1, base_size);
	db_bind_int(q, 2, c->id);
	r = db_run(q);
	if (r < 0)
		return r;
	c->size = size;
	c->base_size = base_size;
	return 0;
}

int content_put_base(struct content *c, int64_t base_id, const struct origin *origin, uint64_t base_size)
{
	struct db_query *q = db_query(store_db(c->store), "UPDATE content SET base = ?, base_origin = ?, base_size = ? "
							  "WHERE id = ?");
	int r;

	db_bind_int(q, 0, base_id);
	db_bind_int(q, 1, origin ? origin->id : 0);
	db_bind_int(q, 2, base_size);
	db_bind_int(q, 3, c->id);
	r = db_run(q);
	if (r < 0)
		return r;
	c->base_id = base_id;
	c->base_size = base_size;
	if (origin) {
		c->origin = *origin;
		c->origin.path = g_strdup(origin->path);
	}
	return 0;
}

static int content_put_chunk(uint64_t chunk, const uint8_t bits[CHUNK_BYTES], void *user)
{
	struct content *c = user;
	struct db_query *q = db_query(store_db(c->store), "INSERT INTO page (content, chunk, bits) VALUES (?, ?, ?) "
							  "ON CONFLICT (content, chunk) DO UPDATE "
							  "SET bits = excluded.bits");
	size_t size = CHUNK_BYTES;

	while (size > 0 && bits[size - 1] == 0)
		size--;
	db_bind_int(q, 0, c->id);
	db_bind_int(q, 1, chunk);
	db_bind_blob(q, 2, bits, size);
	return db_run(q);
}

int content_pages_add(struct content *c, uint64_t first, uint64_t end)
{
	uint8_t bits[CHUNK_BYTES];

	for (uint64_t n = first / CHUNK_PAGES; n * CHUNK_PAGES < end; n++) {
		int r;

		if (!page_map_chunk_with(c->pages, n, first, end, bits))
			continue;
		r = content_put_chunk(n, bits, c);
		if (r < 0)
			return r;
		page_map_put_chunk(c->pages, n, bits, CHUNK_BYTES, false);
	}
	return 0;
}

int content_pages_put(struct content *c, struct page_map *pages)
{
	page_map_free(c->pages);
	c->pages = pages;
	return page_map_foreach(pages, content_put_chunk, c);
}

/* Leftovers */

int content_drop(struct store *s, int64_t id)
{
	struct db_query *q = db_query(store_db(s), "DELETE FROM page WHERE content = "
						   "(SELECT id FROM content WHERE id = ? AND epoch = ?)");
	int r;

	db_bind_int(q, 0, id);
	db_bind_int(q, 1, store_epoch(s));
	r = db_run(q);
	if (r < 0)
		return r;
	q = db_query(store_db(s), "DELETE FROM content WHERE id = ? AND epoch = ? RETURNING kind");
	db_bind_int(q, 0, id);
	db_bind_int(q, 1, store_epoch(s));
	r = db_step(q);
	if (r > 0) {
		r = db_int(q, 0) == CONTENT_OBJECT;
		db_done(q);
	}
	return r;
}

int content_purge(struct store *s, int64_t id)
{
	struct db_query *q = db_query(store_db(s), "SELECT 1 FROM content WHERE id = ? AND kind = 1");
	int r;

	db_bind_int(q, 0, id);
	r = db_step(q);
	if (r > 0)
		db_done(q);
	return r == 0 ? object_remove(store_objects_fd(s), id) : MIN(r, 0);
}

int content_purge_all(struct store *s)
{
	int fd = openat(store_objects_fd(s), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (d = readdir(dir))) {
		int64_t id = object_parse_name(d->d_name);

		if (id > 0)
			r = content_purge(s, id);
	}
	closedir(dir);
	return r;
}
