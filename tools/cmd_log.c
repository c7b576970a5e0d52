/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/audit.h"
#include "snapshot/audit_json.h"
#include "snapshot/diff.h"
#include "tools/command.h"
#include "tools/command_text.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/path_args.h"
#include "tools/paths.h"
#include "tools/sandbox.h"

#define FOLLOW_US (100 * 1000)

struct log {
	char *path, *operation, *since;
	gboolean denied, follow, verify;
	bool json, shown;
	struct sandbox *sandbox;
	struct audit *audit; /* NULL: nothing was ever recorded */
	struct audit_filter filter;
	char *below; /* what filter.path points to */
};
typedef struct log log_t; /* for g_auto() only */

static void log_clear(struct log *l)
{
	g_free(l->path);
	g_free(l->operation);
	g_free(l->since);
	g_free(l->below);
	g_clear_pointer(&l->audit, audit_close);
	g_clear_pointer(&l->sandbox, sandbox_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(log_t, log_clear)

/* Options */

/* "90s", "10m", "2h", "3d": so long ago. */
static bool parse_ago(const char *text, int64_t *ret)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 24 * 3600 } };
	char *end;
	guint64 n = g_ascii_strtoull(text, &end, 10);

	for (unsigned i = 0; end != text && g_ascii_isdigit(*text) && i < G_N_ELEMENTS(units); i++) {
		if (end[0] != units[i].unit || end[1] || n > 1000000000)
			continue;
		*ret = g_get_real_time() * 1000 - (int64_t)n * units[i].seconds * 1000000000;
		return true;
	}
	return false;
}

static bool parse_since(const char *text, int64_t *ret, GError **error)
{
	g_autoptr(GTimeZone) local = g_time_zone_new_local();
	g_autofree char *day = g_strconcat(text, "T00:00:00", NULL);
	g_autofree char *spaced = g_strdelimit(g_strdup(text), " ", 'T');
	g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(spaced, local);

	if (parse_ago(text, ret))
		return true;
	if (!time)
		time = g_date_time_new_from_iso8601(day, local);
	if (!time) {
		tool_error(error, EXIT_USAGE, text,
			   "'%s' is no time: give 2025-06-30, 2025-06-30T12:00:00, or how long ago: 90s, 10m, 2h, 3d",
			   text);
		return false;
	}
	/* What lies beyond the range of nanoseconds (1677 to 2262) is as good as its end. */
	*ret = CLAMP(g_date_time_to_unix(time), INT64_MIN / 1000000000, INT64_MAX / 1000000000 - 1) * 1000000000 +
	       (int64_t)g_date_time_get_microsecond(time) * 1000;
	return true;
}

static bool make_filter(struct log *l, GError **error)
{
	g_autofree char *cwd = paths_cwd();

	l->filter.denied = l->denied;
	l->filter.operation = l->operation;
	if (l->since && !parse_since(l->since, &l->filter.since, error))
		return false;
	if (l->path) {
		l->below = path_args_one(l->sandbox, cwd, l->path, error);
		l->filter.path = l->below;
	}
	return !l->path || l->below;
}

static bool open_audit(struct log *l, GError **error)
{
	int r = audit_open(l->sandbox->dir, false, &l->audit);

	if (r == -ENOENT)
		return true;
	if (r < 0)
		tool_error_errno(error, r, l->sandbox->dir, "the audit of sandbox %s%s", l->sandbox->name,
				 r == -EPROTO ? " was written by a newer sbxfs" : "");
	return r >= 0;
}

/* Printing */

static void print_text(const struct audit_record *r)
{
	g_autofree char *time = text_time(r->time);
	g_autofree char *path = r->path ? diff_quote_path(*r->path ? r->path : ".") : NULL;
	g_autofree char *new_path = r->new_path ? diff_quote_path(r->new_path) : NULL;
	g_autofree char *program = r->program ? diff_quote_path(r->program) : NULL;
	g_autofree char *what = NULL;
	g_autofree char *detail = NULL;

	if (!command_text(r, &what, &detail) && r->detail)
		detail = diff_quote_path(r->detail);
	printf("%s %-8s %-10s %s", time, audit_kind_name(r->kind), r->operation, path ? path : what ? what : "-");
	if (new_path)
		printf(" -> %s", new_path);
	printf("  %s[%" PRId32 "] uid %" PRIu32, program ? program : "", r->pid, r->uid);
	if (r->result)
		printf("  %s", g_strerror(r->result));
	if (r->verdict && (r->kind == AUDIT_DENIAL || r->result))
		printf("  %s by %s", r->verdict, r->rule ? r->rule : "?");
	if (detail)
		printf("  (%s)", detail);
	putchar('\n');
}

static bool print_record(const struct audit_record *r, const uint8_t *hash, void *user)
{
	struct log *l = user;

	if (l->json) {
		g_autofree char *line = audit_json_line(r, hash);

		puts(line);
	} else {
		print_text(r);
	}
	l->filter.after = MAX(l->filter.after, r->seq);
	l->shown = true;
	return output_goes_on();
}

static bool list(struct log *l, GError **error)
{
	int r = audit_list(l->audit, l->sandbox->dir, !l->follow, &l->filter, print_record, l);

	if (r < 0)
		tool_error_errno(error, r, l->sandbox->dir, "the audit of sandbox %s", l->sandbox->name);
	return r >= 0;
}

/* Until interrupted, or nobody reads. */
static bool follow(struct log *l, GError **error)
{
	while (list(l, error)) {
		if (fflush(stdout) != 0)
			return true;
		g_usleep(FOLLOW_US);
		if (!l->audit && !open_audit(l, error))
			return false;
	}
	return false;
}

static void print_verification(const struct log *l, const struct audit_verification *v)
{
	g_autoptr(GString) head = g_string_new(NULL);
	GVariantBuilder b;

	for (int i = 0; i < 32; i++)
		g_string_append_printf(head, "%02x", v->checkpoint.head[i]);
	if (!l->json) {
		if (v->fault)
			printf("%s: the audit was tampered with: %s\n", l->sandbox->name, v->fault);
		else
			printf("%s: %" PRIu64 " records, %" PRId64 " to %" PRId64
			       ", none changed, missing or moved; head %s\n",
			       l->sandbox->name, v->records, v->checkpoint.first, v->checkpoint.last, head->str);
		return;
	}
	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.audit-verify/1");
	json_add_string(&b, "sandbox", l->sandbox->name);
	json_add_bool(&b, "intact", !v->fault);
	json_add_int(&b, "records", (int64_t)v->records);
	json_add_int(&b, "first", v->checkpoint.first);
	json_add_int(&b, "last", v->checkpoint.last);
	json_add_string(&b, "head", head->str);
	json_add_string(&b, "fault", v->fault);
	if (v->fault)
		json_add_int(&b, "seq", v->seq);
	json_print(stdout, g_variant_builder_end(&b));
}

static int verify(struct log *l, GError **error)
{
	struct audit_verification v;
	int code;
	int r;

	if (!l->audit) {
		tool_error(error, EXIT_NOT_FOUND, l->sandbox->name, "sandbox %s has no audit", l->sandbox->name);
		return EXIT_NOT_FOUND;
	}
	r = audit_verify(l->audit, &v);
	if (r < 0) {
		tool_error(error, EXIT_DIFFERENCES, l->sandbox->dir, "the audit of sandbox %s cannot be read: %s",
			   l->sandbox->name, g_strerror(-r));
		audit_verification_clear(&v);
		return EXIT_DIFFERENCES;
	}
	print_verification(l, &v);
	code = v.fault ? EXIT_DIFFERENCES : EXIT_DONE;
	audit_verification_clear(&v);
	return code;
}

int cmd_log(struct invocation *inv, GError **error)
{
	g_auto(log_t) l = { 0 };
	const GOptionEntry options[] = {
		{ "denied", 0, 0, G_OPTION_ARG_NONE, &l.denied, "Only what a rule refused", NULL },
		{ "path", 0, 0, G_OPTION_ARG_FILENAME, &l.path, "Only this path and what is below it", "PATH" },
		{ "op", 0, 0, G_OPTION_ARG_FILENAME, &l.operation, "Only this operation: write, rename, lookup, ...",
		  "OPERATION" },
		{ "since", 0, 0, G_OPTION_ARG_FILENAME, &l.since,
		  "Only from this time on: 2025-06-30, 2025-06-30T12:00:00, or 90s, 10m, 2h, 3d ago", "TIME" },
		{ "follow", 0, 0, G_OPTION_ARG_NONE, &l.follow, "Go on with what happens", NULL },
		{ "verify", 0, 0, G_OPTION_ARG_NONE, &l.verify,
		  "Instead of showing it, check that no record was changed, removed or moved", NULL },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "[TARGET]",
		.description =
			"Shows the audit of a sandbox: every change, every refusal, the first read of each file, "
			"snapshots, rollbacks, commits and mounts; when, by which process, and by which rule. "
			"With --json a line for each.",
		.options = options,
		.max_args = 1,
		.json = true,
	};

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	l.json = inv->json;
	l.sandbox = sandbox_resolve(command_arg(inv, 0), error);
	if (!l.sandbox || !make_filter(&l, error) || !open_audit(&l, error))
		return EXIT_INTERNAL;
	if (l.verify)
		return verify(&l, error);
	if (l.follow)
		follow(&l, error);
	else if (list(&l, error) && l.operation && !l.shown)
		output_note("no such record of an operation \"%s\"; sbxfs(1) names them at log --op", l.operation);
	return EXIT_DONE;
}
