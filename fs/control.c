/* SPDX-License-Identifier: MIT */
/*
 * control - the operations, whoever asks: see control.h
 */
#include "fs/control.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs/fuse_device.h"
#include "fs/heritage.h"
#include "fs/overlay.h"
#include "snapshot/gc.h"
#include "snapshot/store.h"

G_DEFINE_QUARK(sbxfs-control-error-quark, control_error)

struct request {
	GVariantDict *in;
	const struct control_caller *caller; /* or NULL */
};

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

static GVariant *op_status(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	g_autofree char *mountpoint = NULL;
	const struct heritage *h = overlay_heritage(o);
	struct overlay_counters counters;
	struct store_usage usage;
	uint64_t names = 0;
	int64_t epoch;
	GVariantDict d;
	int r;

	(void)request;
	(void)ret_fd;
	overlay_counters(o, &counters);
	overlay_lock(o);
	store_usage(overlay_store(o), &usage);
	mountpoint = store_get(overlay_store(o), "mountpoint");
	epoch = store_epoch(overlay_store(o));
	r = store_count_names(overlay_store(o), EPOCH_LIVE, &names);
	overlay_unlock(o);
	if (r < 0)
		return control_fail(error, r, "status");
	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert(&d, "pid", "i", (int)getpid());
	g_variant_dict_insert(&d, "keeper", "i", h && getppid() == h->keeper ? h->keeper : 0);
	g_variant_dict_insert(&d, "takeovers", "u", h ? h->worker : 0);
	g_variant_dict_insert(&d, "mountpoint", "s", mountpoint ? mountpoint : "");
	g_variant_dict_insert(&d, "epoch", "x", epoch);
	g_variant_dict_insert(&d, "names", "t", names);
	g_variant_dict_insert(&d, "nodes", "t", counters.nodes);
	g_variant_dict_insert(&d, "watches-full", "b", counters.watches_full);
	g_variant_dict_insert(&d, "disk-used", "t", usage.used);
	g_variant_dict_insert(&d, "disk-limit", "t", usage.limit);
	g_variant_dict_insert_value(&d, "messages", message_counts());
	return g_variant_dict_end(&d);
}

static GVariant *op_root(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	int fd = fcntl(lower_root_fd(overlay_lower(o)), F_DUPFD_CLOEXEC, 3);

	(void)request;
	if (fd < 0)
		return control_fail(error, -errno, "workspace");
	*ret_fd = fd;
	return answer_empty();
}

static GVariant *op_pin(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	int64_t epoch;
	int r;

	(void)ret_fd;
	r = g_variant_dict_lookup(request->in, "epoch", "x", &epoch) ? overlay_pin_again(o, epoch) : overlay_pin(o, &epoch);
	return r < 0 ? control_fail(error, r, "pin") : answer_epoch(epoch);
}

static GVariant *op_unpin(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	int64_t epoch = 0;

	(void)ret_fd;
	(void)error;
	g_variant_dict_lookup(request->in, "epoch", "x", &epoch);
	overlay_unpin(o, epoch);
	return answer_empty();
}

static GVariant *op_snapshot(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	const char *name = NULL;
	int64_t epoch;
	int r;

	(void)ret_fd;
	if (!g_variant_dict_lookup(request->in, "name", "&s", &name) || !*name)
		return control_fail(error, -EINVAL, "snapshot name");
	r = overlay_snapshot(o, name, &epoch);
	return r < 0 ? control_fail(error, r, name) : answer_epoch(epoch);
}

static GVariant *op_snapshot_delete(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	const char *name = NULL;
	int r;

	(void)ret_fd;
	if (!g_variant_dict_lookup(request->in, "name", "&s", &name))
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

static GVariant *op_rollback(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	g_autofree const char **paths = request_paths(request->in, "paths");
	const char *name = NULL;
	uint64_t names = 0, nodes = 0;
	int64_t to = 0, before = 0;
	gboolean scratch = FALSE;
	GVariantDict d;
	int r = 0;

	(void)ret_fd;
	g_variant_dict_lookup(request->in, "to", "x", &to);
	g_variant_dict_lookup(request->in, "scratch", "b", &scratch);
	if (g_variant_dict_lookup(request->in, "name", "&s", &name) && *name)
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

/* Operations about the paths that a commit of an epoch writes. */
static GVariant *about_commit(struct overlay *o, const struct request *request,
			      int (*fn)(struct overlay *o, int64_t epoch, const char *const *paths), const char *operation, GError **error)
{
	g_autofree const char **paths = request_paths(request->in, "paths");
	int64_t epoch = 0;
	int r;

	if (!paths || !g_variant_dict_lookup(request->in, "epoch", "x", &epoch))
		return control_fail(error, -EINVAL, operation);
	r = fn(o, epoch, paths);
	return r < 0 ? control_fail(error, r, operation) : answer_empty();
}

static GVariant *op_keep(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	(void)ret_fd;
	return about_commit(o, request, overlay_keep, "keep", error);
}

static GVariant *op_settle(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	g_autofree const char **partial = request_paths(request->in, "partial");
	g_autofree const char **paths = request_paths(request->in, "paths");
	int64_t epoch = 0;
	int r;

	(void)ret_fd;
	if (!paths || !g_variant_dict_lookup(request->in, "epoch", "x", &epoch))
		return control_fail(error, -EINVAL, "settle");
	r = overlay_settle(o, epoch, paths, partial);
	return r < 0 ? control_fail(error, r, "settle") : answer_empty();
}

static GVariant *op_unfollow(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	(void)ret_fd;
	return about_commit(o, request, overlay_unfollow, "unfollow", error);
}

static GVariant *op_refollow(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	(void)ret_fd;
	return about_commit(o, request, overlay_refollow, "refollow", error);
}

static GVariant *op_unsettle(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	(void)ret_fd;
	return about_commit(o, request, overlay_unsettle, "unsettle", error);
}

static GVariant *op_questions(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	GVariantDict d;

	(void)request;
	(void)ret_fd;
	(void)error;
	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert_value(&d, "questions", overlay_asked(o) ? questions_list(overlay_asked(o)) : g_variant_new("aa{sv}", NULL));
	return g_variant_dict_end(&d);
}

static GVariant *op_answer(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	enum question_scope scope = QUESTION_ONCE;
	const char *verdict = "", *word;
	guint32 id;
	bool allow;
	int r;

	(void)ret_fd;
	if (!g_variant_dict_lookup(request->in, "id", "u", &id) || !g_variant_dict_lookup(request->in, "verdict", "&s", &verdict))
		return control_fail(error, -EINVAL, "answer");
	allow = strcmp(verdict, "allow") == 0;
	if (!allow && strcmp(verdict, "deny") != 0)
		return control_fail(error, -EINVAL, verdict);
	if (g_variant_dict_lookup(request->in, "scope", "&s", &word) && !question_scope_from_name(word, &scope))
		return control_fail(error, -EINVAL, word);
	r = overlay_answer(o, id, allow, scope, NULL);
	return r < 0 ? control_fail(error, r, "answer") : answer_empty();
}

static char *request_text(const struct request *request, const char *key)
{
	char *text = NULL;

	g_variant_dict_lookup(request->in, key, "s", &text);
	return text;
}

static GVariant *answer_question(const struct question_answer *answer)
{
	bool told = answer->verdict == QUESTION_ALLOW || answer->verdict == QUESTION_TIMEOUT;
	GVariantDict d;

	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert(&d, "verdict", "s", question_verdict_name(told ? answer->verdict : QUESTION_DENY));
	g_variant_dict_insert(&d, "by", "s", answer->by ? answer->by : "");
	return g_variant_dict_end(&d);
}

static GVariant *op_question(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	struct question_about about = { .kind = request_text(request, "kind"), .subject = request_text(request, "subject"),
					.operation = request_text(request, "operation"), .program = request_text(request, "program"),
					.keys = g_ptr_array_new_with_free_func(g_free) };
	const struct control_caller *caller = request->caller;
	struct question_answer answer = { .verdict = QUESTION_DENY };
	GVariant *v = NULL;
	guint32 timeout = 0;
	gint32 pid = 0;

	(void)ret_fd;
	g_variant_dict_lookup(request->in, "timeout", "u", &timeout);
	g_variant_dict_lookup(request->in, "pid", "i", &pid);
	/* No other kind: what an operation in the view needs a yes for cannot be asked for from outside. */
	if (g_strcmp0(about.kind, "network") != 0 || !about.subject || !about.operation || !overlay_asked(o)) {
		control_fail(error, overlay_asked(o) ? -EINVAL : -ENOTCONN, "question");
	} else {
		char *key = g_strconcat("network ", about.subject, NULL);

		g_ptr_array_add(about.keys, key);
		question_asker_read(pid, getuid(), &about.asker);
		if (questions_known_to_all(overlay_asked(o), key) == QUESTION_YES)
			answer = (struct question_answer){ .verdict = QUESTION_ALLOW, .by = g_strdup("an earlier answer") };
		else
			overlay_question(o, &about, timeout, caller ? caller->gone : NULL, caller ? caller->user : NULL, &answer);
		v = answer_question(&answer);
	}
	question_about_clear(&about);
	g_free(answer.by);
	return v;
}

static GVariant *op_questions_end(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	GVariantDict d;

	(void)request;
	(void)ret_fd;
	(void)error;
	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert(&d, "ended", "u", overlay_asked(o) ? questions_end_all(overlay_asked(o)) : 0);
	return g_variant_dict_end(&d);
}

static GVariant *op_gc(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	gboolean automatic = FALSE, dry_run = FALSE;
	g_autoptr(gc_t) g = NULL;
	const struct gc_result *result;
	GVariantDict d;
	int r;

	(void)ret_fd;
	g_variant_dict_lookup(request->in, "automatic", "b", &automatic);
	g_variant_dict_lookup(request->in, "dry-run", "b", &dry_run);
	r = overlay_gc(o, automatic, dry_run, &g);
	if (r < 0)
		return control_fail(error, r, "gc");
	result = gc_result(g);
	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert_value(&d, "snapshots",
				    g_variant_new_strv((const char *const *)result->snapshots->pdata, result->snapshots->len));
	g_variant_dict_insert(&d, "versions", "t", result->versions);
	g_variant_dict_insert(&d, "contents", "t", result->contents);
	g_variant_dict_insert(&d, "bytes", "t", result->bytes);
	return g_variant_dict_end(&d);
}

static int append_record(struct overlay *o, GVariant *encoded)
{
	struct audit_record r;
	gsize size;
	const void *data = g_variant_get_fixed_array(encoded, &size, 1);

	return audit_record_decode(data, size, &r) && r.kind >= AUDIT_RUN ? overlay_append(o, &r) : -EINVAL;
}

static GVariant *op_record(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	g_autoptr(GVariant) records = g_variant_dict_lookup_value(request->in, "records", G_VARIANT_TYPE("aay"));
	int r = records ? 0 : -EINVAL;

	(void)ret_fd;
	for (gsize i = 0; r == 0 && i < g_variant_n_children(records); i++) {
		g_autoptr(GVariant) encoded = g_variant_get_child_value(records, i);

		r = append_record(o, encoded);
	}
	return r < 0 ? control_fail(error, r, "record") : answer_empty();
}

static GVariant *op_limit(struct overlay *o, const struct request *request, int *ret_fd, GError **error)
{
	guint64 disk;
	int r = -EINVAL;

	(void)ret_fd;
	if (g_variant_dict_lookup(request->in, "disk", "t", &disk))
		r = overlay_set_limit(o, disk);
	return r < 0 ? control_fail(error, r, "limit") : answer_empty();
}

static const struct {
	const char *name;
	GVariant *(*run)(struct overlay *o, const struct request *request, int *ret_fd, GError **error);
} operations[] = {
	{ "status", op_status },     { "root", op_root },
	{ "pin", op_pin },           { "unpin", op_unpin },
	{ "snapshot", op_snapshot }, { "snapshot-delete", op_snapshot_delete },
	{ "rollback", op_rollback }, { "keep", op_keep },
	{ "settle", op_settle },     { "unsettle", op_unsettle },
	{ "unfollow", op_unfollow }, { "refollow", op_refollow }, { "record", op_record },
	{ "limit", op_limit },
	{ "gc", op_gc },             { "questions", op_questions },
	{ "answer", op_answer },     { "question", op_question },
	{ "questions-end", op_questions_end },
};

/* Who has the answer may read the index by itself. Takes @answer. */
static GVariant *let_read(struct overlay *o, GVariant *answer, GError **error)
{
	int r = overlay_flush(o);

	if (r == 0)
		return answer;
	g_variant_unref(answer);
	return control_fail(error, r, "the store");
}

GVariant *control_handle(struct overlay *o, const char *operation, GVariant *arguments, const struct control_caller *caller, int *ret_fd,
			 GError **error)
{
	g_autoptr(GVariant) all = g_variant_ref_sink(arguments ? arguments : answer_empty());
	GVariantDict in;

	*ret_fd = -1;
	for (size_t i = 0; i < G_N_ELEMENTS(operations); i++) {
		const struct request request = { &in, caller };
		GVariant *answer;

		if (g_strcmp0(operations[i].name, operation) != 0)
			continue;
		g_variant_dict_init(&in, all);
		answer = operations[i].run(o, &request, ret_fd, error);
		g_variant_dict_clear(&in);
		return answer ? let_read(o, g_variant_ref_sink(answer), error) : NULL;
	}
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_FAILED, "unknown operation '%s': is the view served by another version?", operation);
	return NULL;
}
