/* SPDX-License-Identifier: MIT */
/*
 * overlay_heritage - what this process writes down for the one after it, and what it takes over from the one before it
 *
 * The index is the truth about everything that has rows; the roster only adds which numbers the kernel holds, and places of what has no
 * row. So a worker may die between a commit and the roster: where the two contradict each other, the commit came later.
 */
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "fs/overlay_private.h"
#include "fs/roster.h"

G_STATIC_ASSERT(sizeof(struct verdict) <= ROSTER_MARK_MAX);

/* The request that this thread serves. */
static _Thread_local struct {
	uint64_t unique; /* 0 = none */
	bool again;
} request;

/* Requests */

void overlay_request(uint64_t unique, bool again)
{
	request.unique = unique;
	request.again = again;
}

bool overlay_was_done(struct overlay *o)
{
	return request.again && o->heritage && ledger_is_done(&o->heritage->ledger, request.unique);
}

/* Whether the row that was written last says by its ctime that the transaction was committed. It does not where the clock stood still. */
static bool saved_row_tells(const struct overlay *o)
{
	if (!o->saved_ino)
		return false;
	for (guint i = 0; i < o->undo->len; i++) {
		const struct undo *u = &g_array_index(o->undo, struct undo, i);

		if (u->node && u->node->ino == o->saved_ino && u->row.attr.ctime == o->saved_ctime)
			return false;
	}
	return true;
}

struct ledger_entry *heritage_prepare(struct overlay *o)
{
	if (!o->heritage || !request.unique || !saved_row_tells(o))
		return NULL;
	return ledger_prepare(&o->heritage->ledger, o->heritage->worker, request.unique, o->saved_ino, o->saved_ctime);
}

void heritage_settle(struct ledger_entry *e, int r)
{
	ledger_settle(e, r == 0);
}

static bool is_committed(uint64_t ino, int64_t ctime, void *user)
{
	struct overlay *o = user;
	struct node_row row = { 0 };
	bool found = store_node_get(o->store, EPOCH_LIVE, ino, &row) == 0 && row.ino && row.attr.ctime == ctime;

	node_row_clear(&row);
	return found;
}

/* Writing down */

/*
 * What no name or more than one has keeps its verdict, for the next process may know fewer names of it, and of one that is not there any more the
 * rules can't be asked.
 */
static void node_describe(const struct overlay *o, const struct node *n, struct roster_node *ret)
{
	bool other = n->print_ino != n->ino || n->print_dev != lower_dev(o->lower);

	*ret = (struct roster_node){ .ino = n->ino, .lookups = n->lookups, .type = n->row.attr.mode & S_IFMT, .btime = n->print_btime };
	if (n->print_ino && other) {
		ret->dev = n->print_dev;
		ret->print_ino = n->print_ino;
	}
	if (n->names) {
		ret->parent = n->names->parent->ino;
		ret->name = n->names->name;
	}
	if (!n->names || n->row.born == 0)
		ret->origin = n->origin;
	if (!n->names || n->names->next_of_node) {
		ret->mark = &n->verdict;
		ret->mark_size = sizeof(n->verdict);
	}
}

static void node_write(struct overlay *o, struct node *n)
{
	struct roster_node text;

	node_describe(o, n, &text);
	roster_put(o->heritage->roster, &n->entry, &text);
}

/* Without a row it has a place only in the roster, for as long as it is known: something below it may be in the kernel's hands. */
static void node_update_entry(struct node *n, void *user)
{
	struct overlay *o = user;

	if (n->ino == ROOT_INO)
		return;
	if (n->lookups == 0 && (n->row.born > 0 || !n->entry)) {
		roster_drop(o->heritage->roster, g_steal_pointer(&n->entry));
		return;
	}
	for (; n->ino != ROOT_INO; n = n->names->parent) {
		node_write(o, n);
		if (!n->names || n->names->parent->row.born > 0 || n->names->parent->entry)
			break;
	}
}

void heritage_write(struct overlay *o)
{
	if (o->heritage)
		node_touched_each(o->nodes, node_update_entry, o);
}

/* Taking over */

struct known {
	struct roster_node text; /* with strings and mark of its own */
	bool under_way;
};

static void known_free(gpointer data)
{
	struct known *k = data;

	g_free((char *)k->text.name);
	g_free((char *)k->text.origin);
	g_free((void *)k->text.mark);
	g_free(k);
}

struct taking {
	struct overlay *overlay;
	GHashTable *known;   /* ino -> struct known: the roster */
	GHashTable *parents; /* ino -> GArray of uint64_t: the directories in which the index has names of it */
	int error;
};

static void take_known(const struct roster_node *n, void *user)
{
	struct taking *t = user;
	struct known *k = g_new0(struct known, 1);

	k->text = *n;
	k->text.name = g_strdup(n->name);
	k->text.origin = g_strdup(n->origin);
	k->text.mark = g_memdup2(n->mark, n->mark_size);
	g_hash_table_insert(t->known, &k->text.ino, k);
}

static int take_parent(const struct name_row *name, const struct node_row *node, void *user)
{
	struct taking *t = user;
	GArray *list = node->ino ? g_hash_table_lookup(t->parents, &name->ino) : NULL;

	if (!node->ino)
		return 0;
	if (!list) {
		list = g_array_new(FALSE, FALSE, sizeof(uint64_t));
		g_hash_table_insert(t->parents, g_memdup2(&name->ino, sizeof(name->ino)), list);
	}
	g_array_append_val(list, name->parent);
	return 0;
}

static struct node *take_node(struct taking *t, uint64_t ino);

/* A directory with all names of it that have rows; NULL when there is no such directory. */
static struct node *take_dir(struct taking *t, uint64_t ino)
{
	struct node *n = take_node(t, ino);
	int r = n && node_is_dir(n) ? overlay_load(t->overlay, n) : -ENOTDIR;

	/* A place that contradicts another one is none. */
	if (r < 0 && r != -ENOTDIR && r != -ESTALE)
		t->error = r;
	return r < 0 ? NULL : n;
}

/* With a row: its names are the index's. */
static struct node *take_with_row(struct taking *t, const struct node_row *row)
{
	const GArray *parents = g_hash_table_lookup(t->parents, &row->ino);
	struct overlay *o = t->overlay;
	struct node *n;
	int r;

	for (guint i = 0; parents && i < parents->len; i++)
		take_dir(t, g_array_index(parents, uint64_t, i));
	n = node_find(o->nodes, row->ino);
	if (n)
		return n;
	n = node_add(o->nodes, row->ino);
	r = node_load_row(o, n, row);
	if (r < 0)
		t->error = r;
	n->rows_loaded = row->attr.nlink == 0; /* nothing is in a directory that was removed */
	if (n->rows_loaded && node_is_dir(n))
		n->is_lower = false;
	return n;
}

/* Of what was unlinked, or taken away by its owner: its verdict is that of where it was. */
static void verdict_of_place(struct taking *t, struct node *n, const struct roster_node *text)
{
	struct node *dir = text->parent ? take_node(t, text->parent) : NULL;
	g_autofree char *path = dir ? dentry_path(dir, text->name) : NULL;
	g_autofree char *lower = node_lower_path(n);

	if (path)
		child_verdict(t->overlay, dir, text->name, lower, false, node_is_dir(n), &n->verdict);
	else
		guard_verdict(t->overlay->policy, node_find(t->overlay->nodes, ROOT_INO), lower ? lower : "", lower, false, node_is_dir(n), &n->verdict);
}

/* Of two verdicts the more closed one holds: another name of it may not be known here. */
static void take_verdict(struct taking *t, struct node *n, const struct roster_node *text)
{
	struct verdict v;

	if (text->mark_size == sizeof(v)) {
		memcpy(&v, text->mark, sizeof(v));
		if (!n->names || v.action > n->verdict.action)
			n->verdict = v;
	} else if (!n->names) {
		verdict_of_place(t, n, text);
	}
}

static void take_place(struct taking *t, struct node *n, const struct roster_node *text)
{
	struct node *dir = text->parent ? take_dir(t, text->parent) : NULL;
	struct dentry *d = dir ? dentry_find(dir, text->name) : NULL;

	n->origin = g_strdup(text->origin);
	if (dir && !d && dir_refuse_ring(t->overlay, dir, n) == 0) {
		dentry_add(dir, text->name, n);
		node_update_verdict(t->overlay, n);
		return;
	}
	/* Its name ended in the last moment, or long ago. Whoever has it open goes on with what was at that path. */
	if (!n->origin && dir) {
		g_autofree char *parent = node_lower_path(dir);

		n->origin = parent ? path_join(parent, text->name) : NULL;
	}
}

/* Without a row: all that it is made of stands in the roster. */
static struct node *take_without_row(struct taking *t, const struct roster_node *text)
{
	struct node *n = node_add(t->overlay->nodes, text->ino);

	n->row.ino = n->ino;
	n->row.attr.mode = text->type;
	n->row.attr.nlink = 1;
	n->is_lower = true;
	n->print_dev = text->print_ino ? text->dev : lower_dev(t->overlay->lower);
	n->print_ino = text->print_ino ? text->print_ino : n->ino;
	n->print_btime = text->btime;
	take_place(t, n, text);
	return n;
}

/* What @ino is now; NULL for what nobody knows. */
static struct node *take_node(struct taking *t, uint64_t ino)
{
	struct known *k = g_hash_table_lookup(t->known, &ino);
	struct node *n = node_find(t->overlay->nodes, ino);
	struct node_row row = { 0 };
	int r;

	/* Rings of places that contradict each other end here. */
	if (n || (k && k->under_way))
		return n;
	if (k)
		k->under_way = true;
	r = node_may_have_row(t->overlay, ino) ? store_node_get(t->overlay->store, EPOCH_LIVE, ino, &row) : 0;
	if (r < 0)
		t->error = r;
	else if (row.ino)
		n = take_with_row(t, &row);
	else if (k)
		n = take_without_row(t, &k->text);
	node_row_clear(&row);
	/* Before anything below it is looked at. */
	if (k && n)
		take_verdict(t, n, &k->text);
	if (k)
		k->under_way = false;
	return n;
}

static int take_nodes(struct taking *t)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, t->known);
	while (t->error == 0 && g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct known *k = value;
		struct node *n = take_node(t, k->text.ino);

		if (!n)
			continue;
		take_verdict(t, n, &k->text);
		n->lookups = k->text.lookups;
		node_touch(n);
	}
	return t->error;
}

static int take_over(struct overlay *o)
{
	struct taking t = { .overlay = o };
	int r;

	t.known = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, known_free);
	t.parents = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, (GDestroyNotify)g_array_unref);
	roster_each(o->heritage->roster, take_known, &t);
	/* Nothing is written; but locks of the index are taken once then, and not for each node. */
	r = store_begin(o->store);
	if (r == 0)
		r = store_all_names(o->store, EPOCH_LIVE, take_parent, &t);
	if (r == 0)
		r = take_nodes(&t);
	store_abort(o->store);
	if (r == 0) {
		roster_renew(o->heritage->roster);
		heritage_write(o);
		roster_renewed(o->heritage->roster);
	}
	g_hash_table_unref(t.known);
	g_hash_table_unref(t.parents);
	malloc_trim(0);
	return r;
}

int overlay_inherit(struct overlay *o, struct heritage *h)
{
	int r = 0;

	overlay_lock(o);
	o->heritage = h;
	o->deletions = &h->deletions;
	node_table_follow(o->nodes);
	if (h->worker > 0) {
		ledger_resolve(&h->ledger, is_committed, o);
		r = take_over(o);
	}
	overlay_unlock(o);
	return r;
}

struct heritage *overlay_heritage(struct overlay *o)
{
	return o->heritage;
}

/* After the change of workers */

/* Names that the owner made meanwhile may be known as absent. */
static void refresh_names(struct overlay *o, struct node *dir)
{
	g_autofree char *path = node_lower_path(dir);
	g_autoptr(GPtrArray) names = NULL;

	if (!path || lower_list(o->lower, path, &names) < 0)
		return;
	for (guint i = 0; i < names->len; i++) {
		const char *name = ((struct lower_name *)g_ptr_array_index(names, i))->name;

		if (!dentry_find(dir, name))
			invalidator_expire(o->invalidator, dir->ino, name);
	}
}

static void refresh_node(struct overlay *o, struct node *n)
{
	if (node_is_dir(n) && n->is_lower) {
		dir_watch(o, n);
		refresh_names(o, n);
	}
	node_forget_cached(o, n);
}

static void list_held(struct node *n, void *user)
{
	if (n->lookups > 0 || n->ino == ROOT_INO)
		g_array_append_val((GArray *)user, n->ino);
}

#define REFRESH_STEP 64
#define REFRESH_PAUSE 300000 /* us */

static bool may_ask(const struct overlay *o)
{
	return policy_has_action(o->policy, ACTION_ASK) || policy_has_action(o->policy, ACTION_ASK_CHANGE) || o->deletions->limit ||
	       o->deletions->limit_per_minute;
}

/* Bit by bit, so that requests come in between, and what is to be told to the kernel does not pile up. */
static gpointer refresh_main(gpointer data)
{
	g_autoptr(GArray) inos = g_array_new(FALSE, FALSE, sizeof(uint64_t));
	struct overlay *o = data;

	/* Who waited for a human is to wait again first: what the kernel holds for him is left alone then, see fs/invalidate.h. */
	if (may_ask(o))
		g_usleep(REFRESH_PAUSE);
	overlay_lock(o);
	node_foreach(o->nodes, list_held, inos);
	overlay_unlock(o);
	for (guint i = 0; i < inos->len && !g_atomic_int_get(&o->refresh_ends); i += REFRESH_STEP) {
		overlay_lock(o);
		for (guint k = i; k < MIN(i + REFRESH_STEP, inos->len); k++) {
			struct node *n = node_find(o->nodes, g_array_index(inos, uint64_t, k));

			if (n)
				refresh_node(o, n);
		}
		overlay_unlock(o);
		overlay_drain(o);
	}
	return NULL;
}

void overlay_refresh(struct overlay *o)
{
	o->refresh = g_thread_new("refresh", refresh_main, o);
}

void heritage_end(struct overlay *o)
{
	g_atomic_int_set(&o->refresh_ends, 1);
	if (o->refresh)
		g_thread_join(g_steal_pointer(&o->refresh));
}
