/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "fs/control.h"
#include "snapshot/change_json.h"
#include "snapshot/diff.h"
#include "snapshot/similar.h"
#include "tools/attach.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/gating.h"
#include "tools/html/page.h"
#include "tools/out_file.h"
#include "tools/output.h"
#include "tools/path_args.h"
#include "tools/sandbox.h"

struct diff {
	char *from_name, *to_name; /* snapshots; NULL = the workspace, the view as it is now */
	gboolean stat, name_status, exit_code, nul, no_renames;
	char *html; /* file, "-" for standard output */
	struct attached *attached;
	struct tree *from, *to;
	char **paths;
	GPtrArray *changes;
	char *digest; /* NULL with --name-status */
};
typedef struct diff diff_t; /* for g_auto() only */

static void diff_clear(struct diff *d)
{
	g_clear_pointer(&d->changes, g_ptr_array_unref);
	g_clear_pointer(&d->from, tree_close);
	g_clear_pointer(&d->to, tree_close);
	g_clear_pointer(&d->attached, attached_close);
	g_clear_pointer(&d->paths, g_strfreev);
	g_free(d->from_name);
	g_free(d->to_name);
	g_free(d->html);
	g_free(d->digest);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(diff_t, diff_clear)

static bool check_formats(const struct diff *d, bool json, GError **error)
{
	if (d->stat + d->name_status + json + !!d->html > 1) {
		tool_error(error, EXIT_USAGE, NULL, "--stat, --name-status, --json and --html exclude each other");
		return false;
	}
	if (d->nul && !d->name_status) {
		tool_error(error, EXIT_USAGE, NULL, "-z goes with --name-status");
		return false;
	}
	return true;
}

/* A pin needs room for one row. On a full disk the live state is read instead: looking must work most of all then. */
static bool pin_view(struct attached *a, int64_t *ret_epoch, GError **error)
{
	g_autoptr(GError) failure = NULL;

	if (attached_pin(a, ret_epoch, &failure))
		return true;
	if (!g_error_matches(failure, CONTROL_ERROR, CONTROL_ERROR_NO_SPACE)) {
		g_propagate_error(error, g_steal_pointer(&failure));
		return false;
	}
	output_note("no space left for the store: the view is read as it is and may change meanwhile");
	*ret_epoch = EPOCH_LIVE;
	return true;
}

static bool open_trees(struct diff *d, GError **error)
{
	int64_t from = TREE_LOWER, to;
	struct attached *a = d->attached;

	if (d->from_name && !attached_epoch(a, d->from_name, &from, error))
		return false;
	if (!(d->to_name ? attached_epoch(a, d->to_name, &to, error) : pin_view(a, &to, error)))
		return false;
	d->from = tree_open(a->store, a->lower, from);
	d->to = tree_open(a->store, a->lower, to);
	return attached_check_paths(d->from, d->to, d->paths, error);
}

static bool find_changes(struct diff *d, struct invocation *inv, GError **error)
{
	d->attached = attached_open(command_arg(inv, 0), ATTACH_CONTROL, error);
	return d->attached && path_args_new(d->attached->sandbox, inv->paths, &d->paths, error) &&
	       attached_recover(d->attached, error) && open_trees(d, error) &&
	       attached_changes(d->attached, d->from, d->to, d->paths, d->name_status, &d->changes, error);
}

/* From here on the list is only read: its digest, and the gate's verdict, are of the plain one. */
static void tell_renames(struct diff *d)
{
	if (!d->no_renames)
		similar_join(d->changes, d->from, d->to);
}

static void write_plain(const char *data, size_t size, void *user)
{
	if (fwrite(data, 1, size, user) < size && user == stdout)
		output_goes_on();
}

/* No snapshot of the user's has an @ in front. */
static bool print_json(struct diff *d, GError **error)
{
	const struct change_json_names names = {
		.sandbox = d->attached->sandbox->name,
		.workspace = d->attached->sandbox->workspace,
		.from = d->from_name ? d->from_name : "@workspace",
		.to = d->to_name ? d->to_name : "@view",
		.digest = d->digest,
	};

	tell_renames(d);
	return change_json_write(d->changes, d->from, d->to, &names, write_plain, stdout, error) >= 0;
}

/* The gate's findings are those of a commit, but for the test command's: looking at changes runs nothing. */
static bool write_html(struct diff *d, GError **error)
{
	static const struct gating gating = { .only_read = true };
	g_autoptr(gate_result_t) gate = NULL;
	g_autofree char *from = d->from_name ? g_strconcat("snapshot ", d->from_name, NULL) : g_strdup("the workspace");
	g_autofree char *to = d->to_name ? g_strconcat("snapshot ", d->to_name, NULL) : g_strdup("the view");
	struct html_page page = {
		.sandbox = d->attached->sandbox->name,
		.workspace = d->attached->sandbox->workspace,
		.from = from,
		.to = to,
		.digest = d->digest,
		.changes = d->changes,
		.from_tree = d->from,
		.to_tree = d->to,
	};
	struct out_file out;
	bool ok;

	if (!out_file_open(&out, d->html, d->attached->sandbox, error))
		return false;
	ok = gating_run(d->attached, d->from, d->to, d->changes, &gating, &gate, error);
	page.gate = gate;
	if (ok)
		tell_renames(d);
	ok = ok && html_page_write(&page, out_file_write, &out, error) >= 0;
	return out_file_close(&out, ok, ok ? error : NULL) && ok;
}

static void write_colored(const char *data, size_t size, void *user)
{
	patch_colorer_write(user, data, size);
}

static bool print_patch(struct diff *d, GError **error)
{
	struct patch_colorer *colorer = output_has_color(STDOUT_FILENO) ? patch_colorer_new(stdout) : NULL;
	int r;

	output_pager();
	if (colorer)
		r = diff_patch(d->changes, d->from, d->to, write_colored, colorer, error);
	else
		r = diff_patch(d->changes, d->from, d->to, write_plain, stdout, error);
	g_clear_pointer(&colorer, patch_colorer_free);
	return r >= 0;
}

static bool print_text(struct diff *d, GError **error)
{
	tell_renames(d);
	if (!d->stat && !d->name_status)
		return print_patch(d, error);
	if (!d->nul)
		output_pager();
	if (d->stat)
		return diff_stat(d->changes, d->from, d->to, write_plain, stdout, error) >= 0;
	return diff_name_status(d->changes, d->nul, write_plain, stdout, error) >= 0;
}

/*
 * The digest is for commit --expect, so it is also told beside a patch: on the other stream, which leaves the patch
 * clean.
 */
static bool print_changes(struct diff *d, bool json, GError **error)
{
	if (!d->name_status) {
		d->digest = changes_digest(d->changes, d->to, error);
		if (!d->digest)
			return false;
	}
	if (json)
		return print_json(d, error);
	if (!(d->html ? write_html(d, error) : print_text(d, error)) || !output_finish(error))
		return false;
	if (d->digest && d->changes->len > 0)
		output_note("digest: %s", d->digest);
	return true;
}

int cmd_diff(struct invocation *inv, GError **error)
{
	g_auto(diff_t) d = { 0 };
	const GOptionEntry options[] = {
		{ "from", 0, 0, G_OPTION_ARG_FILENAME, &d.from_name,
		  "Compare with this snapshot instead of the workspace", "SNAPSHOT" },
		{ "to", 0, 0, G_OPTION_ARG_FILENAME, &d.to_name, "Show this snapshot instead of the view as it is now",
		  "SNAPSHOT" },
		{ "stat", 0, 0, G_OPTION_ARG_NONE, &d.stat, "A table of changed lines instead of a patch", NULL },
		{ "name-status", 0, 0, G_OPTION_ARG_NONE, &d.name_status,
		  "Only the kind of each change (A M D R T P X) and its path", NULL },
		{ "no-renames", 0, 0, G_OPTION_ARG_NONE, &d.no_renames,
		  "A file that was deleted and one like it that was added stay two changes", NULL },
		{ "html", 0, 0, G_OPTION_ARG_FILENAME, &d.html,
		  "Write one web page with the changes and the gate's findings (- = standard output)", "FILE" },
		{ "exit-code", 0, 0, G_OPTION_ARG_NONE, &d.exit_code, "Exit with 1 when there are differences", NULL },
		{ "null", 'z', 0, G_OPTION_ARG_NONE, &d.nul, "With --name-status: verbatim paths, each ended by a NUL",
		  NULL },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "[TARGET] [-- PATH...]",
		.description = "Shows what the view has changed as a patch in git's format, which `git apply` can "
			       "use in the workspace. Paths that the policy denies, hides or keeps in the sandbox "
			       "are left out. The digest on standard error (in --json: \"digest\") names exactly "
			       "these changes for `sbxfs commit --expect`.",
		.options = options,
		.max_args = 1,
		.paths = true,
		.json = true,
	};

	if (!command_parse(inv, &syntax, error) || !check_formats(&d, inv->json, error) ||
	    !find_changes(&d, inv, error) || !print_changes(&d, inv->json, error))
		return EXIT_DONE;
	return d.exit_code && d.changes->len > 0 ? EXIT_DIFFERENCES : EXIT_DONE;
}
