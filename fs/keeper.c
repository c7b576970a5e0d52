/* SPDX-License-Identifier: MIT */
#include "fs/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/fuse_device.h"
#include "fs/heritage.h"
#include "fs/roster.h"

#define DEATHS_TIME (10 * G_TIME_SPAN_SECOND)
#define LINGER_MS 200
#define FUTILE_PAUSE (100 * G_TIME_SPAN_MILLISECOND)

struct keeper {
	struct heritage *heritage;
	sigset_t before; /* the worker's signal mask */
	int signals;
	int link; /* to the worker; its end comes with that of the last thread that does anything; -1 after it */
	struct keeper_held held;
	pid_t worker;
	bool ending; /* it was told to */
	uint64_t answers; /* at the last death */
	unsigned futile;
	int64_t deaths[KEEPER_DEATHS]; /* g_get_monotonic_time() of the last ones */
	unsigned died;
};

/* Descriptors */

#define FDS_SIZE (KEEPER_FDS * sizeof(int))

bool keeper_give(const struct keeper_held *held, const int fds[KEEPER_FDS])
{
	char byte = 0, control[CMSG_SPACE(FDS_SIZE)] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(FDS_SIZE);
	memcpy(CMSG_DATA(c), fds, FDS_SIZE);
	return sendmsg(held->link, &msg, MSG_NOSIGNAL) == 1;
}

/* The end, or what the first worker gives. */
static void receive(struct keeper *k)
{
	char byte, control[CMSG_SPACE(FDS_SIZE)];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(k->link, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(FDS_SIZE))
		memcpy(k->held.fds, CMSG_DATA(c), FDS_SIZE);
	if (n > 0)
		return;
	close(k->link);
	k->link = -1;
}

/* Signals */

static void catch_signals(struct keeper *k)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &k->before);
	k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void hand_on_signals(struct keeper *k)
{
	struct signalfd_siginfo info;

	while (read(k->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		k->ending = true;
		kill(k->worker, (int)info.ssi_signo);
	}
}

/* Until the worker's end; its status, which is not known of one that does not get out of the kernel. */
static int attend(struct keeper *k)
{
	int status;

	for (;;) {
		struct pollfd p[] = { { .fd = k->signals, .events = POLLIN }, { .fd = k->link, .events = POLLIN } };
		int r = poll(p, 2, k->link >= 0 ? -1 : LINGER_MS);
		pid_t dead;

		if (r < 0 && errno != EINTR)
			return -1;
		if (r == 0)
			return SIGKILL;
		hand_on_signals(k);
		while ((dead = waitpid(-1, &status, WNOHANG)) > 0 && dead != k->worker)
			;
		if (k->link >= 0)
			receive(k);
		if (dead == k->worker)
			return status;
		if (dead < 0 && errno != EINTR)
			return -1;
	}
}

/* Deaths */

/* More than that in so short a time would go on for ever. */
static bool too_many_deaths(struct keeper *k)
{
	uint64_t answers = __atomic_load_n(&k->heritage->answers, __ATOMIC_RELAXED);
	int64_t now = g_get_monotonic_time(), *slot = &k->deaths[k->died % KEEPER_DEATHS];
	bool many = k->died >= KEEPER_DEATHS && now - *slot < DEATHS_TIME;

	*slot = now;
	k->died++;
	k->futile = answers == k->answers ? k->futile + 1 : 0;
	k->answers = answers;
	return many || k->futile >= KEEPER_FUTILE;
}

static const char *why_not_replaced(struct keeper *k)
{
	const struct heritage *h = k->heritage;

	if (k->held.fds[KEEPER_DEVICE] < 0)
		return "the keeper does not hold the connection";
	if (!fuse_device_can_resend(h))
		return "this kernel does not send requests again (Linux 6.9 does)";
	if (!roster_is_whole(h->roster))
		return "not all names in use could be written down";
	return too_many_deaths(k) ? "too many died before it" : NULL;
}

/* Whether another worker is to follow. The log is read by people. */
static bool is_to_be_replaced(struct keeper *k, int status)
{
	g_autofree char *how = WIFSIGNALED(status) ? g_strdup_printf("signal %d", WTERMSIG(status)) :
						     g_strdup_printf("exit code %d", WEXITSTATUS(status));
	const char *why;

	if (!__atomic_load_n(&k->heritage->ready, __ATOMIC_ACQUIRE) || k->ending)
		return false;
	why = why_not_replaced(k);
	g_printerr("sbxfs: the process that serves the view ended by %s; %s%s\n", how, why ? "it is not replaced: " : "another one takes over",
		   why ? why : "");
	return !why;
}

static void start_worker(struct keeper *k, int (*serve)(struct keeper_held *held, void *user), void *user)
{
	int link[2];

	if (k->link >= 0)
		close(k->link);
	k->link = -1;
	k->worker = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0)
		return;
	k->worker = fork();
	if (k->worker == 0) {
		struct keeper_held held = k->held;

		sigprocmask(SIG_SETMASK, &k->before, NULL);
		close(k->signals);
		close(link[0]);
		held.link = link[1];
		_exit(serve(&held, user));
	}
	close(link[1]);
	k->link = link[0];
}

#define WIND_UP_MS 20
#define WIND_UP_STEPS 500 /* 10 s */

/*
 * No other worker follows. Threads of dead ones may be left in the kernel, which hold the connection, so to close it here would not end it. They wait
 * for what waits for an answer: it gets one.
 */
static void wind_up(const struct keeper *k)
{
	if (k->held.fds[KEEPER_DEVICE] < 0 || !fuse_device_can_resend(k->heritage))
		return;
	for (int i = 0; i < WIND_UP_STEPS && waitpid(-1, NULL, WNOHANG) >= 0; i++)
		fuse_device_refuse(k->held.fds[KEEPER_DEVICE], WIND_UP_MS);
}

int keeper_run(struct heritage *h, int ready_fd, int (*serve)(struct keeper_held *held, void *user), void *user)
{
	struct keeper k = { .heritage = h, .held = { .fds = { -1, -1, -1, -1 }, .link = -1 }, .link = -1 };
	int status;

	catch_signals(&k);
	for (;; h->worker++) {
		start_worker(&k, serve, user);
		if (ready_fd >= 0)
			close(ready_fd);
		ready_fd = -1;
		status = k.worker < 0 ? -1 : attend(&k);
		if (status == 0)
			return 0;
		if (status == -1 || !is_to_be_replaced(&k, status)) {
			wind_up(&k);
			return 1;
		}
		g_usleep(k.futile * FUTILE_PAUSE);
	}
}
