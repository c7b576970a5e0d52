/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * change_text - changes as the commands show them: JSON for programs, a summary for whoever has to confirm
 */

#include <glib.h>
#include <stdbool.h>

#include "snapshot/apply.h"
#include "snapshot/change.h"

/* change_json() - one element of "changes" in sbxfs.diff/1; @from NULL leaves the line counts out. Floating; NULL with an error. */
GVariant *change_json(const struct change *c, struct tree *from, struct tree *to, GError **error);
/* changes_json() - all of them, aa{sv}. */
GVariant *changes_json(GPtrArray *changes, struct tree *from, struct tree *to, GError **error);
/* changes_summary_json() - how many of each status. */
GVariant *changes_summary_json(GPtrArray *changes);

/* changes_print() - one line for each; at most @limit (0 = no limit) of those that delete nothing, but every deletion. */
void changes_print(GPtrArray *changes, unsigned limit);
/* changes_count_text() - "3 added, 1 deleted"; caller frees. */
char *changes_count_text(GPtrArray *changes);

/* conflicts_json() - {"conflicts": [...]}: what the sandbox had recorded, what the workspace has now, what the commit would write. */
GVariant *conflicts_json(GPtrArray *conflicts, GPtrArray *changes, struct store *s, struct lower *l);
/* conflicts_print() - each path and what is wrong with it, on standard error. */
void conflicts_print(GPtrArray *conflicts);
