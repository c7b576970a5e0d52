/* SPDX-License-Identifier: MIT */
#pragma once

/* git_private - what the git_*.c files share: one repository at work. */

#include "snapshot/git_commit.h"
#include "snapshot/git_place.h"
#include "snapshot/stage.h"

struct git_commit;
struct git_index;
struct git_oid;
struct git_repository;

struct git {
	const struct git_commit_job *job;
	struct git_place place;
	char *dir;                   /* for libgit2 to live in: links to the repository, and view/ */
	struct git_repository *repo;
	struct git_index *index;     /* HEAD's tree, in memory; the repository's as libgit2 sees it */
	struct git_commit *head;     /* NULL: no commit yet */
	struct notes *notes;
};

/* git_failed() - libgit2's last message after @what. Returns -EIO. */
int git_failed(GError **error, const char *what);

/* git_tree.c: puts the changes into g->index. @ret_paths: how many of them it took. */
int git_changes_apply(struct git *g, uint64_t *ret_paths, GError **error);

/* git_branch.c: where the commit goes */

struct git_target {
	char *ref;
	struct git_commit *tip; /* NULL: a new branch */
	bool on_top;            /* of the tip; else on top of HEAD */
};
int git_target_choose(struct git *g, struct git_target *ret, GError **error);
void git_target_clear(struct git_target *b);
/* git_target_move() - from ->tip, if it is still there, to @id. @log: for the reflog. */
int git_target_move(struct git *g, const struct git_target *b, const struct git_oid *id, const char *log, GError **error);
