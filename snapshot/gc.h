/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * gc - gives back what nothing shows any more
 *
 * A past version of a row stays while a snapshot sees it, a commit that can be undone, or somebody who reads an epoch
 * without a name (@pins). A content stays while a row or another content's base needs it, an origin while a row or a
 * content does. The rest goes, in many short transactions, so that a mounted view can go on in between. Automatic snapshots (their names start with '@') go first, if wanted.
 *
 * The space in the index serves what is written next; its file does not shrink.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "snapshot/store.h"

struct gc;

struct gc_options {
	bool automatic;	    /* the automatic snapshots, too */
	bool dry_run;	    /* only count; all steps are one transaction then, which nothing may come between */
	const int64_t *pins; /* @pin_count epochs; read by the first step */
	unsigned pin_count;
};

struct gc_result {
	GPtrArray *snapshots; /* names of the automatic ones that went; owned by the gc */
	uint64_t versions;    /* of names and nodes */
	uint64_t contents;
	uint64_t bytes; /* of contents, as far as the store held them */
};

struct gc *gc_new(struct store *s, const struct gc_options *options);
/*
 * gc_step() - under the caller's lock, not in a transaction: 1 = there is more to do, 0 = done, or -errno (-EUCLEAN when the
 * journal of a commit can't be read: nobody knows then what its undo needs).
 */
int gc_step(struct gc *g);
const struct gc_result *gc_result(const struct gc *g);
void gc_free(struct gc *g);
typedef struct gc gc_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(gc_t, gc_free)
