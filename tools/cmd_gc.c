/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "fs/control.h"
#include "tools/attach.h"
#include "tools/command.h"
#include "tools/confirm.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/sandbox.h"

struct gc_found {
	GVariant *snapshots; /* as */
	uint64_t versions, contents, bytes;
};

static void found_clear(struct gc_found *f)
{
	g_clear_pointer(&f->snapshots, g_variant_unref);
}
typedef struct gc_found gc_found_t; /* for g_auto() only */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(gc_found_t, found_clear)

static bool call_gc(struct attached *a, bool automatic, bool dry_run, struct gc_found *ret, GError **error)
{
	g_autoptr(GVariant) arguments = g_variant_ref_sink(
		g_variant_new_parsed("{'automatic': <%b>, 'dry-run': <%b>}", automatic, dry_run));
	g_autoptr(GVariant) answer = control_call(a->control, "gc", arguments, error);

	if (!answer)
		return false;
	found_clear(ret);
	g_variant_lookup(answer, "snapshots", "@as", &ret->snapshots);
	g_variant_lookup(answer, "versions", "t", &ret->versions);
	g_variant_lookup(answer, "contents", "t", &ret->contents);
	g_variant_lookup(answer, "bytes", "t", &ret->bytes);
	return true;
}

static void print_found(const struct gc_found *f)
{
	g_autofree char *size = g_format_size(f->bytes);
	g_autofree const char **names = g_variant_get_strv(f->snapshots, NULL);

	for (const char **name = names; *name; name++)
		printf("D snapshot %s\n", *name);
	printf("%" PRIu64 " past versions, %" PRIu64 " contents, %s\n", f->versions, f->contents, size);
}

static void print_json(const struct attached *a, const struct gc_found *f, bool dry_run)
{
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.gc/1");
	json_add_string(&b, "sandbox", a->sandbox->name);
	json_add_bool(&b, "dry_run", dry_run);
	json_add(&b, "snapshots", f->snapshots);
	json_add_int(&b, "versions", (int64_t)f->versions);
	json_add_int(&b, "contents", (int64_t)f->contents);
	json_add_int(&b, "bytes", (int64_t)f->bytes);
	json_print(stdout, g_variant_builder_end(&b));
}

static bool nothing_to_do(const struct gc_found *f)
{
	return g_variant_n_children(f->snapshots) == 0 && f->versions == 0 && f->contents == 0;
}

int cmd_gc(struct invocation *inv, GError **error)
{
	gboolean dry_run = FALSE, yes = FALSE, keep = FALSE;
	const GOptionEntry options[] = {
		{ "dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Only show what would go", NULL },
		{ "yes", 'y', 0, G_OPTION_ARG_NONE, &yes, "Do not ask", NULL },
		{ "keep-automatic", 0, 0, G_OPTION_ARG_NONE, &keep, "Keep the snapshots made by rollbacks", NULL },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "[TARGET]",
		.description = "Deletes the snapshots that rollbacks made (@before-rollback-N), and then the contents and "
			       "past versions that neither the view, nor a snapshot, nor the undo of a commit shows. "
			       "What a rollback dropped cannot be had back after that. The space serves what is written "
			       "next; the index itself does not shrink.",
		.options = options,
		.max_args = 1,
		.json = true,
	};
	g_autoptr(attached_t) a = NULL;
	g_auto(gc_found_t) found = { 0 };

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	a = attached_open(command_arg(inv, 0), ATTACH_CONTROL, error);
	if (!a || !attached_lock_commits(a, error) || !call_gc(a, !keep, true, &found, error))
		return EXIT_INTERNAL;
	if (!inv->json)
		print_found(&found);
	if (!dry_run && !nothing_to_do(&found) &&
	    (!confirm("Delete this for good?", yes, error) || !call_gc(a, !keep, false, &found, error)))
		return EXIT_INTERNAL;
	if (inv->json)
		print_json(a, &found, dry_run);
	else if (dry_run)
		output_note("nothing was changed (--dry-run)");
	return EXIT_DONE;
}
