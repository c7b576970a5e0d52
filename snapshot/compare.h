/* SPDX-License-Identifier: MIT */
#pragma once

/* compare - are two entries of (possibly) different trees the same? Reads contents only when nothing else can tell. */

#include "snapshot/tree.h"

/* One entry and the tree it can be read from. */
struct side {
	struct tree *tree;
	const struct entry *entry;
};

/*
 * side_identity() - the workspace path that the object came from, whether its bytes still show through or not; NULL
 * when it was made in the sandbox. Caller frees.
 */
int side_identity(struct side s, char **ret);

/* sides_share() - both trees lie over one workspace, so equal workspace paths mean equal bytes. */
bool sides_share(struct side a, struct side b);

/*
 * sides_same_directory() - both merge the same workspace directory (or are one directory of the sandbox): only rows can
 * differ.
 */
bool sides_same_directory(struct side a, struct side b);

/* sides_known_equal() - two regular files whose bytes need not be read to know that they are equal. */
bool sides_known_equal(struct side a, struct side b);

/* sides_compare_bytes() - two regular files, up to the first difference. */
int sides_compare_bytes(struct side a, struct side b, bool *ret_equal);

int sides_compare_targets(struct side a, struct side b, bool *ret_equal);

int sides_compare_xattrs(struct side a, struct side b, bool *ret_equal);

/* sides_similarity() - of two files that differ, as snapshot/spans.h scores it; at most 99. */
int sides_similarity(struct side a, struct side b, uint8_t *ret);
