/* SPDX-License-Identifier: MIT */
/*
 * overlay_settle_dirs - after a commit: directories that were shown elsewhere than in the workspace
 *
 * A directory that was moved in the view is one row, and its names follow the workspace at its old place. The commit has put them at the
 * new one, so the directory follows that from now on - or, when something that it shows is at the old place still, stays there, and its names
 * of which that is not true any more get rows.
 */
#include <errno.h>
#include <string.h>

#include "fs/overlay_places.h"
#include "fs/overlay_settling.h"
#include "snapshot/xattr.h"

/* Alike */

static int names_alike(struct settling *s, uint64_t ino, const char *path, const char *lower, bool *ret);

/*
 * Whether what a directory at @path showed of @lower, without a row, is what is at @path now. @ino: the row that it was given since, 0 = none.
 * What was committed is. What was shown of a place that a commit writes has a row, so without one nothing was shown of it.
 */
static int name_alike(struct settling *s, uint64_t ino, const char *path, const char *lower, bool *ret)
{
	struct fingerprint a, b;
	bool written;
	int r = lower_stat(s->overlay->lower, path, &a), q = lower_stat(s->overlay->lower, lower, &b);

	if ((r < 0 && !errno_is_absent(r)) || (q < 0 && !errno_is_absent(q)))
		return r < 0 && !errno_is_absent(r) ? r : q;
	written = g_hash_table_contains(s->paths, lower);
	*ret = ino || g_hash_table_contains(s->paths, path);
	if (r == 0 && q == 0 && S_ISDIR(a.attr.mode) && S_ISDIR(b.attr.mode)) {
		*ret = *ret || (!written && attr_is_alike(&a.attr, &b.attr));
		return *ret ? names_alike(s, ino, path, lower, ret) : 0;
	}
	if (!*ret && !written && r == 0 && q == 0)
		return places_alike(s->overlay, path, lower, ret);
	*ret = *ret || (r < 0 && (q < 0 || written));
	return 0;
}

static int add_names(struct settling *s, const char *path, GHashTable *names)
{
	g_autoptr(GPtrArray) list = NULL;
	int r = lower_list(s->overlay->lower, path, &list);

	for (guint i = 0; r == 0 && i < list->len; i++)
		g_hash_table_add(names, g_strdup(((const struct lower_name *)g_ptr_array_index(list, i))->name));
	return errno_is_absent(r) ? 0 : r;
}

/* Of one name in the directory @ino, 0 = it has no row. Names that had rows are none of this. */
static int child_alike(struct settling *s, uint64_t ino, const char *name, const char *path, const char *lower, bool *ret)
{
	g_autofree char *here = path_join(path, name), *there = path_join(lower, name);
	struct name_row then = { 0 }, now = { 0 };
	int r = ino ? store_name_get(s->overlay->store, s->epoch, ino, name, &then) : 0;

	if (r == 0 && ino)
		r = store_name_get(s->overlay->store, EPOCH_LIVE, ino, name, &now);
	if (r == 0 && then.born == 0 && !(now.born > 0 && now.ino == 0))
		r = name_alike(s, now.ino, here, there, ret);
	name_row_clear(&then);
	name_row_clear(&now);
	return r;
}

static int names_alike(struct settling *s, uint64_t ino, const char *path, const char *lower, bool *ret)
{
	g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	GHashTableIter iter;
	gpointer name;
	int r = add_names(s, path, names);

	*ret = true;
	if (r == 0)
		r = add_names(s, lower, names);
	g_hash_table_iter_init(&iter, names);
	while (r == 0 && *ret && g_hash_table_iter_next(&iter, &name, NULL))
		r = child_alike(s, ino, name, path, lower, ret);
	return r;
}

int settle_dir_moves(struct settling *s, const struct node_row *dir, const char *path, bool *ret)
{
	struct origin origin = { 0 };
	int r;

	*ret = true;
	if (!dir->origin)
		return 0;
	r = store_origin_get(s->overlay->store, dir->origin, &origin);
	if (r == 0 && strcmp(origin.path, path) != 0)
		r = names_alike(s, dir->ino, path, origin.path, ret);
	if (r == 0 && *ret)
		g_hash_table_add(s->moved, g_memdup2(&dir->ino, sizeof(dir->ino)));
	origin_clear(&origin);
	return r;
}

/* Directories that are no changes */

/* What is pending of a directory's own attributes stays so at its new place. */
static int dir_keep_attr(struct settling *s, struct node_row *n, const struct placed *p, const struct fingerprint *print)
{
	struct overlay *o = s->overlay;
	bool written = g_hash_table_contains(s->paths, p->origin);
	g_autoptr(GBytes) old = NULL, new = NULL;
	struct fingerprint then = *print;
	int r = written ? 0 : lower_stat(o->lower, p->origin, &then);

	if (r < 0)
		return errno_is_absent(r) ? 0 : r;
	if (!(n->flags & NODE_OWN_ATTR) && !attr_is_alike(&then.attr, &print->attr)) {
		n->attr.mode = then.attr.mode;
		n->attr.uid = then.attr.uid;
		n->attr.gid = then.attr.gid;
		n->flags |= NODE_OWN_ATTR;
	}
	if (!(n->flags & NODE_OWN_XATTR) && !written) {
		r = lower_xattrs(o->lower, p->origin, &old);
		if (r == 0)
			r = lower_xattrs(o->lower, p->path, &new);
		if (r == 0 && !xattrs_equal(old, new)) {
			n->xattrs = g_steal_pointer(&old);
			n->flags |= NODE_OWN_XATTR;
		}
	}
	if (attr_is_alike(&n->attr, &print->attr))
		n->flags &= ~(uint32_t)NODE_OWN_ATTR;
	return r;
}

static int settle_dir(struct settling *s, const struct placed *p)
{
	struct overlay *o = s->overlay;
	struct fingerprint print;
	struct node_row n = { 0 };
	bool moves = false;
	int r = lower_stat(o->lower, p->path, &print);

	if (r < 0)
		return errno_is_absent(r) ? 0 : r;
	if (!S_ISDIR(print.attr.mode))
		return 0;
	r = store_node_get(o->store, EPOCH_LIVE, p->ino, &n);
	if (r == 0 && n.ino)
		r = settle_dir_moves(s, &n, p->path, &moves);
	if (r == 0 && moves)
		r = dir_keep_attr(s, &n, p, &print);
	if (r == 0 && moves)
		r = origin_record(o, p->path, &print, &n.origin);
	if (r == 0 && moves) {
		r = store_node_put(o->store, &n);
		changed_rows_add_node(n.ino, &s->rows);
	}
	node_row_clear(&n);
	return r;
}

static bool is_touched(const struct settling *s, const struct placed *p)
{
	return p->is_dir && strcmp(p->path, p->origin) != 0 &&
	       (g_hash_table_contains(s->touched, p->path) || g_hash_table_contains(s->touched, p->origin));
}

int settle_dirs(struct settling *s)
{
	int r = 0;

	for (guint i = 0; r == 0 && i < s->places->len; i++) {
		const struct placed *p = g_ptr_array_index(s->places, i);

		if (is_touched(s, p) && !g_hash_table_contains(s->paths, p->path))
			r = settle_dir(s, p);
	}
	return r;
}

/* What is in those that stay */

/* The names right below @dir that were committed, or lead to what was. */
static void add_touched(struct settling *s, const char *dir, GHashTable *names)
{
	g_autofree char *prefix = *dir ? g_strconcat(dir, "/", NULL) : g_strdup("");
	GHashTableIter iter;
	gpointer path;

	g_hash_table_iter_init(&iter, s->touched);
	while (g_hash_table_iter_next(&iter, &path, NULL))
		if (g_str_has_prefix(path, prefix) && !strchr((char *)path + strlen(prefix), '/'))
			g_hash_table_add(names, g_strdup((char *)path + strlen(prefix)));
}

static int staying_dir(struct settling *s, uint64_t ino, const char *path, const char *lower);

/* A name without a row of a directory that stays: @path and @lower are those of the name. */
static int staying_name(struct settling *s, uint64_t parent, const char *name, const char *path, const char *lower)
{
	struct overlay *o = s->overlay;
	struct fingerprint here, there;
	bool is_here = lower_stat(o->lower, path, &here) == 0, is_there = lower_stat(o->lower, lower, &there) == 0;
	uint64_t ino;
	int r;

	if (is_here && g_hash_table_contains(s->paths, path))
		return place_row(s->overlay, parent, name, path, &here, &s->rows, NULL);
	if (is_there && g_hash_table_contains(s->paths, lower)) {
		/* The commit put it there, and it was not shown here. */
		struct name_row row = { .parent = parent, .name = (char *)name };

		r = origin_record(o, lower, &there, &row.covers);
		if (r == 0)
			r = store_name_put(o->store, &row);
		changed_rows_add_name(parent, name, &s->rows);
		return r;
	}
	if (!is_there || !S_ISDIR(there.attr.mode))
		return 0;
	r = place_row(o, parent, name, lower, &there, &s->rows, &ino);
	return r < 0 ? r : staying_dir(s, ino, path, lower);
}

/* A name that overlay_keep() gave a row: what it keeps of a directory is not all of it. */
static int staying_kept(struct settling *s, uint64_t ino, const char *path, const char *lower)
{
	struct store *store = s->overlay->store;
	struct node_row now, then = { 0 };
	struct origin origin = { 0 };
	int r = store_node_get(store, EPOCH_LIVE, ino, &now);

	if (r == 0)
		r = store_node_get(store, s->epoch, ino, &then);
	if (r == 0 && !then.ino && S_ISDIR(now.attr.mode) && now.origin)
		r = store_origin_get(store, now.origin, &origin);
	if (r == 0 && g_strcmp0(origin.path, lower) == 0)
		r = staying_dir(s, ino, path, lower);
	origin_clear(&origin);
	node_row_clear(&now);
	node_row_clear(&then);
	return r;
}

static int staying_dir(struct settling *s, uint64_t ino, const char *path, const char *lower)
{
	g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	GHashTableIter iter;
	gpointer name;
	int r = 0;

	add_touched(s, path, names);
	add_touched(s, lower, names);
	g_hash_table_iter_init(&iter, names);
	while (r == 0 && g_hash_table_iter_next(&iter, &name, NULL)) {
		g_autofree char *here = path_join(path, name), *there = path_join(lower, name);
		struct name_row now;

		r = store_name_get(s->overlay->store, EPOCH_LIVE, ino, name, &now);
		if (r == 0 && now.born == 0)
			r = staying_name(s, ino, name, here, there);
		else if (r == 0 && now.ino)
			r = staying_kept(s, now.ino, here, there);
		name_row_clear(&now);
	}
	return r;
}

/* Something that was shown without a row, and has been given one since: it is where its directory is now. */
static int redirect(struct settling *s, const struct place_map *map, const struct placed *now)
{
	const struct placed *dir;
	struct node_row then = { 0 };
	g_autofree char *path = NULL;
	const char *rest = NULL;
	int r = store_node_get(s->overlay->store, s->epoch, now->ino, &then);

	dir = r == 0 && !then.ino ? place_map_dir(map, now->origin, &rest) : NULL;
	if (dir && g_hash_table_contains(s->moved, &dir->ino) && (now->is_dir || place_has_left(s->overlay, now)))
		path = path_join(dir->path, rest);
	if (path && strcmp(path, now->origin) != 0)
		r = place_follow(s->overlay, now, path, &s->rows);
	node_row_clear(&then);
	return r;
}

static int redirect_all(struct settling *s)
{
	g_autoptr(GPtrArray) live = NULL;
	struct place_map *map;
	int r = g_hash_table_size(s->moved) ? places_find(s->overlay, EPOCH_LIVE, &live) : 0;

	if (!live)
		return r;
	map = place_map_new(s->places, PLACE_BY_ORIGIN);
	for (guint i = 0; r == 0 && i < live->len; i++)
		r = redirect(s, map, g_ptr_array_index(live, i));
	place_map_free(map);
	return r;
}

int settle_dirs_below(struct settling *s)
{
	int r = redirect_all(s);

	for (guint i = 0; r == 0 && i < s->places->len; i++) {
		const struct placed *p = g_ptr_array_index(s->places, i);
		struct node_row n = { 0 };

		if (!is_touched(s, p))
			continue;
		r = store_node_get(s->overlay->store, EPOCH_LIVE, p->ino, &n);
		if (r == 0 && n.ino && n.attr.nlink > 0)
			r = g_hash_table_contains(s->moved, &p->ino) ? places_keep_numbers(s->overlay, p->ino, p->path, &s->rows)
								     : staying_dir(s, p->ino, p->path, p->origin);
		node_row_clear(&n);
	}
	return r;
}
