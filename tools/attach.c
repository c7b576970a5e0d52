/* SPDX-License-Identifier: MIT */
#include "tools/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "fs/control.h"
#include "rules/policy.h"
#include "snapshot/apply.h"
#include "tools/exit.h"
#include "tools/local_view.h"
#include "tools/output.h"
#include "tools/path_args.h"
#include "tools/policy_store.h"
#include "tools/sandbox.h"
#include "tools/view_lock.h"

#define WAIT_STEP_US (20 * 1000)
#define WAIT_STORE_STEPS 500 /* 10 s: another command that holds the store is soon done */
#define WAIT_COMMIT_STEPS 500

static GVariant *call(struct attached *a, const char *operation, GVariant *arguments, GError **error)
{
	g_autoptr(GVariant) owned = g_variant_ref_sink(arguments);

	return control_call(a->control, operation, owned, error);
}

/* Opening */

static bool attach_control(struct attached *a, GError **error)
{
	for (int i = 0; i < WAIT_STORE_STEPS; i++) {
		g_autoptr(GError) failure = NULL;

		a->control = sandbox_connect(a->sandbox, NULL);
		if (a->control)
			return true;
		a->local = local_view_open(a->sandbox, &failure);
		if (a->local) {
			a->control = local_view_control(a->local);
			return true;
		}
		if (!g_error_matches(failure, STORE_ERROR, STORE_ERROR_BUSY)) {
			g_propagate_error(error, g_steal_pointer(&failure));
			return false;
		}
		g_usleep(WAIT_STEP_US);
	}
	tool_error(error, EXIT_BUSY, a->sandbox->name,
		   "sandbox %s is held by a process that does not answer (see %s/lock for its number)",
		   a->sandbox->name, a->sandbox->dir);
	return false;
}

/* A view may lie on top of its workspace, so whoever serves it is asked for the directory underneath. */
static bool attach_lower(struct attached *a, GError **error)
{
	int fd;
	int r;

	if (!a->control)
		return sandbox_open_workspace(a->sandbox, &a->lower, error);
	fd = control_root_fd(a->control, error);
	if (fd < 0)
		return false;
	r = lower_open_fd(fd, a->sandbox->workspace, &a->lower);
	close(fd);
	if (r < 0)
		tool_error_errno(error, r, a->sandbox->workspace, "the workspace %s", a->sandbox->workspace);
	return r >= 0;
}

/* A view that a run mounted stays as long as we work with it. */
static bool use_view(struct attached *a, GError **error)
{
	a->uses_view = view_lock(a->sandbox->name, VIEW_USE, VIEW_SHARED, error);
	return a->uses_view;
}

static bool attach(struct attached *a, enum attach_mode mode, GError **error)
{
	if (a->sandbox->problem) {
		g_autoptr(store_t) s = store_open(a->sandbox->dir, STORE_READ, error);

		if (s)
			tool_error(error, EXIT_INTERNAL, a->sandbox->dir, "%s", a->sandbox->problem);
		return false;
	}
	a->policy = policy_store_load(a->sandbox->dir, error);
	if (!a->policy)
		return false;
	if (mode == ATTACH_READ)
		a->control = sandbox_connect(a->sandbox, NULL);
	else if (!use_view(a, error) || !attach_control(a, error))
		return false;
	a->store = store_open(a->sandbox->dir, STORE_READ, error);
	if (!a->store)
		return false;
	if (mode == ATTACH_READ)
		return attach_lower(a, &a->lower_error) || a->lower_error;
	return attach_lower(a, error);
}

struct attached *attached_open_sandbox(struct sandbox *s, enum attach_mode mode, GError **error)
{
	struct attached *a = g_new0(struct attached, 1);

	a->sandbox = s;
	a->commit_lock = -1;
	a->pinned = -1;
	if (attach(a, mode, error))
		return a;
	attached_close(a);
	return NULL;
}

struct attached *attached_open(const char *target, enum attach_mode mode, GError **error)
{
	struct sandbox *s = sandbox_resolve(target, error);

	return s ? attached_open_sandbox(s, mode, error) : NULL;
}

static void attached_unpin(struct attached *a)
{
	g_autoptr(GVariant) done = NULL;

	if (a->pinned >= 0)
		done = call(a, "unpin", g_variant_new_parsed("{'epoch': <%x>}", a->pinned), NULL);
	a->pinned = -1;
}

void attached_close(struct attached *a)
{
	if (!a)
		return;
	attached_unpin(a);
	g_clear_pointer(&a->lower, lower_close);
	g_clear_error(&a->lower_error);
	g_clear_pointer(&a->store, store_close);
	g_clear_pointer(&a->control, control_close);
	g_clear_pointer(&a->local, local_view_close);
	g_clear_pointer(&a->policy, policy_free);
	attached_unlock_commits(a);
	if (a->uses_view)
		view_unlock(a->sandbox->name, VIEW_USE);
	sandbox_free(a->sandbox);
	g_free(a);
}

/* Commits */

static GVariant *bytestrings(const GPtrArray *paths)
{
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_BYTESTRING_ARRAY);
	for (unsigned i = 0; i < paths->len; i++)
		g_variant_builder_add(&b, "^ay", paths->pdata[i]);
	return g_variant_builder_end(&b);
}

static bool tell_paths(struct attached *a, const char *operation, int64_t epoch, const GPtrArray *paths, GError **error)
{
	g_autoptr(GVariant) answer = NULL;

	if (paths->len == 0)
		return true;
	answer = call(a, operation, g_variant_new_parsed("{'epoch': <%x>, 'paths': <%@aay>}", epoch, bytestrings(paths)), error);
	return answer != NULL;
}

bool attached_keep(struct attached *a, int64_t epoch, const GPtrArray *paths, GError **error)
{
	return tell_paths(a, "keep", epoch, paths, error);
}

static int undo_begins(const struct apply_result *undone, void *user, GError **error)
{
	return tell_paths(user, "unfollow", undone->epoch, undone->paths, error) ? 0 : -EIO;
}

static int undo_returns(const struct apply_result *undone, void *user, GError **error)
{
	return tell_paths(user, "refollow", undone->epoch, undone->paths, error) ? 0 : -EIO;
}

bool attached_undo(struct attached *a, const char *id, struct apply_result *ret, GPtrArray **ret_conflicts, GError **error)
{
	const struct undo_view view = { .begins = undo_begins, .returns = undo_returns, .user = a };

	return apply_undo(a->store, a->lower, id, &view, ret, ret_conflicts, error) >= 0;
}

static bool settle(struct attached *a, const struct apply_result *result, GError **error)
{
	g_autoptr(GVariant) answer =
		call(a, result->undone ? "unsettle" : "settle",
		     g_variant_new_parsed("{'epoch': <%x>, 'paths': <%@aay>, 'partial': <%@aay>}", result->epoch,
					  bytestrings(result->paths), bytestrings(result->partial)),
		     error);

	return answer != NULL;
}

bool attached_finish(struct attached *a, const struct apply_result *result, GError **error)
{
	if (result->paths && result->paths->len > 0 && !settle(a, result, error))
		return false;
	return !result->id || apply_finish(a->store, result->id, error) >= 0;
}

static bool finish_interrupted(struct attached *a, GError **error)
{
	const struct undo_view view = { .begins = undo_begins, .returns = undo_returns, .user = a };
	struct apply_result result = { 0 };
	bool ok = apply_recover(a->store, a->lower, &view, &result, error) >= 0;

	if (ok && result.id)
		output_note("commit %s was interrupted; it is %s now", result.id,
			    result.undone ? "taken back" : "finished");
	ok = ok && attached_finish(a, &result, error);
	apply_result_clear(&result);
	return ok;
}

static bool take_commit_lock(struct attached *a, int steps, GError **error)
{
	g_autofree char *path = g_build_filename(a->sandbox->dir, "commit.lock", NULL);

	a->commit_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (a->commit_lock < 0) {
		tool_error_errno(error, -errno, path, "%s", path);
		return false;
	}
	for (int i = 0; i < steps; i++) {
		if (flock(a->commit_lock, LOCK_EX | LOCK_NB) == 0)
			return true;
		g_usleep(WAIT_STEP_US);
	}
	close(a->commit_lock);
	a->commit_lock = -1;
	tool_error(error, EXIT_BUSY, a->sandbox->name,
		   "another commit or rollback of sandbox %s is under way; try again when it is done",
		   a->sandbox->name);
	return false;
}

bool attached_lock_commits(struct attached *a, GError **error)
{
	return take_commit_lock(a, WAIT_COMMIT_STEPS, error) && finish_interrupted(a, error);
}

void attached_unlock_commits(struct attached *a)
{
	if (a->commit_lock >= 0)
		close(a->commit_lock);
	a->commit_lock = -1;
}

bool attached_recover(struct attached *a, GError **error)
{
	bool ok;

	if (!take_commit_lock(a, 1, NULL))
		return true;
	ok = finish_interrupted(a, error);
	attached_unlock_commits(a);
	return ok;
}

/* States */

bool attached_pin(struct attached *a, int64_t *ret_epoch, GError **error)
{
	g_autoptr(GVariant) answer = call(a, "pin", g_variant_new("a{sv}", NULL), error);

	if (!answer)
		return false;
	if (!g_variant_lookup(answer, "epoch", "x", &a->pinned)) {
		tool_error(error, EXIT_INTERNAL, NULL, "the view gave no epoch");
		return false;
	}
	*ret_epoch = a->pinned;
	return true;
}

static char *snapshot_names(struct store *s)
{
	g_autoptr(GPtrArray) all = NULL;
	GString *names = g_string_new(NULL);

	if (store_snapshot_list(s, &all) == 0)
		for (unsigned i = 0; i < all->len; i++)
			g_string_append_printf(names, "%s%s", i ? ", " : "", ((struct snapshot *)all->pdata[i])->name);
	return g_string_free(names, FALSE);
}

bool attached_epoch(struct attached *a, const char *name, int64_t *ret_epoch, GError **error)
{
	int r = store_snapshot_find(a->store, name, ret_epoch);
	g_autofree char *names = NULL;

	if (r == 0)
		return true;
	if (r != -ENOENT) {
		tool_error_errno(error, r, name, "snapshot %s", name);
		return false;
	}
	names = snapshot_names(a->store);
	tool_error(error, EXIT_NOT_FOUND, name, "sandbox %s has no snapshot '%s'; it has: %s", a->sandbox->name, name,
		   *names ? names : "none");
	return false;
}

/* Changes */

static bool shows(struct attached *a, const char *path, bool is_dir)
{
	struct policy_match m = policy_match_path(a->policy, path, is_dir);
	enum action action = policy_action(a->policy, m);

	if (action == ACTION_SCRATCH)
		return a->with_scratch;
	/* What is masked in the view is not to be read in a diff either. */
	return action < ACTION_MASK || (is_dir && policy_may_open_below(a->policy, m, path));
}

bool attached_shows(const char *path, const char *lower_path, bool is_dir, void *user)
{
	return shows(user, path, is_dir) &&
	       (!lower_path || g_str_equal(lower_path, path) || shows(user, lower_path, is_dir));
}

bool attached_changes(struct attached *a, struct tree *from, struct tree *to, char **paths, bool no_hash,
		      GPtrArray **ret, GError **error)
{
	struct change_options options = {
		.filter = attached_shows,
		.filter_user = a,
		.paths = (const char *const *)paths,
		.no_hash = no_hash,
	};

	return changes_between(from, to, &options, ret, error) >= 0;
}

bool attached_has_lower(const struct attached *a, GError **error)
{
	if (!a->lower && error)
		*error = g_error_copy(a->lower_error);
	return a->lower;
}

bool attached_count_changes(struct attached *a, uint64_t *ret, GError **error)
{
	g_autoptr(tree_t) from = NULL;
	g_autoptr(tree_t) to = NULL;
	g_autoptr(GPtrArray) changes = NULL;

	if (!attached_has_lower(a, error))
		return false;
	from = tree_open(a->store, a->lower, TREE_LOWER);
	to = tree_open(a->store, a->lower, EPOCH_LIVE);
	if (!attached_changes(a, from, to, NULL, true, &changes, error))
		return false;
	*ret = changes->len;
	return true;
}

static int exists_in(struct tree *t, const char *path)
{
	g_autoptr(entry_t) e = NULL;
	int r = tree_lookup_path(t, path, &e);

	return r < 0 ? r : e != NULL;
}

bool attached_check_paths(struct tree *from, struct tree *to, char **paths, GError **error)
{
	for (char **p = paths; p && *p; p++) {
		int r = exists_in(to, *p);

		if (r == 0)
			r = exists_in(from, *p);
		if (r < 0)
			tool_error_errno(error, r, *p, "%s", *p);
		else if (r == 0 && path_args_is_glob(*p))
			continue;
		else if (r == 0)
			tool_error(error, EXIT_NOT_FOUND, *p, "%s is neither in the view nor in the workspace", *p);
		if (r <= 0)
			return false;
	}
	return true;
}
