/* SPDX-License-Identifier: MIT */
#include "tools/unmounting.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <unistd.h>

#include "fs/control.h"
#include "fs/mount.h"
#include "tools/exit.h"
#include "tools/paths.h"
#include "tools/sandbox.h"

#define WAIT_STEP_US (10 * 1000)
#define WAIT_STEPS 6000 /* a minute: the process may have a lot to write to a slow disk */
#define WAIT_SHORT_STEPS 500

static bool wait_for_end(const struct sandbox *s, int steps)
{
	for (int i = 0; i < steps; i++) {
		if (!sandbox_is_locked(s->dir))
			return true;
		g_usleep(WAIT_STEP_US);
	}
	return false;
}

/* It detaches the view under whoever is in it. */
static void ask_to_end(const struct sandbox *s)
{
	struct control *c = sandbox_connect(s, NULL);
	g_autoptr(GVariant) nothing = g_variant_ref_sink(g_variant_new("a{sv}", NULL));
	g_autoptr(GVariant) status = c ? control_call(c, "status", nothing, NULL) : NULL;
	gint32 pid = 0;

	if (status && g_variant_lookup(status, "pid", "i", &pid) && pid > 0)
		kill(pid, SIGTERM);
	g_clear_pointer(&c, control_close);
}

static bool wait_until_gone(const struct sandbox *s, GError **error)
{
	if (wait_for_end(s, WAIT_STEPS))
		return true;
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

/* Who waits for a human keeps the view busy; no answer comes any more. How many waited. */
static guint32 end_questions(const struct sandbox *s)
{
	struct control *c = sandbox_connect(s, NULL);
	g_autoptr(GVariant) answer = c ? control_call(c, "questions-end", NULL, NULL) : NULL;
	guint32 ended = 0;

	if (answer)
		g_variant_lookup(answer, "ended", "u", &ended);
	g_clear_pointer(&c, control_close);
	return ended;
}

/* Those that waited until now get a moment to leave the view. */
static bool unmount_view(const struct sandbox *s, GError **error)
{
	int tries = end_questions(s) > 0 ? WAIT_SHORT_STEPS / 5 : 1;

	while (!mount_unmount(s->mountpoint, error)) {
		if (--tries == 0)
			return false;
		g_clear_error(error);
		g_usleep(WAIT_STEP_US);
	}
	return true;
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
	if (s->mounted && !unmount_view(s, error))
		return false;
	/* A mount namespace that was made meanwhile may still have the view; it ends there, too. */
	if (!wait_for_end(s, WAIT_SHORT_STEPS))
		ask_to_end(s);
	if (!wait_until_gone(s, error))
		return false;
	tidy(s);
	return true;
}

/* What the kernel still holds back, while it has somebody to give it to. */
static void flush(const struct sandbox *s)
{
	int fd = s->live ? open(s->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	if (syncfs(fd) < 0)
		g_debug("%s: %s", s->mountpoint, g_strerror(errno));
	close(fd);
}

bool unmounting_force(const struct sandbox *s, GError **error)
{
	end_questions(s);
	flush(s);
	for (int i = 0; i < WAIT_SHORT_STEPS && sandbox_is_mounted(s); i++) {
		if (mount_unmount(s->mountpoint, NULL))
			break;
		g_usleep(WAIT_STEP_US);
	}
	if (sandbox_is_mounted(s) || !wait_for_end(s, WAIT_SHORT_STEPS))
		ask_to_end(s);
	if (!wait_until_gone(s, error))
		return false;
	tidy(s);
	return true;
}
