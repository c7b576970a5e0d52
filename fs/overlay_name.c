/* SPDX-License-Identifier: MIT */
/*
 * overlay_name - lookup, and everything that makes, moves or removes a name
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "fs/overlay_private.h"
#include "snapshot/origin_base.h"

/* Takes one link from @n. A pure workspace object with one link needs no row for that: its name is all there is to take away. */
static int node_unlink_row(struct overlay *o, struct node *n)
{
	struct attr a;
	int r = 0;

	if (n->row.born == 0) {
		r = node_attr(o, n, &a);
		if (r < 0 || node_is_dir(n) || a.nlink <= 1)
			return r == -ESTALE ? 0 : r;
		r = node_anchor(o, n);
		if (r < 0)
			return r;
	}
	node_edit(o, n);
	if (n->row.attr.nlink > 0)
		n->row.attr.nlink--;
	if (node_is_dir(n))
		n->row.attr.nlink = 0;
	n->row.attr.ctime = nsec_now();
	return node_save(o, n);
}

/*
 * A name is about to stand for something else. What it stood for without showing anything (its owner took away what it followed) loses
 * the link; what it showed is its caller's business.
 */
static int name_reuse(struct overlay *o, const struct child *c)
{
	return c->dentry && c->dentry->node && !c->node ? node_unlink_row(o, c->dentry->node) : 0;
}

/* The directory of an operation, and what is under the name now. */
static int name_target(struct overlay *o, uint64_t parent, const char *name, struct node **ret_dir, struct child *ret_child)
{
	int r = overlay_dir(o, parent, ret_dir);

	if (r < 0)
		return r;
	if (strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	/* A kernel resolves these itself; looked for in the workspace they would lead out of the directory. */
	if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	return overlay_child(o, *ret_dir, name, ret_child);
}

/*
 * The times of a directory whose names changed, and the links that its subdirectories have to it: @links more of them. Only a
 * directory of our own counts them; see attr_of_dir().
 */
static int dir_touch(struct overlay *o, struct node *dir, int links)
{
	int64_t now = nsec_now();
	struct attr a;
	int r = 0;

	if (!(dir->row.flags & NODE_OWN_TIMES)) {
		r = node_attr(o, dir, &a);
		if (r < 0)
			return r;
	}
	node_edit(o, dir);
	if (!(dir->row.flags & NODE_OWN_TIMES)) {
		a.nlink = dir->row.attr.nlink;
		if (dir->row.flags & NODE_OWN_ATTR) {
			a.mode = dir->row.attr.mode;
			a.uid = dir->row.attr.uid;
			a.gid = dir->row.attr.gid;
		}
		dir->row.attr = a;
		dir->row.flags |= NODE_OWN_TIMES;
	}
	dir->row.ino = dir->ino;
	/* That of one which shows the workspace is no count, as its owner and rollbacks change it unseen; 0 would say that it was removed. */
	dir->row.attr.nlink = MAX((int64_t)dir->row.attr.nlink + links, 1);
	dir->row.attr.mtime = dir->row.attr.ctime = now;
	return node_save(o, dir);
}

static int node_touch_ctime(struct overlay *o, struct node *n)
{
	node_edit(o, n);
	n->row.attr.ctime = nsec_now();
	return node_save(o, n);
}

/* Lookup */

bool name_is_cacheable(const struct node *dir, const struct child *c)
{
	if (!dir->is_lower)
		return true;
	if (!c->dentry || c->dentry->born == 0)
		return dir->watched;
	/* A row: ours, unless it shows a workspace object that its owner may take away. */
	return !c->dentry->node || !node_follows(c->dentry->node) || node_is_dir(c->dentry->node) || dentry_is_watched(c->dentry);
}

int overlay_lookup(struct overlay *o, uint64_t parent, const char *name, struct overlay_entry *ret)
{
	struct node *dir, *hidden = NULL;
	struct child c = { 0 };
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = "lookup", .ino = parent, .name = name });
	r = name_target(o, parent, name, &dir, &c);
	if (r < 0)
		goto out;
	if (c.node && guard_is_hidden(&c.node->verdict)) {
		audit_hidden(o);
		hidden = g_steal_pointer(&c.node);
	}
	*ret = (struct overlay_entry){ .name_cacheable = name_is_cacheable(dir, &c) };
	/* In a denied directory only what is allowed again, and the way to it, can be told from what is not there. */
	if (dir->verdict.action >= ACTION_DENY && (!c.node || guard_traverse(&c.node->verdict) < 0))
		r = -EACCES;
	else if (c.node)
		r = node_entry(o, c.node, ret);
	if (c.node && r == 0 && ret->guarded)
		audit_closed(o, c.node);
	if (c.node && r == 0) {
		node_count(c.node, 1);
		ret->name_cacheable = name_is_cacheable(dir, &c);
	} else if (c.node || hidden) {
		node_release(o->nodes, c.node ? c.node : hidden);
	}
out:
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}

void overlay_forget(struct overlay *o, uint64_t ino, uint64_t count)
{
	struct node *n;

	overlay_lock(o);
	n = node_find(o->nodes, ino);
	if (n) {
		node_count(n, -(int64_t)MIN(n->lookups, count));
		node_forget_unused(o, n);
	}
	overlay_unlock(o);
}

/* Making */

/*
 * What the rules say of an object of the type in @mode that is to be called @name in @dir; @v is the verdict of the two, @n the
 * object if there is one already.
 */
static int ask_to_name(struct overlay *o, struct node *dir, const char *name, uint32_t mode, const struct verdict *v, const struct node *n)
{
	g_autofree char *path = S_ISLNK(mode) ? dentry_path(dir, name) : NULL;
	int r = ask_to_make(o, dir, name, v, n);

	return r == 0 && path ? guard_link_above(o->policy, v, path) : r;
}

struct making {
	const char *operation; /* for the audit */
	uint32_t mode;
	uint64_t rdev;
	const char *target;
};

static int make_rows(struct overlay *o, struct node *dir, const char *name, const struct child *c, const struct making *m,
		     const struct caller *who, struct node_row *ret_row, struct name_row *ret_name)
{
	int64_t now = nsec_now();
	struct attr a;
	int r = node_attr(o, dir, &a);

	if (r == 0)
		r = node_anchor(o, dir);
	if (r < 0)
		return r;
	*ret_row = (struct node_row){
		.ino = store_new_ino(o->store),
		.flags = NODE_OWN_ATTR | NODE_OWN_TIMES | NODE_OWN_XATTR,
		.attr = { .mode = m->mode, .uid = who->uid, .gid = who->gid, .nlink = S_ISDIR(m->mode) ? 2 : 1, .rdev = m->rdev,
			  .size = m->target ? strlen(m->target) : 0, .atime = now, .mtime = now, .ctime = now },
		.target = (char *)m->target,
	};
	if (a.mode & S_ISGID) {
		ret_row->attr.gid = a.gid;
		if (S_ISDIR(m->mode))
			ret_row->attr.mode |= S_ISGID;
	}
	r = store_node_put(o->store, ret_row);
	if (r == 0)
		r = name_reuse(o, c);
	if (r < 0)
		return r;
	*ret_name = (struct name_row){ .parent = dir->ino, .name = (char *)name, .ino = ret_row->ino,
				       .born = c->dentry ? c->dentry->born : 0, .covers = c->dentry ? c->dentry->covers : 0 };
	r = store_name_put(o->store, ret_name);
	return r < 0 ? r : dir_touch(o, dir, S_ISDIR(m->mode));
}

/* Shows a name in memory as its committed row says. The node that it stood for is returned: it may have lost its last name. */
static struct node *dentry_place(struct node *dir, const char *name, struct node *n, const struct name_row *row)
{
	struct dentry *d = dentry_find(dir, name);
	struct node *old = d ? d->node : NULL;

	if (d)
		dentry_set_node(d, n);
	else
		d = dentry_add(dir, name, n);
	d->born = row->born;
	d->covers = row->covers;
	return old;
}

static int overlay_make(struct overlay *o, uint64_t parent, const char *name, const struct making *m, const struct caller *who,
			struct overlay_entry *ret)
{
	struct node_row row;
	struct name_row name_row;
	struct verdict v;
	struct node *dir, *n, *old;
	struct child c;
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = m->operation, .ino = parent, .name = name });
	r = name_target(o, parent, name, &dir, &c);
	if (r == 0)
		r = !node_is_attached(dir) ? -ENOENT : ask_to_change_in(o, dir, name, NULL);
	if (r == 0) {
		child_verdict(o, dir, name, NULL, true, S_ISDIR(m->mode), &v);
		audit_verdict(o, &v);
		if (c.node)
			r = guard_is_hidden(&c.node->verdict) ? -EACCES : -EEXIST;
		else
			r = ask_to_name(o, dir, name, m->mode, &v, NULL);
	}
	if (r == 0)
		r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, make_rows(o, dir, name, &c, m, who, &row, &name_row));
	if (r == 0) {
		n = node_add(o->nodes, row.ino);
		n->row = row;
		n->row.target = g_strdup(row.target);
		n->verdict = v;
		n->rows_loaded = true;
		node_count(n, 1);
		old = dentry_place(dir, name, n, &name_row);
		r = node_entry(o, n, ret);
		ret->name_cacheable = true;
		if (old)
			node_forget_unused(o, old);
	}
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}

int overlay_mknod(struct overlay *o, uint64_t parent, const char *name, uint32_t mode, uint64_t rdev, const struct caller *who,
		  struct overlay_entry *ret)
{
	struct making m = { .operation = "create", .mode = mode, .rdev = rdev };

	if (!(mode & S_IFMT))
		m.mode |= S_IFREG;
	return overlay_make(o, parent, name, &m, who, ret);
}

int overlay_mkdir(struct overlay *o, uint64_t parent, const char *name, uint32_t mode, const struct caller *who, struct overlay_entry *ret)
{
	struct making m = { .operation = "mkdir", .mode = (mode & 07777) | S_IFDIR };

	return overlay_make(o, parent, name, &m, who, ret);
}

int overlay_symlink(struct overlay *o, const char *target, uint64_t parent, const char *name, const struct caller *who,
		    struct overlay_entry *ret)
{
	struct making m = { .operation = "symlink", .mode = S_IFLNK | 0777, .target = target };

	return strlen(target) >= PATH_MAX ? -ENAMETOOLONG : overlay_make(o, parent, name, &m, who, ret);
}

static int link_rows(struct overlay *o, struct node *n, struct node *dir, const char *name, const struct child *c, struct name_row *ret)
{
	int r = node_anchor(o, n);

	if (r == 0)
		r = node_anchor(o, dir);
	if (r < 0)
		return r;
	node_edit(o, n);
	n->row.attr.nlink++;
	n->row.attr.ctime = nsec_now();
	r = node_save(o, n);
	if (r == 0)
		r = name_reuse(o, c);
	if (r < 0)
		return r;
	*ret = (struct name_row){ .parent = dir->ino, .name = (char *)name, .ino = n->ino, .born = c->dentry ? c->dentry->born : 0,
				  .covers = c->dentry ? c->dentry->covers : 0 };
	r = store_name_put(o->store, ret);
	return r < 0 ? r : dir_touch(o, dir, 0);
}

int overlay_link(struct overlay *o, uint64_t ino, uint64_t parent, const char *name, struct overlay_entry *ret)
{
	g_autofree char *lower = NULL;
	struct node *dir, *n, *old;
	struct name_row row;
	struct verdict v;
	struct child c;
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = "link", .ino = ino, .new_ino = parent, .new_name = name });
	r = overlay_node(o, ino, &n);
	if (r == 0)
		r = name_target(o, parent, name, &dir, &c);
	if (r == 0)
		r = node_is_dir(n) ? -EPERM : ask_to_change(o, n);
	if (r == 0)
		r = !node_is_attached(dir) ? -ENOENT : ask_to_change_in(o, dir, name, n);
	if (r == 0 && c.node)
		r = guard_is_hidden(&c.node->verdict) ? -EACCES : -EEXIST;
	if (r == 0 && !node_is_attached(n))
		r = -ENOENT; /* unlinked: it may not come back */
	if (r == 0) {
		lower = node_lower_path(n);
		child_verdict(o, dir, name, lower, false, false, &v);
		r = ask_to_name(o, dir, name, n->row.attr.mode, &v, n);
	}
	if (r == 0)
		r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, link_rows(o, n, dir, name, &c, &row));
	if (r == 0) {
		old = dentry_place(dir, name, n, &row);
		r = node_entry(o, n, ret);
		ret->name_cacheable = !node_follows(n);
		if (r == 0)
			node_count(n, 1);
		if (old && old != n)
			node_forget_unused(o, old);
	}
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}

int overlay_readlink(struct overlay *o, uint64_t ino, char **ret)
{
	g_autofree char *path = NULL;
	struct node *n;
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = "readlink", .ino = ino });
	r = overlay_node(o, ino, &n);
	if (r == 0)
		r = S_ISLNK(n->row.attr.mode) ? guard_look(&n->verdict) : -EINVAL;
	if (r == 0 && node_follows(n)) {
		path = node_shown_path(o, n);
		r = path ? lower_readlink(o->lower, path, ret) : -ESTALE;
	} else if (r == 0) {
		*ret = g_strdup(n->row.target ? n->row.target : "");
	}
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}

/* Removing */

/*
 * Ends a name: a whiteout where the workspace would show through, or may soon, else no row at all. @ret tells what stands in the index now;
 * ret->born == 0 for nothing.
 */
static int name_end(struct overlay *o, struct node *dir, const char *name, const struct dentry *d, struct name_row *ret)
{
	struct fingerprint print;
	bool held = false;
	int r = overlay_lower_has(o, dir, name, &print);

	if (r < 0)
		return r;
	*ret = (struct name_row){ .parent = dir->ino, .name = (char *)name, .born = d->born, .covers = d->covers };
	if (r > 0) {
		if (d->covers == 0) {
			g_autofree char *parent = node_lower_path(dir), *path = path_join(parent, name);

			r = origin_record(o, path, &print, &ret->covers);
			if (r < 0)
				return r;
		}
		return store_name_put(o->store, ret);
	}
	if (d->born > 0 && d->covers == 0)
		r = name_is_held(o, dir, name, &held);
	if (r < 0)
		return r;
	if (held) {
		name_hold(o, dir, name);
		return store_name_put(o->store, ret);
	}
	/* Something was here when the sandbox began and its owner has removed it since: agreed, no whiteout needed. */
	r = d->born > 0 ? store_name_drop(o->store, dir->ino, name) : 0;
	ret->born = 0;
	return r;
}

static void dentry_end(struct overlay *o, struct node *dir, const char *name, const struct name_row *row)
{
	struct dentry *d = dentry_find(dir, name);
	struct node *n = d->node;

	/* Whoever has it open goes on with what was at that path. */
	if (n && n->is_lower && !n->origin && !d->next_of_node && n->names == d)
		n->origin = node_lower_path(n);
	if (row->born > 0) {
		dentry_set_node(d, NULL);
		d->born = row->born;
		d->covers = row->covers;
	} else {
		dentry_remove(d);
	}
	if (n)
		node_forget_unused(o, n);
}


/* Nothing visible, and nothing hidden either: removing a directory must not take along what the caller can't see. */
static int dir_is_empty(struct overlay *o, struct node *dir)
{
	g_autofree char *lower = node_lower_path(dir);
	g_autoptr(GPtrArray) names = NULL;
	GHashTableIter iter;
	gpointer value;
	int r = overlay_load(o, dir);

	if (r < 0)
		return r;
	if (dir->children) {
		g_hash_table_iter_init(&iter, dir->children);
		while (g_hash_table_iter_next(&iter, NULL, &value)) {
			const struct dentry *d = value;

			if (d->born > 0 && dentry_shows(o, d) != 0)
				return -ENOTEMPTY;
		}
	}
	r = lower ? lower_list(o->lower, lower, &names) : 0;
	if (r < 0)
		return errno_is_absent(r) ? 0 : r;
	for (guint i = 0; names && i < names->len; i++) {
		const struct dentry *d = dentry_find(dir, ((struct lower_name *)g_ptr_array_index(names, i))->name);

		if (!d || d->born == 0)
			return -ENOTEMPTY;
	}
	return 0;
}

static void dir_drop_names(struct overlay *o, struct node *dir)
{
	GHashTableIter iter;
	gpointer value;

	while (dir->children && g_hash_table_size(dir->children) > 0) {
		struct node *n;
		struct dentry *d;

		g_hash_table_iter_init(&iter, dir->children);
		if (!g_hash_table_iter_next(&iter, NULL, &value))
			break;
		d = value;
		n = d->node;
		if (n && n->is_lower && !n->origin && n->names == d && !d->next_of_node)
			n->origin = node_lower_path(n);
		dentry_remove(d);
		if (n)
			node_forget_unused(o, n);
	}
	/* It stays empty: nothing of the workspace shows in a directory that is gone. */
	dir->is_lower = false;
	dir->row.attr.nlink = 0;
	dir->rows_loaded = true;
}

static int remove_rows(struct overlay *o, struct node *dir, const char *name, const struct child *c, struct name_row *ret)
{
	int r = node_anchor(o, dir);

	if (r == 0)
		r = node_unlink_row(o, c->node);
	if (r == 0)
		r = node_leave(o, c->node, c->dentry);
	if (r == 0 && node_is_dir(c->node))
		r = store_names_drop(o->store, c->node->ino); /* its whiteouts end with it */
	if (r == 0)
		r = name_end(o, dir, name, c->dentry, ret);
	return r < 0 ? r : dir_touch(o, dir, -node_is_dir(c->node));
}

static int overlay_remove(struct overlay *o, uint64_t parent, const char *name, bool want_dir)
{
	struct name_row row;
	struct node *dir;
	struct child c;
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = want_dir ? "rmdir" : "unlink", .ino = parent, .name = name, .frees = true });
	r = name_target(o, parent, name, &dir, &c);
	if (r == 0)
		r = c.node && !guard_is_hidden(&c.node->verdict) ? ask_to_change_in(o, dir, name, c.node) : -ENOENT;
	if (r == 0)
		r = ask_to_make(o, dir, name, &c.node->verdict, c.node);
	if (r == 0 && node_is_dir(c.node) != want_dir)
		r = want_dir ? -ENOTDIR : -EISDIR;
	if (r == 0 && want_dir)
		r = dir_is_empty(o, c.node);
	if (r == 0)
		r = ask_to_delete(o, c.node);
	if (r == 0)
		r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, remove_rows(o, dir, name, &c, &row));
	if (r == -ENOSPC && store_free_reserve(o->store)) {
		r = overlay_begin(o);
		if (r == 0)
			r = overlay_end(o, remove_rows(o, dir, name, &c, &row));
	}
	if (r == 0) {
		ask_deleted(o, c.node);
		if (want_dir)
			dir_drop_names(o, c.node);
		dentry_end(o, dir, name, &row);
	}
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}

int overlay_unlink(struct overlay *o, uint64_t parent, const char *name)
{
	return overlay_remove(o, parent, name, false);
}

int overlay_rmdir(struct overlay *o, uint64_t parent, const char *name)
{
	return overlay_remove(o, parent, name, true);
}

/* Moving */

struct move {
	struct node *dir, *new_dir;
	const char *name, *new_name;
	struct child from, to;
	struct name_row from_row, to_row;
	bool exchange;
};

static int move_allowed(struct overlay *o, struct node *n, struct node *dir, const char *name)
{
	g_autofree char *lower = node_lower_path(n);
	struct verdict v;
	int r = ask_to_change(o, n);

	if (r < 0)
		return r;
	child_verdict(o, dir, name, lower, false, node_is_dir(n), &v);
	return ask_to_name(o, dir, name, n->row.attr.mode, &v, n);
}

static int move_check(struct overlay *o, const struct move *m, unsigned int flags)
{
	struct node *n = m->from.node, *t = m->to.node;
	int r;

	if (!n || guard_is_hidden(&n->verdict))
		return -ENOENT;
	r = ask_to_change_in(o, m->dir, m->name, n);
	if (r == 0)
		r = ask_to_change_in(o, m->new_dir, m->new_name, n);
	if (r == 0 && !node_is_attached(m->new_dir))
		r = -ENOENT;
	if (r == 0)
		r = move_allowed(o, n, m->new_dir, m->new_name);
	if (r == 0 && t)
		r = ask_to_make(o, m->new_dir, m->new_name, &t->verdict, t);
	if (r < 0)
		return r;
	if (t && (flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (!t && m->exchange)
		return -ENOENT;
	if (node_is_dir(n) && node_is_below(m->new_dir, n))
		return -EINVAL;
	if (t && node_is_dir(t) && node_is_below(m->dir, t))
		return m->exchange ? -EINVAL : -ENOTEMPTY;
	if (m->exchange)
		return move_allowed(o, t, m->dir, m->name);
	if (!t || t == n)
		return 0;
	if (node_is_dir(t) != node_is_dir(n))
		return node_is_dir(t) ? -EISDIR : -ENOTDIR;
	r = node_is_dir(t) ? dir_is_empty(o, t) : 0;
	return r < 0 ? r : ask_to_delete(o, t);
}

static int move_touch(struct overlay *o, const struct move *m)
{
	int leaves = node_is_dir(m->from.node);
	int ends = m->to.node && node_is_dir(m->to.node); /* at its old place: replaced, or moved the other way */
	int r;

	if (m->dir == m->new_dir)
		return dir_touch(o, m->dir, m->exchange ? 0 : -ends);
	r = dir_touch(o, m->dir, (m->exchange ? ends : 0) - leaves);
	return r < 0 ? r : dir_touch(o, m->new_dir, leaves - ends);
}

static int move_rows(struct overlay *o, struct move *m)
{
	struct node *n = m->from.node, *t = m->to.node;
	struct fingerprint print;
	int r = node_anchor(o, m->dir);

	if (r == 0)
		r = node_anchor(o, m->new_dir);
	if (r == 0)
		r = node_anchor(o, n);
	if (r == 0 && m->exchange)
		r = node_anchor(o, t);
	if (r < 0)
		return r;
	m->to_row = (struct name_row){ .parent = m->new_dir->ino, .name = (char *)m->new_name, .ino = n->ino };
	if (!m->exchange && t) {
		r = node_unlink_row(o, t);
		if (r == 0)
			r = node_leave(o, t, m->to.dentry);
		if (r == 0 && node_is_dir(t))
			r = store_names_drop(o->store, t->ino);
		if (r < 0)
			return r;
	}
	r = name_reuse(o, &m->to);
	if (r < 0)
		return r;
	if (m->to.dentry) {
		m->to_row.born = m->to.dentry->born;
		m->to_row.covers = m->to.dentry->covers;
	}
	if (m->to_row.born == 0 && t) {
		/* The workspace's own name gets another node: remember what it was. */
		g_autofree char *parent = node_lower_path(m->new_dir), *path = path_join(parent, m->new_name);

		r = lower_stat(o->lower, path, &print);
		if (r == 0)
			r = origin_record(o, path, &print, &m->to_row.covers);
		if (r == 0) {
			const struct origin replaced = { .id = m->to_row.covers, .path = path, .print = print };

			r = origin_base_keep_file(o->store, o->lower, &replaced);
		}
	}
	if (r == 0)
		r = store_name_put(o->store, &m->to_row);
	if (r == 0 && m->exchange) {
		m->from_row = (struct name_row){ .parent = m->dir->ino, .name = (char *)m->name, .ino = t->ino,
						 .born = m->from.dentry->born, .covers = m->from.dentry->covers };
		r = store_name_put(o->store, &m->from_row);
	} else if (r == 0) {
		r = name_end(o, m->dir, m->name, m->from.dentry, &m->from_row);
	}
	if (r == 0)
		r = node_touch_ctime(o, n);
	if (r == 0 && m->exchange)
		r = node_touch_ctime(o, t);
	return r < 0 ? r : move_touch(o, m);
}

static void move_names(struct overlay *o, struct move *m)
{
	struct node *n = m->from.node, *t = m->to.node, *old = NULL;

	if (m->exchange) {
		dentry_place(m->dir, m->name, t, &m->from_row);
		dentry_place(m->new_dir, m->new_name, n, &m->to_row);
		node_update_verdicts(o, t);
	} else {
		struct dentry *d = dentry_find(m->dir, m->name);

		/* Before the old name goes, so that @n is never without one. */
		if (t && node_is_dir(t))
			dir_drop_names(o, t);
		if (t && t->is_lower && !t->origin && m->to.dentry && !m->to.dentry->next_of_node && t->names == m->to.dentry)
			t->origin = node_lower_path(t);
		old = dentry_place(m->new_dir, m->new_name, n, &m->to_row);
		if (m->from_row.born > 0) {
			dentry_set_node(d, NULL);
			d->born = m->from_row.born;
			d->covers = m->from_row.covers;
		} else {
			dentry_remove(d);
		}
	}
	node_update_verdicts(o, n);
	/* Last: where nobody holds the directory, this may free all that is in it. */
	if (old)
		node_forget_unused(o, old);
}

int overlay_rename(struct overlay *o, uint64_t parent, const char *name, uint64_t new_parent, const char *new_name, unsigned int flags)
{
	struct move m = { .name = name, .new_name = new_name, .exchange = flags & RENAME_EXCHANGE };
	int r;

	if ((flags & ~(unsigned int)(RENAME_NOREPLACE | RENAME_EXCHANGE)) || flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = m.exchange ? "exchange" : "rename", .ino = parent, .name = name,
					      .new_ino = new_parent, .new_name = new_name });
	r = name_target(o, parent, name, &m.dir, &m.from);
	if (r == 0)
		r = name_target(o, new_parent, new_name, &m.new_dir, &m.to);
	if (r == 0)
		r = move_check(o, &m, flags);
	if (r == 0 && m.from.node == m.to.node)
		goto out; /* two names of one inode: POSIX says that nothing happens */
	if (r == 0)
		r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, move_rows(o, &m));
	if (r == 0 && m.to.node && !m.exchange)
		ask_deleted(o, m.to.node);
	if (r == 0)
		move_names(o, &m);
out:
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}
