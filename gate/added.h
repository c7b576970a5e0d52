/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * added - which bytes of a changed file were not there before
 *
 * A line is new when the old version has it less often than the new one; moving lines around adds nothing. That takes time and
 * memory in proportion to the lines, whatever they are, which a shortest edit script does not; and what there is no room to
 * tell apart counts as new. Lines are bytes that end with '\n'; the last one need not.
 */

#include "snapshot/change.h"

struct added;

/* added_new() - @c with its two trees. Without a changed content nothing is new. */
int added_new(const struct change *c, struct tree *from, struct tree *to, struct added **ret);
void added_free(struct added *a);
typedef struct added added_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(added_t, added_free)

/* added_is_all() - the whole file is new, added_is_none() - nothing in it. */
bool added_is_all(const struct added *a);
bool added_is_none(const struct added *a);
/* added_touches() - is one of the bytes from @start to before @end new? */
bool added_touches(const struct added *a, uint64_t start, uint64_t end);
/* Counted without those that moved. */
uint64_t added_lines(const struct added *a);
uint64_t added_removed_lines(const struct added *a);
