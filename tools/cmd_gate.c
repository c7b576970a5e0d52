/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "gate/gate_report.h"
#include "tools/attach.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/gating.h"
#include "tools/out_file.h"
#include "tools/output.h"
#include "tools/path_args.h"
#include "tools/sandbox.h"

struct gate_call {
	char *checks, *test, *reason, *sarif;
	struct attached *attached;
	struct tree *from, *to;
	char **paths;
	GPtrArray *changes;
	char *digest;
	struct gate_result *result;
};
typedef struct gate_call gate_call_t; /* for g_auto() only */

static void gate_call_clear(struct gate_call *g)
{
	g_clear_pointer(&g->result, gate_result_free);
	g_clear_pointer(&g->changes, g_ptr_array_unref);
	g_clear_pointer(&g->from, tree_close);
	g_clear_pointer(&g->to, tree_close);
	g_clear_pointer(&g->attached, attached_close);
	g_clear_pointer(&g->paths, g_strfreev);
	g_free(g->checks);
	g_free(g->test);
	g_free(g->reason);
	g_free(g->sarif);
	g_free(g->digest);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(gate_call_t, gate_call_clear)

static bool find_changes(struct gate_call *g, struct invocation *inv, GError **error)
{
	struct attached *a = g->attached = attached_open(command_arg(inv, 0), ATTACH_CONTROL, error);
	int64_t epoch;

	if (!a || !path_args_new(a->sandbox, inv->paths, &g->paths, error) || !attached_recover(a, error) || !attached_pin(a, &epoch, error))
		return false;
	g->from = tree_open(a->store, a->lower, TREE_LOWER);
	g->to = tree_open(a->store, a->lower, epoch);
	if (!attached_check_paths(g->from, g->to, g->paths, error) ||
	    !attached_changes(a, g->from, g->to, g->paths, false, &g->changes, error))
		return false;
	g->digest = changes_digest(g->changes, g->to, error);
	return g->digest != NULL;
}

static void write_to(const char *data, size_t size, void *user)
{
	fwrite(data, 1, size, user);
}

static bool write_sarif(const struct gate_call *g, const struct gate_report_names *names, GError **error)
{
	struct out_file out;

	if (!out_file_open(&out, g->sarif, g->attached->sandbox, error))
		return false;
	gate_report_sarif(g->result, names, out_file_write, &out);
	return out_file_close(&out, true, error);
}

static void print_text(const struct gate_call *g)
{
	g_autofree char *counts = gate_report_counts(g->result);

	gate_report_text(g->result, true, write_to, stdout);
	printf("verdict: %s (%s)\n", gate_level_name(g->result->verdict), counts);
	if (!g->result->checks)
		output_note("no checks are switched on ([gate] checks = none); --checks all runs them");
	if (g->changes->len > 0)
		output_note("digest: %s", g->digest);
}

static bool print(const struct gate_call *g, bool json, GError **error)
{
	const struct gate_report_names names = {
		.sandbox = g->attached->sandbox->name,
		.workspace = g->attached->sandbox->workspace,
		.digest = g->digest,
	};

	if (g->sarif)
		return write_sarif(g, &names, error);
	if (json)
		gate_report_json(g->result, &names, write_to, stdout);
	else
		print_text(g);
	return true;
}

static enum exit_code code_of(enum gate_level verdict)
{
	return verdict == GATE_REFUSE ? EXIT_DIFFERENCES : verdict == GATE_REVIEW ? EXIT_REVIEW : EXIT_DONE;
}

int cmd_gate(struct invocation *inv, GError **error)
{
	g_auto(gate_call_t) g = { 0 };
	const GOptionEntry options[] = {
		{ "checks", 0, 0, G_OPTION_ARG_STRING, &g.checks, "Run these instead of the policy's checks", "LIST" },
		{ "sarif", 0, 0, G_OPTION_ARG_FILENAME, &g.sarif, "Write the findings as SARIF 2.1.0 (- = standard output)", "FILE" },
		{ "test", 0, 0, G_OPTION_ARG_STRING, &g.test, "Run this instead of the policy's test command", "CMD" },
		{ "reason", 0, 0, G_OPTION_ARG_STRING, &g.reason, "Why missing or failing tests are all right", "TEXT" },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "[TARGET] [-- PATH...]",
		.description = "Checks what the changes of the view would bring into the workspace: secrets, dependencies, files that "
			       "steer CI, agents and git, permissions, sizes, tests. Exits with 0 (pass), 1 (refused) or 4 (needs "
			       "review). Only the trusted policy's [gate] section configures it, see sbxfs(1).",
		.options = options,
		.max_args = 1,
		.paths = true,
		.json = true,
	};

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	if (inv->json && g.sarif) {
		tool_error(error, EXIT_USAGE, NULL, "--json and --sarif exclude each other");
		return EXIT_USAGE;
	}
	const struct gating gating = { .checks = g.checks, .test = g.test, .reason = g.reason };

	if (!find_changes(&g, inv, error) || !gating_run(g.attached, g.from, g.to, g.changes, &gating, &g.result, error) ||
	    !print(&g, inv->json, error))
		return EXIT_DONE;
	return code_of(g.result->verdict);
}
