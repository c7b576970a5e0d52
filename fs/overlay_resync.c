/* SPDX-License-Identifier: MIT */
#include "fs/overlay_resync.h"

#include <errno.h>

static void changed_name_clear(gpointer data)
{
	g_free(((struct changed_name *)data)->name);
}

void changed_rows_init(struct changed_rows *c)
{
	c->names = g_array_new(FALSE, FALSE, sizeof(struct changed_name));
	g_array_set_clear_func(c->names, changed_name_clear);
	c->nodes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
}

void changed_rows_clear(struct changed_rows *c)
{
	g_array_unref(c->names);
	g_array_unref(c->nodes);
}

void changed_rows_add_name(uint64_t parent, const char *name, void *changed_rows)
{
	struct changed_name n = { .parent = parent, .name = g_strdup(name) };

	g_array_append_val(((struct changed_rows *)changed_rows)->names, n);
}

void changed_rows_add_node(uint64_t ino, void *changed_rows)
{
	g_array_append_val(((struct changed_rows *)changed_rows)->nodes, ino);
}

/* A node in memory whose row is now another one, or none. */
static int resync_node(struct overlay *o, uint64_t ino)
{
	struct node *n = node_find(o->nodes, ino);
	struct node_row row;
	int r;

	if (!n)
		return 0;
	node_touch(n);
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

/* Whether a name without a row shows its node as the workspace has it; a node whose own row is gone, too, becomes just that. */
static bool dentry_become_lower(struct overlay *o, struct dentry *d)
{
	struct node *n = d->node;
	struct fingerprint print;

	if (overlay_lower_has(o, d->parent, d->name, &print) <= 0 || !node_shows_lower(n, &print))
		return false;
	if (n->row.born == 0)
		node_become_lower(o, n, &print);
	return true;
}

static int resync_name(struct overlay *o, const struct changed_name *c)
{
	struct node *dir = node_find(o->nodes, c->parent), *n = NULL;
	struct node_row node_row = { 0 };
	struct name_row row;
	struct dentry *d;
	int r;

	/* Of a directory that could not be loaded whole, some rows are in memory all the same. */
	if (!dir || (!dir->rows_loaded && !dentry_find(dir, c->name)))
		return 0;
	r = store_name_get(o->store, EPOCH_LIVE, c->parent, c->name, &row);
	if (r == 0 && row.ino)
		r = store_node_get(o->store, EPOCH_LIVE, row.ino, &node_row);
	if (r == 0 && row.ino && !(n = node_find(o->nodes, row.ino)) && node_row.ino) {
		n = node_add(o->nodes, row.ino);
		r = node_load_row(o, n, &node_row);
	}
	d = dentry_find(dir, c->name);
	if (r == 0 && row.born > 0)
		r = dir_refuse_ring(o, dir, n);
	if (r == -ESTALE) {
		/* Until the names above it are in place, nothing of it is known. */
		if (d)
			dentry_remove(d);
		dir->rows_loaded = false;
		r = 0;
	} else if (r == 0 && row.born > 0) {
		if (d)
			dentry_set_node(d, n);
		else
			d = dentry_add(dir, c->name, n);
		d->born = row.born;
		d->covers = row.covers;
		dir_keep_name(o, d);
	} else if (r == 0 && d) {
		d->born = d->covers = 0;
		if (!d->node || !dentry_become_lower(o, d))
			dentry_remove(d);
	}
	node_row_clear(&node_row);
	name_row_clear(&row);
	return r;
}

/* Looks up every name on the way to @path, as far as there is one. */
static void resync_path(struct overlay *o, const char *path)
{
	g_auto(GStrv) parts = g_strsplit(path, "/", -1);
	struct child c = { .node = node_find(o->nodes, ROOT_INO) };

	for (char **part = parts; *part && c.node && node_is_dir(c.node); part++)
		if (overlay_child(o, c.node, *part, &c) < 0)
			return;
}

/*
 * What is the workspace's own again, and has been moved in the view before, gets its old name at once: whoever has it, or something in
 * it, open goes on with that.
 */
static void resync_place(struct overlay *o, uint64_t ino)
{
	struct node *n = node_find(o->nodes, ino);
	g_autofree char *path = n && !n->names && n->row.born == 0 && n->is_lower ? g_strdup(n->origin) : NULL;

	if (path)
		resync_path(o, path);
}

int overlay_resync(struct overlay *o, const struct changed_rows *c)
{
	int r = 0;

	overlay_leave_dir(o);
	o->workspace_rows = true; /* rows were written past node_save() */
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
		invalidator_expire(o->invalidator, name->parent, name->name);
		invalidator_inode(o->invalidator, name->parent, true);
	}
	/* Now that the verdicts above them hold. */
	for (guint i = 0; r == 0 && i < c->nodes->len; i++)
		resync_place(o, g_array_index(c->nodes, uint64_t, i));
	for (guint i = 0; i < c->nodes->len; i++) {
		uint64_t ino = g_array_index(c->nodes, uint64_t, i);
		struct node *n = node_find(o->nodes, ino);

		invalidator_inode(o->invalidator, ino, true);
		if (n)
			node_forget_unused(o, n);
	}
	return r;
}
