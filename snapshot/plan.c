/* SPDX-License-Identifier: MIT */
#include "snapshot/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/place.h"
#include "snapshot/plan_private.h"
#include "snapshot/step.h"
#include "snapshot/xattr.h"

static void staging_free(gpointer data)
{
	struct staging *s = data;

	g_clear_pointer(&s->xattrs, g_bytes_unref);
	g_clear_pointer(&s->bytes, g_bytes_unref);
	g_free(s);
}

struct plan *plan_new(const struct apply_job *job, int commits, struct notes *notes)
{
	struct plan *p = g_new0(struct plan, 1);

	p->job = job;
	p->notes = notes;
	p->files = -1;
	p->conflicts = g_ptr_array_new_with_free_func((GDestroyNotify)conflict_free);
	p->resolver = (struct resolver){ .store = job->store, .lower = job->lower, .to = job->to, .epoch = job->epoch, .merge = job->merge,
					 .conflicts = p->conflicts, .commits = commits };
	p->changes = g_ptr_array_new();
	p->after = g_hash_table_new(g_str_hash, g_str_equal);
	p->gone = g_hash_table_new(g_str_hash, g_str_equal);
	p->made = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	p->kept = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	p->mounts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	p->attr_done = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	p->holds = g_hash_table_new(NULL, NULL);
	p->implied = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);
	for (int i = 0; i < PHASES; i++)
		p->phases[i] = g_ptr_array_new_with_free_func((GDestroyNotify)step_free);
	p->staging = g_ptr_array_new_with_free_func(staging_free);
	p->journal = journal_new();
	return p;
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	resolver_clear(&p->resolver);
	g_ptr_array_unref(p->conflicts);
	g_ptr_array_unref(p->changes);
	g_hash_table_unref(p->after);
	g_hash_table_unref(p->gone);
	g_hash_table_unref(p->made);
	g_hash_table_unref(p->kept);
	g_hash_table_unref(p->mounts);
	g_hash_table_unref(p->attr_done);
	g_hash_table_unref(p->holds);
	g_ptr_array_unref(p->implied);
	for (int i = 0; i < PHASES; i++)
		g_ptr_array_unref(p->phases[i]);
	g_ptr_array_unref(p->staging);
	journal_free(p->journal);
	g_free(p);
}

GPtrArray *plan_conflicts(struct plan *p)
{
	return p->conflicts;
}

struct journal *plan_journal(struct plan *p)
{
	return p->journal;
}

void plan_counts(const struct plan *p, uint64_t *ret_written, uint64_t *ret_deleted)
{
	*ret_written = p->written;
	*ret_deleted = p->deleted;
}

int plan_set_files(struct plan *p, int files)
{
	p->files = files;
	return place_mount(files, p->files_mount);
}

static char *dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? g_strndup(path, slash - path) : g_strdup("");
}

struct step *plan_add(struct plan *p, enum phase phase, enum step_kind kind, const char *path)
{
	struct step *s = step_new(kind, path);

	g_ptr_array_add(p->phases[phase], s);
	return s;
}

/* File systems */

/* The mount that a name in the directory of @path would be on; of the nearest directory that exists. */
static int mount_of(struct plan *p, const char *path, uint64_t ret[2])
{
	g_autofree char *dir = dir_of(path);
	uint64_t *known = g_hash_table_lookup(p->mounts, dir);
	g_auto(place_t) at = PLACE_NONE;
	int r;

	if (known) {
		memcpy(ret, known, sizeof(uint64_t[2]));
		return 0;
	}
	r = place_open(lower_root_fd(p->job->lower), path, &at);
	if (r == 0)
		r = place_mount(at.dirfd, ret);
	else if (*dir && (r == -ENOENT || r == -ENOTDIR || r == -ELOOP))
		r = mount_of(p, dir, ret);
	if (r == 0)
		g_hash_table_insert(p->mounts, g_steal_pointer(&dir), g_memdup2(ret, sizeof(uint64_t[2])));
	return r;
}

int plan_must_copy(struct plan *p, const char *path, bool *ret)
{
	uint64_t mount[2];
	int r = mount_of(p, path, mount);

	if (r == 0)
		*ret = memcmp(mount, p->files_mount, sizeof(mount)) != 0;
	return r;
}

bool plan_same_mount(struct plan *p, const char *a, const char *b)
{
	uint64_t x[2], y[2];

	return mount_of(p, a, x) == 0 && mount_of(p, b, y) == 0 && memcmp(x, y, sizeof(x)) == 0;
}

/* Steps */

struct step *plan_add_attr(struct plan *p, enum phase phase, const char *path, const struct fingerprint *before, uint32_t set,
			   const struct attr *attr, GBytes *xattrs)
{
	struct step *s = plan_add(p, phase, STEP_ATTR, path);

	s->before = *before;
	s->set = set;
	s->attr = *attr;
	s->xattrs = xattrs ? g_bytes_ref(xattrs) : NULL;
	if (before->attr.mode && (set & SET_XATTRS))
		lower_xattrs(p->job->lower, path, &s->old_xattrs);
	return s;
}

static void stage_later(struct plan *p, struct step *s, struct entry *e, const struct resolution *res)
{
	struct staging *staging = g_new0(struct staging, 1);

	*staging = (struct staging){ .step = s, .entry = e, .set = res->set, .attr = res->attr,
				     .xattrs = res->xattrs ? g_bytes_ref(res->xattrs) : NULL,
				     .bytes = res->merged ? g_bytes_ref(res->merged) : NULL };
	g_ptr_array_add(p->staging, staging);
}

static void make_dir(struct plan *p, const char *path, const struct resolution *res)
{
	static const struct fingerprint nothing;

	plan_add(p, PHASE_DIRS, STEP_MKDIR, path);
	plan_add_attr(p, PHASE_DIR_ATTR, path, &nothing, res->set, &res->attr, res->xattrs);
	g_hash_table_add(p->made, g_strdup(path));
}

/* A directory in the place of something else. */
static int make_dir_over(struct plan *p, const struct change *c, const struct resolution *res)
{
	static const struct fingerprint nothing;
	struct step *s;
	bool copied = false;
	int r = p->files >= 0 ? plan_must_copy(p, c->path, &copied) : 0;

	if (r < 0)
		return r;
	s = plan_add(p, PHASE_DIRS, copied ? STEP_DELETE : STEP_REPLACE, c->path);
	s->before = res->now;
	s->copied = copied;
	if (copied) {
		make_dir(p, c->path, res);
		return 0;
	}
	stage_later(p, s, c->after, res);
	plan_add_attr(p, PHASE_DIR_ATTR, c->path, &nothing, res->set, &res->attr, res->xattrs);
	g_hash_table_add(p->made, g_strdup(c->path));
	return 0;
}

static int put_object(struct plan *p, const struct change *c, const struct resolution *res)
{
	uint32_t now = res->now.attr.mode;
	struct step *s;
	int r = 0;

	if (S_ISDIR(c->after->attr.mode))
		return make_dir_over(p, c, res);
	s = plan_add(p, S_ISDIR(now) ? PHASE_REPLACE_DIRS : PHASE_FILES, now ? STEP_REPLACE : STEP_CREATE, c->path);
	s->before = res->now;
	if (p->files >= 0)
		r = plan_must_copy(p, c->path, &s->copied);
	stage_later(p, s, c->after, res);
	return r;
}

static void put_attr(struct plan *p, const struct change *c, const struct resolution *res)
{
	bool dir = S_ISDIR(res->now.attr.mode);

	if (!dir && !g_hash_table_add(p->attr_done, g_memdup2(&res->now.ino, sizeof(uint64_t))))
		return; /* another name of the same inode */
	plan_add_attr(p, dir ? PHASE_DIR_ATTR : PHASE_ATTR, c->path, &res->now, res->set, &res->attr, res->xattrs);
	/* Entries can be made in it only with the new mode. */
	if (dir && (res->set & SET_MODE) && (res->attr.mode & ~res->now.attr.mode & S_IRWXU))
		plan_add_attr(p, PHASE_DIRS, c->path, &res->now, SET_MODE, &res->attr, NULL);
}

/* Parents */

static int imply_parent(struct plan *p, const char *dir, bool *ret_new);

/* @ret_new: the directory of @path will be made by this commit. A directory that is gone becomes a conflict of @path: false in @ret_ok. */
static int check_parent(struct plan *p, const char *path, const struct attr *after, bool *ret_new, bool *ret_ok)
{
	g_autofree char *dir = dir_of(path);
	g_auto(place_t) at = PLACE_NONE;
	int r;

	*ret_new = *dir && g_hash_table_contains(p->made, dir);
	*ret_ok = true;
	if (!*dir || *ret_new)
		return 0;
	r = place_open(lower_root_fd(p->job->lower), path, &at);
	if (r == -ENOENT)
		r = imply_parent(p, dir, ret_new);
	if (r == 0 && (at.dirfd >= 0 || *ret_new))
		return 0;
	if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ELOOP && r != -EXDEV)
		return r;
	*ret_ok = false;
	conflict_add(p->conflicts, path, CONFLICT_PARENT, NULL, NULL, after);
	return 0;
}

/* The directory of a path that was picked from the list without it: made, if it is the sandbox's own. */
static int imply_parent(struct plan *p, const char *dir, bool *ret_new)
{
	g_autoptr(entry_t) e = NULL;
	struct resolution res = { .set = SET_MODE | SET_OWNER | SET_TIMES | SET_XATTRS };
	struct origin o = { 0 };
	bool parent_new, ok;
	int r = tree_lookup_path(p->job->to, dir, &e);

	if (r < 0 || !e || !S_ISDIR(e->attr.mode) || g_hash_table_contains(p->after, dir))
		return r;
	if (e->covers)
		r = store_origin_get(p->job->store, e->covers, &o);
	ok = !o.id || strcmp(o.path, dir) != 0; /* recorded here, so it was the workspace's and was deleted there */
	origin_clear(&o);
	if (r < 0 || !ok)
		return r;
	r = check_parent(p, dir, &e->attr, &parent_new, &ok);
	if (r == 0 && ok)
		r = tree_xattrs(p->job->to, e, &res.xattrs);
	if (r < 0 || !ok)
		return r;
	res.attr = e->attr;
	make_dir(p, dir, &res);
	g_ptr_array_add(p->journal->paths, g_strdup(dir));
	resolution_clear(&res);
	*ret_new = true;
	return 0;
}

/* The two kinds of change */

static int plan_after(struct plan *p, const struct change *c)
{
	struct resolution res = { 0 };
	bool parent_new, ok, put;
	int r = check_parent(p, c->path, &c->after->attr, &parent_new, &ok);

	if (r < 0 || !ok)
		return r;
	r = resolve_after(&p->resolver, c, parent_new, &res);
	if (r < 0)
		return r;
	if (res.merged)
		notes_add(p->notes, res.clean ? "merged with what the workspace changed" :
						"merged with conflict markers, which are to be resolved", c->path);
	if (res.action != RESOLVE_NOTHING)
		p->written++;
	switch (res.action) {
	case RESOLVE_WRITE:
		r = plan_put_own(p, c, &res, &put);
		if (r == 0 && !put)
			r = put_object(p, c, &res);
		break;
	case RESOLVE_MKDIR:
		make_dir(p, c->path, &res);
		break;
	case RESOLVE_ATTR:
		put_attr(p, c, &res);
		break;
	default:
		break;
	}
	resolution_clear(&res);
	return r;
}

/*
 * What the directory still holds when everything in the list is gone. Entries that the list does not have are hidden from the
 * sandbox, or were put there after the list was made; the latter are conflicts.
 */
static int count_rest(struct plan *p, const char *path, int64_t seen, guint *ret)
{
	g_autoptr(GPtrArray) names = NULL;
	int r = lower_list(p->job->lower, path, &names);

	*ret = 0;
	for (guint i = 0; r == 0 && i < names->len; i++) {
		const struct lower_name *n = g_ptr_array_index(names, i);
		g_autofree char *child = path_join(path, n->name);
		struct fingerprint now;

		if (g_hash_table_contains(p->gone, child) && !g_hash_table_contains(p->kept, child))
			continue;
		(*ret)++;
		r = lower_stat(p->job->lower, child, &now);
		if (r == 0 && !g_hash_table_contains(p->kept, child) && resolve_is_newer(&p->resolver, child, &now, seen))
			conflict_add(p->conflicts, child, CONFLICT_EXISTS, NULL, &now, NULL);
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

static int plan_rmdir(struct plan *p, const char *path, const struct resolution *res)
{
	g_autofree char *note = NULL;
	struct step *s;
	guint rest;
	int r = count_rest(p, path, res->seen, &rest);

	if (r < 0)
		return r;
	if (rest > 0) {
		note = g_strdup_printf("the directory stays, as it holds %u %s hidden from the sandbox", rest, rest == 1 ? "entry" : "entries");
		notes_add(p->notes, note, path);
		g_hash_table_add(p->kept, g_strdup(path));
		return 0;
	}
	s = plan_add(p, PHASE_DELETE, STEP_RMDIR, path);
	s->before = res->now;
	return lower_xattrs(p->job->lower, path, &s->old_xattrs);
}

static int plan_delete(struct plan *p, const struct change *c, const char *path)
{
	struct resolution res = { 0 };
	const struct entry *after = c->after;
	struct step *s;
	int r = resolve_delete(&p->resolver, path, after && plan_shows_lower(after, path), after ? after->origin : 0, &res);

	if (r < 0 || res.action != RESOLVE_DELETE)
		return r;
	p->deleted++;
	if (S_ISDIR(res.now.attr.mode))
		return plan_rmdir(p, path, &res);
	s = plan_add(p, PHASE_DELETE, STEP_DELETE, path);
	s->before = res.now;
	return p->files >= 0 ? plan_must_copy(p, path, &s->copied) : 0;
}

/* A directory that becomes something else must not take along what the list does not know. */
static int check_replaced_dirs(struct plan *p)
{
	for (guint i = 0; i < p->phases[PHASE_REPLACE_DIRS]->len; i++) {
		const struct step *s = g_ptr_array_index(p->phases[PHASE_REPLACE_DIRS], i);
		const struct change *c = g_hash_table_lookup(p->after, s->path);
		struct origin o = { 0 };
		guint rest;
		int r = c->after->covers ? store_origin_get(p->job->store, c->after->covers, &o) : 0;

		if (r == 0)
			r = count_rest(p, s->path, o.seen, &rest);
		origin_clear(&o);
		if (r < 0)
			return r;
		if (rest > 0)
			conflict_add(p->conflicts, s->path, CONFLICT_TYPE, NULL, &s->before, &c->after->attr);
	}
	return 0;
}

/* The whole */

static gint change_order(gconstpointer a, gconstpointer b)
{
	const struct change *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

static const char *gone_path(const struct plan *p, const struct change *c)
{
	const char *path = c->after ? c->from_path : c->path;

	if (c->after && c->status != CHANGE_RENAMED)
		return NULL;
	return path && !g_hash_table_contains(p->after, path) ? path : NULL;
}

static void index_changes(struct plan *p)
{
	for (guint i = 0; i < p->job->changes->len; i++) {
		struct change *c = g_ptr_array_index(p->job->changes, i);

		g_ptr_array_add(p->changes, c);
		if (c->after)
			g_hash_table_insert(p->after, c->path, c);
	}
	g_ptr_array_sort(p->changes, change_order);
	for (guint i = 0; i < p->changes->len; i++) {
		struct change *c = g_ptr_array_index(p->changes, i);
		const char *path = gone_path(p, c);

		if (path && (c->after || !g_hash_table_contains(p->gone, path)))
			g_hash_table_insert(p->gone, (char *)path, c);
		g_ptr_array_add(p->journal->paths, g_strdup(c->path));
		if (c->partial)
			g_ptr_array_add(p->journal->partial, g_strdup(c->path));
		if (c->after && path)
			g_ptr_array_add(p->journal->paths, g_strdup(path));
	}
}

static gint path_order_reversed(gconstpointer a, gconstpointer b)
{
	return strcmp(*(const char *const *)b, *(const char *const *)a);
}

static int plan_deletions(struct plan *p)
{
	g_autoptr(GPtrArray) paths = g_ptr_array_new();
	g_autoptr(GHashTable) moved = g_hash_table_new(g_str_hash, g_str_equal);
	GHashTableIter iter;
	gpointer path;
	int r = 0;

	for (guint i = 0; i < p->phases[PHASE_FILES]->len; i++) {
		const struct step *s = g_ptr_array_index(p->phases[PHASE_FILES], i);

		if (s->kind == STEP_MOVE)
			g_hash_table_add(moved, s->from);
	}
	g_hash_table_iter_init(&iter, p->gone);
	while (g_hash_table_iter_next(&iter, &path, NULL))
		if (!g_hash_table_contains(moved, path))
			g_ptr_array_add(paths, path);
	g_ptr_array_sort(paths, path_order_reversed);
	for (guint i = 0; r == 0 && i < paths->len; i++) {
		path = g_ptr_array_index(paths, i);
		r = plan_delete(p, g_hash_table_lookup(p->gone, path), path);
	}
	return r;
}

static int explain(GError **error, int r, const char *what, const char *path)
{
	if (r < 0 && error && !*error)
		g_set_error(error, STORE_ERROR, r == -ENOSPC || r == -EDQUOT ? STORE_ERROR_NO_SPACE : STORE_ERROR_FAILED,
			    "commit: %s%s%s: %s", what, *path ? " " : "", path, g_strerror(-r));
	return r;
}

int plan_resolve(struct plan *p, GError **error)
{
	int r = 0;

	index_changes(p);
	for (guint i = 0; r == 0 && i < p->changes->len; i++) {
		const struct change *c = g_ptr_array_index(p->changes, i);

		if (c->after)
			r = explain(error, plan_after(p, c), "cannot compare with the workspace:", c->path);
	}
	if (r == 0)
		r = explain(error, plan_deletions(p), "cannot compare with the workspace", "");
	if (r == 0)
		r = explain(error, check_replaced_dirs(p), "cannot compare with the workspace", "");
	return r;
}

/* Staging */

static void number_steps(struct plan *p)
{
	/* These come in the order of paths; deletions were planned deepest first already. */
	static const bool reversed[PHASES] = { [PHASE_REPLACE_DIRS] = true, [PHASE_DIR_ATTR] = true };
	uint32_t number = 0;
	gpointer put, hold;
	GHashTableIter iter;

	for (int phase = 0; phase < PHASES; phase++) {
		GPtrArray *steps = p->phases[phase];
		guint n = steps->len;

		for (guint i = 0; i < n; i++)
			g_ptr_array_add(p->journal->steps, g_ptr_array_index(steps, reversed[phase] ? n - 1 - i : i));
		g_free(g_ptr_array_steal(steps, NULL));
	}
	for (guint i = 0; i < p->journal->steps->len; i++) {
		struct step *s = g_ptr_array_index(p->journal->steps, i);

		if (s->kind == STEP_CREATE || s->kind == STEP_REPLACE || s->kind == STEP_DELETE)
			s->number = ++number;
	}
	g_hash_table_iter_init(&iter, p->holds);
	while (g_hash_table_iter_next(&iter, &put, &hold))
		((struct step *)hold)->number = ((struct step *)put)->number;
}

static bool attr_equal(const struct staging *a, const struct staging *b)
{
	return !a->bytes && !b->bytes && !a->entry->bytes && !b->entry->bytes && a->attr.mode == b->attr.mode && a->attr.uid == b->attr.uid && a->attr.gid == b->attr.gid &&
	       a->attr.mtime == b->attr.mtime && xattrs_equal(a->xattrs, b->xattrs);
}

/* A second name of an inode that is staged already. */
static bool stage_link(struct plan *p, GHashTable *inodes, struct staging *s)
{
	struct staging *first = s->entry->ino ? g_hash_table_lookup(inodes, &s->entry->ino) : NULL;
	char a[16], b[16];

	if (!first) {
		if (s->entry->ino)
			g_hash_table_insert(inodes, &s->entry->ino, s);
		return false;
	}
	if (S_ISDIR(s->entry->attr.mode) || !attr_equal(first, s) || first->step->copied || s->step->copied)
		return false;
	snprintf(a, sizeof(a), "%u", first->step->number);
	snprintf(b, sizeof(b), "%u", s->step->number);
	return linkat(p->files, a, p->files, b, 0) == 0;
}

static int stage_one(struct plan *p, struct staging *s)
{
	struct stage_attr attr = { .set = s->set, .attr = s->attr, .xattrs = s->xattrs, .bytes = s->bytes,
				   .path = s->step->path, .notes = p->notes };
	const char *lower = s->entry->content == 0 && !S_ISDIR(s->entry->attr.mode) ? s->entry->lower : NULL;
	struct fingerprint before = { 0 }, after = { 0 };
	char name[16];
	int r = lower ? lower_stat(p->job->lower, lower, &before) : 0;

	snprintf(name, sizeof(name), "%u", s->step->number);
	if (r == 0)
		r = stage_entry(p->job->to, s->entry, p->files, name, &attr);
	if (r == 0 && lower) {
		r = lower_stat(p->job->lower, lower, &after);
		if (r == 0 && !fingerprint_same(&before, &after))
			r = -ESTALE;
	}
	if (r == -ESTALE || (lower && r == -ENOENT)) { /* the bytes come from the workspace and changed while they were read */
		conflict_add(p->conflicts, lower ? lower : s->step->path, CONFLICT_CONTENT, NULL, &after, &s->entry->attr);
		return 0;
	}
	return r;
}

static int stage_all(struct plan *p, GError **error)
{
	g_autoptr(GHashTable) inodes = g_hash_table_new(g_int64_hash, g_int64_equal);
	int r = 0;

	for (guint i = 0; r == 0 && i < p->staging->len; i++) {
		struct staging *s = g_ptr_array_index(p->staging, i);
		char name[16];

		if (!stage_link(p, inodes, s)) {
			r = stage_one(p, s);
			if (r == 1) { /* can't be made: the change stays pending */
				for (guint k = 0; k < p->journal->paths->len; k++)
					if (strcmp(g_ptr_array_index(p->journal->paths, k), s->step->path) == 0)
						g_ptr_array_remove_index_fast(p->journal->paths, k--);
				g_ptr_array_remove(p->journal->steps, s->step);
				p->written--;
				r = 0;
				continue;
			}
		}
		snprintf(name, sizeof(name), "%u", s->step->number);
		if (r == 0 && p->conflicts->len == 0)
			r = place_stat_at(p->files, name, &s->step->staged);
		explain(error, r, "cannot stage", s->step->path);
		boundary("staged");
		if (p->job->progress)
			p->job->progress(i, p->staging->len + p->journal->steps->len, p->job->progress_user);
	}
	return r;
}

int plan_stage(struct plan *p, GError **error)
{
	struct stepper st = { .root = lower_root_fd(p->job->lower), .files = p->files, .id = "", .notes = p->notes };
	int r;

	number_steps(p);
	r = stage_all(p, error);
	for (guint i = 0; r == 0 && i < p->journal->steps->len; i++) {
		const struct step *s = g_ptr_array_index(p->journal->steps, i);

		if (!s->copied || (s->kind != STEP_REPLACE && s->kind != STEP_DELETE))
			continue;
		r = step_copy_old(&st, s);
		if (r == -ESTALE) {
			conflict_add(p->conflicts, s->path, CONFLICT_CONTENT, &s->before, NULL, NULL);
			r = 0;
		}
		explain(error, r, "cannot keep the old version of", s->path);
		boundary("pre-image copied");
	}
	return r;
}
