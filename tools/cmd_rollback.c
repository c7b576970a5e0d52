/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/pathspec.h"
#include "tools/attach.h"
#include "tools/change_text.h"
#include "tools/command.h"
#include "tools/confirm.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/path_args.h"
#include "tools/roll_back.h"
#include "tools/sandbox.h"
#include "tools/terminal_text.h"

#define SUMMARY_LINES 40

struct rollback {
	char *to_name; /* NULL = the start */
	int64_t to;    /* epoch; 0 = the start */
	gboolean dry_run, yes, scratch;
	bool json;
	struct attached *attached;
	char **paths;       /* as they were given */
	char **all;         /* with what they take along; NULL = everything */
	GPtrArray *changes; /* from the view as it is now to the target */
	GPtrArray *along;   /* paths of those that were not named; borrowed */
	struct roll_back_result result;
};
typedef struct rollback rollback_t; /* for g_auto() only */

static void rollback_clear(struct rollback *r)
{
	g_clear_pointer(&r->along, g_ptr_array_unref);
	g_clear_pointer(&r->changes, g_ptr_array_unref);
	g_clear_pointer(&r->attached, attached_close);
	g_clear_pointer(&r->paths, g_strfreev);
	g_clear_pointer(&r->all, g_strfreev);
	g_free(r->to_name);
	g_free(r->result.undo);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(rollback_t, rollback_clear)

/* What was renamed to or from what was named, or exchanged with it, goes along: all of it is listed. */
static bool choose(struct rollback *r, int64_t now, struct tree *from, struct tree *to, GError **error)
{
	g_autoptr(GPtrArray) named = NULL;
	g_autoptr(pathspec_t) spec = NULL;

	r->along = g_ptr_array_new();
	if (!r->paths || !*r->paths)
		return attached_changes(r->attached, from, to, NULL, true, &r->changes, error);
	if (!attached_changes(r->attached, from, to, r->paths, true, &named, error) ||
	    !roll_back_choose(r->attached, now, r->to, r->paths, named, &r->all, error) ||
	    !attached_changes(r->attached, from, to, r->all, true, &r->changes, error))
		return false;
	spec = pathspec_new((const char *const *)r->paths);
	for (unsigned i = 0; i < r->changes->len; i++) {
		const struct change *c = r->changes->pdata[i];

		if (pathspec_match(spec, c->path) != PATHSPEC_ALL)
			g_ptr_array_add(r->along, c->path);
	}
	return true;
}

/* What will happen: new files are deletions here. Scratch paths stay, unless they are asked for or named. */
static bool find_changes(struct rollback *r, GError **error)
{
	struct attached *a = r->attached;
	g_autoptr(tree_t) from = NULL;
	g_autoptr(tree_t) to = NULL;
	int64_t now;

	if (r->to_name && !attached_epoch(a, r->to_name, &r->to, error))
		return false;
	if (!attached_pin(a, &now, error))
		return false;
	from = tree_open(a->store, a->lower, now);
	to = tree_open(a->store, a->lower, r->to_name ? r->to : TREE_LOWER);
	a->with_scratch = r->scratch || (r->paths && *r->paths);
	return attached_check_paths(from, to, r->paths, error) &&
	       choose(r, now, from, to, error);
}

static bool open_rollback(struct rollback *r, struct invocation *inv, GError **error)
{
	r->attached = attached_open(command_arg(inv, 0), ATTACH_CONTROL, error);
	return r->attached && path_args_new(r->attached->sandbox, inv->paths, &r->paths, error) &&
	       attached_lock_commits(r->attached, error) && find_changes(r, error);
}

static bool take_back(struct rollback *r, GError **error)
{
	return roll_back(r->attached, r->to, r->all, r->scratch, &r->result, error);
}

static const char *target_name(const struct rollback *r)
{
	return r->to_name ? r->to_name : "the start";
}

/* All of them: nobody named them. */
static void print_along(const struct rollback *r)
{
	if (r->along->len)
		printf("of these not named, but one change with what was (a rename or an exchange):\n");
	for (unsigned i = 0; i < r->along->len; i++) {
		const char *path = r->along->pdata[i];
		g_autofree char *text = terminal_text(path, strlen(path), 0);

		printf("  %s\n", text);
	}
}

static GVariant *along_json(const struct rollback *r)
{
	GVariantBuilder paths;

	g_variant_builder_init(&paths, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < r->along->len; i++) {
		g_variant_builder_open(&paths, G_VARIANT_TYPE_VARDICT);
		json_add_path(&paths, "path", r->along->pdata[i]);
		g_variant_builder_close(&paths);
	}
	return g_variant_builder_end(&paths);
}

static void print_summary(const struct rollback *r)
{
	g_autofree char *counts = changes_count_text(r->changes);

	printf("%s: back to %s: %s\n", r->attached->sandbox->name, target_name(r), *counts ? counts : "no changes");
	changes_print(r->changes, r->dry_run ? 0 : SUMMARY_LINES);
	print_along(r);
}

static void print_result(const struct rollback *r)
{
	if (r->dry_run) {
		output_note("nothing was changed (--dry-run)");
		return;
	}
	printf("rolled back to %s: %" PRIu64 " names, %" PRIu64 " files and directories\n", target_name(r), r->result.names,
	       r->result.nodes);
	printf("undo: sbxfs rollback %s --to %s\n", r->attached->sandbox->name, r->result.undo);
}

static void print_json(const struct rollback *r)
{
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.rollback/1");
	json_add_string(&b, "sandbox", r->attached->sandbox->name);
	json_add_string(&b, "to", r->to_name);
	json_add_bool(&b, "dry_run", r->dry_run);
	json_add_string(&b, "undo", r->result.undo);
	json_add_int(&b, "names", (int64_t)r->result.names);
	json_add_int(&b, "nodes", (int64_t)r->result.nodes);
	json_add(&b, "along", along_json(r));
	json_add(&b, "changes", changes_json(r->changes));
	json_add(&b, "summary", changes_summary_json(r->changes));
	json_print(stdout, g_variant_builder_end(&b));
}

static bool do_rollback(struct rollback *r, GError **error)
{
	if (!r->json)
		print_summary(r);
	if (!r->dry_run && (!confirm("Do this in the view?", r->yes, error) || !take_back(r, error)))
		return false;
	if (!r->json)
		print_result(r);
	return true;
}

int cmd_rollback(struct invocation *inv, GError **error)
{
	g_auto(rollback_t) r = { 0 };
	const GOptionEntry options[] = {
		{ "to", 0, 0, G_OPTION_ARG_FILENAME, &r.to_name, "Go back to this snapshot instead of the start",
		  "SNAPSHOT" },
		{ "dry-run", 'n', 0, G_OPTION_ARG_NONE, &r.dry_run, "Only show what would be taken back", NULL },
		{ "yes", 'y', 0, G_OPTION_ARG_NONE, &r.yes, "Do not ask", NULL },
		{ "scratch", 0, 0, G_OPTION_ARG_NONE, &r.scratch, "Take back what the rules call scratch, too", NULL },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "[TARGET] [-- PATH...]",
		.description = "Takes the view back to the start or to a snapshot, also while it is mounted; with -- "
			       "PATH only those paths. The state before is kept as a snapshot of its own, whose name "
			       "is printed, so a rollback can be undone.",
		.options = options,
		.max_args = 1,
		.paths = true,
		.json = true,
	};

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	r.json = inv->json;
	if (open_rollback(&r, inv, error) && do_rollback(&r, error) && r.json)
		print_json(&r);
	return EXIT_DONE;
}
