/* SPDX-License-Identifier: MIT */
#include "snapshot/content.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "snapshot/content_private.h"
#include "snapshot/origin_base.h"
#include "snapshot/store_private.h"

/*
 * Making a content from something that must stay as it is: a workspace file, or a content of an older epoch.
 *
 * A content never reflinks another one: XFS and btrfs first write out all dirty pages of the source, which for a large
 * file that was just changed takes as long as the file is large. A base costs nothing until a page is written.
 */

#define COPY_STEP (128 * 1024)

static int read_full(int fd, void *buf, size_t size, uint64_t offset)
{
	char *to = buf;

	while (size > 0) {
		ssize_t n = pread(fd, to, size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ESTALE;
		to += n;
		size -= n;
		offset += n;
	}
	return 0;
}

static void hash_bytes(const void *data, size_t size, uint8_t ret[32])
{
	g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
	gsize n = 32;

	g_checksum_update(sum, data, size);
	g_checksum_get_digest(sum, ret, &n);
}

/* @o is in the index, with what is known of it. */
static int origin_record(struct store *s, struct origin *o)
{
	if (!o->id)
		return store_origin_add(s, o);
	return o->has_sha256 ? store_origin_set_sha256(s, o->id, o->sha256) : 0;
}

/* A new object with its row; the file is taken back by object_remove() when something fails later. */
static int content_new_object(struct store *s, struct lower *lower, uint64_t size, struct content **ret)
{
	g_autoptr(content_t) c = NULL;
	int r = content_insert(s, lower, CONTENT_OBJECT, NULL, size, &c);

	if (r == 0)
		r = object_create(store_objects(s), c->id, &c->object);
	if (r == 0) {
		r = object_truncate(c->object, size);
		if (r < 0)
			object_remove(store_objects(s), c->id);
	}
	if (r == 0)
		*ret = g_steal_pointer(&c);
	return r;
}

/* @bytes: all that will be needed, or NULL when it was not read. */
static int object_from_lower(struct content *c, int fd, struct origin *o, const void *bytes, uint64_t size)
{
	struct iovec iov = { (void *)bytes, size };
	int r;

	if (content_limits.reflink && ioctl(c->object->fd, FICLONE, fd) == 0)
		return object_truncate(c->object, size);
	/*
	 * The base stays the base of a whole copy too: nothing is read from it, unless a power cut comes before the
	 * copy is on the disk. Without that each copy would have to be synced, or bytes that were safe in the workspace
	 * could turn into zeros.
	 */
	r = content_put_base(c, 0, o, size);
	if (r == 0 && bytes)
		r = object_writev(c->object, &iov, 1, 0);
	return r == 0 && bytes ? content_pages_add(c, 0, page_end_of(size)) : r;
}

int content_from_lower(struct store *s, struct lower *lower, struct origin *o, uint64_t keep, struct content **ret)
{
	uint64_t whole = o->print.attr.size, size = MIN(keep, whole);
	bool copy = size <= MAX(content_limits.copy_max, content_limits.inline_max);
	/* Also what a truncation does not need: as the base of a merge, and to tell later whether the file has changed. */
	uint64_t seen = whole <= ORIGIN_BASE_MAX ? whole : size;
	g_autofree char *bytes = copy ? g_malloc(MAX(seen, 1)) : NULL;
	g_autoptr(content_t) c = NULL;
	int fd = lower_open_file(lower, o->path, O_RDONLY), r;

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV ? -ESTALE : fd;
	r = content_print_check(fd, o);
	if (r == 0 && copy)
		r = read_full(fd, bytes, seen, 0);
	if (r == 0 && copy)
		r = content_print_check(fd, o);
	if (r == 0 && copy && seen == whole) {
		hash_bytes(bytes, seen, o->sha256);
		o->has_sha256 = true;
	}
	if (r == 0)
		r = origin_record(s, o);
	if (r == 0 && copy && seen == whole)
		r = origin_base_keep(s, o->id, bytes, seen);
	if (r == 0 && size <= content_limits.inline_max) {
		r = content_insert(s, lower, CONTENT_INLINE, bytes, size, &c);
	} else if (r == 0) {
		r = content_new_object(s, lower, size, &c);
		if (r == 0)
			r = object_from_lower(c, fd, o, bytes, size);
		if (r == 0)
			r = content_print_check(fd, o); /* a clone is of what the file was just now */
		if (r < 0 && c)
			object_remove(store_objects(s), c->id);
	}
	close(fd);
	if (r < 0)
		return r;
	c->durable = true;
	*ret = g_steal_pointer(&c);
	return 0;
}

/* Forks */

static unsigned content_depth(const struct content *c)
{
	unsigned depth = 0;

	for (; c; c = content_base(c))
		depth++;
	return depth;
}

/* Copies [offset, end) of @from as it reads. */
static int copy_range(struct content *from, struct content *to, uint64_t offset, uint64_t end)
{
	g_autofree char *buf = g_malloc(COPY_STEP);
	int r = 0;

	while (r == 0 && offset < end) {
		struct iovec iov = { buf, MIN(end - offset, COPY_STEP) };
		size_t n = iov.iov_len;

		r = content_read_span(from, buf, n, offset);
		if (r == 0)
			r = object_writev(to->object, &iov, 1, offset);
		offset += n;
	}
	return r;
}

/* Copies the pages of [0, size) that are in @pages. */
static int copy_pages(struct content *from, struct content *to, const struct page_map *pages, uint64_t size)
{
	uint64_t page = 0, end = page_end_of(size);
	int r = 0;

	while (r == 0 && page < end) {
		bool has;
		uint64_t run = page_map_run(pages, page, end, &has);

		if (has)
			r = copy_range(from, to, page * PAGE_BYTES, MIN((page + run) * PAGE_BYTES, to->size));
		page += run;
	}
	return r;
}

/* The data in [offset, size) of @from; holes stay holes. */
static int copy_data(struct content *from, struct content *to, uint64_t offset, uint64_t size)
{
	int r = 0;

	while (r == 0 && offset < size) {
		int64_t data = content_seek(from, offset, SEEK_DATA), hole;

		if (data < 0)
			return data == -ENXIO ? 0 : data;
		hole = content_seek(from, data, SEEK_HOLE);
		if (hole < 0)
			return hole;
		if ((uint64_t)data < size)
			r = copy_range(from, to, data, MIN((uint64_t)hole, size));
		offset = hole;
	}
	return r;
}

/*
 * Chains. Each epoch in which a large file is written adds a content to the chain of its bases, which every read has to
 * go through. So from some length on a new content takes over the pages of those at the top, down to one that is left
 * as its base because it holds too much to be copied while a write waits; only a chain of many such contents is merged
 * whole. Either way it costs what was written since, not what is there.
 */
struct merge {
	struct content *base;    /* NULL: the workspace file at the bottom */
	const struct content *last; /* the lowest one merged */
	uint64_t shown;          /* bytes of the base that show through all of those merged */
};

/* False when it would not pay. */
static bool merge_plan(struct content *top, uint64_t size, unsigned depth, struct merge *ret)
{
	uint64_t copied = 0, shown = size;
	unsigned merged = 0;

	for (struct content *c = top; c; c = content_base(c)) {
		uint64_t own = page_map_count(c->pages, page_end_of(c->base_size)) * PAGE_BYTES;

		own += shown - MIN(shown, c->base_size); /* beyond the base, data may be anywhere */
		if (c->base_size == 0 ||
		    (copied + own > content_limits.merge_max && depth < content_limits.depth_full)) {
			ret->base = c;
			break;
		}
		copied += own;
		shown = MIN(shown, c->base_size);
		ret->base = NULL;
		ret->last = c;
		merged++;
	}
	ret->shown = shown;
	return merged >= content_limits.depth_max / 2;
}

static int content_fork_merged(struct content *top, const struct merge *m, struct content *c)
{
	g_autoptr(page_map_t) pages = page_map_new();
	int r = 0;

	for (struct content *from = top; r == 0 && from && from != m->base; from = content_base(from)) {
		r = content_settle_pages(from, 0, UINT64_MAX);
		page_map_add(pages, from->pages);
	}
	if (r == 0 && m->base)
		r = content_open(c->store, c->lower, m->base->id, &c->base);
	if (r == 0)
		r = content_put_base(c, m->base ? m->base->id : 0, m->base ? NULL : &m->last->origin, m->shown);
	if (r == 0)
		r = copy_pages(top, c, pages, m->shown);
	if (r == 0)
		r = copy_data(top, c, page_end_of(m->shown) * PAGE_BYTES, c->size);
	if (r == 0)
		r = content_pages_put(c, g_steal_pointer(&pages));
	/* What was synced before it was copied stays so. */
	if (r == 0 && fdatasync(c->object->fd) < 0)
		r = -errno;
	return r;
}

static int content_fork_based(struct content *from, struct content *c)
{
	int r = content_put_base(c, from->id, NULL, c->size);

	return r < 0 ? r : content_open(c->store, c->lower, from->id, &c->base);
}

int content_fork(struct content *from, uint64_t keep, struct content **ret)
{
	uint64_t size = MIN(keep, from->size);
	unsigned depth = content_depth(from);
	g_autoptr(content_t) c = NULL;
	struct merge m = { 0 };
	int r;

	if (content_is_writable(from))
		return -EINVAL;
	if (size <= content_limits.inline_max) {
		g_autofree char *bytes = g_malloc(MAX(size, 1));

		r = content_read_span(from, bytes, size, 0);
		if (r == 0)
			r = content_insert(from->store, from->lower, CONTENT_INLINE, bytes, size, &c);
	} else {
		r = content_new_object(from->store, from->lower, size, &c);
		if (r == 0 && depth >= content_limits.depth_max && merge_plan(from, size, depth, &m))
			r = content_fork_merged(from, &m, c);
		else if (r == 0)
			r = content_fork_based(from, c);
		if (r < 0 && c)
			object_remove(store_objects(c->store), c->id);
	}
	if (r < 0)
		return r;
	c->durable = true;
	*ret = g_steal_pointer(&c);
	return 0;
}
