/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * roll_back - a view goes back to an earlier state, for `sbxfs rollback` and `sbxfs review`
 *
 * The state before is kept as a snapshot of its own, so it can be undone.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct attached;

struct roll_back_result {
	char *undo; /* name of the snapshot of before */
	uint64_t names, nodes;
};

/*
 * roll_back_choose() - what a rollback of @paths (globs are matched against @changes, what differs in them between epochs @now and @to) takes
 * back: these, and what was renamed or exchanged with them. EXIT_USAGE when one of them is only part of a directory that was moved. Free with
 * g_strfreev().
 */
bool roll_back_choose(struct attached *a, int64_t now, int64_t to, char **paths, const GPtrArray *changes, char ***ret, GError **error);
/* roll_back() - to epoch @to (0 = the start). @paths: not globs; NULL = everything. */
bool roll_back(struct attached *a, int64_t to, char *const *paths, bool scratch, struct roll_back_result *ret, GError **error);
