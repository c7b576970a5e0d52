/* SPDX-License-Identifier: MIT */
#include "tools/mounting.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/control.h"
#include "fs/mount.h"
#include "rules/policy.h"
#include "snapshot/store.h"
#include "tools/attach.h"
#include "tools/audit_config.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/paths.h"
#include "tools/run/limit.h"
#include "tools/policy_check.h"
#include "tools/policy_renew.h"
#include "tools/policy_store.h"
#include "tools/sandbox.h"
#include "tools/store_dir.h"
#include "tools/tracked.h"
#include "tools/view_lock.h"

#define WAIT_STEP_US (20 * 1000)
#define WAIT_STORE_STEPS 100 /* 2 s: another command that has the store is soon done; a view is not */
#define SOCKET_PATH_MAX 107

void mounted_clear(struct mounted *m)
{
	g_free(m->name);
	g_free(m->workspace);
	g_free(m->mountpoint);
	g_free(m->store);
	*m = (struct mounted){ 0 };
}

/* The policy of a sandbox, as its store keeps it. */
struct in_force {
	char *text;
	char *profile;
	char *path;
};
typedef struct in_force in_force_t; /* for g_auto() only */

static void in_force_clear(struct in_force *f)
{
	g_free(f->text);
	g_free(f->profile);
	g_free(f->path);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(in_force_t, in_force_clear)

/* One mount being prepared. */
struct plan {
	const struct mount_request *request;
	struct mounted what;
	char *state; /* the directory of all stores */
	char *runtime;
	char *socket;
	struct sandbox *existing; /* NULL = a new one */
	struct policy *policy;
	struct in_force before; /* of a resumed sandbox */
	struct in_force after;
	struct audit_options audit;
	struct limits limits; /* of the policy; the view keeps that of the disk */
	bool made_mountpoint, made_store;
	char *locked; /* the name of the sandbox whose view may not change but by us: view_change_begin(); NULL */
	bool served_again; /* the view is there as it is wanted: see is_served_again() */
};
typedef struct plan plan_t; /* for g_auto() only */

static void unlock(struct plan *p)
{
	if (p->locked)
		view_change_end(p->locked);
	g_clear_pointer(&p->locked, g_free);
}

static void plan_clear(struct plan *p)
{
	unlock(p);
	audit_config_clear(&p->audit);
	mounted_clear(&p->what);
	g_free(p->state);
	g_free(p->runtime);
	g_free(p->socket);
	g_clear_pointer(&p->existing, sandbox_free);
	g_clear_pointer(&p->policy, policy_free);
	in_force_clear(&p->before);
	in_force_clear(&p->after);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(plan_t, plan_clear)

/* The workspace */

static bool resolve_workspace(struct plan *p, GError **error)
{
	const char *given = p->request->workspace;

	p->what.workspace = paths_resolve(given);
	if (p->what.workspace)
		return true;
	if (errno == ENOENT || errno == ENOTDIR)
		tool_error(error, EXIT_NOT_FOUND, given, "there is no workspace %s", given);
	else
		tool_error_errno(error, -errno, given, "the workspace %s", given);
	return false;
}

/* After a view that lies on it and lost its process was cleared. */
static bool check_workspace(const struct plan *p, GError **error)
{
	const char *path = p->what.workspace;
	struct stat st;

	if (stat(path, &st) < 0) {
		tool_error_errno(error, -errno, path, "the workspace %s", path);
		return false;
	}
	if (!S_ISDIR(st.st_mode)) {
		tool_error(error, EXIT_USAGE, path, "the workspace %s is not a directory", path);
		return false;
	}
	if (access(path, R_OK | X_OK) < 0) {
		tool_error_errno(error, -errno, path, "the workspace %s cannot be read", path);
		return false;
	}
	return true;
}

/* Names */

static bool has_workspace(const struct sandbox *s, const char *workspace)
{
	return s->workspace && g_str_equal(s->workspace, workspace);
}

static bool use_given_name(struct plan *p, GError **error)
{
	const char *name = p->request->name;
	g_autofree char *index = g_build_filename(p->state, name, "store.db", NULL);

	if (!sandbox_name_is_valid(name)) {
		tool_error(error, EXIT_USAGE, name,
			   "'%s' cannot name a sandbox: use up to %d letters, digits and . _ + -, beginning with a "
			   "letter or digit",
			   name, SANDBOX_NAME_MAX);
		return false;
	}
	p->what.name = g_strdup(name);
	if (!g_file_test(index, G_FILE_TEST_EXISTS))
		return true;
	if (p->request->fresh) {
		tool_error(error, EXIT_USAGE, name,
			   "there is a sandbox %s already; choose another name with -n, or leave out --new", name);
		return false;
	}
	p->existing = sandbox_load(name, error);
	return p->existing != NULL;
}

static unsigned count_stores(const char *state)
{
	GDir *dir = g_dir_open(state, 0, NULL);
	unsigned n = 0;

	while (dir && g_dir_read_name(dir))
		n++;
	g_clear_pointer(&dir, g_dir_close);
	return n;
}

/* NAME, NAME-2, ...: the first that is this workspace's (unless a fresh one is wanted), else the first that is free. */
static bool use_default_name(struct plan *p, GError **error)
{
	g_autofree char *base = sandbox_name_from(p->what.workspace);
	unsigned last = count_stores(p->state) + 1;

	for (unsigned n = 1; n <= last; n++) {
		g_autofree char *name = n == 1 ? g_strdup(base) : g_strdup_printf("%s-%u", base, n);
		g_autofree char *index = g_build_filename(p->state, name, "store.db", NULL);
		g_autoptr(sandbox_t) s = NULL;

		if (!g_file_test(index, G_FILE_TEST_EXISTS)) {
			p->what.name = p->what.name ? p->what.name : g_steal_pointer(&name);
			continue;
		}
		s = p->request->fresh ? NULL : sandbox_load(name, error);
		if (!s && !p->request->fresh)
			return false;
		/* One that cannot be read may be ours; whoever opens it next says why. */
		if (!s || !(s->problem || has_workspace(s, p->what.workspace)))
			continue;
		g_free(p->what.name);
		p->what.name = g_steal_pointer(&name);
		p->existing = g_steal_pointer(&s);
		return true;
	}
	return true;
}

/* Whether the view of @p->existing lost its process and got another one. */
static bool was_replaced(const struct plan *p)
{
	g_autoptr(GVariant) status = NULL;
	struct control *c = sandbox_connect(p->existing, NULL);
	guint32 takeovers = 0;

	status = c ? control_call(c, "status", NULL, NULL) : NULL;
	if (status)
		g_variant_lookup(status, "takeovers", "u", &takeovers);
	control_close(c);
	return takeovers > 0;
}

/* What the view kept, with what others say now. Caller frees; NULL when there is an error. */
static char *kept_policy_of_now(const struct plan *p)
{
	struct policy *kept = policy_store_load(p->what.store, NULL), *now = kept ? policy_renew(kept, p->what.workspace, NULL) : NULL;
	char *text = now ? policy_to_ini(now) : NULL;

	policy_free(kept);
	policy_free(now);
	return text;
}

/* What a mount with the profile that was asked for would have. The same. */
static char *wanted_policy(const struct plan *p)
{
	g_autofree char *profile = NULL, *path = NULL;
	struct policy *policy = policy_find(p->request->profile, p->what.workspace, &profile, &path, NULL);
	char *text = policy ? policy_to_ini(policy) : NULL;

	policy_free(policy);
	return text;
}

static bool wants_same_policy(const struct plan *p)
{
	g_autofree char *kept = policy_store_text(p->what.store, NULL);
	g_autofree char *wanted = p->request->profile ? wanted_policy(p) : kept_policy_of_now(p);

	return kept && g_strcmp0(kept, wanted) == 0;
}

/*
 * Who saw the process of a view die mounts it again, as ever. When another one has taken over and the view is as it is wanted, that is done
 * already.
 */
static bool is_served_again(const struct plan *p)
{
	const struct mount_request *r = p->request;
	g_autofree char *place = r->mountpoint ? paths_resolve(r->mountpoint) : paths_default_mountpoint(p->runtime, p->what.name);

	return p->existing->live && !r->foreground && !r->debug && g_strcmp0(place, p->existing->mountpoint) == 0 &&
	       was_replaced(p) && wants_same_policy(p);
}

static bool check_existing(struct plan *p, GError **error)
{
	const struct sandbox *s = p->existing;

	if (s->problem) {
		g_autoptr(store_t) index = store_open(s->dir, STORE_READ, error);

		if (index)
			tool_error(error, EXIT_INTERNAL, s->dir, "%s", s->problem);
		return false;
	}
	if (!has_workspace(s, p->what.workspace)) {
		tool_error(error, EXIT_USAGE, s->name,
			   "sandbox %s belongs to the workspace %s; choose another name with -n", s->name,
			   s->workspace);
		return false;
	}
	p->served_again = is_served_again(p);
	if (s->live && !p->served_again) {
		tool_error(
			error, EXIT_BUSY, s->name,
			"sandbox %s is mounted at %s already; `sbxfs umount %s` first, or choose another name with -n",
			s->name, s->mountpoint, s->name);
		return false;
	}
	return true;
}

static bool choose_sandbox(struct plan *p, GError **error)
{
	if (!(p->request->name ? use_given_name(p, error) : use_default_name(p, error)))
		return false;
	p->what.resumed = p->existing != NULL;
	p->what.store = g_build_filename(p->state, p->what.name, NULL);
	p->socket = paths_socket(p->runtime, p->what.name);
	if (strlen(p->socket) > SOCKET_PATH_MAX) {
		tool_error(error, EXIT_USAGE, p->socket,
			   "the socket's path %s is too long; choose a shorter name with -n", p->socket);
		return false;
	}
	return !p->existing || check_existing(p, error);
}

/* Whether the process of a mounted view is there: the view answers soon, then. A killed one has the store until the kernel is done with it. */
static bool is_being_served(const struct sandbox *s)
{
	for (int i = 0; i < WAIT_STORE_STEPS && sandbox_is_locked(s->dir); i++) {
		struct control *control = sandbox_connect(s, NULL);
		bool live = control != NULL;

		control_close(control);
		if (live)
			return true;
		g_usleep(WAIT_STEP_US);
	}
	return sandbox_is_locked(s->dir);
}

/* A view whose process was killed stays mounted and in the way. */
static bool clear_stale(const struct plan *p, GError **error)
{
	const struct sandbox *s = p->existing;

	return !s || !s->mounted || s->live || is_being_served(s) || mount_unmount(s->mountpoint, error);
}

/* Places */

/* A view on top of the workspace would become the workspace of this one. */
static bool check_not_covered(const struct plan *p, GError **error)
{
	g_autofree char *name = sandbox_view_at(p->what.workspace);

	if (!name)
		return true;
	if (!sandbox_is_out_of_reach(error))
		tool_error(error, EXIT_BUSY, p->what.workspace,
			   "%s is covered by the view of sandbox %s; `sbxfs umount %s` first", p->what.workspace, name,
		   p->what.workspace);
	return false;
}

/* @path need not exist; what exists of it is resolved. */
static char *resolve_missing(const char *path)
{
	g_autofree char *real = paths_resolve(path);
	g_autofree char *dir = g_path_get_dirname(path);
	g_autofree char *base = g_path_get_basename(path);
	g_autofree char *parent = NULL;

	if (real || g_str_equal(dir, path))
		return real ? g_steal_pointer(&real) : g_strdup(path);
	parent = resolve_missing(dir);
	return g_build_filename(parent, base, NULL);
}

/* What is ours may not be in the view, nor the view among it. @what is in @dir, where @variable says. */
static bool check_own_place(const struct plan *p, const char *what, const char *dir, const char *variable,
			    GError **error)
{
	g_autofree char *own = resolve_missing(dir);
	const char *workspace = p->what.workspace;

	if (paths_below(own, workspace)) {
		tool_error(error, EXIT_USAGE, own,
			   "%s in %s would lie inside the workspace %s; set %s to a directory outside of it", what, own,
			   workspace, variable);
		return false;
	}
	if (paths_below(workspace, own)) {
		tool_error(error, EXIT_USAGE, workspace, "the workspace %s lies beside %s in %s", workspace, what, own);
		return false;
	}
	return true;
}

static bool check_own_places(const struct plan *p, GError **error)
{
	return check_own_place(p, "the store", p->state, "XDG_STATE_HOME", error) &&
	       check_own_place(p, "the control socket", p->runtime, "XDG_RUNTIME_DIR", error);
}

static bool is_empty(const char *path, GError **error)
{
	DIR *dir = opendir(path);
	struct dirent *e = NULL;

	if (!dir) {
		tool_error_errno(error, -errno, path, "the mountpoint %s", path);
		return false;
	}
	while ((e = readdir(dir)))
		if (!g_str_equal(e->d_name, ".") && !g_str_equal(e->d_name, ".."))
			break;
	closedir(dir);
	if (e)
		tool_error(error, EXIT_USAGE, path,
			   "the mountpoint %s is not empty; take an empty directory, or the workspace itself", path);
	return !e;
}

/* One whose process is gone is no obstacle: mount_run() clears it. */
static bool check_not_a_view(const char *path, GError **error)
{
	g_autofree char *name = sandbox_view_at(path);

	if (!name || mount_is_stale(path))
		return true;
	tool_error(error, EXIT_BUSY, path, "%s is the mountpoint of sandbox %s; `sbxfs umount %s` first", path, name,
		   path);
	return false;
}

/* Elsewhere than on top of the workspace. */
static bool check_mountpoint_place(const struct plan *p, GError **error)
{
	const char *mountpoint = p->what.mountpoint;
	g_autofree char *state = resolve_missing(p->state);
	struct stat st;

	if (paths_below(mountpoint, p->what.workspace)) {
		tool_error(
			error, EXIT_USAGE, mountpoint,
			"the mountpoint %s lies inside the workspace; take one outside of it, or the workspace itself",
			mountpoint);
		return false;
	}
	if (paths_below(mountpoint, state)) {
		tool_error(error, EXIT_USAGE, mountpoint, "the mountpoint %s lies among the stores in %s", mountpoint,
			   state);
		return false;
	}
	if (!check_not_a_view(mountpoint, error))
		return false;
	if (mount_is_stale(mountpoint))
		return true;
	if (stat(mountpoint, &st) < 0 || !S_ISDIR(st.st_mode)) {
		tool_error(error, EXIT_USAGE, mountpoint, "the mountpoint %s is not a directory", mountpoint);
		return false;
	}
	return is_empty(mountpoint, error);
}

static bool use_default_mountpoint(struct plan *p, GError **error)
{
	p->what.mountpoint = paths_default_mountpoint(p->runtime, p->what.name);
	if (!check_not_a_view(p->what.mountpoint, error))
		return false;
	return mount_is_stale(p->what.mountpoint) || !g_file_test(p->what.mountpoint, G_FILE_TEST_EXISTS) ||
	       is_empty(p->what.mountpoint, error);
}

static bool choose_mountpoint(struct plan *p, GError **error)
{
	const char *given = p->request->mountpoint;

	if (!given)
		return use_default_mountpoint(p, error);
	p->what.mountpoint = paths_resolve(given);
	if (!p->what.mountpoint) {
		tool_error(error, EXIT_USAGE, given, "the mountpoint %s cannot be used: %s%s", given, g_strerror(errno),
			   errno == ENOENT ? "; make it with mkdir" : "");
		return false;
	}
	return g_str_equal(p->what.mountpoint, p->what.workspace) || check_mountpoint_place(p, error);
}

bool mounting_check_device(GError **error)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return true;
	}
	if (sandbox_is_out_of_reach(error))
		return false;
	if (errno == EACCES || errno == EPERM)
		tool_error(error, EXIT_PLATFORM, "/dev/fuse",
			   "/dev/fuse may not be opened by this user; give access to it (mode 0666 is usual), in a "
			   "container with --device /dev/fuse");
	else
		tool_error(error, EXIT_PLATFORM, "/dev/fuse",
			   "there is no usable /dev/fuse (%s); load the module with `modprobe fuse`, in a container "
			   "add --device /dev/fuse",
			   g_strerror(errno));
	return false;
}

/* The policy */

/* A policy that a sandbox did not have before. */
static bool check_new_policy(const struct plan *p, GError **error)
{
	if (!policy_check_settings(p->policy, p->what.workspace, error))
		return false;
	tracked_warn(p->policy, p->what.workspace, p->what.name);
	return true;
}

/* What was closed since in the workspace, or by an administrator, holds for the sandboxes of before, too. */
static bool keep_policy(struct plan *p, GError **error)
{
	struct policy *kept = policy_store_load(p->what.store, error);
	g_autoptr(GPtrArray) notes = NULL;
	bool ok;

	p->after.profile = g_strdup(p->before.profile);
	p->after.path = g_strdup(p->before.path);
	p->policy = kept ? policy_renew(kept, p->what.workspace, error) : NULL;
	p->after.text = p->policy ? policy_to_ini(p->policy) : NULL;
	notes = p->policy ? policy_renew_notes(kept, p->policy) : NULL;
	ok = p->policy && (notes->len == 0 || check_new_policy(p, error));
	for (guint i = 0; ok && i < notes->len; i++)
		output_note("%s", (const char *)notes->pdata[i]);
	policy_free(kept);
	return ok;
}

static bool choose_policy(struct plan *p, GError **error)
{
	const char *wanted = p->request->profile;

	if (p->existing) {
		p->before.text = policy_store_text(p->what.store, wanted ? NULL : error);
		p->before.profile = g_strdup(p->existing->profile);
		p->before.path = g_strdup(p->existing->policy_path);
		if (!wanted)
			return p->before.text && keep_policy(p, error);
	}
	p->policy = policy_find(wanted, p->what.workspace, &p->after.profile, &p->after.path, error);
	if (!p->policy || !check_new_policy(p, error))
		return false;
	p->after.text = policy_to_ini(p->policy);
	return true;
}

/* The store */

static bool lock(struct plan *p, const char *name, GError **error)
{
	if (!view_change_begin(name, error))
		return false;
	p->locked = g_strdup(name);
	return true;
}

static bool put(struct store *s, const char *key, const char *value, GError **error)
{
	int r = store_set(s, key, value ? value : "");

	if (r < 0)
		tool_error_errno(error, r, store_dir(s), "store %s", store_dir(s));
	return r >= 0;
}

static bool put_policy(struct store *s, const struct in_force *f, GError **error)
{
	return policy_store_save(store_dir(s), f->text, error) && put(s, "profile", f->profile, error) &&
	       put(s, "policy-path", f->path, error);
}

static bool fill_store(const struct plan *p, struct store *s, GError **error)
{
	return put_policy(s, &p->after, error) && put(s, "mountpoint", p->what.mountpoint, error) &&
	       put(s, "socket", p->socket, error);
}

/*
 * Aside, and in its place when it is whole: a killed command leaves no sandbox that nobody can open, and of several that make the same one
 * the slower ones find it there.
 */
static bool make_store(struct plan *p, GError **error)
{
	g_autofree char *made = NULL;
	struct store *s;

	if (!paths_make_private_dir(p->state, error) || (!p->locked && !lock(p, p->what.name, error)))
		return false;
	store_dir_sweep(p->state);
	made = store_dir_making(p->what.store);
	s = store_create(made, p->what.workspace, error);
	p->made_store = s && fill_store(p, s, error);
	store_close(s);
	p->made_store = p->made_store && store_dir_place(made, p->what.store, error);
	if (!p->made_store)
		store_dir_drop(made);
	return p->made_store;
}

static bool prepare_store(struct plan *p, GError **error)
{
	g_autoptr(store_t) s = NULL;

	if (!p->existing)
		return make_store(p, error);
	s = store_open_patiently(p->what.store, error);
	return s && fill_store(p, s, error);
}

/* A commit that was killed half-way is finished before anybody sees the workspace through a view. */
static bool finish_commits(const struct plan *p, GError **error)
{
	g_autofree char *commits = g_build_filename(p->what.store, "commit", NULL);
	g_autoptr(attached_t) a = NULL;
	struct sandbox *s;

	if (!p->existing || !g_file_test(commits, G_FILE_TEST_EXISTS))
		return true;
	s = sandbox_load(p->what.name, error);
	a = s ? attached_open_sandbox(s, ATTACH_CONTROL, error) : NULL;
	return a && attached_recover(a, error);
}

static bool prepare_mountpoint(struct plan *p, GError **error)
{
	if (p->request->mountpoint || mount_is_stale(p->what.mountpoint))
		return true;
	p->made_mountpoint = true;
	return paths_make_private_dir(p->what.mountpoint, error);
}

/* Unless another command has found it meanwhile and works with it. */
static void remove_store(const struct plan *p)
{
	const struct sandbox s = { .name = p->what.name, .dir = p->what.store };
	int lock = sandbox_lock(&s, NULL);

	if (lock < 0)
		return;
	store_dir_remove(p->what.store, NULL);
	close(lock);
}

/* Back to how it was before the call. */
static void undo(struct plan *p)
{
	g_autoptr(store_t) s = NULL;

	if (p->made_mountpoint && g_rmdir(p->what.mountpoint) == 0) {
		g_autofree char *parent = g_path_get_dirname(p->what.mountpoint);

		g_rmdir(parent);
	}
	if (!p->existing) {
		if (p->made_store)
			remove_store(p);
		return;
	}
	s = p->before.text ? store_open(p->what.store, STORE_WRITE, NULL) : NULL;
	if (s)
		put_policy(s, &p->before, NULL);
}

/* In the foreground the process stays, but what it locked is for the mounting. */
static void is_served(void *plan)
{
	unlock(plan);
}

static bool mount_view(struct plan *p, mounting_announce announce, void *user, GError **error)
{
	const struct mount_options options = {
		.audit = &p->audit,
		.disk_limit = p->limits.value[LIMIT_DISK],
		.name = p->what.name,
		.store = p->what.store,
		.workspace = p->what.workspace,
		.mountpoint = p->what.mountpoint,
		.socket = p->socket,
		.extra = p->request->extra,
		.foreground = p->request->foreground || p->request->debug,
		.debug = p->request->debug,
		.ready = is_served,
		.ready_user = p,
	};

	if (options.foreground)
		announce(&p->what, user);
	if (!mount_run(&options, g_steal_pointer(&p->policy), error))
		return false;
	if (!options.foreground)
		announce(&p->what, user);
	return true;
}

static bool find(struct plan *p, GError **error)
{
	return resolve_workspace(p, error) && choose_sandbox(p, error);
}

static bool check(struct plan *p, GError **error)
{
	return clear_stale(p, error) &&
	       check_not_covered(p, error) && check_workspace(p, error) && check_own_places(p, error) && paths_make_private_dir(p->runtime, error) &&
	       choose_mountpoint(p, error) && choose_policy(p, error) &&
	       policy_check_hook(p->policy, error) && limits_read(p->policy, NULL, &p->limits, error) &&
	       audit_config_read(p->policy, p->what.name, p->what.workspace, p->what.mountpoint, &p->audit, error) && mounting_check_device(error);
}

/* Before anything is made, be it the directory of the locks. */
static char *find_name(struct plan *p, GError **error)
{
	p->state = paths_state_dir(error);
	p->runtime = paths_runtime_place();
	if (!p->state || !resolve_workspace(p, error) || !check_own_places(p, error))
		return NULL;
	if (p->request->name)
		return g_strdup(p->request->name);
	return use_default_name(p, error) ? g_steal_pointer(&p->what.name) : NULL;
}

char *mounting_name(const struct mount_request *request, GError **error)
{
	g_auto(plan_t) p = { .request = request };

	return find_name(&p, error);
}

/*
 * Nobody else mounts the sandbox, takes its view down or deletes it meanwhile. Which one it is may be another one when the lock is there. Where there is no
 * sandbox at all, none is locked: what is refused makes no directory.
 */
static bool lock_sandbox(struct plan *p, GError **error)
{
	bool same = !g_file_test(p->state, G_FILE_TEST_IS_DIR);

	while (!same) {
		g_autofree char *name = mounting_name(p->request, error);
		g_autofree char *now = NULL;

		if (!name || !lock(p, name, error))
			return false;
		now = mounting_name(p->request, error);
		if (!now)
			return false;
		same = g_str_equal(name, now);
		if (!same)
			unlock(p);
	}
	return true;
}

bool mounting_run(const struct mount_request *request, mounting_announce announce, void *user, GError **error)
{
	g_auto(plan_t) p = { .request = request };

	p.state = paths_state_dir(error);
	p.runtime = paths_runtime_place();
	if (!p.state || !lock_sandbox(&p, error) || !find(&p, error))
		return false;
	if (p.served_again) {
		p.what.mountpoint = g_strdup(p.existing->mountpoint);
		announce(&p.what, user);
		return true;
	}
	if (!check(&p, error))
		return false;
	if (prepare_store(&p, error) && finish_commits(&p, error) && prepare_mountpoint(&p, error) &&
	    mount_view(&p, announce, user, error))
		return true;
	undo(&p);
	return false;
}
