/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * git_history - the names that files have, or once had, in the commits of a repository of the workspace
 *
 * Their contents are readable through .git, whatever the rules say of the names today. Reads objects only: nothing of the
 * repository's configuration is run, nothing is written.
 */

#include <glib.h>

#include "snapshot/lower.h"

/* @path: as bytes, from the repository's top; @commit: hexadecimal id of the newest commit looked at that touched it. */
typedef void (*git_history_fn)(const char *path, const char *commit, void *user);

/*
 * git_history_each() - @fn once for each path that a commit touched to which a branch, a tag or HEAD leads, newest first. @dir: where .git is,
 * relative to the workspace, "" for its top. 0; 1 when it stopped after @max commits; -EIO with @error set when it is no repository that
 * can be read.
 */
int git_history_each(const struct lower *l, const char *dir, unsigned max, git_history_fn fn, void *user, GError **error);
