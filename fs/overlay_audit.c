/* SPDX-License-Identifier: MIT */
/*
 * overlay_audit - the life of a view's audit
 */
#include "fs/overlay_private.h"
#include "snapshot/audit_writer.h"

static bool open_sinks(struct audit_writer *w, const GArray *sinks, GError **error)
{
	for (guint i = 0; sinks && i < sinks->len; i++) {
		const struct audit_sink_target *t = &g_array_index(sinks, struct audit_sink_target, i);

		if (!audit_writer_sink(w, t->kind, t->target, error))
			return false;
	}
	return true;
}

bool overlay_audit(struct overlay *o, const struct audit_options *options, GError **error)
{
	static const struct audit_options keep_all;
	struct audit_writer *w = audit_writer_open(store_dir(o->store), error);
	int64_t before;

	if (!w)
		return false;
	options = options ? options : &keep_all;
	before = options->keep_time ? nsec_now() - options->keep_time : 0;
	if (!open_sinks(w, options->sinks, error)) {
		audit_writer_close(w);
		return false;
	}
	/* Only now, so that a program in the view can't push out what it did by doing much. */
	if (audit_writer_retain(w, before, options->keep_bytes) < 0)
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
