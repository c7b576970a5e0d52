/* SPDX-License-Identifier: MIT */
#include <glib/gstdio.h>
#include <inttypes.h>
#include <stdio.h>

#include "fs/mount.h"
#include "tools/attach.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/paths.h"
#include "tools/sandbox.h"

#define WAIT_STEP_US (10 * 1000)
#define WAIT_STEPS 6000 /* a minute: the process may have a lot to write to a slow disk */

static bool wait_until_gone(const struct sandbox *s, GError **error)
{
	for (int i = 0; i < WAIT_STEPS; i++) {
		if (!sandbox_is_locked(s->dir))
			return true;
		g_usleep(WAIT_STEP_US);
	}
	tool_error(error, EXIT_BUSY, s->name,
		   "%s is unmounted, but its process is still at work (see %s/lock for its number)", s->name, s->dir);
	return false;
}

/* What mount made is taken away again: a killed process leaves its socket, and the default mountpoint is ours. */
static void tidy(const struct sandbox *s)
{
	/* Where that was then, whatever XDG_RUNTIME_DIR is now. */
	g_autofree char *runtime = g_path_get_dirname(s->socket ? s->socket : "");
	g_autofree char *mountpoint = paths_default_mountpoint(runtime, s->name);
	g_autofree char *parent = g_path_get_dirname(mountpoint);

	if (s->socket)
		g_unlink(s->socket);
	if (g_strcmp0(mountpoint, s->mountpoint) != 0)
		return;
	if (g_rmdir(mountpoint) == 0)
		g_rmdir(parent);
}

static bool unmount(const struct sandbox *s, GError **error)
{
	if (!s->mounted && s->live) {
		tool_error(error, EXIT_BUSY, s->name,
			   "sandbox %s is mounted at %s in another mount namespace; unmount it there", s->name,
			   s->mountpoint);
		return false;
	}
	if (!s->mounted && !sandbox_is_locked(s->dir)) {
		tool_error(error, EXIT_NOT_FOUND, s->name, "sandbox %s is not mounted", s->name);
		return false;
	}
	return (!s->mounted || mount_unmount(s->mountpoint, error)) && wait_until_gone(s, error);
}

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

int cmd_umount(struct invocation *inv, GError **error)
{
	const struct command_syntax syntax = {
		.arguments = "[TARGET]",
		.description = "Unmounts the view and waits until its process has ended. The changes stay in the "
			       "store; `sbxfs mount` shows them again. Also clears what a killed process left "
			       "mounted. Fails while files in the view are in use.",
		.max_args = 1,
		.json = true,
	};
	g_autoptr(sandbox_t) s = NULL;

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	s = sandbox_resolve(command_arg(inv, 0), error);
	if (!s || !unmount(s, error))
		return EXIT_INTERNAL;
	tidy(s);
	report(inv, s);
	return EXIT_DONE;
}
