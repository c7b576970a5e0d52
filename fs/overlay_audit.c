/* SPDX-License-Identifier: MIT */
/*
 * overlay_audit - the life of a view's audit
 */
#include "fs/overlay_private.h"
#include "snapshot/audit_writer.h"

/*
 * What is kept, at least until the next mount: old records are dropped only then, so that a program in the view can't
 * push out what it did by doing much.
 */
#define KEEP_TIME (INT64_C(366) * 24 * 3600 * NSEC_PER_SEC)
#define KEEP_BYTES (UINT64_C(1) << 30)

bool overlay_audit(struct overlay *o, GError **error)
{
	struct audit_writer *w = audit_writer_open(store_dir(o->store), error);

	if (!w)
		return false;
	if (audit_writer_retain(w, nsec_now() - KEEP_TIME, KEEP_BYTES) < 0)
		g_debug("old records of the audit are not dropped");
	overlay_lock(o);
	o->audit = audit_note_new(w);
	overlay_unlock(o);
	return true;
}

int overlay_record(struct overlay *o, enum audit_kind kind, const char *operation, const char *detail)
{
	int r;

	overlay_lock(o);
	r = audit_event(o, &(struct audit_about){ .kind = kind, .operation = operation, .detail = detail });
	overlay_unlock(o);
	return r;
}

int overlay_append(struct overlay *o, struct audit_record *r)
{
	int e;

	overlay_lock(o);
	e = audit_add(o, r);
	overlay_unlock(o);
	return e;
}

void overlay_caller(int32_t pid, uint32_t uid)
{
	audit_caller(pid, uid);
}
