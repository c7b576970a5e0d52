/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * applied - committing what the view of a struct layered holds, and describing trees so that they can be compared
 *
 * For tests only: every failure aborts the test.
 */

#include "layered.h"
#include "snapshot/apply.h"

/* A commit in the making. */
struct committing {
	struct tree *to;
	struct apply_job job;
};
/* committing_init() - the changes between the workspace and the view as they are now. @paths as in struct change_options. */
void committing_init(struct committing *c, struct layered *l, const char *const *paths);
void committing_clear(struct committing *c);

/* commit_ok() - applies, finishes, and checks that the workspace is what the view was. */
void commit_ok(struct layered *l, struct apply_result *ret);
/* commit_refused() - applies, and checks that nothing changed; the conflicts as "kind path\n...", caller frees. */
char *commit_refused(struct layered *l);

/*
 * A line for each object: path, type, mode, owner, size, hash or target, mtime (not of directories), user xattrs, and by
 * which other name it was met. Sorted;
 * caller frees.
 */
/* Which names are one file. Not told where the workspace has a file system of its own: see snapshot/apply.h. */
extern bool links_arrive;
char *disk_describe(const char *dir);
char *tree_describe(struct tree *t);
/* describe_same() - else says on standard error where they part. */
bool describe_same(const char *a, const char *b);

/* One of everything that a commit can meet, in the workspace and in the view. */
void scene_host(struct layered *l);
void scene_view(struct layered *l);

void host_hardlink(struct layered *l, const char *from, const char *to);
void view_hardlink(struct layered *l, const char *from, const char *to);
char *host_at(struct layered *l, const char *path);
char *host_read(struct layered *l, const char *path);
/* host_on_tmpfs() - the workspace of @l on a file system of its own; false when this process may not. Before anything is in it. */
bool host_on_tmpfs(struct layered *l);
/* Longer than a tick of the kernel's clock. */
void tick(void);
