/* SPDX-License-Identifier: MIT */
#include "snapshot/content.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/content_private.h"
#include "snapshot/store_private.h"

/*
 * The page map, and why it is two things. A bit in the index says that a page was written; it goes into the transaction after the
 * bytes went into the object. So kill -9 in the middle of a pwrite(2), or an abort, leaves a page that still comes from its base, whole.
 * The object's extents alone (SEEK_DATA) would not do: on XFS a hole that was only read counts as data once an extent size hint or a
 * reflink made it a preallocation, tmpfs with huge pages and file systems without SEEK_HOLE call everything data, and a copy
 * of the store may have lost its holes. But they say what the index can't know after a power cut: that the bytes of a page never
 * reached the disk. Such a page is a hole then and comes from its base again, as if the write had not happened.
 * Hence zeros that hide a base are always written, never punched.
 */

struct content_limits content_limits = {
	.inline_max = CONTENT_INLINE_MAX,
	.rewrite_max = 1024 * 1024,
	.copy_max = 1024 * 1024,
	.depth_max = 8,
	.reflink = true,
};

/* A blob up to here is written as quickly as the row around it, however often. */
#define REWRITE_FREE 4096
#define OFFSET_MAX INT64_MAX
/* A chain longer than this is not one that we made. */
#define CHAIN_MAX 64

/* Life */

static struct content *content_alloc(struct store *s, struct lower *lower, int64_t id)
{
	struct content *c = g_new0(struct content, 1);

	c->store = s;
	c->lower = lower;
	c->id = id;
	c->base_fd = -1;
	c->pages = page_map_new();
	g_mutex_init(&c->object_lock);
	return c;
}

void content_close(struct content *c)
{
	if (!c)
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

		page_map_put_chunk(pages, db_int(q, 0), bits, size);
	}
	if (r < 0)
		return r;
	page_map_free(c->pages);
	c->pages = g_steal_pointer(&pages);
	c->pages_checked = false;
	return 0;
}

/* @data NULL: an object from now on. */
static void content_set_home(struct content *c, GByteArray *data, struct object *object)
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
	struct db_query *q = db_query(store_db(c->store),
				      "SELECT epoch, kind, size, data, base, base_origin, base_size FROM content WHERE id = ?");
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

int content_insert(struct store *s, struct lower *lower, enum content_kind kind, const void *data, uint64_t size, struct content **ret)
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

static int content_put_inline(struct content *c)
{
	struct db_query *q = db_query(store_db(c->store), "UPDATE content SET size = ?, data = ? WHERE id = ?");

	db_bind_int(q, 0, c->data->len);
	db_bind_blob(q, 1, c->data->data, c->data->len);
	db_bind_int(q, 2, c->id);
	if (c->data->len > REWRITE_FREE)
		c->rewritten += c->data->len;
	else if (c->data->len == 0)
		c->rewritten = 0;
	c->size = c->data->len;
	return db_run(q);
}

static int content_put_size(struct content *c, uint64_t size, uint64_t base_size)
{
	struct db_query *q = db_query(store_db(c->store), "UPDATE content SET size = ?1, base_size = ?2, base = iif(?2, base, 0), "
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
	struct db_query *q = db_query(store_db(c->store), "UPDATE content SET base = ?, base_origin = ?, base_size = ? WHERE id = ?");
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

int content_pages_add(struct content *c, uint64_t first, uint64_t end)
{
	struct db_query *q = db_query(store_db(c->store), "INSERT INTO page (content, chunk, bits) VALUES (?, ?, ?) "
							  "ON CONFLICT (content, chunk) DO UPDATE SET bits = excluded.bits");
	uint8_t bits[CHUNK_BYTES];

	for (uint64_t n = first / CHUNK_PAGES; n * CHUNK_PAGES < end; n++) {
		size_t size = CHUNK_BYTES;
		int r;

		if (!page_map_chunk_with(c->pages, n, first, end, bits))
			continue;
		while (size > 0 && bits[size - 1] == 0)
			size--;
		db_bind_int(q, 0, c->id);
		db_bind_int(q, 1, n);
		db_bind_blob(q, 2, bits, size);
		r = db_run(q);
		if (r < 0)
			return r;
		page_map_put_chunk(c->pages, n, bits, CHUNK_BYTES);
	}
	return 0;
}

/* The object */

int content_get_object(struct content *c, struct object **ret)
{
	int r = 0;

	g_mutex_lock(&c->object_lock);
	if (!c->object)
		r = object_open(store_objects_fd(c->store), c->id, c->current, &c->object);
	if (r == 0)
		*ret = object_ref(c->object);
	g_mutex_unlock(&c->object_lock);
	return r;
}

/*
 * The pages of @o that have data. Partly will do: blocks smaller than a page leave the rest of the last page a hole when a file is cut
 * and grows again. False when nobody can tell.
 */
static bool object_data_pages(struct object *o, uint64_t limit, struct page_map *pages)
{
	off_t data, hole = 0;

	while ((uint64_t)hole < limit && (data = lseek(o->fd, hole, SEEK_DATA)) >= 0) {
		hole = lseek(o->fd, data, SEEK_HOLE);
		if (hole < 0)
			return false;
		page_map_set(pages, page_of(data), page_end_of(hole));
	}
	return (uint64_t)hole >= limit || errno == ENXIO;
}

int content_get_pages(struct content *c, struct page_map **ret)
{
	if (!c->pages_checked && page_map_count(c->pages, page_end_of(c->base_size)) > 0) {
		g_autoptr(page_map_t) data = page_map_new();
		g_autoptr(object_t) o = NULL;
		int r = content_get_object(c, &o);

		if (r < 0)
			return r;
		if (object_data_pages(o, c->base_size, data))
			page_map_intersect(c->pages, data);
	}
	c->pages_checked = true;
	*ret = c->pages;
	return 0;
}

static bool content_is_durable(struct content *c)
{
	bool durable;

	g_mutex_lock(&c->object_lock);
	durable = c->durable;
	g_mutex_unlock(&c->object_lock);
	return durable;
}

/*
 * The bytes move out of the index. What an fsync had promised there must not be lost on the way; an fsync that comes while we are
 * at it finds the object or is noticed afterwards.
 */
static int content_to_object(struct content *c)
{
	struct db_query *q = db_query(store_db(c->store), "UPDATE content SET kind = 1, data = NULL WHERE id = ?");
	struct iovec iov = { c->data->data, c->data->len };
	bool sync = c->size > 0 && content_is_durable(c);
	g_autoptr(object_t) o = NULL;
	int r = object_create(store_objects_fd(c->store), c->id, &o);

	if (r < 0)
		return r;
	r = object_writev(o, &iov, 1, 0);
	if (r == 0 && sync && fdatasync(o->fd) < 0)
		r = -errno;
	if (r == 0) {
		db_bind_int(q, 0, c->id);
		r = db_run(q);
	}
	if (r < 0) {
		object_remove(store_objects_fd(c->store), c->id);
		return r;
	}
	c->pages_checked = true;
	content_set_home(c, NULL, object_ref(o));
	return !sync && c->size > 0 && content_is_durable(c) && fdatasync(o->fd) < 0 ? -errno : 0;
}

/* Whether the change that makes an inline content @size bytes long should make it an object. */
static bool content_outgrows(const struct content *c, uint64_t size)
{
	return size > content_limits.inline_max || c->rewritten > content_limits.rewrite_max;
}

/* Bytes beyond the end are what a truncation left or what an aborted write brought; they must be gone before the end moves over them. */
static int content_cut(struct content *c, struct object *o)
{
	return o->size > c->size ? object_truncate(o, c->size) : 0;
}

/* Reading */

int content_print_check(int fd, const struct origin *o)
{
	struct fingerprint print;
	int r = lower_stat_at(fd, "", &print);

	return r < 0 ? r : fingerprint_same(&print, &o->print) ? 0 : -ESTALE;
}

static int content_open_origin(struct content *c)
{
	int fd, r;

	if (c->base_fd >= 0)
		return 0;
	if (!c->lower || !c->origin.id)
		return -EUCLEAN;
	fd = lower_open_file(c->lower, c->origin.path, O_RDONLY);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV ? -ESTALE : fd;
	r = content_print_check(fd, &c->origin);
	if (r < 0) {
		close(fd);
		return r;
	}
	c->base_fd = fd;
	return 0;
}

/* After a read: a file that is still the same now was so all the time (a write sets its times before it changes bytes). */
static int content_check_origin(struct content *c)
{
	const struct attr *was = &c->origin.print.attr;
	struct stat st;

	if (fstat(c->base_fd, &st) < 0)
		return -errno;
	return (uint64_t)st.st_size == was->size && nsec_from_timespec(st.st_mtim) == was->mtime &&
	       nsec_from_timespec(st.st_ctim) == was->ctime ? 0 : -ESTALE;
}

static int content_read_origin(struct content *c, char *buf, size_t size, uint64_t offset)
{
	int r = content_open_origin(c);

	if (r < 0)
		return r;
	while (size > 0) {
		ssize_t n = pread(c->base_fd, buf, size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ESTALE;
		buf += n;
		size -= n;
		offset += n;
	}
	return content_check_origin(c);
}

/* Where the pages end that the map speaks of; the object alone counts from there on. */
static uint64_t content_edge(const struct content *c)
{
	return page_end_of(c->base_size) * PAGE_BYTES;
}

/* Of the base and what lies beyond it in its last page: whatever an aborted write left in the object there, nothing of it counts. */
static int content_read_base(struct content *c, char *buf, size_t size, uint64_t offset)
{
	size_t n = offset < c->base_size ? MIN(size, c->base_size - offset) : 0;

	memset(buf + n, 0, size - n);
	if (n == 0)
		return 0;
	return c->base ? content_read_span(c->base, buf, n, offset) : content_read_origin(c, buf, n, offset);
}

static int content_read_object(struct content *c, char *buf, size_t size, uint64_t offset)
{
	g_autoptr(object_t) o = NULL;
	struct page_map *pages;
	uint64_t end = offset + size;
	int r = content_get_object(c, &o);

	if (r == 0)
		r = content_get_pages(c, &pages);
	while (r == 0 && offset < MIN(end, content_edge(c))) {
		uint64_t page = page_of(offset), stop;
		bool has;

		stop = (page + page_map_run(pages, page, page_end_of(MIN(end, content_edge(c))), &has)) * PAGE_BYTES;
		stop = MIN(stop, end);
		r = has ? object_read(o, buf, stop - offset, offset) : content_read_base(c, buf, stop - offset, offset);
		buf += stop - offset;
		offset = stop;
	}
	return r == 0 && offset < end ? object_read(o, buf, end - offset, offset) : r;
}

int content_read_span(struct content *c, void *buf, size_t size, uint64_t offset)
{
	if (!c->data)
		return content_read_object(c, buf, size, offset);
	if (size > 0)
		memcpy(buf, c->data->data + offset, size);
	return 0;
}

ssize_t content_read(struct content *c, void *buf, size_t size, uint64_t offset)
{
	int r;

	if (offset >= c->size || size == 0)
		return 0;
	size = MIN(MIN(size, c->size - offset), SSIZE_MAX);
	r = content_read_span(c, buf, size, offset);
	return r < 0 ? r : (ssize_t)size;
}

uint64_t content_blocks(struct content *c)
{
	g_autoptr(object_t) o = NULL;
	struct page_map *pages;
	struct stat st, base;
	uint64_t shown;

	if (c->data)
		return page_end_of(c->size) * (PAGE_BYTES / 512);
	if (content_get_object(c, &o) < 0 || content_get_pages(c, &pages) < 0 || fstat(o->fd, &st) < 0)
		return page_end_of(c->size) * (PAGE_BYTES / 512);
	shown = page_end_of(c->base_size);
	shown = (shown - page_map_count(pages, shown)) * (PAGE_BYTES / 512);
	/* A sparse workspace file stays one. */
	if (shown > 0 && !content_base(c) && content_open_origin(c) == 0 && fstat(c->base_fd, &base) == 0)
		shown = MIN(shown, (uint64_t)base.st_blocks);
	return st.st_blocks + shown;
}

/* Changing */

/* The bytes of one page that a write leaves out, as they are now; zeros from the end of the content on. */
static int content_read_rest(struct content *c, char *buf, size_t size, uint64_t offset)
{
	size_t n = offset < c->size ? MIN(size, c->size - offset) : 0;

	memset(buf + n, 0, size - n);
	return n > 0 ? content_read_span(c, buf, n, offset) : 0;
}

/* The page at @page has to be written whole, because a part of it still comes from the base. */
static bool content_page_shows_base(struct content *c, uint64_t page)
{
	return page * PAGE_BYTES < c->base_size && !page_map_has(c->pages, page);
}

static int content_write_pages(struct content *c, struct object *o, const void *buf, size_t size, uint64_t offset)
{
	char head[PAGE_BYTES], tail[PAGE_BYTES];
	uint64_t end = offset + size, first = page_of(offset), last = page_of(end - 1);
	size_t head_size = 0, tail_size = 0;
	int r = 0;

	if (offset % PAGE_BYTES && content_page_shows_base(c, first))
		head_size = offset % PAGE_BYTES;
	if (end % PAGE_BYTES && content_page_shows_base(c, last) && end < c->size)
		tail_size = MIN((last + 1) * PAGE_BYTES, c->size) - end;
	r = content_read_rest(c, head, head_size, offset - head_size);
	if (r == 0)
		r = content_read_rest(c, tail, tail_size, end);
	if (r == 0) {
		struct iovec iov[] = { { head, head_size }, { (void *)buf, size }, { tail, tail_size } };

		r = object_writev(o, iov, G_N_ELEMENTS(iov), offset - head_size);
	}
	last = MIN(last + 1, page_end_of(c->base_size));
	return r == 0 && first < last ? content_pages_add(c, first, last) : r;
}

static int content_write_object(struct content *c, const void *buf, size_t size, uint64_t offset)
{
	uint64_t end = offset + size, old = c->size;
	g_autoptr(object_t) o = NULL;
	struct page_map *pages;
	int r = content_get_object(c, &o);

	if (r == 0)
		r = content_get_pages(c, &pages);
	if (r == 0 && end > old)
		r = content_cut(c, o);
	if (r < 0)
		return r;
	r = content_write_pages(c, o, buf, size, offset);
	if (r == 0 && end > old)
		r = content_put_size(c, end, c->base_size);
	if (r < 0 && end > old)
		object_truncate(o, old);
	return r;
}

static int content_write_inline(struct content *c, const void *buf, size_t size, uint64_t offset)
{
	uint64_t end = offset + size;

	if (end > c->size) {
		g_byte_array_set_size(c->data, end);
		if (offset > c->size)
			memset(c->data->data + c->size, 0, offset - c->size);
	}
	memcpy(c->data->data + offset, buf, size);
	return content_put_inline(c);
}

/* Memory is what the index says again, also where the caller goes on with its transaction. */
static int content_result(struct content *c, int r)
{
	if (r < 0)
		content_revert(c);
	return r;
}

int content_write(struct content *c, const void *buf, size_t size, uint64_t offset)
{
	int r = 0;

	if (!content_is_writable(c))
		return -EROFS;
	if (size > OFFSET_MAX || offset > OFFSET_MAX - size)
		return -EFBIG;
	if (size == 0)
		return 0;
	if (c->data && content_outgrows(c, MAX(c->size, offset + size)))
		r = content_to_object(c);
	if (r == 0)
		r = c->data ? content_write_inline(c, buf, size, offset) : content_write_object(c, buf, size, offset);
	return content_result(c, r);
}

static int content_truncate_inline(struct content *c, uint64_t size)
{
	g_byte_array_set_size(c->data, size);
	if (size > c->size)
		memset(c->data->data + c->size, 0, size - c->size);
	return content_put_inline(c);
}

/* Shorter: only the index, see content.h. */
static int content_truncate_object(struct content *c, uint64_t size)
{
	uint64_t old = c->size;
	g_autoptr(object_t) o = NULL;
	int r;

	if (size < old)
		return content_put_size(c, size, MIN(size, c->base_size));
	r = content_get_object(c, &o);
	if (r == 0)
		r = content_cut(c, o);
	if (r == 0)
		r = object_truncate(o, size);
	if (r < 0)
		return r;
	r = content_put_size(c, size, c->base_size);
	if (r < 0)
		object_truncate(o, old);
	return r;
}

int content_truncate(struct content *c, uint64_t size)
{
	int r = 0;

	if (!content_is_writable(c))
		return -EROFS;
	if (size > OFFSET_MAX)
		return -EFBIG;
	if (size == c->size)
		return 0;
	if (c->data && content_outgrows(c, size))
		r = content_to_object(c);
	if (r == 0)
		r = c->data ? content_truncate_inline(c, size) : content_truncate_object(c, size);
	return content_result(c, r);
}

/* Zeros in [offset, end), within the size: written where the base would show through, and reserved or punched beyond. */
static int content_zero(struct content *c, struct object *o, bool punch, uint64_t offset, uint64_t end)
{
	uint64_t stop = MIN(end, content_edge(c));
	int r = 0;

	if (offset < stop) {
		g_autofree char *zeros = g_malloc0(MIN(stop - offset, 1024 * 1024));

		while (r == 0 && offset < stop) {
			size_t n = MIN(stop - offset, 1024 * 1024);

			r = content_write_pages(c, o, zeros, n, offset);
			offset += n;
		}
	}
	return r == 0 && offset < end ? object_zero(o, punch, offset, end - offset) : r;
}

static int content_reserve(struct content *c, struct object *o, bool keep_size, uint64_t offset, uint64_t end)
{
	uint64_t from = MAX(offset, content_edge(c)), old = c->size;
	int r = end > old ? content_cut(c, o) : 0;

	if (r < 0)
		return r;
	if (from < end && fallocate(o->fd, keep_size ? FALLOC_FL_KEEP_SIZE : 0, from, end - from) < 0)
		r = -errno;
	if (r == 0 && !keep_size && end > old) {
		r = object_truncate(o, end); /* nothing was to be reserved, and so that @o knows */
		if (r == 0)
			r = content_put_size(c, end, c->base_size);
	}
	if (r < 0 && end > old)
		object_truncate(o, old);
	return r;
}

static int content_allocate_object(struct content *c, int mode, uint64_t offset, uint64_t end)
{
	g_autoptr(object_t) o = NULL;
	struct page_map *pages;
	int r = content_get_object(c, &o);

	if (r == 0)
		r = content_get_pages(c, &pages);
	/* First what can fail for lack of space or support. */
	if (r == 0 && !(mode & FALLOC_FL_PUNCH_HOLE))
		r = content_reserve(c, o, mode & FALLOC_FL_KEEP_SIZE, offset, end);
	if (r == 0 && (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) && offset < c->size)
		r = content_zero(c, o, mode & FALLOC_FL_PUNCH_HOLE, offset, MIN(end, c->size));
	return r;
}

static int content_allocate_inline(struct content *c, int mode, uint64_t offset, uint64_t end)
{
	bool zero = (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) && offset < c->size;

	if (zero)
		memset(c->data->data + offset, 0, MIN(end, c->size) - offset);
	if (end > c->size && !(mode & FALLOC_FL_KEEP_SIZE))
		return content_truncate_inline(c, end);
	return zero ? content_put_inline(c) : 0;
}

int content_allocate(struct content *c, int mode, uint64_t offset, uint64_t length)
{
	uint64_t end = offset + length;
	int r = 0;

	if (mode != 0 && mode != FALLOC_FL_KEEP_SIZE && mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) &&
	    mode != FALLOC_FL_ZERO_RANGE && mode != (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE))
		return -EOPNOTSUPP;
	if (!content_is_writable(c))
		return -EROFS;
	if (length == 0)
		return -EINVAL;
	if (length > OFFSET_MAX || offset > OFFSET_MAX - length)
		return -EFBIG;
	if (c->data && !(mode & FALLOC_FL_PUNCH_HOLE) && content_outgrows(c, MAX(c->size, end)))
		r = content_to_object(c);
	if (r == 0)
		r = c->data ? content_allocate_inline(c, mode, offset, end) : content_allocate_object(c, mode, offset, end);
	return content_result(c, r);
}

/* Seeking: each step finds the first data (or hole) in [offset, end), or @end. */

static uint64_t fd_next(int fd, uint64_t offset, uint64_t end, int whence)
{
	off_t at = lseek(fd, offset, whence);

	if (at >= 0)
		return MIN((uint64_t)at, end);
	if (errno == ENXIO)
		return whence == SEEK_DATA ? end : offset;
	return whence == SEEK_DATA ? offset : end; /* can't tell: all data */
}

static int content_next(struct content *c, uint64_t offset, uint64_t end, int whence, uint64_t *ret);

static int content_next_base(struct content *c, uint64_t offset, uint64_t end, int whence, uint64_t *ret)
{
	uint64_t shown = MIN(end, c->base_size);
	int r;

	if (offset >= shown) {
		*ret = whence == SEEK_DATA ? end : offset;
		return 0;
	}
	if (content_base(c)) {
		r = content_next(c->base, offset, shown, whence, ret);
	} else {
		r = content_open_origin(c);
		if (r == 0) {
			*ret = fd_next(c->base_fd, offset, shown, whence);
			r = content_check_origin(c);
		}
	}
	/* The rest of the page, beyond the base, is a hole. */
	if (r == 0 && *ret == shown && whence == SEEK_DATA)
		*ret = end;
	return r;
}

static int content_next(struct content *c, uint64_t offset, uint64_t end, int whence, uint64_t *ret)
{
	g_autoptr(object_t) o = NULL;
	struct page_map *pages;
	int r;

	if (c->data) {
		*ret = whence == SEEK_DATA ? offset : end;
		return 0;
	}
	r = content_get_object(c, &o);
	if (r == 0)
		r = content_get_pages(c, &pages);
	while (r == 0 && offset < MIN(end, content_edge(c))) {
		uint64_t page = page_of(offset), stop, at;
		bool has;

		stop = (page + page_map_run(pages, page, page_end_of(MIN(end, content_edge(c))), &has)) * PAGE_BYTES;
		stop = MIN(stop, end);
		at = whence == SEEK_DATA ? offset : stop;
		if (!has)
			r = content_next_base(c, offset, stop, whence, &at);
		if (r == 0 && at < stop) {
			*ret = at;
			return 0;
		}
		offset = stop;
	}
	if (r == 0)
		*ret = offset < end ? fd_next(o->fd, offset, end, whence) : end;
	return r;
}

int64_t content_seek(struct content *c, uint64_t offset, int whence)
{
	uint64_t at;
	int r;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	if (offset >= c->size)
		return -ENXIO;
	r = content_next(c, offset, c->size, whence, &at);
	if (r < 0)
		return r;
	return whence == SEEK_DATA && at == c->size ? -ENXIO : (int64_t)at;
}

/* Durability and leftovers */

int content_sync(struct content *c)
{
	g_autoptr(object_t) o = NULL;
	bool in_index;
	int r = 0;

	g_mutex_lock(&c->object_lock);
	in_index = c->data;
	c->durable = true;
	g_mutex_unlock(&c->object_lock);
	if (in_index)
		return 0;
	/* The file's name is on the disk with it: ext4, XFS and btrfs log a new file's directory entry with the file's own fsync. */
	r = content_get_object(c, &o);
	if (r == 0 && fdatasync(o->fd) < 0)
		r = -errno;
	return r == 0 && c->base ? content_sync(c->base) : r;
}

int content_trim(struct content *c)
{
	struct db_query *q = db_query(store_db(c->store), "SELECT size FROM content WHERE id = ? AND kind = 1");
	g_autoptr(object_t) o = NULL;
	uint64_t size;
	int r;

	if (c->data || !content_is_writable(c))
		return 0;
	db_bind_int(q, 0, c->id);
	r = db_step(q);
	if (r <= 0)
		return r;
	size = db_int(q, 0);
	db_done(q);
	r = content_get_object(c, &o);
	return r == 0 && o->size > size ? object_truncate(o, size) : r;
}

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
	q = db_query(store_db(s), "DELETE FROM content WHERE id = ? AND epoch = ?");
	db_bind_int(q, 0, id);
	db_bind_int(q, 1, store_epoch(s));
	return db_run(q);
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
