/* SPDX-License-Identifier: MIT */
/*
 * overlay_settle - after a commit: what was written into the workspace is no longer a change
 *
 * A committed node keeps its row and its number, for programs may have it open, but the row follows the workspace from now on: no bytes, no
 * attributes of its own. Whoever changed it again since the committed state keeps that change, on the new base, and so does a file
 * of which only a part was committed. A committed deletion needs no whiteout any more.
 */
#include <errno.h>
#include <string.h>

#include "fs/overlay_places.h"
#include "fs/overlay_settling.h"
#include "snapshot/origin_base.h"

/* Where @path was at the epoch: the number of its directory (0 = one without rows) and its last part, borrowed from @path. */
static int settle_locate(struct settling *s, const char *path, uint64_t *ret_parent, const char **ret_name)
{
	const char *name = strrchr(path, '/');
	g_auto(GStrv) parts = g_strsplit(path, "/", -1);
	uint64_t parent = ROOT_INO;

	for (char **part = parts; parent && part[0] && part[1]; part++) {
		struct name_row row;
		int r = store_name_get(s->overlay->store, s->epoch, parent, *part, &row);

		if (r < 0)
			return r;
		parent = row.ino;
		name_row_clear(&row);
	}
	*ret_parent = parent;
	*ret_name = name ? name + 1 : path;
	return 0;
}

static void settle_attr(struct node_row *n, const struct attr *lower)
{
	bool same = n->attr.mode == lower->mode && n->attr.uid == lower->uid && n->attr.gid == lower->gid;

	/* What could not be written (an owner, without the right to) stays ours. */
	n->flags = same ? 0 : NODE_OWN_ATTR;
}

static int settle_node(struct settling *s, const char *path, uint64_t ino, int64_t origin, const struct fingerprint *print)
{
	struct node_row n;
	bool moves = true;
	int r = store_node_get(s->overlay->store, EPOCH_LIVE, ino, &n);

	if (r < 0 || !n.ino)
		return r;
	if (S_ISDIR(n.attr.mode))
		r = settle_dir_moves(s, &n, path, &moves);
	if (r == 0 && moves && ((n.attr.mode ^ print->attr.mode) & S_IFMT) == 0) {
		bool partial = g_hash_table_contains(s->partial, path), all_own = !n.origin;

		n.origin = origin;
		if (n.born <= s->epoch && !partial) {
			settle_attr(&n, &print->attr);
			n.content = 0;
			g_clear_pointer(&n.target, g_free);
			g_clear_pointer(&n.xattrs, g_bytes_unref);
		} else if (S_ISREG(n.attr.mode) && (partial || all_own)) {
			/* The flags of what had an origin say already what is its own: told twice, that is nothing. */
			n.flags |= NODE_OWN_ATTR | NODE_OWN_TIMES | (all_own ? NODE_OWN_XATTR : 0);
		}
		r = store_node_put(s->overlay->store, &n);
	}
	changed_rows_add_node(ino, &s->rows);
	node_row_clear(&n);
	return r;
}

/* A directory that was removed since holds no names. */
static int dir_is_there(struct settling *s, uint64_t ino, bool *ret)
{
	struct node_row dir = { 0 };
	int r = ino == ROOT_INO ? 0 : store_node_get(s->overlay->store, EPOCH_LIVE, ino, &dir);

	*ret = ino == ROOT_INO || (dir.ino && dir.attr.nlink > 0);
	node_row_clear(&dir);
	return r;
}

/* The name now: it covers what was committed. Gone meanwhile without a trace, because there was nothing to cover then: a whiteout. */
static int settle_name(struct settling *s, uint64_t parent, const char *name, int64_t origin)
{
	struct name_row now;
	bool there = true;
	int r = store_name_get(s->overlay->store, EPOCH_LIVE, parent, name, &now);

	if (r == 0 && now.born == 0) {
		now.parent = parent;
		now.name = g_strdup(name);
		r = dir_is_there(s, parent, &there);
	}
	now.covers = origin;
	if (r == 0 && there)
		r = store_name_put(s->overlay->store, &now);
	name_row_clear(&now);
	changed_rows_add_name(parent, name, &s->rows);
	return r;
}

static int settle_deleted(struct settling *s, uint64_t parent, const char *name)
{
	struct name_row now;
	int r = store_name_get(s->overlay->store, EPOCH_LIVE, parent, name, &now);

	if (r == 0 && now.born > 0 && now.ino == 0) {
		r = store_name_drop(s->overlay->store, parent, name);
	} else if (r == 0 && now.born > 0 && now.covers) {
		now.covers = 0;
		r = store_name_put(s->overlay->store, &now);
	}
	name_row_clear(&now);
	changed_rows_add_name(parent, name, &s->rows);
	return r;
}

/*
 * A file without row in a renamed directory that could not move: it gets a row, for its place is its own now. If it was given one since,
 * that is a change of what was committed, and goes on from there.
 */
static int settle_child_of_renamed(struct settling *s, const char *path, uint64_t parent, const char *name, int64_t origin,
				   const struct fingerprint *print)
{
	struct origin dir_origin = { 0 };
	g_autofree char *shown = NULL;
	struct node_row dir_row;
	struct name_row now;
	bool there;
	int r = dir_is_there(s, parent, &there);

	if (r < 0 || !there)
		return r;
	r = store_node_get(s->overlay->store, EPOCH_LIVE, parent, &dir_row);
	if (r == 0 && dir_row.origin)
		r = store_origin_get(s->overlay->store, dir_row.origin, &dir_origin);
	if (dir_origin.path)
		shown = path_join(dir_origin.path, name);
	origin_clear(&dir_origin);
	node_row_clear(&dir_row);
	if (r == 0)
		r = store_name_get(s->overlay->store, EPOCH_LIVE, parent, name, &now);
	if (r < 0)
		return r;
	if (now.born > 0) {
		r = now.ino ? settle_node(s, path, now.ino, origin, print) : 0;
		if (r == 0)
			r = settle_name(s, parent, name, origin);
	} else if (g_strcmp0(shown, path) != 0) {
		r = place_row(s->overlay, parent, name, path, print, &s->rows, NULL);
	}
	name_row_clear(&now);
	return r;
}

/*
 * Changed again in the view, and not what was committed: the owner's changes were merged into it. The view has not seen those, so its file
 * stays on the base that it has, and is a conflict until it is merged as well.
 */
static int settle_is_merged(struct settling *s, const char *path, uint64_t ino, const struct fingerprint *print, bool *ret)
{
	struct entry lower = { .name = (char *)path, .lower = (char *)path, .attr = print->attr };
	g_autoptr(tree_t) t = NULL;
	g_autoptr(entry_t) then = NULL;
	uint8_t a[32], b[32];
	struct node_row now;
	int r = store_node_get(s->overlay->store, EPOCH_LIVE, ino, &now);

	*ret = false;
	if (r == 0 && S_ISREG(print->attr.mode) && now.born > s->epoch && now.content) {
		t = tree_open(s->overlay->store, s->overlay->lower, s->epoch);
		r = tree_lookup_path(t, path, &then);
		if (r == 0 && then && S_ISREG(then->attr.mode))
			*ret = tree_hash(t, then, a) < 0 || tree_hash(t, &lower, b) < 0 || memcmp(a, b, sizeof(a)) != 0;
	}
	node_row_clear(&now);
	return r;
}

/* The rest can be merged with what the workspace becomes, as the whole could be. */
static int settle_keep_base(struct settling *s, const char *path, const struct fingerprint *print, int64_t origin)
{
	const struct origin o = { .id = origin, .path = (char *)path, .print = *print };

	return g_hash_table_contains(s->partial, path) ? origin_base_keep_file(s->overlay->store, s->overlay->lower, &o) : 0;
}

/* @dirs: directories in a first pass, so that the second one finds them where they merge now. */
static int settle_path(struct settling *s, const char *path, bool dirs)
{
	struct fingerprint print = { 0 };
	bool merged = false;
	struct name_row then;
	const char *name;
	uint64_t parent;
	int64_t origin;
	int r = settle_locate(s, path, &parent, &name);

	if (r < 0 || parent == 0)
		return r;
	r = lower_stat(s->overlay->lower, path, &print);
	if (r < 0 && !errno_is_absent(r))
		return r;
	if (dirs != (r == 0 && S_ISDIR(print.attr.mode)))
		return 0;
	if (r < 0)
		return settle_deleted(s, parent, name);
	r = store_name_get(s->overlay->store, s->epoch, parent, name, &then);
	if (r == 0 && then.ino && !g_hash_table_contains(s->partial, path))
		r = settle_is_merged(s, path, then.ino, &print, &merged);
	if (r < 0 || merged) {
		name_row_clear(&then);
		return r;
	}
	r = origin_record(s->overlay, path, &print, &origin);
	if (r == 0)
		r = settle_keep_base(s, path, &print, origin);
	if (r == 0 && then.born == 0)
		r = settle_child_of_renamed(s, path, parent, name, origin, &print);
	if (r == 0 && then.ino)
		r = settle_node(s, path, then.ino, origin, &print);
	if (r == 0 && then.born > 0)
		r = settle_name(s, parent, name, origin);
	name_row_clear(&then);
	return r;
}

void settle_prints(struct overlay *o, struct node *dir)
{
	GHashTableIter iter;
	gpointer value;

	if (!dir->children)
		return;
	g_hash_table_iter_init(&iter, dir->children);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct dentry *d = value;
		struct fingerprint print;

		if (!d->node || d->born > 0 || overlay_lower_has(o, dir, d->name, &print) <= 0)
			continue;
		node_set_print(d->node, &print);
		settle_prints(o, d->node);
	}
}

static int settle_all(struct settling *s, const char *const *paths)
{
	int r = places_find_moved(s->overlay, s->epoch, &s->places);

	for (const char *const *p = paths; r == 0 && *p; p++)
		r = settle_path(s, *p, true);
	if (r == 0)
		r = settle_dirs(s);
	for (const char *const *p = paths; r == 0 && *p; p++)
		r = settle_path(s, *p, false);
	return r < 0 ? r : settle_dirs_below(s);
}

static void settling_init(struct settling *s, const char *const *paths, const char *const *partial)
{
	s->paths = g_hash_table_new(g_str_hash, g_str_equal);
	for (const char *const *p = paths; *p; p++)
		g_hash_table_add(s->paths, (gpointer)*p);
	s->partial = g_hash_table_new(g_str_hash, g_str_equal);
	for (const char *const *p = partial; p && *p; p++)
		g_hash_table_add(s->partial, (gpointer)*p);
	s->touched = path_set_with_parents(paths);
	s->moved = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	changed_rows_init(&s->rows);
}

static void settling_clear(struct settling *s)
{
	changed_rows_clear(&s->rows);
	g_hash_table_unref(s->paths);
	g_hash_table_unref(s->partial);
	g_hash_table_unref(s->touched);
	g_hash_table_unref(s->moved);
	g_clear_pointer(&s->places, g_ptr_array_unref);
}

int overlay_settle(struct overlay *o, int64_t epoch, const char *const *paths, const char *const *partial)
{
	struct settling s = { .overlay = o, .epoch = epoch };
	g_autofree char *detail = NULL;
	int r;

	settling_init(&s, paths, partial);
	detail = g_strdup_printf("%u paths of epoch %" G_GINT64_FORMAT, g_hash_table_size(s.paths), epoch);
	overlay_lock(o);
	overlay_leave_dir(o);
	spare_forget(o->spare);
	audit_begin(o, &(struct audit_about){ .kind = AUDIT_COMMIT, .operation = "commit", .detail = detail });
	r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, settle_all(&s, paths));
	audit_paths(o, AUDIT_COMMIT, "commit", r == 0 ? paths : NULL);
	audit_end(o, r);
	if (r == 0)
		r = overlay_resync(o, &s.rows);
	for (guint i = 0; r == 0 && i < s.rows.nodes->len; i++) {
		struct node *n = node_find(o->nodes, g_array_index(s.rows.nodes, uint64_t, i));

		if (n && node_is_dir(n))
			settle_prints(o, n);
	}
	overlay_unlock(o);
	settling_clear(&s);
	if (r == 0)
		overlay_drain(o);
	return r;
}
