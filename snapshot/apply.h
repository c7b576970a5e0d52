/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * apply - writing a change list into the workspace, all or nothing
 *
 * Steps, in this order:
 *  1. every new file is staged, complete, in commit/ID/ of the store (same mode, times, xattrs, owner where permitted) and synced;
 *  2. conflicts are checked for each path against what the sandbox recorded (origins) - nothing is written if there is one;
 *  3. the journal (commit/ID/journal, format below) is written and synced: from here on the commit rolls forward;
 *  4. each path is replaced by one rename(2)/RENAME_EXCHANGE (store and workspace on one file system) or by an O_TMPFILE + linkat +
 *     rename in the directory; what was there moves into commit/ID/old/ as the pre-image; the path is checked once more right before;
 *  5. directories are synced, the journal is marked applied;
 *  6. the caller tells the view (the control operation "settle" with the result's epoch and paths) and calls apply_finish().
 * A process killed in step 1-2 leaves the workspace untouched; from 3 on the next apply_recover() finishes it.
 *
 * The workspace is only reached through its root descriptor, with openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS).
 */

#include "snapshot/change.h"

enum conflict_kind {
	CONFLICT_CONTENT, /* both sides changed it */
	CONFLICT_TYPE,    /* it is another kind of object now */
	CONFLICT_EXISTS,  /* new here, but the workspace has one too */
	CONFLICT_MISSING, /* changed here, deleted there */
	CONFLICT_PARENT,  /* the directory it belongs in is gone or no directory any more */
};
const char *conflict_kind_name(enum conflict_kind k);

struct conflict {
	char *path;
	enum conflict_kind kind;
};
void conflict_free(struct conflict *c);

/* conflicts_find() - array of struct conflict (empty = none), frees itself. */
int conflicts_find(GPtrArray *changes, struct tree *to, GPtrArray **ret, GError **error);

struct apply_result {
	char *id;            /* of the commit, for undo; NULL = there was nothing to do */
	int64_t epoch;       /* the state that was committed */
	GPtrArray *paths;    /* every workspace path that now is what the tree at @epoch has (or no longer is, for deletions) */
	uint64_t written, deleted;
	GPtrArray *notes;    /* strings: owners that could not be set, ... */
};
void apply_result_clear(struct apply_result *r);

/* apply_changes() - @conflicts is set (and nothing written, 0 returned) when there are any. */
int apply_changes(GPtrArray *changes, struct tree *to, struct apply_result *ret, GPtrArray **ret_conflicts, GError **error);
/* apply_recover() - finish what a killed process left after step 3, drop what it left before; ret->id NULL when there is nothing to settle. */
int apply_recover(struct store *s, struct lower *l, struct apply_result *ret, GError **error);
/* apply_finish() - the view knows: the journal ends; pre-images stay for undo. */
int apply_finish(struct store *s, const char *id, GError **error);
