/* SPDX-License-Identifier: MIT */
/*
 * overlay_keep - before a commit: what the view shows elsewhere of the places that will be written
 *
 * A file that was moved in the view still has its bytes in the workspace, at its old place. When a commit writes that place and not the new
 * one, as only a part of the changes was chosen, those bytes would be gone from the view. So they become the sandbox's own first. What is
 * committed at its new place as well needs that not: it follows the workspace there when the commit is settled.
 */
#include <errno.h>
#include <string.h>

#include "fs/overlay_places.h"

struct kept {
	struct node *node;
	char *path;  /* in the view */
	char *lower; /* in the workspace, about to be written */
};

struct keeping {
	struct overlay *overlay;
	GHashTable *paths;   /* to be written */
	GHashTable *settled; /* uint64_t: nodes that will be settled at one of them */
	GHashTable *then;    /* ino of a directory -> struct placed of the epoch */
	GArray *kept;
};

static void kept_clear(gpointer data)
{
	struct kept *k = data;

	g_free(k->path);
	g_free(k->lower);
}

/* Finding */

static void keep(struct keeping *k, const char *path, const char *lower, uint64_t ino)
{
	struct overlay *o = k->overlay;
	g_auto(GStrv) parts = g_strsplit(path, "/", -1);
	struct child c = { .node = node_find(o->nodes, ROOT_INO) };
	g_autofree char *shown = NULL;
	struct kept found;

	for (char **part = parts; *part && c.node && node_is_dir(c.node); part++)
		if (overlay_child(o, c.node, *part, &c) < 0)
			return;
	/* Without a row, a file with several names follows any of them; but this name needs one. */
	shown = !c.node ? NULL : ino || c.node->row.born > 0 ? node_lower_path(c.node) : dentry_lower_path(c.dentry);
	if (g_strcmp0(shown, lower) != 0 || (ino ? c.node->ino != ino : c.node->row.born > 0))
		return;
	found = (struct kept){ .node = c.node, .path = g_strdup(path), .lower = g_strdup(lower) };
	c.node->lookups++;
	g_array_append_val(k->kept, found);
}

static void find_rows(struct keeping *k, const GPtrArray *live)
{
	for (guint i = 0; i < live->len; i++) {
		const struct placed *p = g_ptr_array_index(live, i);

		if (strcmp(p->path, p->origin) != 0 && g_hash_table_contains(k->paths, p->origin) &&
		    !g_hash_table_contains(k->settled, &p->ino))
			keep(k, p->path, p->origin, p->ino);
	}
}

/* What a directory that was moved shows without rows. */
static void find_below_moved(struct keeping *k, const GPtrArray *live)
{
	struct place_map *map = place_map_new(live, PLACE_BY_ORIGIN);
	GHashTableIter iter;
	gpointer lower;

	g_hash_table_iter_init(&iter, k->paths);
	while (g_hash_table_iter_next(&iter, &lower, NULL)) {
		const char *rest = NULL;
		const struct placed *now = place_map_dir(map, lower, &rest), *then;
		g_autofree char *path = NULL, *committed = NULL;

		if (!now || strcmp(now->path, now->origin) == 0)
			continue;
		then = g_hash_table_lookup(k->then, &now->ino);
		path = path_join(now->path, rest);
		committed = path_join(then ? then->path : now->path, rest);
		if (!g_hash_table_contains(k->paths, committed))
			keep(k, path, lower, 0);
	}
	place_map_free(map);
}

static int find_all(struct keeping *k, int64_t epoch)
{
	g_autoptr(GPtrArray) live = NULL, then = NULL;
	int r = places_find_moved(k->overlay, EPOCH_LIVE, &live);

	if (r < 0 || live->len == 0)
		return r;
	r = places_find(k->overlay, epoch, &then);
	if (r < 0)
		return r;
	for (guint i = 0; i < then->len; i++) {
		struct placed *p = g_ptr_array_index(then, i);

		if (p->is_dir)
			g_hash_table_insert(k->then, &p->ino, p);
		if (g_hash_table_contains(k->paths, p->path))
			g_hash_table_add(k->settled, g_memdup2(&p->ino, sizeof(p->ino)));
	}
	find_rows(k, live);
	find_below_moved(k, live);
	g_hash_table_remove_all(k->then);
	return 0;
}

/* Keeping */

/* Nothing of the workspace is left in a fifo, socket or device but that it follows one. */
static int keep_special(struct overlay *o, struct node *n)
{
	n->row.origin = 0;
	g_clear_pointer(&n->origin, g_free);
	n->is_lower = false;
	return node_save(o, n);
}

static int keep_target(struct overlay *o, struct node *n, const char *lower)
{
	g_autofree char *target = NULL;
	int r = lower_readlink(o->lower, lower, &target);

	if (r < 0)
		return r;
	g_free(n->row.target);
	n->row.target = g_steal_pointer(&target);
	return node_save(o, n);
}

/*
 * A place that stays and has the same: the path of the name, or that of another name of the file. NULL = none. What follows it needs no bytes of
 * its own, and stays one file with what has them there.
 */
static int find_place(struct keeping *k, const struct kept *kept, char **ret, struct fingerprint *ret_print)
{
	struct overlay *o = k->overlay;
	struct fingerprint left;
	bool alike = false;
	int r = places_alike(o, kept->path, kept->lower, &alike);

	if (r == 0 && alike)
		r = lower_stat(o->lower, kept->path, ret_print);
	if (r == 0 && alike)
		*ret = g_strdup(kept->path);
	if (r < 0 || alike || lower_stat(o->lower, kept->lower, &left) < 0)
		return r;
	for (const struct dentry *d = kept->node->names; !*ret && d; d = d->next_of_node) {
		g_autofree char *path = dentry_lower_path(d);

		if (path && !g_hash_table_contains(k->paths, path) && lower_stat(o->lower, path, ret_print) == 0 && ret_print->ino == left.ino &&
		    ret_print->dev == left.dev)
			*ret = g_steal_pointer(&path);
	}
	return 0;
}

static int keep_place(struct keeping *k, const struct kept *kept)
{
	struct node *n = kept->node;
	g_autofree char *path = NULL;
	struct fingerprint print;
	int r = node_anchor(k->overlay, n);

	if (r == 0 && node_follows(n) && !node_is_dir(n) && g_strcmp0(n->origin, kept->lower) == 0)
		r = find_place(k, kept, &path, &print);
	return r < 0 || !path ? r : node_follow(k->overlay, n, path, &print);
}

static int keep_node(struct overlay *o, const struct kept *k)
{
	struct node *n = k->node;
	bool is_file = S_ISREG(n->row.attr.mode);
	int r;

	if (g_strcmp0(n->origin, k->lower) != 0)
		return 0; /* it has another place, by one of its names */
	r = node_own_xattrs(o, n);
	if (r == 0 && is_file)
		return node_own_bytes(o, n);
	if (r == 0)
		r = node_own_attr(o, n);
	if (r == 0)
		r = node_save(o, n);
	if (r < 0 || node_is_dir(n) || n->row.target)
		return r;
	return S_ISLNK(n->row.attr.mode) ? keep_target(o, n, k->lower) : keep_special(o, n);
}

static int keep_found(struct keeping *k)
{
	struct overlay *o = k->overlay;
	int r = k->kept->len ? transaction_begin(o) : 0;

	if (r < 0 || k->kept->len == 0)
		return r;
	for (guint i = 0; r == 0 && i < k->kept->len; i++)
		r = keep_place(k, &g_array_index(k->kept, struct kept, i));
	for (guint i = 0; r == 0 && i < k->kept->len; i++)
		r = keep_node(o, &g_array_index(k->kept, struct kept, i));
	return transaction_end(o, r);
}

int overlay_keep(struct overlay *o, int64_t epoch, const char *const *paths)
{
	struct keeping k = { .overlay = o };
	int r;

	k.paths = g_hash_table_new(g_str_hash, g_str_equal);
	for (; *paths; paths++)
		g_hash_table_add(k.paths, (gpointer)*paths);
	k.settled = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	k.then = g_hash_table_new(g_int64_hash, g_int64_equal);
	k.kept = g_array_new(FALSE, FALSE, sizeof(struct kept));
	g_array_set_clear_func(k.kept, kept_clear);
	overlay_lock(o);
	overlay_leave_dir(o);
	r = find_all(&k, epoch);
	if (r == 0)
		r = keep_found(&k);
	for (guint i = 0; i < k.kept->len; i++) {
		struct node *n = g_array_index(k.kept, struct kept, i).node;

		n->lookups--;
		node_forget_unused(o, n);
	}
	overlay_unlock(o);
	g_array_unref(k.kept);
	g_hash_table_unref(k.then);
	g_hash_table_unref(k.settled);
	g_hash_table_unref(k.paths);
	return r;
}
