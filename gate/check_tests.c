/* SPDX-License-Identifier: MIT */

/*
 * check_tests - the test command, run in the view
 *
 * A plain child so far: it runs with the caller's rights, over files that the sandboxed program wrote. It is the caller's command, from
 * the trusted policy or the command line. Its whole process group ends with it or when its time is over.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/check.h"

#define TAIL 400 /* bytes of the output that are kept */
#define STEP_MS 50
#define LAST_READS 16 /* a pipe holds 64 KiB, and one read takes as much */

struct child {
	pid_t pid;
	int output;
	char tail[TAIL + 1];
	size_t used;
};

G_NORETURN static void run_child(const char *command, const char *view, int output)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setpgid(0, 0);
	if (null < 0 || chdir(view) < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
		_exit(127);
	setenv("SBXFS", "1", 1);
	signal(SIGPIPE, SIG_DFL);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static int child_start(struct child *c, const char *command, const char *view)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	c->pid = fork();
	if (c->pid == 0)
		run_child(command, view, fds[1]);
	close(fds[1]);
	c->output = fds[0];
	if (c->pid > 0) {
		setpgid(c->pid, c->pid);
		return 0;
	}
	close(fds[0]);
	return -errno;
}

/* Only the end of the output is of interest. */
static void keep(struct child *c, const char *data, size_t size)
{
	if (size >= TAIL) {
		memcpy(c->tail, data + size - TAIL, TAIL);
		c->used = TAIL;
	} else {
		size_t old = MIN(c->used, TAIL - size);

		memmove(c->tail, c->tail + c->used - old, old);
		memcpy(c->tail + old, data, size);
		c->used = old + size;
	}
	c->tail[c->used] = '\0';
}

static void read_output(struct child *c)
{
	char buf[65536];
	ssize_t n = read(c->output, buf, sizeof(buf));

	if (n > 0) {
		keep(c, buf, n);
	} else if (n == 0) {
		close(c->output);
		c->output = -1;
	}
}

/* Until the child ends, which is not when all that it started does. True with a wait status; false: its time was over. */
static bool child_wait(struct child *c, unsigned seconds, int *ret_status)
{
	gint64 end = g_get_monotonic_time() + (gint64)seconds * G_USEC_PER_SEC;
	bool ended = false, late = false;

	while (!ended && !late) {
		struct pollfd p = { .fd = c->output, .events = POLLIN };

		if (poll(&p, 1, STEP_MS) > 0)
			read_output(c);
		ended = waitpid(c->pid, ret_status, WNOHANG) == c->pid;
		late = g_get_monotonic_time() > end;
	}
	kill(-c->pid, SIGKILL);
	if (!ended)
		waitpid(c->pid, ret_status, 0);
	/* What the pipe holds still, and no more: who left the group may go on writing. */
	for (unsigned i = 0; i < LAST_READS && c->output >= 0; i++) {
		struct pollfd p = { .fd = c->output, .events = POLLIN };

		if (poll(&p, 1, 0) <= 0)
			break;
		read_output(c);
	}
	if (c->output >= 0)
		close(c->output);
	return ended;
}

static void report(struct gate *g, enum gate_level level, const char *rule, char *message, const char *excerpt)
{
	struct gate_finding *f = g_new0(struct gate_finding, 1);
	const char *reason = g->job->reason;

	f->check = GATE_TESTS;
	f->level = level;
	f->rule = g_strconcat("tests/", rule, NULL);
	f->message = reason && level < GATE_REFUSE ? g_strdup_printf("%s; reason: %s", message, reason) : g_strdup(message);
	f->excerpt = excerpt && *excerpt ? g_strdup(excerpt) : NULL;
	gate_report_finding(g, f);
	g_free(message);
}

/* Nothing ran. That is a human's to accept, unless nobody asked for tests by name. */
static void report_missing(struct gate *g, bool wanted, char *message)
{
	report(g, wanted && !g->job->reason ? GATE_REVIEW : GATE_PASS, "missing", message, NULL);
}

static void report_failed(struct gate *g, char *message, const char *excerpt)
{
	report(g, g->job->reason ? GATE_REVIEW : GATE_REFUSE, "failed", message, excerpt);
}

static void run(struct gate *g, struct gate_test *t)
{
	const unsigned seconds = g->config->test_seconds;
	struct child c = { .output = -1 };
	gint64 start = g_get_monotonic_time();
	int r = child_start(&c, t->command, g->job->view), status = 0;

	if (r < 0) {
		report_missing(g, true, g_strdup_printf("the test command can't be started: %s", g_strerror(-r)));
		return;
	}
	t->ran = child_wait(&c, seconds, &status);
	t->duration = (g_get_monotonic_time() - start) * 1000;
	t->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (!t->ran)
		report_failed(g, g_strdup_printf("the tests were stopped after %u s: %s", seconds, t->command), c.tail);
	else if (t->status != 0)
		report_failed(g, g_strdup_printf("the tests fail with status %d after %.1f s: %s", t->status, t->duration / 1e9, t->command),
			      c.tail);
	else
		report(g, GATE_PASS, "passed", g_strdup_printf("the tests pass in %.1f s: %s", t->duration / 1e9, t->command), NULL);
}

static int tests_finish(struct gate *g, GError **error)
{
	struct gate_test *t = &g->result->test;

	(void)error;
	t->command = g_strdup(g->config->test);
	t->reason = g_strdup(g->job->reason);
	if (!t->command)
		report_missing(g, g->config->tests_named, g_strdup("no tests ran: the policy has no test command"));
	else if (!g->job->view)
		report_missing(g, true, g_strdup("no tests ran: they run in the view, and it is not mounted"));
	else
		run(g, t);
	return 0;
}

const struct check check_tests = { .name = "tests", .finish = tests_finish };
