/* SPDX-License-Identifier: MIT */
/*
 * overlay_core - finding, showing and owning nodes: what every operation of the view is made of
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs/overlay_private.h"

/* Numbers of workspace objects whose own inode number is taken, or that lie on another file system, begin here. */
#define FIRST_ALIAS_INO (UINT64_C(1) << 61)

static void overlay_outside_change(uint64_t ino, const char *name, enum watch_event event, void *user);

struct undo {
	struct node *node;
	struct node_row row;
	char *origin;
	bool is_lower;
	struct dentry *dentry;
	int64_t born;
	int64_t covers;
};

/* Life */

static void node_gone(struct node *n, void *user)
{
	struct overlay *o = user;

	node_close_content(o, n);
	if (n->watched)
		watch_remove(o->watch, n->ino);
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
	o->policy = policy;
	o->nodes = node_table_new(node_gone, o);
	o->undo = g_array_new(FALSE, TRUE, sizeof(struct undo));
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
	return o;
}

void overlay_free(struct overlay *o)
{
	if (!o)
		return;
	watch_free(o->watch);
	o->watch = NULL;
	invalidator_free(o->invalidator);
	overlay_leave_dir(o);
	audit_note_free(o->audit);
	node_table_free(o->nodes);
	g_array_unref(o->undo);
	policy_free(o->policy);
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

void overlay_drain(struct overlay *o)
{
	invalidator_drain(o->invalidator);
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
}

void overlay_unlock(struct overlay *o)
{
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

int overlay_begin(struct overlay *o)
{
	return store_begin(o->store);
}

static void undo_clear(struct undo *u)
{
	node_row_clear(&u->row);
	g_free(u->origin);
}

static void undo_apply(struct overlay *o, struct undo *u)
{
	if (u->dentry) {
		u->dentry->born = u->born;
		u->dentry->covers = u->covers;
		return;
	}
	/* A content that took part may hold what the index no longer says; the next use opens it again. */
	node_close_content(o, u->node);
	node_row_clear(&u->node->row);
	u->node->row = u->row;
	u->row = (struct node_row){ 0 };
	g_free(u->node->origin);
	u->node->origin = g_steal_pointer(&u->origin);
	u->node->is_lower = u->is_lower;
}

/* For what is no part of the operation that runs; the audit does not hear of it. */
static int transaction_end(struct overlay *o, int r)
{
	if (r == 0)
		r = store_commit(o->store);
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
	/* The record first: there may be one of a change that a crash prevented, but never a change without one. */
	if (r == 0)
		r = audit_announce(o);
	r = transaction_end(o, r);
	audit_settle(o, r);
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

/* Finding */

int overlay_node(struct overlay *o, uint64_t ino, struct node **ret)
{
	struct node *n = node_find(o->nodes, ino);

	if (!n)
		return -ESTALE;
	*ret = n;
	return 0;
}

int overlay_dir(struct overlay *o, uint64_t ino, struct node **ret)
{
	struct node *n;
	int r = overlay_node(o, ino, &n);

	if (r < 0)
		return r;
	if (!node_is_dir(n))
		return -ENOTDIR;
	r = guard_traverse(&n->verdict);
	if (r == 0)
		*ret = n;
	return r;
}

bool node_same_object(const struct node *n, const struct fingerprint *print)
{
	return n->print_ino == print->ino && n->print_dev == print->dev && n->print_btime == print->btime &&
	       ((n->row.attr.mode ^ print->attr.mode) & S_IFMT) == 0;
}

void node_set_print(struct node *n, const struct fingerprint *print)
{
	n->print_ino = print->ino;
	n->print_dev = print->dev;
	n->print_btime = print->btime;
}

/* Remembers how the workspace object looked, and has the kernel drop cached pages when its bytes changed under it. */
static void node_note_seen(struct overlay *o, struct node *n, const struct attr *a)
{
	bool changed = n->seen_ctime != 0 &&
		       (n->seen_ctime != a->ctime || n->seen_mtime != a->mtime || n->seen_size != a->size);

	if (changed && n->lookups > 0 && node_follows(n))
		invalidator_inode(o->invalidator, n->ino, true);
	n->seen_ctime = a->ctime;
	n->seen_mtime = a->mtime;
	n->seen_size = a->size;
}

static uint64_t mix64(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd); /* the finaliser of MurmurHash3 */
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

bool errno_is_absent(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

static int load_by_ino(struct overlay *o, uint64_t ino, struct node **ret)
{
	struct node_row row = { 0 };
	/* On a walk of a fresh view the index need not be asked for each file. */
	int r = o->workspace_rows || ino >= FIRST_OWN_INO ? store_node_get(o->store, EPOCH_LIVE, ino, &row) : 0;

	*ret = NULL;
	if (r == 0 && row.ino) {
		struct node *n = node_add(o->nodes, ino);

		r = node_load_row(o, n, &row);
		if (r == 0)
			*ret = n;
		else
			node_release(o->nodes, n);
	}
	node_row_clear(&row);
	return r;
}

/* Nothing of it is the sandbox's any more: @print at its own place in the workspace is all there is. */
void node_become_lower(struct overlay *o, struct node *n, const struct fingerprint *print)
{
	node_close_content(o, n);
	node_row_clear(&n->row);
	g_clear_pointer(&n->origin, g_free);
	n->row.ino = n->ino;
	n->row.attr = print->attr;
	n->is_lower = true;
	node_set_print(n, print);
}

/*
 * The node of a workspace object that has no row under this name. Another name of the same inode may be known already, with or
 * without a row: then that node is it, as long as the object really has several links - a row whose object was only moved by its
 * owner keeps its own life.
 */
static int node_of_lower(struct overlay *o, const struct fingerprint *print, struct node **ret)
{
	uint64_t ino = print->ino;
	bool fresh = false;
	struct node *n;
	int r;

	if (print->dev != lower_dev(o->lower) || ino >= FIRST_ALIAS_INO || ino <= ROOT_INO)
		ino = FIRST_ALIAS_INO | mix64(mix64(print->dev) ^ print->ino) >> 4;
	for (;; ino = FIRST_ALIAS_INO | mix64(ino ^ print->btime) >> 4) {
		n = node_find(o->nodes, ino);
		fresh = !n;
		r = n ? 0 : load_by_ino(o, ino, &n);
		if (r < 0)
			return r;
		if (!n)
			break;
		/*
		 * A row without names is an unlinked file, unless it has links left: those that were not looked up yet. A directory's
		 * links are not names.
		 */
		if (node_same_object(n, print) &&
		    (n->row.born == 0 || (!S_ISDIR(print->attr.mode) && print->attr.nlink > 1 && n->row.attr.nlink > 0)))
			break;
		if (fresh)
			node_release(o->nodes, n);
	}
	if (!n) {
		n = node_add(o->nodes, ino);
		node_become_lower(o, n, print);
	} else if (!n->names && n->row.born == 0) {
		/*
		 * Known by the kernel, nameless until now (its owner renamed it, or its removal was rolled back): it follows its name
		 * again, and nothing of what the sandbox had made of it is left.
		 */
		node_become_lower(o, n, print);
		invalidator_inode(o->invalidator, n->ino, true);
	}
	*ret = n;
	return 0;
}

int node_load_row(struct overlay *o, struct node *n, const struct node_row *row)
{
	struct origin origin = { 0 };
	int r = 0;

	node_close_content(o, n);
	node_row_clear(&n->row);
	n->row = *row;
	n->row.target = g_strdup(row->target);
	if (n->row.xattrs)
		g_bytes_ref(n->row.xattrs);
	if (n->ino == ROOT_INO)
		return 0;
	g_clear_pointer(&n->origin, g_free);
	n->is_lower = row->origin != 0;
	if (row->origin)
		r = store_origin_get(o->store, row->origin, &origin);
	if (r == 0 && row->origin) {
		n->origin = g_steal_pointer(&origin.path);
		node_set_print(n, &origin.print);
	}
	origin_clear(&origin);
	return r;
}

void dir_keep_name(struct overlay *o, struct dentry *d)
{
	struct node *n = d->node, *dir = d->parent;
	struct dentry *old;

	if (!n || !node_is_dir(n))
		return;
	/* They stay, whatever goes with the old place. */
	n->lookups++;
	dir->lookups++;
	while ((old = n->names == d ? d->next_of_node : n->names)) {
		struct node *parent = old->parent;

		invalidator_expire(o->invalidator, parent->ino, old->name);
		dentry_remove(old);
		node_release(o->nodes, parent);
	}
	n->lookups--;
	dir->lookups--;
}

struct load {
	struct overlay *overlay;
	struct node *dir;
};

static int load_name(const struct name_row *name, const struct node_row *row, void *user)
{
	struct load *load = user;
	struct overlay *o = load->overlay;
	struct node *n = NULL;
	struct dentry *d;
	int r = 0;

	if (name->ino && !row->ino)
		return 0; /* see store_names() */
	if (name->ino) {
		n = node_find(o->nodes, name->ino);
		if (!n) {
			n = node_add(o->nodes, name->ino);
			r = node_load_row(o, n, row);
		}
	}
	if (r < 0)
		return r;
	d = dentry_find(load->dir, name->name);
	if (d)
		dentry_set_node(d, n);
	else
		d = dentry_add(load->dir, name->name, n);
	d->born = name->born;
	d->covers = name->covers;
	dir_keep_name(o, d);
	if (n)
		node_update_verdict(o, n);
	return 0;
}

int overlay_load(struct overlay *o, struct node *dir)
{
	struct load load = { .overlay = o, .dir = dir };
	int r;

	if (dir->rows_loaded)
		return 0;
	/* A directory without a row has no names with rows either: node_anchor() goes from the root down. */
	r = dir->row.born > 0 || dir->ino == ROOT_INO ? store_names(o->store, EPOCH_LIVE, dir->ino, load_name, &load) : 0;
	dir->rows_loaded = r == 0;
	return r;
}

#define LAST_DIR_LIFE 50000 /* us */

void overlay_leave_dir(struct overlay *o)
{
	if (o->last_dir.ino)
		close(o->last_dir.fd);
	o->last_dir.ino = 0;
}

/* A descriptor of the workspace directory that shows through @dir, borrowed until the next call; or -errno. */
static int overlay_enter_dir(struct overlay *o, const struct node *dir)
{
	g_autofree char *path = NULL;
	int64_t now = g_get_monotonic_time();
	int fd;

	if (o->last_dir.ino == dir->ino && now < o->last_dir.until)
		return o->last_dir.fd;
	overlay_leave_dir(o);
	path = node_lower_path(dir);
	fd = path ? lower_open_file(o->lower, path, O_PATH | O_DIRECTORY) : -ENOENT;
	if (fd < 0)
		return fd;
	o->last_dir.ino = dir->ino;
	o->last_dir.fd = fd;
	o->last_dir.until = now + LAST_DIR_LIFE;
	return fd;
}

int overlay_lower_has(struct overlay *o, const struct node *dir, const char *name, struct fingerprint *ret_print)
{
	int fd = overlay_enter_dir(o, dir);
	int r = fd < 0 ? fd : lower_stat_at(fd, name, ret_print);

	return errno_is_absent(r) ? 0 : r < 0 ? r : 1;
}

static int node_follow(struct overlay *o, struct node *n, const char *path, const struct fingerprint *print)
{
	int r;

	node_edit(o, n);
	r = origin_record(o, path, print, &n->row.origin);
	if (r < 0)
		return r;
	g_free(n->origin);
	n->origin = g_strdup(path);
	node_set_print(n, print);
	return node_save(o, n);
}

static int dentry_anchor(struct overlay *o, struct dentry *d, const char *lower, const struct fingerprint *print);

static int dentry_anchor_link(struct overlay *o, struct dentry *d, const struct fingerprint *print)
{
	g_autofree char *path = dentry_lower_path(d);
	struct node *n = d->node;
	int r = node_anchor(o, d->parent);

	if (r == 0)
		r = dentry_anchor(o, d, path, print);
	/* The name by which the workspace was followed so far is not in the view any more: follow this one. */
	return r == 0 && n->names == d && !d->next_of_node && node_follows(n) ? node_follow(o, n, path, print) : r;
}

int node_leave(struct overlay *o, struct node *n, const struct dentry *leaving)
{
	g_autofree char *left = dentry_lower_path(leaving);

	if (!node_follows(n) || node_is_dir(n) || n->row.born == 0 || n->row.attr.nlink == 0 || g_strcmp0(left, n->origin) != 0)
		return 0;
	for (const struct dentry *d = n->names; d; d = d->next_of_node) {
		g_autofree char *path = d != leaving ? dentry_lower_path(d) : NULL;
		struct fingerprint print;

		if (path && lower_stat(o->lower, path, &print) == 0 && node_same_object(n, &print))
			return node_follow(o, n, path, &print);
	}
	return 0;
}

/*
 * When @dir seems to lie in the directory @n that is found in it, then its owner moved both and what is known of the place of @dir is older
 * than that: whoever asked has to look again from the top.
 */
static int dir_refuse_ring(struct overlay *o, const struct node *dir, const struct node *n)
{
	if (!node_is_dir(n) || !node_is_below(dir, n))
		return 0;
	for (struct dentry *d = dir->names; d; d = d->next_of_node)
		invalidator_expire(o->invalidator, d->parent->ino, d->name);
	return -ESTALE;
}

/* A name without a row, known or not: what does the workspace have now? */
static int child_of_lower(struct overlay *o, struct node *dir, const char *name, struct child *ret)
{
	struct dentry *d = ret->dentry;
	struct fingerprint print;
	struct node *n;
	int r = overlay_lower_has(o, dir, name, &print);

	if (r < 0)
		return r;
	if (d && (r == 0 || !node_same_object(d->node, &print))) {
		/* Its owner took it away or put something else there. Who still has it open reads what was at that path. */
		n = d->node;
		if (!n->origin && !d->next_of_node && n->names == d)
			n->origin = node_lower_path(n);
		dentry_remove(d);
		ret->dentry = d = NULL;
		node_release(o->nodes, n);
	}
	if (r == 0)
		return 0;
	if (!d) {
		r = node_of_lower(o, &print, &n);
		if (r == 0)
			r = dir_refuse_ring(o, dir, n);
		if (r < 0)
			return r;
		ret->dentry = d = dentry_add(dir, name, n);
		dir_keep_name(o, d);
		node_update_verdict(o, n);
	}
	ret->node = d->node;
	if (d->node->row.born == 0) {
		d->node->row.attr = print.attr;
		node_note_seen(o, d->node, &print.attr);
		return 0;
	}
	/* Another name of an inode that was changed: from now on it is a changed name too, for the diff to find. */
	r = overlay_begin(o);
	if (r == 0)
		r = transaction_end(o, dentry_anchor_link(o, d, &print));
	/* Who can't write it down can still show it. */
	return r == -ENOSPC || r == -EDQUOT || r == -EROFS ? 0 : r;
}

int overlay_child(struct overlay *o, struct node *dir, const char *name, struct child *ret)
{
	int r = overlay_load(o, dir);

	dir_watch(o, dir);
	*ret = (struct child){ .dentry = r == 0 ? dentry_find(dir, name) : NULL };
	if (r < 0)
		return r;
	if (!ret->dentry || (ret->dentry->born == 0))
		return child_of_lower(o, dir, name, ret);
	r = dentry_shows(o, ret->dentry);
	ret->node = r > 0 ? ret->dentry->node : NULL;
	return MIN(r, 0);
}

int dentry_shows(struct overlay *o, const struct dentry *d)
{
	struct fingerprint print;
	int r;

	if (!d->node)
		return 0;
	if (!node_follows(d->node) || node_is_dir(d->node))
		return 1;
	r = lower_stat(o->lower, d->node->origin, &print);
	if (errno_is_absent(r))
		return 0;
	return r < 0 ? r : ((print.attr.mode ^ d->node->row.attr.mode) & S_IFMT) == 0;
}

/* Showing */

bool dir_watch(struct overlay *o, struct node *n)
{
	g_autofree char *path = NULL;

	if (n->watched || !n->is_lower || !o->watch)
		return n->watched;
	path = node_lower_path(n);
	n->watched = path && watch_add(o->watch, n->ino, path);
	return n->watched;
}

bool dentry_is_watched(const struct dentry *d)
{
	g_autofree char *dir = NULL, *path = NULL;

	if (!d->parent->watched)
		return false;
	if (!d->node || !d->node->origin)
		return true;
	/* It shows a workspace object: the one at this place of the directory, which is watched, or one moved here from elsewhere? */
	dir = node_lower_path(d->parent);
	path = dir ? path_join(dir, d->name) : NULL;
	return g_strcmp0(path, d->node->origin) == 0;
}

/*
 * The owner changed something. What is forgotten is only what the kernel may have cached; the next lookup sees what is there. Pages go
 * before the name is expired: the lookup that follows brings the new size. Expiring waits for a lookup in flight, whose answer may be
 * older than the change, so that one counts no longer either.
 */
static void outside_change(struct overlay *o, struct node *dir, const char *name, enum watch_event event)
{
	struct dentry *d = name ? dentry_find(dir, name) : NULL;

	overlay_leave_dir(o);
	switch (event) {
	case WATCH_NAME:
		if (d && d->born > 0 && (!d->node || !node_follows(d->node)))
			return; /* ours; the change is for the commit to find */
		invalidator_expire(o->invalidator, dir->ino, name);
		invalidator_inode(o->invalidator, dir->ino, true);
		break;
	case WATCH_DATA:
	case WATCH_ATTR:
		if (d && d->node)
			invalidator_inode(o->invalidator, d->node->ino, event == WATCH_DATA && node_follows(d->node));
		invalidator_expire(o->invalidator, dir->ino, name);
		break;
	case WATCH_GONE:
		dir->watched = false;
		for (d = dir->names; d; d = d->next_of_node)
			invalidator_expire(o->invalidator, d->parent->ino, d->name);
		invalidator_inode(o->invalidator, dir->ino, true);
		break;
	case WATCH_SELF:
	case WATCH_OVERFLOW:
		invalidator_inode(o->invalidator, dir->ino, false);
	}
}

static void forget_all_of(struct node *n, void *user)
{
	struct overlay *o = user;

	for (struct dentry *d = n->names; d; d = d->next_of_node)
		invalidator_expire(o->invalidator, d->parent->ino, d->name);
	if (n->lookups > 0)
		invalidator_inode(o->invalidator, n->ino, node_follows(n));
}

static void overlay_outside_change(uint64_t ino, const char *name, enum watch_event event, void *user)
{
	struct overlay *o = user;
	struct node *dir;

	overlay_lock(o);
	if (event == WATCH_OVERFLOW) {
		node_foreach(o->nodes, forget_all_of, o);
	} else {
		dir = node_find(o->nodes, ino);
		if (dir)
			outside_change(o, dir, name, event);
	}
	overlay_unlock(o);
}

bool node_follows(const struct node *n)
{
	if (!n->is_lower)
		return false;
	return S_ISREG(n->row.attr.mode) ? n->row.content == 0 : n->row.target == NULL;
}

int node_attr(struct overlay *o, struct node *n, struct attr *ret)
{
	g_autofree char *path = NULL;
	struct fingerprint print;
	int r = -ENOENT;

	if (node_is_dir(n))
		dir_watch(o, n);
	if (node_follows(n)) {
		path = node_lower_path(n);
		r = path ? lower_stat(o->lower, path, &print) : -ESTALE;
		if (r == 0 && ((print.attr.mode ^ n->row.attr.mode) & S_IFMT))
			r = -ESTALE;
		if (r < 0 && !(node_is_dir(n) && n->row.born > 0))
			return errno_is_absent(r) ? -ESTALE : r;
	}
	if (n->row.born == 0 && r == 0) {
		*ret = print.attr;
		n->row.attr = print.attr;
		if (!n->names && n->ino != ROOT_INO)
			ret->nlink = 0;
	} else {
		node_row_attr(&n->row, r == 0 ? &print.attr : NULL, ret);
		if (!node_follows(n))
			ret->blocks = n->content ? content_blocks(n->content) : (ret->size + 511) / 512;
	}
	if (r == 0)
		node_note_seen(o, n, &print.attr);
	return 0;
}

/*
 * A directory that shows the workspace has one link, as in the kernel's overlayfs: to count the subdirectories would be to list it, and the count
 * would tell what the rules hide. 1 means "not counted" to those who walk trees. One of our own has the exact count.
 */
static void attr_of_dir(const struct node *n, struct attr *a)
{
	if (!S_ISDIR(a->mode))
		return;
	a->size = 4096;
	a->blocks = 8;
	if (n->is_lower)
		a->nlink = a->nlink > 0;
}

int node_entry(struct overlay *o, struct node *n, struct overlay_entry *ret)
{
	GBytes *masked;
	struct attr a;
	int r = node_attr(o, n, &a);

	if (r < 0)
		return r;
	attr_of_dir(n, &a);
	if (S_ISREG(a.mode) && guard_is_masked(&n->verdict)) {
		r = node_masked(o, n, &a, &masked);
		if (r < 0)
			return r;
		a.size = g_bytes_get_size(masked);
		a.blocks = (a.size + 511) / 512;
	}
	guard_attr(&n->verdict, &a);
	*ret = (struct overlay_entry){ .ino = n->ino, .attr = a };
	ret->attr_cacheable = node_is_dir(n) ? !n->is_lower || n->watched :
					       !node_follows(n) || (n->names && dentry_is_watched(n->names) && a.nlink <= 1);
	ret->guarded = n->verdict.action >= ACTION_DENY;
	return 0;
}

void child_verdict(struct overlay *o, struct node *dir, const char *name, const char *lower, bool inherit, bool is_dir, struct verdict *ret)
{
	g_autofree char *path = dentry_path(dir, name);

	guard_verdict(o->policy, dir, path ? path : name, lower, inherit, is_dir, ret);
}

void node_update_verdict(struct overlay *o, struct node *n)
{
	g_autofree char *lower = node_lower_path(n);
	bool first = true;

	if (n->ino == ROOT_INO)
		return;
	for (struct dentry *d = n->names; d; d = d->next_of_node) {
		struct verdict v;

		child_verdict(o, d->parent, d->name, lower, n->origin == NULL, node_is_dir(n), &v);
		if (first || v.action > n->verdict.action)
			n->verdict = v;
		first = false;
	}
}

void node_update_verdicts(struct overlay *o, struct node *n)
{
	uint8_t before = n->verdict.action;
	GHashTableIter iter;
	gpointer value;

	node_update_verdict(o, n);
	if (before != n->verdict.action) {
		/* The name too: it may have to be refused from now on, or not to be there. */
		for (struct dentry *d = n->names; d; d = d->next_of_node)
			invalidator_expire(o->invalidator, d->parent->ino, d->name);
		invalidator_inode(o->invalidator, n->ino, true);
	}
	if (!n->children)
		return;
	g_hash_table_iter_init(&iter, n->children);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct dentry *d = value;

		if (d->node)
			node_update_verdicts(o, d->node);
	}
}

/* Owning */

int origin_record(struct overlay *o, const char *path, const struct fingerprint *print, int64_t *ret_id)
{
	struct origin origin = { .path = (char *)path, .print = *print, .seen = nsec_now() };
	int r = store_origin_add(o->store, &origin);

	if (r == 0)
		*ret_id = origin.id;
	return r;
}

/* A row for a name of a workspace object; what it covers is the object at this very path. */
static int dentry_anchor(struct overlay *o, struct dentry *d, const char *lower, const struct fingerprint *print)
{
	int r;

	if (d->born > 0)
		return 0;
	dentry_edit(o, d);
	r = origin_record(o, lower, print, &d->covers);
	return r < 0 ? r : dentry_save(o, d, d->node->ino);
}

int node_anchor(struct overlay *o, struct node *n)
{
	g_autofree char *path = NULL;
	struct fingerprint print;
	int r = 0;

	if (n->row.born > 0)
		return 0;
	for (struct dentry *d = n->names; r == 0 && d; d = d->next_of_node)
		r = node_anchor(o, d->parent);
	if (r < 0)
		return r;
	path = node_lower_path(n);
	if (n->ino == ROOT_INO)
		return 0;
	if (!path) {
		/* Made here, unlinked, and dropped by a rollback: it lives on without a name. */
		node_edit(o, n);
		n->row.attr.nlink = 0;
		return node_save(o, n);
	}
	r = lower_stat(o->lower, path, &print);
	if (r < 0)
		return errno_is_absent(r) ? -ESTALE : r;
	node_edit(o, n);
	n->row.flags = 0;
	n->row.attr = print.attr;
	if (!n->names)
		n->row.attr.nlink = 0;
	node_set_print(n, &print);
	r = origin_record(o, path, &print, &n->row.origin);
	if (r < 0)
		return r;
	g_free(n->origin);
	n->origin = g_strdup(path);
	r = node_save(o, n);
	for (struct dentry *d = n->names; r == 0 && d; d = d->next_of_node) {
		g_autofree char *dir = node_lower_path(d->parent);
		g_autofree char *own = dir ? path_join(dir, d->name) : g_strdup(path);

		if (strcmp(own, path) == 0 && d->born == 0) {
			dentry_edit(o, d);
			d->covers = n->row.origin;
			r = dentry_save(o, d, n->ino);
		} else {
			r = dentry_anchor(o, d, own, &print);
		}
	}
	n->rows_loaded = n->rows_loaded || node_is_dir(n);
	return r;
}

int node_own_attr(struct overlay *o, struct node *n)
{
	struct attr now;
	int r = node_attr(o, n, &now);

	if (r == 0)
		r = node_anchor(o, n);
	if (r < 0)
		return r;
	node_edit(o, n);
	now.nlink = n->row.attr.nlink;
	n->row.attr = now;
	n->row.ino = n->ino;
	n->row.flags |= NODE_OWN_ATTR | NODE_OWN_TIMES;
	return 0;
}

static int orphan_drop_rows(struct overlay *o, const struct node *n)
{
	int r = overlay_begin(o);

	if (r == 0)
		r = store_node_drop(o->store, n->ino);
	if (r == 0 && n->row.content)
		r = content_drop(o->store, n->row.content);
	return transaction_end(o, r);
}

static int orphan_drop(struct overlay *o, const struct node *n)
{
	int r = orphan_drop_rows(o, n);

	if (r == -ENOSPC && store_free_reserve(o->store))
		r = orphan_drop_rows(o, n);
	return r < 0 || !n->row.content ? r : content_purge(o->store, n->row.content);
}

void node_forget_unused(struct overlay *o, struct node *n)
{
	if (n->lookups > 0)
		return;
	node_close_content(o, n);
	g_clear_pointer(&n->listing, listing_free);
	/* A workspace object may have more links than those that were looked up: it is gone when all of them are. */
	if (!n->names && n->ino != ROOT_INO && n->row.born > 0 && n->row.attr.nlink == 0) {
		/* On a full disk the row stays until the store is opened next time. */
		if (orphan_drop(o, n) < 0)
			g_debug("orphan %" G_GUINT64_FORMAT " not dropped", n->ino);
		n->row.born = 0;
	}
	node_release(o->nodes, n);
}
