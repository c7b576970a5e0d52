/* SPDX-License-Identifier: MIT */
#include "snapshot/content.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/content_private.h"
#include "snapshot/store_private.h"

/*
 * The page map, and why it is two things. A bit in the index says that a page was written; it goes into the transaction
 * after the bytes went into the object. So kill -9 in the middle of a pwrite(2), or an abort, leaves a page that still
 * comes from its base, whole. The object's extents alone (SEEK_DATA) would not do: on XFS a hole that was only read
 * counts as data once an extent size hint or a reflink made it a preallocation, tmpfs with huge pages and file systems
 * without SEEK_HOLE call everything data, and a copy of the store may have lost its holes. But they say what the index
 * can't know after a power cut: that the bytes of a page never reached the disk. Such a page is a hole then and comes
 * from its base again, as if the write had not happened. Hence zeros that hide a base are always written, never
 * punched.
 */

#define OFFSET_MAX INT64_MAX

/* The object */

/* Where the pages end that the map speaks of; the object alone counts from there on. */
static uint64_t content_edge(const struct content *c)
{
	return page_end_of(c->base_size) * PAGE_BYTES;
}

int content_get_object(struct content *c, struct object **ret)
{
	int r = 0;

	g_mutex_lock(&c->object_lock);
	if (!c->object)
		r = object_open(store_objects(c->store), c->id, c->current, &c->object);
	if (r == 0)
		*ret = object_ref(c->object);
	g_mutex_unlock(&c->object_lock);
	return r;
}

/*
 * The pages of @o in [offset, end) that have data. Partly will do: blocks smaller than a page leave the rest of the
 * last page a hole when a file is cut and grows again. False when nobody can tell.
 */
static bool object_data_pages(struct object *o, uint64_t offset, uint64_t end, struct page_map *pages)
{
	while (offset < end) {
		off_t data = lseek(o->fd, offset, SEEK_DATA), hole;

		if (data < 0)
			return errno == ENXIO;
		hole = lseek(o->fd, data, SEEK_HOLE);
		if (hole < 0)
			return false;
		if ((uint64_t)data < end)
			page_map_set(pages, page_of(data), page_end_of(MIN((uint64_t)hole, end)));
		offset = hole;
	}
	return true;
}

/* A chunk at a time and only when it is needed: a file with 100,000 pieces takes 0.2 s to look through. */
int content_settle_pages(struct content *c, uint64_t offset, uint64_t end)
{
	const uint64_t step = (uint64_t)CHUNK_PAGES * PAGE_BYTES;

	end = MIN(end, content_edge(c));
	for (uint64_t n = offset / step; n * step < end; n++) {
		g_autoptr(page_map_t) data = NULL;
		g_autoptr(object_t) o = NULL;
		bool known;
		int r;

		if (!page_map_is_raw(c->pages, n))
			continue;
		r = content_get_object(c, &o);
		if (r < 0)
			return r;
		data = page_map_new();
		known = object_data_pages(o, n * step, MIN((n + 1) * step, content_edge(c)), data);
		page_map_settle(c->pages, n, known ? data : NULL);
	}
	return 0;
}

/* Where the run of pages ends, in [offset, end), that are like the one at @offset: in the object (@ret_has) or not. */
static int content_page_run(struct content *c, uint64_t offset, uint64_t end, bool *ret_has, uint64_t *ret_stop)
{
	uint64_t page = page_of(offset), next = (page / CHUNK_PAGES + 1) * CHUNK_PAGES;
	int r = content_settle_pages(c, offset, offset + 1);

	if (r < 0)
		return r;
	page += page_map_run(c->pages, page, MIN(page_end_of(MIN(end, content_edge(c))), next), ret_has);
	*ret_stop = MIN(page * PAGE_BYTES, end);
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
 * The bytes move out of the index. What an fsync had promised there must not be lost on the way; an fsync that comes
 * while we are at it finds the object or is noticed afterwards.
 */
static int content_to_object(struct content *c)
{
	struct db_query *q = db_query(store_db(c->store), "UPDATE content SET kind = 1, data = NULL WHERE id = ?");
	struct iovec iov = { c->data->data, c->data->len };
	bool sync = c->size > 0 && content_is_durable(c);
	g_autoptr(object_t) o = NULL;
	int r = object_create(store_objects(c->store), c->id, &o);

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
		object_remove(store_objects(c->store), c->id);
		return r;
	}
	content_set_home(c, NULL, object_ref(o));
	return !sync && c->size > 0 && content_is_durable(c) && fdatasync(o->fd) < 0 ? -errno : 0;
}

/* Whether the change that makes an inline content @size bytes long should make it an object. */
static bool content_outgrows(const struct content *c, uint64_t size)
{
	return size > content_limits.inline_max || c->rewritten > content_limits.rewrite_max;
}

/*
 * Bytes beyond the end are what a truncation left or what an aborted write brought; they must be gone before the end
 * moves over them.
 */
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

/*
 * After a read: a file that is still the same now was so all the time (a write sets its times before it changes bytes).
 */
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

/*
 * Of the base and what lies beyond it in its last page: whatever an aborted write left in the object there, nothing of
 * it counts.
 */
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
	uint64_t end = offset + size;
	int r = content_get_object(c, &o);

	while (r == 0 && offset < MIN(end, content_edge(c))) {
		uint64_t stop;
		bool has;

		r = content_page_run(c, offset, end, &has, &stop);
		if (r < 0)
			return r;
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
	struct stat st, base;
	uint64_t shown;

	if (c->data)
		return page_end_of(c->size) * (PAGE_BYTES / 512);
	if (content_get_object(c, &o) < 0 || fstat(o->fd, &st) < 0)
		return page_end_of(c->size) * (PAGE_BYTES / 512);
	shown = page_end_of(c->base_size);
	shown = (shown - page_map_count(c->pages, shown)) * (PAGE_BYTES / 512);
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
	int r = content_settle_pages(c, offset, end);

	if (r < 0)
		return r;
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
	int r = content_get_object(c, &o);

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
	if (r < 0)
		return r;
	return c->data ? content_write_inline(c, buf, size, offset) : content_write_object(c, buf, size, offset);
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
	if (r < 0)
		return r;
	return c->data ? content_truncate_inline(c, size) : content_truncate_object(c, size);
}

/*
 * Zeros in [offset, end), within the size: written where the base would show through, and reserved or punched beyond.
 */
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
	object_account(o);
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
	int r = content_get_object(c, &o);

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
	if (r < 0)
		return r;
	return c->data ? content_allocate_inline(c, mode, offset, end) : content_allocate_object(c, mode, offset, end);
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
	int r;

	if (c->data) {
		*ret = whence == SEEK_DATA ? offset : end;
		return 0;
	}
	r = content_get_object(c, &o);
	while (r == 0 && offset < MIN(end, content_edge(c))) {
		uint64_t stop, at;
		bool has;

		r = content_page_run(c, offset, end, &has, &stop);
		if (r < 0)
			return r;
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

/* Durability */

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
	/*
	 * The file's name is on the disk with it: ext4, XFS and btrfs log a new file's directory entry with the file's
	 * own fsync.
	 */
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
