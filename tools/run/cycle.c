/* SPDX-License-Identifier: MIT */
#include "tools/run/cycle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/control.h"
#include "snapshot/audit.h"
#include "tools/attach.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/sandbox.h"

#define PREFIX "run-"
#define TRIES 100 /* runs that begin at the same moment */

struct cycle {
	char *sandbox;
	char *snapshot;
	int64_t epoch;
	int64_t started; /* us */
	int64_t since;	 /* ns, wall clock */
	int64_t recorded; /* in the audit before; the last of it may have come later */
	uint64_t changes;
	uint64_t refused;
	bool shared; /* other runs were in the sandbox */
};

static const char *const names[] = {
	[ON_EXIT_KEEP] = "keep",
	[ON_EXIT_ASK] = "ask",
	[ON_EXIT_COMMIT] = "commit",
	[ON_EXIT_ROLLBACK] = "rollback",
};

bool cycle_parse(const char *name, enum on_exit *ret)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
		if (!g_str_equal(names[i], name ? name : names[ON_EXIT_KEEP]))
			continue;
		*ret = (enum on_exit)i;
		return true;
	}
	return false;
}

/* The snapshot */

/* Of a run's snapshot; 0 for any other. */
static uint64_t number_of(const char *name)
{
	uint64_t n = g_str_has_prefix(name, PREFIX) ? g_ascii_strtoull(name + strlen(PREFIX), NULL, 10) : 0;

	return n < UINT64_MAX ? n : 0;
}

static uint64_t next_number(struct attached *a)
{
	g_autoptr(GPtrArray) all = NULL;
	uint64_t next = 1;

	if (store_snapshot_list(a->store, &all) < 0)
		return next;
	for (unsigned i = 0; i < all->len; i++)
		next = MAX(next, number_of(((struct snapshot *)all->pdata[i])->name) + 1);
	return next;
}

static bool make_snapshot(struct cycle *c, struct attached *a, GError **error)
{
	uint64_t number = next_number(a);
	GError *failure = NULL;

	for (unsigned i = 0; i < TRIES; i++) {
		g_autofree char *name = g_strdup_printf(PREFIX "%" PRIu64, number + i);
		g_autoptr(GVariant) arguments = g_variant_ref_sink(g_variant_new_parsed("{'name': <%s>}", name));
		g_autoptr(GVariant) answer = NULL;

		g_clear_error(&failure);
		answer = control_call(a->control, "snapshot", arguments, &failure);
		if (answer && g_variant_lookup(answer, "epoch", "x", &c->epoch)) {
			c->snapshot = g_steal_pointer(&name);
			return true;
		}
		if (!g_error_matches(failure, CONTROL_ERROR, CONTROL_ERROR_EXISTS))
			break;
	}
	if (failure)
		g_propagate_error(error, failure);
	else
		tool_error(error, EXIT_INTERNAL, NULL, "the view gave no epoch");
	return false;
}

/* In the audit, as of this process. */
static bool record(struct attached *a, const char *operation, const char *detail, GError **error)
{
	struct audit_record r = { .kind = AUDIT_RUN,
				  .operation = operation,
				  .pid = (int32_t)getpid(),
				  .uid = getuid(),
				  .program = program_invocation_short_name,
				  .detail = detail };

	return control_record(a->control, &r, error);
}

static bool record_start(const struct cycle *c, struct attached *a, char *const *command, GError **error)
{
	GString *text = g_string_new(c->snapshot);
	bool ok;

	g_string_append_c(text, ':');
	for (; *command; command++) {
		g_autofree char *word = g_shell_quote(*command);

		g_string_append_printf(text, " %s", word);
	}
	ok = record(a, "run", text->str, error);
	g_string_free(text, TRUE);
	return ok;
}

/* So that counting what comes after it does not read a year of records. 0 = from the first one on. */
static int64_t last_record(const struct attached *a)
{
	g_autoptr(audit_t) audit = NULL;
	struct audit_checkpoint point = { 0 };

	if (audit_open(a->sandbox->dir, false, &audit) < 0 || audit_checkpoint(audit, &point) < 0)
		return 0;
	return point.last;
}

struct cycle *cycle_begin(struct attached *a, char *const *command, bool shared, GError **error)
{
	struct cycle *c = g_new0(struct cycle, 1);

	c->sandbox = g_strdup(a->sandbox->name);
	c->shared = shared;
	c->since = g_get_real_time() * 1000;
	c->recorded = last_record(a);
	if (!make_snapshot(c, a, error) || !record_start(c, a, command, error)) {
		cycle_free(c);
		return NULL;
	}
	c->started = g_get_monotonic_time();
	return c;
}

/* The summary */

static bool count_changes(struct cycle *c, struct attached *a, GError **error)
{
	g_autoptr(tree_t) from = NULL;
	g_autoptr(tree_t) to = NULL;
	g_autoptr(GPtrArray) changes = NULL;
	int64_t now;

	if (!attached_pin(a, &now, error))
		return false;
	from = tree_open(a->store, a->lower, c->epoch);
	to = tree_open(a->store, a->lower, now);
	if (!attached_changes(a, from, to, NULL, true, &changes, error))
		return false;
	c->changes = changes->len;
	return true;
}

static bool count_refused(const struct audit_record *r, const uint8_t *hash, void *user)
{
	struct cycle *c = user;

	(void)hash;
	c->refused += r->kind == AUDIT_DENIAL;
	return true;
}

static bool count_denials(struct cycle *c, const struct attached *a)
{
	const struct audit_filter filter = { .after = c->recorded, .since = c->since, .denied = true };
	g_autoptr(audit_t) audit = NULL;
	int r = audit_open(a->sandbox->dir, false, &audit);

	if (r < 0 && r != -ENOENT)
		return false;
	return audit_list(audit, a->sandbox->dir, true, &filter, count_refused, c) >= 0;
}

void cycle_stopped(struct cycle *c, struct attached *a, const char *limit)
{
	g_autofree char *detail = g_strdup_printf("%s: the limit %s was reached", c->snapshot, limit);
	g_autoptr(GError) failure = NULL;

	if (!record(a, "limit", detail, &failure))
		output_note("that is not in the audit: %s", failure->message);
}

void cycle_summarise(struct cycle *c, struct attached *a, int status)
{
	double seconds = (double)(g_get_monotonic_time() - c->started) / G_USEC_PER_SEC;
	g_autoptr(GError) failure = NULL;
	g_autofree char *show = NULL, *refused = NULL;
	g_autofree char *end = g_strdup_printf("%s: exit %d after %.1f s", c->snapshot, status, seconds);

	if (!record(a, "run-end", end, &failure))
		output_note("the end of %s is not in the audit: %s", c->snapshot, failure->message);
	c->shared = c->shared || next_number(a) > number_of(c->snapshot) + 1;
	g_clear_error(&failure);
	if (!count_changes(c, a, &failure)) {
		output_note("%s; the changes could not be counted: %s", end, failure->message);
		return;
	}
	if (c->changes)
		show = g_strdup_printf(" (sbxfs diff %s --from %s)", c->sandbox, c->snapshot);
	if (!count_denials(c, a))
		refused = g_strdup("; what rules refused could not be counted");
	else if (c->refused)
		refused = g_strdup_printf(", refused by rules: %" PRIu64 " (sbxfs log %s --denied)", c->refused, c->sandbox);
	output_note("%s, changed paths: %" PRIu64 "%s%s", end, c->changes, show ? show : "", refused ? refused : "");
}

/* Afterwards */

static int run_command(command_run run, const char *const *words, GError **error)
{
	g_autofree char **argv = g_memdup2(words, sizeof(*words) * (g_strv_length((char **)words) + 1));
	struct invocation inv = { .program = words[0], .argc = (int)g_strv_length(argv), .argv = argv };
	int code;

	fflush(stdout);
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return EXIT_INTERNAL;
	code = run(&inv, error);
	fflush(stdout);
	g_clear_pointer(&inv.args, g_ptr_array_unref);
	g_clear_pointer(&inv.paths, g_ptr_array_unref);
	return code;
}

/* Whoever was asked looks at the list of commit once more, and is asked there. */
static int commit(const struct cycle *c, bool asked, GError **error)
{
	const char *const words[] = { "sbxfs commit", c->sandbox, asked ? NULL : "-y", NULL };

	return run_command(cmd_commit, words, error);
}

static int rollback(const struct cycle *c, GError **error)
{
	const char *const words[] = { "sbxfs rollback", c->sandbox, "--to", c->snapshot, "-y", NULL };

	return run_command(cmd_rollback, words, error);
}

static enum on_exit ask(void)
{
	char *line = NULL;
	size_t size = 0;
	enum on_exit answer = ON_EXIT_KEEP;

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		output_note("there is no terminal to ask on: the changes are kept");
		return ON_EXIT_KEEP;
	}
	fprintf(stderr,
		"keep the changes in the sandbox, commit all of the sandbox's, or roll back this run's? [K/c/r] ");
	fflush(stderr);
	if (getline(&line, &size, stdin) > 0)
		answer = strchr("cC", *line) ? ON_EXIT_COMMIT : strchr("rR", *line) ? ON_EXIT_ROLLBACK : ON_EXIT_KEEP;
	free(line);
	return answer;
}

/* Why @what is not done unless a human says so; NULL = nothing speaks against it. */
static const char *objection(const struct cycle *c, enum on_exit what, int status)
{
	if (what == ON_EXIT_COMMIT && status != 0)
		return "the program did not end with exit code 0, so nothing is committed";
	if (what == ON_EXIT_ROLLBACK && c->shared)
		return "other runs were in the sandbox meanwhile, and their changes would go as well, so nothing is rolled back";
	return NULL;
}

bool cycle_end(struct cycle *c, enum on_exit what, int *status, GError **error)
{
	bool asked = what == ON_EXIT_ASK;
	const char *objected = objection(c, what, *status);
	GError *failure = NULL;
	int code = EXIT_DONE;

	if (what == ON_EXIT_ROLLBACK ? !c->changes : what == ON_EXIT_KEEP)
		return true;
	if (objected) {
		output_note("--on-exit %s: %s; the changes are kept (sbxfs diff %s)", names[what], objected, c->sandbox);
		return true;
	}
	if (asked)
		what = c->changes ? ask() : ON_EXIT_KEEP;
	if (what == ON_EXIT_COMMIT)
		code = commit(c, asked, &failure);
	else if (what == ON_EXIT_ROLLBACK)
		code = rollback(c, &failure);
	if (failure && *status != 0) {
		output_note("%s: %s", names[what], failure->message);
		g_error_free(failure);
		return true;
	}
	if (failure)
		g_propagate_error(error, failure);
	else if (*status == 0)
		*status = code;
	return failure == NULL;
}

void cycle_free(struct cycle *c)
{
	g_free(c->sandbox);
	g_free(c->snapshot);
	g_free(c);
}
