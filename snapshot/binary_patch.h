/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * binary_patch - "GIT binary patch", the part of a patch for contents that are not text
 *
 * Up to some MiB libgit2 finds the difference. Beyond that both files are read in pieces and the difference is what
 * stayed in place (blocks at equal offsets) and what stayed at the end: one byte changed in a huge file gives a patch
 * of some hundred bytes, in constant memory. The way back (for git apply -R) is left out where it would be a huge file
 * in full; git does not require it.
 */

#include "snapshot/blob.h"
#include "snapshot/diff.h"

int binary_patch(const struct blob *before, const struct blob *after, diff_write write, void *user, GError **error);
