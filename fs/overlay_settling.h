/* SPDX-License-Identifier: MIT */
#pragma once

/* overlay_settling - a commit that is being settled: shared by overlay_settle.c and overlay_settle_dirs.c. With overlay->lock held. */

#include "fs/overlay_resync.h"

struct settling {
	struct overlay *overlay;
	int64_t epoch;
	GHashTable *paths;   /* committed */
	GHashTable *partial; /* those of which a part was */
	GHashTable *touched; /* the committed ones and the directories above them */
	GHashTable *moved;   /* uint64_t: directories that follow another place now */
	GPtrArray *places;   /* of the epoch: fs/overlay_places.h */
	struct changed_rows rows;
};

/* overlay_settle_dirs.c */

/*
 * settle_dir_moves() - may the directory @ino, shown at @path, follow @path from now on? Only when what it shows without rows is there: a
 * part of a renamed directory can be committed alone.
 */
int settle_dir_moves(struct settling *s, const struct node_row *dir, const char *path, bool *ret);
/*
 * settle_dirs() - directories that are no changes themselves but lie elsewhere than what they follow, where something was committed. Two
 * that are alike and changed places are no change but for what is in them.
 */
int settle_dirs(struct settling *s);
/* settle_dirs_below() - when all rows are settled: what was in directories that moved, and is in those that stay. */
int settle_dirs_below(struct settling *s);
