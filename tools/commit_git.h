/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * commit_git - `sbxfs commit --git` and `--patch`: the changes as something git takes, instead of into the workspace
 *
 * The changes stay pending in the view, as the workspace does not have them.
 */

#include <glib.h>
#include <stdbool.h>

#include "snapshot/git_commit.h"

struct attached;

struct commit_git {
	char *branch; /* NULL = not asked for */
	char *message, *author;
	gboolean sign_off;
	char *patch; /* file, "-" for standard output; NULL = not asked for */
	struct git_commit_result result;
};
void commit_git_clear(struct commit_git *g);

/* commit_git_check() - options that belong together. */
bool commit_git_check(const struct commit_git *g, GError **error);
/* commit_git_make() - the commit; with @dry_run only looks whether it could be made. */
bool commit_git_make(struct commit_git *g, struct attached *a, struct tree *from, struct tree *to, GPtrArray *changes,
		     bool dry_run, GError **error);
/* commit_git_print() - the commit's id is the last line. */
void commit_git_print(const struct commit_git *g);
/* commit_git_write_patch() - a file appears whole, or stays what it was. */
bool commit_git_write_patch(const struct commit_git *g, struct attached *a, struct tree *from, struct tree *to, GPtrArray *changes,
			    GError **error);
