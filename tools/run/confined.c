/* SPDX-License-Identifier: MIT */
#include "tools/run/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/output.h"
#include "tools/run/cgroup.h"
#include "tools/run/commands.h"
#include "tools/run/excerpt.h"
#include "tools/run/net.h"
#include "tools/run/platform.h"
#include "tools/run/streams.h"
#include "tools/run/syscalls.h"
#include "tools/run/usage.h"

#define TICK_MS 20
#define TICK_HURRY_MS 2
#define OPEN_LOOKS 10
#define PATIENCE_MS 5000 /* between SIGTERM and SIGKILL */
#define STATUS_SIZE 512
#define RESOLVER "/etc/resolv.conf"

/* Kept from us by the terminal's keys, or to be handed on; the program gets back what they were for us. */
static const int left_alone[] = { SIGINT, SIGQUIT, SIGTERM };

struct run {
	const struct confined *confined;
	struct streams *streams;
	char *bwrap;   /* the program */
	int filter;    /* of system calls */
	int nothing;   /* /dev/null, to be read by bwrap */
	int status[2]; /* bwrap tells of itself; read, write */
	int gate[2];   /* bwrap waits until the limits are set */
	int signals;
	sigset_t old_mask;
	struct sigaction old[G_N_ELEMENTS(left_alone)];
	pid_t pid;   /* of bwrap; 0 = it has ended */
	pid_t first; /* the first process inside; 0 = not known yet */
	char text[STATUS_SIZE];
	size_t text_used;
	int wait_status;
	int64_t started, kill_at; /* ms; 0 = nobody asked it to end */
	struct cgroup *cgroup;	  /* NULL = none could be made */
	bool counted;		  /* the kernel refuses processes above the limit */
	bool warned;
	unsigned looks;	  /* at the memory */
	int reason;	  /* the enum limit that ended it; -1 */
	GError *failure;  /* why the program was not started after all */
	pid_t foreground; /* the terminal's process group before; -1 = no terminal of ours */
	struct termios modes; /* and its modes */
};

static int64_t now_ms(void)
{
	return g_get_monotonic_time() / 1000;
}

/* Starting */

static void add_number(GPtrArray *argv, const char *option, int number)
{
	g_ptr_array_add(argv, g_strdup(option));
	g_ptr_array_add(argv, g_strdup_printf("%d", number));
}

/*
 * env(1) stands before the program: bwrap has to ignore the keys of the terminal, what it ignores is inherited, and
 * only env can undo that. It also gives the exit status of a program that does not exist.
 */
static void add_reset(GPtrArray *argv, const struct run *r)
{
	static const char *const names[] = { "INT", "QUIT", "TERM" };
	GString *signals = g_string_new(NULL);

	g_ptr_array_add(argv, g_strdup("/usr/bin/env"));
	for (unsigned i = 0; i < G_N_ELEMENTS(left_alone); i++)
		if (r->old[i].sa_handler != SIG_IGN)
			g_string_append_printf(signals, "%s%s", signals->len ? "," : "", names[i]);
	if (signals->len)
		g_ptr_array_add(argv, g_strdup_printf("--default-signal=%s", signals->str));
	g_ptr_array_add(argv, g_strdup("--"));
	g_string_free(signals, TRUE);
}

/* Names are resolved by the proxy, if at all. A link leads out of what can be seen; unreadable would be an error to some. */
static void add_resolver(GPtrArray *argv, const struct run *r)
{
	struct stat st;

	if (lstat(RESOLVER, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	g_ptr_array_add(argv, g_strdup("--perms"));
	g_ptr_array_add(argv, g_strdup("0444"));
	add_number(argv, "--ro-bind-data", r->nothing);
	g_ptr_array_add(argv, g_strdup(RESOLVER));
}

static GPtrArray *arguments(const struct run *r)
{
	static const char *const fixed[] = {
		"--die-with-parent", "--unshare-user",	     "--unshare-pid", "--unshare-ipc", "--unshare-uts",
		"--unshare-net",     "--unshare-cgroup-try", "--cap-drop",    "ALL",	       "--hostname"
	};
	GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);

	g_ptr_array_add(argv, g_strdup(r->bwrap));
	for (unsigned i = 0; i < G_N_ELEMENTS(fixed); i++)
		g_ptr_array_add(argv, g_strdup(fixed[i]));
	g_ptr_array_add(argv, g_strdup(r->confined->hostname));
	for (char **place = r->confined->places; *place; place++)
		g_ptr_array_add(argv, g_strdup(*place));
	add_number(argv, "--seccomp", r->filter);
	add_number(argv, "--json-status-fd", r->status[1]);
	add_number(argv, "--block-fd", r->gate[0]);
	add_resolver(argv, r);
	g_ptr_array_add(argv, g_strdup("--"));
	add_reset(argv, r);
	for (char *const *word = r->confined->command; *word; word++)
		g_ptr_array_add(argv, g_strdup(*word));
	g_ptr_array_add(argv, NULL);
	return argv;
}

/* In the child, before exec. Nothing of what the caller has open is inherited. */
static void become(const struct run *r, char **argv)
{
	int keep[] = { r->filter, r->nothing, r->status[1], r->gate[0] };

	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == 1 || !streams_enter(r->streams) || close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ||
	    chdir("/") < 0)
		_exit(EXIT_INTERNAL);
	for (unsigned i = 0; i < G_N_ELEMENTS(keep); i++)
		fcntl(keep[i], F_SETFD, 0);
	if (r->confined->commands && !commands_enter(r->confined->commands))
		_exit(EXIT_INTERNAL);
	execve(argv[0], argv, r->confined->environment);
	_exit(EXIT_INTERNAL);
}

static bool start(struct run *r, GError **error)
{
	g_autoptr(GPtrArray) argv = arguments(r);

	fflush(NULL);
	r->pid = fork();
	if (r->pid == 0)
		become(r, (char **)argv->pdata);
	if (r->pid < 0) {
		r->pid = 0;
		tool_error_errno(error, -errno, NULL, "fork");
		return false;
	}
	r->started = now_ms();
	close(r->status[1]);
	close(r->gate[0]);
	r->status[1] = r->gate[0] = -1;
	streams_start(r->streams);
	if (!r->confined->commands || commands_start(r->confined->commands, error))
		return true;
	waitpid(r->pid, NULL, 0);
	streams_finish(r->streams);
	return false;
}

static void record_output(const struct run *r)
{
	static const char *const names[] = { [STDOUT_FILENO] = "stdout", [STDERR_FILENO] = "stderr" };

	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		const struct excerpt *e = streams_excerpt(r->streams, fd);
		g_autofree char *text = e ? excerpt_text(e) : NULL;

		if (text && *text)
			commands_output(r->confined->commands, names[fd], text);
	}
}

/* Ending */

static void end_all(struct run *r)
{
	if (r->pid)
		kill(r->first ? r->first : r->pid, SIGKILL);
	r->kill_at = INT64_MAX;
}

static void end_for(struct run *r, enum limit which)
{
	g_autofree char *limit = limit_text(&r->confined->limits, which);

	if (r->reason >= 0)
		return;
	r->reason = which;
	output_note("stopped: the limit %s was reached", limit);
	if (r->confined->stopped)
		r->confined->stopped(limit, r->confined->user);
	end_all(r);
}

static void hand_on(struct run *r, int number)
{
	if (r->kill_at) {
		end_all(r);
		return;
	}
	r->kill_at = now_ms() + PATIENCE_MS;
	usage_signal_children(r->first, number);
}

/* Limits */

static void limit_resource(const struct run *r, enum limit which, __rlimit_resource_t resource)
{
	uint64_t value = r->confined->limits.value[which];
	struct rlimit limit = { value, value };

	/* Beside the program's there is bwrap's own process inside. */
	if (which == LIMIT_PROCESSES)
		limit.rlim_cur = limit.rlim_max = value + 1;
	if (value && prlimit(r->first, resource, &limit, NULL) < 0)
		output_note("the limit %s cannot be set: %s", limit_name(which), g_strerror(errno));
}

/*
 * The kernel counts processes for each user in the new namespace, from here on, but lets the real root have as many as
 * he likes. A control group counts those as well.
 */
static void open_gate(struct run *r)
{
	limit_resource(r, LIMIT_FILES, RLIMIT_NOFILE);
	limit_resource(r, LIMIT_PROCESSES, RLIMIT_NPROC);
	if (r->confined->net && !net_open(r->confined->net, r->first, &r->failure)) {
		end_all(r);
		return;
	}
	if (r->cgroup && !cgroup_add(r->cgroup, r->first))
		g_clear_pointer(&r->cgroup, cgroup_free);
	r->counted = geteuid() != 0 || cgroup_has_processes(r->cgroup);
	if (write(r->gate[1], "g", 1) < 0)
		g_debug("bwrap does not wait");
	close(r->gate[1]);
	r->gate[1] = -1;
}

static bool needs_ticks(const struct run *r)
{
	const uint64_t *limit = r->confined->limits.value;

	return limit[LIMIT_MEMORY] || limit[LIMIT_PROCESSES] || limit[LIMIT_CPU];
}

static void check_processes(struct run *r, const struct usage *u)
{
	uint64_t limit = r->confined->limits.value[LIMIT_PROCESSES];

	if (!limit || u->processes < limit)
		return;
	if (u->processes > limit) {
		end_for(r, LIMIT_PROCESSES);
	} else if (!r->warned && r->counted) {
		r->warned = true;
		output_note("the limit processes=%" PRIu64 " is reached, more are refused", limit);
	}
}

/* What a control group keeps is not looked for. */
static bool check_cgroup(struct run *r)
{
	const uint64_t *limit = r->confined->limits.value;
	uint64_t cpu_ms = 0;
	bool all = (!limit[LIMIT_PROCESSES] || cgroup_has_processes(r->cgroup)) &&
		   (!limit[LIMIT_MEMORY] || cgroup_has_memory(r->cgroup)) &&
		   (!limit[LIMIT_CPU] || cgroup_cpu_ms(r->cgroup, &cpu_ms));

	if (cgroup_out_of_memory(r->cgroup))
		end_for(r, LIMIT_MEMORY);
	if (limit[LIMIT_CPU] && cpu_ms > limit[LIMIT_CPU])
		end_for(r, LIMIT_CPU);
	return all && !limit[LIMIT_PROCESSES];
}

/* Looking at each open file takes longer than the rest, so it is done at each tenth look. */
static bool may_exceed_memory(struct run *r, const struct usage *u)
{
	uint64_t limit = r->confined->limits.value[LIMIT_MEMORY];

	return u->memory > limit || (r->looks++ % OPEN_LOOKS == 0 && usage_open_memory(r->first) > limit);
}

static void check_usage(struct run *r)
{
	const uint64_t *limit = r->confined->limits.value;
	struct usage u;

	if (!r->first || !needs_ticks(r) || check_cgroup(r))
		return;
	usage_read(r->first, limit[LIMIT_PROCESSES] ? limit[LIMIT_PROCESSES] + 1 : UINT64_MAX, &u);
	check_processes(r, &u);
	if (limit[LIMIT_CPU] && u.cpu_ms > limit[LIMIT_CPU])
		end_for(r, LIMIT_CPU);
	if (limit[LIMIT_MEMORY] && !cgroup_has_memory(r->cgroup) && may_exceed_memory(r, &u) &&
	    usage_exact_memory(r->first) > limit[LIMIT_MEMORY])
		end_for(r, LIMIT_MEMORY);
}

static void check_clock(struct run *r)
{
	uint64_t limit = r->confined->limits.value[LIMIT_TIME];
	int64_t now = now_ms();

	if (limit && (uint64_t)(now - r->started) >= limit)
		end_for(r, LIMIT_TIME);
	if (r->kill_at && now >= r->kill_at)
		end_all(r);
}

static int next_look(const struct run *r)
{
	uint64_t limit = r->confined->limits.value[LIMIT_TIME];
	int64_t now = now_ms(), next = INT64_MAX;

	if (r->reason < 0 && limit)
		next = r->started + (int64_t)limit;
	if (r->kill_at)
		next = MIN(next, r->kill_at);
	if (r->first && r->reason < 0 && needs_ticks(r))
		next = MIN(next, now + (geteuid() == 0 && r->confined->limits.value[LIMIT_PROCESSES] ? TICK_HURRY_MS
												     : TICK_MS));
	return next == INT64_MAX ? -1 : (int)CLAMP(next - now, 0, 60 * 1000);
}

/* Waiting */

/* The number behind "key" in what bwrap has told; -1 when it has not. */
static int told(const struct run *r, const char *key)
{
	const char *at = strstr(r->text, key);

	at = at ? strchr(at, ':') : NULL;
	return at ? atoi(at + 1) : -1;
}

static void hear(struct run *r)
{
	ssize_t n = read(r->status[0], r->text + r->text_used, sizeof(r->text) - 1 - r->text_used);

	if (n <= 0) {
		close(r->status[0]);
		r->status[0] = -1;
		return;
	}
	r->text_used += n;
	r->text[r->text_used] = '\0';
	if (r->first || told(r, "\"child-pid\"") <= 0)
		return;
	r->first = told(r, "\"child-pid\"");
	open_gate(r);
}

static void take_signal(struct run *r)
{
	struct signalfd_siginfo info;

	if (read(r->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo != SIGCHLD)
		hand_on(r, (int)info.ssi_signo);
	else if (waitpid(r->pid, &r->wait_status, WNOHANG) == r->pid)
		r->pid = 0;
}

/*
 * Whoever is to stop a fork bomb must not wait in one queue with it. Only root may do that, and only root's processes
 * are not counted by the kernel. Of this thread alone; the program was started before.
 */
static void hurry(const struct run *r)
{
	if (r->confined->limits.value[LIMIT_PROCESSES] && geteuid() == 0 && setpriority(PRIO_PROCESS, 0, -20) < 0)
		g_debug("setpriority: %s", g_strerror(errno));
}

static void attend(struct run *r)
{
	hurry(r);
	while (r->pid) {
		struct pollfd fds[] = {
			{ .fd = r->signals, .events = POLLIN },
			{ .fd = r->status[0], .events = POLLIN },
			{ .fd = r->reason < 0 ? streams_full_fd(r->streams) : -1, .events = POLLIN },
		};

		if (poll(fds, G_N_ELEMENTS(fds), next_look(r)) < 0)
			continue;
		if (fds[1].revents)
			hear(r);
		if (fds[0].revents)
			take_signal(r);
		if (fds[2].revents)
			end_for(r, LIMIT_OUTPUT);
		if (r->pid) {
			check_clock(r);
			check_usage(r);
		}
	}
	while (r->status[0] >= 0)
		hear(r);
	if (r->reason < 0 && cgroup_out_of_memory(r->cgroup))
		end_for(r, LIMIT_MEMORY);
}

/* The signals that are for the program: it has a say, we wait for its end. */
static void take_signals(struct run *r)
{
	struct sigaction hangup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaction(SIGHUP, NULL, &hangup);
	if (hangup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &r->old_mask);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC);
	r->foreground = tcgetattr(STDIN_FILENO, &r->modes) == 0 ? tcgetpgrp(STDIN_FILENO) : -1;
	for (unsigned i = 0; i < G_N_ELEMENTS(left_alone); i++) {
		const struct sigaction ignore = { .sa_handler = SIG_IGN };

		sigaction(left_alone[i], &ignore, &r->old[i]);
	}
}

/* A program that was killed leaves the terminal to a process group that is no more, and without echo and line ends if it was an editor. */
static void take_terminal_back(const struct run *r)
{
	sigset_t set, old;

	if (r->foreground != getpgrp())
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, &old);
	if (tcsetpgrp(STDIN_FILENO, r->foreground) < 0 || tcsetattr(STDIN_FILENO, TCSANOW, &r->modes) < 0)
		g_debug("the terminal is gone");
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static void give_signals_back(struct run *r)
{
	take_terminal_back(r);
	for (unsigned i = 0; i < G_N_ELEMENTS(left_alone); i++)
		sigaction(left_alone[i], &r->old[i], NULL);
	close(r->signals);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
}

/* By the system without memory, say. The program had been started, and ended with it. */
static int ended_from_outside(const struct run *r)
{
	output_note("bwrap was ended by signal %d, and everything in the run with it", WTERMSIG(r->wait_status));
	return 128 + WTERMSIG(r->wait_status);
}

static bool finish(const struct run *r, int *ret_status, GError **error)
{
	int code = told(r, "\"exit-code\"");

	if (r->failure) {
		g_propagate_error(error, r->failure);
		return false;
	}
	if (r->reason >= 0)
		*ret_status = r->reason == LIMIT_TIME ? CONFINED_TIMEOUT : CONFINED_KILLED;
	else if (code >= 0)
		*ret_status = code;
	else if (r->kill_at)
		*ret_status = CONFINED_KILLED;
	else if (r->first && WIFSIGNALED(r->wait_status))
		*ret_status = ended_from_outside(r);
	else
		return platform_explain(r->first, error);
	return true;
}

static bool open_all(struct run *r, GError **error)
{
	const uint64_t *limit = r->confined->limits.value;

	r->bwrap = platform_find_bwrap(error);
	if (!r->bwrap)
		return false;
	r->streams = streams_new(r->confined->limits.value[LIMIT_OUTPUT], r->confined->keep_output, error);
	r->filter = r->streams ? syscalls_filter(error) : -1;
	if (r->filter < 0)
		return false;
	r->nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	/* Beside the program's there is bwrap's own process inside. */
	if (needs_ticks(r))
		r->cgroup = cgroup_new(limit[LIMIT_PROCESSES] ? limit[LIMIT_PROCESSES] + 1 : 0, limit[LIMIT_MEMORY], limit[LIMIT_CPU]);
	if (pipe2(r->status, O_CLOEXEC) == 0 && pipe2(r->gate, O_CLOEXEC) == 0)
		return true;
	tool_error_errno(error, -errno, NULL, "pipe");
	return false;
}

static void close_all(struct run *r)
{
	int fds[] = { r->filter, r->nothing, r->status[0], r->status[1], r->gate[0], r->gate[1] };

	for (unsigned i = 0; i < G_N_ELEMENTS(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (r->streams)
		streams_free(r->streams);
	cgroup_free(r->cgroup);
	g_free(r->bwrap);
}

bool confined_run(const struct confined *c, int *ret_status, GError **error)
{
	struct run r = { .confined = c, .filter = -1, .nothing = -1, .status = { -1, -1 }, .gate = { -1, -1 }, .reason = -1 };
	bool ok = open_all(&r, error);

	if (ok) {
		take_signals(&r);
		ok = start(&r, error);
		if (ok) {
			attend(&r);
			streams_finish(r.streams);
			if (c->commands) {
				commands_finish(c->commands);
				record_output(&r);
			}
		}
		give_signals_back(&r);
	}
	ok = ok && finish(&r, ret_status, error);
	close_all(&r);
	return ok;
}
