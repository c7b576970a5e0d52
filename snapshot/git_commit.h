/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * git_commit - a change list as a commit on a branch of the repository that the workspace lies in
 *
 * The commit's tree is that of HEAD with the changes put in. The branch is made, or moved on; index, work tree and hooks are not
 * touched, so the changes stay pending in the sandbox and absent from the workspace.
 *
 * As `git add -A` would do it:
 *  - an ignored file is left out unless HEAD has it. The .gitignore and .gitattributes files are those of the view, together with the
 *    repository's info/ and the user's own;
 *  - ends of lines follow the attributes text and eol, and core.autocrlf. A path with another filter (Git LFS) is an error, as its
 *    content would be a wrong one without the filter, and filters are programs, which are not run here;
 *  - a submodule stays at its commit; what changed inside is left out, and so is a nested repository. Nothing named .git gets in.
 * Empty directories, special files, owners, times and xattrs have no place in a git tree.
 *
 * The branch: a new one begins at HEAD. One that HEAD contains is moved forward from HEAD. One whose last commit was made here
 * before gets the next one on top; which ones those are is kept in `git-branches` of the store: the line "sbxfs-git-branches 1", then
 * lines of "REF ID". Any other branch is refused: putting HEAD's tree on top of it would silently take back what others did there. A branch
 * that is checked out somewhere is refused, unless it has no commit yet.
 *
 * The caller holds the lock on commits of the store.
 */

#include "snapshot/change.h"

#define GIT_COMMIT_ERROR (git_commit_error_quark())
GQuark git_commit_error_quark(void);
enum git_commit_error {
	GIT_COMMIT_ERROR_FAILED,
	GIT_COMMIT_ERROR_REPOSITORY, /* there is none */
	GIT_COMMIT_ERROR_REQUEST,    /* message, author or name of the branch can't be used */
	GIT_COMMIT_ERROR_BRANCH,     /* can't be moved */
	GIT_COMMIT_ERROR_FILTER,     /* a path needs a filter program, or the repository a newer libgit2 */
};

struct git_commit_job {
	struct store *store;
	struct lower *lower;
	struct tree *from, *to; /* the workspace, and an immutable state of the view */
	GPtrArray *changes;
	const char *branch;     /* with or without refs/heads/ */
	const char *message;
	const char *author;     /* "Name <address>"; NULL = as git would name the user */
	bool sign_off;
	bool dry_run;           /* everything is checked, nothing is written but unreferenced objects */
};

struct git_commit_result {
	char *id;        /* hex; NULL = git has nothing to commit, or a dry run */
	char *ref;
	uint64_t paths;  /* that the commit changes against HEAD */
	GPtrArray *notes; /* strings: what was left out and why */
};
void git_commit_result_clear(struct git_commit_result *r);

int git_commit_changes(const struct git_commit_job *job, struct git_commit_result *ret, GError **error);
