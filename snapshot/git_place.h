/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * git_place - the git repository that a workspace lies in, reached without going through a view that may lie on top of it
 *
 * It is looked for from the workspace's root descriptor upwards, to the root of that file system. A `.git` file (worktrees,
 * submodules) is followed, a `.git` symlink is not.
 *
 * libgit2 knows repositories by path, and the path of a workspace under its own view leads into the view. So it gets a directory of
 * links into the descriptors: everything it reads and writes through them is the repository's own, but for the index and the work tree,
 * which it does not get at all. Hooks are never run by libgit2.
 */

#include "snapshot/lower.h"

struct git_place {
	int gitdir;    /* O_PATH: HEAD is here */
	int commondir; /* O_PATH: objects, refs and config; the same directory but in a worktree */
	int top;       /* O_PATH: of the work tree */
	char *prefix;  /* of the workspace in the work tree: "" or "a/b" */
};

/* git_place_find() - -ENOENT: no repository; -ELOOP: .git is a symlink. */
int git_place_find(const struct lower *l, struct git_place *ret);
void git_place_clear(struct git_place *g);
typedef struct git_place git_place_t; /* for g_auto() only: initialise with GIT_PLACE_NONE */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(git_place_t, git_place_clear)
#define GIT_PLACE_NONE { .gitdir = -1, .commondir = -1, .top = -1 }

/* git_place_link() - makes (@dirfd, @name) that directory; what was there is removed. It serves as long as @g is open. */
int git_place_link(const struct git_place *g, int dirfd, const char *name);
/* git_place_read() - a small file of the repository, "" when there is none; caller frees. */
char *git_place_read(int dirfd, const char *path);
/* git_place_has_head() - @ref is checked out, in this work tree or another one of the repository. */
bool git_place_has_head(const struct git_place *g, const char *ref);
int git_place_sync(const struct git_place *g);
