/* SPDX-License-Identifier: MIT */
#include "snapshot/content_origin.h"

#include <errno.h>

#include "snapshot/store_private.h"

struct link {
	int64_t base;
	int64_t base_origin;
};

static int link_get(struct store *s, int64_t id, struct link *ret)
{
	struct db_query *q = db_query(store_db(s), "SELECT base, base_origin FROM content WHERE id = ?");
	int r;

	db_bind_int(q, 0, id);
	r = db_step(q);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	*ret = (struct link){ .base = db_int(q, 0), .base_origin = db_int(q, 1) };
	db_done(q);
	return 0;
}

static int link_set(struct store *s, int64_t id, int64_t origin)
{
	struct db_query *q = db_query(store_db(s), "UPDATE content SET base_origin = ? WHERE id = ?");

	db_bind_int(q, 0, origin);
	db_bind_int(q, 1, id);
	return db_run(q);
}

static bool same_but_ctime(const struct fingerprint *a, struct fingerprint b)
{
	b.attr.ctime = a->attr.ctime;
	return fingerprint_same(a, &b);
}

static int returned(struct store *s, struct lower *lower, int64_t id, int64_t origin)
{
	struct fingerprint now;
	struct origin o = { 0 };
	int r = store_origin_get(s, origin, &o);

	if (r == 0 && lower_stat(lower, o.path, &now) == 0 && !fingerprint_same(&o.print, &now) && same_but_ctime(&o.print, now)) {
		o.print = now;
		r = store_origin_add(s, &o);
		if (r == 0)
			r = link_set(s, id, o.id);
	}
	origin_clear(&o);
	return r;
}

int content_origin_returned(struct store *s, struct lower *lower, int64_t id)
{
	struct link l = { 0 };
	int r = 0;

	for (; r == 0 && id; id = l.base) {
		r = link_get(s, id, &l);
		if (r == 0 && l.base_origin)
			r = returned(s, lower, id, l.base_origin);
	}
	return r;
}

int content_reads_workspace(struct store *s, int64_t id, bool *ret)
{
	struct link l = { 0 };
	int r = 0;

	for (; r == 0 && id && !l.base_origin; id = l.base)
		r = link_get(s, id, &l);
	*ret = l.base_origin != 0;
	return r;
}

int contents_reading(struct store *s, int64_t since, GHashTable *paths, GPtrArray **ret)
{
	g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
	struct db_query *q = db_query(store_db(s), "SELECT DISTINCT o.path FROM content c JOIN origin o ON o.id = c.base_origin WHERE c.epoch > ?");
	int r;

	db_bind_int(q, 0, since);
	while ((r = db_step(q)) > 0) {
		size_t size;
		const char *path = db_blob(q, 0, &size);
		g_autofree char *name = g_strndup(path ? path : "", size);

		if (g_hash_table_contains(paths, name))
			g_ptr_array_add(found, g_steal_pointer(&name));
	}
	if (r == 0)
		*ret = g_steal_pointer(&found);
	return r;
}
