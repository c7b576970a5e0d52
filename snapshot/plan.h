/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * plan - from a change list to the ordered steps of one commit
 *
 * First every path is resolved against the workspace (snapshot/conflict.h); if nothing clashes, the objects to come are staged and the
 * journal is complete. The order of the steps:
 *
 *   1. files of the workspace that are put elsewhere and have other names are held
 *   2. directories, parents first; a file that becomes a directory
 *   3. files: new ones, replaced ones, moved ones, links
 *   4. deletions, deepest first
 *   5. directories that become something else: they are empty by now
 *   6. attributes of files, then of directories, deepest first: nothing changes their times afterwards
 */

#include "snapshot/apply.h"
#include "snapshot/conflict.h"
#include "snapshot/journal.h"
#include "snapshot/stage.h"

struct plan;

/* plan_new() - @commits is the directory of commits; all borrowed. */
struct plan *plan_new(const struct apply_job *job, int commits, struct notes *notes);
void plan_free(struct plan *p);
typedef struct plan plan_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(plan_t, plan_free)

/* plan_resolve() - 0, or -errno with @error. The conflicts found are those of plan_conflicts(). */
int plan_resolve(struct plan *p, GError **error);
GPtrArray *plan_conflicts(struct plan *p); /* borrowed */
/* plan_set_files() - where the objects will be; decides which steps have to copy. Before plan_resolve() when it is to be staged. */
int plan_set_files(struct plan *p, int files);
/* plan_stage() - makes the objects; may find conflicts as well. */
int plan_stage(struct plan *p, GError **error);
/* plan_journal() - borrowed; complete after plan_stage(). */
struct journal *plan_journal(struct plan *p);
void plan_counts(const struct plan *p, uint64_t *ret_written, uint64_t *ret_deleted);
