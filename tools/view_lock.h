/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * view_lock - who has to do with the view of a sandbox just now
 *
 * A view that `sbxfs run` mounted goes with the last run. Whoever takes it down, mounts one or works with one must not meet another who does,
 * so each takes a part of these locks:
 *
 *   VIEW_RUN     shared by each run, as long as it lives. Exclusive: the view is being taken down after the last of them.
 *   VIEW_CHANGE  exclusive: somebody looks whether there is a view, and mounts it, unmounts it or deletes the sandbox.
 *   VIEW_USE     shared: a command works with the view, or with the store in its place. Exclusive: as VIEW_RUN.
 *   VIEW_KEPT    shared by the process that takes the view down after the last run, as long as it lives. Nobody waits for it.
 *
 * They are taken in this order, and who cannot have VIEW_USE exclusively gives VIEW_RUN back before waiting: a command may take long, and runs
 * go on meanwhile. The names are those of the sandboxes; there need be no sandbox of that name yet.
 *
 * These are fcntl(2) record locks in STATE/.views.lock, four bytes for each name: such a lock belongs to a process, ends with it however it ends, and
 * is not inherited, so the serving process and a confined program have none. A process may take each several times; while one of its threads waits, the
 * others wait for that one.
 */

#include <glib.h>
#include <stdbool.h>

enum view_part { VIEW_RUN, VIEW_CHANGE, VIEW_USE, VIEW_KEPT };
enum view_hold { VIEW_FREE, VIEW_SHARED, VIEW_EXCLUSIVE };

/* view_lock() - waits. Makes the directory of the stores if need be. view_lock_try() - false when another process is in the way. */
bool view_lock(const char *name, enum view_part part, enum view_hold how, GError **error);
bool view_lock_try(const char *name, enum view_part part, enum view_hold how);
/* view_unlock() - once for each time it was taken. */
void view_unlock(const char *name, enum view_part part);
/* view_lock_of_others() - how other processes hold it. */
enum view_hold view_lock_of_others(const char *name, enum view_part part);
/* view_lock_forget() - in a child after fork(2), which has none of its parent's. Closes nothing. */
void view_lock_forget(void);

/*
 * view_change_begin() - VIEW_CHANGE and VIEW_USE, at a moment when no view is there that only waits to be taken down. EXIT_BUSY when a command works
 * with such a view for long. view_change_end() gives both back.
 */
bool view_change_begin(const char *name, GError **error);
void view_change_end(const char *name);
