/* SPDX-License-Identifier: MIT */
/*
 * overlay_links - files of the workspace that have several names: which of them is gone by
 *
 * Its owner may take any of them away, unheard at first. A file without a row is shown by the first name that is known, one with a row by the
 * path that this follows; while another name has it still, nobody who has it open or asks for that name is to miss it.
 */
#include <errno.h>

#include "fs/overlay_private.h"

/* Whether the workspace path that @n follows still has its object. */
static bool node_origin_holds(struct overlay *o, const struct node *n)
{
	struct fingerprint print;

	return n->origin && lower_stat(o->lower, n->origin, &print) == 0 && node_same_object(n, &print);
}

int dentry_anchor_link(struct overlay *o, struct dentry *d, const struct fingerprint *print)
{
	g_autofree char *path = dentry_lower_path(d);
	struct node *n = d->node;
	int r = node_anchor(o, d->parent);

	if (r == 0)
		r = dentry_anchor(o, d, path, print);
	if (r < 0 || !node_follows(n))
		return r;
	/* The name by which the workspace was followed so far is not in the view any more, or not in the workspace: follow this one. */
	return (n->names == d && !d->next_of_node) || !node_origin_holds(o, n) ? node_follow(o, n, path, print) : 0;
}

int node_leave(struct overlay *o, struct node *n, const struct dentry *leaving)
{
	g_autofree char *left = dentry_lower_path(leaving);

	if (!node_follows(n) || node_is_dir(n) || n->row.born == 0 || n->row.attr.nlink == 0 || g_strcmp0(left, n->origin) != 0)
		return 0;
	for (const struct dentry *d = n->names; d; d = d->next_of_node) {
		g_autofree char *path = d != leaving ? dentry_lower_path(d) : NULL;
		struct fingerprint print;

		if (path && lower_stat(o->lower, path, &print) == 0 && node_same_object(n, &print))
			return node_follow(o, n, path, &print);
	}
	return 0;
}

/* Whether the workspace has the object of @d's node at the name's own path. @ret_path may be NULL. */
static bool dentry_holds(struct overlay *o, const struct dentry *d, char **ret_path, struct fingerprint *ret_print)
{
	g_autofree char *path = dentry_lower_path(d);

	if (!path || lower_stat(o->lower, path, ret_print) < 0 || !node_same_object(d->node, ret_print))
		return false;
	if (ret_path)
		*ret_path = g_steal_pointer(&path);
	return true;
}

int node_follow_other(struct overlay *o, struct node *n)
{
	struct fingerprint print;

	for (const struct dentry *d = n->names; d; d = d->next_of_node) {
		g_autofree char *path = NULL;
		int r;

		if (!dentry_holds(o, d, &path, &print))
			continue;
		r = transaction_begin(o);
		if (r == 0)
			r = transaction_end(o, node_follow(o, n, path, &print));
		return r < 0 ? r : 1;
	}
	return 0;
}

void node_drop_gone(struct overlay *o, struct node *n)
{
	struct fingerprint print;

	if (n->row.born > 0 || node_is_dir(n) || !n->names || !n->names->next_of_node)
		return;
	for (struct dentry *d = n->names, *next; d; d = next) {
		struct node *dir = d->parent;

		next = d->next_of_node;
		if ((n->names == d && !next) || dentry_holds(o, d, NULL, &print))
			continue;
		invalidator_expire(o->invalidator, dir->ino, d->name);
		dentry_remove(d);
		node_release(o->nodes, dir);
	}
}

char *node_shown_path(struct overlay *o, struct node *n)
{
	char *path = node_lower_path(n), *other = NULL;
	struct fingerprint print;

	if (!path || node_is_dir(n) || !n->names || (!n->names->next_of_node && (n->row.born == 0 || n->row.attr.nlink <= 1)) ||
	    !errno_is_absent(lower_stat(o->lower, path, &print)))
		return path;
	node_drop_gone(o, n);
	/* One with a row follows another path from the next lookup on: here a transaction may be running. */
	for (const struct dentry *d = n->names; !other && d; d = d->next_of_node)
		dentry_holds(o, d, &other, &print);
	if (!other)
		return path;
	g_free(path);
	return other;
}
