/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * git_dir - where the repository of a work tree or a submodule is
 *
 * There, .git is a file, "gitdir: PATH" (gitrepository-layout(5)). In that directory a work tree has a file
 * "commondir" with the way to what all its work trees share.
 */

#include <glib.h>

/*
 * git_dir_outside() - the directory that git needs outside of the workspace: absolute, without symlinks, caller frees.
 * NULL when .git is a directory, points into the workspace, or points to something that is no repository or not this
 * workspace's: what only says that it is one shall not bring a directory into sight.
 */
char *git_dir_outside(int workspace_fd, const char *workspace);
