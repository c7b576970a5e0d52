/* SPDX-License-Identifier: MIT */
#include "fs/overlay_places.h"

#include <string.h>

#include "snapshot/compare.h"

struct dir_name {
	uint64_t parent;
	char *name;
};

struct finding {
	struct overlay *overlay;
	GHashTable *dirs; /* ino -> struct dir_name */
	GPtrArray *places;
};

static void placed_free(gpointer data)
{
	struct placed *p = data;

	g_free(p->name);
	g_free(p->path);
	g_free(p->origin);
	g_free(p);
}

static void dir_name_free(gpointer data)
{
	struct dir_name *d = data;

	g_free(d->name);
	g_free(d);
}

static int find_row(const struct name_row *name, const struct node_row *node, void *user)
{
	struct finding *f = user;
	bool is_dir = S_ISDIR(node->attr.mode);
	struct origin origin = { 0 };
	int r = 0;

	if (node->ino && is_dir) {
		struct dir_name *d = g_new0(struct dir_name, 1);

		*d = (struct dir_name){ .parent = name->parent, .name = g_strdup(name->name) };
		g_hash_table_insert(f->dirs, g_memdup2(&node->ino, sizeof(node->ino)), d);
	}
	if (node->ino && node->origin)
		r = store_origin_get(f->overlay->store, node->origin, &origin);
	if (r == 0 && origin.path) {
		struct placed *p = g_new0(struct placed, 1);

		*p = (struct placed){ .ino = node->ino,
				      .parent = name->parent,
				      .name = g_strdup(name->name),
				      .origin = g_steal_pointer(&origin.path),
				      .print = origin.print,
				      .is_dir = is_dir };
		g_ptr_array_add(f->places, p);
	}
	origin_clear(&origin);
	return r;
}

/* NULL when no way leads there. */
static char *path_of(const struct finding *f, uint64_t parent, const char *name)
{
	g_autoptr(GPtrArray) parts = g_ptr_array_new();
	GString *path = g_string_new(NULL);

	g_ptr_array_add(parts, (gpointer)name);
	while (parent != ROOT_INO) {
		const struct dir_name *d = g_hash_table_lookup(f->dirs, &parent);

		if (!d || parts->len > g_hash_table_size(f->dirs)) {
			g_string_free(path, TRUE);
			return NULL;
		}
		g_ptr_array_add(parts, d->name);
		parent = d->parent;
	}
	for (guint i = parts->len; i-- > 0;) {
		g_string_append(path, g_ptr_array_index(parts, i));
		if (i > 0)
			g_string_append_c(path, '/');
	}
	return g_string_free(path, FALSE);
}

static gint place_order(gconstpointer a, gconstpointer b)
{
	const struct placed *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

int places_find(struct overlay *o, int64_t epoch, GPtrArray **ret)
{
	struct finding f = { .overlay = o };
	int r;

	f.dirs = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, dir_name_free);
	f.places = g_ptr_array_new_with_free_func(placed_free);
	r = store_all_names(o->store, epoch, find_row, &f);
	for (guint i = f.places->len; r == 0 && i-- > 0;) {
		struct placed *p = g_ptr_array_index(f.places, i);

		p->path = path_of(&f, p->parent, p->name);
		if (!p->path)
			g_ptr_array_remove_index_fast(f.places, i);
	}
	g_hash_table_unref(f.dirs);
	if (r < 0) {
		g_ptr_array_unref(f.places);
		return r;
	}
	g_ptr_array_sort(f.places, place_order);
	*ret = f.places;
	return 0;
}

int places_find_moved(struct overlay *o, int64_t epoch, GPtrArray **ret)
{
	bool moved;
	int r = store_has_moved(o->store, epoch, &moved);

	if (r < 0)
		return r;
	if (moved)
		return places_find(o, epoch, ret);
	*ret = g_ptr_array_new_with_free_func(placed_free);
	return 0;
}

/* The other way round */

struct place_map {
	GHashTable *dirs; /* path -> struct placed */
};

struct place_map *place_map_new(const GPtrArray *places, enum place_key key)
{
	struct place_map *m = g_new0(struct place_map, 1);

	m->dirs = g_hash_table_new(g_str_hash, g_str_equal);
	for (guint i = 0; i < places->len; i++) {
		struct placed *p = g_ptr_array_index(places, i);

		if (p->is_dir)
			g_hash_table_insert(m->dirs, key == PLACE_BY_PATH ? p->path : p->origin, p);
	}
	return m;
}

void place_map_free(struct place_map *m)
{
	g_hash_table_unref(m->dirs);
	g_free(m);
}

const struct placed *place_map_dir(const struct place_map *m, const char *path, const char **ret_rest)
{
	g_autofree char *prefix = g_strdup(path);
	const struct placed *found = NULL;
	char *slash;

	while (!found && (slash = strrchr(prefix, '/'))) {
		*slash = '\0';
		found = g_hash_table_lookup(m->dirs, prefix);
	}
	if (found)
		*ret_rest = path + strlen(prefix) + 1;
	return found;
}

int place_follow(struct overlay *o, const struct placed *p, const char *path, struct changed_rows *rows)
{
	struct fingerprint print;
	struct node_row n = { 0 };
	int r = lower_stat(o->lower, path, &print);

	if (r < 0)
		return errno_is_absent(r) ? 0 : r;
	r = store_node_get(o->store, EPOCH_LIVE, p->ino, &n);
	if (r == 0 && n.ino && ((n.attr.mode ^ print.attr.mode) & S_IFMT) == 0) {
		r = origin_record(o, path, &print, &n.origin);
		if (r == 0)
			r = store_node_put(o->store, &n);
		changed_rows_add_node(n.ino, rows);
	}
	node_row_clear(&n);
	return r;
}

int place_row(struct overlay *o, uint64_t parent, const char *name, const char *path, const struct fingerprint *print,
	      struct changed_rows *rows, uint64_t *ret_ino)
{
	struct node *dir = node_find(o->nodes, parent);
	struct dentry *d = dir ? dentry_find(dir, name) : NULL;
	struct node_row n = { .ino = d && d->node ? d->node->ino : store_new_ino(o->store), .attr = print->attr };
	struct name_row row = { .parent = parent, .name = (char *)name, .ino = n.ino };
	struct fingerprint links = *print;
	int r = origin_record(o, path, print, &n.origin);

	spare_leave_out(o->spare, &links);
	n.attr.nlink = links.attr.nlink;
	row.covers = n.origin;
	if (r == 0)
		r = store_node_put(o->store, &n);
	if (r == 0)
		r = store_name_put(o->store, &row);
	changed_rows_add_node(n.ino, rows);
	changed_rows_add_name(parent, name, rows);
	if (r == 0 && ret_ino)
		*ret_ino = n.ino;
	return r;
}

static int keep_number(struct overlay *o, const struct dentry *d, const char *path, struct changed_rows *rows)
{
	const struct node *n = d->node;
	bool known = n->lookups > 0 || (n->children && g_hash_table_size(n->children) > 0);
	g_autofree char *child = path_join(path, d->name);
	struct fingerprint print;
	struct name_row row;
	int r = lower_stat(o->lower, child, &print);

	if (r < 0)
		return errno_is_absent(r) ? 0 : r;
	r = store_name_get(o->store, EPOCH_LIVE, d->parent->ino, d->name, &row);
	if (r < 0)
		return r;
	if (row.born == 0 && known && print.ino != n->ino && ((print.attr.mode ^ n->row.attr.mode) & S_IFMT) == 0) {
		r = place_row(o, d->parent->ino, d->name, child, &print, rows, NULL);
		/* Below a directory without a row there is none. */
		if (r == 0 && node_is_dir(n))
			r = places_keep_numbers(o, n->ino, child, rows);
	}
	name_row_clear(&row);
	return r;
}

int places_keep_numbers(struct overlay *o, uint64_t ino, const char *path, struct changed_rows *rows)
{
	struct node *dir = node_find(o->nodes, ino);
	GHashTableIter iter;
	gpointer value;
	int r = 0;

	if (!dir || !dir->children)
		return 0;
	g_hash_table_iter_init(&iter, dir->children);
	while (r == 0 && g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct dentry *d = value;

		if (d->born == 0 && d->node && d->node->row.born == 0)
			r = keep_number(o, d, path, rows);
	}
	return r;
}

bool place_has_left(struct overlay *o, const struct placed *p)
{
	struct fingerprint now;
	int r = lower_stat(o->lower, p->origin, &now);

	return errno_is_absent(r) || (r == 0 && (now.ino != p->print.ino || now.btime != p->print.btime));
}

bool attr_is_alike(const struct attr *a, const struct attr *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

int places_alike(struct overlay *o, const char *a, const char *b, bool *ret)
{
	g_autoptr(tree_t) t = tree_open(o->store, o->lower, TREE_LOWER);
	struct entry x = { .name = (char *)a, .lower = (char *)a }, y = { .name = (char *)b, .lower = (char *)b };
	struct side sides[] = { { t, &x }, { t, &y } };
	struct fingerprint print;
	int r = lower_stat(o->lower, a, &print);

	*ret = false;
	x.attr = print.attr;
	if (r == 0)
		r = lower_stat(o->lower, b, &print);
	if (r < 0)
		return errno_is_absent(r) ? 0 : r;
	y.attr = print.attr;
	*ret = !S_ISDIR(x.attr.mode) && attr_is_alike(&x.attr, &y.attr) && x.attr.rdev == y.attr.rdev;
	if (*ret && S_ISREG(x.attr.mode))
		r = sides_compare_bytes(sides[0], sides[1], ret);
	else if (*ret && S_ISLNK(x.attr.mode))
		r = sides_compare_targets(sides[0], sides[1], ret);
	if (r == 0 && *ret)
		r = sides_compare_xattrs(sides[0], sides[1], ret);
	return r;
}

GHashTable *path_set_with_parents(const char *const *paths)
{
	GHashTable *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

	for (; *paths; paths++) {
		char *path = g_strdup(*paths), *slash;

		while (g_hash_table_add(set, path) && (slash = strrchr(path, '/')))
			path = g_strndup(path, slash - path);
	}
	return set;
}
