/* SPDX-License-Identifier: MIT */
#include "fs/fuse_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

/* Sleeping threads that are kept for the next time that a reader waits. */
#define SPARE 2

/*
 * Between an answer and the next message of a busy caller lie some microseconds, and to sleep and be woken takes longer than they do.
 * So while messages come that closely, the reader looks out for the next for so long.
 */
#define LOOK_OUT_NS 50000

struct loop {
	struct fuse_session *session;
	const struct fuse_loop_options *options;
	int end; /* an eventfd: readable once the session ends */
	GMutex lock;
	GCond wake;
	/* under the lock: */
	bool has_reader;
	unsigned threads, sleeping;
};

/* Of a thread that serves, and whether it is the reader. */
static __thread struct loop *serves;
static __thread bool reads;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void end(struct loop *l)
{
	const uint64_t one = 1;

	fuse_session_exit(l->session);
	if (write(l->end, &one, sizeof(one)) < 0)
		g_debug("the end is known already");
}

/* The reader */

static void sleep_until_message(struct loop *l)
{
	struct pollfd fds[] = { { .fd = fuse_session_fd(l->session), .events = POLLIN }, { .fd = l->end, .events = POLLIN } };

	l->options->idle(l->options->user);
	poll(fds, G_N_ELEMENTS(fds), -1);
}

/*
 * @last: when the message before was answered, 0 = there was none. @busy: that one came soon after another, and on return, this one. False: the
 * session ends.
 */
static bool receive(struct loop *l, struct fuse_buf *buf, int64_t last, bool *busy)
{
	int r;

	for (;;) {
		if (fuse_session_exited(l->session))
			return false;
		r = fuse_session_receive_buf(l->session, buf);
		if (r != -EAGAIN && r != -EINTR)
			break;
		if (*busy && now_ns() - last < LOOK_OUT_NS)
			sched_yield();
		else
			sleep_until_message(l);
	}
	*busy = now_ns() - last < LOOK_OUT_NS;
	/* 0: unmounted. What else went wrong libfuse has said. */
	return r > 0;
}

static void read_and_serve(struct loop *l, struct fuse_buf *buf)
{
	int64_t last = 0;
	bool busy = false;

	while (reads) {
		if (!receive(l, buf, last, &busy)) {
			end(l);
			return;
		}
		fuse_session_process_buf(l->session, buf);
		last = now_ns();
	}
	/* Who reads now may be asleep already. */
	l->options->idle(l->options->user);
}

/* Threads */

/* Waits its turn. False: it is not needed any longer. */
static bool become_reader(struct loop *l)
{
	g_mutex_lock(&l->lock);
	while (l->has_reader && !fuse_session_exited(l->session) && l->sleeping < SPARE) {
		l->sleeping++;
		g_cond_wait(&l->wake, &l->lock);
		l->sleeping--;
	}
	reads = !l->has_reader && !fuse_session_exited(l->session);
	l->has_reader = l->has_reader || reads;
	g_mutex_unlock(&l->lock);
	return reads;
}

static gpointer serve(gpointer data)
{
	struct loop *l = data;
	struct fuse_buf buf = { 0 };

	serves = l;
	while (become_reader(l))
		read_and_serve(l, &buf);
	free(buf.mem);
	g_mutex_lock(&l->lock);
	l->threads--;
	g_cond_broadcast(&l->wake);
	g_mutex_unlock(&l->lock);
	return NULL;
}

/* Under the lock. */
static void start_thread(struct loop *l)
{
	GThread *thread = g_thread_try_new("serve", serve, l, NULL);

	if (!thread)
		return;
	l->threads++;
	g_thread_unref(thread);
}

void fuse_loop_may_wait(void)
{
	struct loop *l = serves;

	if (!reads)
		return;
	reads = false;
	g_mutex_lock(&l->lock);
	l->has_reader = false;
	/* Where no thread is to be had, this one reads again when it is done. */
	if (l->sleeping > 0)
		g_cond_signal(&l->wake);
	else if (l->threads < l->options->max_threads)
		start_thread(l);
	g_mutex_unlock(&l->lock);
}

/* The session ends, by a message or a signal: those that @usual lets through come during ppoll(2) only. */
static void wait_for_end(struct loop *l, const sigset_t *usual)
{
	struct pollfd p = { .fd = l->end, .events = POLLIN };

	while (!fuse_session_exited(l->session))
		ppoll(&p, 1, NULL, usual);
	end(l);
}

static void block_signals(sigset_t *ret_usual)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	pthread_sigmask(SIG_BLOCK, &set, ret_usual);
}

void fuse_loop_run(struct fuse_session *se, const struct fuse_loop_options *options)
{
	struct loop l = { .session = se, .options = options, .end = eventfd(0, EFD_CLOEXEC) };
	int fd = fuse_session_fd(se), flags = fcntl(fd, F_GETFL);
	sigset_t usual;

	if (l.end < 0 || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		g_error("the connection can't be waited for: %s", g_strerror(errno));
	g_mutex_init(&l.lock);
	g_cond_init(&l.wake);
	/* Threads that serve leave them to this one. */
	block_signals(&usual);
	g_mutex_lock(&l.lock);
	start_thread(&l);
	if (l.threads == 0)
		g_error("no thread can be started");
	g_mutex_unlock(&l.lock);
	wait_for_end(&l, &usual);
	g_mutex_lock(&l.lock);
	g_cond_broadcast(&l.wake);
	while (l.threads > 0)
		g_cond_wait(&l.wake, &l.lock);
	g_mutex_unlock(&l.lock);
	pthread_sigmask(SIG_SETMASK, &usual, NULL);
	g_cond_clear(&l.wake);
	g_mutex_clear(&l.lock);
	close(l.end);
}
