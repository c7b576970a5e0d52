/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * overlay_resync - memory follows the store after rows were changed in bulk (rollback, settling a commit)
 *
 * Called with overlay->lock held, after the transaction that changed the rows was committed.
 */

#include "fs/overlay_private.h"

struct changed_name {
	uint64_t parent;
	char *name;
};

/* Which rows changed, each at least once. */
struct changed_rows {
	GArray *names; /* struct changed_name */
	GArray *nodes; /* uint64_t */
};

void changed_rows_init(struct changed_rows *c);
void changed_rows_clear(struct changed_rows *c);
/* Usable as the callbacks of store_rows_since(). */
void changed_rows_add_name(uint64_t parent, const char *name, void *changed_rows);
void changed_rows_add_node(uint64_t ino, void *changed_rows);

/* overlay_resync() - and tells the kernel to forget all of it. Nodes that lost their last name live on as long as the kernel holds them. */
int overlay_resync(struct overlay *o, const struct changed_rows *c);

/*
 * overlay_settle.c: settle_prints() - what a directory without rows of its own shows has a new place, and so other inodes: the nodes that
 * are known stay the same.
 */
void settle_prints(struct overlay *o, struct node *dir);
