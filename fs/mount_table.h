/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * mount_table - what the kernel has mounted at a place, and taking it away. The rest of it is in fs/mount.h.
 */

#include <glib.h>
#include <stdbool.h>

/* mount_is_ours() - the topmost file system at @mountpoint is a view. Asks nothing of it. */
bool mount_is_ours(const char *mountpoint);
/* mount_is_of() - it is the view of the sandbox @name. */
bool mount_is_of(const char *mountpoint, const char *name);
/* mount_detach() - one try; @lazy: whoever is in it stays, and it goes with the last one. @ret_message: why not, caller frees; may stay as it is. */
bool mount_detach(const char *mountpoint, bool lazy, char **ret_message);
