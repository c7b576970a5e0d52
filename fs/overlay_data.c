/* SPDX-License-Identifier: MIT */
/*
 * overlay_data - the bytes of regular files
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fs/mask.h"
#include "fs/overlay_private.h"

/* Open contents may hold a descriptor or two each. */
#define OPEN_CONTENTS_MAX 256

#define OWN_STEP (1024 * 1024)

void node_close_content(struct overlay *o, struct node *n)
{
	if (!n->content)
		return;
	g_queue_unlink(&o->open_contents, &n->open_link);
	g_clear_pointer(&n->content, content_close);
}

static void node_keep_content(struct overlay *o, struct node *n, struct content *c)
{
	node_close_content(o, n);
	n->content = c;
	n->open_link = (GList){ .data = n };
	g_queue_push_head_link(&o->open_contents, &n->open_link);
	while (g_queue_get_length(&o->open_contents) > OPEN_CONTENTS_MAX)
		node_close_content(o, g_queue_peek_tail(&o->open_contents));
}

int node_open_content(struct overlay *o, struct node *n, struct content **ret)
{
	struct content *c;
	int r = 0;

	if (!n->content) {
		r = content_open(o->store, o->lower, n->row.content, &c);
		if (r == 0)
			node_keep_content(o, n, c);
	}
	if (r == 0)
		*ret = n->content;
	return r;
}

/* The first content of its own, from what the workspace shows or from nothing. */
static int node_copy_up(struct overlay *o, struct node *n, uint64_t keep, struct content **ret)
{
	struct origin origin = { 0 };
	int r;

	if (!node_follows(n))
		return content_new(o->store, o->lower, ret);
	r = store_origin_get(o->store, n->row.origin, &origin);
	if (r == 0) {
		struct fingerprint print;

		/*
		 * The row may be older than the owner's last edit, which the view has shown since; what is copied is what is there
		 * now, and this is what a commit will be checked against.
		 */
		r = lower_stat(o->lower, origin.path, &print);
		if (r == 0 && !fingerprint_same(&print, &origin.print)) {
			origin.print = print;
			origin.seen = nsec_now();
			r = store_origin_add(o->store, &origin);
			for (struct dentry *d = n->names; r == 0 && d; d = d->next_of_node) {
				if (d->covers != n->row.origin)
					continue;
				dentry_edit(o, d);
				d->covers = origin.id;
				r = dentry_save(o, d, n->ino);
			}
			n->row.origin = origin.id;
			node_set_print(n, &print);
		}
	}
	if (r == 0)
		r = content_from_lower(o->store, o->lower, &origin, keep, ret);
	if (r == 0 && origin.has_sha256)
		r = store_origin_set_sha256(o->store, origin.id, origin.sha256);
	origin_clear(&origin);
	return r;
}

int node_own_data(struct overlay *o, struct node *n, uint64_t keep, struct content **ret)
{
	struct content *c, *old;
	int r = node_own_attr(o, n);

	/* What still follows the workspace was looked at with the first change. */
	if (r == 0 && (n->row.content == 0 || (n->row.flags & NODE_OWN_XATTR)))
		r = node_drop_capability(o, n);
	if (r < 0)
		return r;
	if (n->row.content == 0) {
		r = node_copy_up(o, n, keep, &c);
	} else {
		r = node_open_content(o, n, &old);
		if (r < 0)
			return r;
		if (content_is_writable(old)) {
			*ret = old;
			return 0;
		}
		r = content_fork(old, keep, &c);
	}
	if (r < 0)
		return r;
	node_keep_content(o, n, c);
	n->row.content = content_id(c);
	*ret = c;
	return 0;
}

int node_set_size(struct overlay *o, struct node *n, uint64_t size)
{
	struct content *c;
	int r = node_own_data(o, n, size, &c);

	if (r == 0)
		r = content_truncate(c, size);
	if (r < 0)
		return r;
	o->trim = n;
	n->row.attr.size = size;
	n->row.attr.mtime = nsec_now();
	return 0;
}

/* What every change of data ends with. */
static int data_changed(struct overlay *o, struct node *n, struct content *c, const struct caller *who)
{
	n->row.attr.size = content_size(c);
	n->row.attr.mtime = n->row.attr.ctime = nsec_now();
	if (who && who->kill_privileges) {
		n->row.attr.mode &= ~(uint32_t)S_ISUID;
		if (n->row.attr.mode & S_IXGRP)
			n->row.attr.mode &= ~(uint32_t)S_ISGID;
	}
	return node_save(o, n);
}

static int regular_node(struct overlay *o, uint64_t ino, struct node **ret)
{
	int r = overlay_node(o, ino, ret);

	if (r < 0)
		return r;
	return S_ISREG((*ret)->row.attr.mode) ? 0 : node_is_dir(*ret) ? -EISDIR : -EINVAL;
}

/* As pread(2), and tells before it waits for the disk. */
static ssize_t read_file(struct overlay *o, int fd, void *buf, size_t size, uint64_t offset)
{
	struct iovec iov = { buf, size };
	ssize_t n = preadv2(fd, &iov, 1, (off_t)offset, RWF_NOWAIT);
	struct stat st;

	/* Less than was asked for is all, or all that is in memory. */
	if (n == (ssize_t)size || (n >= 0 && fstat(fd, &st) == 0 && offset + (uint64_t)n >= (uint64_t)st.st_size))
		return n;
	overlay_may_wait(o);
	return pread(fd, buf, size, (off_t)offset);
}

static ssize_t lower_read(struct overlay *o, const char *path, void *buf, size_t size, uint64_t offset)
{
	int fd = lower_open_file(o->lower, path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd == -ENOENT ? -ESTALE : fd;
	n = read_file(o, fd, buf, size, offset);
	if (n < 0)
		n = -errno;
	close(fd);
	return n;
}

/* The bytes before any rule, at most @size of them. */
static ssize_t node_read(struct overlay *o, struct node *n, void *buf, size_t size, uint64_t offset)
{
	g_autofree char *path = NULL;
	struct content *c;
	int r;

	if (node_follows(n)) {
		path = node_shown_path(o, n);
		return path ? lower_read(o, path, buf, size, offset) : -ESTALE;
	}
	if (!n->row.content)
		return 0;
	r = node_open_content(o, n, &c);
	return r < 0 ? r : content_read(c, buf, size, offset);
}

int node_own_bytes(struct overlay *o, struct node *n)
{
	g_autofree char *buf = g_malloc(OWN_STEP);
	g_autoptr(content_t) c = NULL;
	uint64_t offset = 0;
	ssize_t got;
	int r = node_own_attr(o, n);

	if (r == 0)
		r = content_new(o->store, o->lower, &c);
	while (r == 0 && (got = node_read(o, n, buf, OWN_STEP, offset)) != 0) {
		r = got < 0 ? got : content_write(c, buf, got, offset);
		offset += MAX(got, 0);
	}
	if (r < 0)
		return r;
	n->row.attr.size = offset;
	n->row.content = content_id(c);
	node_keep_content(o, n, g_steal_pointer(&c));
	return node_save(o, n);
}

int node_masked(struct overlay *o, struct node *n, const struct attr *now, GBytes **ret)
{
	g_autofree char *data = NULL;
	ssize_t size = 0;

	if (n->masked && n->masked_of.size == now->size && n->masked_of.mtime == now->mtime && n->masked_of.ctime == now->ctime) {
		*ret = n->masked;
		return 0;
	}
	if (now->size <= MASK_MAX) {
		data = g_malloc(now->size + 1);
		size = node_read(o, n, data, now->size, 0);
	}
	if (size < 0)
		return size;
	g_clear_pointer(&n->masked, g_bytes_unref);
	n->masked = mask_text(data ? data : "", size);
	n->masked_of.size = now->size;
	n->masked_of.mtime = now->mtime;
	n->masked_of.ctime = now->ctime;
	*ret = n->masked;
	return 0;
}

static ssize_t read_masked(struct overlay *o, struct node *n, void *buf, size_t size, uint64_t offset)
{
	const char *data;
	GBytes *masked;
	struct attr a;
	gsize have;
	int r = node_attr(o, n, &a);

	if (r == 0)
		r = node_masked(o, n, &a, &masked);
	if (r < 0)
		return r;
	data = g_bytes_get_data(masked, &have);
	if (offset >= have)
		return 0;
	size = MIN(size, have - offset);
	memcpy(buf, data + offset, size);
	return size;
}

ssize_t overlay_read(struct overlay *o, uint64_t ino, void *buf, size_t size, uint64_t offset)
{
	g_autofree char *path = NULL;
	struct node *n;
	ssize_t r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = "read", .ino = ino });
	r = regular_node(o, ino, &n);
	if (r == 0)
		r = ask_to_read(o, n);
	if (r == 0)
		audit_read(o, n);
	if (r == 0 && guard_is_masked(&n->verdict)) {
		r = read_masked(o, n, buf, size, offset);
	} else if (r == 0 && node_follows(n)) {
		/* A slow disk keeps only this reader waiting. */
		path = node_shown_path(o, n);
		r = path ? 0 : -ESTALE;
	} else if (r == 0) {
		r = node_read(o, n, buf, size, offset);
	}
	audit_end(o, r < 0 ? (int)r : 0);
	overlay_unlock(o);
	return path ? lower_read(o, path, buf, size, offset) : r;
}

/* One change of a file's bytes. */
struct data_change {
	const char *operation;
	const struct caller *who; /* NULL: nobody's privileges end with it */
	const void *buf;          /* of a write; NULL = fallocate */
	size_t size;
	int mode;
	uint64_t offset, length;
};

static int data_change_rows(struct overlay *o, struct node *n, const struct data_change *change)
{
	struct content *c;
	int r = node_own_data(o, n, UINT64_MAX, &c);

	if (r < 0)
		return r;
	r = change->buf ? content_write(c, change->buf, change->size, change->offset) :
			  content_allocate(c, change->mode, change->offset, change->length);
	return r < 0 ? r : data_changed(o, n, c, change->who);
}

static int overlay_change_data(struct overlay *o, uint64_t ino, const struct data_change *change)
{
	struct node *n;
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = change->operation, .ino = ino });
	r = regular_node(o, ino, &n);
	if (r == 0) {
		r = ask_to_change(o, n);
		/* The kernel keeps a page that was changed in a shared mapping, also when it may not be written. Nobody is to read it. */
		if (r < 0)
			invalidator_inode(o->invalidator, ino, true);
	}
	if (r == 0 && (change->buf || !(change->mode & FALLOC_FL_PUNCH_HOLE)))
		r = overlay_has_room(o, change->buf ? change->size : change->length);
	if (r == 0)
		r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, data_change_rows(o, n, change));
	if (r == 0)
		ask_written(o, n);
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}

int overlay_write(struct overlay *o, uint64_t ino, const void *buf, size_t size, uint64_t offset, const struct caller *who)
{
	return overlay_change_data(o, ino, &(struct data_change){ .operation = "write", .who = who, .buf = buf, .size = size, .offset = offset });
}

int overlay_fallocate(struct overlay *o, uint64_t ino, int mode, uint64_t offset, uint64_t length)
{
	return overlay_change_data(o, ino, &(struct data_change){ .operation = "fallocate", .mode = mode, .offset = offset, .length = length });
}

static int64_t lower_seek(struct overlay *o, const char *path, uint64_t offset, int whence)
{
	int fd = lower_open_file(o->lower, path, O_RDONLY);
	int64_t r;

	if (fd < 0)
		return fd == -ENOENT ? -ESTALE : fd;
	r = lseek(fd, offset, whence);
	if (r < 0)
		r = -errno;
	close(fd);
	return r;
}

int64_t overlay_lseek(struct overlay *o, uint64_t ino, uint64_t offset, int whence)
{
	g_autofree char *path = NULL;
	struct content *c;
	struct node *n;
	int64_t r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = "seek", .ino = ino });
	r = regular_node(o, ino, &n);
	if (r == 0)
		r = guard_is_masked(&n->verdict) ? -EOPNOTSUPP : ask_to_read(o, n);
	if (r == 0 && node_follows(n)) {
		path = node_shown_path(o, n);
		r = path ? 0 : -ESTALE;
	} else if (r == 0 && n->row.content) {
		r = node_open_content(o, n, &c);
		if (r == 0)
			r = content_seek(c, offset, whence);
	} else if (r == 0) {
		r = -ENXIO; /* an empty file has neither data nor holes */
	}
	audit_end(o, r < 0 ? (int)r : 0);
	overlay_unlock(o);
	return path ? lower_seek(o, path, offset, whence) : r;
}

/* To let others serve costs more than waiting for a disk that is as quick as this. */
#define QUICK_SYNC 500 /* us */

/* Bytes before the rows that speak of them. */
static int sync_disk(struct overlay *o, struct content *c, const struct store_sync *sync)
{
	int64_t begin = g_get_monotonic_time();
	int r;

	if (__atomic_load_n(&o->sync_time, __ATOMIC_RELAXED) > QUICK_SYNC)
		overlay_may_wait(o);
	r = c ? content_sync(c) : 0;
	if (r == 0)
		r = store_sync(o->store, sync);
	__atomic_store_n(&o->sync_time, g_get_monotonic_time() - begin, __ATOMIC_RELAXED);
	return r;
}

int overlay_fsync(struct overlay *o, uint64_t ino)
{
	struct content *c = NULL;
	struct store_sync sync;
	struct node *n;
	int r;

	overlay_lock(o);
	r = overlay_node(o, ino, &n);
	if (r == 0 && S_ISREG(n->row.attr.mode) && n->row.content)
		r = node_open_content(o, n, &c);
	if (c)
		content_ref(c);
	if (r == 0)
		r = store_sync_begin(o->store, &sync);
	overlay_unlock(o);
	/* The disk may take its time: not under the lock. */
	if (r == 0)
		r = sync_disk(o, c, &sync);
	content_close(c);
	return r;
}
