/* SPDX-License-Identifier: MIT */
#include "snapshot/change.h"

#include <errno.h>
#include <string.h>

#include "snapshot/compare.h"
#include "snapshot/pathspec.h"
#include "snapshot/xattr.h"

/* A directory still to be compared; @before or @after is NULL when that side has none. Borrows its entries. */
struct pair {
	char *path;
	const struct entry *before;
	const struct entry *after;
	bool selected; /* the pathspec matched it, so it covers all below */
};

/* The directories to do are a list, not the C stack: how deep they nest is the sandboxed program's choice. */
struct walk {
	struct tree *from;
	struct tree *to;
	const struct change_options *options;
	struct pathspec *spec;
	GQueue todo;	 /* of struct pair */
	GPtrArray *kept; /* entries of directories in @todo that no change owns */
	GPtrArray *changes;
	char *at; /* the path in work, for errors */
};

void change_free(struct change *c)
{
	if (!c)
		return;
	g_free(c->path);
	g_free(c->from_path);
	entry_free(c->before);
	entry_free(c->after);
	g_free(c);
}

int change_error(GError **error, int r, const char *what, const char *path)
{
	g_autofree char *shown = g_utf8_make_valid(*path ? path : ".", -1);

	g_set_error(error, STORE_ERROR, r == -ENOSPC ? STORE_ERROR_NO_SPACE : STORE_ERROR_FAILED, "%s: %s: %s", shown,
		    what, r == -ESTALE ? "changed while it was being read" : g_strerror(-r));
	return r;
}

int change_xattrs(struct tree *t, const struct entry *e, GBytes **ret)
{
	g_autofree char *path = NULL;
	GBytes *set = NULL;
	int r;

	if (e->own_xattrs || e->lower || !e->origin)
		return tree_xattrs(t, e, ret);
	r = side_identity((struct side){ t, e }, &path);
	if (r == 0)
		r = lower_xattrs(tree_lower(t), path, &set);
	if (r == 0)
		*ret = set;
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP) {
		*ret = NULL;
		return 0;
	}
	return r;
}

static bool mode_differs(const struct entry *a, const struct entry *b)
{
	/* A symlink's own permissions mean nothing and can't be set. */
	return a->attr.uid != b->attr.uid || a->attr.gid != b->attr.gid ||
	       (!S_ISLNK(a->attr.mode) && (a->attr.mode & 07777) != (b->attr.mode & 07777));
}

bool change_mode_changed(const struct change *c)
{
	return c->before && c->after && mode_differs(c->before, c->after);
}

static bool is_directory(const struct entry *e)
{
	return e && S_ISDIR(e->attr.mode);
}

static bool same_type(const struct entry *a, const struct entry *b)
{
	return (a->attr.mode & S_IFMT) == (b->attr.mode & S_IFMT);
}

static struct side from_side(struct walk *w, const struct entry *e)
{
	return (struct side){ w->from, e };
}

static struct side to_side(struct walk *w, const struct entry *e)
{
	return (struct side){ w->to, e };
}

static void walk_at(struct walk *w, const char *path)
{
	g_free(w->at);
	w->at = g_strdup(path);
}

/* Contents */

/* Both hashes of a change, as far as there are files to hash. One of equal bytes is copied. */
static int change_hash(struct walk *w, struct change *c)
{
	bool before = c->before && S_ISREG(c->before->attr.mode), after = c->after && S_ISREG(c->after->attr.mode);
	int r = 0;

	if (before && !c->has_sha256_before) {
		r = tree_hash(w->from, c->before, c->sha256_before);
		c->has_sha256_before = r == 0;
	}
	if (r == 0 && after && !c->has_sha256_after) {
		if (before && !c->content_changed)
			memcpy(c->sha256_after, c->sha256_before, sizeof(c->sha256_after));
		else
			r = tree_hash(w->to, c->after, c->sha256_after);
		c->has_sha256_after = r == 0;
	}
	return r;
}

/*
 * Are the bytes, and the xattrs, of two objects of one type different? Reads each file once: it hashes when the hash is wanted anyway.
 */
static int change_compare(struct walk *w, struct change *c)
{
	struct side a = from_side(w, c->before), b = to_side(w, c->after);
	bool equal = true;
	int r = 0;

	c->content_changed = false;
	if (S_ISREG(c->after->attr.mode)) {
		bool read = c->before->attr.size == c->after->attr.size && !sides_known_equal(a, b);

		if (read && !w->options->no_hash) {
			c->content_changed = true;
			r = change_hash(w, c);
			equal = memcmp(c->sha256_before, c->sha256_after, sizeof(c->sha256_after)) == 0;
		} else {
			r = sides_compare_bytes(a, b, &equal);
		}
	} else if (S_ISLNK(c->after->attr.mode)) {
		r = sides_compare_targets(a, b, &equal);
	} else if (S_ISCHR(c->after->attr.mode) || S_ISBLK(c->after->attr.mode)) {
		equal = c->before->attr.rdev == c->after->attr.rdev;
	}
	c->content_changed = !equal;
	if (r < 0)
		return r;
	r = sides_compare_xattrs(a, b, &equal);
	c->xattrs_changed = !equal;
	return r;
}

/* Walking */

static void pair_free(gpointer data)
{
	struct pair *p = data;

	g_free(p->path);
	g_free(p);
}

static void walk_push(struct walk *w, const char *path, const struct entry *before, const struct entry *after,
		      bool selected)
{
	struct pair *p = g_new0(struct pair, 1);

	*p = (struct pair){ .path = g_strdup(path),
			    .selected = selected,
			    .before = is_directory(before) ? before : NULL,
			    .after = is_directory(after) ? after : NULL };
	g_queue_push_head(&w->todo, p);
}

static int walk_may_see(struct walk *w, const char *path, struct side s, bool *ret)
{
	g_autofree char *lower = NULL;
	int r;

	if (!s.entry || !w->options->filter)
		return 0;
	r = side_identity(s, &lower);
	if (r == 0)
		*ret = w->options->filter(path, lower, is_directory(s.entry), w->options->filter_user);
	return r;
}

/* How @before became @after, both there and of one type; 0 = not at all. */
static int change_classify(struct walk *w, struct change *c, int *ret_status)
{
	int r = change_compare(w, c);

	*ret_status = 0;
	if (r < 0)
		return r;
	if (c->content_changed)
		*ret_status = CHANGE_MODIFIED;
	else if (mode_differs(c->before, c->after))
		*ret_status = CHANGE_PERMISSION;
	else if (c->xattrs_changed)
		*ret_status = CHANGE_XATTR;
	return 0;
}

/* Compares what is at @path. Takes both entries; NULL = nothing there. */
static int walk_entry(struct walk *w, const char *path, bool selected, struct entry *before, struct entry *after)
{
	struct change *c = g_new0(struct change, 1);
	bool directory = is_directory(before) || is_directory(after);
	int status = 0, r = 0;

	*c = (struct change){ .path = g_strdup(path), .before = before, .after = after, .content_changed = true };
	if (directory)
		walk_push(w, path, before, after, selected);
	if (!selected)
		;
	else if (!before && after)
		status = CHANGE_ADDED;
	else if (before && !after)
		status = CHANGE_DELETED;
	else if (before && !same_type(before, after))
		status = CHANGE_TYPE;
	else if (before)
		r = change_classify(w, c, &status);
	if (r == 0 && status) {
		c->status = status;
		g_ptr_array_add(w->changes, c);
		return 0;
	}
	if (directory) {
		g_ptr_array_add(w->kept, g_steal_pointer(&c->before));
		g_ptr_array_add(w->kept, g_steal_pointer(&c->after));
	}
	change_free(c);
	return r;
}

/* One name of a directory pair. @before and @after are what the rows or listings have for it; both are taken. */
static int walk_name(struct walk *w, const struct pair *p, bool rows_only, const char *name, struct entry *before,
		     struct entry *after)
{
	g_autoptr(entry_t) a = before, b = after;
	g_autofree char *path = path_join(p->path, name);
	enum pathspec_match match = p->selected ? PATHSPEC_ALL : pathspec_match(w->spec, path);
	bool visible = true;
	int r = 0;

	if (match == PATHSPEC_NONE)
		return 0;
	walk_at(w, path);
	/* A name without a row on one side only is the merged directory's own there. */
	if (rows_only && !a)
		r = tree_lookup(w->from, p->before, name, &a);
	if (r == 0 && rows_only && !b)
		r = tree_lookup(w->to, p->after, name, &b);
	if (a && (a->whiteout || !a->attr.mode))
		g_clear_pointer(&a, entry_free);
	if (b && (b->whiteout || !b->attr.mode))
		g_clear_pointer(&b, entry_free);
	if (match == PATHSPEC_BELOW && !is_directory(a) && !is_directory(b))
		return r;
	/* Hidden on either side is hidden: else what the rules protect would look deleted, or made anew. */
	if (r == 0)
		r = walk_may_see(w, path, from_side(w, a), &visible);
	if (r == 0 && visible)
		r = walk_may_see(w, path, to_side(w, b), &visible);
	if (r < 0 || !visible || (!a && !b))
		return r;
	return walk_entry(w, path, match == PATHSPEC_ALL, g_steal_pointer(&a), g_steal_pointer(&b));
}

static gint entry_order(gconstpointer a, gconstpointer b)
{
	const struct entry *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int walk_read(struct tree *t, const struct entry *dir, bool rows_only, GPtrArray **ret)
{
	int r = 0;

	*ret = NULL;
	if (dir)
		r = rows_only ? tree_rows(t, dir, ret) : tree_list(t, dir, ret);
	if (r == 0 && !*ret)
		*ret = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);
	if (r == 0)
		g_ptr_array_sort(*ret, entry_order);
	return r;
}

static struct entry *next_entry(GPtrArray *list, guint *i)
{
	return g_steal_pointer(&g_ptr_array_index(list, (*i)++));
}

static const char *name_at(GPtrArray *list, guint i)
{
	return i < list->len ? ((struct entry *)g_ptr_array_index(list, i))->name : NULL;
}

static int walk_pair(struct walk *w, const struct pair *p)
{
	bool rows_only = p->before && p->after && sides_same_directory(from_side(w, p->before), to_side(w, p->after));
	g_autoptr(GPtrArray) before = NULL, after = NULL;
	guint i = 0, j = 0;
	int r;

	walk_at(w, p->path);
	r = walk_read(w->from, p->before, rows_only, &before);
	if (r == 0)
		r = walk_read(w->to, p->after, rows_only, &after);
	while (r == 0 && (i < before->len || j < after->len)) {
		const char *x = name_at(before, i), *y = name_at(after, j);
		int order = !x ? 1 : !y ? -1 : strcmp(x, y);
		g_autofree char *name = g_strdup(order <= 0 ? x : y);
		struct entry *a = order <= 0 ? next_entry(before, &i) : NULL;
		struct entry *b = order >= 0 ? next_entry(after, &j) : NULL;

		r = walk_name(w, p, rows_only, name, a, b);
	}
	return r;
}

static int walk_all(struct walk *w)
{
	struct entry *before = NULL, *after = NULL;
	struct pair *p;
	int r;

	walk_at(w, "");
	r = tree_root(w->from, &before);
	if (r == 0)
		r = tree_root(w->to, &after);
	if (r < 0) {
		entry_free(before);
		return r;
	}
	r = walk_entry(w, "", pathspec_match(w->spec, "") == PATHSPEC_ALL, before, after);
	while (r == 0 && (p = g_queue_pop_head(&w->todo))) {
		r = walk_pair(w, p);
		pair_free(p);
	}
	return r;
}

/* Renames */

static gint change_order(gconstpointer a, gconstpointer b)
{
	const struct change *const *x = a, *const *y = b;
	int deleted = ((*y)->status == CHANGE_DELETED) - ((*x)->status == CHANGE_DELETED);

	return deleted ? deleted : strcmp((*x)->path, (*y)->path);
}

struct rename_index {
	GHashTable *by_ino;  /* deleted changes by the number of their row */
	GHashTable *by_path; /* and by the workspace path that they came from */
};

static int rename_index_fill(struct walk *w, struct rename_index *index)
{
	for (guint i = 0; i < w->changes->len; i++) {
		struct change *c = g_ptr_array_index(w->changes, i);
		char *identity;
		int r;

		if (c->status != CHANGE_DELETED || is_directory(c->before))
			continue;
		if (c->before->ino && !g_hash_table_contains(index->by_ino, &c->before->ino))
			g_hash_table_insert(index->by_ino, &c->before->ino, c);
		walk_at(w, c->path);
		r = side_identity(from_side(w, c->before), &identity);
		if (r < 0)
			return r;
		if (identity && !g_hash_table_contains(index->by_path, identity))
			g_hash_table_insert(index->by_path, identity, c);
		else
			g_free(identity);
	}
	return 0;
}

/* A deleted path that no other rename took yet. */
static struct change *rename_candidate(GHashTable *table, const void *key, const struct change *c)
{
	struct change *source = g_hash_table_lookup(table, key);

	return source && source->before && same_type(source->before, c->after) ? source : NULL;
}

/* The deleted path that @c was; NULL = none. */
static int rename_source(struct walk *w, struct rename_index *index, const struct change *c, struct change **ret)
{
	g_autofree char *identity = NULL;
	int r;

	*ret = c->after->ino ? rename_candidate(index->by_ino, &c->after->ino, c) : NULL;
	if (*ret)
		return 0;
	r = side_identity(to_side(w, c->after), &identity);
	if (r == 0 && identity)
		*ret = rename_candidate(index->by_path, identity, c);
	return r;
}

void change_rename(struct change *c, struct change *source)
{
	c->status = CHANGE_RENAMED;
	c->from_path = g_strdup(source->path);
	c->before = g_steal_pointer(&source->before);
	c->has_sha256_before = source->has_sha256_before;
	memcpy(c->sha256_before, source->sha256_before, sizeof(c->sha256_before));
}

static int rename_join(struct walk *w, struct change *c, struct change *source)
{
	int r;

	change_rename(c, source);
	r = change_compare(w, c);
	c->similarity = 100;
	if (r == 0 && c->content_changed && S_ISREG(c->after->attr.mode))
		r = sides_similarity(from_side(w, c->before), to_side(w, c->after), &c->similarity);
	else if (c->content_changed)
		c->similarity = 0;
	return r;
}

void changes_sweep(GPtrArray *changes)
{
	guint kept = 0;

	for (guint i = 0; i < changes->len; i++) {
		struct change *c = g_steal_pointer(&g_ptr_array_index(changes, i));

		if (c->before || c->after)
			g_ptr_array_index(changes, kept++) = c;
		else
			change_free(c);
	}
	g_ptr_array_set_size(changes, kept);
}

static int find_renames(struct walk *w)
{
	struct rename_index index = { 0 };
	int r;

	if (tree_lower(w->from) != tree_lower(w->to))
		return 0;
	index.by_ino = g_hash_table_new(g_int64_hash, g_int64_equal);
	index.by_path = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	r = rename_index_fill(w, &index);
	for (guint i = 0; r == 0 && i < w->changes->len; i++) {
		struct change *c = g_ptr_array_index(w->changes, i), *source;

		if (c->status != CHANGE_ADDED || is_directory(c->after))
			continue;
		walk_at(w, c->path);
		r = rename_source(w, &index, c, &source);
		if (r == 0 && source)
			r = rename_join(w, c, source);
	}
	g_hash_table_unref(index.by_ino);
	g_hash_table_unref(index.by_path);
	changes_sweep(w->changes);
	return r;
}

static int hash_all(struct walk *w)
{
	int r = 0;

	for (guint i = 0; r == 0 && i < w->changes->len; i++) {
		struct change *c = g_ptr_array_index(w->changes, i);

		walk_at(w, c->path);
		r = change_hash(w, c);
	}
	return r;
}

int changes_between(struct tree *from, struct tree *to, const struct change_options *options, GPtrArray **ret,
		    GError **error)
{
	static const struct change_options all = { 0 };
	struct walk w = { .from = from, .to = to, .options = options ? options : &all, .todo = G_QUEUE_INIT };
	int r;

	w.spec = pathspec_new(w.options->paths);
	w.kept = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);
	w.changes = g_ptr_array_new_with_free_func((GDestroyNotify)change_free);
	r = walk_all(&w);
	g_ptr_array_sort(w.changes, change_order);
	if (r == 0)
		r = find_renames(&w);
	if (r == 0 && !w.options->no_hash)
		r = hash_all(&w);
	if (r < 0)
		change_error(error, r, "can't compare", w.at);
	else
		*ret = g_ptr_array_ref(w.changes);
	g_queue_clear_full(&w.todo, pair_free);
	g_ptr_array_unref(w.kept);
	g_ptr_array_unref(w.changes);
	pathspec_free(w.spec);
	g_free(w.at);
	return r;
}

GPtrArray *changes_paths(GPtrArray *changes)
{
	GPtrArray *paths = g_ptr_array_new();

	for (guint i = 0; i < changes->len; i++) {
		struct change *c = g_ptr_array_index(changes, i);

		g_ptr_array_add(paths, c->path);
		if (c->from_path)
			g_ptr_array_add(paths, c->from_path);
	}
	return paths;
}
