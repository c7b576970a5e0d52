/* SPDX-License-Identifier: MIT */
/*
 * control - the operations, whoever asks: see control.h
 */
#include "fs/control.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fs/fuse_device.h"
#include "fs/overlay.h"
#include "snapshot/store.h"

G_DEFINE_QUARK(sbxfs-control-error-quark, control_error)

static GVariant *control_fail(GError **error, int r, const char *what)
{
	int code = r == -ENOENT ? CONTROL_ERROR_NOT_FOUND : r == -EEXIST ? CONTROL_ERROR_EXISTS :
		   r == -ENOSPC || r == -EDQUOT ? CONTROL_ERROR_NO_SPACE : r == -EBUSY ? CONTROL_ERROR_BUSY : CONTROL_ERROR_FAILED;

	g_set_error(error, CONTROL_ERROR, code, "%s: %s", what, g_strerror(-r));
	return NULL;
}

static GVariant *answer_epoch(int64_t epoch)
{
	GVariantDict d;

	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert(&d, "epoch", "x", epoch);
	return g_variant_dict_end(&d);
}

static GVariant *answer_empty(void)
{
	return g_variant_new("a{sv}", NULL);
}

/* Which messages the kernel sent, by name. */
static GVariant *message_counts(void)
{
	uint64_t counts[FUSE_DEVICE_OPCODES];
	GVariantBuilder b;

	fuse_device_counts(counts);
	g_variant_builder_init(&b, G_VARIANT_TYPE("a{st}"));
	for (int i = 0; i < FUSE_DEVICE_OPCODES; i++)
		if (counts[i] > 0 && fuse_device_opcode_name(i))
			g_variant_builder_add(&b, "{st}", fuse_device_opcode_name(i), counts[i]);
	return g_variant_builder_end(&b);
}

static GVariant *op_status(struct overlay *o, GVariantDict *in, int *ret_fd, GError **error)
{
	g_autofree char *mountpoint = NULL;
	struct overlay_counters counters;
	uint64_t names = 0;
	int64_t epoch;
	GVariantDict d;
	int r;

	(void)in;
	(void)ret_fd;
	overlay_counters(o, &counters);
	overlay_lock(o);
	mountpoint = store_get(overlay_store(o), "mountpoint");
	epoch = store_epoch(overlay_store(o));
	r = store_count_names(overlay_store(o), EPOCH_LIVE, &names);
	overlay_unlock(o);
	if (r < 0)
		return control_fail(error, r, "status");
	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert(&d, "pid", "i", (int)getpid());
	g_variant_dict_insert(&d, "mountpoint", "s", mountpoint ? mountpoint : "");
	g_variant_dict_insert(&d, "epoch", "x", epoch);
	g_variant_dict_insert(&d, "names", "t", names);
	g_variant_dict_insert(&d, "nodes", "t", counters.nodes);
	g_variant_dict_insert(&d, "watches-full", "b", counters.watches_full);
	g_variant_dict_insert_value(&d, "messages", message_counts());
	return g_variant_dict_end(&d);
}

static GVariant *op_root(struct overlay *o, GVariantDict *in, int *ret_fd, GError **error)
{
	int fd = fcntl(lower_root_fd(overlay_lower(o)), F_DUPFD_CLOEXEC, 3);

	(void)in;
	if (fd < 0)
		return control_fail(error, -errno, "workspace");
	*ret_fd = fd;
	return answer_empty();
}

static GVariant *op_pin(struct overlay *o, GVariantDict *in, int *ret_fd, GError **error)
{
	int64_t epoch;
	int r = overlay_pin(o, &epoch);

	(void)in;
	(void)ret_fd;
	return r < 0 ? control_fail(error, r, "pin") : answer_epoch(epoch);
}

static GVariant *op_unpin(struct overlay *o, GVariantDict *in, int *ret_fd, GError **error)
{
	int64_t epoch = 0;

	(void)ret_fd;
	(void)error;
	g_variant_dict_lookup(in, "epoch", "x", &epoch);
	overlay_unpin(o, epoch);
	return answer_empty();
}

static GVariant *op_snapshot(struct overlay *o, GVariantDict *in, int *ret_fd, GError **error)
{
	const char *name = NULL;
	int64_t epoch;
	int r;

	(void)ret_fd;
	if (!g_variant_dict_lookup(in, "name", "&s", &name) || !*name)
		return control_fail(error, -EINVAL, "snapshot name");
	r = overlay_snapshot(o, name, &epoch);
	return r < 0 ? control_fail(error, r, name) : answer_epoch(epoch);
}

static GVariant *op_snapshot_delete(struct overlay *o, GVariantDict *in, int *ret_fd, GError **error)
{
	const char *name = NULL;
	int r;

	(void)ret_fd;
	if (!g_variant_dict_lookup(in, "name", "&s", &name))
		return control_fail(error, -EINVAL, "snapshot name");
	overlay_lock(o);
	r = store_snapshot_delete(overlay_store(o), name);
	overlay_unlock(o);
	if (r == 0)
		overlay_record(o, AUDIT_SNAPSHOT, "snapshot-delete", name);
	return r < 0 ? control_fail(error, r, name) : answer_empty();
}

/* The list @key of a request; NULL when it has none, or an empty one. Free with g_free(): the strings belong to @in. */
static const char **request_paths(GVariantDict *in, const char *key)
{
	g_autoptr(GVariant) v = g_variant_dict_lookup_value(in, key, G_VARIANT_TYPE("aay"));

	return v && g_variant_n_children(v) > 0 ? g_variant_get_bytestring_array(v, NULL) : NULL;
}

static GVariant *op_rollback(struct overlay *o, GVariantDict *in, int *ret_fd, GError **error)
{
	g_autofree const char **paths = request_paths(in, "paths");
	const char *name = NULL;
	uint64_t names = 0, nodes = 0;
	int64_t to = 0, before = 0;
	gboolean scratch = FALSE;
	GVariantDict d;
	int r = 0;

	(void)ret_fd;
	g_variant_dict_lookup(in, "to", "x", &to);
	g_variant_dict_lookup(in, "scratch", "b", &scratch);
	if (g_variant_dict_lookup(in, "name", "&s", &name) && *name)
		r = overlay_snapshot(o, name, &before);
	if (r == 0)
		r = overlay_rollback(o, to, paths, scratch, &names, &nodes);
	if (r < 0)
		return control_fail(error, r, "rollback");
	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert(&d, "epoch", "x", before);
	g_variant_dict_insert(&d, "names", "t", names);
	g_variant_dict_insert(&d, "nodes", "t", nodes);
	return g_variant_dict_end(&d);
}

static GVariant *op_settle(struct overlay *o, GVariantDict *in, int *ret_fd, GError **error)
{
	g_autofree const char **partial = request_paths(in, "partial");
	g_autofree const char **paths = request_paths(in, "paths");
	int64_t epoch = 0;
	int r;

	(void)ret_fd;
	if (!paths || !g_variant_dict_lookup(in, "epoch", "x", &epoch))
		return control_fail(error, -EINVAL, "settle");
	r = overlay_settle(o, epoch, paths, partial);
	return r < 0 ? control_fail(error, r, "settle") : answer_empty();
}

static GVariant *op_unsettle(struct overlay *o, GVariantDict *in, int *ret_fd, GError **error)
{
	g_autofree const char **paths = request_paths(in, "paths");
	int64_t epoch = 0;
	int r;

	(void)ret_fd;
	if (!paths || !g_variant_dict_lookup(in, "epoch", "x", &epoch))
		return control_fail(error, -EINVAL, "unsettle");
	r = overlay_unsettle(o, epoch, paths);
	return r < 0 ? control_fail(error, r, "unsettle") : answer_empty();
}

static int append_record(struct overlay *o, GVariant *encoded)
{
	struct audit_record r;
	gsize size;
	const void *data = g_variant_get_fixed_array(encoded, &size, 1);

	return audit_record_decode(data, size, &r) && r.kind >= AUDIT_RUN ? overlay_append(o, &r) : -EINVAL;
}

static GVariant *op_record(struct overlay *o, GVariantDict *in, int *ret_fd, GError **error)
{
	g_autoptr(GVariant) records = g_variant_dict_lookup_value(in, "records", G_VARIANT_TYPE("aay"));
	int r = records ? 0 : -EINVAL;

	(void)ret_fd;
	for (gsize i = 0; r == 0 && i < g_variant_n_children(records); i++) {
		g_autoptr(GVariant) encoded = g_variant_get_child_value(records, i);

		r = append_record(o, encoded);
	}
	return r < 0 ? control_fail(error, r, "record") : answer_empty();
}

static const struct {
	const char *name;
	GVariant *(*run)(struct overlay *o, GVariantDict *in, int *ret_fd, GError **error);
} operations[] = {
	{ "status", op_status },     { "root", op_root },
	{ "pin", op_pin },           { "unpin", op_unpin },
	{ "snapshot", op_snapshot }, { "snapshot-delete", op_snapshot_delete },
	{ "rollback", op_rollback }, { "settle", op_settle },
	{ "unsettle", op_unsettle }, { "record", op_record },
};

GVariant *control_handle(struct overlay *o, const char *operation, GVariant *arguments, int *ret_fd, GError **error)
{
	g_autoptr(GVariant) all = g_variant_ref_sink(arguments ? arguments : answer_empty());

	*ret_fd = -1;
	for (size_t i = 0; i < G_N_ELEMENTS(operations); i++) {
		GVariantDict in;
		GVariant *answer;

		if (g_strcmp0(operations[i].name, operation) != 0)
			continue;
		g_variant_dict_init(&in, all);
		answer = operations[i].run(o, &in, ret_fd, error);
		g_variant_dict_clear(&in);
		return answer ? g_variant_ref_sink(answer) : NULL;
	}
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_FAILED, "unknown operation '%s': is the view served by another version?", operation);
	return NULL;
}
