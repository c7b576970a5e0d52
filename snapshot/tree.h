/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * tree - one whole state of the sandbox, read-only: the workspace with the rows of one epoch laid over it
 *
 * TREE_LOWER, with no rows at all, is the workspace itself. Diff, commit and rollback compare two trees; the mounted view
 * (fs/overlay.h) shows the live one. Entries of a tree are values; whatever they refer to is read when asked for.
 */

#include <glib.h>
#include <stdbool.h>

#include "snapshot/content.h"
#include "snapshot/lower.h"
#include "snapshot/store.h"

struct tree;

#define TREE_LOWER (-1)

struct entry {
	char *name;         /* "" for the root */
	uint64_t ino;       /* the row's, or 0 when the entry has no row: it is the workspace's own */
	struct attr attr;   /* .mode == 0: no such entry */
	char *lower;        /* workspace path whose bytes or entries show through; NULL = none */
	int64_t content;    /* own content, or 0 */
	char *target;       /* of a symlink that is not the workspace's */
	GBytes *xattrs;     /* own ones, see own_xattrs */
	bool own_xattrs;
	GBytes *bytes;      /* of a file that no store has: see snapshot/selection.h */
	bool whiteout;      /* only from tree_rows(): the name is deleted here */
	int64_t origin;     /* of the node, 0 = none: ids for store_origin_get() */
	int64_t covers;     /* of the name, 0 = nothing was there */
};

struct entry *entry_copy(const struct entry *e);
void entry_free(struct entry *e);
typedef struct entry entry_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(entry_t, entry_free)

/* tree_open() - @epoch: a past epoch, EPOCH_LIVE, or TREE_LOWER. Borrows @s and @l, which outlive it. */
struct tree *tree_open(struct store *s, struct lower *l, int64_t epoch);
void tree_close(struct tree *t);
typedef struct tree tree_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(tree_t, tree_close)

struct store *tree_store(struct tree *t);
struct lower *tree_lower(struct tree *t);
/* path_join() - "a" and "b" give "a/b", "" and "b" give "b"; caller frees. */
char *path_join(const char *dir, const char *name);

int tree_root(struct tree *t, struct entry **ret);
/* tree_lookup() - 0 with NULL for a name that is not there. */
int tree_lookup(struct tree *t, const struct entry *dir, const char *name, struct entry **ret);
/* tree_lookup_path() - from the root, component by component; 0 with NULL when any is missing or no directory. */
int tree_lookup_path(struct tree *t, const char *path, struct entry **ret);
/* tree_list() - the visible entries of a directory, sorted by name (strcmp); array of struct entry, frees itself. */
int tree_list(struct tree *t, const struct entry *dir, GPtrArray **ret);
/* tree_rows() - only the names that have rows, whiteouts included: all that can differ from the workspace directory merged. */
int tree_rows(struct tree *t, const struct entry *dir, GPtrArray **ret);

/* Reading. A file is opened once and read by offset; symlinks and xattrs come whole. */

struct tree_file;
int tree_file_open(struct tree *t, const struct entry *e, struct tree_file **ret);
ssize_t tree_file_read(struct tree_file *f, void *buf, size_t size, uint64_t offset);
void tree_file_close(struct tree_file *f);
typedef struct tree_file tree_file_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(tree_file_t, tree_file_close)

/* tree_hash() - SHA-256 of a regular file's bytes. */
int tree_hash(struct tree *t, const struct entry *e, uint8_t ret[32]);
int tree_readlink(struct tree *t, const struct entry *e, char **ret);
int tree_xattrs(struct tree *t, const struct entry *e, GBytes **ret);
