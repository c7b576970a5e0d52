/* SPDX-License-Identifier: MIT */
/*
 * overlay_dir - listing directories
 *
 * READDIR comes without a handle, so an offset must mean something by itself: it is a hash of the name, and entries are given in the order of
 * their hashes. It stays good when names come and go, and in another process. Two names of one directory with the same 63-bit hash would
 * be given together or not at all across a buffer's border; at a million names the chance is below 10^-7.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "fs/overlay_private.h"

#define OFFSET_DOT 1
#define OFFSET_DOTDOT 2
#define OFFSET_FIRST 3

struct listed {
	uint64_t hash;
	uint64_t ino;
	char *name;
	unsigned char type; /* DT_... */
};

struct listing {
	GArray *entries; /* struct listed, by hash */
};

static void listed_clear(gpointer data)
{
	g_free(((struct listed *)data)->name);
}

void listing_free(struct listing *l)
{
	if (!l)
		return;
	g_array_unref(l->entries);
	g_free(l);
}

/* FNV-1a, then a finaliser that spreads it over all bits. */
static uint64_t name_hash(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	h ^= h >> 33;
	h *= UINT64_C(0xff51afd7ed558ccd);
	h ^= h >> 33;
	h &= INT64_MAX;
	return h < OFFSET_FIRST ? h + OFFSET_FIRST : h;
}

static gint listed_order(gconstpointer a, gconstpointer b)
{
	const struct listed *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash ? 1 : strcmp(x->name, y->name);
}

static void listing_add(struct listing *l, const char *name, uint64_t ino, unsigned char type)
{
	struct listed e = { .hash = name_hash(name), .ino = ino, .name = g_strdup(name), .type = type };

	g_array_append_val(l->entries, e);
}

/* A name of the workspace that was not looked up yet: is it to be seen? */
static bool lower_name_visible(struct overlay *o, struct node *dir, const char *lower_dir, const struct lower_name *n)
{
	g_autofree char *lower = path_join(lower_dir, n->name);
	struct verdict v;

	child_verdict(o, dir, n->name, lower, true, n->type == DT_DIR, &v);
	return !guard_is_hidden(&v);
}

static int listing_new(struct overlay *o, struct node *dir, struct listing **ret)
{
	g_autofree char *lower_dir = node_is_attached(dir) ? node_lower_path(dir) : NULL;
	g_autoptr(GPtrArray) names = NULL;
	g_autoptr(GHashTable) present = NULL;
	struct listing *l;
	GHashTableIter iter;
	gpointer value;
	int r = overlay_load(o, dir);

	dir_watch(o, dir);
	if (r == 0 && lower_dir)
		r = lower_list(o->lower, lower_dir, &names);
	if (r < 0 && !(errno_is_absent(r) && dir->row.born > 0))
		return r;
	l = g_new0(struct listing, 1);
	l->entries = g_array_new(FALSE, FALSE, sizeof(struct listed));
	g_array_set_clear_func(l->entries, listed_clear);
	for (guint i = 0; names && i < names->len; i++) {
		const struct lower_name *n = g_ptr_array_index(names, i);
		const struct dentry *d = dentry_find(dir, n->name);

		if (d && d->born > 0)
			continue;
		if (d ? !guard_is_hidden(&d->node->verdict) : lower_name_visible(o, dir, lower_dir, n))
			listing_add(l, n->name, d ? d->node->ino : n->ino, n->type);
	}
	if (dir->children) {
		g_hash_table_iter_init(&iter, dir->children);
		while (g_hash_table_iter_next(&iter, NULL, &value)) {
			const struct dentry *d = value;

			if (d->born > 0 && d->node && !guard_is_hidden(&d->node->verdict) && dentry_shows(o, d) != 0)
				listing_add(l, d->name, d->node->ino, d->node->row.attr.mode >> 12);
		}
	}
	g_array_sort(l->entries, listed_order);
	*ret = l;
	return 0;
}

/* The index of the first entry after @offset. */
static guint listing_after(const struct listing *l, uint64_t offset)
{
	guint low = 0, high = l->entries->len;

	while (low < high) {
		guint mid = low + (high - low) / 2;

		if (g_array_index(l->entries, struct listed, mid).hash <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool give_dots(struct node *dir, uint64_t *offset, overlay_dir_fn fn, void *user)
{
	struct overlay_entry e = { .ino = dir->ino, .attr = { .mode = S_IFDIR } };

	if (*offset < OFFSET_DOT) {
		if (!fn(".", &e, OFFSET_DOT, user))
			return false;
		*offset = OFFSET_DOT;
	}
	if (*offset < OFFSET_DOTDOT) {
		e.ino = dir->names ? dir->names->parent->ino : ROOT_INO;
		if (!fn("..", &e, OFFSET_DOTDOT, user))
			return false;
		*offset = OFFSET_DOTDOT;
	}
	return true;
}

/* Gives one entry; *full when it did not fit. An entry that is gone meanwhile is passed over. */
static int give_entry(struct overlay *o, struct node *dir, const struct listed *l, bool plus, overlay_dir_fn fn, void *user, bool *full)
{
	struct overlay_entry e = { .ino = l->ino, .attr = { .mode = (uint32_t)l->type << 12 } };
	const struct dentry *d = dentry_find(dir, l->name);
	struct child c = { 0 };
	int r = 0;

	if (d && !d->node)
		return 0;
	if (plus) {
		r = overlay_child(o, dir, l->name, &c);
		if (r < 0 || !c.node)
			return r;
		r = guard_is_hidden(&c.node->verdict) ? -ESTALE : node_entry(o, c.node, &e);
		if (r < 0)
			node_release(o->nodes, c.node);
		if (r < 0)
			return r == -ESTALE ? 0 : r;
		e.name_cacheable = name_is_cacheable(dir, &c);
	}
	*full = !fn(l->name, &e, l->hash, user);
	if (plus && !*full)
		node_count(c.node, 1);
	else if (plus)
		node_release(o->nodes, c.node);
	return 0;
}

int overlay_readdir(struct overlay *o, uint64_t ino, uint64_t offset, bool plus, overlay_dir_fn fn, void *user)
{
	struct listing *l;
	struct node *dir;
	bool full = false;
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = "list", .ino = ino });
	r = overlay_dir(o, ino, &dir);
	if (r == 0)
		r = guard_look(&dir->verdict);
	if (r == 0 && (offset == 0 || !dir->listing)) {
		r = listing_new(o, dir, &l);
		if (r == 0) {
			listing_free(dir->listing);
			dir->listing = l;
		}
	}
	if (r == 0 && give_dots(dir, &offset, fn, user)) {
		for (guint i = listing_after(dir->listing, offset); r == 0 && !full && i < dir->listing->entries->len; i++)
			r = give_entry(o, dir, &g_array_index(dir->listing->entries, struct listed, i), plus, fn, user, &full);
		if (r == 0 && !full)
			g_clear_pointer(&dir->listing, listing_free);
	}
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}
