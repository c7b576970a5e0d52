/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * selection - which of some changes are taken, by file and by hunk, and the change list that comes of it
 *
 * What is on offer is a file, link or directory as a whole, or a text in parts: its hunks (snapshot/hunk.h) and, if they changed, its
 * attributes (mode, owner, xattrs). A file can only be taken apart when both sides are text, it has one name, it was not renamed, and the
 * store has all its bytes: a large file of which only pages were changed reads the others from the workspace file that a commit replaces.
 *
 * Some changes follow others and are not on offer: a new directory is taken with anything in it, a deleted one when all in it is; what is
 * below a directory that became something else, or the other way round, goes with it.
 *
 * A part is committed as a change of its own, marked ->partial, from what the workspace has to what was chosen. Its bytes are in
 * memory (entry->bytes), so the gate, the digest and the patch of it are those of any other change.
 */

#include "snapshot/change.h"
#include "snapshot/hunk.h"

struct selection;

/* One change on offer. */
struct offer {
	const struct change *change;
	struct hunks *hunks; /* NULL: as a whole */
	bool attributes;     /* beside the hunks there are attributes to choose */
	enum choice attributes_choice;
	enum choice choice; /* where there are no hunks */
};

/* selection_new() - all borrowed; nothing is read yet. @changes come from @from to @to. */
struct selection *selection_new(GPtrArray *changes, struct tree *from, struct tree *to);
void selection_free(struct selection *s);
typedef struct selection selection_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(selection_t, selection_free)

guint selection_count(const struct selection *s);
struct offer *selection_at(struct selection *s, guint i);
/* selection_load() - takes offer @i apart, if that can be done and was not yet. 0 or -errno. */
int selection_load(struct selection *s, guint i, GError **error);
/* selection_choose() - the whole of offer @i. */
void selection_choose(struct selection *s, guint i, enum choice choice);
enum choice selection_state(struct selection *s, guint i);
/* selection_count_state() - how many of those on offer are wholly @state. */
guint selection_count_state(struct selection *s, enum choice state);

/*
 * selection_taken() - what was taken, as a change list from the workspace: array of struct change in the order of the changes, which
 * the array does not own. All of it when everything was taken, so the digest is that of the changes then.
 */
int selection_taken(struct selection *s, GPtrArray **ret, GError **error);
/*
 * selection_refused() - paths that can be rolled back as nothing in them was left open; of a file in parts when at least one was
 * refused and all others were decided. Array of strings, frees itself.
 */
GPtrArray *selection_refused(struct selection *s);
