/* SPDX-License-Identifier: MIT */
#include "snapshot/conflict.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/journal.h"
#include "snapshot/place.h"
#include "snapshot/xattr.h"

/*
 * The kernel stamps inodes with the clock of its last tick (up to 10 ms old at 100 Hz), origins carry the exact time. A stamp this
 * much before the recording may still be a change after it, and is taken for one.
 */
#define TICK (10 * 1000 * 1000LL)

#define PERMISSIONS 07777

const char *conflict_kind_name(enum conflict_kind k)
{
	static const char *const names[] = {
		[CONFLICT_CONTENT] = "content", [CONFLICT_TYPE] = "type",     [CONFLICT_EXISTS] = "exists",
		[CONFLICT_MISSING] = "missing", [CONFLICT_PARENT] = "parent", [CONFLICT_ATTR] = "attributes",
	};

	return names[k];
}

void conflict_free(struct conflict *c)
{
	if (!c)
		return;
	g_free(c->path);
	g_free(c->base);
	g_free(c->workspace);
	g_free(c->sandbox);
	g_free(c);
}

static char *describe(const struct attr *a)
{
	uint32_t permissions = a ? a->mode & PERMISSIONS : 0;

	if (!a || a->mode == 0)
		return g_strdup("absent");
	switch (a->mode & S_IFMT) {
	case S_IFREG:
		return g_strdup_printf("file %03o, %" G_GUINT64_FORMAT " bytes", permissions, a->size);
	case S_IFDIR:
		return g_strdup_printf("directory %03o", permissions);
	case S_IFLNK:
		return g_strdup("symlink");
	case S_IFIFO:
		return g_strdup_printf("fifo %03o", permissions);
	case S_IFSOCK:
		return g_strdup_printf("socket %03o", permissions);
	default:
		return g_strdup_printf("device %03o", permissions);
	}
}

void conflict_add(GPtrArray *conflicts, const char *path, enum conflict_kind kind, const struct fingerprint *base,
		  const struct fingerprint *now, const struct attr *after)
{
	struct conflict *c = g_new0(struct conflict, 1);

	c->path = g_strdup(path);
	c->kind = kind;
	c->base = describe(base ? &base->attr : NULL);
	c->workspace = describe(now ? &now->attr : NULL);
	c->sandbox = describe(after);
	g_ptr_array_add(conflicts, c);
}

void resolution_clear(struct resolution *r)
{
	g_clear_pointer(&r->xattrs, g_bytes_unref);
	g_clear_pointer(&r->merged, g_bytes_unref);
	*r = (struct resolution){ 0 };
}

void resolver_clear(struct resolver *r)
{
	g_clear_pointer(&r->known, g_hash_table_unref);
}

static bool same_type(uint32_t a, uint32_t b)
{
	return (a & S_IFMT) == (b & S_IFMT);
}

static bool same_owner_and_mode(const struct attr *a, const struct attr *b)
{
	return (a->mode & PERMISSIONS) == (b->mode & PERMISSIONS) && a->uid == b->uid && a->gid == b->gid;
}

static bool is_lost_parent(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EXDEV;
}

/* What our own commits left behind */

/* Everything but ctime: the renames of a commit (and of one that was backed out) change that and nothing else. */
static bool same_but_ctime(const struct fingerprint *a, const struct fingerprint *b)
{
	return (a->ino == 0 || a->ino == b->ino) && same_type(a->attr.mode, b->attr.mode) &&
	       (S_ISDIR(a->attr.mode) || (a->attr.size == b->attr.size && a->attr.mtime == b->attr.mtime)) &&
	       same_owner_and_mode(&a->attr, &b->attr);
}

static void know_as(struct resolver *r, const char *key, const struct fingerprint *print)
{
	GArray *prints = g_hash_table_lookup(r->known, key);

	if (!prints) {
		prints = g_array_new(FALSE, FALSE, sizeof(*print));
		g_hash_table_insert(r->known, g_strdup(key), prints);
	}
	g_array_append_val(prints, *print);
}

/* No path begins like this: for the other names of a file, which no step speaks of. */
static char *inode_key(const struct fingerprint *print)
{
	return g_strdup_printf("/%" G_GUINT64_FORMAT, print->ino);
}

static void know(struct resolver *r, const char *path, const struct fingerprint *print)
{
	g_autofree char *key = inode_key(print);

	if (print->attr.mode == 0)
		return;
	know_as(r, path, print);
	if (print->ino && !S_ISDIR(print->attr.mode))
		know_as(r, key, print);
}

static void know_journal(struct resolver *r, const struct journal *j)
{
	for (guint i = 0; i < j->steps->len; i++) {
		const struct step *s = g_ptr_array_index(j->steps, i);
		bool puts = s->kind == STEP_CREATE || s->kind == STEP_REPLACE;
		struct fingerprint made = puts ? s->staged : s->before, old = s->before;

		/* Given by another file system, or to a directory that was made again: any will do. */
		if (s->copied)
			made.ino = old.ino = 0;
		if (s->kind == STEP_RMDIR)
			old.ino = 0;
		if (s->set & SET_MODE)
			made.attr.mode = s->attr.mode;
		if (s->set & SET_OWNER) {
			made.attr.uid = s->attr.uid;
			made.attr.gid = s->attr.gid;
		}
		if (s->set & SET_TIMES)
			made.attr.mtime = s->attr.mtime;
		know(r, s->path, &made);
		/* What was taken back, or undone. */
		know(r, s->from && !puts ? s->from : s->path, &old);
	}
}

static bool has_print(struct resolver *r, const char *key, const struct fingerprint *now)
{
	GArray *prints = g_hash_table_lookup(r->known, key);

	for (guint i = 0; prints && i < prints->len; i++)
		if (same_but_ctime(&g_array_index(prints, struct fingerprint, i), now))
			return true;
	return false;
}

static bool is_known(struct resolver *r, const char *path, const struct fingerprint *now)
{
	g_autofree char *key = inode_key(now);
	g_autoptr(GArray) numbers = NULL;

	if (!r->known) {
		r->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
		if (commits_list(r->commits, &numbers) < 0)
			return false;
		for (guint i = 0; i < numbers->len; i++) {
			g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, g_array_index(numbers, guint64, i));
			g_autoptr(journal_t) j = NULL;
			int fd;

			if (commit_open(r->commits, id, &fd) < 0)
				continue;
			if (journal_read(fd, &j) == 0)
				know_journal(r, j);
			close(fd);
		}
	}
	return has_print(r, path, now) || has_print(r, key, now);
}

bool resolve_is_newer(struct resolver *r, const char *path, const struct fingerprint *now, int64_t seen)
{
	/* A directory's times change with its entries, which are looked at one by one; only its birth says something. */
	int64_t stamp = S_ISDIR(now->attr.mode) ? now->btime : now->attr.ctime;

	return stamp >= seen - TICK && !is_known(r, path, now);
}

/* The three states */

struct three {
	struct resolver *r;
	const struct change *c;
	struct origin base; /* .id 0 = nothing was there */
	struct resolution *out;
	bool clash;
};

static void clash(struct three *t, enum conflict_kind kind)
{
	conflict_add(t->r->conflicts, t->c->path, kind, t->base.id ? &t->base.print : NULL, &t->out->now, &t->c->after->attr);
	t->clash = true;
	t->out->action = RESOLVE_NOTHING;
}

/*
 * The record that covers a workspace path: its own, or that of the nearest directory above it which has one. @ret->id stays 0 when
 * there is none.
 */
static int find_cover(struct resolver *res, const char *path, struct origin *ret)
{
	g_auto(GStrv) names = g_strsplit(path, "/", -1);
	g_autoptr(GString) prefix = g_string_new(NULL);
	g_autoptr(entry_t) e = NULL;
	int r = tree_root(res->to, &e);

	for (char **name = names; r == 0 && e && *name; name++) {
		struct name_row row = { 0 };
		struct origin o = { 0 };
		struct entry *next = NULL;

		g_string_append_printf(prefix, "%s%s", prefix->len ? "/" : "", *name);
		if (e->ino)
			r = store_name_get(res->store, res->epoch, e->ino, *name, &row);
		if (r == 0 && row.born && row.covers)
			r = store_origin_get(res->store, row.covers, &o);
		if (r == 0 && o.id && strcmp(o.path, prefix->str) == 0) {
			origin_clear(ret);
			*ret = o;
		} else {
			origin_clear(&o);
		}
		name_row_clear(&row);
		if (r == 0)
			r = tree_lookup(res->to, e, *name, &next);
		entry_free(e);
		e = next;
	}
	return r;
}

/*
 * The record for the path of the change. A row that moved here with a renamed directory records another path: nothing is known about
 * this one then. A second name of one inode has no record of its own; its node's is the same object's. What lies in a directory that
 * made place for another has none either, but is covered by its directory's: as it is now, it was then, unless it is newer.
 */
static int find_base(struct three *t)
{
	const struct entry *after = t->c->after;
	struct origin o = { 0 };
	int r = 0;

	if (after->covers) {
		r = store_origin_get(t->r->store, after->covers, &o);
		if (r == 0 && strcmp(o.path, t->c->path) == 0) {
			t->base = o;
			return 0;
		}
		origin_clear(&o);
	}
	if (r == 0 && after->origin && t->out->now.attr.mode) {
		r = store_origin_get(t->r->store, after->origin, &o);
		if (r == 0 && o.print.ino == t->out->now.ino) {
			t->base = o;
			return 0;
		}
		origin_clear(&o);
	}
	if (r == 0 && t->out->now.attr.mode && !S_ISDIR(t->out->now.attr.mode))
		r = find_cover(t->r, t->c->path, &o);
	if (r == 0 && o.id && !resolve_is_newer(t->r, t->c->path, &t->out->now, o.seen)) {
		o.print = t->out->now;
		o.has_sha256 = false;
		t->base = o;
		return 0;
	}
	origin_clear(&o);
	return r;
}

static int hash_now(struct three *t, uint8_t ret[32])
{
	struct entry e = { .name = t->c->path, .lower = t->c->path, .attr = t->out->now.attr };

	return tree_hash(t->r->to, &e, ret);
}

/* -1 for an error is no answer here: what can't be read counts as different, which is the safe side. */
static bool now_hashes_to(struct three *t, const uint8_t want[32])
{
	uint8_t sum[32];

	return hash_now(t, sum) == 0 && memcmp(sum, want, 32) == 0;
}

static bool after_hash(struct three *t, uint8_t ret[32])
{
	if (t->c->has_sha256_after)
		memcpy(ret, t->c->sha256_after, 32);
	return t->c->has_sha256_after || tree_hash(t->r->to, t->c->after, ret) == 0;
}

static bool workspace_kept_content(struct three *t)
{
	const struct fingerprint *base = &t->base.print, *now = &t->out->now;

	if (!same_type(base->attr.mode, now->attr.mode))
		return false;
	if (fingerprint_same(base, now) || S_ISDIR(now->attr.mode))
		return true;
	if (base->ino == now->ino && S_ISLNK(now->attr.mode))
		return true; /* a symlink's target never changes */
	if (base->attr.size != now->attr.size || base->attr.rdev != now->attr.rdev)
		return false;
	if (S_ISREG(now->attr.mode) && t->base.has_sha256)
		return now_hashes_to(t, t->base.sha256);
	/*
	 * Never read whole, so there is no hash; a changed ctime alone comes from chmod, chown, link or an xattr. Another inode is what
	 * a commit of ours put back on another file system than the store's.
	 */
	return base->attr.mtime == now->attr.mtime && (base->ino == now->ino || is_known(t->r, t->c->path, now));
}

/* The path is another name of the workspace file that shows through. */
static bool shows_now(struct three *t)
{
	struct fingerprint shown;

	return lower_stat(t->r->lower, t->c->after->lower, &shown) == 0 && fingerprint_same(&shown, &t->out->now);
}

/* The workspace is what the change was found by: a part of it was made of these very bytes. */
static bool is_as_compared(const struct change *c, const struct fingerprint *now)
{
	const struct attr *then = &c->before->attr;

	return then->mode == now->attr.mode && then->size == now->attr.size && then->mtime == now->attr.mtime &&
	       then->ctime == now->attr.ctime;
}

static bool sandbox_kept_content(struct three *t)
{
	const struct entry *after = t->c->after;
	uint8_t sum[32];

	if (!t->base.id || !same_type(after->attr.mode, t->base.print.attr.mode))
		return false;
	/* Bytes of its own, which are those that the workspace has: what they are in stays, with all its names. */
	if (S_ISDIR(after->attr.mode) || (t->c->before && !t->c->from_path && !t->c->content_changed && is_as_compared(t->c, &t->out->now)))
		return true;
	if (after->content == 0 && after->lower)
		return strcmp(after->lower, t->c->path) == 0 || strcmp(after->lower, t->base.path) == 0 || shows_now(t);
	return S_ISREG(after->attr.mode) && t->base.has_sha256 && after->attr.size == t->base.print.attr.size &&
	       after_hash(t, sum) && memcmp(sum, t->base.sha256, 32) == 0;
}

static bool sides_equal(struct three *t)
{
	const struct attr *now = &t->out->now.attr, *after = &t->c->after->attr;
	g_autofree char *there = NULL, *here = NULL;
	uint8_t sum[32];

	if (!same_type(now->mode, after->mode))
		return false;
	switch (now->mode & S_IFMT) {
	case S_IFREG:
		return now->size == after->size && after_hash(t, sum) && now_hashes_to(t, sum);
	case S_IFLNK:
		return lower_readlink(t->r->lower, t->c->path, &there) == 0 && tree_readlink(t->r->to, t->c->after, &here) == 0 &&
		       strcmp(there, here) == 0;
	case S_IFBLK:
	case S_IFCHR:
		return now->rdev == after->rdev;
	default:
		return true;
	}
}

/* Attributes */

/* False when both changed it, and not to the same. */
static bool merge(uint32_t base, uint32_t sandbox, uint32_t workspace, uint32_t *ret)
{
	if (sandbox != base && workspace != base && sandbox != workspace)
		return false;
	*ret = sandbox == base ? workspace : sandbox;
	return true;
}

static bool merge_attr(struct three *t)
{
	const struct attr *base = &t->base.print.attr, *after = &t->c->after->attr, *now = &t->out->now.attr;
	struct attr *out = &t->out->attr;
	uint32_t permissions = 0;

	if (!merge(base->mode & PERMISSIONS, after->mode & PERMISSIONS, now->mode & PERMISSIONS, &permissions) ||
	    !merge(base->uid, after->uid, now->uid, &out->uid) || !merge(base->gid, after->gid, now->gid, &out->gid))
		return false;
	out->mode = (after->mode & S_IFMT) | permissions;
	return true;
}

/* Of an object that comes from elsewhere: a file whose bytes are its own may still have the xattrs of where it came from. */
static int moved_xattrs(struct three *t)
{
	const struct entry *after = t->c->after;
	struct origin o = { 0 };
	int r;

	if (after->own_xattrs || after->lower || !after->origin)
		return tree_xattrs(t->r->to, after, &t->out->xattrs);
	r = store_origin_get(t->r->store, after->origin, &o);
	if (r == 0)
		r = lower_xattrs(t->r->lower, o.path, &t->out->xattrs);
	origin_clear(&o);
	return is_lost_parent(r) ? 0 : r;
}

/* Whether the sandbox's object follows another one than that at the path: it was moved here, or is another name of an inode. */
static int comes_from_elsewhere(struct three *t, bool *ret)
{
	const struct entry *after = t->c->after;
	struct origin o = { 0 };
	int r;

	*ret = after->lower && strcmp(after->lower, t->c->path) != 0;
	if (after->lower || !after->origin)
		return 0;
	r = store_origin_get(t->r->store, after->origin, &o);
	if (r == 0)
		*ret = strcmp(o.path, t->c->path) != 0;
	origin_clear(&o);
	return r;
}

/* Sets out->xattrs to what the object is to have. */
static int merge_xattrs(struct three *t, bool *ret_ok)
{
	const struct entry *after = t->c->after;
	GBytes *workspace = NULL;
	bool elsewhere;
	int r = lower_xattrs(t->r->lower, t->c->path, &workspace);

	*ret_ok = true;
	if (r < 0)
		return is_lost_parent(r) ? 0 : r;
	r = comes_from_elsewhere(t, &elsewhere);
	if (r < 0 || (!after->own_xattrs && !elsewhere)) {
		t->out->xattrs = workspace;
		return r;
	}
	r = moved_xattrs(t);
	if (r == 0 && !xattrs_equal(workspace, t->out->xattrs)) {
		t->out->set |= SET_XATTRS;
		*ret_ok = fingerprint_same(&t->base.print, &t->out->now) || is_known(t->r, t->c->path, &t->out->now);
	}
	g_clear_pointer(&workspace, g_bytes_unref);
	return r;
}

/* What of the merged attributes the workspace does not have yet. */
static void need_attr(struct three *t)
{
	const struct attr *base = &t->base.print.attr, *after = &t->c->after->attr, *now = &t->out->now.attr;
	struct attr *out = &t->out->attr;

	if (!S_ISLNK(now->mode) && (out->mode & PERMISSIONS) != (now->mode & PERMISSIONS))
		t->out->set |= SET_MODE;
	if (out->uid != now->uid || out->gid != now->gid)
		t->out->set |= SET_OWNER;
	out->atime = now->atime;
	out->mtime = now->mtime;
	if (after->mtime != base->mtime && now->mtime == base->mtime && !t->c->content_changed) {
		out->atime = after->atime;
		out->mtime = after->mtime;
		t->out->set |= SET_TIMES;
	}
	t->out->action = t->out->set ? RESOLVE_ATTR : RESOLVE_NOTHING;
}

static int resolve_attr_only(struct three *t)
{
	bool ok;
	int r = merge_xattrs(t, &ok);

	if (r < 0)
		return r;
	if (!ok || !merge_attr(t))
		clash(t, CONFLICT_ATTR);
	else
		need_attr(t);
	return 0;
}

static int resolve_new_object(struct three *t)
{
	const struct attr *after = &t->c->after->attr;
	int r = moved_xattrs(t);

	t->out->action = S_ISDIR(after->mode) && t->out->now.attr.mode == 0 ? RESOLVE_MKDIR : RESOLVE_WRITE;
	t->out->attr = *after;
	t->out->set = SET_MODE | SET_OWNER | SET_TIMES | SET_XATTRS;
	return r;
}

/* The workspace's object gives way to the sandbox's, which keeps what only the workspace changed about its attributes. */
static int resolve_write(struct three *t)
{
	bool ok;
	int r;

	if (!same_type(t->c->after->attr.mode, t->out->now.attr.mode))
		return resolve_new_object(t);
	r = merge_xattrs(t, &ok);
	if (r < 0)
		return r;
	t->out->attr = t->c->after->attr;
	if (!ok || !merge_attr(t)) {
		clash(t, CONFLICT_ATTR);
		return 0;
	}
	t->out->action = RESOLVE_WRITE;
	t->out->set = SET_MODE | SET_OWNER | SET_TIMES | SET_XATTRS;
	return 0;
}

static int resolve_unrecorded(struct three *t)
{
	if (t->out->now.attr.mode == 0)
		return resolve_new_object(t);
	if (S_ISDIR(t->out->now.attr.mode) && S_ISDIR(t->c->after->attr.mode)) {
		/* The root is never recorded by a name. */
		if (*t->c->path || !t->c->before)
			return 0;
		t->base.print = (struct fingerprint){ .attr = t->c->before->attr };
		return resolve_attr_only(t);
	}
	if (!sides_equal(t))
		clash(t, CONFLICT_EXISTS);
	return 0;
}

/*
 * Both sides changed the text, and are to be merged. A failure to read is no answer: then it is a conflict. Attributes are merged first, for
 * a clash there is one of its own.
 */
static int resolve_merged(struct three *t, bool *ret_done)
{
	const struct attr *now = &t->out->now.attr;
	GBytes *merged = NULL;
	int r;

	*ret_done = false;
	if (t->r->merge == TEXT_MERGE_NONE || !S_ISREG(now->mode) || !S_ISREG(t->c->after->attr.mode) ||
	    text_merge(t->r->to, t->c->after, t->c->path, now, t->base.id, t->r->merge, &merged, &t->out->clean) < 0 || !merged)
		return 0;
	*ret_done = true;
	r = resolve_write(t);
	if (r < 0 || t->clash) {
		g_bytes_unref(merged);
		return r;
	}
	t->out->merged = merged;
	t->out->attr.mtime = t->out->attr.atime = nsec_now();
	return 0;
}

/* Mode and owner that a commit of ours gave to it, as another name of the same file was committed, are no change of the workspace's. */
static void forget_own_attr(struct three *t)
{
	const struct attr *now = &t->out->now.attr;
	struct attr *base = &t->base.print.attr;

	if (!same_type(base->mode, now->mode) || same_owner_and_mode(base, now) || !is_known(t->r, t->c->path, &t->out->now))
		return;
	base->mode = now->mode;
	base->uid = now->uid;
	base->gid = now->gid;
}

static int resolve_recorded(struct three *t)
{
	const struct attr *now = &t->out->now.attr;
	bool kept = sandbox_kept_content(t), merged;
	int r;

	forget_own_attr(t);
	if (now->mode == 0) {
		clash(t, CONFLICT_MISSING);
		return 0;
	}
	if (kept) {
		if (same_type(now->mode, t->base.print.attr.mode))
			return resolve_attr_only(t);
		clash(t, CONFLICT_TYPE);
		return 0;
	}
	if (workspace_kept_content(t))
		return resolve_write(t);
	if (sides_equal(t))
		return resolve_attr_only(t);
	r = resolve_merged(t, &merged);
	if (r < 0 || merged)
		return r;
	clash(t, same_type(now->mode, t->base.print.attr.mode) ? CONFLICT_CONTENT : CONFLICT_TYPE);
	return 0;
}

int resolve_after(struct resolver *res, const struct change *c, bool parent_new, struct resolution *ret)
{
	struct three t = { .r = res, .c = c, .out = ret };
	int r = 0;

	*ret = (struct resolution){ .action = RESOLVE_NOTHING };
	if (!parent_new)
		r = place_stat(lower_root_fd(res->lower), c->path, &ret->now);
	if (is_lost_parent(r)) {
		clash(&t, CONFLICT_PARENT);
		return 0;
	}
	if (r == 0)
		r = find_base(&t);
	ret->seen = t.base.seen;
	if (r == 0 && c->partial && !is_as_compared(c, &ret->now))
		clash(&t, ret->now.attr.mode ? CONFLICT_CONTENT : CONFLICT_MISSING);
	else if (r == 0)
		r = t.base.id ? resolve_recorded(&t) : resolve_unrecorded(&t);
	origin_clear(&t.base);
	if (t.clash || r < 0) {
		struct fingerprint now = ret->now;

		resolution_clear(ret);
		ret->now = now;
	}
	return r;
}

/* Deletions */

static void delete_clash(struct resolver *res, const char *path, enum conflict_kind kind, const struct origin *base,
			 struct resolution *out)
{
	conflict_add(res->conflicts, path, kind, base && base->id ? &base->print : NULL, &out->now, NULL);
	out->action = RESOLVE_NOTHING;
}

static void check_recorded_delete(struct resolver *res, const char *path, const struct origin *base, struct resolution *out)
{
	struct change c = { .path = (char *)path };
	struct resolution scratch = { .now = out->now };
	struct three t = { .r = res, .c = &c, .base = *base, .out = &scratch };

	if (!same_type(base->print.attr.mode, out->now.attr.mode))
		delete_clash(res, path, CONFLICT_TYPE, base, out);
	else if (!workspace_kept_content(&t))
		delete_clash(res, path, CONFLICT_CONTENT, base, out);
	else if (!S_ISDIR(out->now.attr.mode) && !same_owner_and_mode(&base->print.attr, &out->now.attr) && !is_known(res, path, &out->now))
		delete_clash(res, path, CONFLICT_ATTR, base, out);
}

int resolve_delete(struct resolver *res, const char *path, bool moved, int64_t origin, struct resolution *ret)
{
	struct origin base = { 0 };
	int r;

	*ret = (struct resolution){ .action = RESOLVE_NOTHING };
	r = place_stat(lower_root_fd(res->lower), path, &ret->now);
	if (r == -ENOENT || (r == 0 && ret->now.attr.mode == 0))
		return 0;
	if (is_lost_parent(r)) {
		delete_clash(res, path, CONFLICT_PARENT, NULL, ret);
		return 0;
	}
	if (r == 0 && origin)
		r = store_origin_get(res->store, origin, &base);
	if (r == 0 && (!base.id || strcmp(base.path, path) != 0)) {
		origin_clear(&base);
		r = find_cover(res, path, &base);
	}
	if (r < 0) {
		origin_clear(&base);
		return r;
	}
	ret->action = RESOLVE_DELETE;
	ret->seen = base.seen;
	if (moved)
		; /* whatever it holds goes along */
	else if (!base.id)
		delete_clash(res, path, CONFLICT_CONTENT, NULL, ret);
	else if (strcmp(base.path, path) == 0)
		check_recorded_delete(res, path, &base, ret);
	else if (resolve_is_newer(res, path, &ret->now, base.seen))
		delete_clash(res, path, CONFLICT_CONTENT, NULL, ret);
	origin_clear(&base);
	return 0;
}
