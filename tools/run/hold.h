/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * hold - who works in a view that `sbxfs run` mounted, and who takes it down
 *
 * Each run holds VIEW_RUN (tools/view_lock.h) of its sandbox as long as it lives. The run that mounts the view first forks a keeper,
 * a process that waits to have it alone: the kernel gives it when the last run has ended, however it ended. Then, when no command works with the view
 * either, the keeper unmounts and is gone too. A run that ends by itself and is the only one does that itself, before it
 * returns. A view that was mounted before has no keeper and stays.
 */

#include <glib.h>
#include <stdbool.h>

struct hold;

/* hold_new() - of the sandbox @name; waits while its view is being taken down. */
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
