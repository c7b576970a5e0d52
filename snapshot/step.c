/* SPDX-License-Identifier: MIT */
#include "snapshot/step.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/place.h"

/* The object of a step in files/, and the pre-image of one that copies. */
struct object_names {
	char object[16];
	char old[24];
	char temporary[64]; /* in the workspace's directory, only when copying */
};

static void names_init(struct object_names *n, const struct stepper *st, const struct step *s)
{
	snprintf(n->object, sizeof(n->object), "%u", s->number);
	snprintf(n->old, sizeof(n->old), "%u.old", s->number);
	snprintf(n->temporary, sizeof(n->temporary), ".sbxfs-%.20s-%u.tmp", st->id, s->number);
}

/* Comparing */

static bool is_absent(const struct fingerprint *p)
{
	return p->attr.mode == 0;
}

/* An error of place_open() that says that the directory of the name is not there. */
static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

static bool is_inode(const struct fingerprint *a, const struct fingerprint *b)
{
	return !is_absent(a) && !is_absent(b) && a->ino == b->ino && (a->attr.mode & S_IFMT) == (b->attr.mode & S_IFMT) &&
	       (a->btime == b->btime || a->btime == 0 || b->btime == 0);
}

static bool is_unchanged(const struct fingerprint *a, const struct fingerprint *b)
{
	if (!is_inode(a, b))
		return false;
	return S_ISDIR(a->attr.mode) || (a->attr.size == b->attr.size && a->attr.mtime == b->attr.mtime &&
					 (a->attr.mode & 07777) == (b->attr.mode & 07777) && a->attr.uid == b->attr.uid &&
					 a->attr.gid == b->attr.gid);
}

/* The object that the plan saw, as it was then. */
static bool is_before(const struct stepper *st, const struct step *s, const struct fingerprint *now)
{
	if (!is_unchanged(&s->before, now))
		return false;
	return S_ISDIR(now->attr.mode) || !st->touched || s->before.attr.ctime == now->attr.ctime ||
	       g_hash_table_contains(st->touched, &now->ino);
}

static void touch(struct stepper *st, uint64_t ino)
{
	if (st->touched)
		g_hash_table_add(st->touched, g_memdup2(&ino, sizeof(ino)));
}

bool step_is_from(const struct step *s)
{
	return s->from && s->kind != STEP_CREATE && s->kind != STEP_REPLACE;
}

/* What it puts was held by another step. */
static bool is_held(const struct step *s)
{
	return s->from && !step_is_from(s);
}

/* What is told by its inode: its attributes may be those of a step that is not undone yet. */
typedef bool (*same_fn)(const struct fingerprint *want, const struct fingerprint *found);

static same_fn same_as_staged(const struct step *s)
{
	return is_held(s) ? is_inode : is_unchanged;
}

/* What a step that copies has put there: another inode than the staged one, so the contents decide. */
static int is_staged(struct stepper *st, const struct step *s, const struct place *at, const struct object_names *n,
		     const struct fingerprint *now)
{
	if (!s->copied)
		return same_as_staged(s)(&s->staged, now);
	if (is_absent(now))
		return 0;
	if (S_ISREG(now->attr.mode) && (now->attr.size != s->staged.attr.size || now->attr.mtime != s->staged.attr.mtime))
		return 0;
	return stage_equal(st->files, n->object, at->dirfd, at->name);
}

/* The staged object still lies in the store, so the step was not done (or was undone). */
static bool is_pending(struct stepper *st, const struct step *s, const struct object_names *n)
{
	struct fingerprint object;

	return !s->copied && place_stat_at(st->files, n->object, &object) == 0 && is_inode(&s->staged, &object);
}

/* Strokes */

/* As renameat2(), for file systems without flags: NOREPLACE by link and unlink (never loses what is there), EXCHANGE not at all. */
static int rename_flags(int from, const char *from_name, int to, const char *to_name, unsigned int flags)
{
	if (renameat2(from, from_name, to, to_name, flags) == 0)
		return 0;
	if (errno != EINVAL || flags != RENAME_NOREPLACE)
		return -errno;
	if (linkat(from, from_name, to, to_name, 0) < 0)
		return -errno;
	return unlinkat(from, from_name, 0) < 0 ? -errno : 0;
}

static int stale_if(int r)
{
	return r == -EEXIST || r == -ENOENT ? -ESTALE : r;
}

/* Takes the name away into files/; back again when it was not what we meant. */
static int take_out(struct stepper *st, const struct place *at, const char *object, const struct fingerprint *want, same_fn same)
{
	struct fingerprint out;
	int r;

	boundary("stroke");
	r = rename_flags(at->dirfd, at->name, st->files, object, RENAME_NOREPLACE);
	if (r < 0)
		return r == -ENOENT ? -ESTALE : r;
	touch(st, want->ino);
	r = place_stat_at(st->files, object, &out);
	if (r == 0 && same(want, &out))
		return 0;
	rename_flags(st->files, object, at->dirfd, at->name, RENAME_NOREPLACE);
	return r < 0 ? r : -ESTALE;
}

static int exchange(struct stepper *st, const struct place *at, const char *object, const struct fingerprint *want, same_fn same)
{
	struct fingerprint out;
	int r;

	boundary("stroke");
	r = rename_flags(at->dirfd, at->name, st->files, object, RENAME_EXCHANGE);
	if (r < 0)
		return stale_if(r);
	touch(st, want->ino);
	boundary("exchanged");
	r = place_stat_at(st->files, object, &out);
	if (r == 0 && same(want, &out))
		r = S_ISDIR(out.attr.mode) ? place_is_empty_dir(st->files, object) : 1;
	else if (r == 0)
		r = -ESTALE;
	if (r > 0)
		return 0;
	rename_flags(at->dirfd, at->name, st->files, object, RENAME_EXCHANGE);
	return r < 0 ? r : -ESTALE;
}

/* The copying forms. @object in files/ is only read. */

static int drop_temporary(const struct place *at, const struct object_names *n)
{
	if (unlinkat(at->dirfd, n->temporary, 0) < 0 && (errno != EISDIR || unlinkat(at->dirfd, n->temporary, AT_REMOVEDIR) < 0))
		return errno == ENOENT ? 0 : -errno;
	return 0;
}

static int place_new_copy(struct stepper *st, const struct step *s, const struct place *at, const char *object,
			  const struct object_names *n)
{
	return stale_if(stage_copy(st->files, object, at->dirfd, at->name, n->temporary, s->path, st->notes));
}

static int place_over(struct stepper *st, const struct step *s, const struct place *at, const char *object,
		      const struct object_names *n, const struct fingerprint *want, bool want_dir_empty)
{
	struct fingerprint out;
	int r;

	r = drop_temporary(at, n);
	if (r < 0)
		return r;
	r = stage_copy(st->files, object, at->dirfd, n->temporary, NULL, s->path, st->notes);
	if (r < 0)
		return r;
	boundary("temporary in place");
	/* It loses a name, which its other names show. */
	touch(st, want->ino);
	if (want_dir_empty && S_ISDIR(want->attr.mode) && unlinkat(at->dirfd, at->name, AT_REMOVEDIR) < 0) {
		r = errno == ENOTEMPTY || errno == EEXIST ? -ESTALE : -errno;
		drop_temporary(at, n);
		return r;
	}
	if (S_ISDIR(want->attr.mode))
		return stale_if(rename_flags(at->dirfd, n->temporary, at->dirfd, at->name, RENAME_NOREPLACE));
	r = rename_flags(at->dirfd, n->temporary, at->dirfd, at->name, RENAME_EXCHANGE);
	if (r == -EINVAL)
		return renameat(at->dirfd, n->temporary, at->dirfd, at->name) < 0 ? -errno : 0;
	if (r == 0)
		r = place_stat_at(at->dirfd, n->temporary, &out);
	if (r == 0 && !is_unchanged(want, &out)) {
		rename_flags(at->dirfd, n->temporary, at->dirfd, at->name, RENAME_EXCHANGE);
		r = -ESTALE;
	}
	boundary("temporary exchanged");
	drop_temporary(at, n);
	return r == -ENOENT ? -ESTALE : r;
}

/* Forward. @now is what is at the path. */

static int do_mkdir(const struct place *at, const struct fingerprint *now)
{
	if (S_ISDIR(now->attr.mode))
		return 0;
	if (!is_absent(now))
		return -ESTALE;
	return mkdirat(at->dirfd, at->name, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int do_create(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	struct object_names n;
	int r;

	names_init(&n, st, s);
	if (!is_absent(now)) {
		r = is_staged(st, s, at, &n, now);
		return r == 1 ? 0 : r < 0 ? r : -ESTALE;
	}
	if (s->copied)
		return place_new_copy(st, s, at, n.object, &n);
	return stale_if(rename_flags(st->files, n.object, at->dirfd, at->name, RENAME_NOREPLACE));
}

static int do_replace(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	struct object_names n;
	int r;

	names_init(&n, st, s);
	if (is_before(st, s, now)) {
		if (s->copied)
			return place_over(st, s, at, n.object, &n, &s->before, true);
		return exchange(st, at, n.object, &s->before, is_unchanged);
	}
	r = is_staged(st, s, at, &n, now);
	if (r == 0 && s->copied && is_absent(now) && S_ISDIR(s->before.attr.mode)) /* killed between rmdir and rename */
		return place_new_copy(st, s, at, n.object, &n);
	return r == 1 ? 0 : r < 0 ? r : -ESTALE;
}

/* MOVE and LINK: the second place is step->from. */
static int do_from(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	g_auto(place_t) from = PLACE_NONE;
	struct fingerprint source;
	int r;

	if (is_inode(&s->before, now))
		return 0;
	if (!is_absent(now))
		return -ESTALE;
	r = place_open(st->root, s->from, &from);
	if (r == 0)
		r = place_stat_at(from.dirfd, from.name, &source);
	if (r < 0)
		return stale_if(r);
	if (!is_before(st, s, &source))
		return -ESTALE;
	boundary("stroke");
	if (s->kind == STEP_LINK)
		r = linkat(from.dirfd, from.name, at->dirfd, at->name, 0) < 0 ? -errno : 0;
	else
		r = rename_flags(from.dirfd, from.name, at->dirfd, at->name, RENAME_NOREPLACE);
	touch(st, s->before.ino);
	if (r < 0)
		return stale_if(r);
	r = place_stat_at(at->dirfd, at->name, &source);
	if (r < 0 || is_unchanged(&s->before, &source))
		return r;
	if (s->kind == STEP_LINK)
		unlinkat(at->dirfd, at->name, 0);
	else
		rename_flags(at->dirfd, at->name, from.dirfd, from.name, RENAME_NOREPLACE);
	return -ESTALE;
}

/* One more name in files/, unless it has been put in its place already. */
static int do_hold(struct stepper *st, const struct step *s)
{
	g_auto(place_t) from = PLACE_NONE;
	struct object_names n;
	struct fingerprint now = { 0 };
	int r = place_stat(st->root, s->path, &now);

	names_init(&n, st, s);
	if (r < 0 && !is_gone(r))
		return r;
	if (is_inode(&s->before, &now))
		return 0;
	r = place_stat_at(st->files, n.object, &now);
	if (r < 0 || !is_absent(&now)) /* it is that, or what was in its place */
		return r;
	r = place_open(st->root, s->from, &from);
	if (r == 0)
		r = place_stat_at(from.dirfd, from.name, &now);
	if (r < 0)
		return is_gone(r) ? -ESTALE : r;
	if (!is_before(st, s, &now))
		return -ESTALE;
	boundary("stroke");
	if (linkat(from.dirfd, from.name, st->files, n.object, 0) < 0)
		return stale_if(-errno);
	touch(st, s->before.ino);
	r = place_stat_at(st->files, n.object, &now);
	if (r < 0 || is_unchanged(&s->before, &now))
		return r;
	unlinkat(st->files, n.object, 0);
	return -ESTALE;
}

static int set_attr(struct stepper *st, const struct step *s, const struct place *at, const struct attr *attr, GBytes *xattrs,
		    uint32_t set)
{
	struct stage_attr what = { .set = set, .attr = *attr, .xattrs = xattrs, .path = s->path, .notes = st->notes };

	touch(st, s->before.ino);
	return stage_set_attr(at->dirfd, at->name, &what);
}

static int do_attr(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	/* A directory made by this commit is not known by its inode. */
	if (is_absent(&s->before) ? !S_ISDIR(now->attr.mode) : !is_inode(&s->before, now))
		return -ESTALE;
	if (st->touched && !S_ISDIR(now->attr.mode) && !is_before(st, s, now))
		return -ESTALE;
	return set_attr(st, s, at, &s->attr, s->xattrs, s->set);
}

static int do_delete(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	struct object_names n;

	names_init(&n, st, s);
	/* When copying, a file that becomes a directory is deleted first: that is where this step came by before. */
	if (is_absent(now) || (s->copied && S_ISDIR(now->attr.mode)))
		return 0;
	if (!is_before(st, s, now))
		return -ESTALE;
	if (s->copied) {
		touch(st, s->before.ino);
		return unlinkat(at->dirfd, at->name, 0) < 0 && errno != ENOENT ? -errno : 0;
	}
	return take_out(st, at, n.object, &s->before, is_unchanged);
}

static int do_rmdir(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	if (is_absent(now))
		return 0;
	if (!is_inode(&s->before, now))
		return -ESTALE;
	if (unlinkat(at->dirfd, at->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	notes_add(st->notes, "the directory stays: something is in it that the commit does not know", s->path);
	return 0;
}

int step_do(struct stepper *st, const struct step *s)
{
	g_auto(place_t) at = PLACE_NONE;
	struct fingerprint now;
	int r;

	if (s->kind == STEP_HOLD)
		return do_hold(st, s);
	r = place_open(st->root, s->path, &at);
	/* Gone with its directory, in whose place the commit may have put something else already. */
	if (is_gone(r) && (s->kind == STEP_DELETE || s->kind == STEP_RMDIR))
		return 0;
	if (r == 0)
		r = place_stat_at(at.dirfd, at.name, &now);
	if (r < 0)
		return is_gone(r) ? -ESTALE : r;
	switch (s->kind) {
	case STEP_MKDIR:
		return do_mkdir(&at, &now);
	case STEP_CREATE:
		return do_create(st, s, &at, &now);
	case STEP_REPLACE:
		return do_replace(st, s, &at, &now);
	case STEP_MOVE:
	case STEP_LINK:
		return do_from(st, s, &at, &now);
	case STEP_ATTR:
		return do_attr(st, s, &at, &now);
	case STEP_DELETE:
		return do_delete(st, s, &at, &now);
	case STEP_RMDIR:
		return do_rmdir(st, s, &at, &now);
	case STEP_HOLD:
		break;
	}
	return -EUCLEAN;
}

int step_expect(struct stepper *st, const struct step *s)
{
	struct fingerprint now;
	int r = place_stat(st->root, step_is_from(s) ? s->from : s->path, &now);

	if (is_gone(r)) /* in a directory that the commit makes, maybe where a file or a symlink is now */
		return is_absent(&s->before) || s->kind == STEP_ATTR ? 0 : -ESTALE;
	if (r < 0)
		return r;
	/* Of what the commit makes or moves there first. */
	if (s->kind == STEP_MKDIR || (s->kind == STEP_ATTR && (is_absent(&s->before) || is_absent(&now))))
		return 0;
	return is_absent(&s->before) ? (is_absent(&now) ? 0 : -ESTALE) : is_before(st, s, &now) ? 0 : -ESTALE;
}

/* Back */

static int undo_mkdir(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	if (!S_ISDIR(now->attr.mode) || unlinkat(at->dirfd, at->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	notes_add(st->notes, "the directory stays: something else was put into it", s->path);
	return 0;
}

static int undo_create(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	struct object_names n;
	int r;

	names_init(&n, st, s);
	if (is_absent(now) || is_pending(st, s, &n))
		return 0;
	r = is_staged(st, s, at, &n, now);
	if (r != 1)
		return r < 0 ? r : -ESTALE;
	if (s->copied)
		return unlinkat(at->dirfd, at->name, 0) < 0 && errno != ENOENT ? -errno : 0;
	return take_out(st, at, n.object, &s->staged, same_as_staged(s));
}

static int undo_replace(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	struct object_names n;
	int r;

	names_init(&n, st, s);
	if (is_unchanged(&s->before, now) || is_pending(st, s, &n))
		return 0;
	if (is_absent(now))
		return s->copied && S_ISDIR(s->before.attr.mode) ? place_new_copy(st, s, at, n.old, &n) : -ESTALE;
	r = is_staged(st, s, at, &n, now);
	if (r == 1)
		return s->copied ? place_over(st, s, at, n.old, &n, now, true) : exchange(st, at, n.object, &s->staged, same_as_staged(s));
	if (r == 0 && s->copied && stage_equal(st->files, n.old, at->dirfd, at->name) == 1)
		return 0; /* undone before */
	return r < 0 ? r : -ESTALE;
}

static int undo_move(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	g_auto(place_t) from = PLACE_NONE;
	struct fingerprint there;
	int r;

	if (!is_inode(&s->before, now))
		return 0; /* back already, or never went */
	r = place_open(st->root, s->from, &from);
	if (r == 0)
		r = place_stat_at(from.dirfd, from.name, &there);
	if (r == 0 && is_inode(&s->before, &there)) /* returned */
		r = unlinkat(at->dirfd, at->name, 0) < 0 && errno != ENOENT ? -errno : 0;
	else if (r == 0)
		r = rename_flags(at->dirfd, at->name, from.dirfd, from.name, RENAME_NOREPLACE);
	touch(st, s->before.ino);
	return is_gone(r) ? -ESTALE : stale_if(r);
}

static int undo_link(const struct step *s, const struct place *at, const struct fingerprint *now)
{
	if (!is_inode(&s->before, now))
		return is_absent(now) ? 0 : -ESTALE;
	return unlinkat(at->dirfd, at->name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int undo_attr(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	if (is_absent(&s->before) || !is_inode(&s->before, now))
		return 0;
	return set_attr(st, s, at, &s->before.attr, s->old_xattrs, s->set);
}

static int undo_delete(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	struct object_names n;

	names_init(&n, st, s);
	if (is_inode(&s->before, now))
		return 0;
	if (!is_absent(now))
		return s->copied && stage_equal(st->files, n.old, at->dirfd, at->name) == 1 ? 0 : -ESTALE;
	if (s->copied)
		return place_new_copy(st, s, at, n.old, &n);
	return stale_if(rename_flags(st->files, n.object, at->dirfd, at->name, RENAME_NOREPLACE));
}

static int undo_rmdir(struct stepper *st, const struct step *s, const struct place *at, const struct fingerprint *now)
{
	if (S_ISDIR(now->attr.mode))
		return 0;
	if (!is_absent(now))
		return -ESTALE;
	if (mkdirat(at->dirfd, at->name, 0700) < 0)
		return -errno;
	return set_attr(st, s, at, &s->before.attr, s->old_xattrs, SET_OWNER | SET_XATTRS);
}

static int undo_hold(struct stepper *st, const struct step *s)
{
	struct object_names n;
	struct fingerprint now;
	int r;

	names_init(&n, st, s);
	r = place_stat_at(st->files, n.object, &now);
	if (r < 0 || !is_inode(&s->before, &now))
		return r;
	touch(st, s->before.ino);
	return unlinkat(st->files, n.object, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int step_undo(struct stepper *st, const struct step *s)
{
	g_auto(place_t) at = PLACE_NONE;
	struct fingerprint now;
	int r;

	if (s->kind == STEP_HOLD)
		return undo_hold(st, s);
	r = place_open(st->root, s->path, &at);

	if (is_gone(r) && s->kind != STEP_DELETE && s->kind != STEP_RMDIR)
		return 0; /* in a directory that was never made, or is undone already */
	if (r == 0)
		r = place_stat_at(at.dirfd, at.name, &now);
	if (r < 0)
		return is_gone(r) ? -ESTALE : r;
	switch (s->kind) {
	case STEP_MKDIR:
		return undo_mkdir(st, s, &at, &now);
	case STEP_CREATE:
		return undo_create(st, s, &at, &now);
	case STEP_REPLACE:
		return undo_replace(st, s, &at, &now);
	case STEP_MOVE:
		return undo_move(st, s, &at, &now);
	case STEP_LINK:
		return undo_link(s, &at, &now);
	case STEP_ATTR:
		return undo_attr(st, s, &at, &now);
	case STEP_DELETE:
		return undo_delete(st, s, &at, &now);
	case STEP_RMDIR:
		return undo_rmdir(st, s, &at, &now);
	case STEP_HOLD:
		break;
	}
	return -EUCLEAN;
}

int step_return(struct stepper *st, const struct step *s)
{
	g_auto(place_t) at = PLACE_NONE, from = PLACE_NONE;
	struct fingerprint now;

	/* What fails here is for step_undo() to find. */
	if (place_open(st->root, s->path, &at) < 0 || place_stat_at(at.dirfd, at.name, &now) < 0 || !is_inode(&s->before, &now) ||
	    place_open(st->root, s->from, &from) < 0)
		return 0;
	touch(st, s->before.ino);
	(void)!linkat(at.dirfd, at.name, from.dirfd, from.name, 0);
	return 0;
}

int step_restore_times(struct stepper *st, const struct step *s)
{
	g_auto(place_t) at = PLACE_NONE;

	if (s->kind != STEP_RMDIR || place_open(st->root, s->path, &at) < 0)
		return 0;
	return set_attr(st, s, &at, &s->before.attr, NULL, SET_MODE | SET_TIMES);
}

/* Looking */

int step_is_done(struct stepper *st, const struct step *s)
{
	g_auto(place_t) at = PLACE_NONE;
	struct fingerprint now = { 0 };
	struct object_names n;
	int r = place_open(st->root, s->path, &at);

	names_init(&n, st, s);
	if (r == 0)
		r = place_stat_at(at.dirfd, at.name, &now);
	if (r < 0 && !is_gone(r))
		return r;
	switch (s->kind) {
	case STEP_MKDIR:
		return S_ISDIR(now.attr.mode);
	case STEP_CREATE:
	case STEP_REPLACE:
		if (is_held(s))
			return is_inode(&s->staged, &now) && s->staged.attr.size == now.attr.size;
		return is_absent(&now) ? 0 : is_staged(st, s, &at, &n, &now);
	case STEP_MOVE:
	case STEP_LINK:
		return is_inode(&s->before, &now) && s->before.attr.size == now.attr.size;
	case STEP_ATTR:
		if (is_absent(&s->before) || S_ISDIR(now.attr.mode))
			return S_ISDIR(now.attr.mode);
		return is_inode(&s->before, &now) && (!(s->set & SET_MODE) || (s->attr.mode & 07777) == (now.attr.mode & 07777));
	case STEP_DELETE:
		/* When copying, a file that becomes a directory is deleted first. */
		return is_absent(&now) || (s->copied && S_ISDIR(now.attr.mode));
	case STEP_RMDIR:
		return is_absent(&now) || S_ISDIR(now.attr.mode);
	case STEP_HOLD:
		return 1; /* what it is for tells */
	}
	return -EUCLEAN;
}

int step_clean(struct stepper *st, const struct step *s)
{
	g_auto(place_t) at = PLACE_NONE;
	struct object_names n;

	if (!s->copied || !s->number || place_open(st->root, s->path, &at) < 0)
		return 0;
	names_init(&n, st, s);
	return drop_temporary(&at, &n);
}

int step_copy_old(struct stepper *st, const struct step *s)
{
	g_auto(place_t) at = PLACE_NONE;
	struct object_names n;
	int r;

	names_init(&n, st, s);
	r = place_open(st->root, s->path, &at);
	if (r == 0)
		r = stage_copy(at.dirfd, at.name, st->files, n.old, NULL, s->path, st->notes);
	return r < 0 ? stale_if(r) : step_expect(st, s);
}
