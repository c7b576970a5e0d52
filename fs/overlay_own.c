/* SPDX-License-Identifier: MIT */
/*
 * overlay_own - making a node of the workspace the sandbox's own, and letting go of one
 */
#include <errno.h>
#include <string.h>

#include "fs/overlay_private.h"

int origin_record(struct overlay *o, const char *path, const struct fingerprint *print, int64_t *ret_id)
{
	struct origin origin = { .path = (char *)path, .print = *print, .seen = nsec_now() };
	int r = store_origin_add(o->store, &origin);

	if (r == 0)
		*ret_id = origin.id;
	return r;
}

int dentry_anchor(struct overlay *o, struct dentry *d, const char *lower, const struct fingerprint *print)
{
	int r;

	if (d->born > 0)
		return 0;
	dentry_edit(o, d);
	r = origin_record(o, lower, print, &d->covers);
	return r < 0 ? r : dentry_save(o, d, d->node->ino);
}

/* Forgets the names of @n in directories that no way leads to: rows of them would never be found again. Who has it open goes on without. */
static void node_drop_detached(struct overlay *o, struct node *n)
{
	for (struct dentry *d = n->names, *next; d; d = next) {
		struct node *dir = d->parent;

		next = d->next_of_node;
		if (node_is_attached(dir))
			continue;
		if (n->is_lower && !n->origin && n->names == d && !next)
			n->origin = node_lower_path(n);
		dentry_remove(d);
		node_release(o->nodes, dir);
	}
}

int node_anchor(struct overlay *o, struct node *n)
{
	g_autofree char *path = NULL;
	struct fingerprint print;
	int r = 0;

	if (n->row.born > 0)
		return 0;
	node_drop_detached(o, n);
	node_drop_gone(o, n);
	for (struct dentry *d = n->names; r == 0 && d; d = d->next_of_node)
		r = node_anchor(o, d->parent);
	if (r < 0)
		return r;
	path = node_lower_path(n);
	if (n->ino == ROOT_INO)
		return 0;
	if (!path) {
		/* Made here, unlinked, and dropped by a rollback: it lives on without a name. */
		node_edit(o, n);
		n->row.attr.nlink = 0;
		return node_save(o, n);
	}
	r = lower_stat(o->lower, path, &print);
	if (r < 0)
		return errno_is_absent(r) ? -ESTALE : r;
	spare_leave_out(o->spare, &print);
	node_edit(o, n);
	n->row.flags = 0;
	n->row.attr = print.attr;
	if (!n->names)
		n->row.attr.nlink = 0;
	node_set_print(n, &print);
	r = origin_record(o, path, &print, &n->row.origin);
	if (r < 0)
		return r;
	g_free(n->origin);
	n->origin = g_strdup(path);
	r = node_save(o, n);
	for (struct dentry *d = n->names; r == 0 && d; d = d->next_of_node) {
		g_autofree char *dir = node_lower_path(d->parent);
		g_autofree char *own = dir ? path_join(dir, d->name) : g_strdup(path);

		if (strcmp(own, path) == 0 && d->born == 0) {
			dentry_edit(o, d);
			d->covers = n->row.origin;
			r = dentry_save(o, d, n->ino);
		} else {
			r = dentry_anchor(o, d, own, &print);
		}
	}
	n->rows_loaded = n->rows_loaded || node_is_dir(n);
	return r;
}

int node_own_attr(struct overlay *o, struct node *n)
{
	struct attr now;
	int r = node_attr(o, n, &now);

	if (r == 0)
		r = node_anchor(o, n);
	if (r < 0)
		return r;
	node_edit(o, n);
	now.nlink = n->row.attr.nlink;
	n->row.attr = now;
	n->row.ino = n->ino;
	n->row.flags |= NODE_OWN_ATTR | NODE_OWN_TIMES;
	return 0;
}

/*
 * The rows of files that are gone: nobody sees them, and the store drops those that a crash leaves when it is opened. So they wait
 * for each other, as many as this, and share a transaction.
 */
#define ORPHANS_MAX 64
#define ORPHANS_BYTES (256u * 1024)

struct orphan {
	uint64_t ino;
	int64_t content;
	bool has_file; /* once its rows are dropped */
};

GArray *orphans_new(void)
{
	return g_array_new(FALSE, FALSE, sizeof(struct orphan));
}

static int orphans_drop_rows(struct overlay *o)
{
	int r = transaction_begin(o);

	for (unsigned i = 0; r == 0 && i < o->orphans->len; i++) {
		struct orphan *orphan = &g_array_index(o->orphans, struct orphan, i);

		r = store_node_drop(o->store, orphan->ino);
		if (r == 0 && orphan->content)
			r = content_drop(o->store, orphan->content);
		orphan->has_file = r > 0;
		r = MIN(r, 0);
	}
	return transaction_end(o, r);
}

void orphans_drop(struct overlay *o)
{
	int r;

	if (o->orphans->len == 0)
		return;
	r = orphans_drop_rows(o);
	if (r == -ENOSPC && store_free_reserve(o->store))
		r = orphans_drop_rows(o);
	for (unsigned i = 0; r == 0 && i < o->orphans->len; i++) {
		const struct orphan *orphan = &g_array_index(o->orphans, struct orphan, i);

		if (orphan->has_file)
			r = content_purge(o->store, orphan->content);
	}
	/* On a full disk the rows stay until the store is opened next time. */
	if (r < 0)
		g_debug("%u orphans not dropped: %s", o->orphans->len, g_strerror(-r));
	g_array_set_size(o->orphans, 0);
	o->orphan_bytes = 0;
}

static void orphan_add(struct overlay *o, const struct node *n)
{
	struct orphan orphan = { .ino = n->ino, .content = n->row.content };

	g_array_append_val(o->orphans, orphan);
	o->orphan_bytes += n->row.content ? n->row.attr.size : 0;
	/* A number of the workspace's may come back, with another file behind it. */
	if (o->orphans->len >= ORPHANS_MAX || o->orphan_bytes > ORPHANS_BYTES || n->ino < FIRST_OWN_INO)
		orphans_drop(o);
}

void node_forget_unused(struct overlay *o, struct node *n)
{
	if (n->lookups > 0)
		return;
	node_close_content(o, n);
	g_clear_pointer(&n->listing, listing_free);
	/* A workspace object may have more links than those that were looked up: it is gone when all of them are. */
	if (!n->names && n->ino != ROOT_INO && n->row.born > 0 && n->row.attr.nlink == 0) {
		orphan_add(o, n);
		n->row.born = 0;
	}
	node_release(o->nodes, n);
}
