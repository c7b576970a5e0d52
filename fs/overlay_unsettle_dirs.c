/* SPDX-License-Identifier: MIT */
/*
 * overlay_unsettle_dirs - directories that lay elsewhere than what they followed, after an undo
 *
 * See fs/overlay_settle_dirs.c: those that were no changes themselves, and what was in them, are where they were before.
 */
#include <errno.h>
#include <string.h>

#include "fs/overlay_unsettling.h"

static bool is_touched(const struct unsettling *u, const struct placed *p)
{
	return p->is_dir && strcmp(p->path, p->origin) != 0 &&
	       (g_hash_table_contains(u->touched, p->path) || g_hash_table_contains(u->touched, p->origin));
}

/* @now->name covered what the commit had put there; it covers what is at @lower, where its directory came from, if anything. */
static int cover_again(struct unsettling *u, struct name_row *now, const char *lower)
{
	struct overlay *o = u->overlay;
	struct fingerprint print;
	bool there = lower_stat(o->lower, lower, &print) == 0;
	int r;

	now->covers = 0;
	r = there ? origin_record(o, lower, &print, &now->covers) : 0;
	if (r == 0)
		r = there || now->ino ? store_name_put(o->store, now) : store_name_drop(o->store, now->parent, now->name);
	changed_rows_add_name(now->parent, now->name, &u->rows);
	return r;
}

/* What has been given a row since follows the workspace where its directory will. */
static int redirect_to(struct unsettling *u, const struct placed *now, const char *path)
{
	struct store *s = u->overlay->store;
	struct origin covered = { 0 };
	struct name_row name;
	int r = place_follow(u->overlay, now, path, &u->rows);

	if (r == 0)
		r = store_name_get(s, EPOCH_LIVE, now->parent, now->name, &name);
	if (r < 0)
		return r;
	if (name.covers)
		r = store_origin_get(s, name.covers, &covered);
	if (r == 0 && g_strcmp0(covered.path, now->origin) == 0)
		r = cover_again(u, &name, path);
	origin_clear(&covered);
	name_row_clear(&name);
	return r;
}

static int unsettle_redirect(struct unsettling *u, const struct place_map *map, const struct placed *now)
{
	struct node_row then = { 0 };
	const struct placed *dir;
	g_autofree char *path = NULL;
	const char *rest = NULL;
	int r = store_node_get(u->overlay->store, u->epoch, now->ino, &then);

	dir = r == 0 && !then.ino ? place_map_dir(map, now->origin, &rest) : NULL;
	if (dir && is_touched(u, dir) && place_has_left(u->overlay, now))
		path = path_join(dir->origin, rest);
	if (path)
		r = redirect_to(u, now, path);
	node_row_clear(&then);
	return r;
}

static int unsettle_redirects(struct unsettling *u)
{
	g_autoptr(GPtrArray) live = NULL;
	struct place_map *map;
	int r = u->places->len ? places_find(u->overlay, EPOCH_LIVE, &live) : 0;

	if (!live)
		return r;
	map = place_map_new(u->places, PLACE_BY_PATH);
	for (guint i = 0; r == 0 && i < live->len; i++)
		r = unsettle_redirect(u, map, g_ptr_array_index(live, i));
	place_map_free(map);
	return r;
}

/* A name that was put into the directory since the commit, or hidden there by it: it covers what is at its old place, if anything. */
static int unsettle_later_name(struct unsettling *u, const struct placed *dir, struct name_row *now)
{
	g_autofree char *path = path_join(dir->path, now->name), *lower = path_join(dir->origin, now->name);
	struct origin covered = { 0 };
	struct fingerprint print;
	int r = now->covers ? store_origin_get(u->overlay->store, now->covers, &covered) : 0;

	if (u->half && now->ino == 0) {
		origin_clear(&covered);
		return r;
	}

	if (r == 0 && covered.path &&
	    (strcmp(covered.path, path) == 0 || (now->ino == 0 && errno_is_absent(lower_stat(u->overlay->lower, lower, &print)))))
		r = cover_again(u, now, lower);
	origin_clear(&covered);
	return r;
}

static int add_name(const struct name_row *name, const struct node_row *node, void *user)
{
	(void)node;
	changed_rows_add_name(name->parent, name->name, user);
	return 0;
}

static int unsettle_dir(struct unsettling *u, const struct placed *dir)
{
	struct store *s = u->overlay->store;
	struct changed_rows found;
	int r = unsettle_node(u, dir->ino);

	changed_rows_init(&found);
	if (r == 0)
		r = store_names(s, EPOCH_LIVE, dir->ino, add_name, &found);
	for (guint i = 0; r == 0 && i < found.names->len; i++) {
		const char *name = g_array_index(found.names, struct changed_name, i).name;
		struct name_row now, then = { 0 };

		r = store_name_get(s, EPOCH_LIVE, dir->ino, name, &now);
		if (r == 0)
			r = store_name_get(s, u->epoch, dir->ino, name, &then);
		if (r == 0 && then.born > 0 && now.covers != then.covers)
			r = unsettle_covers(u, &now, &then);
		else if (r == 0 && then.born == 0)
			r = unsettle_later_name(u, dir, &now);
		name_row_clear(&now);
		name_row_clear(&then);
	}
	changed_rows_clear(&found);
	return r;
}

static int unsettle_numbers(struct unsettling *u, const struct placed *dir)
{
	struct node_row now = { 0 };
	int r = store_node_get(u->overlay->store, EPOCH_LIVE, dir->ino, &now);

	if (r == 0 && now.ino)
		r = places_keep_numbers(u->overlay, dir->ino, dir->origin, &u->rows);
	node_row_clear(&now);
	return r;
}

int unsettle_dirs(struct unsettling *u)
{
	int r = places_find_moved(u->overlay, u->epoch, &u->places);

	if (r == 0)
		r = unsettle_redirects(u);
	for (guint i = 0; r == 0 && i < u->places->len; i++)
		if (is_touched(u, g_ptr_array_index(u->places, i)))
			r = unsettle_dir(u, g_ptr_array_index(u->places, i));
	return r;
}

int unsettle_dirs_numbers(struct unsettling *u)
{
	int r = 0;

	for (guint i = 0; r == 0 && i < u->places->len; i++)
		if (is_touched(u, g_ptr_array_index(u->places, i)))
			r = unsettle_numbers(u, g_ptr_array_index(u->places, i));
	return r;
}
