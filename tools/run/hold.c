/* SPDX-License-Identifier: MIT */
#include "tools/run/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/paths.h"
#include "tools/sandbox.h"
#include "tools/unmounting.h"

#define STEP_US (20 * 1000)
#define WAIT_VIEW_STEPS 250 /* 5 s: for a view whose mounting was interrupted */
#define OFFSET_MASK INT64_C(0x3ffffffffffffffe) /* two bytes each */

struct hold {
	char *name;
	int lock;
	off_t offset; /* of the byte held by all runs; the next one is for the one that mounts */
	pid_t keeper; /* 0 = none */
	bool mounted; /* the view is ours */
	int tell;     /* to the keeper; -1 */
};

/* Bytes of its own in the file for each name; two names that share one only wait for each other. */
static off_t offset_of(const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
	return (off_t)(hash & OFFSET_MASK);
}

static bool lock_at(const struct hold *h, off_t offset, short type, bool wait)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1 };

	while (fcntl(h->lock, wait ? F_SETLKW : F_SETLK, &l) < 0)
		if (errno != EINTR)
			return false;
	return true;
}

static bool lock_byte(const struct hold *h, short type, bool wait)
{
	return lock_at(h, h->offset, type, wait);
}

static void clear(struct hold *h)
{
	if (h->tell >= 0)
		close(h->tell);
	close(h->lock);
	g_free(h->name);
	g_free(h);
}

struct hold *hold_new(const char *name, GError **error)
{
	g_autofree char *runtime = paths_runtime_dir(error);
	g_autofree char *path = runtime ? g_build_filename(runtime, "run.lock", NULL) : NULL;
	struct hold *h;

	if (!path)
		return NULL;
	h = g_new0(struct hold, 1);
	h->name = g_strdup(name);
	h->offset = offset_of(name);
	h->tell = -1;
	h->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (h->lock >= 0 && lock_byte(h, F_RDLCK, true))
		return h;
	tool_error_errno(error, -errno, path, "%s", path);
	clear(h);
	return NULL;
}

bool hold_begin_view(const struct hold *h, GError **error)
{
	if (lock_at(h, h->offset + 1, F_WRLCK, true))
		return true;
	tool_error_errno(error, -errno, h->name, "run.lock");
	return false;
}

void hold_end_view(const struct hold *h)
{
	lock_at(h, h->offset + 1, F_UNLCK, false);
}

bool hold_is_shared(const struct hold *h)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = h->offset, .l_len = 1 };

	return fcntl(h->lock, F_GETLK, &l) < 0 || l.l_type != F_UNLCK;
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
static void leave_caller(const struct hold *h, int told)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned low = MIN(h->lock, told), high = MAX(h->lock, told);

	setsid();
	prctl(PR_SET_NAME, "sbxfs-keeper");
	if (chdir("/") < 0 || null < 0)
		g_debug("the keeper stays where it is");
	for (int fd = 0; fd <= 2; fd++)
		dup2(null, fd);
	close_range(3, low - 1, 0);
	close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

static void keep(const struct hold *h, int told)
{
	char byte;

	leave_caller(h, told);
	if (!lock_byte(h, F_WRLCK, true))
		_exit(EXIT_INTERNAL);
	if (read(told, &byte, 1) != 1)
		wait_for_view(h->name);
	_exit(take_down(h->name, NULL) ? EXIT_DONE : EXIT_INTERNAL);
}

bool hold_start_keeper(struct hold *h, GError **error)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0) {
		tool_error_errno(error, -errno, NULL, "pipe");
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
		return true;
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

bool hold_free(struct hold *h, GError **error)
{
	bool ok = true;

	if (!h)
		return true;
	/* Alone: everybody who comes now waits until the view is gone. One that we could not mount is not ours, if it is there after all. */
	if (h->keeper && (!h->mounted || lock_byte(h, F_WRLCK, false))) {
		ok = !h->mounted || take_down(h->name, error);
		if (ok) {
			kill(h->keeper, SIGKILL);
			waitpid(h->keeper, NULL, 0);
		}
	}
	clear(h);
	return ok;
}
