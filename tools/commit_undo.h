/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * commit_undo - `sbxfs commit --undo [ID]`: the workspace goes back to what it was before a commit
 *
 * All or nothing, and only if the workspace still has what the commit wrote. The view shows the same before and after: what
 * was committed is a pending change again, and what was changed since then still is one.
 */

#include <glib.h>
#include <stdbool.h>

struct commit_undo {
	const char *target; /* as for every command; NULL = left out */
	const char *id;	    /* NULL = the last commit */
	bool dry_run, yes, json;
};

/* commit_undo_parse() - tells TARGET and ID apart: an ID is a number, and behind the TARGET when there are both. */
bool commit_undo_parse(const GPtrArray *args, struct commit_undo *ret, GError **error);
bool commit_undo_run(const struct commit_undo *u, GError **error);
