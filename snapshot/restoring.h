/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * restoring - which rows to restore when some paths are taken back to an earlier epoch
 *
 * A rename is one change, by either of its names, and so is an exchange: to take back half of it would lose an object, or show it twice. So
 * the names are closed under "shows the same object, then or now". An object is a row's node, or, without a row, the workspace path that was
 * shown: what has the row now followed that then.
 */

#include <glib.h>

#include "snapshot/store.h"

struct restoring;

/* restoring_new() - @paths are of the view at @now (an epoch, or EPOCH_LIVE) or at @then. Reads all rows of both. */
int restoring_new(struct store *s, int64_t now, int64_t then, const char *const *paths, struct restoring **ret);
void restoring_free(struct restoring *r);
typedef struct restoring restoring_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(restoring_t, restoring_free)

/* restoring_each() - what differs or not, each once. */
void restoring_each(struct restoring *r, void (*name)(uint64_t parent, const char *name, void *user),
		    void (*node)(uint64_t ino, void *user), void *user);
/* restoring_paths() - where the names were and will be; array of strings, sorted, each once, frees itself. */
GPtrArray *restoring_paths(struct restoring *r);
