/* SPDX-License-Identifier: MIT */
#include "tools/unmounting.h"

#include <glib/gstdio.h>

#include "fs/mount.h"
#include "tools/exit.h"
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

bool unmounting_run(const struct sandbox *s, GError **error)
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
	if ((s->mounted && !mount_unmount(s->mountpoint, error)) || !wait_until_gone(s, error))
		return false;
	tidy(s);
	return true;
}
