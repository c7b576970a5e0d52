/* SPDX-License-Identifier: MIT */
#include "snapshot/origin_base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/store_private.h"

int origin_base_keep(struct store *s, int64_t origin, const void *data, size_t size)
{
	struct db_query *q;

	if (size == 0 || size > ORIGIN_BASE_MAX || memchr(data, '\0', size))
		return 0;
	q = db_query(store_db(s), "INSERT OR IGNORE INTO base (origin, data) VALUES (?, ?)");
	db_bind_int(q, 0, origin);
	db_bind_blob(q, 1, data, size);
	return db_run(q);
}

int origin_base_keep_file(struct store *s, const struct lower *l, const struct origin *o)
{
	uint64_t size = o->print.attr.size, used = 0;
	g_autofree char *data = NULL;
	struct fingerprint now;
	ssize_t n = 0;
	int fd, r;

	if (!S_ISREG(o->print.attr.mode) || size == 0 || size > ORIGIN_BASE_MAX)
		return 0;
	/* A merge later on is a favour; that it will not be possible is no reason to fail now. */
	fd = lower_open_file(l, o->path, O_RDONLY);
	if (fd < 0)
		return 0;
	data = g_malloc(size);
	while (used < size && (n = pread(fd, data + used, size - used, used)) > 0)
		used += n;
	r = lower_stat_at(fd, "", &now);
	close(fd);
	return r == 0 && used == size && fingerprint_same(&o->print, &now) ? origin_base_keep(s, o->id, data, size) : 0;
}

int origin_base_get(struct store *s, int64_t origin, GBytes **ret)
{
	struct db_query *q = db_query(store_db(s), "SELECT data FROM base WHERE origin = ?");
	const void *data;
	size_t size;
	int r;

	db_bind_int(q, 0, origin);
	*ret = NULL;
	r = db_step(q);
	if (r <= 0)
		return r;
	data = db_blob(q, 0, &size);
	*ret = g_bytes_new(data, size);
	db_done(q);
	return 0;
}
