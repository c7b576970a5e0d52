/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * change_text - changes as the commands show them: JSON for programs, a summary for whoever has to confirm
 */

#include <glib.h>
#include <stdbool.h>

#include "snapshot/apply.h"
#include "snapshot/change.h"

/*
 * changes_json() - path, status and from_path of each, and whether it is partial; aa{sv}, floating. The whole of it is in
 * snapshot/change_json.h.
 */
GVariant *changes_json(GPtrArray *changes);
/* changes_summary_json() - how many of each status. */
GVariant *changes_summary_json(GPtrArray *changes);

/*
 * changes_print() - one line for each; at most @limit (0 = no limit) of those that delete nothing, but every
 * deletion.
 */
void changes_print(GPtrArray *changes, unsigned limit);
/* changes_count_text() - "3 added, 1 deleted"; caller frees. */
char *changes_count_text(GPtrArray *changes);

/*
 * conflicts_json() - {"conflicts": [...]}: what the sandbox had recorded, what the workspace has now, what the commit
 * would write.
 */
GVariant *conflicts_json(GPtrArray *conflicts);
/* conflict_sentence() - what is wrong, to be read after the path. */
const char *conflict_sentence(enum conflict_kind kind);
/* conflicts_print() - each path and what is wrong with it, on standard error. */
void conflicts_print(GPtrArray *conflicts);
