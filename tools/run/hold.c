/* SPDX-License-Identifier: MIT */
#include "tools/run/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/sandbox.h"
#include "tools/unmounting.h"
#include "tools/view_lock.h"

#define STEP_US (20 * 1000)
#define WAIT_VIEW_STEPS 250 /* 5 s: for a view whose mounting was interrupted */

struct hold {
	char *name;
	pid_t keeper; /* 0 = none */
	bool mounted; /* the view is ours */
	int tell;     /* to the keeper; -1 */
};

static void clear(struct hold *h)
{
	if (h->tell >= 0)
		close(h->tell);
	g_free(h->name);
	g_free(h);
}

struct hold *hold_new(const char *name, GError **error)
{
	struct hold *h;

	if (!view_lock(name, VIEW_RUN, VIEW_SHARED, error))
		return NULL;
	h = g_new0(struct hold, 1);
	h->name = g_strdup(name);
	h->tell = -1;
	return h;
}

bool hold_begin_view(const struct hold *h, GError **error)
{
	return view_lock(h->name, VIEW_CHANGE, VIEW_EXCLUSIVE, error);
}

void hold_end_view(const struct hold *h)
{
	view_unlock(h->name, VIEW_CHANGE);
}

bool hold_is_shared(const struct hold *h)
{
	return view_lock_of_others(h->name, VIEW_RUN) != VIEW_FREE;
}

static bool take_down(const char *name, GError **error)
{
	g_autoptr(sandbox_t) s = sandbox_load(name, NULL);

	return !s || !(s->mounted || s->live || sandbox_is_locked(s->dir)) || unmounting_force(s, error);
}

/* The keeper */

/* Whoever forked us died between the fork and the end of the mount: a view may still come. */
static void wait_for_view(const char *name)
{
	for (int i = 0; i < WAIT_VIEW_STEPS; i++) {
		g_autoptr(sandbox_t) s = sandbox_load(name, NULL);

		if (s && s->live)
			return;
		g_usleep(STEP_US);
	}
}

/* Nothing of the caller's is kept: not its terminal, its directory or a pipe that somebody reads to the end. */
static void leave_caller(int told)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned fd = (unsigned)told;

	setsid();
	prctl(PR_SET_NAME, "sbxfs-keeper");
	if (chdir("/") < 0 || null < 0)
		g_debug("the keeper stays where it is");
	for (int i = 0; i <= 2; i++)
		dup2(null, i);
	close_range(3, fd - 1, 0);
	close_range(fd + 1, ~0U, 0);
	view_lock_forget();
}

/* The view, when no run is in it and no command works with it. While a command does, runs may come. */
static bool wait_for_last(const char *name)
{
	while (view_lock(name, VIEW_RUN, VIEW_EXCLUSIVE, NULL)) {
		if (view_lock_try(name, VIEW_USE, VIEW_EXCLUSIVE))
			return true;
		view_unlock(name, VIEW_RUN);
		if (!view_lock(name, VIEW_USE, VIEW_EXCLUSIVE, NULL))
			return false;
		view_unlock(name, VIEW_USE);
	}
	return false;
}

static void keep(const struct hold *h, int told)
{
	char byte;

	leave_caller(told);
	if (!view_lock(h->name, VIEW_KEPT, VIEW_SHARED, NULL) || write(told, "k", 1) != 1 || !wait_for_last(h->name))
		_exit(EXIT_INTERNAL);
	if (read(told, &byte, 1) != 1)
		wait_for_view(h->name);
	_exit(take_down(h->name, NULL) ? EXIT_DONE : EXIT_INTERNAL);
}

/* Its lock must be there before the view is. */
static bool wait_for_keeper(int tell, GError **error)
{
	char byte;

	if (read(tell, &byte, 1) == 1)
		return true;
	tool_error(error, EXIT_INTERNAL, NULL, "the process that is to take the view down did not start");
	return false;
}

bool hold_start_keeper(struct hold *h, GError **error)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
		tool_error_errno(error, -errno, NULL, "socketpair");
		return false;
	}
	fflush(NULL);
	h->keeper = fork();
	if (h->keeper == 0) {
		close(fds[1]);
		keep(h, fds[0]);
	}
	close(fds[0]);
	h->tell = fds[1];
	if (h->keeper > 0)
		return wait_for_keeper(h->tell, error);
	h->keeper = 0;
	tool_error_errno(error, -errno, NULL, "fork");
	return false;
}

void hold_mounted(struct hold *h)
{
	h->mounted = true;
	if (h->tell >= 0 && write(h->tell, "m", 1) < 0)
		g_debug("the keeper is gone");
}

/* If so, everybody who comes now waits until the view is gone. */
static bool begin_take_down(const struct hold *h)
{
	if (!view_lock_try(h->name, VIEW_RUN, VIEW_EXCLUSIVE))
		return false;
	if (view_lock_try(h->name, VIEW_USE, VIEW_EXCLUSIVE))
		return true;
	view_unlock(h->name, VIEW_RUN);
	return false;
}

static void end_take_down(const struct hold *h)
{
	view_unlock(h->name, VIEW_USE);
	view_unlock(h->name, VIEW_RUN);
}

static void end_keeper(const struct hold *h)
{
	kill(h->keeper, SIGKILL);
	waitpid(h->keeper, NULL, 0);
}

bool hold_free(struct hold *h, GError **error)
{
	bool ok = true;

	if (!h)
		return true;
	if (h->keeper && !h->mounted) {
		/* One that we could not mount is not ours, if it is there after all. */
		end_keeper(h);
	} else if (h->keeper && begin_take_down(h)) {
		ok = take_down(h->name, error);
		if (ok)
			end_keeper(h);
		end_take_down(h);
	}
	view_unlock(h->name, VIEW_RUN);
	clear(h);
	return ok;
}
