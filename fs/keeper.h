/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * keeper - the process that holds a mount, so that the one which serves it may die
 *
 * The keeper forks the worker and waits. It has one thread, serves nothing, and holds descriptors that the first worker gives it: the connection
 * to the kernel, the very open file; the store's lock; and the workspace, which the view may lie on. So whatever a worker dies of, a signal or an error, the kernel keeps the
 * requests that were not answered, and no other command gets at the store; a new worker is forked, with the policy of the mount still in memory, and
 * takes over (fs/heritage.h). Programs in the view see a pause. The keeper gives up, and the view is dead as without it, when
 *   - the kernel can't send requests again (before Linux 6.9): what was given out would wait for ever, even for a SIGKILL of the one who
 *     asked. With the descriptor closed the kernel ends it with ECONNABORTED and all that comes with ENOTCONN.
 *   - KEEPER_FUTILE workers in a row died without having answered anything, or KEEPER_DEATHS within ten seconds: the cause is in what they are asked.
 *   - not all that the kernel may name could be written down.
 * A killed thread that tells the kernel what to forget may have to wait for a lock which the kernel holds for a request that only the next
 * worker answers. So that thread has a table of descriptors to itself (overlay_watcher.begin), and a worker counts as dead when those of all
 * its other threads are closed; the rest is reaped when it comes.
 *
 * SIGTERM, SIGINT and SIGHUP are handed to the worker, which unmounts. A killed keeper is not missed: the worker serves on, as the last one.
 */

#include <stdbool.h>

struct heritage;

#define KEEPER_FUTILE 5
#define KEEPER_DEATHS 100

enum keeper_fd { KEEPER_DEVICE, KEEPER_LOCK, KEEPER_WORKSPACE, KEEPER_WORKSPACE_CLONE, KEEPER_FDS };

/* What a worker gets. */
struct keeper_held {
	int fds[KEEPER_FDS]; /* its own now; -1 for the first one, which makes them and gives them to the keeper */
	int link; /* stays open as long as it lives */
};

/* keeper_give() - copies of @fds, from the first worker. */
bool keeper_give(const struct keeper_held *held, const int fds[KEEPER_FDS]);

/*
 * keeper_run() - @serve is called in each worker and returns its exit code: 0 = the view is unmounted. Returns, in the keeper, with that of
 * the last one. @ready_fd is closed here, it is the first worker's.
 */
int keeper_run(struct heritage *h, int ready_fd, int (*serve)(struct keeper_held *held, void *user), void *user);
