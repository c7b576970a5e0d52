/* SPDX-License-Identifier: MIT */
/*
 * overlay_unsettle - after a commit was undone: what it had written is a change again; and what of it is done before
 *
 * The opposite of overlay_settle(). The view shows the same before and after: what a row took from the workspace since the commit, it
 * takes from the committed state again, and what was changed since then stays changed. All of it now lies over the workspace as it was
 * before the commit. Doing it twice is harmless.
 *
 * The workspace is taken back step by step, and what a row takes from it is gone from the view with its step. So the rows are given what is
 * theirs before the first one: overlay_unfollow(), which is all of this that needs no workspace of before. What was moved and nothing else has
 * its bytes nowhere but there: it goes on at its old place when that is back and the new one is still there, overlay_refollow(), and with it
 * what a moved directory shows without rows. What covers what has to wait for the end. So have, until which they may be seen as of before,
 * what was exchanged (each has its bytes in the place of the other), large files of which a part was written, and, where store and
 * workspace lie on different file systems, what is put back as a copy.
 */
#include <errno.h>
#include <string.h>

#include "fs/overlay_unsettling.h"
#include "snapshot/content_origin.h"

static char *name_key(uint64_t parent, const char *name)
{
	return g_strdup_printf("%" G_GUINT64_FORMAT "/%s", parent, name);
}

static bool owns_bytes(const struct node_row *n)
{
	return n->content != 0 || n->target != NULL;
}

/* @n: of now, which becomes what it is to be; @then: the committed one. */
static void merge_node(struct node_row *n, const struct node_row *then)
{
	if (!owns_bytes(n)) {
		n->content = then->content;
		n->target = g_strdup(then->target);
		n->attr.size = then->attr.size;
		if (!(n->flags & NODE_OWN_TIMES)) {
			n->attr.atime = then->attr.atime;
			n->attr.mtime = then->attr.mtime;
			n->flags |= then->flags & NODE_OWN_TIMES;
		}
	}
	if (!(n->flags & NODE_OWN_ATTR)) {
		n->attr.mode = then->attr.mode;
		n->attr.uid = then->attr.uid;
		n->attr.gid = then->attr.gid;
		n->flags |= then->flags & NODE_OWN_ATTR;
	}
	if (!(n->flags & NODE_OWN_XATTR)) {
		n->xattrs = then->xattrs ? g_bytes_ref(then->xattrs) : NULL;
		n->flags |= then->flags & NODE_OWN_XATTR;
	}
	n->attr.ctime = MAX(n->attr.ctime, then->attr.ctime);
	n->origin = then->origin;
}

static int origin_path(struct store *s, int64_t id, char **ret)
{
	struct origin o = { 0 };
	int r = id ? store_origin_get(s, id, &o) : 0;

	if (r == 0)
		*ret = g_steal_pointer(&o.path);
	origin_clear(&o);
	return r;
}

/* Nothing of the workspace is in a fifo, socket or device but that it follows one. */
static bool is_special(const struct node_row *n)
{
	return !S_ISREG(n->attr.mode) && !S_ISDIR(n->attr.mode) && !S_ISLNK(n->attr.mode);
}

/* Two names of one file, or the same. */
static bool is_one_object(struct overlay *o, const char *a, const char *b)
{
	struct fingerprint x, y;

	if (!a || !b || strcmp(a, b) == 0)
		return a && b;
	return lower_stat(o->lower, a, &x) == 0 && lower_stat(o->lower, b, &y) == 0 && x.dev == y.dev && x.ino == y.ino;
}

/*
 * Whether the row @then shows the same before, while and after the workspace goes back as what is at @lower (NULL = nothing) does now.
 * @ret_path: what it follows, NULL = nothing.
 */
static int stands_alone(struct unsettling *u, const struct node_row *then, const char *lower, char **ret_path, bool *ret)
{
	struct store *s = u->overlay->store;
	bool reads = false;
	int r = then->content ? content_reads_workspace(s, then->content, &reads) : 0;

	if (r == 0)
		r = origin_path(s, then->origin, ret_path);
	*ret = r == 0 && !reads && (!*ret_path || owns_bytes(then) || is_special(then) || is_one_object(u->overlay, *ret_path, lower));
	return r;
}

/*
 * unsettle_node() before the workspace goes back. What now is the base stays it, for the workspace has what was committed; but of a file with
 * several names, the one that the committed row follows, as the other may go.
 */
static int unfollow_node(struct unsettling *u, struct node_row *now, const struct node_row *then)
{
	struct overlay *o = u->overlay;
	g_autofree char *lower = NULL, *path = NULL;
	int64_t origin = now->origin;
	struct fingerprint print;
	bool alone = false;
	int r = origin_path(o->store, origin, &lower);

	if (r == 0)
		r = stands_alone(u, then, lower, &path, &alone);
	if (r < 0 || !alone)
		return r;
	if (path && strcmp(path, lower ? lower : "") != 0 && !owns_bytes(then))
		r = lower_stat(o->lower, path, &print) < 0 ? 0 : origin_record(o, path, &print, &origin);
	merge_node(now, then);
	/* Without an origin all is its own, xattrs too. */
	if (is_special(now))
		now->origin = 0;
	else if (then->origin)
		now->origin = origin;
	return r < 0 ? r : store_node_put(o->store, now);
}

/* Whether the workspace has the object again, or still, that @origin was recorded of. A directory that was made again has another number. */
static int has_returned(struct unsettling *u, int64_t origin, bool *ret)
{
	struct origin o = { 0 };
	struct fingerprint now;
	int r = store_origin_get(u->overlay->store, origin, &o);

	*ret = r == 0 && lower_stat(u->overlay->lower, o.path, &now) == 0 && ((now.attr.mode ^ o.print.attr.mode) & S_IFMT) == 0 &&
	       (S_ISDIR(now.attr.mode) || (now.ino == o.print.ino && now.btime == o.print.btime));
	origin_clear(&o);
	return r;
}

/* unsettle_node() between the halves: what was not given bytes of its own, as they are in the workspace alone, is at its old place. */
static int refollow_node(struct unsettling *u, struct node_row *now, const struct node_row *then)
{
	bool returned = false;
	int r = then->origin && !owns_bytes(then) && !is_special(then) ? has_returned(u, then->origin, &returned) : 0;

	if (r < 0 || !returned)
		return r;
	merge_node(now, then);
	return store_node_put(u->overlay->store, now);
}

int unsettle_node(struct unsettling *u, uint64_t ino)
{
	struct store *s = u->overlay->store;
	struct node_row now, then = { 0 };
	int r = store_node_get(s, EPOCH_LIVE, ino, &now);

	if (r == 0)
		r = store_node_get(s, u->epoch, ino, &then);
	if (r == 0 && u->early && now.ino && then.ino && now.born > u->epoch) {
		r = unfollow_node(u, &now, &then);
	} else if (r == 0 && u->half && now.ino && then.ino && now.born > u->epoch) {
		r = refollow_node(u, &now, &then);
	} else if (r == 0 && now.ino && then.ino && now.born > u->epoch) {
		merge_node(&now, &then);
		r = store_node_put(s, &now);
		if (r == 0)
			r = content_origin_returned(s, u->overlay->lower, now.content);
	}
	changed_rows_add_node(ino, &u->rows);
	node_row_clear(&now);
	node_row_clear(&then);
	return r;
}

static int add_whiteout(const struct name_row *name, const struct node_row *node, void *user)
{
	(void)node;
	if (name->ino == 0)
		changed_rows_add_name(name->parent, name->name, user);
	return 0;
}

/* What was deleted in a directory before it was renamed has no path in a commit, but lies where the directory is back now. */
static int restore_whiteouts(struct unsettling *u, uint64_t ino, const char *path)
{
	struct store *s = u->overlay->store;
	struct changed_rows found;
	struct origin origin = { 0 };
	struct node_row dir;
	int r = store_node_get(s, u->epoch, ino, &dir);

	changed_rows_init(&found);
	if (r == 0 && S_ISDIR(dir.attr.mode) && dir.origin)
		r = store_origin_get(s, dir.origin, &origin);
	if (r == 0 && origin.path && strcmp(origin.path, path) != 0)
		r = store_names(s, u->epoch, ino, add_whiteout, &found);
	for (guint i = 0; r == 0 && i < found.names->len; i++) {
		const struct changed_name *n = &g_array_index(found.names, struct changed_name, i);

		r = store_name_restore(s, u->epoch, n->parent, n->name);
		changed_rows_add_name(n->parent, n->name, &u->rows);
	}
	changed_rows_clear(&found);
	origin_clear(&origin);
	node_row_clear(&dir);
	return r;
}

/*
 * A name without a row, of now, was taken back by a rollback, or deleted since: then there is nothing to cover any more, so there is no whiteout.
 * But while the workspace had it there was, so until a commit's places are taken away there is always a row: whatever stands alone has got its own
 * by then, all else when it was refollowed.
 */
static int may_restore(struct unsettling *u, uint64_t parent, const char *path, const char *name, uint64_t ino, bool *ret)
{
	g_autofree char *follows = NULL, *key = name_key(parent, name);
	struct node_row then = { 0 };
	bool alone = true;
	int r = ino ? store_node_get(u->overlay->store, u->epoch, ino, &then) : 0;

	if (r == 0 && ino)
		r = stands_alone(u, &then, path, &follows, &alone);
	node_row_clear(&then);
	if (u->early || u->half || u->refollowed)
		*ret = u->early ? alone : !u->refollowed;
	else
		*ret = (!alone && !g_hash_table_contains(u->gone, key)) || g_hash_table_contains(u->restored, &parent);
	return r;
}

/* The name and what it stands for, as they were committed: a rollback took their rows away, so the view shows what was committed. */
static int restore_entry(struct unsettling *u, uint64_t parent, const char *path, const char *name, uint64_t ino)
{
	struct store *s = u->overlay->store;
	struct node_row now = { 0 };
	bool may;
	int r = may_restore(u, parent, path, name, ino, &may);

	if (r < 0 || !may)
		return r;
	r = store_name_restore(s, u->epoch, parent, name);
	if (r == 0 && ino)
		r = store_node_get(s, EPOCH_LIVE, ino, &now);
	if (r == 0 && ino && !now.ino) {
		g_hash_table_add(u->restored, g_memdup2(&ino, sizeof(ino)));
		r = store_node_restore(s, u->epoch, ino);
		if (r == 0)
			r = restore_whiteouts(u, ino, path);
	}
	node_row_clear(&now);
	changed_rows_add_name(parent, name, &u->rows);
	if (ino)
		changed_rows_add_node(ino, &u->rows);
	return r;
}

int unsettle_covers(struct unsettling *u, struct name_row *now, const struct name_row *then)
{
	struct store *s = u->overlay->store;
	int r;

	if (u->half && now->ino == 0)
		return 0; /* what it hides is there still */
	now->covers = then->covers;
	if (now->ino == 0 && now->covers == 0)
		g_hash_table_add(u->gone, name_key(now->parent, now->name));
	r = now->ino == 0 && now->covers == 0 ? store_name_drop(s, now->parent, now->name) : store_name_put(s, now);
	changed_rows_add_name(now->parent, now->name, &u->rows);
	return r;
}

/* A row for the number alone: it is known, or was when the row was made, and the object in the workspace has another one. */
static bool keeps_number(struct overlay *o, uint64_t ino, const struct fingerprint *print)
{
	const struct node *n = node_find(o->nodes, ino);

	return ino != print->ino && (ino < FIRST_OWN_INO || (n && n->lookups > 0));
}

/*
 * The commit gave this file of a renamed directory a row, as the directory could not merge with its new place. Unchanged, it needs none, unless
 * it has other names; else it came from where the directory comes from.
 */
static int unsettle_child_of_renamed(struct unsettling *u, struct name_row *now)
{
	struct overlay *o = u->overlay;
	struct node_row dir = { 0 }, n = { 0 };
	struct fingerprint print;
	struct origin origin = { 0 };
	g_autofree char *path = NULL;
	int r = store_node_get(o->store, u->epoch, now->parent, &dir);

	if (r == 0)
		r = store_node_get(o->store, EPOCH_LIVE, now->ino, &n);
	if (r == 0 && dir.origin)
		r = store_origin_get(o->store, dir.origin, &origin);
	path = origin.path ? path_join(origin.path, now->name) : NULL;
	if (r == 0 && path && n.ino && lower_stat(o->lower, path, &print) == 0) {
		if (n.flags == 0 && n.attr.nlink <= 1 && !owns_bytes(&n) && !keeps_number(o, n.ino, &print)) {
			r = store_name_drop(o->store, now->parent, now->name);
			if (r == 0)
				r = store_node_drop(o->store, n.ino);
		} else {
			r = origin_record(o, path, &print, &n.origin);
			now->covers = n.origin;
			if (r == 0)
				r = store_node_put(o->store, &n);
			if (r == 0)
				r = store_name_put(o->store, now);
		}
		changed_rows_add_name(now->parent, now->name, &u->rows);
		changed_rows_add_node(n.ino, &u->rows);
	}
	origin_clear(&origin);
	node_row_clear(&dir);
	node_row_clear(&n);
	return r;
}

static int unsettle_name(struct unsettling *u, uint64_t parent, const char *path, const char *name)
{
	struct store *s = u->overlay->store;
	struct name_row now, then = { 0 };
	int r = store_name_get(s, EPOCH_LIVE, parent, name, &now);

	if (r == 0)
		r = store_name_get(s, u->epoch, parent, name, &then);
	if (r < 0 || (then.born == 0 && now.born == 0))
		; /* an error, or nothing to do */
	else if (then.born == 0)
		r = !u->early && now.ino && now.born > u->epoch ? unsettle_child_of_renamed(u, &now) : 0;
	else if (now.born == 0)
		r = restore_entry(u, parent, path, name, then.ino);
	else if (!u->early)
		r = unsettle_covers(u, &now, &then);
	if (r == 0 && then.ino)
		r = unsettle_node(u, then.ino);
	name_row_clear(&now);
	name_row_clear(&then);
	return r;
}

/* The directory of @path as committed, 0 = it has no row any more. Rows on the way that a rollback took away are put back. */
static int find_parent(struct unsettling *u, const char *path, uint64_t *ret)
{
	g_auto(GStrv) parts = g_strsplit(path, "/", -1);
	g_autoptr(GString) prefix = g_string_new(NULL);
	struct store *s = u->overlay->store;
	uint64_t parent = ROOT_INO;
	int r = 0;

	for (char **part = parts; r == 0 && parent && part[0] && part[1]; part++) {
		struct name_row now, then = { 0 };
		struct node_row node = { 0 };

		g_string_append_printf(prefix, "%s%s", prefix->len ? "/" : "", *part);
		r = store_name_get(s, EPOCH_LIVE, parent, *part, &now);
		if (r == 0)
			r = store_name_get(s, u->epoch, parent, *part, &then);
		if (r == 0 && now.born == 0 && then.ino)
			r = restore_entry(u, parent, prefix->str, *part, then.ino);
		if (r == 0 && then.ino)
			r = store_node_get(s, EPOCH_LIVE, then.ino, &node);
		/* One that was removed since, in which somebody still is, gets no names. */
		parent = node.attr.nlink > 0 ? node.ino : 0;
		node_row_clear(&node);
		name_row_clear(&now);
		name_row_clear(&then);
	}
	*ret = parent;
	return r;
}

static int unsettle_path(struct unsettling *u, const char *path)
{
	const char *name = strrchr(path, '/');
	uint64_t parent = 0;
	int r = find_parent(u, path, &parent);

	if (r < 0 || parent == 0)
		return r;
	/* The root has no name. */
	return *path ? unsettle_name(u, parent, path, name ? name + 1 : path) : unsettle_node(u, ROOT_INO);
}

static int unsettle_all(struct unsettling *u, const char *const *paths)
{
	int r = unsettle_dirs(u);

	for (; r == 0 && *paths; paths++)
		r = unsettle_path(u, *paths);
	return r < 0 ? r : unsettle_dirs_numbers(u);
}

static int unfollow_all(struct unsettling *u, const char *const *paths)
{
	int r = 0;

	for (; r == 0 && *paths; paths++)
		r = unsettle_path(u, *paths);
	return r;
}

static void unsettling_begin(struct unsettling *u)
{
	changed_rows_init(&u->rows);
	u->restored = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	u->gone = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	overlay_lock(u->overlay);
}

/* The rows are written; memory and the kernel follow. Undoes unsettling_begin(). */
static int unsettling_end(struct unsettling *u, int r)
{
	struct overlay *o = u->overlay;

	if (r == 0)
		r = overlay_resync(o, &u->rows);
	for (guint i = 0; r == 0 && i < u->rows.nodes->len; i++) {
		struct node *n = node_find(o->nodes, g_array_index(u->rows.nodes, uint64_t, i));

		if (n && node_is_dir(n))
			settle_prints(o, n);
	}
	overlay_unlock(o);
	changed_rows_clear(&u->rows);
	g_hash_table_unref(u->restored);
	g_hash_table_unref(u->gone);
	g_clear_pointer(&u->touched, g_hash_table_unref);
	g_clear_pointer(&u->places, g_ptr_array_unref);
	if (r == 0)
		overlay_drain(o);
	return r;
}

int overlay_unfollow(struct overlay *o, int64_t epoch, const char *const *paths)
{
	struct unsettling u = { .overlay = o, .epoch = epoch, .early = true };
	int r;

	unsettling_begin(&u);
	/* It is part of an undo, which is recorded at its end. */
	r = transaction_begin(o);
	if (r == 0)
		r = transaction_end(o, unfollow_all(&u, paths));
	return unsettling_end(&u, r);
}

/*
 * That it was told, in the store: what has no row from then on was deleted since, and must not come back for who is told the rest, maybe after
 * another process did this.
 */
#define REFOLLOWED "refollowed"

static int note_refollowed(struct overlay *o, int64_t epoch)
{
	g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, epoch);

	return store_set(o->store, REFOLLOWED, text);
}

static bool was_refollowed(struct overlay *o, int64_t epoch)
{
	g_autofree char *text = store_get(o->store, REFOLLOWED);

	return text && g_ascii_strtoll(text, NULL, 10) == epoch;
}

int overlay_refollow(struct overlay *o, int64_t epoch, const char *const *paths)
{
	struct unsettling u = { .overlay = o, .epoch = epoch, .half = true };
	int r;

	u.touched = path_set_with_parents(paths);
	unsettling_begin(&u);
	u.refollowed = was_refollowed(o, epoch);
	r = transaction_begin(o);
	if (r == 0) {
		r = unsettle_all(&u, paths);
		if (r == 0)
			r = note_refollowed(o, epoch);
		r = transaction_end(o, r);
	}
	return unsettling_end(&u, r);
}

int overlay_unsettle(struct overlay *o, int64_t epoch, const char *const *paths)
{
	struct unsettling u = { .overlay = o, .epoch = epoch };
	int r;

	u.touched = path_set_with_parents(paths);
	unsettling_begin(&u);
	u.refollowed = was_refollowed(o, epoch);
	spare_forget(o->spare);
	audit_begin(o, &(struct audit_about){ .kind = AUDIT_COMMIT, .operation = "uncommit" });
	r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, unsettle_all(&u, paths));
	audit_paths(o, AUDIT_COMMIT, "uncommit", r == 0 ? paths : NULL);
	audit_end(o, r);
	return unsettling_end(&u, r);
}
