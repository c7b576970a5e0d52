/* SPDX-License-Identifier: MIT */
/*
 * overlay_core - the overlay's life, and its transactions
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs/overlay_private.h"
#include "fs/roster.h"

/* Life */

static void node_gone(struct node *n, void *user)
{
	struct overlay *o = user;

	node_close_content(o, n);
	if (n->watched)
		watch_remove(o->watch, n->ino);
	if (n->entry)
		roster_drop(o->heritage->roster, n->entry);
}

struct overlay *overlay_new(struct store *store, struct lower *lower, struct policy *policy)
{
	struct overlay *o = g_new0(struct overlay, 1);
	struct node_row row = { 0 };
	struct node *root;

	g_mutex_init(&o->lock);
	g_queue_init(&o->open_contents);
	o->store = store;
	o->lower = lower;
	o->spare = spare_new(store_dir(store));
	o->policy = policy;
	o->deletions = &o->own_deletions;
	o->nodes = node_table_new(node_gone, o);
	o->undo = g_array_new(FALSE, TRUE, sizeof(struct undo));
	o->orphans = orphans_new();
	o->pins = g_array_new(FALSE, FALSE, sizeof(int64_t));
	o->held = g_array_new(FALSE, FALSE, sizeof(struct held_name));
	g_array_set_clear_func(o->held, held_name_clear);
	root = node_add(o->nodes, ROOT_INO);
	root->row.ino = ROOT_INO;
	root->row.attr.mode = S_IFDIR | 0755;
	root->is_lower = true;
	root->origin = g_strdup("");
	if (store_node_get(store, EPOCH_LIVE, ROOT_INO, &row) == 0 && row.ino) {
		node_row_clear(&root->row);
		root->row = row;
	}
	guard_root(policy, &root->verdict);
	o->workspace_rows = store_has_workspace_rows(store);
	names_hold_again(o);
	return o;
}

void overlay_free(struct overlay *o)
{
	if (!o)
		return;
	ask_free(o);
	heritage_end(o);
	watch_free(o->watch);
	o->watch = NULL;
	invalidator_free(o->invalidator);
	overlay_leave_dir(o);
	orphans_drop(o);
	g_array_unref(o->orphans);
	g_array_unref(o->pins);
	g_array_unref(o->held);
	audit_note_free(o->audit);
	node_table_free(o->nodes);
	g_array_unref(o->undo);
	policy_free(o->policy);
	spare_free(o->spare);
	lower_close(o->lower);
	store_close(o->store);
	g_mutex_clear(&o->lock);
	g_free(o);
}

void overlay_watch(struct overlay *o, const struct overlay_watcher *w)
{
	o->invalidator = invalidator_new(w);
	o->watch = watch_new(o->lower, overlay_outside_change, o);
}

void overlay_on_wait(struct overlay *o, void (*fn)(void))
{
	o->on_wait = fn;
}

void overlay_may_wait(struct overlay *o)
{
	if (o->on_wait)
		o->on_wait();
}

void overlay_drain(struct overlay *o)
{
	invalidator_drain(o->invalidator);
}

int overlay_set_limit(struct overlay *o, uint64_t bytes)
{
	int r;

	overlay_lock(o);
	r = store_set_limit(o->store, bytes);
	if (r == 0 && o->heritage)
		o->heritage->disk_limit = bytes;
	overlay_unlock(o);
	return r;
}

struct store *overlay_store(struct overlay *o)
{
	return o->store;
}

struct lower *overlay_lower(struct overlay *o)
{
	return o->lower;
}

const struct policy *overlay_policy(struct overlay *o)
{
	return o->policy;
}

void overlay_lock(struct overlay *o)
{
	g_mutex_lock(&o->lock);
	ask_begin(o);
}

void overlay_unlock(struct overlay *o)
{
	heritage_write(o);
	g_mutex_unlock(&o->lock);
}

void overlay_counters(struct overlay *o, struct overlay_counters *ret)
{
	overlay_lock(o);
	ret->nodes = node_table_size(o->nodes);
	ret->watches_full = watch_is_full(o->watch);
	overlay_unlock(o);
}

/* Transactions */

static int flush(struct overlay *o, bool cheap)
{
	int r;

	if (!store_waits(o->store, cheap))
		return 0;
	g_mutex_lock(&o->lock);
	r = store_flush(o->store);
	g_mutex_unlock(&o->lock);
	return r;
}

int overlay_flush(struct overlay *o)
{
	return flush(o, false);
}

int overlay_flush_idle(struct overlay *o)
{
	return flush(o, true);
}

/* What the store takes; 0 without a limit, when nobody asks. */
static uint64_t used_of_limit(struct overlay *o)
{
	struct store_usage u = { 0 };

	if (store_limit(o->store))
		store_usage(o->store, &u);
	return u.used;
}

int transaction_begin(struct overlay *o)
{
	int r = store_begin(o->store);

	o->saved_ino = 0;
	o->used_before = used_of_limit(o);
	return r;
}

/* A change that makes a full store fuller is refused, unless it is there to make room. */
static int check_room(struct overlay *o)
{
	uint64_t used = audit_needs_room(o) ? used_of_limit(o) : 0;

	return used > store_limit(o->store) && used > o->used_before ? -ENOSPC : 0;
}

int overlay_has_room(struct overlay *o, uint64_t bytes)
{
	return store_limit(o->store) && used_of_limit(o) + bytes > store_limit(o->store) ? -ENOSPC : 0;
}

int overlay_begin(struct overlay *o)
{
	int r = ask_settle(o);

	return r < 0 ? r : transaction_begin(o);
}

static void undo_clear(struct undo *u)
{
	node_row_clear(&u->row);
	g_free(u->origin);
}

static void undo_apply(struct overlay *o, struct undo *u)
{
	int64_t content;

	if (u->dentry) {
		u->dentry->born = u->born;
		u->dentry->covers = u->covers;
		return;
	}
	/* A content that took part may hold what the index no longer says; the next use opens it again. A file made for it goes. */
	content = u->node->content ? content_id(u->node->content) : 0;
	node_close_content(o, u->node);
	if (content && content_purge(o->store, content) < 0)
		g_debug("the file of content %" G_GINT64_FORMAT " stays", content);
	node_row_clear(&u->node->row);
	u->node->row = u->row;
	u->row = (struct node_row){ 0 };
	g_free(u->node->origin);
	u->node->origin = g_steal_pointer(&u->origin);
	u->node->is_lower = u->is_lower;
}

int transaction_end(struct overlay *o, int r)
{
	if (r == 0)
		r = store_promise(o->store);
	else
		store_abort(o->store);
	for (guint i = o->undo->len; i-- > 0;) {
		struct undo *u = &g_array_index(o->undo, struct undo, i);

		if (r < 0)
			undo_apply(o, u);
		undo_clear(u);
	}
	g_array_set_size(o->undo, 0);
	/* What a truncation cut off is given back once nothing can bring it back. */
	if (r == 0 && o->trim && o->trim->content && content_trim(o->trim->content) < 0)
		g_debug("a cut object keeps its space until it grows again");
	o->trim = NULL;
	return r;
}

int overlay_end(struct overlay *o, int r)
{
	struct ledger_entry *e = NULL;

	if (r == 0)
		r = check_room(o);
	/* The record first: there may be one of a change that a crash prevented, but never a change without one. */
	if (r == 0)
		r = audit_announce(o);
	if (r == 0)
		e = heritage_prepare(o);
	r = transaction_end(o, r);
	heritage_settle(e, r);
	audit_settle(o, r);
	if (r == -ENOSPC)
		orphans_drop(o);
	return r;
}

void node_edit(struct overlay *o, struct node *n)
{
	struct undo u = { .node = n, .row = n->row, .origin = g_strdup(n->origin), .is_lower = n->is_lower };

	u.row.target = g_strdup(n->row.target);
	if (u.row.xattrs)
		g_bytes_ref(u.row.xattrs);
	g_array_append_val(o->undo, u);
}

void dentry_edit(struct overlay *o, struct dentry *d)
{
	struct undo u = { .dentry = d, .born = d->born, .covers = d->covers };

	g_array_append_val(o->undo, u);
}

int node_save(struct overlay *o, struct node *n)
{
	if (n->ino < FIRST_OWN_INO)
		o->workspace_rows = true;
	o->saved_ino = n->ino;
	o->saved_ctime = n->row.attr.ctime;
	return store_node_put(o->store, &n->row);
}

int dentry_save(struct overlay *o, struct dentry *d, uint64_t ino)
{
	struct name_row row = { .parent = d->parent->ino, .name = d->name, .born = d->born, .ino = ino, .covers = d->covers };
	int r = store_name_put(o->store, &row);

	if (r == 0)
		d->born = row.born;
	return r;
}
