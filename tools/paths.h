/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * paths - where sandboxes, sockets and profiles lie
 *
 *   $XDG_STATE_HOME/sbxfs/NAME/         the store of a sandbox (default ~/.local/state)
 *   RUNTIME/NAME.sock, RUNTIME/NAME/mnt its control socket and the default mountpoint
 *
 * RUNTIME is $XDG_RUNTIME_DIR/sbxfs; where that variable is not set or names somebody else's directory,
 * /run/user/UID/sbxfs, else /tmp/sbxfs-UID. A directory of ours is only used when it belongs to us and nobody else
 * may enter it.
 */

#include <glib.h>
#include <stdbool.h>

/* paths_state_dir() - the parent of all stores; need not exist. Caller frees. */
char *paths_state_dir(GError **error);
/* paths_make_private_dir() - makes @dir (0700) and what is missing above it; fails when it is not ours alone. */
bool paths_make_private_dir(const char *dir, GError **error);
/* paths_runtime_dir() - made when missing; paths_runtime_place() - need not exist. Caller frees. */
char *paths_runtime_dir(GError **error);
char *paths_runtime_place(void);
/* paths_socket(), paths_default_mountpoint() - of the sandbox @name in @runtime. Caller frees. */
char *paths_socket(const char *runtime, const char *name);
char *paths_default_mountpoint(const char *runtime, const char *name);
/*
 * paths_built_profiles() - the shipped profiles in the source, for a program that runs from its build directory; else
 * NULL.
 */
const char *paths_built_profiles(void);

/*
 * paths_resolve() - absolute and without symlinks, also when the last component is a mount whose process is gone
 * (which cannot be looked at). NULL with errno set. Caller frees.
 */
char *paths_resolve(const char *path);
/* paths_cwd() - the current directory without symlinks (the shell's $PWD may have some). Caller frees. */
char *paths_cwd(void);
/*
 * paths_below() - the part of @path below the directory @dir, "" for @dir itself, NULL when it is elsewhere. Borrowed
 * from @path.
 */
const char *paths_below(const char *path, const char *dir);
