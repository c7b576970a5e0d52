/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * fuse_loop - the threads that serve a session
 *
 * One of them, the reader, takes a message, serves it, and looks out for the next. The others sleep where the kernel does not know them: a thread that
 * waits in read(2) is woken for each message, which the reader then has long taken. A reader that may have to wait for something else than
 * a lock of ours, a disk or a human, lets another one read meanwhile.
 */

struct fuse_session;

struct fuse_loop_options {
	unsigned max_threads;
	/* Called when no message has come for a moment after one was served, by a thread that serves. */
	void (*idle)(void *user);
	void *user;
};

/*
 * fuse_loop_run() - until the session ends: unmounted, or by a signal that libfuse handles (fuse_set_signal_handlers()), which this thread takes. Returns
 * when all requests that were begun are answered.
 */
void fuse_loop_run(struct fuse_session *se, const struct fuse_loop_options *options);
/* fuse_loop_may_wait() - by the thread that serves a request, before it may have to wait. Of other threads, nothing. */
void fuse_loop_may_wait(void);
