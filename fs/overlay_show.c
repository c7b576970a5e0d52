/* SPDX-License-Identifier: MIT */
/*
 * overlay_show - what a node shows: attributes, and what the rules leave of them
 */
#include <errno.h>

#include "fs/overlay_private.h"

bool node_follows(const struct node *n)
{
	if (!n->is_lower)
		return false;
	return S_ISREG(n->row.attr.mode) ? n->row.content == 0 : n->row.target == NULL;
}

int node_attr(struct overlay *o, struct node *n, struct attr *ret)
{
	g_autofree char *path = NULL;
	struct fingerprint print;
	int r = -ENOENT;

	if (node_is_dir(n))
		dir_watch(o, n);
	if (node_follows(n)) {
		path = node_shown_path(o, n);
		r = path ? lower_stat(o->lower, path, &print) : -ESTALE;
		if (r == 0 && ((print.attr.mode ^ n->row.attr.mode) & S_IFMT))
			r = -ESTALE;
		if (r == 0)
			spare_leave_out(o->spare, &print);
		if (r < 0 && !(node_is_dir(n) && n->row.born > 0))
			return errno_is_absent(r) ? -ESTALE : r;
	}
	if (n->row.born == 0 && r == 0) {
		*ret = print.attr;
		n->row.attr = print.attr;
		if (!n->names && n->ino != ROOT_INO)
			ret->nlink = 0;
	} else {
		node_row_attr(&n->row, r == 0 ? &print.attr : NULL, ret);
		if (!node_follows(n))
			ret->blocks = n->content ? content_blocks(n->content) : (ret->size + 511) / 512;
	}
	if (r == 0)
		node_note_seen(o, n, &print.attr);
	return 0;
}

/*
 * A directory that shows the workspace has one link, as in the kernel's overlayfs: to count the subdirectories would be to list it, and the count
 * would tell what the rules hide. 1 means "not counted" to those who walk trees. One of our own has the exact count.
 */
static void attr_of_dir(const struct node *n, struct attr *a)
{
	if (!S_ISDIR(a->mode))
		return;
	a->size = 4096;
	a->blocks = 8;
	if (n->is_lower)
		a->nlink = a->nlink > 0;
}

int node_entry(struct overlay *o, struct node *n, struct overlay_entry *ret)
{
	GBytes *masked;
	struct attr a;
	int r = node_attr(o, n, &a);

	if (r < 0)
		return r;
	attr_of_dir(n, &a);
	if (S_ISREG(a.mode) && guard_is_masked(&n->verdict)) {
		r = node_masked(o, n, &a, &masked);
		if (r < 0)
			return r;
		a.size = g_bytes_get_size(masked);
		a.blocks = (a.size + 511) / 512;
	}
	guard_attr(&n->verdict, &a);
	*ret = (struct overlay_entry){ .ino = n->ino, .attr = a };
	ret->attr_cacheable = node_is_dir(n) ? !n->is_lower || n->watched :
					       !node_follows(n) || (n->names && dentry_is_watched(n->names) && a.nlink <= 1);
	ret->guarded = n->verdict.action >= ACTION_DENY;
	return 0;
}

void child_verdict(struct overlay *o, struct node *dir, const char *name, const char *lower, bool inherit, bool is_dir, struct verdict *ret)
{
	g_autofree char *path = dentry_path(dir, name);

	guard_verdict(o->policy, dir, path ? path : name, lower, inherit, is_dir, ret);
}

void node_update_verdict(struct overlay *o, struct node *n)
{
	g_autofree char *lower = node_lower_path(n);
	bool first = true;

	if (n->ino == ROOT_INO)
		return;
	for (struct dentry *d = n->names; d; d = d->next_of_node) {
		struct verdict v;

		child_verdict(o, d->parent, d->name, lower, n->origin == NULL, node_is_dir(n), &v);
		if (first || v.action > n->verdict.action)
			n->verdict = v;
		first = false;
	}
}

void node_update_verdicts(struct overlay *o, struct node *n)
{
	uint8_t before = n->verdict.action;
	GHashTableIter iter;
	gpointer value;

	node_update_verdict(o, n);
	if (before != n->verdict.action) {
		/* The name too: it may have to be refused from now on, or not to be there. */
		for (struct dentry *d = n->names; d; d = d->next_of_node)
			invalidator_expire(o->invalidator, d->parent->ino, d->name);
		invalidator_inode(o->invalidator, n->ino, true);
	}
	if (!n->children)
		return;
	g_hash_table_iter_init(&iter, n->children);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct dentry *d = value;

		if (d->node)
			node_update_verdicts(o, d->node);
	}
}
