/* SPDX-License-Identifier: MIT */
/*
 * overlay_state - snapshots, rollback, and what a commit leaves behind, under a live view
 */
#include <errno.h>
#include <string.h>

#include "fs/overlay_private.h"

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

	/* Nothing is ever taken from a past epoch while the process lives, so a new epoch is all that a pin needs. */
	overlay_lock(o);
	orphans_drop(o);
	r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, store_epoch_next(o->store, ret_epoch));
	overlay_unlock(o);
	return r;
}

void overlay_unpin(struct overlay *o, int64_t epoch)
{
	(void)o;
	(void)epoch;
}
