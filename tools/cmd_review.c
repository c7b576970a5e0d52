/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/diff.h"
#include "tools/attach.h"
#include "tools/change_lines.h"
#include "tools/change_text.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/gating.h"
#include "tools/output.h"
#include "tools/path_args.h"
#include "tools/review.h"
#include "tools/sandbox.h"
#include "tools/screen.h"

typedef struct review review_t; /* for g_auto() only */

static void review_clear(struct review *r)
{
	commit_steps_clear(&r->steps);
	g_clear_pointer(&r->items, g_ptr_array_unref);
	g_clear_pointer(&r->gate, gate_result_free);
	g_clear_pointer(&r->selection, selection_free);
	g_clear_pointer(&r->changes, g_ptr_array_unref);
	g_clear_pointer(&r->from, tree_close);
	g_clear_pointer(&r->to, tree_close);
	g_clear_pointer(&r->attached, attached_close);
	g_clear_pointer(&r->paths, g_strfreev);
	g_free(r->digest);
	g_free(r->reason);
	g_free(r->rolled_back.undo);
	g_clear_error(&r->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(review_t, review_clear)

static void item_free(gpointer data)
{
	struct review_item *item = data;

	g_free(item->title);
	g_free(item->note);
	g_free(item->counts);
	g_ptr_array_unref(item->findings);
	g_free(item);
}

static void make_items(struct review *r)
{
	g_autoptr(GHashTable) by_path = g_hash_table_new(g_str_hash, g_str_equal);

	r->items = g_ptr_array_new_with_free_func(item_free);
	for (guint i = 0; i < selection_count(r->selection); i++) {
		const struct change *c = selection_at(r->selection, i)->change;
		struct review_item *item = g_new0(struct review_item, 1);

		item->title = change_lines_title(c);
		item->findings = g_ptr_array_new();
		g_ptr_array_add(r->items, item);
		g_hash_table_insert(by_path, c->path, item);
	}
	for (guint i = 0; i < r->gate->findings->len; i++) {
		const struct gate_finding *f = r->gate->findings->pdata[i];
		struct review_item *item = f->path ? g_hash_table_lookup(by_path, f->path) : NULL;

		if (item && f->level != GATE_PASS)
			g_ptr_array_add(item->findings, (gpointer)f);
	}
}

/* The state that is shown: pinned, while the view goes on. The lock of commits is for the end. */
static bool load(struct review *r, struct invocation *inv, GError **error)
{
	/* They may take minutes, and are run on what was accepted. */
	const struct gating gating = { .only_read = true };
	struct attached *a;

	a = r->attached = attached_open(command_arg(inv, 0), ATTACH_CONTROL, error);
	if (!a || !path_args_new(a->sandbox, inv->paths, &r->paths, error) || !attached_recover(a, error) ||
	    !attached_pin(a, &r->epoch, error))
		return false;
	r->from = tree_open(a->store, a->lower, TREE_LOWER);
	r->to = tree_open(a->store, a->lower, r->epoch);
	if (!attached_check_paths(r->from, r->to, r->paths, error) ||
	    !attached_changes(a, r->from, r->to, r->paths, false, &r->changes, error))
		return false;
	r->digest = changes_digest(r->changes, r->to, error);
	if (!r->digest || !gating_run(a, r->from, r->to, r->changes, &gating, &r->gate, error))
		return false;
	r->selection = selection_new(r->changes, r->from, r->to);
	make_items(r);
	return true;
}

static enum review_next run_screens(struct review *r)
{
	enum review_next next = REVIEW_BACK;

	while (next == REVIEW_BACK) {
		next = review_list(r);
		if (next == REVIEW_END)
			next = review_end(r);
	}
	return next;
}

static void print_item(struct review *r, guint i)
{
	const struct change *c = selection_at(r->selection, i)->change;
	const struct review_item *item = review_item(r, i);
	enum choice state = selection_state(r->selection, i);
	g_autofree char *path = diff_quote_path(c->path), *from = c->from_path ? diff_quote_path(c->from_path) : NULL;

	if (state == CHOICE_OPEN && !item->note)
		return;
	printf("  %-8s  %c %s%s%s\n", review_word(state), c->status, from ? from : "", from ? " -> " : "", path);
	if (item->note)
		printf("            note: %s\n", item->note);
}

static void print_end(struct review *r)
{
	g_autofree char *totals = review_totals(r);
	uint64_t left = 0;

	printf("%s: %s\n", r->attached->sandbox->name, totals);
	for (guint i = 0; i < selection_count(r->selection); i++)
		print_item(r, i);
	if (r->committed)
		commit_steps_print(&r->steps);
	if (r->rolled_back.undo)
		printf("rolled back: %" PRIu64 " names, %" PRIu64 " files and directories\nundo: sbxfs rollback %s --to %s\n",
		       r->rolled_back.names, r->rolled_back.nodes, r->attached->sandbox->name, r->rolled_back.undo);
	if (attached_count_changes(r->attached, &left, NULL))
		printf("left in the sandbox: %" PRIu64 "\n", left);
}

static bool review(struct review *r, GError **error)
{
	enum review_next next;

	if (!screen_open(error))
		return false;
	next = run_screens(r);
	screen_close();
	if (next == REVIEW_FAILED && r->steps.conflicts)
		conflicts_print(r->steps.conflicts);
	if (next == REVIEW_DONE || r->committed)
		print_end(r);
	if (next == REVIEW_FAILED)
		g_propagate_error(error, g_steal_pointer(&r->error));
	else if (next == REVIEW_QUIT)
		tool_error(error, EXIT_REVIEW, NULL, "the review was left, nothing was done");
	return next == REVIEW_DONE;
}

int cmd_review(struct invocation *inv, GError **error)
{
	g_auto(review_t) r = { 0 };
	const GOptionEntry options[] = {
		{ "reason", 0, 0, G_OPTION_ARG_STRING, &r.reason, "Why missing or failing tests are all right", "TEXT" },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "[TARGET] [-- PATH...]",
		.description =
			"Goes through the changes on the terminal: look at each, accept or reject it or single hunks of it, add "
			"notes. At the end what was accepted is committed and what was rejected is rolled back; what was left "
			"open stays in the sandbox. Until then nothing is done, and nothing is done if the view has changed "
			"meanwhile.",
		.options = options,
		.max_args = 1,
		.paths = true,
	};

	if (!command_parse(inv, &syntax, error) || !load(&r, inv, error))
		return EXIT_DONE;
	if (r.changes->len == 0)
		printf("%s: nothing to review\n", r.attached->sandbox->name);
	else
		review(&r, error);
	return EXIT_DONE;
}
