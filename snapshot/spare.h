/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * spare - names that commits keep, for their undoing, of files that the workspace still has
 *
 * A deleted or replaced name of a file with several names is a pre-image in the store: stat(2) counts it as a link, and no path of the workspace
 * leads there. Found when first asked for, by looking at each pre-image once; not thread-safe.
 */

#include "snapshot/lower.h"

struct spare;

/* spare_new() - of the commits of the store in @store_dir. */
struct spare *spare_new(const char *store_dir);
void spare_free(struct spare *s);
/* spare_forget() - there are others by now. */
void spare_forget(struct spare *s);
/* spare_leave_out() - from the links that @print counts. */
void spare_leave_out(struct spare *s, struct fingerprint *print);
