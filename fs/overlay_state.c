/* SPDX-License-Identifier: MIT */
/*
 * overlay_state - snapshots, rollback, and what a commit leaves behind, under a live view
 */
#include <errno.h>
#include <string.h>

#include "fs/overlay_private.h"
#include "fs/overlay_resync.h"
#include "snapshot/gc.h"

int overlay_snapshot(struct overlay *o, const char *name, int64_t *ret_epoch)
{
	int r;

	overlay_lock(o);
	orphans_drop(o);
	audit_begin(o, &(struct audit_about){ .kind = AUDIT_SNAPSHOT, .operation = "snapshot", .detail = name });
	r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, store_snapshot_create(o->store, name, ret_epoch));
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}

int overlay_pin(struct overlay *o, int64_t *ret_epoch)
{
	int r;

	/* What is past stays as it is, so a new epoch is all that a reader needs, and that gc leaves this one alone. */
	overlay_lock(o);
	orphans_drop(o);
	r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, store_epoch_next(o->store, ret_epoch));
	if (r == 0)
		g_array_append_val(o->pins, *ret_epoch);
	overlay_unlock(o);
	return r;
}

int overlay_pin_again(struct overlay *o, int64_t epoch)
{
	int r = -ENOENT;

	overlay_lock(o);
	if (epoch > 0 && epoch < store_epoch(o->store)) {
		g_array_append_val(o->pins, epoch);
		r = 0;
	}
	overlay_unlock(o);
	return r;
}

/* Held names */

void held_name_clear(void *data)
{
	g_free(((struct held_name *)data)->name);
}

int name_is_held(struct overlay *o, const struct node *dir, const char *name, bool *ret)
{
	int r = 0;

	*ret = false;
	for (unsigned i = 0; i < o->pins->len && r == 0 && !*ret; i++) {
		struct name_row then;

		r = store_name_get(o->store, g_array_index(o->pins, int64_t, i), dir->ino, name, &then);
		*ret = r == 0 && then.ino;
		name_row_clear(&then);
	}
	return r;
}

void name_hold(struct overlay *o, const struct node *dir, const char *name)
{
	struct held_name h = { .parent = dir->ino, .name = g_strdup(name) };

	g_array_append_val(o->held, h);
}

static int hold_again(const struct name_row *name, const struct node_row *node, void *user)
{
	struct held_name h = { .parent = name->parent, .name = g_strdup(name->name) };

	(void)node;
	g_array_append_val(((struct overlay *)user)->held, h);
	return 0;
}

void names_hold_again(struct overlay *o)
{
	int r = store_bare_whiteouts(o->store, hold_again, o);

	if (r < 0)
		g_debug("whiteouts that were left over stay: %s", g_strerror(-r));
}

/* What a commit wrote covers something since it was settled, what was made anew is no whiteout: those stay. */
static int release_name(struct overlay *o, const struct held_name *h, struct changed_rows *rows)
{
	struct name_row row;
	int r = store_name_get(o->store, EPOCH_LIVE, h->parent, h->name, &row);

	if (r == 0 && row.born > 0 && row.ino == 0 && row.covers == 0) {
		r = store_name_drop(o->store, h->parent, h->name);
		changed_rows_add_name(h->parent, h->name, rows);
	}
	name_row_clear(&row);
	return r;
}

/* A whiteout that a failing store keeps hides nothing but what the owner may make there. */
static void release_names(struct overlay *o)
{
	struct changed_rows rows;
	int r;

	changed_rows_init(&rows);
	r = overlay_begin(o);
	if (r == 0) {
		for (guint i = 0; r == 0 && i < o->held->len; i++)
			r = release_name(o, &g_array_index(o->held, struct held_name, i), &rows);
		r = overlay_end(o, r);
	}
	if (r == 0)
		overlay_resync(o, &rows);
	/* A directory may have been in memory for its whiteouts only. */
	for (guint i = 0; i < rows.names->len; i++) {
		struct node *dir = node_find(o->nodes, g_array_index(rows.names, struct changed_name, i).parent);

		if (dir)
			node_forget_unused(o, dir);
	}
	g_array_set_size(o->held, 0);
	changed_rows_clear(&rows);
}

/* What is held goes when nobody reads any more. Gives the lock back. */
static void release_unread(struct overlay *o)
{
	bool released = o->pins->len == 0 && o->held->len > 0;

	if (released)
		release_names(o);
	overlay_unlock(o);
	if (released)
		overlay_drain(o);
}

void overlay_release(struct overlay *o)
{
	overlay_lock(o);
	release_unread(o);
}

void overlay_unpin(struct overlay *o, int64_t epoch)
{
	overlay_lock(o);
	for (unsigned i = 0; i < o->pins->len; i++) {
		if (g_array_index(o->pins, int64_t, i) != epoch)
			continue;
		g_array_remove_index_fast(o->pins, i);
		break;
	}
	release_unread(o);
}

int overlay_gc(struct overlay *o, bool automatic, bool dry_run, struct gc **ret)
{
	g_autoptr(gc_t) g = NULL;
	g_autofree char *detail = NULL;
	const struct gc_result *result;
	int r;

	overlay_lock(o);
	orphans_drop(o);
	g = gc_new(o->store, &(struct gc_options){ .automatic = automatic,
						   .dry_run = dry_run,
						   .pins = (const int64_t *)o->pins->data,
						   .pin_count = o->pins->len });
	while ((r = gc_step(g)) > 0) {
		if (dry_run)
			continue;
		overlay_unlock(o);
		overlay_lock(o);
	}
	overlay_unlock(o);
	result = gc_result(g);
	if (r == 0 && !dry_run) {
		detail = g_strdup_printf("%u automatic snapshots, %" G_GUINT64_FORMAT " versions, %" G_GUINT64_FORMAT " contents",
					 result->snapshots->len, result->versions, result->contents);
		r = overlay_record(o, AUDIT_SNAPSHOT, "gc", detail);
	}
	if (r == 0)
		*ret = g_steal_pointer(&g);
	return r;
}
