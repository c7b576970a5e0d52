/* SPDX-License-Identifier: MIT */
#include "snapshot/restoring.h"

#include <string.h>

#include "snapshot/tree.h"

struct row_name {
	uint64_t parent;
	char *name;
};

/* One of the two states, by its rows. */
struct state {
	int64_t epoch;
	GHashTable *names; /* ino -> GPtrArray of struct row_name */
	GHashTable *lower; /* ino -> the workspace path it follows */
	GHashTable *dirs;  /* workspace path -> ino, of directories */
};

struct restoring {
	struct store *store;
	struct state states[2]; /* now, then */
	GHashTable *followers;	/* workspace path -> GArray of ino, in either */
	GPtrArray *names;	/* struct row_name, selected */
	GHashTable *seen;	/* "parent/name" */
	GHashTable *nodes;	/* ino: selected */
	GQueue todo;		/* struct row_name; without a name it is the node @parent */
	struct state *reading;
	int error;
};

static void row_name_free(gpointer data)
{
	struct row_name *n = data;

	g_free(n->name);
	g_free(n);
}

static struct row_name *row_name_new(uint64_t parent, const char *name)
{
	struct row_name *n = g_new0(struct row_name, 1);

	*n = (struct row_name){ .parent = parent, .name = g_strdup(name) };
	return n;
}

static gpointer key_of(uint64_t ino)
{
	return g_memdup2(&ino, sizeof(ino));
}

static char *name_key(uint64_t parent, const char *name)
{
	return g_strdup_printf("%" G_GUINT64_FORMAT "/%s", parent, name);
}

/* Reading */

static void add_follower(struct restoring *r, const char *path, uint64_t ino)
{
	GArray *list = g_hash_table_lookup(r->followers, path);

	if (!list) {
		list = g_array_new(FALSE, FALSE, sizeof(ino));
		g_hash_table_insert(r->followers, g_strdup(path), list);
	}
	g_array_append_val(list, ino);
}

static int read_row(const struct name_row *name, const struct node_row *node, void *user)
{
	struct restoring *r = user;
	struct state *s = r->reading;
	struct origin origin = { 0 };
	GPtrArray *list;
	int code = 0;

	if (!node->ino)
		return 0;
	list = g_hash_table_lookup(s->names, &node->ino);
	if (!list) {
		list = g_ptr_array_new_with_free_func(row_name_free);
		g_hash_table_insert(s->names, key_of(node->ino), list);
		if (node->origin)
			code = store_origin_get(r->store, node->origin, &origin);
		if (code == 0 && origin.path) {
			add_follower(r, origin.path, node->ino);
			if (S_ISDIR(node->attr.mode))
				g_hash_table_insert(s->dirs, g_strdup(origin.path), key_of(node->ino));
			g_hash_table_insert(s->lower, key_of(node->ino), g_steal_pointer(&origin.path));
		}
		origin_clear(&origin);
	}
	g_ptr_array_add(list, row_name_new(name->parent, name->name));
	return code;
}

static int state_read(struct restoring *r, struct state *s, int64_t epoch)
{
	uint64_t root = ROOT_INO;

	s->epoch = epoch;
	s->names = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
	s->lower = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	s->dirs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	g_hash_table_insert(s->lower, key_of(root), g_strdup(""));
	g_hash_table_insert(s->dirs, g_strdup(""), key_of(root));
	r->reading = s;
	return store_all_names(r->store, epoch, read_row, r);
}

static void state_clear(struct state *s)
{
	g_clear_pointer(&s->names, g_hash_table_unref);
	g_clear_pointer(&s->lower, g_hash_table_unref);
	g_clear_pointer(&s->dirs, g_hash_table_unref);
}

static bool has_row(const struct state *s, uint64_t ino)
{
	return ino == ROOT_INO || g_hash_table_contains(s->names, &ino);
}

/* Selecting */

/* What to do is a list, not the C stack: how deep directories nest is the sandboxed program's choice. */

static void select_name(struct restoring *r, uint64_t parent, const char *name)
{
	if (g_hash_table_add(r->seen, name_key(parent, name)))
		g_queue_push_tail(&r->todo, row_name_new(parent, name));
}

static void select_node(struct restoring *r, uint64_t ino)
{
	if (g_hash_table_add(r->nodes, key_of(ino)))
		g_queue_push_tail(&r->todo, row_name_new(ino, NULL));
}

static int select_child(const struct name_row *name, const struct node_row *node, void *user)
{
	(void)node;
	select_name(user, name->parent, name->name);
	return 0;
}

/* Where the workspace path @lower has a name, in a directory that has rows. */
static void select_place(struct restoring *r, const struct state *s, const char *lower)
{
	const char *slash = strrchr(lower, '/');
	g_autofree char *dir = slash ? g_strndup(lower, slash - lower) : g_strdup("");
	const uint64_t *ino = g_hash_table_lookup(s->dirs, dir);

	if (ino)
		select_name(r, *ino, slash ? slash + 1 : lower);
}

static void note(struct restoring *r, int code)
{
	if (r->error == 0)
		r->error = code;
}

/* A node with all its names, where it was without a row, and, of a directory, all that has rows below it; then and now. */
static void follow_node(struct restoring *r, uint64_t ino)
{
	for (int i = 0; i < 2; i++) {
		const struct state *s = &r->states[i], *other = &r->states[!i];
		GPtrArray *names = g_hash_table_lookup(s->names, &ino);
		const char *lower = names ? NULL : g_hash_table_lookup(other->lower, &ino);

		for (guint k = 0; names && k < names->len; k++) {
			const struct row_name *n = g_ptr_array_index(names, k);

			select_name(r, n->parent, n->name);
		}
		if (lower) {
			select_place(r, s, lower);
			select_place(r, other, lower);
		}
		note(r, store_names(r->store, s->epoch, ino, select_child, r));
	}
}

/* A directory that was there and is not any more comes back with what was in it, else nothing would lead to that. */
static void select_lost_parent(struct restoring *r, uint64_t parent)
{
	struct node_row now = { 0 }, then = { 0 };

	if (parent == ROOT_INO)
		return;
	note(r, store_node_get(r->store, r->states[0].epoch, parent, &now));
	note(r, store_node_get(r->store, r->states[1].epoch, parent, &then));
	if ((!now.ino || now.attr.nlink == 0) && then.ino)
		select_node(r, parent);
	node_row_clear(&now);
	node_row_clear(&then);
}

/* What a name showed of the workspace without a row has a row in the other state, maybe. */
static void select_followers(struct restoring *r, const struct state *s, uint64_t parent, const char *name)
{
	const char *dir = NULL;
	g_autofree char *lower = NULL;
	GArray *list;

	for (int i = 0; !dir && i < 2; i++)
		dir = g_hash_table_lookup((i == 0 ? s : &r->states[s == &r->states[0]])->lower, &parent);
	if (!dir)
		return;
	lower = path_join(dir, name);
	list = g_hash_table_lookup(r->followers, lower);
	for (guint i = 0; list && i < list->len; i++)
		if (!has_row(s, g_array_index(list, uint64_t, i)))
			select_node(r, g_array_index(list, uint64_t, i));
}

static void follow_name(struct restoring *r, uint64_t parent, const char *name)
{
	struct name_row rows[2] = { 0 };

	for (int i = 0; i < 2; i++)
		note(r, store_name_get(r->store, r->states[i].epoch, parent, name, &rows[i]));
	if (rows[0].born > 0 || rows[1].born > 0) {
		g_ptr_array_add(r->names, row_name_new(parent, name));
		select_lost_parent(r, parent);
	}
	for (int i = 0; i < 2; i++) {
		if (rows[i].ino)
			select_node(r, rows[i].ino);
		else if (rows[i].born == 0 && rows[!i].born > 0)
			select_followers(r, &r->states[i], parent, name);
	}
	name_row_clear(&rows[0]);
	name_row_clear(&rows[1]);
}

/* Follows @path through the rows of now, or of then, as far as they go; the first name that is not there in both is the one to restore. */
static int select_path(struct restoring *r, const char *path)
{
	g_auto(GStrv) parts = g_strsplit(path, "/", -1);
	uint64_t parent = ROOT_INO;

	for (char **part = parts; *part; part++) {
		struct name_row now, then;
		uint64_t ino_now, ino_then;
		int code;

		if (!**part)
			continue;
		if (!part[1]) {
			select_name(r, parent, *part);
			return 0;
		}
		code = store_name_get(r->store, r->states[0].epoch, parent, *part, &now);
		if (code == 0)
			code = store_name_get(r->store, r->states[1].epoch, parent, *part, &then);
		if (code < 0)
			return code;
		ino_now = now.ino;
		ino_then = then.ino;
		name_row_clear(&now);
		name_row_clear(&then);
		if (ino_now && (!ino_then || ino_then == ino_now)) {
			parent = ino_now;
			continue;
		}
		if (ino_now || ino_then)
			select_name(r, parent, *part);
		return 0; /* no rows on either side: nothing changed there */
	}
	return 0;
}

static void follow_all(struct restoring *r)
{
	struct row_name *n;

	while ((n = g_queue_pop_head(&r->todo))) {
		if (n->name)
			follow_name(r, n->parent, n->name);
		else
			follow_node(r, n->parent);
		row_name_free(n);
	}
}

/* Life */

int restoring_new(struct store *s, int64_t now, int64_t then, const char *const *paths, struct restoring **ret)
{
	g_autoptr(restoring_t) r = g_new0(struct restoring, 1);
	int code;

	r->store = s;
	r->followers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
	r->names = g_ptr_array_new_with_free_func(row_name_free);
	r->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	r->nodes = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	code = state_read(r, &r->states[0], now);
	if (code == 0)
		code = state_read(r, &r->states[1], then);
	for (; code == 0 && *paths; paths++)
		code = select_path(r, *paths);
	follow_all(r);
	if (code == 0)
		code = r->error;
	if (code == 0)
		*ret = g_steal_pointer(&r);
	return code;
}

void restoring_free(struct restoring *r)
{
	if (!r)
		return;
	state_clear(&r->states[0]);
	state_clear(&r->states[1]);
	g_hash_table_unref(r->followers);
	g_ptr_array_unref(r->names);
	g_hash_table_unref(r->seen);
	g_hash_table_unref(r->nodes);
	g_free(r);
}

void restoring_each(struct restoring *r, void (*name)(uint64_t parent, const char *name, void *user),
		    void (*node)(uint64_t ino, void *user), void *user)
{
	GHashTableIter iter;
	gpointer ino;

	for (guint i = 0; i < r->names->len; i++) {
		const struct row_name *n = g_ptr_array_index(r->names, i);

		name(n->parent, n->name, user);
	}
	g_hash_table_iter_init(&iter, r->nodes);
	while (g_hash_table_iter_next(&iter, &ino, NULL))
		node(*(const uint64_t *)ino, user);
}

/* Paths */

static char *shown_path(const struct restoring *r, const struct state *s, const char *lower, unsigned depth);

/* Of a directory; NULL when it was not there. @depth: of a damaged index, in which they lie in each other. */
static char *dir_path(const struct restoring *r, const struct state *s, uint64_t ino, unsigned depth)
{
	const GPtrArray *names = g_hash_table_lookup(s->names, &ino);
	const struct state *other = &r->states[s == &r->states[0]];
	g_autofree char *above = NULL, *lower = NULL;

	if (ino == ROOT_INO)
		return g_strdup("");
	if (depth > g_hash_table_size(s->names) + g_hash_table_size(other->names))
		return NULL;
	if (names) {
		const struct row_name *n = g_ptr_array_index(names, 0);

		above = dir_path(r, s, n->parent, depth + 1);
		return above ? path_join(above, n->name) : NULL;
	}
	/* Without a row it was where the nearest directory with one showed it. */
	lower = g_strdup(g_hash_table_lookup(other->lower, &ino));
	return lower ? shown_path(r, s, lower, depth + 1) : NULL;
}

static char *shown_path(const struct restoring *r, const struct state *s, const char *lower, unsigned depth)
{
	g_autofree char *prefix = g_strdup(lower), *above = NULL;
	const uint64_t *dir;

	/* The root is always there. */
	while (!(dir = g_hash_table_lookup(s->dirs, prefix))) {
		char *slash = strrchr(prefix, '/');

		*(slash ? slash : prefix) = '\0';
	}
	above = dir_path(r, s, *dir, depth);
	lower += strlen(prefix) + (*prefix && strlen(lower) > strlen(prefix));
	return above ? path_join(above, lower) : NULL;
}

static gint path_order(gconstpointer a, gconstpointer b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *restoring_paths(struct restoring *r)
{
	g_autoptr(GHashTable) all = g_hash_table_new(g_str_hash, g_str_equal);
	GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);

	for (guint i = 0; i < r->names->len; i++) {
		const struct row_name *n = g_ptr_array_index(r->names, i);

		for (int k = 0; k < 2; k++) {
			g_autofree char *dir = dir_path(r, &r->states[k], n->parent, 0),
					*path = dir ? path_join(dir, n->name) : NULL;

			if (path && g_hash_table_add(all, path))
				g_ptr_array_add(paths, g_steal_pointer(&path));
		}
	}
	g_ptr_array_sort(paths, path_order);
	return paths;
}
