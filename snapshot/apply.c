/* SPDX-License-Identifier: MIT */
#include "snapshot/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "snapshot/place.h"
#include "snapshot/plan.h"
#include "snapshot/step.h"

/* More objects than this are synced by one syncfs(2) instead of one by one. */
#define SYNC_MAX 64

/* One commit at work. */
struct commit {
	int commits; /* directory of commits, locked */
	int dir;     /* commit/ID */
	char *id;
	struct notes *notes;
	struct stepper stepper;
};

void apply_result_clear(struct apply_result *r)
{
	g_free(r->id);
	g_clear_pointer(&r->paths, g_ptr_array_unref);
	g_clear_pointer(&r->partial, g_ptr_array_unref);
	g_clear_pointer(&r->notes, g_ptr_array_unref);
	*r = (struct apply_result){ 0 };
}

static bool may_not(int r)
{
	return r == -EACCES || r == -EPERM || r == -EROFS;
}

static int explain(GError **error, int r, const char *what, const char *path)
{
	enum store_error code = r == -ENOSPC || r == -EDQUOT ? STORE_ERROR_NO_SPACE :
				r == -EBUSY		     ? STORE_ERROR_BUSY :
				r == -ENOENT		     ? STORE_ERROR_NOT_FOUND :
				may_not(r)		     ? STORE_ERROR_DENIED :
							       STORE_ERROR_FAILED;

	if (r < 0 && error && !*error)
		g_set_error(error, STORE_ERROR, code, "%s%s%s: %s%s", what, path ? " " : "", path ? path : "", g_strerror(-r),
			    may_not(r) && path && *path != '/' ? "; its directory has to be one that you can write to" : "");
	return r;
}

static int commit_init(struct commit *c, struct store *s, struct lower *l, GError **error)
{
	int r;

	*c = (struct commit){ .commits = -1, .dir = -1, .stepper = { .root = lower_root_fd(l), .files = -1 } };
	r = commits_open(s, &c->commits);
	if (r == -EBUSY) {
		g_set_error(error, STORE_ERROR, STORE_ERROR_BUSY, "another process is committing from store %s", store_dir(s));
		return r;
	}
	c->notes = notes_new();
	c->stepper.notes = c->notes;
	return explain(error, r, "cannot use the store", store_dir(s));
}

static void commit_clear(struct commit *c)
{
	g_clear_pointer(&c->stepper.touched, g_hash_table_unref);
	g_clear_pointer(&c->notes, notes_free);
	g_free(c->id);
	if (c->stepper.files >= 0)
		close(c->stepper.files);
	if (c->dir >= 0)
		close(c->dir);
	if (c->commits >= 0)
		close(c->commits); /* and with it the lock */
}

static int commit_open_files(struct commit *c)
{
	c->stepper.id = c->id;
	c->stepper.files = openat(c->dir, "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return c->stepper.files < 0 ? -errno : 0;
}

/* Another commit of this store to look at. */
static int commit_switch(struct commit *c, guint64 number)
{
	if (c->stepper.files >= 0)
		close(c->stepper.files);
	if (c->dir >= 0)
		close(c->dir);
	c->stepper.files = c->dir = -1;
	g_free(c->id);
	c->id = g_strdup_printf("%" G_GUINT64_FORMAT, number);
	return commit_open(c->commits, c->id, &c->dir);
}

static void fill_result(struct commit *c, const struct journal *j, bool undone, struct apply_result *ret)
{
	*ret = (struct apply_result){ .id = g_strdup(c->id), .epoch = j->epoch, .undone = undone, .paths = g_ptr_array_ref(j->paths),
				      .partial = g_ptr_array_ref(j->partial), .notes = notes_list(c->notes) };
}

/* Going forward */

static int sync_whole(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = syncfs(fd) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* One regular file or directory; what can't be opened for reading is left to the file system's own time. */
static int sync_object(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r;

	if (fd < 0)
		return 0;
	r = fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
	close(fd);
	return r;
}

static int sync_place(int root, const char *path, bool dir_too)
{
	g_auto(place_t) at = PLACE_NONE;
	int r = place_open(root, path, &at);

	if (r < 0)
		return 0; /* removed by the commit itself: the directory above is synced too */
	r = dir_too ? fsync_dir(at.dirfd) : 0;
	return r < 0 ? r : sync_object(at.dirfd, at.name);
}

/* The staged objects are on the disk, with their names. */
static int sync_stage(struct commit *c, const struct journal *j)
{
	int r = 0;

	if (j->steps->len > SYNC_MAX)
		return sync_whole(c->dir);
	for (guint i = 0; r == 0 && i < j->steps->len; i++) {
		const struct step *s = g_ptr_array_index(j->steps, i);
		g_autofree char *name = g_strdup_printf("%u", s->number);
		g_autofree char *old = g_strdup_printf("%u.old", s->number);

		if (S_ISREG(s->staged.attr.mode) || S_ISDIR(s->staged.attr.mode))
			r = sync_object(c->stepper.files, name);
		if (r == 0 && s->copied && S_ISREG(s->before.attr.mode))
			r = sync_object(c->stepper.files, old);
	}
	if (r == 0 && (fsync(c->stepper.files) < 0 || fsync(c->dir) < 0))
		r = -errno;
	return r < 0 ? r : fsync(c->commits) < 0 ? -errno : 0;
}

/* What the steps changed in directories of the workspace, and in files/, is on the disk. */
static int sync_dirs(struct commit *c, const struct journal *j)
{
	bool many = j->steps->len > SYNC_MAX;
	int r = fsync(c->stepper.files) < 0 ? -errno : 0;

	/* syncfs(2) reaches one file system: that of the root. Steps that copy may be on others. */
	if (r == 0 && many)
		r = sync_whole(c->stepper.root);
	for (guint i = 0; r == 0 && i < j->steps->len; i++) {
		const struct step *s = g_ptr_array_index(j->steps, i);

		if (!many || s->copied)
			r = sync_place(c->stepper.root, s->path, s->kind != STEP_ATTR);
		if (r == 0 && s->from && !many)
			r = sync_place(c->stepper.root, s->from, true);
	}
	return r;
}

static int go_forward(struct commit *c, const struct journal *j, const struct apply_job *job, const struct step **ret_failed)
{
	int r = 0;

	for (guint i = 0; r == 0 && i < j->steps->len; i++) {
		const struct step *s = g_ptr_array_index(j->steps, i);

		r = step_do(&c->stepper, s);
		if (r < 0)
			*ret_failed = s;
		boundary("step done");
		if (job && job->progress)
			job->progress(j->steps->len + i, 2 * j->steps->len, job->progress_user);
	}
	if (r == 0)
		r = sync_dirs(c, j);
	boundary("directories synced");
	return r;
}

/* Going back */

/* Which steps are undone. */
enum half {
	HALF_BOTH,
	HALF_RETURN, /* those that bring back old places; what was moved has both then */
	HALF_TAKE,   /* those that take away new ones */
};

/* Needs nothing taken away first: a file in whose place the commit put a directory, by a step of its own, does. */
static bool is_return(const struct step *s, GHashTable *made)
{
	switch (s->kind) {
	case STEP_MOVE:
	case STEP_RMDIR:
		return true;
	case STEP_DELETE:
		return !g_hash_table_contains(made, s->path);
	case STEP_REPLACE:
		return S_ISDIR(s->before.attr.mode);
	case STEP_ATTR:
		return S_ISDIR(s->attr.mode); /* or what is returned may not be put there */
	default:
		return false;
	}
}

static int undo_one(struct commit *c, const struct step *s, enum half half, GHashTable *made)
{
	int r;

	if (half != HALF_BOTH && is_return(s, made) != (half == HALF_RETURN) && !(half == HALF_TAKE && s->kind == STEP_MOVE))
		return 0;
	r = step_clean(&c->stepper, s);
	if (r == 0)
		r = half == HALF_RETURN && s->kind == STEP_MOVE ? step_return(&c->stepper, s) : step_undo(&c->stepper, s);
	return r;
}

static int undo_half(struct commit *c, const struct journal *j, enum half half, const struct step **ret_failed, bool *ret_kept)
{
	g_autoptr(GHashTable) made = g_hash_table_new(g_str_hash, g_str_equal);
	int r = 0;

	for (guint i = 0; i < j->steps->len; i++) {
		const struct step *s = g_ptr_array_index(j->steps, i);

		if (s->kind == STEP_MKDIR)
			g_hash_table_add(made, s->path);
	}
	for (guint i = j->steps->len; r == 0 && i-- > 0;) {
		const struct step *s = g_ptr_array_index(j->steps, i);

		r = undo_one(c, s, half, made);
		if (r == -ESTALE) {
			notes_add(c->notes, "left as it is, as it was changed in the meantime", s->path);
			*ret_kept = true;
			r = 0;
		}
		if (r < 0)
			*ret_failed = s;
		boundary("step undone");
	}
	return r;
}

static int tell_view(struct commit *c, const struct journal *j, undo_view_fn fn, void *user, GError **error)
{
	struct apply_result undone = { 0 };
	int r;

	if (!fn)
		return 0;
	fill_result(c, j, true, &undone);
	r = fn(&undone, user, error);
	apply_result_clear(&undone);
	boundary("view told");
	return r;
}

/*
 * Undoes every step that was done, the last one first; for a view in two halves. Where somebody else changed the workspace since, theirs stays,
 * noted; the pre-image stays in the store then, in @ret_kept.
 */
static int go_back(struct commit *c, const struct journal *j, const struct undo_view *view, const struct step **ret_failed, bool *ret_kept)
{
	bool halves = view && view->returns;
	int r = halves ? undo_half(c, j, HALF_RETURN, ret_failed, ret_kept) : 0;

	/* It is shown from then on. */
	for (guint i = 0; halves && r == 0 && i < j->steps->len; i++)
		r = step_restore_times(&c->stepper, g_ptr_array_index(j->steps, i));
	/* A view that can't be told misses some files until the end. */
	if (halves && r == 0)
		tell_view(c, j, view->returns, view->user, NULL);
	if (r == 0)
		r = undo_half(c, j, halves ? HALF_TAKE : HALF_BOTH, ret_failed, ret_kept);
	for (guint i = 0; r == 0 && i < j->steps->len; i++)
		r = step_restore_times(&c->stepper, g_ptr_array_index(j->steps, i));
	return r == 0 ? sync_dirs(c, j) : r;
}

static int back_out(struct commit *c, const struct journal *j, GError **error)
{
	const struct step *failed = NULL;
	bool kept = false;
	int r = journal_set_state(c->dir, JOURNAL_BACKING_OUT);

	boundary("backing out");
	if (r == 0)
		r = go_back(c, j, NULL, &failed, &kept);
	if (r == 0)
		r = journal_set_state(c->dir, JOURNAL_BACKED_OUT);
	boundary("backed out");
	if (r == 0 && !kept)
		r = commit_drop_files(c->dir);
	if (r < 0 && error)
		g_clear_error(error);
	return explain(error, r, "the workspace could not be put back completely; run the command again. It failed at", failed ? failed->path : NULL);
}

/* Commit */

/*
 * Of store @commits: nothing that was begun and not ended. What never got a journal did not touch the workspace and is dropped. 0, or
 * 1 with @ret_number.
 */
static int find_unfinished(struct commit *c, enum journal_state *ret_state)
{
	g_autoptr(GArray) numbers = NULL;
	int r = commits_list(c->commits, &numbers);

	for (guint i = 0; r == 0 && i < numbers->len; i++) {
		r = commit_switch(c, g_array_index(numbers, guint64, i));
		if (r == 0)
			r = journal_get_state(c->dir, ret_state);
		if (r < 0)
			break;
		if (*ret_state == JOURNAL_NONE)
			r = commit_drop(c->commits, c->id);
		else if (*ret_state != JOURNAL_FINISHED && *ret_state != JOURNAL_BACKED_OUT)
			return 1;
	}
	return r;
}

static int check_writable(const struct apply_job *job, GError **error)
{
	struct statvfs fs;

	if (fstatvfs(lower_root_fd(job->lower), &fs) == 0 && (fs.f_flag & ST_RDONLY)) {
		g_set_error(error, STORE_ERROR, STORE_ERROR_DENIED,
			    "the workspace %s is on a file system that is mounted read-only; nothing was written. Remount it, or use --patch FILE",
			    lower_path(job->lower));
		return -EROFS;
	}
	return 0;
}

/* A step met something else than the plan had seen: says what, as well as it can still be told. */
static void step_conflict(struct commit *c, const struct step *s, GPtrArray *conflicts)
{
	bool from = step_is_from(s);
	const struct attr *after = s->staged.attr.mode ? &s->staged.attr : NULL;
	struct fingerprint now = { 0 };
	const char *path = s->path;
	enum conflict_kind kind;
	int r = place_stat(c->stepper.root, path, &now);

	if (from && (s->kind == STEP_HOLD || s->kind == STEP_ATTR || (r == 0 && now.attr.mode == 0))) {
		path = s->from;
		r = place_stat(c->stepper.root, path, &now);
		from = false;
	}
	if (r < 0)
		kind = CONFLICT_PARENT;
	else if (from || s->before.attr.mode == 0)
		kind = CONFLICT_EXISTS;
	else if (now.attr.mode == 0)
		kind = CONFLICT_MISSING;
	else
		kind = (now.attr.mode & S_IFMT) == (s->before.attr.mode & S_IFMT) ? CONFLICT_CONTENT : CONFLICT_TYPE;
	conflict_add(conflicts, path, kind, s->before.attr.mode ? &s->before : NULL, &now, after);
}

/* What the plan saw is still so; the last look before the journal. */
static int expect_all(struct commit *c, const struct journal *j, GPtrArray *conflicts, GError **error)
{
	for (guint i = 0; i < j->steps->len; i++) {
		const struct step *s = g_ptr_array_index(j->steps, i);
		int r = step_expect(&c->stepper, s);

		if (r == -ESTALE)
			step_conflict(c, s, conflicts);
		else if (r < 0)
			return explain(error, r, "cannot look at", s->path);
	}
	return 0;
}

/* Steps 3 to 5. A conflict met on the way is added to @conflicts, and all is as before. */
static int run(struct commit *c, struct journal *j, const struct apply_job *job, GPtrArray *conflicts, GError **error)
{
	const struct step *failed = NULL;
	int r = sync_stage(c, j);

	boundary("stage synced");
	if (r == 0)
		r = journal_write(c->dir, j);
	boundary("journal written");
	if (r < 0)
		return explain(error, r, "cannot write the journal", NULL);
	r = go_forward(c, j, job, &failed);
	if (r == 0) {
		r = journal_set_state(c->dir, JOURNAL_APPLIED);
		boundary("applied");
		return explain(error, r, "everything is written, but the journal could not be ended; run the command again", NULL);
	}
	if (r == -ESTALE)
		step_conflict(c, failed, conflicts);
	else
		explain(error, r, "nothing was changed: cannot write", failed ? failed->path : NULL);
	return back_out(c, j, error) < 0 || r != -ESTALE ? r : 0;
}

static int commit_plan(struct commit *c, struct plan *p, const struct apply_job *job, GError **error)
{
	struct journal *j = plan_journal(p);
	GPtrArray *conflicts = plan_conflicts(p);
	int r = commit_new(c->commits, &c->id, &c->dir);

	boundary("commit made");
	if (r == 0)
		r = commit_open_files(c);
	if (r == 0)
		r = plan_set_files(p, c->stepper.files);
	if (r < 0)
		return explain(error, r, "cannot use the store", store_dir(job->store));
	r = plan_resolve(p, error);
	if (r == 0 && conflicts->len == 0)
		r = plan_stage(p, error);
	if (r < 0 || conflicts->len > 0 || j->steps->len == 0)
		return r;
	j->epoch = job->epoch;
	j->time = nsec_now();
	c->stepper.touched = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	r = expect_all(c, j, conflicts, error);
	return r < 0 || conflicts->len > 0 ? r : run(c, j, job, conflicts, error);
}

int apply_changes(const struct apply_job *job, struct apply_result *ret, GPtrArray **ret_conflicts, GError **error)
{
	g_autoptr(plan_t) p = NULL;
	enum journal_state state = JOURNAL_NONE;
	struct commit c;
	int r = commit_init(&c, job->store, job->lower, error);

	*ret_conflicts = NULL;
	if (r == 0)
		r = check_writable(job, error);
	if (r == 0) {
		r = find_unfinished(&c, &state);
		if (r > 0) {
			g_set_error(error, STORE_ERROR, STORE_ERROR_BUSY, "an interrupted commit (%s) has to be recovered first", c.id);
			r = -EBUSY;
		}
		explain(error, r, "cannot use the store", store_dir(job->store));
	}
	if (r == 0) {
		g_clear_pointer(&c.id, g_free);
		if (c.dir >= 0)
			close(c.dir);
		c.dir = -1;
		p = plan_new(job, c.commits, c.notes);
		r = commit_plan(&c, p, job, error);
	}
	if (c.id && c.dir >= 0 && journal_get_state(c.dir, &state) == 0 && state == JOURNAL_NONE) {
		commit_drop(c.commits, c.id); /* if it fails, the next one drops it */
		g_clear_pointer(&c.id, g_free);
	}
	if (r == 0 && plan_conflicts(p)->len > 0) {
		*ret_conflicts = g_ptr_array_ref(plan_conflicts(p));
	} else if (r == 0) {
		fill_result(&c, plan_journal(p), false, ret);
		ret->epoch = job->epoch;
		plan_counts(p, &ret->written, &ret->deleted);
	}
	commit_clear(&c);
	return r;
}

int conflicts_find(const struct apply_job *job, GPtrArray **ret, GError **error)
{
	g_autoptr(plan_t) p = NULL;
	struct commit c;
	int r = commit_init(&c, job->store, job->lower, error);

	if (r == 0) {
		p = plan_new(job, c.commits, c.notes);
		r = plan_resolve(p, error);
	}
	if (r == 0)
		*ret = g_ptr_array_ref(plan_conflicts(p));
	commit_clear(&c);
	return r;
}

/* Recovery */

static int recover_forward(struct commit *c, const struct journal *j, struct apply_result *ret, GError **error)
{
	const struct step *failed = NULL;
	int r = 0;

	for (guint i = 0; r == 0 && i < j->steps->len; i++)
		r = step_clean(&c->stepper, g_ptr_array_index(j->steps, i));
	boundary("cleaned");
	if (r == 0)
		r = go_forward(c, j, NULL, &failed);
	if (r == 0)
		r = journal_set_state(c->dir, JOURNAL_APPLIED);
	boundary("applied");
	if (r == 0) {
		fill_result(c, j, false, ret);
		return 0;
	}
	if (r != -ESTALE)
		return explain(error, r, "cannot finish the interrupted commit: cannot write", failed ? failed->path : NULL);
	notes_add(c->notes, "the interrupted commit was taken back, as this was changed in the meantime", failed->path);
	r = back_out(c, j, error);
	if (r == 0)
		ret->notes = notes_list(c->notes);
	return r;
}

static int recover_undo(struct commit *c, const struct journal *j, const struct undo_view *view, struct apply_result *ret, GError **error)
{
	const struct step *failed = NULL;
	bool kept = false;
	int r = go_back(c, j, view, &failed, &kept);

	if (r == 0)
		r = journal_set_state(c->dir, JOURNAL_UNDONE);
	boundary("undone");
	if (r == 0)
		fill_result(c, j, true, ret);
	return explain(error, r, "cannot finish the undo: cannot write", failed ? failed->path : NULL);
}

static int recover_one(struct commit *c, enum journal_state state, const struct undo_view *view, struct apply_result *ret, GError **error)
{
	g_autoptr(journal_t) j = NULL;
	int r = journal_read(c->dir, &j);

	if (r == 0)
		r = commit_open_files(c);
	if (r < 0)
		return explain(error, r, "cannot read the journal of the interrupted commit", c->id);
	switch (state) {
	case JOURNAL_APPLYING:
		return recover_forward(c, j, ret, error);
	case JOURNAL_BACKING_OUT:
		r = back_out(c, j, error);
		if (r == 0)
			ret->notes = notes_list(c->notes);
		return r;
	case JOURNAL_UNDOING:
		r = tell_view(c, j, view ? view->begins : NULL, view ? view->user : NULL, error);
		if (r < 0)
			return explain(error, r, "cannot finish the undo: the view cannot take over what it shows of commit", c->id);
		return recover_undo(c, j, view, ret, error);
	default: /* JOURNAL_APPLIED, JOURNAL_UNDONE: only the view does not know */
		fill_result(c, j, state == JOURNAL_UNDONE, ret);
		return 0;
	}
}

int apply_recover(struct store *s, struct lower *l, const struct undo_view *view, struct apply_result *ret, GError **error)
{
	g_autofree char *path = g_build_filename(store_dir(s), "commit", NULL);
	enum journal_state state;
	struct commit c;
	int r;

	*ret = (struct apply_result){ 0 };
	if (!g_file_test(path, G_FILE_TEST_IS_DIR))
		return 0;
	r = commit_init(&c, s, l, error);
	if (r == 0) {
		r = find_unfinished(&c, &state);
		if (r > 0)
			r = recover_one(&c, state, view, ret, error);
		else
			explain(error, r, "cannot use the store", store_dir(s));
	}
	commit_clear(&c);
	return r;
}

int apply_finish(struct store *s, const char *id, GError **error)
{
	enum journal_state state;
	int commits, dir = -1;
	int r = commits_open(s, &commits);

	if (r < 0)
		return explain(error, r, "cannot use the store", store_dir(s));
	r = commit_open(commits, id, &dir);
	if (r == 0)
		r = journal_get_state(dir, &state);
	if (r == 0 && state == JOURNAL_APPLIED)
		r = journal_set_state(dir, JOURNAL_FINISHED);
	else if (r == 0 && state == JOURNAL_UNDONE) {
		/* The journal stays: what was put back has new change times, which must not look like somebody else's doing. */
		r = journal_set_state(dir, JOURNAL_BACKED_OUT);
		if (r == 0)
			r = commit_drop_files(dir);
	} else if (r == 0 && state != JOURNAL_FINISHED)
		r = -EINVAL;
	if (dir >= 0)
		close(dir);
	close(commits);
	return explain(error, r, "cannot end the commit", id);
}

/* Undo */

/* Makes @c the commit @id, or the last finished one. */
static int find_finished(struct commit *c, const char *id, GError **error)
{
	g_autoptr(GArray) numbers = NULL;
	enum journal_state state;
	int r = commits_list(c->commits, &numbers);

	for (guint i = r == 0 ? numbers->len : 0; i-- > 0;) {
		r = commit_switch(c, g_array_index(numbers, guint64, i));
		if (r == 0)
			r = journal_get_state(c->dir, &state);
		if (r < 0)
			return explain(error, r, "cannot read commit", c->id);
		if (state == JOURNAL_FINISHED && (!id || strcmp(id, c->id) == 0))
			return 0;
	}
	g_set_error(error, STORE_ERROR, STORE_ERROR_NOT_FOUND, "there is no commit %s%sto undo", id ? id : "", id ? " " : "");
	return -ENOENT;
}

static int check_done(struct commit *c, const struct journal *j, GPtrArray *conflicts, GError **error)
{
	for (guint i = 0; i < j->steps->len; i++) {
		const struct step *s = g_ptr_array_index(j->steps, i);
		const struct fingerprint *wrote = s->kind == STEP_CREATE || s->kind == STEP_REPLACE ? &s->staged : &s->before;
		struct fingerprint now = { 0 };
		int r = step_is_done(&c->stepper, s);

		if (r < 0)
			return explain(error, r, "cannot look at", s->path);
		if (r == 1)
			continue;
		place_stat(c->stepper.root, s->path, &now);
		conflict_add(conflicts, s->path,
			     s->kind == STEP_DELETE	? CONFLICT_EXISTS :
			     now.attr.mode == 0		? CONFLICT_MISSING :
			     s->kind == STEP_ATTR	? CONFLICT_ATTR :
						     CONFLICT_CONTENT,
			     s->kind == STEP_DELETE ? NULL : wrote, &now, &s->before.attr);
	}
	return 0;
}

/*
 * The mark comes first: what the view takes over is right only for an undo, which a process that is killed in between leaves to the next one. A
 * view that cannot (its store is full) is one that did nothing.
 */
static int undo_begin(struct commit *c, const struct journal *j, const struct undo_view *view, GError **error)
{
	int r = journal_set_state(c->dir, JOURNAL_UNDOING);

	boundary("undoing");
	if (r < 0)
		return explain(error, r, "cannot write the journal of commit", c->id);
	r = tell_view(c, j, view ? view->begins : NULL, view ? view->user : NULL, error);
	if (r < 0)
		journal_set_state(c->dir, JOURNAL_FINISHED); /* if it fails, the next one tries to complete the undo */
	return explain(error, r, "nothing was undone: the view cannot take over what it shows of commit", c->id);
}

/* @check: only look. */
static int undo(struct commit *c, bool check, const struct undo_view *view, struct apply_result *ret, GPtrArray *conflicts,
		GError **error)
{
	g_autoptr(journal_t) j = NULL;
	int r = journal_read(c->dir, &j);

	if (r == 0)
		r = commit_open_files(c);
	if (r < 0)
		return explain(error, r, "cannot read the journal of commit", c->id);
	r = check_done(c, j, conflicts, error);
	if (r == 0 && conflicts->len == 0 && check)
		fill_result(c, j, false, ret);
	if (r < 0 || conflicts->len > 0 || check)
		return r;
	r = undo_begin(c, j, view, error);
	return r < 0 ? r : recover_undo(c, j, view, ret, error);
}

static int undo_or_check(struct store *s, struct lower *l, const char *id, bool check, const struct undo_view *view,
			 struct apply_result *ret, GPtrArray **ret_conflicts, GError **error)
{
	g_autoptr(GPtrArray) conflicts = g_ptr_array_new_with_free_func((GDestroyNotify)conflict_free);
	enum journal_state state;
	struct commit c;
	int r = commit_init(&c, s, l, error);

	*ret_conflicts = NULL;
	if (r == 0) {
		r = find_unfinished(&c, &state);
		if (r > 0) {
			g_set_error(error, STORE_ERROR, STORE_ERROR_BUSY, "an interrupted commit (%s) has to be recovered first", c.id);
			r = -EBUSY;
		}
	}
	if (r == 0)
		r = find_finished(&c, id, error);
	if (r == 0)
		r = undo(&c, check, view, ret, conflicts, error);
	if (r == 0 && conflicts->len > 0)
		*ret_conflicts = g_steal_pointer(&conflicts);
	commit_clear(&c);
	return r;
}

int apply_undo(struct store *s, struct lower *l, const char *id, const struct undo_view *view, struct apply_result *ret,
	       GPtrArray **ret_conflicts, GError **error)
{
	return undo_or_check(s, l, id, false, view, ret, ret_conflicts, error);
}

int apply_undo_check(struct store *s, struct lower *l, const char *id, struct apply_result *ret, GPtrArray **ret_conflicts, GError **error)
{
	return undo_or_check(s, l, id, true, NULL, ret, ret_conflicts, error);
}
