/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * hold - who works in a view that `sbxfs run` mounted, and who takes it down
 *
 * Each run holds a shared lock for its sandbox as long as it lives. The run that mounts the view first forks a keeper,
 * a process that waits for an exclusive lock: the kernel gives it when the last run has ended, however it ended. Then
 * the keeper unmounts and is gone too. A run that ends by itself and is the only one does that itself, before it
 * returns. A view that was mounted before has no keeper and stays.
 *
 * The locks are fcntl(2) record locks in RUNTIME/run.lock, one byte for each sandbox: those belong to a process and
 * are not inherited, so the serving process and the confined program do not hold them. The price: no other file
 * descriptor of that file may be closed in this process. One more byte lets only one run at a time look whether there is a view and
 * mount it.
 */

#include <glib.h>
#include <stdbool.h>

struct hold;

/* hold_new() - of the sandbox @name; waits while a keeper is unmounting it. */
struct hold *hold_new(const char *name, GError **error);
/* hold_begin_view() - waits while another run looks for the view or mounts it; hold_end_view() lets the next one look. */
bool hold_begin_view(const struct hold *h, GError **error);
void hold_end_view(const struct hold *h);
/*
 * hold_start_keeper() - before the mount, in a process without other threads. hold_mounted() - after it: until then a
 * keeper does not know whether there will be a view.
 */
bool hold_start_keeper(struct hold *h, GError **error);
void hold_mounted(struct hold *h);
/* hold_is_shared() - another run is in the same sandbox just now. */
bool hold_is_shared(const struct hold *h);
/* hold_free() - takes the view down if it is ours to do. False when that failed. */
bool hold_free(struct hold *h, GError **error);
