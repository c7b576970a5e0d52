/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * pathspec - the part of a tree that a command was limited to
 *
 * An item is a path, which stands for itself and all below it, or a glob when it contains one of * ? [ - as fnmatch(3)
 * without FNM_PATHNAME, so "src*.c" reaches into subdirectories as git's pathspecs do; a glob that matches a directory
 * covers all below it. A path that contains such a character can also be given literally. "" and "." are the whole
 * tree.
 */

#include <glib.h>

struct pathspec;

enum pathspec_match {
	PATHSPEC_NONE,	/* neither it nor anything below */
	PATHSPEC_BELOW, /* not the path itself, but maybe something below it */
	PATHSPEC_ALL,	/* the path and all below it */
};

/* pathspec_new() - @items is NULL-terminated and copied; NULL = the whole tree. */
struct pathspec *pathspec_new(const char *const *items);
void pathspec_free(struct pathspec *p);
typedef struct pathspec pathspec_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(pathspec_t, pathspec_free)

/* pathspec_match() - @path relative to the root of the tree, "" for the root. */
enum pathspec_match pathspec_match(const struct pathspec *p, const char *path);
