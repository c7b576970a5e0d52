/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * path_args - the PATHs after "--" as paths below the root of the workspace
 *
 * An absolute path must lie in the view or in the workspace. A relative one starts at the current directory when that
 * is in either of them, else at the root. Nothing is looked up, so paths that only exist on one side, or not any
 * more, can be given; symlinks are not followed. Globs pass unchanged: they are matched against the changes.
 */

#include <glib.h>
#include <stdbool.h>

struct sandbox;

/* path_args_one() - "" for the root itself; NULL with an error for a path outside. Caller frees. */
char *path_args_one(const struct sandbox *s, const char *cwd, const char *path, GError **error);

/*
 * path_args_new() - @ret: NULL-terminated; NULL when @paths is NULL or empty or names the root: everything. Caller
 * frees with g_strfreev().
 */
bool path_args_new(const struct sandbox *s, const GPtrArray *paths, char ***ret, GError **error);
/* path_args_is_glob() - it holds a character that makes it a pattern (snapshot/pathspec.h). */
bool path_args_is_glob(const char *path);
