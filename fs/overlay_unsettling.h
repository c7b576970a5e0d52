/* SPDX-License-Identifier: MIT */
#pragma once

/* overlay_unsettling - an undo that the view is told: shared by overlay_unsettle.c and overlay_unsettle_dirs.c. With overlay->lock held. */

#include "fs/overlay_places.h"

struct unsettling {
	struct overlay *overlay;
	int64_t epoch;
	bool early;	     /* the workspace still has what was committed */
	bool half;	     /* it has that and the old places */
	bool refollowed;     /* that was told before */
	GHashTable *touched; /* these, and the directories above them */
	GPtrArray *places;   /* of the epoch */
	GHashTable *restored; /* uint64_t: nodes that got their row back */
	GHashTable *gone;     /* "parent/name": deleted since the commit, and without a row from now on */
	struct changed_rows rows;
};

/* overlay_unsettle.c */

/* unsettle_node() - the row of @ino has what is its own again. */
int unsettle_node(struct unsettling *u, uint64_t ino);
/* unsettle_covers() - what @now covers is what it covered before the commit. A deletion of what was never there needs no row. */
int unsettle_covers(struct unsettling *u, struct name_row *now, const struct name_row *then);

/* overlay_unsettle_dirs.c */

/* unsettle_dirs() - before the paths that were committed; finds @u->places. */
int unsettle_dirs(struct unsettling *u);
/* unsettle_dirs_numbers() - after them: what the kernel knows in these directories without a row keeps its number. */
int unsettle_dirs_numbers(struct unsettling *u);
