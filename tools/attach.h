/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * attach - a sandbox opened for one command, mounted or not
 *
 * While a view is mounted its process does what changes the sandbox, asked over the control socket; while none is,
 * this process holds the store itself and does the same by the same operations. Beside that there is always a reader
 * of the store and the workspace as it is under any mount, so that diff and commit read the same things in both
 * cases.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "snapshot/change.h"
#include "snapshot/lower.h"
#include "snapshot/store.h"

struct apply_result;
struct control;
struct policy;
struct sandbox;

enum attach_mode {
	/*
	 * To look: never takes the store's lock. ->control is NULL when nobody serves the sandbox, ->lower when it
	 * cannot be opened.
	 */
	ATTACH_READ,
	/* To change it, or to read one fixed state. Waits while a view is taken down after the last run, and keeps it from being taken down. */
	ATTACH_CONTROL,
};

struct attached {
	struct sandbox *sandbox; /* owned */
	struct control *control;
	struct store *store; /* read-only */
	struct lower *lower;
	GError *lower_error;	  /* why ->lower is NULL */
	struct policy *policy;	  /* the one in force */
	bool with_scratch;	  /* attached_shows() lets scratch paths through */
	int commit_lock;	  /* -1 */
	bool uses_view;		  /* has VIEW_USE (tools/view_lock.h) */
	int64_t pinned;		  /* an epoch, or -1 */
	struct local_view *local; /* what stands in for the process of a view, or NULL */
};

/* attached_open() - resolves @target (see sandbox_resolve()) and opens it; close with attached_close(). */
struct attached *attached_open(const char *target, enum attach_mode mode, GError **error);
/* attached_open_sandbox() - the same for a sandbox found already; takes @s, also on failure. */
struct attached *attached_open_sandbox(struct sandbox *s, enum attach_mode mode, GError **error);
void attached_close(struct attached *a);
typedef struct attached attached_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(attached_t, attached_close)

/*
 * attached_lock_commits() - one at a time: commit, rollback and what an interrupted commit left to do. Waits a
 * little, then EXIT_BUSY. First of all finishes what a killed commit had begun.
 */
bool attached_lock_commits(struct attached *a, GError **error);
/* attached_unlock_commits() - gives it back before attached_close() would. */
void attached_unlock_commits(struct attached *a);
/* attached_recover() - the latter alone, unless somebody is at it. */
bool attached_recover(struct attached *a, GError **error);

/* attached_pin() - a state of the view that stays as it is until attached_close(). */
bool attached_pin(struct attached *a, int64_t *ret_epoch, GError **error);
/* attached_epoch() - of the snapshot @name; EXIT_NOT_FOUND lists those that exist. */
bool attached_epoch(struct attached *a, const char *name, int64_t *ret_epoch, GError **error);
/*
 * attached_keep() - @paths (strings, without a NULL at the end) of the workspace are about to be written by the commit of @epoch, or put back
 * to what they were before it: what the view shows of them elsewhere stays as it is.
 */
bool attached_keep(struct attached *a, int64_t epoch, const GPtrArray *paths, GError **error);
/* attached_undo() - apply_undo(); the view goes on showing what the commit wrote. attached_finish() is to follow. */
bool attached_undo(struct attached *a, const char *id, struct apply_result *ret, GPtrArray **ret_conflicts, GError **error);
/*
 * attached_finish() - the view takes over from the workspace what a commit has written, and the commit ends; what an
 * undo has taken back is pending in the view again.
 */
bool attached_finish(struct attached *a, const struct apply_result *result, GError **error);

/* attached_has_lower() - false with the reason as @error: for what was opened with ATTACH_READ. */
bool attached_has_lower(const struct attached *a, GError **error);

/*
 * attached_shows() - a change_filter with a struct attached: what the policy denies, hides or keeps in the sandbox is
 * left out.
 */
bool attached_shows(const char *path, const char *lower_path, bool is_dir, void *user);
/* attached_changes() - changes_between() through that filter. @ret frees itself. */
bool attached_changes(struct attached *a, struct tree *from, struct tree *to, char **paths, bool no_hash,
		      GPtrArray **ret, GError **error);
/* attached_count_changes() - how many paths differ from the workspace right now. */
bool attached_count_changes(struct attached *a, uint64_t *ret, GError **error);
/*
 * attached_check_paths() - each of @paths (may be NULL) exists on one side; a typing error must not look like "no
 * changes".
 */
bool attached_check_paths(struct tree *from, struct tree *to, char **paths, GError **error);
