/* SPDX-License-Identifier: MIT */
/*
 * overlay_state - snapshots, rollback, and what a commit leaves behind, under a live view
 */
#include <errno.h>
#include <string.h>

#include "fs/overlay_private.h"
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

void overlay_unpin(struct overlay *o, int64_t epoch)
{
	overlay_lock(o);
	for (unsigned i = 0; i < o->pins->len; i++) {
		if (g_array_index(o->pins, int64_t, i) != epoch)
			continue;
		g_array_remove_index_fast(o->pins, i);
		break;
	}
	overlay_unlock(o);
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
