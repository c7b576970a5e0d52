/* SPDX-License-Identifier: MIT */
#include "snapshot/audit_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "snapshot/checksum.h"
#include "snapshot/pread_all.h"

static const char MAGIC[16] = "sbxfs-audit-1\n";

struct spool_header {
	char magic[16];
	uint64_t generation;
};
G_STATIC_ASSERT(sizeof(struct spool_header) == SPOOL_START);

struct record_header {
	uint32_t size;
	int32_t result;
	uint64_t sum;
};

struct audit_spool {
	int fd;
	uint64_t generation;
	uint64_t size;
};

static char *spool_path(const char *dir)
{
	return g_build_filename(dir, "audit.spool", NULL);
}

/* The end of the last whole record from @offset on. */
static int spool_scan(int fd, uint64_t offset, audit_spool_fn fn, void *user, uint64_t *ret_end)
{
	g_autofree guint8 *data = NULL;
	struct stat st;

	*ret_end = offset;
	if (fstat(fd, &st) < 0)
		return -errno;
	for (;;) {
		struct record_header h;
		struct audit_record r;
		int e = pread_all(fd, &h, sizeof(h), *ret_end);

		if (e < 0)
			return e == -ENODATA ? 0 : e;
		if (h.size > (uint64_t)st.st_size)
			return 0;
		data = g_realloc(data, MAX(h.size, 1));
		e = pread_all(fd, data, h.size, *ret_end + sizeof(h));
		if (e < 0)
			return e == -ENODATA ? 0 : e;
		if (checksum_add(CHECKSUM_START, data, h.size) != h.sum || !audit_record_decode(data, h.size, &r))
			return 0;
		r.result = h.result;
		*ret_end += sizeof(h) + h.size;
		if (fn && !fn(&r, *ret_end, user))
			return 0;
	}
}

static int spool_load(struct audit_spool *s)
{
	struct spool_header h;
	int r = pread_all(s->fd, &h, sizeof(h), 0);

	if (r == -ENODATA || (r == 0 && memcmp(h.magic, MAGIC, sizeof(MAGIC)) != 0))
		return audit_spool_restart(s, 0);
	if (r < 0)
		return r;
	s->generation = h.generation;
	r = spool_scan(s->fd, SPOOL_START, NULL, NULL, &s->size);
	return r < 0 ? r : ftruncate(s->fd, s->size) < 0 ? -errno : 0;
}

int audit_spool_open(const char *dir, struct audit_spool **ret)
{
	g_autofree char *path = spool_path(dir);
	struct audit_spool *s = g_new0(struct audit_spool, 1);
	int r = 0;

	s->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->fd < 0)
		r = -errno;
	else if (flock(s->fd, LOCK_EX | LOCK_NB) < 0)
		r = errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (r == 0)
		r = spool_load(s);
	if (r < 0) {
		audit_spool_close(s);
		return r;
	}
	if (fallocate(s->fd, FALLOC_FL_KEEP_SIZE, 0, SPOOL_RESERVE) < 0)
		g_debug("no room is kept for the audit: %s", g_strerror(errno));
	*ret = s;
	return 0;
}

void audit_spool_close(struct audit_spool *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	g_free(s);
}

uint64_t audit_spool_generation(const struct audit_spool *s)
{
	return s->generation;
}

uint64_t audit_spool_size(const struct audit_spool *s)
{
	return s->size;
}

int audit_spool_append(struct audit_spool *s, int32_t result, const GByteArray *payload, uint64_t *ret_offset)
{
	struct record_header h = { .size = payload->len, .result = result, .sum = checksum_add(CHECKSUM_START, payload->data, payload->len) };
	const struct iovec v[] = { { &h, sizeof(h) }, { payload->data, payload->len } };
	ssize_t n;

	do
		n = pwritev(s->fd, v, G_N_ELEMENTS(v), s->size);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)(sizeof(h) + payload->len)) {
		int r = n < 0 ? -errno : -ENOSPC;

		if (n > 0 && ftruncate(s->fd, s->size) < 0)
			g_debug("half a record stays at the end until the next one");
		return r;
	}
	*ret_offset = s->size;
	s->size += n;
	return 0;
}

int audit_spool_set_result(struct audit_spool *s, uint64_t offset, int32_t result)
{
	uint64_t at = offset + G_STRUCT_OFFSET(struct record_header, result);

	return pwrite(s->fd, &result, sizeof(result), at) == sizeof(result) ? 0 : -EIO;
}

int audit_spool_restart(struct audit_spool *s, uint64_t generation)
{
	struct spool_header h = { .generation = MAX(s->generation, generation) + 1 };

	memcpy(h.magic, MAGIC, sizeof(MAGIC));
	/* A crash between the two leaves a file without a header, which is as good as an empty one. */
	if (ftruncate(s->fd, 0) < 0)
		return -errno;
	if (fallocate(s->fd, FALLOC_FL_KEEP_SIZE, 0, SPOOL_RESERVE) < 0)
		g_debug("no room is kept for the audit: %s", g_strerror(errno));
	s->size = SPOOL_START;
	s->generation = h.generation;
	return pwrite(s->fd, &h, sizeof(h), 0) == sizeof(h) ? 0 : errno ? -errno : -EIO;
}

int audit_spool_read(const char *dir, uint64_t generation, uint64_t offset, audit_spool_fn fn, void *user,
		     uint64_t *ret_generation)
{
	g_autofree char *path = spool_path(dir);
	struct spool_header h;
	uint64_t end;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r;

	*ret_generation = 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = pread_all(fd, &h, sizeof(h), 0);
	if (r == 0 && memcmp(h.magic, MAGIC, sizeof(MAGIC)) == 0) {
		*ret_generation = h.generation;
		if (h.generation >= generation)
			r = spool_scan(fd, h.generation == generation ? MAX(offset, SPOOL_START) : SPOOL_START, fn,
				       user, &end);
	}
	close(fd);
	return r == -ENODATA ? 0 : r;
}
