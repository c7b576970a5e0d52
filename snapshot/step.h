/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * step - one change of the workspace, forward and back
 *
 * Each step finds out by itself on which side it is, by the inodes it meets, so doing or undoing it twice is harmless; that is what
 * recovery relies on. A step that meets neither of its two states returns -ESTALE and changes nothing: somebody else was there.
 *
 * Store and workspace on one file system: one rename(2), mostly RENAME_EXCHANGE, which moves the pre-image into the store by the
 * same stroke. What came out is checked: if it is not what had been seen right before, the stroke is taken back.
 * So it is with a file of the workspace that is put in one more place: STEP_HOLD links it into files/ first, and what is put then is known by
 * its inode alone, for its other names may change it.
 * Otherwise (step->copied) the object is made beside its place - a file without a name (O_TMPFILE) that gets the name at
 * once if nothing is there, or a hidden one that is exchanged with what is. step_clean() removes hidden names that a crash left.
 */

#include "snapshot/journal.h"
#include "snapshot/stage.h"

struct stepper {
	int root;  /* of the workspace, borrowed */
	int files; /* of the commit, borrowed */
	const char *id;
	struct notes *notes;
	/* Inodes whose ctime our own steps changed. NULL: a later process, which can't compare ctimes at all. */
	GHashTable *touched;
};

/* step_is_from() - what it expects is at step->from, not at its path. */
bool step_is_from(const struct step *s);
/* step_expect() - 0 when the workspace is as the plan saw it; -ESTALE. */
int step_expect(struct stepper *st, const struct step *s);
int step_do(struct stepper *st, const struct step *s);
int step_undo(struct stepper *st, const struct step *s);
/* step_return() - of STEP_MOVE, before step_undo(): the object has its old place again, and the new one still. Where it can't be linked, nothing. */
int step_return(struct stepper *st, const struct step *s);
/* step_restore_times() - of a directory that step_undo() made again and whose entries came back after it. */
int step_restore_times(struct stepper *st, const struct step *s);
/* step_is_done() - 1 when the workspace still has what the step left, 0 when not; -errno. */
int step_is_done(struct stepper *st, const struct step *s);
int step_clean(struct stepper *st, const struct step *s);
/* step_copy_old() - the pre-image of a step that copies, before the journal is written. */
int step_copy_old(struct stepper *st, const struct step *s);
