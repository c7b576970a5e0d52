/* SPDX-License-Identifier: MIT */
#include "snapshot/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct tree {
	struct store *store;
	struct lower *lower;
	int64_t epoch;
};

struct tree_file {
	int fd; /* of the workspace file, or -1 */
	struct content *content;
	GBytes *bytes;
};

struct entry *entry_copy(const struct entry *e)
{
	struct entry *copy = g_memdup2(e, sizeof(*e));

	copy->name = g_strdup(e->name);
	copy->lower = g_strdup(e->lower);
	copy->target = g_strdup(e->target);
	copy->xattrs = e->xattrs ? g_bytes_ref(e->xattrs) : NULL;
	copy->bytes = e->bytes ? g_bytes_ref(e->bytes) : NULL;
	return copy;
}

void entry_free(struct entry *e)
{
	if (!e)
		return;
	g_free(e->name);
	g_free(e->lower);
	g_free(e->target);
	g_clear_pointer(&e->xattrs, g_bytes_unref);
	g_clear_pointer(&e->bytes, g_bytes_unref);
	g_free(e);
}

struct tree *tree_open(struct store *s, struct lower *l, int64_t epoch)
{
	struct tree *t = g_new0(struct tree, 1);

	*t = (struct tree){ .store = s, .lower = l, .epoch = epoch };
	return t;
}

void tree_close(struct tree *t)
{
	g_free(t);
}

struct store *tree_store(struct tree *t)
{
	return t->store;
}

struct lower *tree_lower(struct tree *t)
{
	return t->lower;
}

char *path_join(const char *dir, const char *name)
{
	return *dir ? g_strconcat(dir, "/", name, NULL) : g_strdup(name);
}

/* Entries of the workspace itself */

static struct entry *entry_from_lower(const char *name, char *lower, const struct fingerprint *print)
{
	struct entry *e = g_new0(struct entry, 1);

	e->name = g_strdup(name);
	e->lower = lower;
	e->attr = print->attr;
	return e;
}

static int lower_entry(struct tree *t, const char *dir, const char *name, struct entry **ret)
{
	g_autofree char *path = path_join(dir, name);
	struct fingerprint print;
	int r = lower_stat(t->lower, path, &print);

	if (r == 0)
		*ret = entry_from_lower(name, g_steal_pointer(&path), &print);
	/* Gone, or no longer a directory on the way, or another file system that we may not enter: not there. */
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r;
}

/* Entries that have rows */

/*
 * Sets *ret to NULL when the row no longer shows anything: it only followed a workspace object that is gone, or that is of
 * another type now.
 */
static int row_entry(struct tree *t, const struct name_row *name, const struct node_row *node, struct entry **ret)
{
	g_autoptr(entry_t) e = g_new0(struct entry, 1);
	struct origin origin = { 0 };
	struct fingerprint print;
	int r;

	*ret = NULL;
	e->name = g_strdup(name->name);
	e->covers = name->covers;
	e->whiteout = name->ino == 0;
	if (e->whiteout) {
		*ret = g_steal_pointer(&e);
		return 0;
	}
	if (!node->ino)
		return 0;
	e->ino = node->ino;
	e->origin = node->origin;
	e->content = node->content;
	e->own_xattrs = node->origin == 0 || (node->flags & NODE_OWN_XATTR);
	e->xattrs = node->xattrs ? g_bytes_ref(node->xattrs) : NULL;
	e->target = g_strdup(node->target);
	e->attr = node->attr;
	if (node->origin) {
		bool follows = S_ISREG(node->attr.mode) ? node->content == 0 : !node->target;

		r = store_origin_get(t->store, node->origin, &origin);
		if (r < 0)
			return r;
		r = follows ? lower_stat(t->lower, origin.path, &print) : -ENOENT;
		if (r == 0 && (print.attr.mode & S_IFMT) != (node->attr.mode & S_IFMT))
			r = -ENOENT;
		if (r == 0) {
			node_row_attr(node, &print.attr, &e->attr);
			e->lower = g_steal_pointer(&origin.path);
		} else if (follows && !S_ISDIR(node->attr.mode)) {
			origin_clear(&origin);
			return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r;
		}
		/* A directory whose workspace side is gone still holds what was made in it. */
		origin_clear(&origin);
	}
	*ret = g_steal_pointer(&e);
	return 0;
}

static bool tree_has_rows(const struct tree *t, const struct entry *dir)
{
	return t->epoch != TREE_LOWER && dir->ino != 0;
}

int tree_root(struct tree *t, struct entry **ret)
{
	struct node_row node = { 0 };
	struct fingerprint print;
	struct entry *e;
	int r = lower_stat(t->lower, "", &print);

	if (r == 0 && t->epoch != TREE_LOWER)
		r = store_node_get(t->store, t->epoch, ROOT_INO, &node);
	if (r < 0)
		return r;
	e = entry_from_lower("", g_strdup(""), &print);
	if (t->epoch != TREE_LOWER)
		e->ino = ROOT_INO;
	if (node.ino) {
		node_row_attr(&node, &print.attr, &e->attr);
		e->origin = node.origin;
		e->own_xattrs = node.flags & NODE_OWN_XATTR;
		e->xattrs = node.xattrs ? g_bytes_ref(node.xattrs) : NULL;
	}
	node_row_clear(&node);
	*ret = e;
	return 0;
}

int tree_lookup(struct tree *t, const struct entry *dir, const char *name, struct entry **ret)
{
	struct name_row row = { 0 };
	struct node_row node = { 0 };
	struct entry *e = NULL;
	int r = 0;

	*ret = NULL;
	if (!S_ISDIR(dir->attr.mode))
		return 0;
	if (tree_has_rows(t, dir))
		r = store_name_get(t->store, t->epoch, dir->ino, name, &row);
	if (r == 0 && row.ino)
		r = store_node_get(t->store, t->epoch, row.ino, &node);
	if (r == 0 && row.born)
		r = row_entry(t, &row, &node, &e);
	else if (r == 0 && dir->lower)
		r = lower_entry(t, dir->lower, name, &e);
	if (e && e->whiteout)
		g_clear_pointer(&e, entry_free);
	node_row_clear(&node);
	name_row_clear(&row);
	*ret = e;
	return r;
}

int tree_lookup_path(struct tree *t, const char *path, struct entry **ret)
{
	g_auto(GStrv) names = g_strsplit(path, "/", -1);
	g_autoptr(entry_t) e = NULL;
	int r = tree_root(t, &e);

	for (char **name = names; r == 0 && e && *name; name++) {
		struct entry *next;

		if (!**name)
			continue;
		r = tree_lookup(t, e, *name, &next);
		if (r < 0)
			break;
		entry_free(e);
		e = next;
	}
	if (r == 0)
		*ret = g_steal_pointer(&e);
	return r;
}

struct row_collector {
	struct tree *tree;
	GPtrArray *entries;
	GHashTable *names; /* every name with a row, also those that show nothing; may be NULL */
	bool whiteouts;
};

/*
 * The statement behind store_names() is in use while this runs, and row_entry() asks for origins: another statement, so that is
 * allowed; but it must not ask for names again.
 */
static int collect_row(const struct name_row *name, const struct node_row *node, void *user)
{
	struct row_collector *c = user;
	struct entry *e;
	int r = row_entry(c->tree, name, node, &e);

	if (r < 0)
		return r;
	if (c->names)
		g_hash_table_add(c->names, g_strdup(name->name));
	if (e && e->whiteout && !c->whiteouts)
		g_clear_pointer(&e, entry_free);
	if (e)
		g_ptr_array_add(c->entries, e);
	return 0;
}

int tree_rows(struct tree *t, const struct entry *dir, GPtrArray **ret)
{
	g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);
	struct row_collector c = { .tree = t, .entries = entries, .whiteouts = true };
	int r = tree_has_rows(t, dir) ? store_names(t->store, t->epoch, dir->ino, collect_row, &c) : 0;

	if (r == 0)
		*ret = g_steal_pointer(&entries);
	return r;
}

static gint entry_order(gconstpointer a, gconstpointer b)
{
	const struct entry *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

int tree_list(struct tree *t, const struct entry *dir, GPtrArray **ret)
{
	g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);
	g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	g_autoptr(GPtrArray) lower = NULL;
	struct row_collector c = { .tree = t, .entries = entries, .names = names };
	int r = tree_has_rows(t, dir) ? store_names(t->store, t->epoch, dir->ino, collect_row, &c) : 0;

	if (r == 0 && dir->lower)
		r = lower_list(t->lower, dir->lower, &lower);
	for (guint i = 0; r == 0 && lower && i < lower->len; i++) {
		const struct lower_name *n = g_ptr_array_index(lower, i);
		struct entry *e = NULL;

		if (g_hash_table_contains(names, n->name))
			continue;
		r = lower_entry(t, dir->lower, n->name, &e);
		if (e)
			g_ptr_array_add(entries, e);
	}
	if (r < 0)
		return r;
	g_ptr_array_sort(entries, entry_order);
	*ret = g_steal_pointer(&entries);
	return 0;
}

/* Reading */

int tree_file_open(struct tree *t, const struct entry *e, struct tree_file **ret)
{
	g_autoptr(tree_file_t) f = g_new0(struct tree_file, 1);
	int r = 0;

	f->fd = -1;
	if (!S_ISREG(e->attr.mode))
		return S_ISDIR(e->attr.mode) ? -EISDIR : -EINVAL;
	if (e->bytes) {
		f->bytes = g_bytes_ref(e->bytes);
	} else if (e->content) {
		r = content_open(t->store, t->lower, e->content, &f->content);
	} else if (e->lower) {
		f->fd = lower_open_file(t->lower, e->lower, O_RDONLY);
		r = MIN(f->fd, 0);
	}
	if (r == 0)
		*ret = g_steal_pointer(&f);
	return r;
}

static ssize_t read_bytes(GBytes *bytes, void *buf, size_t size, uint64_t offset)
{
	gsize all;
	const char *data = g_bytes_get_data(bytes, &all);
	size_t n = offset < all ? MIN(size, all - offset) : 0;

	if (n > 0)
		memcpy(buf, data + offset, n);
	return n;
}

ssize_t tree_file_read(struct tree_file *f, void *buf, size_t size, uint64_t offset)
{
	ssize_t n;

	if (f->bytes)
		return read_bytes(f->bytes, buf, size, offset);
	if (f->content)
		return content_read(f->content, buf, size, offset);
	if (f->fd < 0)
		return 0;
	do {
		n = pread(f->fd, buf, size, offset);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

void tree_file_close(struct tree_file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	content_close(f->content);
	g_clear_pointer(&f->bytes, g_bytes_unref);
	g_free(f);
}

int tree_hash(struct tree *t, const struct entry *e, uint8_t ret[32])
{
	g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
	g_autofree char *buf = g_malloc(256 * 1024);
	g_autoptr(tree_file_t) f = NULL;
	uint64_t offset = 0;
	gsize size = 32;
	ssize_t n = 0;
	int r = tree_file_open(t, e, &f);

	while (r == 0 && (n = tree_file_read(f, buf, 256 * 1024, offset)) > 0) {
		g_checksum_update(sum, (const guchar *)buf, n);
		offset += n;
	}
	if (r < 0 || n < 0)
		return r < 0 ? r : n;
	g_checksum_get_digest(sum, ret, &size);
	return 0;
}

int tree_readlink(struct tree *t, const struct entry *e, char **ret)
{
	if (!S_ISLNK(e->attr.mode))
		return -EINVAL;
	if (!e->lower) {
		*ret = g_strdup(e->target ? e->target : "");
		return 0;
	}
	return lower_readlink(t->lower, e->lower, ret);
}

int tree_xattrs(struct tree *t, const struct entry *e, GBytes **ret)
{
	struct origin origin = { 0 };
	int r = 0;

	if (!e->own_xattrs && e->lower)
		return lower_xattrs(t->lower, e->lower, ret);
	if (!e->own_xattrs && e->origin) {
		/* The bytes are our own, but not the attributes. */
		r = store_origin_get(t->store, e->origin, &origin);
		if (r == 0)
			r = lower_xattrs(t->lower, origin.path, ret);
		origin_clear(&origin);
		return r;
	}
	*ret = e->xattrs ? g_bytes_ref(e->xattrs) : NULL;
	return 0;
}
