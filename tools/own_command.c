/* SPDX-License-Identifier: MIT */
#include "tools/own_command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/exit.h"

#define ERR_MAX (16 * 1024)
#define TIME_MAX_MS (10 * 60 * 1000) /* a diff of a very large change on a slow disk ends before */

struct catch
{
	int fd; /* -1 = at its end */
	GString *kept;
	uint64_t offset, size;
	size_t limit;
};

/* In the child. */
static void end_with_parent(gpointer nothing)
{
	(void)nothing;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
}

static bool start(const char *const *arguments, GPid *ret_pid, int *ret_out, int *ret_err, GError **error)
{
	g_autoptr(GPtrArray) argv = g_ptr_array_new();

	/* Whatever name we were called by, the one of the program takes the command from its first argument. */
	g_ptr_array_add(argv, (char *)"/proc/self/exe");
	g_ptr_array_add(argv, (char *)"sbxfs");
	for (const char *const *a = arguments; *a; a++)
		g_ptr_array_add(argv, (char *)*a);
	g_ptr_array_add(argv, NULL);
	return g_spawn_async_with_pipes(NULL, (char **)argv->pdata, NULL, G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_FILE_AND_ARGV_ZERO,
					end_with_parent, NULL, ret_pid, NULL, ret_out, ret_err, error);
}

static void keep(struct catch *c, const char *data, size_t n)
{
	uint64_t skip = c->size < c->offset ? MIN(c->offset - c->size, n) : 0;

	g_string_append_len(c->kept, data + skip, MIN(n - skip, c->limit - c->kept->len));
	c->size += n;
}

static void take(struct catch *c)
{
	char data[64 * 1024];
	ssize_t n = read(c->fd, data, sizeof(data));

	if (n > 0) {
		keep(c, data, n);
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		close(c->fd);
		c->fd = -1;
	}
}

/* False when it takes too long. */
static bool catch_all(struct catch *out, struct catch *err)
{
	int64_t end = g_get_monotonic_time() / 1000 + TIME_MAX_MS;

	while (out->fd >= 0 || err->fd >= 0) {
		struct pollfd fds[] = { { .fd = out->fd, .events = POLLIN }, { .fd = err->fd, .events = POLLIN } };
		int64_t left = end - g_get_monotonic_time() / 1000;

		if (left <= 0)
			return false;
		if (poll(fds, G_N_ELEMENTS(fds), (int)left) < 0 && errno != EINTR)
			return false;
		if (fds[0].revents)
			take(out);
		if (fds[1].revents)
			take(err);
	}
	return true;
}

static int wait_for(GPid pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_INTERNAL;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool own_command_run(const struct own_command *c, struct own_result *ret, GError **error)
{
	struct catch out = { .offset = c->offset, .limit = c->limit };
	struct catch err = { .limit = ERR_MAX };
	bool ended;
	GPid pid;

	if (!start(c->arguments, &pid, &out.fd, &err.fd, error))
		return false;
	ret->out = out.kept = g_string_new(NULL);
	ret->err = err.kept = g_string_new(NULL);
	ended = catch_all(&out, &err);
	if (!ended) {
		kill(pid, SIGKILL);
		tool_error(error, EXIT_BUSY, NULL, "`sbxfs %s` was stopped: it took more than %d minutes", c->arguments[0],
			   TIME_MAX_MS / 60000);
	}
	if (out.fd >= 0)
		close(out.fd);
	if (err.fd >= 0)
		close(err.fd);
	ret->code = wait_for(pid);
	ret->size = out.size;
	return ended;
}

void own_result_clear(struct own_result *r)
{
	if (r->out)
		g_string_free(r->out, TRUE);
	if (r->err)
		g_string_free(r->err, TRUE);
	r->out = r->err = NULL;
}
