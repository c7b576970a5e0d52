/* SPDX-License-Identifier: MIT */
/*
 * overlay_outside - what the owner of the workspace does while it is mounted
 */
#include <errno.h>

#include "fs/overlay_private.h"

bool dir_watch(struct overlay *o, struct node *n)
{
	g_autofree char *path = NULL;

	if (n->watched || !n->is_lower || !o->watch)
		return n->watched;
	path = node_lower_path(n);
	n->watched = path && watch_add(o->watch, n->ino, path);
	return n->watched;
}

bool dentry_is_watched(const struct dentry *d)
{
	g_autofree char *dir = NULL, *path = NULL;

	if (!d->parent->watched)
		return false;
	if (!d->node || !d->node->origin)
		return true;
	/* It shows a workspace object: the one at this place of the directory, which is watched, or one moved here from elsewhere? */
	dir = node_lower_path(d->parent);
	path = dir ? path_join(dir, d->name) : NULL;
	return g_strcmp0(path, d->node->origin) == 0;
}

/*
 * The owner changed something. What is forgotten is only what the kernel may have cached; the next lookup sees what is there. Pages go
 * before the name is expired: the lookup that follows brings the new size. Expiring waits for a lookup in flight, whose answer may be
 * older than the change, so that one counts no longer either.
 */
static void outside_change(struct overlay *o, struct node *dir, const char *name, enum watch_event event)
{
	struct dentry *d = name ? dentry_find(dir, name) : NULL;

	overlay_leave_dir(o);
	switch (event) {
	case WATCH_NAME:
		if (d && d->born > 0 && (!d->node || !node_follows(d->node)))
			return; /* ours; the change is for the commit to find */
		invalidator_expire(o->invalidator, dir->ino, name);
		invalidator_inode(o->invalidator, dir->ino, true);
		break;
	case WATCH_DATA:
	case WATCH_ATTR:
		if (d && d->node)
			invalidator_inode(o->invalidator, d->node->ino, event == WATCH_DATA && node_follows(d->node));
		invalidator_expire(o->invalidator, dir->ino, name);
		break;
	case WATCH_GONE:
		dir->watched = false;
		for (d = dir->names; d; d = d->next_of_node)
			invalidator_expire(o->invalidator, d->parent->ino, d->name);
		invalidator_inode(o->invalidator, dir->ino, true);
		break;
	case WATCH_SELF:
	case WATCH_OVERFLOW:
		invalidator_inode(o->invalidator, dir->ino, false);
	}
}

void node_forget_cached(struct overlay *o, struct node *n)
{
	for (struct dentry *d = n->names; d; d = d->next_of_node)
		invalidator_expire(o->invalidator, d->parent->ino, d->name);
	if (n->lookups > 0 || n->ino == ROOT_INO)
		invalidator_inode(o->invalidator, n->ino, node_follows(n));
}

static void forget_all_of(struct node *n, void *user)
{
	node_forget_cached(user, n);
}

void overlay_outside_change(uint64_t ino, const char *name, enum watch_event event, void *user)
{
	struct overlay *o = user;
	struct node *dir;

	overlay_lock(o);
	if (event == WATCH_OVERFLOW) {
		node_foreach(o->nodes, forget_all_of, o);
	} else {
		dir = node_find(o->nodes, ino);
		if (dir)
			outside_change(o, dir, name, event);
	}
	overlay_unlock(o);
}
