/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * store_dir - taking a store directory away
 */

#include <glib.h>
#include <stdbool.h>

/*
 * store_dir_remove() - deletes the store @dir with all it holds. First it is renamed, so that a killed command leaves
 * a sandbox or none, never half of one. Never follows a symlink; refuses a directory that is not ours or has no
 * store.db.
 */
bool store_dir_remove(const char *dir, GError **error);
