/* SPDX-License-Identifier: MIT */
#include "tools/command.h"

#include <stdio.h>
#include <string.h>

#include "tools/exit.h"
#include "tools/output.h"

#define HELP_COLUMNS 79

static const struct command table[] = {
	{ "mount", cmd_mount, "make or resume a sandbox and mount its view" },
	{ "umount", cmd_umount, "unmount a view and keep its changes" },
	{ "list", cmd_list, "list the sandboxes" },
	{ "status", cmd_status, "show one sandbox: mount, policy, changes, snapshots, disk use" },
	{ "ask", cmd_ask, "list and answer the questions of a view" },
	{ "snapshot", cmd_snapshot, "create, list and delete snapshots" },
	{ "diff", cmd_diff, "show the changes as a patch, as a table or as JSON" },
	{ "gate", cmd_gate, "check the changes before they are committed" },
	{ "commit", cmd_commit, "write the changes into the workspace" },
	{ "review", cmd_review, "go through the changes on one screen: accept, reject, note" },
	{ "rollback", cmd_rollback, "take the view back to the start or to a snapshot" },
	{ "log", cmd_log, "show and verify the audit: changes, denials, reads, commits" },
	{ "run", cmd_run, "run a program confined to the view" },
	{ "why", cmd_why, "tell which rule decides about a path" },
	{ "mcp", cmd_mcp, "serve an agent the tools status, diff, snapshot and why (MCP)" },
	{ "profile", cmd_profile, "list, show and check policy profiles" },
	{ "doctor", cmd_doctor, "tell what the system or a sandbox lacks, and what to do" },
	{ "fsck", cmd_fsck, "check a sandbox's store and audit" },
	{ "gc", cmd_gc, "give back what neither the view nor a snapshot shows" },
	{ "destroy", cmd_destroy, "delete a sandbox with all it holds" },
	{ NULL, NULL, NULL },
};

const struct command *commands(void)
{
	return table;
}

struct common {
	gboolean help, version, quiet, verbose, json;
};

/* In lines for a terminal; words are parted by single spaces. */
static char *wrap(const char *text)
{
	g_auto(GStrv) words = g_strsplit(text, " ", -1);
	GString *s = g_string_new(NULL);
	size_t column = 0;

	for (char **word = words; *word; word++) {
		bool fits = column + 1 + strlen(*word) <= HELP_COLUMNS;

		if (s->len > 0)
			g_string_append_c(s, fits ? ' ' : '\n');
		column = s->len > 0 && fits ? column + 1 + strlen(*word) : strlen(*word);
		g_string_append(s, *word);
	}
	return g_string_free(s, FALSE);
}

static GOptionContext *context_new(const struct command_syntax *syntax, struct common *common)
{
	GOptionContext *context = g_option_context_new(syntax->arguments);
	g_autofree char *description = wrap(syntax->description);
	const GOptionEntry entries[] = {
		{ "help", 'h', 0, G_OPTION_ARG_NONE, &common->help, "Show this help", NULL },
		{ "version", 0, 0, G_OPTION_ARG_NONE, &common->version, "Show the version", NULL },
		{ "quiet", 'q', 0, G_OPTION_ARG_NONE, &common->quiet, "Only the answer and errors", NULL },
		{ "verbose", 'v', 0, G_OPTION_ARG_NONE, &common->verbose, "Say more on standard error", NULL },
		{ NULL },
	};
	const GOptionEntry json[] = {
		{ "json", 0, 0, G_OPTION_ARG_NONE, &common->json, "Answer, and report errors, as one JSON object",
		  NULL },
		{ NULL },
	};

	g_option_context_set_help_enabled(context, FALSE);
	g_option_context_set_summary(context, description);
	if (syntax->options)
		g_option_context_add_main_entries(context, syntax->options, NULL);
	if (syntax->json)
		g_option_context_add_main_entries(context, json, NULL);
	g_option_context_add_main_entries(context, entries, NULL);
	return context;
}

/* GOption drops or keeps "--" depending on what follows, so the line is cut there before it is parsed. */
static void cut_paths(struct invocation *inv)
{
	int end = 1;

	while (end < inv->argc && !g_str_equal(inv->argv[end], "--"))
		end++;
	if (end == inv->argc)
		return;
	inv->paths = g_ptr_array_new();
	for (int i = end + 1; i < inv->argc; i++)
		g_ptr_array_add(inv->paths, inv->argv[i]);
	inv->argv[end] = NULL;
	inv->argc = end;
}

static bool check_arguments(struct invocation *inv, const struct command_syntax *syntax, GError **error)
{
	if (inv->args->len < syntax->min_args) {
		tool_error(error, EXIT_USAGE, NULL, "an argument is missing: %s %s (see --help)", inv->program,
			   syntax->arguments);
		return false;
	}
	if (inv->args->len > syntax->max_args) {
		tool_error(error, EXIT_USAGE, NULL, "unexpected argument '%s': %s %s (see --help)",
			   (char *)inv->args->pdata[syntax->max_args], inv->program, syntax->arguments);
		return false;
	}
	if (inv->paths && !syntax->paths && inv->paths->len > 0) {
		tool_error(error, EXIT_USAGE, NULL, "unexpected argument '%s' after -- (see --help)",
			   (char *)inv->paths->pdata[0]);
		return false;
	}
	return true;
}

bool command_parse(struct invocation *inv, const struct command_syntax *syntax, GError **error)
{
	struct common common = { 0 };
	g_autoptr(GOptionContext) context = context_new(syntax, &common);

	cut_paths(inv);
	inv->args = g_ptr_array_new();
	g_set_prgname(inv->program);
	if (!g_option_context_parse(context, &inv->argc, &inv->argv, error)) {
		g_prefix_error(error, "%s (see --help): ", "wrong usage");
		return false;
	}
	if (common.help) {
		g_autofree char *help = g_option_context_get_help(context, TRUE, NULL);

		fputs(help, stdout);
		return false;
	}
	if (common.version) {
		printf("sbxfs %s\n", SBXFS_VERSION);
		return false;
	}
	output_set_level(common.verbose ? OUTPUT_VERBOSE : common.quiet ? OUTPUT_QUIET : OUTPUT_NORMAL);
	inv->json = common.json;
	for (int i = 1; i < inv->argc; i++)
		g_ptr_array_add(inv->args, inv->argv[i]);
	return check_arguments(inv, syntax, error);
}

const char *command_arg(const struct invocation *inv, unsigned i)
{
	return i < inv->args->len ? inv->args->pdata[i] : NULL;
}

bool command_requests_json(const struct invocation *inv)
{
	for (int i = 1; i < inv->argc && inv->argv[i]; i++) {
		if (g_str_equal(inv->argv[i], "--"))
			break;
		if (g_str_equal(inv->argv[i], "--json"))
			return true;
	}
	return inv->json;
}
