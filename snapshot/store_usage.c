/* SPDX-License-Identifier: MIT */
/*
 * store_usage - how much disk a store takes, without looking for it
 *
 * The files in objects/ add what they gain and lose to one sum (snapshot/object.h), which the index remembers in the setting
 * "objects_bytes": written with a commit when it has changed by a MiB, and when the store is closed. So kill -9 may make it wrong by that much
 * and one change. Where it is cheap the files are counted anew at a mount with a limit, which also takes back what a file system
 * reserved ahead and gave back by itself (XFS). SQLite knows its pages and the free ones among them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/object.h"
#include "snapshot/store_private.h"

#define KEY "objects_bytes"
#define CHEAP 4096 /* files: some milliseconds */

static int64_t objects_used(struct store *s)
{
	return MAX(__atomic_load_n(&store_objects(s)->used, __ATOMIC_RELAXED), 0);
}

void usage_load(struct store *s)
{
	g_autofree char *text = store_get(s, KEY);
	struct usage *u = store_usage_state(s);

	if (!text)
		return;
	u->known = true;
	u->saved = g_ascii_strtoll(text, NULL, 10);
	__atomic_add_fetch(&store_objects(s)->used, u->saved, __ATOMIC_RELAXED);
}

int usage_save(struct store *s, int64_t step)
{
	struct usage *u = store_usage_state(s);
	int64_t used = objects_used(s);
	char text[32];
	int r;

	if (!u->known || used == u->saved || llabs(used - u->saved) < step)
		return 0;
	g_snprintf(text, sizeof(text), "%" G_GINT64_FORMAT, used);
	r = store_set(s, KEY, text);
	if (r == 0)
		u->saved = used;
	return r;
}

/* The files, but no more than @max. Returns 1 when there are more. */
static int count_files(struct store *s, unsigned max, int64_t *ret)
{
	int fd = openat(store_objects_fd(s), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	unsigned n = 0;
	struct stat st;

	if (!dir) {
		int r = -errno;

		if (fd >= 0)
			close(fd);
		return r;
	}
	*ret = 0;
	while (n <= max && (d = readdir(dir))) {
		if (object_parse_name(d->d_name) < 0 || fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*ret += st.st_blocks * 512;
		n++;
	}
	closedir(dir);
	return n > max;
}

int store_set_limit(struct store *s, uint64_t limit)
{
	struct usage *u = store_usage_state(s);
	int64_t found = 0;
	int r = 0;

	if (limit > 0 && !u->limit) {
		r = count_files(s, u->known ? CHEAP : UINT32_MAX - 1, &found);
		if (r == 0) {
			__atomic_store_n(&store_objects(s)->used, found, __ATOMIC_RELAXED);
			u->known = true;
		}
	}
	u->limit = limit;
	return MIN(r, 0);
}

uint64_t store_limit(struct store *s)
{
	return store_usage_state(s)->limit;
}

static uint64_t pragma(struct db_query *q)
{
	uint64_t value = db_step(q) > 0 ? (uint64_t)db_int(q, 0) : 0;

	db_done(q);
	return value;
}

void store_usage(struct store *s, struct store_usage *ret)
{
	const struct usage *u = store_usage_state(s);
	uint64_t pages = pragma(db_query(store_db(s), "PRAGMA page_count"));
	uint64_t unused = pragma(db_query(store_db(s), "PRAGMA freelist_count"));

	*ret = (struct store_usage){ .limit = u->limit };
	if (u->known)
		ret->used = (uint64_t)objects_used(s) + (pages - MIN(unused, pages)) * pragma(db_query(store_db(s), "PRAGMA page_size"));
}
