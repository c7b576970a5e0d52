/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * tracked - closed paths that git tracks
 *
 * A rule closes a name; what was committed under it can still be read from the object store. Nobody should learn that late, so it is said
 * when a sandbox gets its policy. `sbxfs doctor` looks into the history, too.
 */

#include "rules/policy.h"

/* tracked_is_readable() - whether what is in the repository whose .git is in @dir ("" = the workspace) can be read in the view at all. */
bool tracked_is_readable(const struct policy *policy, const char *dir);
/* tracked_is_closed() - whether the contents of @path, below @dir, are closed. */
bool tracked_is_closed(const struct policy *policy, const char *dir, const char *path);
/* tracked_warn() - a note on standard error if there are such paths. An index of more than some thousand names is left to the doctor. */
void tracked_warn(const struct policy *policy, const char *workspace, const char *sandbox);
