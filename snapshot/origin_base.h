/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * origin_base - the text that a workspace file had when the sandbox first changed it: the base of a three-way merge
 *
 * Kept with the origin, in the table `base`, when a small file is copied up or another one is renamed over it; for what looks like
 * text, as nothing else can be merged. A file that was deleted and made anew has none: to read every file that is deleted would make
 * `rm -r` slow for something that is hardly ever asked for.
 */

#include "snapshot/store.h"

#define ORIGIN_BASE_MAX (64 * 1024)

/* origin_base_keep() - in a transaction; does nothing for bytes that are no small text. */
int origin_base_keep(struct store *s, int64_t origin, const void *data, size_t size);
/* origin_base_keep_file() - the same for the workspace file that @o describes; nothing when it is another one by now. */
int origin_base_keep_file(struct store *s, const struct lower *l, const struct origin *o);
/* origin_base_get() - NULL when none was kept. */
int origin_base_get(struct store *s, int64_t origin, GBytes **ret);
