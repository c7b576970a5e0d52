/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "tools/attach.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/sandbox.h"
#include "tools/unmounting.h"
#include "tools/view_lock.h"

static void report(struct invocation *inv, const struct sandbox *s)
{
	g_autoptr(attached_t) a = attached_open(s->name, ATTACH_READ, NULL);
	uint64_t changes;
	bool counted = a && attached_count_changes(a, &changes, NULL);
	g_autofree char *count = counted ? g_strdup_printf("%" PRIu64, changes) : g_strdup("unknown");
	GVariantBuilder b;

	if (!inv->json) {
		printf("%s: unmounted, changed paths kept: %s, in %s\n", s->name, count, s->dir);
		return;
	}
	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.umount/1");
	json_add_string(&b, "sandbox", s->name);
	json_add(&b, "changes",
		 g_variant_new_maybe(G_VARIANT_TYPE_INT64, counted ? g_variant_new_int64((int64_t)changes) : NULL));
	json_add_path(&b, "store", s->dir);
	json_print(stdout, g_variant_builder_end(&b));
}

/* The kernel would not mind: what a run sees is a mount of its own, of the same view. */
static bool check_no_run(const struct sandbox *s, GError **error)
{
	if (!s->live || view_lock_of_others(s->name, VIEW_RUN) != VIEW_SHARED)
		return true;
	tool_error(error, EXIT_BUSY, s->name, "`sbxfs run` is in the view of sandbox %s; end it, then unmount again", s->name);
	return false;
}

/* What was seen before the lock may be another view, or none, by now. */
static bool unmount(struct sandbox **s, GError **error)
{
	g_autofree char *name = g_strdup((*s)->name);
	bool ok;

	if (!view_change_begin(name, error))
		return false;
	sandbox_free(*s);
	*s = sandbox_load(name, error);
	ok = *s && check_no_run(*s, error) && unmounting_run(*s, error);
	view_change_end(name);
	return ok;
}

int cmd_umount(struct invocation *inv, GError **error)
{
	const struct command_syntax syntax = {
		.arguments = "[TARGET]",
		.description = "Unmounts the view and waits until its process has ended. The changes stay in the "
			       "store; `sbxfs mount` shows them again. Also clears what a killed process left "
			       "mounted. Fails while files in the view are in use or `sbxfs run` is in it.",
		.max_args = 1,
		.json = true,
	};
	g_autoptr(sandbox_t) s = NULL;

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	s = sandbox_resolve(command_arg(inv, 0), error);
	if (!s || !unmount(&s, error))
		return EXIT_INTERNAL;
	report(inv, s);
	return EXIT_DONE;
}
