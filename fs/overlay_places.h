/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * overlay_places - where the workspace objects that have rows were shown at an epoch
 *
 * A row follows a workspace path, its origin, and may lie elsewhere in the view. Whoever writes the workspace or puts it back has to find
 * the rows that follow what is written, wherever they lie. Called with overlay->lock held.
 */

#include "fs/overlay_resync.h"

struct placed {
	uint64_t ino;
	uint64_t parent;
	char *name;
	char *path;		  /* in the view */
	char *origin;		  /* in the workspace */
	struct fingerprint print; /* of the object there, as it was recorded */
	bool is_dir;
};

/*
 * places_find() - of each name whose node had an origin at @epoch; array of struct placed, sorted by path, frees itself. Reads all rows of
 * that epoch. places_find_moved() does only when something lay elsewhere than what it followed; else the array is empty.
 */
int places_find(struct overlay *o, int64_t epoch, GPtrArray **ret);
int places_find_moved(struct overlay *o, int64_t epoch, GPtrArray **ret);

/* Which directory of @places a path belongs to: by where they were in the view, or by what they followed. */
struct place_map;
enum place_key { PLACE_BY_PATH, PLACE_BY_ORIGIN };
/* place_map_new() - of the directories in @places, which outlive it. */
struct place_map *place_map_new(const GPtrArray *places, enum place_key key);
void place_map_free(struct place_map *m);
/* place_map_dir() - the nearest one above @path; NULL = none. @ret_rest: what of @path is below it. */
const struct placed *place_map_dir(const struct place_map *m, const char *path, const char **ret_rest);

/*
 * place_follow() - in a transaction: the node at @p follows @path from now on, if an object of its type is there. @rows: has it then.
 */
int place_follow(struct overlay *o, const struct placed *p, const char *path, struct changed_rows *rows);
/* place_row() - in a transaction: a row for @name in @parent, which has none, that follows @path, where @print is. @ret_ino may be NULL. */
int place_row(struct overlay *o, uint64_t parent, const char *name, const char *path, const struct fingerprint *print,
	      struct changed_rows *rows, uint64_t *ret_ino);
/*
 * places_keep_numbers() - in a transaction: what the kernel knows below the directory @ino, which follows @path, without a row, and what another
 * object stands for there now, gets one: its number stays. @ino may be no node.
 */
int places_keep_numbers(struct overlay *o, uint64_t ino, const char *path, struct changed_rows *rows);
/* place_has_left() - whether what @p follows was put elsewhere: another object is there, or none. */
bool place_has_left(struct overlay *o, const struct placed *p);

/* attr_is_alike() - mode and owner. places_alike() - whether two objects of the workspace, no directories, differ in no more than their times. */
bool attr_is_alike(const struct attr *a, const struct attr *b);
int places_alike(struct overlay *o, const char *a, const char *b, bool *ret);

/* path_set_with_parents() - @paths and all directories above them but the root. Free with g_hash_table_unref(). */
GHashTable *path_set_with_parents(const char *const *paths);
