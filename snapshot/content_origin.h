/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * content_origin - which contents read a workspace file, and keeping them readable when a commit moved that file away and back
 *
 * A large content takes the pages that were not written from a workspace file, by its fingerprint. An undo brings the file back, the
 * same inode with the same times, but for the change time, which rename(2) sets.
 */

#include "snapshot/content.h"

/* content_origin_returned() - in a transaction; @id and what it builds upon accept the files that are back. Reopen it afterwards. */
int content_origin_returned(struct store *s, struct lower *lower, int64_t id);

/* content_reads_workspace() - whether @id, or what it builds upon, still takes bytes from the workspace. */
int content_reads_workspace(struct store *s, int64_t id, bool *ret);
/* contents_reading() - of those made after epoch @since: the workspace paths in @paths (a set) that they read; strings, frees itself. */
int contents_reading(struct store *s, int64_t since, GHashTable *paths, GPtrArray **ret);
