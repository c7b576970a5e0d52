/* SPDX-License-Identifier: MIT */
/*
 * plan_own - what is put by the workspace's own object, unchanged: moves, and further names
 *
 * A file with several names stays one file wherever the sandbox has them. Where nothing is at the new name and the old one stays, that is one
 * link(2); else the file is held in files/ by one more name before anything is changed, so that its old names may go or get something else in
 * the same commit, and is put in its place from there, as a staged object is.
 */
#include "snapshot/plan_private.h"

#include <string.h>
#include <unistd.h>

#include "snapshot/compare.h"
#include "snapshot/place.h"
#include "snapshot/xattr.h"

bool plan_shows_lower(const struct entry *e, const char *path)
{
	return !S_ISDIR(e->attr.mode) && e->content == 0 && e->lower && strcmp(e->lower, path) == 0;
}

static bool can_move(struct plan *p, const struct change *c, const struct resolution *res)
{
	return c->status == CHANGE_RENAMED && res->now.attr.mode == 0 && plan_shows_lower(c->after, c->from_path) &&
	       g_hash_table_contains(p->gone, c->from_path) && plan_same_mount(p, c->path, c->from_path);
}

/* What the sandbox changed about the attributes of a file that it put elsewhere; the rest stays the workspace's. */
static int put_own_attr(struct plan *p, const struct change *c, const char *from, const struct fingerprint *now)
{
	const struct attr *after = &c->after->attr;
	struct attr attr = now->attr;
	GBytes *there = NULL, *here = NULL;
	struct origin o = { 0 };
	struct step *s;
	uint32_t set = 0;
	int r = 0;

	if (c->after->origin)
		r = store_origin_get(p->job->store, c->after->origin, &o);
	if (r == 0 && c->after->own_xattrs)
		r = lower_xattrs(p->job->lower, from, &there);
	if (r == 0 && c->after->own_xattrs)
		r = tree_xattrs(p->job->to, c->after, &here);
	if (o.id && (after->mode & 07777) != (now->attr.mode & 07777) && after->mode != o.print.attr.mode && !S_ISLNK(after->mode)) {
		attr.mode = after->mode;
		set |= SET_MODE;
	}
	if (o.id && (after->uid != o.print.attr.uid || after->gid != o.print.attr.gid) &&
	    (after->uid != now->attr.uid || after->gid != now->attr.gid)) {
		attr.uid = after->uid;
		attr.gid = after->gid;
		set |= SET_OWNER;
	}
	if (o.id && after->mtime != o.print.attr.mtime && after->mtime != now->attr.mtime) {
		attr.mtime = after->mtime;
		attr.atime = after->atime;
		set |= SET_TIMES;
	}
	if (c->after->own_xattrs && !xattrs_equal(there, here))
		set |= SET_XATTRS;
	/* Both changed the mode: the workspace since, the sandbox before it. */
	if ((set & SET_MODE) && now->attr.mode != o.print.attr.mode)
		conflict_add(p->conflicts, from, CONFLICT_ATTR, &o.print, now, after);
	else if (r == 0 && set && g_hash_table_add(p->attr_done, g_memdup2(&now->ino, sizeof(uint64_t)))) {
		s = plan_add_attr(p, PHASE_ATTR, c->path, now, set, &attr, here);
		s->from = g_strdup(from);
		g_clear_pointer(&s->old_xattrs, g_bytes_unref); /* of what is at the path now */
		s->old_xattrs = g_steal_pointer(&there);
	}
	g_clear_pointer(&there, g_bytes_unref);
	g_clear_pointer(&here, g_bytes_unref);
	origin_clear(&o);
	return r;
}

static int put_move(struct plan *p, const struct change *c)
{
	struct resolution from;
	struct step *s;
	int r = resolve_delete(&p->resolver, c->from_path, true, 0, &from);

	if (r < 0)
		return r;
	if (from.action != RESOLVE_DELETE || (from.now.attr.mode & S_IFMT) != (c->after->attr.mode & S_IFMT)) {
		if (from.action == RESOLVE_DELETE || from.now.attr.mode == 0)
			conflict_add(p->conflicts, c->from_path, from.now.attr.mode ? CONFLICT_TYPE : CONFLICT_MISSING, NULL,
				     &from.now, &c->after->attr);
		return 0;
	}
	s = plan_add(p, PHASE_FILES, STEP_MOVE, c->path);
	s->from = g_strdup(c->from_path);
	s->before = from.now;
	return put_own_attr(p, c, c->from_path, &from.now);
}

/* The workspace's object @now may get one more name from us: of the files of others fs.protected_hardlinks lets only root do that. */
static bool may_link(const struct fingerprint *now)
{
	return geteuid() == 0 || now->attr.uid == geteuid();
}

/* Bytes of its own that are those of the workspace's @path, as they were kept in an earlier commit, or were written back. */
static int holds_same(struct plan *p, const struct entry *e, char *path, const struct fingerprint *now, bool *ret)
{
	struct entry lower = { .name = path, .lower = path, .attr = now->attr };
	struct side a = { p->job->to, e }, b = { p->job->to, &lower };

	*ret = false;
	if (S_ISREG(e->attr.mode))
		return sides_compare_bytes(a, b, ret);
	return S_ISLNK(e->attr.mode) ? sides_compare_targets(a, b, ret) : 0;
}

/*
 * Where the workspace has the file of @c, which comes from another path; NULL = nowhere, or it can't be linked. Its own bytes are only
 * compared for a file with several names: who has but one may as well get another copy. Caller frees.
 */
static int find_own(struct plan *p, const struct change *c, const struct resolution *res, struct fingerprint *ret_now, char **ret)
{
	const struct entry *after = c->after;
	bool shows = after->lower && plan_shows_lower(after, after->lower), same = shows;
	struct origin o = { 0 };
	g_autofree char *path = NULL;
	int r = 0;

	*ret = NULL;
	if (res->merged || after->bytes || S_ISDIR(after->attr.mode) || (!shows && (!after->origin || after->attr.nlink < 2)))
		return 0;
	if (!shows)
		r = store_origin_get(p->job->store, after->origin, &o);
	path = g_strdup(shows ? after->lower : o.path);
	if (r == 0 && strcmp(path, c->path) != 0 && place_stat(lower_root_fd(p->job->lower), path, ret_now) == 0 &&
	    ((ret_now->attr.mode ^ after->attr.mode) & S_IFMT) == 0 && may_link(ret_now) && plan_same_mount(p, c->path, path)) {
		if (!shows && ret_now->ino == o.print.ino)
			r = holds_same(p, after, path, ret_now, &same);
		if (r == 0 && same)
			*ret = g_steal_pointer(&path);
	}
	origin_clear(&o);
	return r;
}

/* Another name that the sandbox gave to a file of the workspace, which keeps its own. */
static int put_link(struct plan *p, const struct change *c, const char *from, const struct fingerprint *now, bool *ret)
{
	const struct entry *after = c->after;
	g_autoptr(entry_t) other = NULL;
	struct step *s;
	int r = 0;

	*ret = false;
	if (after->ino && !g_hash_table_contains(p->gone, from))
		r = tree_lookup_path(p->job->to, from, &other);
	if (r < 0 || !other || other->ino != after->ino)
		return r;
	s = plan_add(p, PHASE_FILES, STEP_LINK, c->path);
	s->from = g_strdup(from);
	s->before = *now;
	*ret = true;
	return put_own_attr(p, c, from, now);
}

/* A file with other names in the view, whose names in the workspace may go, in the place of whatever is there. */
static int put_held(struct plan *p, const struct change *c, const struct resolution *res, const char *from, const struct fingerprint *now,
		    bool *ret)
{
	bool is_dir = S_ISDIR(res->now.attr.mode), is_free = res->now.attr.mode == 0, copied = false;
	struct step *hold, *put;
	int r = p->files >= 0 ? plan_must_copy(p, c->path, &copied) : 0;

	*ret = r == 0 && !copied && c->after->attr.nlink > 1;
	if (!*ret)
		return r;
	hold = plan_add(p, PHASE_HOLD, STEP_HOLD, c->path);
	hold->from = g_strdup(from);
	hold->before = *now;
	put = plan_add(p, is_dir ? PHASE_REPLACE_DIRS : PHASE_FILES, is_free ? STEP_CREATE : STEP_REPLACE, c->path);
	put->from = g_strdup(from);
	put->before = res->now;
	put->staged = *now;
	g_hash_table_insert(p->holds, put, hold);
	return put_own_attr(p, c, from, now);
}

int plan_put_own(struct plan *p, const struct change *c, const struct resolution *res, bool *ret)
{
	g_autofree char *from = NULL;
	struct fingerprint now;
	int r;

	*ret = can_move(p, c, res);
	if (*ret)
		return put_move(p, c);
	r = find_own(p, c, res, &now, &from);
	*ret = r == 0 && from && now.ino == res->now.ino;
	if (*ret) /* it is there already */
		return put_own_attr(p, c, from, &now);
	if (r == 0 && from && res->now.attr.mode == 0)
		r = put_link(p, c, from, &now, ret);
	return r < 0 || *ret || !from ? r : put_held(p, c, res, from, &now, ret);
}
