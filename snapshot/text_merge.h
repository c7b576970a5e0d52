/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * text_merge - a file that both sides changed, as one text with the changes of both
 *
 * The base is the text that the sandbox kept when it first changed the file (snapshot/origin_base.h); without it, and for anything
 * that is no text, there is no merge.
 */

#include "snapshot/tree.h"

enum text_merge {
	TEXT_MERGE_NONE,
	TEXT_MERGE_CLEAN,   /* only where the changes do not touch each other */
	TEXT_MERGE_MARKERS, /* else both versions, between conflict markers */
};

/*
 * text_merge() - @path of the workspace (@now: its attributes) with @sandbox, an entry of @to. *@ret is NULL when they can't be
 * merged; @ret_clean is false when markers are in it.
 */
int text_merge(struct tree *to, const struct entry *sandbox, const char *path, const struct attr *now, int64_t base,
	       enum text_merge how, GBytes **ret, bool *ret_clean);
