/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * apply - writing a change list into the workspace, all or nothing
 *
 * Steps, in this order:
 *  1. each path is checked against what the sandbox recorded (snapshot/conflict.h); nothing is written if there is a conflict;
 *  2. every new object is staged, complete, in commit/ID/files of the store (mode, times, xattrs, owner where permitted) and synced,
 *     and the workspace is compared once more with what step 1 saw;
 *  3. the journal (snapshot/journal.h) is written and synced: from here on the commit goes forward;
 *  4. each path is changed by one rename(2) (store and workspace on one file system) or by a complete object made beside it; what was
 *     there becomes the pre-image. The path is checked once more right before, and what came out right after: if somebody was
 *     faster, everything done so far is taken back and the path is a conflict;
 *  5. directories are synced, the journal is marked applied;
 *  6. the caller tells the view (the control operation "settle" with the result's epoch and paths) and calls apply_finish().
 * A process killed in steps 1 or 2 leaves the workspace untouched; from 3 on the next apply_recover() finishes it (or, if the workspace
 * changed where the commit still had to go, takes all of it back).
 *
 * The workspace is only reached through its root descriptor, with openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS).
 * What is written may be shown in the view at paths that are not: before step 3, and before an undo, the caller has it kept (the control
 * operation "keep").
 *
 * An undo is marked as begun, then the view is told (struct undo_view), then the steps are taken back; the last one first. Those that bring
 * back old places come before all that take away new ones, and between the two the view is told again: so what was moved is never nowhere.
 * Whoever is killed after the mark leaves an undo that the next apply_recover() completes, so whatever the view made of it holds.
 *
 * One process at a time, by a lock on commit/; the others get STORE_ERROR_BUSY. Calls neither begin nor need a store transaction.
 *
 * Names that are one file in the sandbox are one in the workspace: staged objects are linked with each other, and a file of the workspace that
 * has other names goes where it is put itself (snapshot/plan_own.c). When only some of its names are committed, those are one file with what
 * the workspace has of it then, and the last commit brings the rest together. Mode, owner, times and xattrs come with any of its names.
 *
 * Absent on purpose: mtimes of workspace directories are not put back by an undo. Hard links are kept only where store and workspace share
 * a file system. Which names are one file is no change by itself: it arrives with names that are written for another reason.
 */

#include "snapshot/change.h"
#include "snapshot/conflict.h"

struct apply_job {
	struct store *store;
	struct lower *lower;
	struct tree *to;    /* of a past epoch, so that it can't change under the commit */
	int64_t epoch;      /* of @to */
	GPtrArray *changes; /* from the workspace (TREE_LOWER) to @to; struct change */
	enum text_merge merge; /* what to do with texts that both sides changed; a merged one is neither side's, but settles all the same */
	/* May be NULL. Called between files. */
	void (*progress)(uint64_t done, uint64_t total, void *user);
	void *progress_user;
};

struct apply_result {
	char *id;          /* of the commit, for undo; NULL = the workspace had nothing to be changed */
	int64_t epoch;     /* the state that was committed */
	bool undone;       /* the workspace is back at what it was before @id: "unsettle" instead, so that its changes are pending again */
	/*
	 * Every workspace path, not recursive, that now is what the tree at @epoch has (or no longer is, for deletions). Set also when @id is
	 * NULL: what the workspace had already is to be settled as well. Directories above new files may be in it without having been
	 * in the change list.
	 */
	GPtrArray *paths;
	GPtrArray *partial; /* those of @paths of which a part was committed: the view keeps what it has */
	uint64_t written, deleted;
	GPtrArray *notes; /* strings: owners that could not be set, ... */
};
void apply_result_clear(struct apply_result *r);

/* conflicts_find() - array of struct conflict (empty = none), frees itself. */
int conflicts_find(const struct apply_job *job, GPtrArray **ret, GError **error);

/*
 * apply_changes() - 0, and @ret; or, if there are conflicts, @ret_conflicts and nothing written (else that is NULL). On an error nothing
 * is written either, unless the message says so. -EBUSY when an interrupted commit is to be recovered first.
 */
int apply_changes(const struct apply_job *job, struct apply_result *ret, GPtrArray **ret_conflicts, GError **error);

/*
 * What an undo tells the view before it takes anything back, or takes back more of it after an interruption: the paths of @undone will be what
 * they were before the commit (the control operation "unfollow"). 0, or -errno and @error: then the undo that was not begun before is not, either.
 */
typedef int (*undo_view_fn)(const struct apply_result *undone, void *user, GError **error);
struct undo_view {
	undo_view_fn begins;
	/* May be NULL. What was deleted or moved is at its old place again, and nothing that the commit put elsewhere is gone yet ("refollow"). */
	undo_view_fn returns;
	void *user;
};

/*
 * apply_recover() - finish what a killed process left after step 3, drop what it left before. ret->id is NULL when there is nothing to
 * settle. Call before anything else that writes to the workspace; costs one directory listing when there is nothing to do. @view may be NULL.
 */
int apply_recover(struct store *s, struct lower *l, const struct undo_view *view, struct apply_result *ret, GError **error);

/*
 * apply_finish() - the view knows: the commit ends; pre-images stay for undo, those of an undone commit go. Rows and contents of a finished
 * commit's epoch are needed by an undo, which makes them live again: to be kept as those of a snapshot.
 */
int apply_finish(struct store *s, const char *id, GError **error);

/*
 * apply_undo() - takes a finished commit back (@id NULL: the last). @ret_conflicts: paths that no longer are what it wrote; nothing is done.
 * @view may be NULL.
 */
int apply_undo(struct store *s, struct lower *l, const char *id, const struct undo_view *view, struct apply_result *ret,
	       GPtrArray **ret_conflicts, GError **error);
/* apply_undo_check() - what it would do: the same results, but nothing is done. */
int apply_undo_check(struct store *s, struct lower *l, const char *id, struct apply_result *ret, GPtrArray **ret_conflicts, GError **error);
