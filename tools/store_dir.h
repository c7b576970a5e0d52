/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * store_dir - store directories as wholes: there or not, never half
 *
 * Beside the stores lies what is no store yet, or no more, under a name with a dot in front, ".NAME.PID.new" or ".NAME.PID.removed": no sandbox
 * is found there.
 */

#include <glib.h>
#include <stdbool.h>

/* store_dir_making() - where to make what becomes the store @dir; nothing is there. Caller frees. */
char *store_dir_making(const char *dir);
/* store_dir_place() - makes @made the store @dir. EXIT_BUSY when something is there already: another command was faster. */
bool store_dir_place(const char *made, const char *dir, GError **error);
/* store_dir_drop() - deletes @made, whatever is in it. */
void store_dir_drop(const char *made);
/* store_dir_sweep() - deletes what killed commands left in @state, the directory of all stores. */
void store_dir_sweep(const char *state);

/*
 * store_dir_remove() - deletes the store @dir with all it holds. First it is renamed, so that a killed command leaves
 * a sandbox or none, never half of one. Never follows a symlink; refuses a directory that is not ours or has no
 * store.db.
 */
bool store_dir_remove(const char *dir, GError **error);
