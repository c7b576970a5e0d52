/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * git_tracked - the names below a workspace that its git repository tracks: those in the index
 *
 * Reads the index and nothing else, so it costs the same whatever the history. git_history.h has what was committed once.
 */

#include "snapshot/lower.h"

/* @path: as bytes, relative to the workspace. */
typedef void (*git_tracked_fn)(const char *path, void *user);

/*
 * git_tracked_each() - 0; 1 when the index is larger than @max bytes and was not looked at; -ENOENT without a repository or an index; -EIO
 * for one that libgit2 cannot read.
 */
int git_tracked_each(const struct lower *l, uint64_t max, git_tracked_fn fn, void *user);
