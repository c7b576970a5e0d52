/* SPDX-License-Identifier: MIT */
#include "fs/node.h"

#include <string.h>

#include "snapshot/tree.h"

struct node_table {
	GHashTable *by_ino;
	void (*gone)(struct node *n, void *user);
	void *user;
	GPtrArray *touched; /* struct node, NULL for one that is gone; NULL: nobody wants to know */
};

static void dentry_free(gpointer data)
{
	struct dentry *d = data;

	g_free(d->name);
	g_free(d);
}

static void node_free(struct node *n)
{
	g_clear_pointer(&n->children, g_hash_table_unref);
	listing_free(n->listing);
	content_close(n->content);
	g_clear_pointer(&n->masked, g_bytes_unref);
	node_row_clear(&n->row);
	g_free(n->origin);
	g_free(n);
}

static void node_destroy(gpointer data)
{
	node_free(data);
}

struct node_table *node_table_new(void (*gone)(struct node *n, void *user), void *user)
{
	struct node_table *t = g_new0(struct node_table, 1);

	t->gone = gone;
	t->user = user;
	/* The key lives in the node. */
	t->by_ino = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, node_destroy);
	return t;
}

void node_table_free(struct node_table *t)
{
	g_hash_table_unref(t->by_ino);
	if (t->touched)
		g_ptr_array_unref(t->touched);
	g_free(t);
}

/* Touched nodes */

void node_table_follow(struct node_table *t)
{
	t->touched = g_ptr_array_new();
}

void node_touch(struct node *n)
{
	if (!n->table->touched || n->touched)
		return;
	g_ptr_array_add(n->table->touched, n);
	n->touched = n->table->touched->len;
}

void node_touched_each(struct node_table *t, void (*fn)(struct node *n, void *user), void *user)
{
	for (guint i = 0; t->touched && i < t->touched->len; i++) {
		struct node *n = t->touched->pdata[i];

		if (!n)
			continue;
		n->touched = 0;
		fn(n, user);
	}
	if (t->touched && t->touched->len > 0)
		g_ptr_array_set_size(t->touched, 0);
}

void node_count(struct node *n, int64_t change)
{
	n->lookups += (uint64_t)change;
	node_touch(n);
}


struct node *node_find(struct node_table *t, uint64_t ino)
{
	return g_hash_table_lookup(t->by_ino, &ino);
}

struct node *node_add(struct node_table *t, uint64_t ino)
{
	struct node *n = g_new0(struct node, 1);

	n->ino = ino;
	n->table = t;
	g_hash_table_insert(t->by_ino, &n->ino, n);
	return n;
}

guint node_table_size(const struct node_table *t)
{
	return g_hash_table_size(t->by_ino);
}

void node_foreach(struct node_table *t, void (*fn)(struct node *n, void *user), void *user)
{
	GHashTableIter iter;
	gpointer n;

	g_hash_table_iter_init(&iter, t->by_ino);
	while (g_hash_table_iter_next(&iter, NULL, &n))
		fn(n, user);
}

static void node_remove(struct node_table *t, struct node *n)
{
	if (t->gone)
		t->gone(n, t->user);
	if (n->touched)
		t->touched->pdata[n->touched - 1] = NULL;
	g_hash_table_remove(t->by_ino, &n->ino);
}

static bool node_is_held(const struct node *n)
{
	if (n->ino == ROOT_INO || n->lookups > 0 || (n->children && g_hash_table_size(n->children) > 0))
		return true;
	for (const struct dentry *d = n->names; d; d = d->next_of_node)
		if (d->born > 0)
			return true;
	return false;
}

/* The names of a directory that nobody holds, and that are in the store anyway, go: they are loaded again when needed. */
static void node_unload(struct node_table *t, struct node *n)
{
	GHashTableIter iter;
	gpointer value;

	if (!n->children || n->lookups > 0 || n->ino == ROOT_INO)
		return;
	g_hash_table_iter_init(&iter, n->children);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct dentry *d = value;

		if (d->node && (d->node->lookups > 0 || d->node->names != d || d->next_of_node || node_is_dir(d->node)))
			return;
	}
	g_hash_table_iter_init(&iter, n->children);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct dentry *d = value;

		if (d->node)
			node_remove(t, d->node);
	}
	g_clear_pointer(&n->children, g_hash_table_unref);
	n->rows_loaded = false;
}

void node_release(struct node_table *t, struct node *n)
{
	while (n) {
		struct node *parent = NULL;

		node_unload(t, n);
		if (node_is_held(n)) {
			/* By its row alone? Then it goes with its directory, which may have been forgotten before it. */
			if (n->lookups == 0 && n->names && !n->names->next_of_node && !node_is_dir(n))
				node_unload(t, n->names->parent);
			return;
		}
		while (n->names) {
			parent = n->names->parent;
			dentry_remove(n->names);
		}
		node_remove(t, n);
		n = parent;
	}
}

bool node_is_dir(const struct node *n)
{
	return S_ISDIR(n->row.attr.mode);
}

/* Names */

struct dentry *dentry_find(const struct node *dir, const char *name)
{
	return dir->children ? g_hash_table_lookup(dir->children, name) : NULL;
}

static void dentry_attach(struct dentry *d, struct node *node)
{
	d->node = node;
	if (node) {
		d->next_of_node = node->names;
		node->names = d;
		node_touch(node);
	}
}

static void dentry_detach(struct dentry *d)
{
	struct dentry **link;

	if (!d->node)
		return;
	for (link = &d->node->names; *link != d; link = &(*link)->next_of_node)
		;
	*link = d->next_of_node;
	node_touch(d->node);
	d->node = NULL;
	d->next_of_node = NULL;
}

struct dentry *dentry_add(struct node *dir, const char *name, struct node *node)
{
	struct dentry *d = g_new0(struct dentry, 1);

	d->parent = dir;
	d->name = g_strdup(name);
	if (!dir->children)
		dir->children = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, dentry_free);
	g_hash_table_insert(dir->children, d->name, d);
	dentry_attach(d, node);
	return d;
}

void dentry_remove(struct dentry *d)
{
	dentry_detach(d);
	g_hash_table_remove(d->parent->children, d->name);
}

void dentry_set_node(struct dentry *d, struct node *node)
{
	dentry_detach(d);
	dentry_attach(d, node);
}

/* Paths */

char *dentry_path(const struct node *dir, const char *name)
{
	g_autofree char *parent = node_path(dir);

	return parent ? path_join(parent, name) : NULL;
}

char *node_path(const struct node *n)
{
	g_autoptr(GPtrArray) parts = NULL;
	GString *path;

	if (n->ino == ROOT_INO)
		return g_strdup("");
	parts = g_ptr_array_new();
	for (; n->ino != ROOT_INO; n = n->names->parent) {
		if (!n->names)
			return NULL;
		g_ptr_array_add(parts, n->names->name);
	}
	path = g_string_new(NULL);
	for (guint i = parts->len; i-- > 0;) {
		g_string_append(path, g_ptr_array_index(parts, i));
		if (i > 0)
			g_string_append_c(path, '/');
	}
	return g_string_free(path, FALSE);
}

char *node_lower_path(const struct node *n)
{
	g_autofree char *dir = NULL;

	if (!n->is_lower)
		return NULL;
	if (n->origin || !n->names)
		return g_strdup(n->origin);
	dir = node_lower_path(n->names->parent);
	return dir ? path_join(dir, n->names->name) : NULL;
}

char *dentry_lower_path(const struct dentry *d)
{
	g_autofree char *dir = node_lower_path(d->parent);

	return dir ? path_join(dir, d->name) : NULL;
}

bool node_is_below(const struct node *n, const struct node *ancestor)
{
	for (; n && n != ancestor; n = n->names ? n->names->parent : NULL)
		if (n->ino == ROOT_INO)
			return false;
	return n != NULL;
}

bool node_is_attached(const struct node *n)
{
	if (n->ino == ROOT_INO)
		return true;
	for (const struct dentry *d = n->names; d; d = d->next_of_node)
		if (node_is_attached(d->parent))
			return true;
	return false;
}
