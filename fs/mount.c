/* SPDX-License-Identifier: MIT */
#include "fs/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/heritage.h"
#include "fs/keeper.h"
#include "fs/mount_table.h"
#include "fs/service.h"
#include "rules/policy.h"

/* Starting */

static void daemon_detach(const struct mount_options *options)
{
	g_autofree char *log = g_build_filename(options->store, "log", NULL);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), out;

	setsid();
	if (chdir("/") < 0)
		g_debug("chdir /: %s", g_strerror(errno));
	out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	dup2(null, STDIN_FILENO);
	if (out >= 0) {
		dup2(out, STDOUT_FILENO);
		dup2(out, STDERR_FILENO);
		close(out);
	}
	close(null);
}

static bool wait_for_view(int fd, pid_t pid, GError **error)
{
	char text[1024];
	size_t used = 0;
	ssize_t n;
	char *end;
	long code;

	while (used < sizeof(text) - 1) {
		n = read(fd, text + used, sizeof(text) - 1 - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		used += n;
	}
	text[used] = '\0';
	if (strcmp(text, "ready") == 0)
		return true;
	waitpid(pid, NULL, 0);
	code = strtol(text, &end, 10);
	if (*end == ' ')
		g_set_error(error, MOUNT_ERROR, code, "%s", end + 1);
	else
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "the serving process ended before the view answered; its log is in the store");
	return false;
}

/* In each process that serves the view in the background. */
static int serve(struct keeper_held *held, void *user)
{
	struct service_start start = *(struct service_start *)user;
	g_autoptr(GError) error = NULL;

	start.held = start.heritage ? held : NULL;
	/* The end that tells of readiness is the first one's. */
	if (held && held->fds[KEEPER_DEVICE] >= 0)
		start.ready_fd = -1;
	if (service_run(&start, &error))
		return 0;
	g_printerr("sbxfs: the view is not served: %s\n", error->message);
	return 1;
}

static bool run_in_background(struct service_start *start, GError **error)
{
	int fds[2];
	bool ok;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "pipe: %s", g_strerror(errno));
		return false;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		start->ready_fd = fds[1];
		daemon_detach(start->options);
		start->heritage = heritage_new();
		_exit(start->heritage ? keeper_run(start->heritage, fds[1], serve, start) : serve(NULL, start));
	}
	close(fds[1]);
	if (pid < 0)
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "fork: %s", g_strerror(errno));
	ok = pid > 0 && wait_for_view(fds[0], pid, error);
	close(fds[0]);
	policy_free(g_steal_pointer(&start->policy));
	return ok;
}

bool mount_run(const struct mount_options *options, struct policy *policy, GError **error)
{
	struct service_start start = { .options = options, .policy = policy, .ready_fd = -1 };
	g_autofree char *message = NULL;

	if (mount_is_stale(options->mountpoint) && !mount_detach(options->mountpoint, true, &message)) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_BUSY, "the stale mount on %s can't be cleared: %s", options->mountpoint,
			    message ? message : "");
		policy_free(policy);
		return false;
	}
	if (mount_is_ours(options->mountpoint)) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_BUSY, "%s is mounted already", options->mountpoint);
		policy_free(policy);
		return false;
	}
	if (options->foreground)
		return service_run(&start, error);
	return run_in_background(&start, error);
}
