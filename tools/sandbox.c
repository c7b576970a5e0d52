/* SPDX-License-Identifier: MIT */
#include "tools/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fs/control.h"
#include "snapshot/store.h"
#include "tools/exit.h"
#include "tools/paths.h"

void sandbox_free(struct sandbox *s)
{
	if (!s)
		return;
	g_free(s->name);
	g_free(s->dir);
	g_free(s->workspace);
	g_free(s->mountpoint);
	g_free(s->socket);
	g_free(s->profile);
	g_free(s->policy_path);
	g_free(s->problem);
	g_free(s);
}

bool sandbox_is_out_of_reach(GError **error)
{
	if (!g_getenv("SBXFS"))
		return false;
	tool_error(error, EXIT_PLATFORM, NULL,
		   "this program is confined (SBXFS is set): no sandbox can be reached or made in here; call sbxfs outside of the run");
	return true;
}

/* Names */

static bool is_name_char(char c)
{
	return g_ascii_isalnum(c) || (c && strchr("._+-", c));
}

bool sandbox_name_is_valid(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > SANDBOX_NAME_MAX || !(g_ascii_isalnum(*name) || *name == '_'))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_name_char(name[i]))
			return false;
	return true;
}

char *sandbox_name_from(const char *workspace)
{
	g_autofree char *base = g_path_get_basename(workspace);
	char *start = base;

	/* Room is left for a number behind it. */
	if (strlen(base) > SANDBOX_NAME_MAX - 8)
		base[SANDBOX_NAME_MAX - 8] = '\0';
	for (char *c = base; *c; c++)
		if (!is_name_char(*c))
			*c = '_';
	while (*start && !(g_ascii_isalnum(*start) || *start == '_'))
		start++;
	return g_strdup(*start && !g_str_equal(start, "_") ? start : "root");
}

/* Reading */

#define WAIT_STEP_US (20 * 1000)
#define WAIT_STEPS 500	    /* 10 s */
#define WAIT_LOCK_STEPS 100 /* 2 s: another command is soon done; a view is not */

int sandbox_lock(const struct sandbox *s, GError **error)
{
	g_autofree char *path = g_build_filename(s->dir, "lock", NULL);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0) {
		tool_error_errno(error, -errno, path, "%s", path);
		return -1;
	}
	for (int i = error ? WAIT_LOCK_STEPS : 1; i > 0; i--) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		if (i > 1)
			g_usleep(WAIT_STEP_US);
	}
	close(fd);
	tool_error(error, EXIT_BUSY, s->name, "sandbox %s is in use by another process (see %s)", s->name, path);
	return -1;
}

bool sandbox_is_locked(const char *dir)
{
	g_autofree char *path = g_build_filename(dir, "lock", NULL);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool locked;

	if (fd < 0)
		return false;
	locked = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return locked;
}

static void sandbox_read(struct sandbox *s)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(store_t) index = store_open(s->dir, STORE_READ, &error);

	if (!index) {
		s->problem = g_strdup(error->message);
		return;
	}
	s->workspace = store_get(index, "workspace");
	s->mountpoint = store_get(index, "mountpoint");
	s->socket = store_get(index, "socket");
	s->profile = store_get(index, "profile");
	s->policy_path = store_get(index, "policy-path");
	if (!s->workspace)
		s->problem = g_strdup_printf("store %s does not say which workspace it belongs to", s->dir);
}

/*
 * Mounted, the store in somebody's hands, and nobody answers: another process takes over from one that died; or it is dying together with the one
 * that would, and lets go of the store soon.
 */
static struct control *connect_patiently(const struct sandbox *s)
{
	struct control *control = sandbox_connect(s, NULL);

	for (int i = 0; i < WAIT_STEPS && !control && s->mounted && s->socket && sandbox_is_locked(s->dir); i++) {
		g_usleep(WAIT_STEP_US);
		control = sandbox_connect(s, NULL);
	}
	return control;
}

static struct sandbox *sandbox_load_from(const char *state, const char *name)
{
	g_autofree char *index = g_build_filename(state, name, "store.db", NULL);
	struct sandbox *s;
	struct control *control;

	if (!sandbox_name_is_valid(name) || !g_file_test(index, G_FILE_TEST_IS_REGULAR))
		return NULL;
	s = g_new0(struct sandbox, 1);
	s->name = g_strdup(name);
	s->dir = g_build_filename(state, name, NULL);
	sandbox_read(s);
	s->mounted = sandbox_is_mounted(s);
	control = connect_patiently(s);
	s->live = control != NULL;
	g_clear_pointer(&control, control_close);
	return s;
}

struct sandbox *sandbox_load(const char *name, GError **error)
{
	g_autofree char *state = paths_state_dir(error);
	struct sandbox *s = state ? sandbox_load_from(state, name) : NULL;

	if (state && !s)
		tool_error(error, EXIT_NOT_FOUND, name, "there is no sandbox '%s'; `sbxfs list` shows them", name);
	return s;
}

static int compare_names(gconstpointer a, gconstpointer b)
{
	return strcmp((*(struct sandbox *const *)a)->name, (*(struct sandbox *const *)b)->name);
}

GPtrArray *sandbox_list(GError **error)
{
	g_autofree char *state = paths_state_dir(error);
	GPtrArray *all;
	GDir *dir;
	const char *name;

	if (!state)
		return NULL;
	all = g_ptr_array_new_with_free_func((GDestroyNotify)sandbox_free);
	dir = g_dir_open(state, 0, NULL);
	while (dir && (name = g_dir_read_name(dir))) {
		struct sandbox *s = sandbox_load_from(state, name);

		if (s)
			g_ptr_array_add(all, s);
	}
	g_clear_pointer(&dir, g_dir_close);
	g_ptr_array_sort(all, compare_names);
	return all;
}

/* One line of mountinfo: "36 35 98:0 /root /mountpoint options optional... - type source options". */
static void mount_line_read(const char *line, const char *mountpoint, char **ret_source)
{
	g_auto(GStrv) fields = g_strsplit(line, " ", -1);
	g_autofree char *at = g_strv_length(fields) > 6 ? g_strcompress(fields[4]) : NULL;
	unsigned i = 6;

	if (!at || !g_str_equal(at, mountpoint))
		return;
	while (fields[i] && !g_str_equal(fields[i], "-"))
		i++;
	g_clear_pointer(ret_source, g_free);
	if (fields[i] && fields[i + 1] && fields[i + 2] && g_str_equal(fields[i + 1], "fuse.sbxfs"))
		*ret_source = g_strcompress(fields[i + 2]);
}

char *sandbox_view_at(const char *mountpoint)
{
	g_autofree char *table = NULL;
	g_auto(GStrv) lines = NULL;
	char *source = NULL;

	if (!g_file_get_contents("/proc/self/mountinfo", &table, NULL, NULL))
		return NULL;
	lines = g_strsplit(table, "\n", -1);
	/* Of several, the last one is on top. */
	for (char **line = lines; *line; line++)
		mount_line_read(*line, mountpoint, &source);
	return source;
}

bool sandbox_is_mounted(const struct sandbox *s)
{
	g_autofree char *source = s->mountpoint ? sandbox_view_at(s->mountpoint) : NULL;

	/* Another one may have taken the mountpoint over. */
	return g_strcmp0(source, s->name) == 0;
}

const char *sandbox_state(const struct sandbox *s)
{
	if (s->problem)
		return "damaged";
	if (s->live)
		return "mounted";
	return s->mounted ? "stale" : "unmounted";
}

/* The socket that a killed process left behind refuses the connection. */
struct control *sandbox_connect(const struct sandbox *s, GError **error)
{
	if (s->socket && g_file_test(s->socket, G_FILE_TEST_EXISTS))
		return control_connect(s->socket, error);
	tool_error(error, EXIT_NOT_FOUND, s->name, "sandbox %s is not mounted", s->name);
	return NULL;
}

bool sandbox_open_workspace(const struct sandbox *s, struct lower **ret, GError **error)
{
	int r = lower_open(s->workspace, ret);

	if (r == -ENOTCONN)
		tool_error(error, EXIT_BUSY, s->workspace,
			   "the view on top of %s has lost its process; `sbxfs umount %s` clears it", s->workspace,
			   s->name);
	else if (r < 0)
		tool_error_errno(error, r, s->workspace, "the workspace %s of sandbox %s", s->workspace, s->name);
	return r >= 0;
}

/* Choosing */

static bool is_path(const char *target)
{
	return strchr(target, '/') || g_str_equal(target, ".") || g_str_equal(target, "..");
}

static struct sandbox *find_name(GPtrArray *all, const char *name)
{
	for (unsigned i = 0; i < all->len; i++) {
		struct sandbox *s = all->pdata[i];

		if (g_str_equal(s->name, name))
			return s;
	}
	return NULL;
}

/* Where views are nested, the innermost one has the path. */
static struct sandbox *find_view(GPtrArray *all, const char *path)
{
	struct sandbox *best = NULL;

	for (unsigned i = 0; i < all->len; i++) {
		struct sandbox *s = all->pdata[i];

		if (!s->mounted || !s->mountpoint || !paths_below(path, s->mountpoint))
			continue;
		if (!best || strlen(s->mountpoint) > strlen(best->mountpoint))
			best = s;
	}
	return best;
}

/* The sandboxes of the innermost workspace (or, without @by_workspace, of the last mountpoint) that @path lies in. */
static GPtrArray *find_around(GPtrArray *all, const char *path, bool by_workspace)
{
	GPtrArray *found = g_ptr_array_new();
	size_t best = 0;

	for (unsigned i = 0; i < all->len; i++) {
		struct sandbox *s = all->pdata[i];
		const char *dir = by_workspace ? s->workspace : s->mountpoint;

		if (!dir || !paths_below(path, dir) || strlen(dir) < best)
			continue;
		if (strlen(dir) > best)
			g_ptr_array_set_size(found, 0);
		best = strlen(dir);
		g_ptr_array_add(found, s);
	}
	return found;
}

static char *names_of(GPtrArray *sandboxes)
{
	GString *names = g_string_new(NULL);

	for (unsigned i = 0; i < sandboxes->len; i++)
		g_string_append_printf(names, "%s%s", i ? ", " : "", ((struct sandbox *)sandboxes->pdata[i])->name);
	return g_string_free(names, FALSE);
}

static GPtrArray *live_of(GPtrArray *all)
{
	GPtrArray *live = g_ptr_array_new();

	for (unsigned i = 0; i < all->len; i++)
		if (((struct sandbox *)all->pdata[i])->live)
			g_ptr_array_add(live, all->pdata[i]);
	return live;
}

/* By its view, its workspace, or where it was mounted last. @ret_several: more than one fits. */
static struct sandbox *find_path(GPtrArray *all, const char *path, GPtrArray **ret_several)
{
	struct sandbox *s = find_view(all, path);
	g_autoptr(GPtrArray) found = NULL;

	if (s)
		return s;
	found = find_around(all, path, true);
	if (found->len == 0) {
		g_ptr_array_unref(found);
		found = find_around(all, path, false);
	}
	if (found->len == 1)
		return found->pdata[0];
	if (found->len > 1)
		*ret_several = g_steal_pointer(&found);
	return NULL;
}

static struct sandbox *choose_without_target(GPtrArray *all, const char *cwd, GError **error)
{
	g_autoptr(GPtrArray) several = NULL;
	struct sandbox *s = find_path(all, cwd, &several);
	g_autoptr(GPtrArray) live = live_of(several ? several : all);
	g_autofree char *names = names_of(several ? several : all);

	if (s)
		return s;
	if (live->len == 1)
		return live->pdata[0];
	if (all->len == 0 && !sandbox_is_out_of_reach(error))
		tool_error(error, EXIT_NOT_FOUND, NULL,
			   "there are no sandboxes yet; `sbxfs mount WORKSPACE` makes one");
	else if (all->len > 0)
		tool_error(error, EXIT_USAGE, cwd, "which sandbox? %s does not tell; name one of: %s", cwd, names);
	return NULL;
}

struct sandbox *sandbox_choose(GPtrArray *all, const char *target, const char *cwd, GError **error)
{
	g_autoptr(GPtrArray) several = NULL;
	g_autofree char *path = NULL;
	g_autofree char *names = NULL;
	struct sandbox *s;

	if (!target)
		return choose_without_target(all, cwd, error);
	s = is_path(target) ? NULL : find_name(all, target);
	if (s)
		return s;
	path = g_canonicalize_filename(target, cwd);
	s = find_path(all, path, &several);
	if (s)
		return s;
	if (several) {
		names = names_of(several);
		tool_error(error, EXIT_USAGE, target, "%s is the workspace of several sandboxes; name one of: %s",
			   target, names);
		return NULL;
	}
	tool_error(error, EXIT_NOT_FOUND, target, "there is no sandbox '%s'; `sbxfs list` shows them", target);
	return NULL;
}

static struct sandbox *resolve_among_all(const char *target, GError **error)
{
	g_autoptr(GPtrArray) all = sandbox_list(error);
	g_autofree char *cwd = paths_cwd();
	g_autofree char *real = target ? paths_resolve(target) : NULL;
	struct sandbox *s;
	unsigned index;

	if (!all)
		return NULL;
	/* Recorded paths have no symlinks. */
	s = sandbox_choose(all, real ? real : target, cwd, error);
	return s && g_ptr_array_find(all, s, &index) ? g_ptr_array_steal_index(all, index) : NULL;
}

struct sandbox *sandbox_resolve(const char *target, GError **error)
{
	g_autofree char *state = paths_state_dir(error);
	struct sandbox *s;

	if (!state)
		return NULL;
	/* A word that is a sandbox's name is not looked up as a path, and the others need not be read. */
	s = target && !is_path(target) ? sandbox_load_from(state, target) : NULL;
	return s ? s : resolve_among_all(target, error);
}
