/* SPDX-License-Identifier: MIT */
#include "snapshot/similar.h"

#include <string.h>

#include "snapshot/blob.h"
#include "snapshot/spans.h"

/* A deleted or an added file. */
struct file {
	struct change *change; /* NULL: half of a rename by now */
	struct side side;
	const char *name; /* the last of its path */
	uint8_t sha256[32];
	struct file *next;  /* with the same key in a table of equal files */
	bool wanted;	    /* there is one of about its size */
	struct spans *spans; /* NULL: not to be compared by lines */
};

struct files {
	struct tree *from, *to;
	GArray *deleted, *added; /* of struct file, by path */
};

/* Two files that may be one. Of @deleted and @added only the order is used: both are in order of their paths. */
struct likeness {
	struct file *deleted, *added;
	uint8_t percent;
	bool same_name;
};

static struct file *file_at(GArray *list, guint i)
{
	return &g_array_index(list, struct file, i);
}

static void file_clear(gpointer data)
{
	spans_free(((struct file *)data)->spans);
}

static void list_file(GArray *list, struct tree *t, struct change *c, const struct entry *e)
{
	const char *slash = strrchr(c->path, '/');
	struct file file = { .change = c, .side = { t, e }, .name = slash ? slash + 1 : c->path };

	if (S_ISREG(e->attr.mode) && e->attr.size > 0)
		g_array_append_val(list, file);
}

static GArray *list_new(void)
{
	GArray *list = g_array_new(FALSE, FALSE, sizeof(struct file));

	g_array_set_clear_func(list, file_clear);
	return list;
}

static void list_files(struct files *f, GPtrArray *changes)
{
	f->deleted = list_new();
	f->added = list_new();
	for (guint i = 0; i < changes->len; i++) {
		struct change *c = g_ptr_array_index(changes, i);

		if (c->status == CHANGE_DELETED)
			list_file(f->deleted, f->from, c, c->before);
		else if (c->status == CHANGE_ADDED)
			list_file(f->added, f->to, c, c->after);
	}
}

static void join(struct file *deleted, struct file *added, uint8_t percent)
{
	struct change *c = added->change;
	bool equal;

	if (sides_compare_xattrs(deleted->side, added->side, &equal) < 0)
		return;
	change_rename(c, deleted->change);
	c->content_changed = percent < 100;
	c->xattrs_changed = !equal;
	c->similarity = percent;
	deleted->change = added->change = NULL;
}

/* Equal files */

static GHashTable *sizes_of(GArray *list)
{
	GHashTable *sizes = g_hash_table_new(g_int64_hash, g_int64_equal);

	for (guint i = 0; i < list->len; i++)
		g_hash_table_add(sizes, (gpointer)&file_at(list, i)->side.entry->attr.size);
	return sizes;
}

static bool file_hash(struct file *file)
{
	const struct change *c = file->change;

	if (c->before ? c->has_sha256_before : c->has_sha256_after) {
		memcpy(file->sha256, c->before ? c->sha256_before : c->sha256_after, sizeof(file->sha256));
		return true;
	}
	return tree_hash(file->side.tree, file->side.entry, file->sha256) == 0;
}

/* Those of @list that @others has a file of the same size as, with their hashes. Borrowed. */
static GPtrArray *hashed(GArray *list, GArray *others)
{
	g_autoptr(GHashTable) sizes = sizes_of(others);
	GPtrArray *found = g_ptr_array_new();

	for (guint i = 0; i < list->len; i++) {
		struct file *file = file_at(list, i);

		if (g_hash_table_contains(sizes, &file->side.entry->attr.size) && file_hash(file))
			g_ptr_array_add(found, file);
	}
	return found;
}

static guint content_hash(gconstpointer key)
{
	guint hash;

	memcpy(&hash, ((const struct file *)key)->sha256, sizeof(hash));
	return hash;
}

static gboolean content_equal(gconstpointer a, gconstpointer b)
{
	const struct file *x = a, *y = b;

	return x->side.entry->attr.size == y->side.entry->attr.size && memcmp(x->sha256, y->sha256, sizeof(x->sha256)) == 0;
}

static guint named_hash(gconstpointer key)
{
	return content_hash(key) ^ g_str_hash(((const struct file *)key)->name);
}

static gboolean named_equal(gconstpointer a, gconstpointer b)
{
	return content_equal(a, b) && strcmp(((const struct file *)a)->name, ((const struct file *)b)->name) == 0;
}

/*
 * The deleted files are in a table, those that are alike in a chain behind one key: however many are, each is taken in
 * one step.
 */
static void join_equal_by(GPtrArray *deleted, GPtrArray *added, GHashFunc hash, GEqualFunc equal)
{
	g_autoptr(GHashTable) table = g_hash_table_new(hash, equal);

	for (guint i = deleted->len; i > 0; i--) {
		struct file *file = g_ptr_array_index(deleted, i - 1);

		if (!file->change)
			continue;
		file->next = g_hash_table_lookup(table, file);
		g_hash_table_replace(table, file, file);
	}
	for (guint i = 0; i < added->len; i++) {
		struct file *file = g_ptr_array_index(added, i), *source;

		source = file->change ? g_hash_table_lookup(table, file) : NULL;
		if (!source)
			continue;
		if (source->next)
			g_hash_table_replace(table, source->next, source->next);
		else
			g_hash_table_remove(table, source);
		join(source, file, 100);
	}
}

static void join_equal(struct files *f)
{
	g_autoptr(GPtrArray) deleted = hashed(f->deleted, f->added), added = hashed(f->added, f->deleted);

	join_equal_by(deleted, added, named_hash, named_equal);
	join_equal_by(deleted, added, content_hash, content_equal);
}

/* Similar files */

static void drop_done(GArray *list)
{
	guint kept = 0;

	for (guint i = 0; i < list->len; i++) {
		struct file *file = file_at(list, i);

		if (file->change && file->side.entry->attr.size <= SIMILAR_SIZE_MAX)
			*file_at(list, kept++) = *file;
	}
	g_array_set_size(list, kept);
}

/* What one has of the other is at most the smaller one. */
static bool sizes_allow(const struct file *a, const struct file *b)
{
	uint64_t x = a->side.entry->attr.size, y = b->side.entry->attr.size;

	return MIN(x, y) * 100 >= MAX(x, y) * SIMILAR_PERCENT;
}

typedef void (*pair_fn)(struct file *deleted, struct file *added, void *user);

static void each_pair(struct files *f, pair_fn fn, void *user)
{
	for (guint i = 0; i < f->deleted->len; i++)
		for (guint j = 0; j < f->added->len; j++)
			if (sizes_allow(file_at(f->deleted, i), file_at(f->added, j)))
				fn(file_at(f->deleted, i), file_at(f->added, j), user);
}

static void want_pair(struct file *deleted, struct file *added, void *user)
{
	(void)user;
	deleted->wanted = added->wanted = true;
}

static uint64_t wanted_bytes(GArray *list)
{
	uint64_t bytes = 0;

	for (guint i = 0; i < list->len; i++)
		if (file_at(list, i)->wanted)
			bytes += file_at(list, i)->side.entry->attr.size;
	return bytes;
}

static void read_spans(GArray *list)
{
	for (guint i = 0; i < list->len; i++) {
		struct file *file = file_at(list, i);
		struct blob blob = { 0 };

		if (file->wanted && blob_open(file->side, &blob) == 0 && !blob.binary && blob.bytes) {
			file->spans = spans_new();
			spans_add(file->spans, g_bytes_get_data(blob.bytes, NULL), blob.size);
			spans_end(file->spans);
		}
		blob_clear(&blob);
	}
}

static void count_steps(struct file *deleted, struct file *added, void *user)
{
	uint64_t *steps = user;

	if (deleted->spans && added->spans)
		*steps += spans_length(deleted->spans) + spans_length(added->spans);
}

static void compare_pair(struct file *deleted, struct file *added, void *user)
{
	struct likeness l = { .deleted = deleted, .added = added };

	if (!deleted->spans || !added->spans)
		return;
	/* They were found to differ, so it is never all. */
	l.percent = MIN(spans_similarity(deleted->spans, added->spans), 99);
	l.same_name = strcmp(deleted->name, added->name) == 0;
	if (l.percent >= SIMILAR_PERCENT)
		g_array_append_val(user, l);
}

static int likeness_order(const void *a, const void *b)
{
	const struct likeness *x = a, *y = b;

	if (x->percent != y->percent)
		return x->percent > y->percent ? -1 : 1;
	if (x->same_name != y->same_name)
		return x->same_name ? -1 : 1;
	if (x->deleted != y->deleted)
		return x->deleted < y->deleted ? -1 : 1;
	return x->added < y->added ? -1 : x->added > y->added;
}

static void join_similar(struct files *f)
{
	g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(struct likeness));
	uint64_t steps = 0;

	drop_done(f->deleted);
	drop_done(f->added);
	if ((uint64_t)f->deleted->len * f->added->len > SIMILAR_PAIRS_MAX)
		return;
	each_pair(f, want_pair, NULL);
	if (wanted_bytes(f->deleted) + wanted_bytes(f->added) > SIMILAR_BYTES_MAX)
		return;
	read_spans(f->deleted);
	read_spans(f->added);
	each_pair(f, count_steps, &steps);
	if (steps > SIMILAR_STEPS_MAX)
		return;
	each_pair(f, compare_pair, found);
	g_array_sort(found, likeness_order);
	for (guint i = 0; i < found->len; i++) {
		const struct likeness *l = &g_array_index(found, struct likeness, i);

		if (l->deleted->change && l->added->change)
			join(l->deleted, l->added, l->percent);
	}
}

void similar_join(GPtrArray *changes, struct tree *from, struct tree *to)
{
	struct files f = { .from = from, .to = to };

	list_files(&f, changes);
	if (f.deleted->len && f.added->len) {
		join_equal(&f);
		join_similar(&f);
		changes_sweep(changes);
	}
	g_array_unref(f.deleted);
	g_array_unref(f.added);
}
