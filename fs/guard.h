/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * guard - where the rules meet the nodes
 *
 * A verdict belongs to a node from the moment it is known and is computed again when a name of it, or of a directory above it,
 * changes. It is the more closed of two: of the path in the view and of the workspace path that shows through. So renaming a
 * directory frees nothing in it. The operations ask here before they act; what stat(2) shows of a guarded node is made here as well,
 * so that the kernel's own permission check refuses open(2), which never reaches us.
 */

#include "fs/node.h"
#include "fs/overlay.h"

/*
 * guard_verdict() - of a child of @dir at @path, with @lower (NULL = nothing of the workspace) showing through.
 * @inherit: @lower is the child's name below @dir's own workspace path, as for everything that was never renamed.
 */
void guard_verdict(const struct policy *p, const struct node *dir, const char *path, const char *lower, bool inherit, bool is_dir,
		   struct verdict *ret);
/* guard_root() - of the root itself. */
void guard_root(const struct policy *p, struct verdict *ret);

/* A human is to be asked (fs/overlay_ask.c). Handed on without a question it becomes a refusal: see overlay_ask(). */
#define GUARD_ASKS OVERLAY_ASKS

/* 0, GUARD_ASKS, or the errno with which the operation is refused: -EACCES (deny), -EROFS (read, mask), -ENOENT (hide). */
int guard_read(const struct verdict *v);
int guard_change(const struct verdict *v);
/* guard_read_xattr() - extended attributes have no shape to show: none of a masked file. */
int guard_read_xattr(const struct verdict *v);
/* guard_is_masked() - its bytes go through fs/mask.h. */
bool guard_is_masked(const struct verdict *v);
/* guard_create() - a name that does not exist yet; a hidden one is -EACCES, for -ENOENT would make no sense there. */
int guard_create(const struct verdict *v);
/* guard_link_above() - of a symbolic link at @path, which may not stand in for a directory above a protected name. */
int guard_link_above(const struct policy *p, const struct verdict *v, const char *path);
/* guard_look() - what shows of an object without its bytes: attributes, the names in a directory, the target of a symlink. Never asks. */
int guard_look(const struct verdict *v);
/* guard_traverse() - looking up a name in a directory. */
int guard_traverse(const struct verdict *v);

bool guard_is_hidden(const struct verdict *v);
/* guard_attr() - what stat shows: nothing but the type of a denied node, no w bits on a read-only file. */
void guard_attr(const struct verdict *v, struct attr *attr);
