/* SPDX-License-Identifier: MIT */
/*
 * overlay_find - names and nodes: from the index, from the workspace, or known already
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs/overlay_private.h"

/* Numbers of workspace objects whose own inode number is taken, or that lie on another file system, begin here. */
#define FIRST_ALIAS_INO (UINT64_C(1) << 61)

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

bool node_shows_lower(const struct node *n, const struct fingerprint *print)
{
	/*
	 * A row without names is an unlinked file, unless it has links left: those that were not looked up yet. A directory's links are not
	 * names: with a row it has one place, whose name has a row, too.
	 */
	return node_same_object(n, print) &&
	       (n->row.born == 0 || (!S_ISDIR(print->attr.mode) && print->attr.nlink > 1 && n->row.attr.nlink > 0));
}

void node_set_print(struct node *n, const struct fingerprint *print)
{
	n->print_ino = print->ino;
	n->print_dev = print->dev;
	n->print_btime = print->btime;
	node_touch(n);
}

void node_note_seen(struct overlay *o, struct node *n, const struct attr *a)
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

bool node_may_have_row(const struct overlay *o, uint64_t ino)
{
	/* On a walk of a fresh view the index need not be asked for each file. */
	return o->workspace_rows || ino >= FIRST_OWN_INO;
}

static int load_by_ino(struct overlay *o, uint64_t ino, struct node **ret)
{
	struct node_row row = { 0 };
	int r = node_may_have_row(o, ino) ? store_node_get(o->store, EPOCH_LIVE, ino, &row) : 0;

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
		if (node_shows_lower(n, print))
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

int dir_refuse_ring(struct overlay *o, const struct node *dir, const struct node *n)
{
	if (!n || !node_is_dir(n) || !node_is_below(dir, n))
		return 0;
	for (struct dentry *d = dir->names; d; d = d->next_of_node)
		invalidator_expire(o->invalidator, d->parent->ino, d->name);
	return -ESTALE;
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
	if (r == 0)
		r = dir_refuse_ring(o, load->dir, n);
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

	if (r == 0)
		spare_leave_out(o->spare, ret_print);
	return errno_is_absent(r) ? 0 : r < 0 ? r : 1;
}

int node_follow(struct overlay *o, struct node *n, const char *path, const struct fingerprint *print)
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

/* A name without a row, known or not: what does the workspace have now? */
static int child_of_lower(struct overlay *o, struct node *dir, const char *name, struct child *ret)
{
	struct dentry *d = ret->dentry;
	struct fingerprint print;
	struct node *n;
	int r = overlay_lower_has(o, dir, name, &print);

	if (r < 0)
		return r;
	if (d && (r == 0 || !node_shows_lower(d->node, &print))) {
		/*
		 * Its owner took it away or put something else there, or a rollback gave it another place. Who still has it open reads what
		 * was at that path.
		 */
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
	r = transaction_begin(o);
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
	if (!ret->dentry || ret->dentry->born == 0) {
		if (node_is_attached(dir))
			return child_of_lower(o, dir, name, ret);
		/* At its old path may be another directory by now. */
		ret->dentry = NULL;
		return 0;
	}
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
		return node_follow_other(o, d->node);
	return r < 0 ? r : ((print.attr.mode ^ d->node->row.attr.mode) & S_IFMT) == 0;
}
