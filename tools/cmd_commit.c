/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "snapshot/apply.h"
#include "tools/attach.h"
#include "tools/change_text.h"
#include "tools/choose.h"
#include "tools/command.h"
#include "tools/commit_git.h"
#include "tools/commit_steps.h"
#include "tools/commit_undo.h"
#include "tools/confirm.h"
#include "tools/exit.h"
#include "tools/gating.h"
#include "tools/output.h"
#include "tools/path_args.h"
#include "tools/sandbox.h"

#define SUMMARY_LINES 40

struct commit {
	gboolean dry_run, yes, reviewed, undo, merge, markers, interactive;
	char *expect, *reason;
	bool json;
	struct attached *attached;
	char **paths;
	GPtrArray *found; /* with interactive: all changes, of which those of @steps were chosen */
	struct selection *selection;
	struct commit_steps steps; /* owns its from, to and changes here */
	char *digest;
	struct commit_git git;
};
typedef struct commit commit_t; /* for g_auto() only */

static void commit_clear(struct commit *c)
{
	commit_git_clear(&c->git);
	commit_steps_clear(&c->steps);
	g_clear_pointer(&c->steps.changes, g_ptr_array_unref);
	g_clear_pointer(&c->selection, selection_free);
	g_clear_pointer(&c->found, g_ptr_array_unref);
	g_clear_pointer(&c->steps.from, tree_close);
	g_clear_pointer(&c->steps.to, tree_close);
	g_clear_pointer(&c->attached, attached_close);
	g_clear_pointer(&c->paths, g_strfreev);
	g_free(c->expect);
	g_free(c->reason);
	g_free(c->digest);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(commit_t, commit_clear)

/* From here on there is nothing but what was chosen: for the digest, the gate and the commit. */
static bool choose(struct commit *c, GError **error)
{
	struct commit_steps *s = &c->steps;

	c->found = g_steal_pointer(&s->changes);
	c->selection = selection_new(c->found, s->from, s->to);
	return choose_run(c->selection, s->from, s->to, error) && selection_taken(c->selection, &s->changes, error) >= 0;
}

static bool find_changes(struct commit *c, struct invocation *inv, GError **error)
{
	struct commit_steps *s = &c->steps;
	struct attached *a;

	a = c->attached = s->attached = attached_open(command_arg(inv, 0), ATTACH_CONTROL, error);
	if (!a || !path_args_new(a->sandbox, inv->paths, &c->paths, error) || !attached_lock_commits(a, error) ||
	    !attached_pin(a, &s->epoch, error))
		return false;
	s->from = tree_open(a->store, a->lower, TREE_LOWER);
	s->to = tree_open(a->store, a->lower, s->epoch);
	s->merge = c->markers ? TEXT_MERGE_MARKERS : c->merge ? TEXT_MERGE_CLEAN : TEXT_MERGE_NONE;
	s->reason = c->reason;
	if (!attached_check_paths(s->from, s->to, c->paths, error) ||
	    !attached_changes(a, s->from, s->to, c->paths, false, &s->changes, error) || (c->interactive && !choose(c, error)))
		return false;
	c->digest = changes_digest(s->changes, s->to, error);
	return c->digest != NULL;
}

static bool check_digest(const struct commit *c, GError **error)
{
	if (!c->expect || g_ascii_strcasecmp(c->expect, c->digest) == 0)
		return true;
	tool_error(error, EXIT_DIGEST, NULL,
		   "the changes are not those that were reviewed: their digest is %s, expected was %s; nothing was "
		   "written",
		   c->digest, c->expect);
	return false;
}

/* Whoever chose each change is asked, below the findings, whether that was the review. */
static bool asks_review(const struct commit *c)
{
	return c->interactive && !c->yes;
}

static bool pass_gate(struct commit *c, GError **error)
{
	return commit_steps_gate(&c->steps, error) &&
	       (c->dry_run || gating_check(c->steps.gate, c->reviewed || asks_review(c), error));
}

static void report_conflicts(const struct commit *c)
{
	if (c->steps.conflicts && c->json)
		json_print(stdout, conflicts_json(c->steps.conflicts));
	else if (c->steps.conflicts)
		conflicts_print(c->steps.conflicts);
}

static void print_summary(const struct commit *c)
{
	g_autofree char *counts = changes_count_text(c->steps.changes);

	printf("%s -> %s: %s\n", c->attached->sandbox->name, c->attached->sandbox->workspace, counts);
	changes_print(c->steps.changes, c->dry_run ? 0 : SUMMARY_LINES);
	printf("digest: %s\n", c->digest);
}

static void print_result(const struct commit *c)
{
	if (c->dry_run) {
		output_note("nothing was written (--dry-run)");
		return;
	}
	commit_steps_print(&c->steps);
}

static void print_json(const struct commit *c)
{
	GPtrArray *notes = c->git.branch ? c->git.result.notes : c->steps.result.notes;
	const char *none[] = { NULL };
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.commit/1");
	json_add_string(&b, "sandbox", c->attached->sandbox->name);
	json_add_path(&b, "workspace", c->attached->sandbox->workspace);
	json_add_bool(&b, "dry_run", c->dry_run);
	json_add_string(&b, "id", c->steps.result.id);
	json_add_string(&b, "digest", c->digest);
	json_add_string(&b, "gate", c->steps.gate ? gate_level_name(c->steps.gate->verdict) : NULL);
	if (c->git.branch) {
		json_add_string(&b, "git_branch", c->git.result.ref);
		json_add_string(&b, "git_commit", c->git.result.id);
	}
	json_add_int(&b, "written", (int64_t)c->steps.result.written);
	json_add_int(&b, "deleted", (int64_t)c->steps.result.deleted);
	json_add(&b, "changes", changes_json(c->steps.changes));
	json_add(&b, "summary", changes_summary_json(c->steps.changes));
	json_add(&b, "notes",
		 notes ? g_variant_new_strv((const char *const *)notes->pdata, notes->len) : g_variant_new_strv(none, 0));
	json_print(stdout, g_variant_builder_end(&b));
}

/* The changes go to git, the workspace stays as it is: so there can be no conflict with it. */
static bool to_git(struct commit *c, GError **error)
{
	if (c->git.patch && c->dry_run) {
		output_note("nothing was written (--dry-run)");
		return true;
	}
	if (c->git.patch)
		return commit_git_write_patch(&c->git, c->attached, c->steps.from, c->steps.to, c->steps.changes, error);
	if (!c->json)
		print_summary(c);
	if (!c->dry_run && !confirm("Make this git commit?", c->yes, error))
		return false;
	if (!commit_git_make(&c->git, c->attached, c->steps.from, c->steps.to, c->steps.changes, c->dry_run, error))
		return false;
	if (c->dry_run)
		print_result(c);
	else if (!c->json)
		commit_git_print(&c->git);
	return true;
}

static const char *question(const struct commit *c)
{
	return c->steps.gate->verdict == GATE_REVIEW && !c->reviewed ? "The gate wants a review of the above. Write these changes as reviewed?" :
								 "Write these changes into the workspace?";
}

static bool do_commit(struct commit *c, GError **error)
{
	if (!check_digest(c, error))
		return false;
	if (c->steps.changes->len == 0) {
		if (!c->json)
			printf("%s: nothing %s\n", c->attached->sandbox->name, c->found && c->found->len ? "was chosen" : "to commit");
		return true;
	}
	if (!pass_gate(c, error))
		return false;
	if (c->git.branch || c->git.patch)
		return to_git(c, error);
	if (!commit_steps_check(&c->steps, error))
		return false;
	if (!c->json)
		print_summary(c);
	if (!c->dry_run && (!confirm(question(c), c->yes, error) || !commit_steps_write(&c->steps, error)))
		return false;
	if (!c->json)
		print_result(c);
	/* A dry run shows the rest first. */
	return !c->dry_run || gating_check(c->steps.gate, c->reviewed, error);
}

static bool run_undo(const struct commit *c, struct invocation *inv, GError **error)
{
	struct commit_undo u = { .dry_run = c->dry_run, .yes = c->yes, .json = c->json };

	if (inv->paths || c->expect || c->git.branch || c->git.patch) {
		tool_error(error, EXIT_USAGE, NULL, "--undo takes back a whole commit: it goes with -n, -y and --json only");
		return false;
	}
	return commit_undo_parse(inv->args, &u, error) && commit_undo_run(&u, error);
}

static bool check_arguments(const struct commit *c, struct invocation *inv, GError **error)
{
	if (!c->undo && inv->args->len > 1) {
		tool_error(error, EXIT_USAGE, NULL, "unexpected argument '%s': paths come after -- (see --help)",
			   command_arg(inv, 1));
		return false;
	}
	if (c->interactive && (c->undo || c->merge || c->markers)) {
		tool_error(error, EXIT_USAGE, NULL, "-i chooses parts of the changes: it goes neither with --undo nor with --merge");
		return false;
	}
	return commit_git_check(&c->git, error) && (!c->interactive || choose_can_ask(error));
}

int cmd_commit(struct invocation *inv, GError **error)
{
	g_auto(commit_t) c = { 0 };
	const GOptionEntry options[] = {
		{ "dry-run", 'n', 0, G_OPTION_ARG_NONE, &c.dry_run, "Only show what would be written, and conflicts",
		  NULL },
		{ "yes", 'y', 0, G_OPTION_ARG_NONE, &c.yes, "Do not ask", NULL },
		{ "expect", 0, 0, G_OPTION_ARG_FILENAME, &c.expect,
		  "Commit only if the changes have this digest (see sbxfs diff)", "DIGEST" },
		{ "reviewed", 0, 0, G_OPTION_ARG_NONE, &c.reviewed,
		  "A human has reviewed the changes, where the gate wants that", NULL },
		{ "reason", 0, 0, G_OPTION_ARG_STRING, &c.reason, "Why missing or failing tests are all right", "TEXT" },
		{ "interactive", 'i', 0, G_OPTION_ARG_NONE, &c.interactive,
		  "Choose on the terminal what to commit, by file and by hunk; the rest stays pending", NULL },
		{ "merge", 0, 0, G_OPTION_ARG_NONE, &c.merge,
		  "Merge texts that were changed on both sides, where the changes do not touch each other", NULL },
		{ "merge=markers", 0, 0, G_OPTION_ARG_NONE, &c.markers,
		  "Merge them all, with conflict markers where the changes do", NULL },
		{ "git", 0, 0, G_OPTION_ARG_STRING, &c.git.branch,
		  "Make a git commit on this branch instead of writing into the workspace", "BRANCH" },
		{ "message", 'm', 0, G_OPTION_ARG_STRING, &c.git.message, "With --git: the message", "MESSAGE" },
		{ "author", 0, 0, G_OPTION_ARG_STRING, &c.git.author, "With --git: 'Name <address>'", "AUTHOR" },
		{ "signoff", 's', 0, G_OPTION_ARG_NONE, &c.git.sign_off, "With --git: add a Signed-off-by line", NULL },
		{ "patch", 0, 0, G_OPTION_ARG_FILENAME, &c.git.patch,
		  "Write a patch to this file (- for standard output) instead of into the workspace", "FILE" },
		{ "undo", 0, 0, G_OPTION_ARG_NONE, &c.undo,
		  "Put the workspace back to what it was before the last commit, or the one with the number ID", NULL },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "[TARGET] [--undo [ID]] [-- PATH...]",
		.description = "Runs the gate, and writes the changes of the view into the workspace, all or nothing, "
			       "also when it is interrupted. What changed in the workspace meanwhile is a conflict: nothing is "
			       "written then. With -- PATH only those paths; the rest stays pending.",
		.options = options,
		.max_args = 2,
		.paths = true,
		.json = true,
	};

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	c.json = inv->json;
	if (!check_arguments(&c, inv, error))
		return EXIT_DONE;
	if (c.undo)
		run_undo(&c, inv, error);
	else if (find_changes(&c, inv, error) && do_commit(&c, error) && c.json)
		print_json(&c);
	report_conflicts(&c);
	return EXIT_DONE;
}
