/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * layered - a workspace in a temporary directory and a store over it, changed by writing rows as the mounted view does
 *
 * For tests only: every failure aborts the test.
 */

#include "snapshot/change.h"

struct layered {
	char *dir; /* holds all of it */
	char *workspace;
	struct lower *lower;
	struct store *store;
};

struct layered *layered_new(void);
void layered_free(struct layered *l);

/* The workspace, as its owner changes it. Parents are made. */
void host_write(struct layered *l, const char *path, const void *data, size_t size, mode_t mode);
void host_text(struct layered *l, const char *path, const char *text);
void host_symlink(struct layered *l, const char *path, const char *target);
void host_replace(struct layered *l, const char *path, const char *target); /* a file by a symlink */
void host_mkdir(struct layered *l, const char *path);

/* The view, as a sandboxed program changes it. Parents exist. */
void view_write(struct layered *l, const char *path, const void *data, size_t size);
void view_text(struct layered *l, const char *path, const char *text);
/* view_touch() - own times, and own content of the same bytes: a file that was written back unchanged. */
void view_touch(struct layered *l, const char *path);
void view_symlink(struct layered *l, const char *path, const char *target);
void view_mkdir(struct layered *l, const char *path);
void view_mkfifo(struct layered *l, const char *path);
void view_device(struct layered *l, const char *path, dev_t dev); /* of characters */
void view_chmod(struct layered *l, const char *path, mode_t mode);
void view_chown(struct layered *l, const char *path, uid_t id); /* also the group's */
void view_xattr(struct layered *l, const char *path, const char *name, const char *value);
void view_remove(struct layered *l, const char *path);
void view_add_name(struct layered *l, const char *from, const char *to);
void view_rename(struct layered *l, const char *from, const char *to);

/* layered_changes() - frees itself; @from and @to as for tree_open(). */
GPtrArray *layered_changes(struct layered *l, int64_t from, int64_t to, const struct change_options *options);
/* changes_text() - "A path\nR old -> new\n..." in the list's order; caller frees. */
char *changes_text(GPtrArray *changes);

/*
 * trees_differ() - the first path that git would see differ (bytes, exec bit, symlinks; not empty directories); NULL =
 * none. Caller frees.
 */
char *trees_differ(struct tree *a, struct tree *b);
