/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * file_tree - the changed paths as a tree of links, each to the part of the page that shows it
 *
 * Directories with one thing in them are one line ("src/client/"). Below FILE_TREE_DEPTH levels names keep the rest of their path: how
 * deep directories nest is the sandboxed program's choice, and browsers stop nesting after some hundred elements.
 */

#include <glib.h>
#include <stdint.h>

#include "snapshot/change.h"

#define FILE_TREE_DEPTH 40

struct file_tree_item {
	const struct change *change;
	guint number; /* its part of the page: #fN */
	uint64_t added, removed;
	const char *level; /* of the gate's worst finding that is no mere note; NULL = none */
};

/* file_tree() - appends the tree of @items, sorted by path. */
void file_tree(GString *out, const struct file_tree_item *items, guint n);
/* file_tree_counts() - "+3 -1", marked up; nothing for no lines. */
void file_tree_counts(GString *out, uint64_t added, uint64_t removed);
