/* SPDX-License-Identifier: MIT */
/*
 * overlay_state - snapshots, rollback, and what a commit leaves behind, under a live view
 */
#include <errno.h>
#include <string.h>

#include "fs/overlay_private.h"

int overlay_snapshot(struct overlay *o, const char *name, int64_t *ret_epoch)
{
	int r;

	overlay_lock(o);
	r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, store_snapshot_create(o->store, name, ret_epoch));
	overlay_unlock(o);
	return r;
}

int overlay_pin(struct overlay *o, int64_t *ret_epoch)
{
	int r;

	/* Nothing is ever taken from a past epoch while the process lives, so a new epoch is all that a pin needs. */
	overlay_lock(o);
	r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, store_epoch_next(o->store, ret_epoch));
	overlay_unlock(o);
	return r;
}

void overlay_unpin(struct overlay *o, int64_t epoch)
{
	(void)o;
	(void)epoch;
}

int overlay_settle(struct overlay *o, int64_t epoch, const char *const *paths)
{
	(void)o;
	(void)epoch;
	(void)paths;
	return -ENOSYS;
}

/* Rollback */

struct changed_name {
	uint64_t parent;
	char *name;
};

struct changes {
	GArray *names; /* struct changed_name */
	GArray *nodes; /* uint64_t */
};

static void changed_name_clear(gpointer data)
{
	g_free(((struct changed_name *)data)->name);
}

static void changes_init(struct changes *c)
{
	c->names = g_array_new(FALSE, FALSE, sizeof(struct changed_name));
	g_array_set_clear_func(c->names, changed_name_clear);
	c->nodes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
}

static void changes_clear(struct changes *c)
{
	g_array_unref(c->names);
	g_array_unref(c->nodes);
}

static void changes_add_name(uint64_t parent, const char *name, void *user)
{
	struct changed_name n = { .parent = parent, .name = g_strdup(name) };

	g_array_append_val(((struct changes *)user)->names, n);
}

static void changes_add_node(uint64_t ino, void *user)
{
	g_array_append_val(((struct changes *)user)->nodes, ino);
}

static int restore_rows(struct overlay *o, int64_t epoch, const struct changes *c)
{
	int r = 0;

	for (guint i = 0; r == 0 && i < c->nodes->len; i++)
		r = store_node_restore(o->store, epoch, g_array_index(c->nodes, uint64_t, i));
	for (guint i = 0; r == 0 && i < c->names->len; i++) {
		const struct changed_name *n = &g_array_index(c->names, struct changed_name, i);

		r = store_name_restore(o->store, epoch, n->parent, n->name);
	}
	return r;
}

/* A node in memory whose row is now another one, or none. */
static int resync_node(struct overlay *o, uint64_t ino)
{
	struct node *n = node_find(o->nodes, ino);
	struct node_row row;
	int r;

	if (!n)
		return 0;
	r = store_node_get(o->store, EPOCH_LIVE, ino, &row);
	if (r < 0)
		return r;
	if (row.ino) {
		r = node_load_row(o, n, &row);
	} else if (n->ino == ROOT_INO) {
		node_row_clear(&n->row);
		n->row.ino = ROOT_INO;
		n->row.attr.mode = S_IFDIR | 0755;
	} else {
		/* Without a name it is an orphan and keeps what it has; with one it is the workspace's own again, which resync_name() sees. */
		n->row.born = 0;
		n->row.attr.nlink = 0;
	}
	node_row_clear(&row);
	return r;
}

/* Turns a node whose row is gone back into what the workspace has at @d. False when that is something else. */
static bool node_become_lower(struct overlay *o, struct dentry *d)
{
	struct node *n = d->node;
	struct fingerprint print;

	if (n->row.born > 0)
		return true;
	if (overlay_lower_has(o, d->parent, d->name, &print) <= 0 || !node_same_object(n, &print))
		return false;
	node_close_content(o, n);
	node_row_clear(&n->row);
	g_clear_pointer(&n->origin, g_free);
	n->row.ino = n->ino;
	n->row.attr = print.attr;
	n->is_lower = true;
	return true;
}

static int resync_name(struct overlay *o, const struct changed_name *c)
{
	struct node *dir = node_find(o->nodes, c->parent), *n = NULL;
	struct node_row node_row = { 0 };
	struct name_row row;
	struct dentry *d;
	int r;

	if (!dir || !dir->rows_loaded)
		return 0;
	r = store_name_get(o->store, EPOCH_LIVE, c->parent, c->name, &row);
	if (r == 0 && row.ino)
		r = store_node_get(o->store, EPOCH_LIVE, row.ino, &node_row);
	if (r == 0 && row.ino && !(n = node_find(o->nodes, row.ino)) && node_row.ino) {
		n = node_add(o->nodes, row.ino);
		r = node_load_row(o, n, &node_row);
	}
	d = dentry_find(dir, c->name);
	if (r == 0 && row.born > 0) {
		if (d)
			dentry_set_node(d, n);
		else
			d = dentry_add(dir, c->name, n);
		d->born = row.born;
		d->covers = row.covers;
	} else if (r == 0 && d) {
		d->born = d->covers = 0;
		if (!d->node || !node_become_lower(o, d))
			dentry_remove(d);
	}
	node_row_clear(&node_row);
	name_row_clear(&row);
	return r;
}

/*
 * Memory follows the store after a rollback: rows of nodes first, then the names, then verdicts. Nodes that lost their last name stay as long as
 * the kernel holds them.
 */
static int resync(struct overlay *o, const struct changes *c)
{
	int r = 0;

	for (guint i = 0; r == 0 && i < c->nodes->len; i++)
		r = resync_node(o, g_array_index(c->nodes, uint64_t, i));
	for (guint i = 0; r == 0 && i < c->names->len; i++)
		r = resync_name(o, &g_array_index(c->names, struct changed_name, i));
	for (guint i = 0; i < c->names->len; i++) {
		const struct changed_name *name = &g_array_index(c->names, struct changed_name, i);
		struct node *dir = node_find(o->nodes, name->parent);
		struct dentry *d = dir ? dentry_find(dir, name->name) : NULL;

		if (d && d->node)
			node_update_verdicts(o, d->node);
		if (dir)
			g_clear_pointer(&dir->listing, listing_free);
		invalidator_entry(o->invalidator, name->parent, name->name);
		invalidator_inode(o->invalidator, name->parent, true);
	}
	for (guint i = 0; i < c->nodes->len; i++) {
		uint64_t ino = g_array_index(c->nodes, uint64_t, i);
		struct node *n = node_find(o->nodes, ino);

		invalidator_inode(o->invalidator, ino, true);
		if (n)
			node_forget_unused(o, n);
	}
	return r;
}

static int rollback_all(struct overlay *o, int64_t epoch, struct changes *c)
{
	int r = store_rows_since(o->store, epoch, changes_add_name, changes_add_node, c);

	if (r == 0)
		r = overlay_begin(o);
	return r < 0 ? r : overlay_end(o, restore_rows(o, epoch, c));
}

int overlay_rollback(struct overlay *o, int64_t epoch, const char *const *paths, uint64_t *ret_names, uint64_t *ret_nodes)
{
	struct changes c;
	int r;

	changes_init(&c);
	overlay_lock(o);
	r = rollback_all(o, epoch, &c);
	if (r == 0)
		r = resync(o, &c);
	overlay_unlock(o);
	if (r == 0) {
		*ret_names = c.names->len;
		*ret_nodes = c.nodes->len;
		invalidator_drain(o->invalidator);
	}
	(void)paths;
	changes_clear(&c);
	return r;
}
