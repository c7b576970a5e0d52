/* SPDX-License-Identifier: MIT */
#include "snapshot/object.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 17

static void object_name(int64_t id, char ret[NAME_BYTES])
{
	snprintf(ret, NAME_BYTES, "%016" PRIx64, (uint64_t)id);
}

int64_t object_parse_name(const char *name)
{
	char again[NAME_BYTES];
	int64_t id;

	if (strlen(name) != NAME_BYTES - 1)
		return -1;
	id = g_ascii_strtoull(name, NULL, 16);
	object_name(id, again);
	return id > 0 && strcmp(name, again) == 0 ? id : -1;
}

static struct object *object_new(struct object_dir *dir, int fd, const struct stat *st)
{
	struct object *o = g_new0(struct object, 1);

	o->refs = 1;
	o->fd = fd;
	o->dir = dir;
	o->size = st ? (uint64_t)st->st_size : 0;
	o->used = st ? st->st_blocks * 512 : 0;
	return o;
}

void object_account(struct object *o)
{
	struct stat st;

	/* With what waits to be allocated: the file systems in use count that too. */
	if (fstat(o->fd, &st) < 0 || st.st_blocks * 512 == o->used)
		return;
	__atomic_add_fetch(&o->dir->used, st.st_blocks * 512 - o->used, __ATOMIC_RELAXED);
	o->used = st.st_blocks * 512;
}

static int unlink_name(struct object_dir *dir, const char *name)
{
	struct stat st;

	if (fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (unlinkat(dir->fd, name, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	__atomic_sub_fetch(&dir->used, st.st_blocks * 512, __ATOMIC_RELAXED);
	return 0;
}

int object_create(struct object_dir *dir, int64_t id, struct object **ret)
{
	char name[NAME_BYTES];
	int fd;

	object_name(id, name);
	fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST) {
		/* Not reused: a sync that still runs, or a reader, may hold the old file. */
		int r = unlink_name(dir, name);

		if (r < 0)
			return r;
		fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		return -errno;
	__atomic_store_n(&dir->created, 1, __ATOMIC_RELAXED);
	*ret = object_new(dir, fd, NULL);
	return 0;
}

int object_open(struct object_dir *dir, int64_t id, bool writable, struct object **ret)
{
	char name[NAME_BYTES];
	struct stat st;
	int fd;

	object_name(id, name);
	fd = openat(dir->fd, name, (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EUCLEAN : -errno;
	if (fstat(fd, &st) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	*ret = object_new(dir, fd, &st);
	return 0;
}

int object_remove(struct object_dir *dir, int64_t id)
{
	char name[NAME_BYTES];

	object_name(id, name);
	return unlink_name(dir, name);
}

uint64_t object_disk_size(int dirfd, int64_t id)
{
	char name[NAME_BYTES];
	struct stat st;

	object_name(id, name);
	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

struct object *object_ref(struct object *o)
{
	g_atomic_int_inc(&o->refs);
	return o;
}

void object_unref(struct object *o)
{
	if (!o || !g_atomic_int_dec_and_test(&o->refs))
		return;
	close(o->fd);
	g_free(o);
}

int object_read(struct object *o, void *buf, size_t size, uint64_t offset)
{
	char *to = buf;

	while (size > 0) {
		ssize_t n = pread(o->fd, to, size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		to += n;
		size -= n;
		offset += n;
	}
	memset(to, 0, size);
	return 0;
}

int object_writev(struct object *o, struct iovec *iov, int count, uint64_t offset)
{
	while (count > 0) {
		ssize_t n;

		if (iov->iov_len == 0) {
			iov++;
			count--;
			continue;
		}
		n = pwritev(o->fd, iov, count, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int r = n < 0 ? -errno : -EIO;

			object_account(o);
			return r;
		}
		offset += n;
		o->size = MAX(o->size, offset);
		while (n > 0) {
			size_t m = MIN((size_t)n, iov->iov_len);

			iov->iov_base = (char *)iov->iov_base + m;
			iov->iov_len -= m;
			n -= m;
			if (iov->iov_len == 0) {
				iov++;
				count--;
			}
		}
	}
	object_account(o);
	return 0;
}

int object_truncate(struct object *o, uint64_t size)
{
	if (ftruncate(o->fd, size) < 0)
		return -errno;
	o->size = size;
	object_account(o);
	return 0;
}

/* Real ones, where the file system knows no other. */
static int object_fill(struct object *o, uint64_t offset, uint64_t length)
{
	g_autofree char *zeros = g_malloc0(MIN(length, 1024 * 1024));
	uint64_t end = offset + length;
	int r = 0;

	while (r == 0 && offset < end) {
		struct iovec iov = { zeros, MIN(end - offset, 1024 * 1024) };
		uint64_t n = iov.iov_len;

		r = object_writev(o, &iov, 1, offset);
		offset += n;
	}
	return r;
}

int object_zero(struct object *o, bool punch, uint64_t offset, uint64_t length)
{
	int mode = FALLOC_FL_KEEP_SIZE | (punch ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE);

	if (offset >= o->size || length == 0)
		return 0;
	length = MIN(length, o->size - offset);
	if (fallocate(o->fd, mode, offset, length) == 0) {
		object_account(o);
		return 0;
	}
	return errno == EOPNOTSUPP ? object_fill(o, offset, length) : -errno;
}
