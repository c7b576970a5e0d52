/* SPDX-License-Identifier: MIT */
#include "snapshot/selection.h"

#include <string.h>

#include "snapshot/blob.h"
#include "snapshot/content_origin.h"

#define NOT_OFFERED G_MAXUINT

/* One change of the list. */
struct item {
	struct change *change;
	guint offer;				 /* NOT_OFFERED: it follows others */
	guint leader;				 /* item that it goes with, or NOT_OFFERED */
	guint below, taken_below, refused_below; /* of a directory: offers */
};

struct selection {
	struct tree *from, *to;
	GArray *items;	  /* struct item, as the changes are */
	GArray *offers;	  /* struct offer */
	GArray *loaded;	  /* bool, for each offer */
	GHashTable *dirs; /* path -> item number + 1, of directories that are added, deleted or of another type */
	GPtrArray *parts; /* changes that were made of parts; owned */
};

static struct item *item_at(const struct selection *s, guint i)
{
	return &g_array_index(s->items, struct item, i);
}

static bool is_dir(const struct entry *e)
{
	return e && S_ISDIR(e->attr.mode);
}

/* Which changes follow others */

static const char *next_parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return NULL;
	*slash = '\0';
	return path;
}

/* Directories that come or go, above @path. */
static void each_dir_above(struct selection *s, const char *path, void (*fn)(struct selection *s, guint dir, struct item *item),
			   struct item *item)
{
	g_autofree char *above = g_strdup(path);

	while (next_parent(above)) {
		guint number = GPOINTER_TO_UINT(g_hash_table_lookup(s->dirs, above));

		if (number)
			fn(s, number - 1, item);
	}
}

static void follow_type(struct selection *s, guint dir, struct item *item)
{
	if (item_at(s, dir)->change->status == CHANGE_TYPE)
		item->leader = dir;
}

static void count_below(struct selection *s, guint dir, struct item *item)
{
	(void)item;
	item_at(s, dir)->below++;
}

static void each_dir_of(struct selection *s, struct item *item, void (*fn)(struct selection *s, guint dir, struct item *item))
{
	each_dir_above(s, item->change->path, fn, item);
	if (item->change->from_path)
		each_dir_above(s, item->change->from_path, fn, item);
}

static void find_offers(struct selection *s)
{
	for (guint i = 0; i < s->items->len; i++) {
		const struct change *c = item_at(s, i)->change;

		if ((is_dir(c->before) || is_dir(c->after)) && !(c->before && c->after && c->status != CHANGE_TYPE))
			g_hash_table_insert(s->dirs, c->path, GUINT_TO_POINTER(i + 1));
	}
	for (guint i = 0; i < s->items->len; i++)
		each_dir_of(s, item_at(s, i), follow_type);
	for (guint i = 0; i < s->items->len; i++)
		if (item_at(s, i)->leader == NOT_OFFERED)
			each_dir_of(s, item_at(s, i), count_below);
	for (guint i = 0; i < s->items->len; i++) {
		struct item *item = item_at(s, i);
		const struct offer offer = { .change = item->change };
		const bool loaded = false;

		if (item->leader != NOT_OFFERED || (item->below > 0 && item->change->status != CHANGE_TYPE))
			continue;
		item->offer = s->offers->len;
		g_array_append_val(s->offers, offer);
		g_array_append_val(s->loaded, loaded);
	}
	/* From here on it counts what can be chosen. */
	for (guint i = 0; i < s->items->len; i++)
		item_at(s, i)->below = 0;
	for (guint i = 0; i < s->items->len; i++)
		if (item_at(s, i)->offer != NOT_OFFERED)
			each_dir_of(s, item_at(s, i), count_below);
}

struct selection *selection_new(GPtrArray *changes, struct tree *from, struct tree *to)
{
	struct selection *s = g_new0(struct selection, 1);

	s->from = from;
	s->to = to;
	s->items = g_array_new(FALSE, FALSE, sizeof(struct item));
	s->offers = g_array_new(FALSE, FALSE, sizeof(struct offer));
	s->loaded = g_array_new(FALSE, FALSE, sizeof(bool));
	s->dirs = g_hash_table_new(g_str_hash, g_str_equal);
	s->parts = g_ptr_array_new_with_free_func((GDestroyNotify)change_free);
	for (guint i = 0; i < changes->len; i++) {
		const struct item item = { .change = g_ptr_array_index(changes, i), .offer = NOT_OFFERED, .leader = NOT_OFFERED };

		g_array_append_val(s->items, item);
	}
	find_offers(s);
	return s;
}

void selection_free(struct selection *s)
{
	if (!s)
		return;
	for (guint i = 0; i < s->offers->len; i++)
		hunks_free(selection_at(s, i)->hunks);
	g_array_unref(s->items);
	g_array_unref(s->offers);
	g_array_unref(s->loaded);
	g_hash_table_unref(s->dirs);
	g_ptr_array_unref(s->parts);
	g_free(s);
}

/* Choosing */

guint selection_count(const struct selection *s)
{
	return s->offers->len;
}

struct offer *selection_at(struct selection *s, guint i)
{
	return &g_array_index(s->offers, struct offer, i);
}

static bool has_one_name(const struct entry *e)
{
	return S_ISREG(e->attr.mode) && e->attr.nlink <= 1;
}

static int can_take_apart(struct selection *s, const struct change *c, bool *ret)
{
	bool reads = true;
	int r;

	*ret = false;
	if (c->status != CHANGE_MODIFIED || !has_one_name(c->before) || !has_one_name(c->after) || !c->after->content)
		return 0;
	r = content_reads_workspace(tree_store(s->to), c->after->content, &reads);
	*ret = !reads;
	return r;
}

static int changes_attributes(struct selection *s, const struct change *c, bool *ret)
{
	bool equal = true;
	int r = sides_compare_xattrs((struct side){ s->from, c->before }, (struct side){ s->to, c->after }, &equal);

	*ret = !equal || change_mode_changed(c);
	return r;
}

int selection_load(struct selection *s, guint i, GError **error)
{
	struct offer *o = selection_at(s, i);
	struct blob before = { 0 }, after = { 0 };
	bool apart = false;
	int r;

	if (g_array_index(s->loaded, bool, i))
		return 0;
	r = can_take_apart(s, o->change, &apart);
	if (r == 0 && apart)
		r = blob_open((struct side){ s->from, o->change->before }, &before);
	if (r == 0 && apart)
		r = blob_open((struct side){ s->to, o->change->after }, &after);
	if (r == 0 && apart)
		r = changes_attributes(s, o->change, &o->attributes);
	if (r < 0)
		change_error(error, r, "can't read", o->change->path);
	else if (apart && blobs_are_text(&before, &after))
		r = hunks_new(before.bytes, after.bytes, &o->hunks, error);
	blob_clear(&before);
	blob_clear(&after);
	if (r < 0)
		return r;
	g_array_index(s->loaded, bool, i) = true;
	if (o->hunks)
		selection_choose(s, i, o->choice);
	else
		o->attributes = false;
	return 0;
}

void selection_choose(struct selection *s, guint i, enum choice choice)
{
	struct offer *o = selection_at(s, i);

	o->choice = o->attributes_choice = choice;
	for (guint k = 0; o->hunks && k < hunks_count(o->hunks); k++)
		hunks_choose(o->hunks, k, choice);
}

static enum choice offer_state(const struct offer *o)
{
	enum choice state = o->hunks ? hunks_state(o->hunks) : o->choice;

	return o->attributes && state != o->attributes_choice ? CHOICE_MIXED : state;
}

enum choice selection_state(struct selection *s, guint i)
{
	return offer_state(selection_at(s, i));
}

guint selection_count_state(struct selection *s, enum choice state)
{
	guint n = 0;

	for (guint i = 0; i < s->offers->len; i++)
		n += selection_state(s, i) == state;
	return n;
}

/* How many parts of an offer are @choice. */
static guint count_parts(const struct offer *o, enum choice choice)
{
	guint n = o->attributes && o->attributes_choice == choice;

	if (!o->hunks)
		return o->choice == choice;
	for (guint i = 0; i < hunks_count(o->hunks); i++)
		n += hunks_choice(o->hunks, i) == choice;
	return n;
}

static bool is_taken(const struct offer *o)
{
	return count_parts(o, CHOICE_TAKEN) > 0;
}

static bool is_refused(const struct offer *o)
{
	return count_parts(o, CHOICE_REFUSED) > 0 && count_parts(o, CHOICE_OPEN) == 0;
}

/* Results */

static void add_taken(struct selection *s, guint dir, struct item *item)
{
	(void)item;
	item_at(s, dir)->taken_below++;
}

static void add_refused(struct selection *s, guint dir, struct item *item)
{
	(void)item;
	item_at(s, dir)->refused_below++;
}

static void count_dirs(struct selection *s)
{
	for (guint i = 0; i < s->items->len; i++)
		item_at(s, i)->taken_below = item_at(s, i)->refused_below = 0;
	for (guint i = 0; i < s->items->len; i++) {
		struct item *item = item_at(s, i);
		const struct offer *o = item->offer == NOT_OFFERED ? NULL : selection_at(s, item->offer);

		if (o && is_taken(o))
			each_dir_of(s, item, add_taken);
		if (o && is_refused(o) && !is_taken(o))
			each_dir_of(s, item, add_refused);
	}
}

/* Mode, owner and xattrs stay the workspace's. */
static int keep_attributes(struct selection *s, struct change *c)
{
	struct entry *after = c->after;

	after->attr.mode = c->before->attr.mode;
	after->attr.uid = c->before->attr.uid;
	after->attr.gid = c->before->attr.gid;
	after->own_xattrs = true;
	g_clear_pointer(&after->xattrs, g_bytes_unref);
	return change_xattrs(s->from, c->before, &after->xattrs);
}

/* The change that takes a part of @o; owned by the selection. */
static int make_part(struct selection *s, const struct offer *o, struct change **ret)
{
	const struct change *whole = o->change;
	struct change *c = g_new0(struct change, 1);
	bool bytes = false;

	for (guint i = 0; i < hunks_count(o->hunks); i++)
		bytes = bytes || hunks_choice(o->hunks, i) == CHOICE_TAKEN;
	*c = (struct change){ .path = g_strdup(whole->path),
			      .status = CHANGE_MODIFIED,
			      .partial = true,
			      .content_changed = bytes,
			      .before = entry_copy(whole->before),
			      .after = entry_copy(whole->after),
			      .has_sha256_before = whole->has_sha256_before };
	memcpy(c->sha256_before, whole->sha256_before, sizeof(c->sha256_before));
	c->after->content = 0;
	if (bytes) {
		c->after->bytes = hunks_compose(o->hunks);
		c->after->attr.size = g_bytes_get_size(c->after->bytes);
		c->after->attr.mtime = c->after->attr.atime = nsec_now();
	} else {
		c->after->lower = g_strdup(c->before->lower);
		c->after->attr.size = c->before->attr.size;
		c->after->attr.mtime = c->before->attr.mtime;
		c->status = change_mode_changed(whole) ? CHANGE_PERMISSION : CHANGE_XATTR;
	}
	g_ptr_array_add(s->parts, c);
	*ret = c;
	return o->attributes && o->attributes_choice != CHOICE_TAKEN ? keep_attributes(s, c) : 0;
}

/* A directory that others decide about. */
static bool dir_is_taken(const struct item *item)
{
	return item->change->after ? item->taken_below > 0 : item->taken_below == item->below;
}

int selection_taken(struct selection *s, GPtrArray **ret, GError **error)
{
	g_autoptr(GPtrArray) taken = g_ptr_array_new();
	int r = 0;

	count_dirs(s);
	for (guint i = 0; r == 0 && i < s->items->len; i++) {
		const struct item *item = item_at(s, i), *leader = item->leader == NOT_OFFERED ? item : item_at(s, item->leader);
		const struct offer *o = leader->offer == NOT_OFFERED ? NULL : selection_at(s, leader->offer);
		struct change *c = item->change;

		if (o ? !is_taken(o) : !dir_is_taken(leader))
			continue;
		if (o && offer_state(o) == CHOICE_MIXED)
			r = make_part(s, o, &c);
		if (r < 0)
			return change_error(error, r, "can't read", c->path);
		g_ptr_array_add(taken, c);
	}
	*ret = g_steal_pointer(&taken);
	return 0;
}

GPtrArray *selection_refused(struct selection *s)
{
	GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);

	count_dirs(s);
	for (guint i = 0; i < s->items->len; i++) {
		const struct item *item = item_at(s, i);
		const struct offer *o = item->offer == NOT_OFFERED ? NULL : selection_at(s, item->offer);

		if (item->leader != NOT_OFFERED || (o ? !is_refused(o) : item->refused_below < item->below))
			continue;
		g_ptr_array_add(paths, g_strdup(item->change->path));
		if (item->change->from_path)
			g_ptr_array_add(paths, g_strdup(item->change->from_path));
	}
	return paths;
}
