/* SPDX-License-Identifier: MIT */
#include "viewed.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "rules/policy.h"
#include "snapshot/apply.h"
#include "snapshot/store_private.h"
#include "snapshot/xattr.h"

#define OK(expr)                                                                                                                   \
	do {                                                                                                                       \
		int ok_r = (expr);                                                                                                 \
		if (ok_r < 0)                                                                                                      \
			g_error("%s:%d: %s: %s", __FILE__, __LINE__, #expr, g_strerror(-ok_r));                                    \
	} while (0)

struct caller somebody = { .uid = 1000, .gid = 1000, .umask = 022 };

/* Life */

static struct policy *load_policy(const char *rules)
{
	g_autofree char *text = g_strdup_printf("[profile t]\n[files t]\n%s\n", rules ? rules : "write = **");
	g_autoptr(GError) error = NULL;
	struct policy *p = policy_load_text(text, "t.ini", &error);

	g_assert_no_error(error);
	return p;
}

struct viewed *viewed_new(const char *rules)
{
	struct viewed *v = g_new0(struct viewed, 1);

	/* Owners arrive in the workspace only where whoever commits may give files away. */
	if (geteuid() != 0) {
		somebody.uid = geteuid();
		somebody.gid = getegid();
	}
	v->dir = g_dir_make_tmp("sbxfs-view-XXXXXX", NULL);
	v->workspace = g_build_filename(v->dir, "workspace", NULL);
	v->store_dir = g_build_filename(v->dir, "store", NULL);
	v->rules = g_strdup(rules);
	v->held = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	g_assert_cmpint(g_mkdir(v->workspace, 0755), ==, 0);
	return v;
}

void viewed_open(struct viewed *v)
{
	g_autoptr(GError) error = NULL;
	struct store *store = NULL;
	struct lower *lower;

	if (v->overlay)
		return;
	/* Longer than a tick of the kernel's clock: what the workspace has is older than what the sandbox does. */
	g_usleep(30000);
	store = g_file_test(v->store_dir, G_FILE_TEST_IS_DIR) ? store_open(v->store_dir, STORE_WRITE, &error)
							      : store_create(v->store_dir, v->workspace, &error);
	g_assert_no_error(error);
	OK(lower_open(v->workspace, &lower));
	v->overlay = overlay_new(store, lower, load_policy(v->rules));
}

static void run(const char *format, ...) G_GNUC_PRINTF(1, 2);
static void run(const char *format, ...)
{
	g_autofree char *command = NULL;
	va_list args;

	va_start(args, format);
	command = g_strdup_vprintf(format, args);
	va_end(args);
	g_assert_cmpint(system(command), ==, 0);
}

/* The store as whoever comes after a kill -9 finds it. Caller frees. */
static char *store_copy(struct viewed *v)
{
	char *copy = g_strconcat(v->store_dir, "-copy", NULL);

	run("rm -rf '%s' && cp -a '%s' '%s'", copy, v->store_dir, copy);
	return copy;
}

void viewed_close(struct viewed *v)
{
	if (v->overlay) {
		struct store *s = overlay_store(v->overlay);

		/* Only who has the lock commits at the end what was promised. */
		close(s->lock_fd);
		s->lock_fd = -1;
	}
	overlay_free(g_steal_pointer(&v->overlay));
	g_hash_table_remove_all(v->held);
}

void viewed_reopen(struct viewed *v)
{
	viewed_close(v);
	viewed_open(v);
}

void viewed_free(struct viewed *v)
{
	overlay_free(v->overlay);
	run("chmod -R u+rwx '%s'; rm -rf '%s'", v->dir, v->dir);
	g_hash_table_unref(v->held);
	g_free(v->dir);
	g_free(v->workspace);
	g_free(v->store_dir);
	g_free(v->rules);
	g_free(v);
}

/* The workspace */

char *host_path(struct viewed *v, const char *path)
{
	return g_build_filename(v->workspace, path, NULL);
}

void host_text(struct viewed *v, const char *path, const char *text)
{
	g_autofree char *full = host_path(v, path), *parent = g_path_get_dirname(full);

	g_mkdir_with_parents(parent, 0755);
	g_assert_true(g_file_set_contents_full(full, text, -1, G_FILE_SET_CONTENTS_NONE, 0644, NULL));
	g_assert_cmpint(chmod(full, 0644), ==, 0);
}

void host_dir(struct viewed *v, const char *path)
{
	g_autofree char *full = host_path(v, path);

	g_assert_cmpint(g_mkdir_with_parents(full, 0755), ==, 0);
}

void host_run(struct viewed *v, const char *command)
{
	g_autofree char *all = g_strdup_printf("cd '%s' && { %s; }", v->workspace, command);

	if (system(all) != 0)
		g_error("failed: %s", command);
}

/* The kernel */

static void kernel_hold(struct viewed *v, uint64_t ino)
{
	uint64_t *count = g_hash_table_lookup(v->held, &ino);

	if (!count) {
		count = g_new0(uint64_t, 1);
		g_hash_table_insert(v->held, g_memdup2(&ino, sizeof(ino)), count);
	}
	++*count;
}

uint64_t kernel_walk(struct viewed *v, const char *path, int *ret_error)
{
	g_auto(GStrv) parts = g_strsplit(path, "/", -1);
	uint64_t ino = ROOT_INO;

	viewed_open(v);
	*ret_error = 0;
	for (char **part = parts; *part; part++) {
		struct overlay_entry e;
		int r;

		if (!**part)
			continue;
		r = overlay_lookup(v->overlay, ino, *part, &e);
		if (r < 0 || !e.ino) {
			*ret_error = r < 0 ? r : -ENOENT;
			return 0;
		}
		kernel_hold(v, e.ino);
		ino = e.ino;
	}
	return ino;
}

void kernel_forget(struct viewed *v, uint64_t ino)
{
	uint64_t *count = g_hash_table_lookup(v->held, &ino);

	if (!count)
		return;
	overlay_forget(v->overlay, ino, *count);
	g_hash_table_remove(v->held, &ino);
}

void kernel_forget_all(struct viewed *v)
{
	GHashTableIter iter;
	gpointer ino, count;

	g_hash_table_iter_init(&iter, v->held);
	while (g_hash_table_iter_next(&iter, &ino, &count))
		overlay_forget(v->overlay, *(uint64_t *)ino, *(uint64_t *)count);
	g_hash_table_remove_all(v->held);
}

/* System calls */

/* The directory of @path, and its last part, borrowed from @path. */
static uint64_t walk_parent(struct viewed *v, const char *path, const char **ret_name, int *ret_error)
{
	const char *slash = strrchr(path, '/');
	g_autofree char *dir = slash ? g_strndup(path, slash - path) : g_strdup("");

	*ret_name = slash ? slash + 1 : path;
	return kernel_walk(v, dir, ret_error);
}

int view_stat(struct viewed *v, const char *path, struct attr *ret)
{
	struct overlay_entry e;
	int r;
	uint64_t ino = kernel_walk(v, path, &r);

	if (ino)
		r = overlay_getattr(v->overlay, ino, false, &e);
	if (r == 0)
		*ret = e.attr;
	return r;
}

uint64_t view_ino(struct viewed *v, const char *path)
{
	int r;

	return kernel_walk(v, path, &r);
}

/* A kernel looks a name up before it makes it. */
static uint64_t walk_new(struct viewed *v, const char *path, const char **ret_name, int *ret_error)
{
	uint64_t dir = walk_parent(v, path, ret_name, ret_error);
	struct overlay_entry e;
	int r = dir ? overlay_lookup(v->overlay, dir, *ret_name, &e) : *ret_error;

	if (r < 0) {
		*ret_error = r;
		return 0;
	}
	if (e.ino)
		kernel_hold(v, e.ino);
	return dir;
}

int view_create(struct viewed *v, const char *path, uint32_t mode)
{
	struct overlay_entry e;
	const char *name;
	int r;
	uint64_t dir = walk_new(v, path, &name, &r);

	if (dir)
		r = overlay_mknod(v->overlay, dir, name, mode, 0, &somebody, &e);
	if (r == 0)
		kernel_hold(v, e.ino);
	return r;
}

int view_mkdir(struct viewed *v, const char *path)
{
	struct overlay_entry e;
	const char *name;
	int r;
	uint64_t dir = walk_new(v, path, &name, &r);

	if (dir)
		r = overlay_mkdir(v->overlay, dir, name, 0755, &somebody, &e);
	if (r == 0)
		kernel_hold(v, e.ino);
	return r;
}

int view_symlink(struct viewed *v, const char *target, const char *path)
{
	struct overlay_entry e;
	const char *name;
	int r;
	uint64_t dir = walk_new(v, path, &name, &r);

	if (dir)
		r = overlay_symlink(v->overlay, target, dir, name, &somebody, &e);
	if (r == 0)
		kernel_hold(v, e.ino);
	return r;
}

int view_link(struct viewed *v, const char *from, const char *to)
{
	struct overlay_entry e;
	const char *name;
	int r;
	uint64_t ino = kernel_walk(v, from, &r), dir;

	if (!ino)
		return r;
	dir = walk_new(v, to, &name, &r);
	if (dir)
		r = overlay_link(v->overlay, ino, dir, name, &e);
	if (r == 0)
		kernel_hold(v, e.ino);
	return r;
}

int view_unlink(struct viewed *v, const char *path)
{
	const char *name;
	int r;
	uint64_t dir = walk_new(v, path, &name, &r);

	return dir ? overlay_unlink(v->overlay, dir, name) : r;
}

int view_rmdir(struct viewed *v, const char *path)
{
	const char *name;
	int r;
	uint64_t dir = walk_new(v, path, &name, &r);

	return dir ? overlay_rmdir(v->overlay, dir, name) : r;
}

int view_rename(struct viewed *v, const char *from, const char *to, unsigned int flags)
{
	const char *name, *new_name;
	int r;
	uint64_t dir = walk_new(v, from, &name, &r), new_dir;

	if (!dir)
		return r;
	new_dir = walk_new(v, to, &new_name, &r);
	return new_dir ? overlay_rename(v->overlay, dir, name, new_dir, new_name, flags) : r;
}

int view_write(struct viewed *v, const char *path, const void *data, size_t size, uint64_t offset)
{
	int r;
	uint64_t ino = kernel_walk(v, path, &r);

	return ino ? overlay_write(v->overlay, ino, data, size, offset, &somebody) : r;
}

static int set_attr(struct viewed *v, const char *path, unsigned int set, const struct attr *a)
{
	struct overlay_entry e;
	int r;
	uint64_t ino = kernel_walk(v, path, &r);

	return ino ? overlay_setattr(v->overlay, ino, set, a, &somebody, &e) : r;
}

int view_truncate(struct viewed *v, const char *path, uint64_t size)
{
	return set_attr(v, path, SET_SIZE, &(struct attr){ .size = size });
}

int view_chmod(struct viewed *v, const char *path, uint32_t mode)
{
	return set_attr(v, path, SET_MODE, &(struct attr){ .mode = mode });
}

int view_chown(struct viewed *v, const char *path, uint32_t uid, uint32_t gid)
{
	return set_attr(v, path, SET_UID | SET_GID, &(struct attr){ .uid = uid, .gid = gid });
}

int view_utimens(struct viewed *v, const char *path, int64_t ns)
{
	return set_attr(v, path, SET_ATIME | SET_MTIME, &(struct attr){ .atime = ns, .mtime = ns });
}

int view_text(struct viewed *v, const char *path, const char *text)
{
	int r = view_create(v, path, 0644);

	if (r == -EEXIST)
		r = view_truncate(v, path, 0);
	return r < 0 ? r : view_write(v, path, text, strlen(text), 0);
}

int view_append(struct viewed *v, const char *path, const char *text)
{
	struct attr a;
	int r = view_stat(v, path, &a);

	return r < 0 ? r : view_write(v, path, text, strlen(text), a.size);
}

int view_setxattr(struct viewed *v, const char *path, const char *name, const char *value)
{
	int r;
	uint64_t ino = kernel_walk(v, path, &r);

	if (!ino)
		return r;
	return value ? overlay_setxattr(v->overlay, ino, name, value, strlen(value), 0)
		     : overlay_removexattr(v->overlay, ino, name);
}

int view_getxattr(struct viewed *v, const char *path, const char *name, char **ret)
{
	g_autoptr(GBytes) value = NULL;
	int r;
	uint64_t ino = kernel_walk(v, path, &r);

	if (ino)
		r = overlay_getxattr(v->overlay, ino, name, &value);
	if (r == 0)
		*ret = g_strndup(g_bytes_get_data(value, NULL), g_bytes_get_size(value));
	return r;
}

static int read_all(struct overlay *o, uint64_t ino, GByteArray **ret)
{
	g_autoptr(GByteArray) all = g_byte_array_new();
	char buf[16384];
	ssize_t n;

	while ((n = overlay_read(o, ino, buf, sizeof(buf), all->len)) > 0)
		g_byte_array_append(all, (guint8 *)buf, n);
	if (n == 0)
		*ret = g_steal_pointer(&all);
	return n;
}

int view_read_ino(struct viewed *v, uint64_t ino, char **ret)
{
	GByteArray *all;
	int r = read_all(v->overlay, ino, &all);

	if (r < 0)
		return r;
	g_byte_array_append(all, (guint8 *)"", 1);
	*ret = (char *)g_byte_array_free(all, FALSE);
	return 0;
}

int view_read(struct viewed *v, const char *path, char **ret)
{
	int r;
	uint64_t ino = kernel_walk(v, path, &r);

	return ino ? view_read_ino(v, ino, ret) : r;
}

int view_readlink(struct viewed *v, const char *path, char **ret)
{
	int r;
	uint64_t ino = kernel_walk(v, path, &r);

	return ino ? overlay_readlink(v->overlay, ino, ret) : r;
}

static bool list_one(const char *name, const struct overlay_entry *entry, uint64_t next_offset, void *user)
{
	(void)entry;
	(void)next_offset;
	if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
		g_ptr_array_add(user, g_strdup(name));
	return true;
}

static gint name_order(gconstpointer a, gconstpointer b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list_names(struct overlay *o, uint64_t ino, GPtrArray **ret)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
	int r = overlay_readdir(o, ino, 0, false, list_one, names);

	if (r < 0)
		return r;
	g_ptr_array_sort(names, name_order);
	*ret = g_steal_pointer(&names);
	return 0;
}

int view_list(struct viewed *v, const char *path, char **ret)
{
	g_autoptr(GPtrArray) names = NULL;
	int r;
	uint64_t ino = kernel_walk(v, path, &r);

	if (ino)
		r = list_names(v->overlay, ino, &names);
	if (r < 0)
		return r;
	g_ptr_array_add(names, NULL);
	*ret = g_strjoinv(" ", (char **)names->pdata);
	return 0;
}

/* States */

int64_t view_snapshot(struct viewed *v, const char *name)
{
	int64_t epoch;

	viewed_open(v);
	OK(overlay_snapshot(v->overlay, name, &epoch));
	return epoch;
}

void view_rollback(struct viewed *v, int64_t epoch, const char *paths)
{
	static int number;
	g_autofree char *name = g_strdup_printf("@rollback-%d-%d", (int)getpid(), number++);
	g_auto(GStrv) list = paths ? g_strsplit(paths, " ", -1) : NULL;
	uint64_t names, nodes;

	view_snapshot(v, name);
	OK(overlay_rollback(v->overlay, epoch, (const char *const *)list, true, &names, &nodes));
}

struct committing {
	struct viewed *view;
	struct store *store;
	struct lower *lower;
	struct tree *from, *to;
	GPtrArray *changes;
	struct selection *selection;
	struct apply_job job;
};

void view_commit_free(struct committing *c)
{
	if (c->view->overlay)
		overlay_unpin(c->view->overlay, c->job.epoch);
	g_ptr_array_unref(c->job.changes);
	selection_free(c->selection);
	g_clear_pointer(&c->changes, g_ptr_array_unref);
	tree_close(c->from);
	tree_close(c->to);
	lower_close(c->lower);
	store_close(c->store);
	g_free(c);
}

struct committing *view_commit_begin(struct viewed *v, const char *paths)
{
	g_auto(GStrv) list = paths ? g_strsplit(paths, " ", -1) : NULL;
	struct change_options options = { .paths = (const char *const *)list };
	struct committing *c = g_new0(struct committing, 1);
	g_autoptr(GError) error = NULL;
	int64_t epoch;

	c->view = v;
	viewed_open(v);
	OK(overlay_pin(v->overlay, &epoch));
	OK(overlay_flush(v->overlay));
	c->store = store_open(v->store_dir, STORE_READ, &error);
	g_assert_no_error(error);
	OK(lower_open(v->workspace, &c->lower));
	c->to = tree_open(c->store, c->lower, epoch);
	c->from = tree_open(c->store, c->lower, TREE_LOWER);
	c->job = (struct apply_job){ .store = c->store, .lower = c->lower, .to = c->to, .epoch = epoch };
	changes_between(c->from, c->to, &options, &c->job.changes, &error);
	g_assert_no_error(error);
	return c;
}

bool view_commit_end(struct viewed *v, struct committing *c)
{
	g_autoptr(GPtrArray) conflicts = NULL, written = changes_paths(c->job.changes);
	g_autoptr(GError) error = NULL;
	struct apply_result result = { 0 };
	int r;

	g_ptr_array_add(written, NULL);
	OK(overlay_keep(v->overlay, c->job.epoch, (const char *const *)written->pdata));
	r = apply_changes(&c->job, &result, &conflicts, &error);

	g_assert_no_error(error);
	OK(r);
	for (guint i = 0; conflicts && i < conflicts->len; i++) {
		const struct conflict *x = g_ptr_array_index(conflicts, i);

		g_printerr("conflict: %s %s: %s, %s, %s\n", conflict_kind_name(x->kind), x->path, x->base, x->workspace,
			   x->sandbox);
	}
	if (!conflicts) {
		g_ptr_array_add(result.paths, NULL);
		g_ptr_array_add(result.partial, NULL);
		OK(overlay_settle(v->overlay, result.epoch, (const char *const *)result.paths->pdata,
				  (const char *const *)result.partial->pdata));
		g_ptr_array_set_size(result.paths, result.paths->len - 1);
		if (result.id)
			apply_finish(c->store, result.id, &error);
		g_assert_no_error(error);
		apply_result_clear(&result);
	}
	view_commit_free(c);
	return !conflicts;
}

GPtrArray *view_commit_paths(struct committing *c)
{
	return changes_paths(c->job.changes);
}

void view_commit_choose(struct committing *c, void (*choose)(struct selection *s, void *user), void *user)
{
	g_autoptr(GError) error = NULL;

	c->changes = c->job.changes;
	c->selection = selection_new(c->changes, c->from, c->to);
	choose(c->selection, user);
	selection_taken(c->selection, &c->job.changes, &error);
	g_assert_no_error(error);
}

/* An undo under the live view: what this shows at each point */

extern void (*boundary_hook)(const char *what); /* of snapshot/journal.h, some names of which fs/overlay.h has too */

static struct {
	struct viewed *view;
	char *before;
	unsigned points;
} undoing;

static void check_shown(const char *what)
{
	g_autofree char *now = NULL;

	if (strcmp(what, "step undone") != 0)
		return;
	now = view_describe(undoing.view, DESCRIBE_MTIME | DESCRIBE_OWNER);
	if (!describe_same(undoing.before, now))
		g_error("at point %u of an undo the view shows something else", undoing.points);
	undoing.points++;
}

int view_unfollow(const struct apply_result *undone, void *user, GError **error)
{
	struct viewed *v = user;
	int r;

	g_ptr_array_add(undone->paths, NULL);
	r = overlay_unfollow(v->overlay, undone->epoch, (const char *const *)undone->paths->pdata);
	g_ptr_array_set_size(undone->paths, undone->paths->len - 1);
	if (r < 0)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "unfollow: %d", r);
	return r;
}

int view_refollow(const struct apply_result *undone, void *user, GError **error)
{
	struct viewed *v = user;
	int r;

	g_ptr_array_add(undone->paths, NULL);
	r = overlay_refollow(v->overlay, undone->epoch, (const char *const *)undone->paths->pdata);
	g_ptr_array_set_size(undone->paths, undone->paths->len - 1);
	if (r < 0)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "refollow: %d", r);
	return r;
}

unsigned view_undo_looked_at(struct viewed *v)
{
	undoing.view = v;
	undoing.before = view_describe(v, DESCRIBE_MTIME | DESCRIBE_OWNER);
	undoing.points = 0;
	boundary_hook = check_shown;
	view_undo(v);
	boundary_hook = NULL;
	g_clear_pointer(&undoing.before, g_free);
	return undoing.points;
}

void view_undo(struct viewed *v)
{
	const struct undo_view view = { .begins = view_unfollow, .returns = view_refollow, .user = v };
	struct committing *c = view_commit_begin(v, NULL);
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	struct apply_result result = { 0 };

	apply_undo_check(c->store, c->lower, NULL, &result, &conflicts, &error);
	g_assert_no_error(error);
	g_assert_null(conflicts);
	g_ptr_array_add(result.paths, NULL);
	OK(overlay_keep(v->overlay, result.epoch, (const char *const *)result.paths->pdata));
	g_ptr_array_set_size(result.paths, result.paths->len - 1);
	apply_result_clear(&result);
	apply_undo(c->store, c->lower, NULL, &view, &result, &conflicts, &error);
	g_assert_no_error(error);
	g_assert_null(conflicts);
	g_ptr_array_add(result.paths, NULL);
	OK(overlay_unsettle(v->overlay, result.epoch, (const char *const *)result.paths->pdata));
	g_ptr_array_set_size(result.paths, result.paths->len - 1);
	apply_finish(c->store, result.id, &error);
	g_assert_no_error(error);
	apply_result_clear(&result);
	view_commit_free(c);
}

bool view_commit(struct viewed *v, const char *paths)
{
	return view_commit_end(v, view_commit_begin(v, paths));
}

char *view_changes(struct viewed *v)
{
	struct committing *c = view_commit_begin(v, NULL);
	GString *s = g_string_new(NULL);

	for (guint i = 0; i < c->job.changes->len; i++) {
		const struct change *x = g_ptr_array_index(c->job.changes, i);

		g_string_append_printf(s, "%c %s%s%s\n", x->status, x->from_path ? x->from_path : "", x->from_path ? " -> " : "",
				       x->path);
	}
	view_commit_free(c);
	return g_string_free(s, FALSE);
}

/* Describing */

static void describe_xattr(const char *name, const void *value, size_t size, void *user)
{
	if (g_str_has_prefix(name, "user."))
		g_string_append_printf(user, " %s=%.*s", name, (int)size, (const char *)value);
}

static void describe_attr(GString *line, uint64_t ino, const struct attr *a, unsigned int what)
{
	uint32_t mode = S_ISLNK(a->mode) ? (a->mode & S_IFMT) : a->mode;

	g_string_append_printf(line, " %o", mode);
	if (!S_ISDIR(a->mode))
		g_string_append_printf(line, " %" G_GUINT64_FORMAT, a->size);
	if ((what & DESCRIBE_LINKS) && (!S_ISDIR(a->mode) || (what & DESCRIBE_INO)))
		g_string_append_printf(line, " x%u", a->nlink);
	if (what & DESCRIBE_INO)
		g_string_append_printf(line, " #%" G_GUINT64_FORMAT, ino);
	if (what & DESCRIBE_TIMES)
		g_string_append_printf(line, " %" G_GINT64_FORMAT "/%" G_GINT64_FORMAT, a->mtime, a->ctime);
	if ((what & DESCRIBE_MTIME) && !S_ISDIR(a->mode))
		g_string_append_printf(line, " %" G_GINT64_FORMAT, a->mtime);
	if (what & DESCRIBE_OWNER)
		g_string_append_printf(line, " %u:%u", a->uid, a->gid);
}

static void describe_sum(GString *line, const void *data, size_t size)
{
	g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, size);

	g_string_append_printf(line, " %.16s", sum);
}

static void describe_node(struct overlay *o, uint64_t ino, const char *path, unsigned int what, GPtrArray *lines)
{
	g_autoptr(GByteArray) names = NULL, data = NULL;
	GString *line = g_string_new(path);
	g_autofree char *target = NULL;
	struct overlay_entry e;
	int r = overlay_getattr(o, ino, false, &e);

	if (r < 0) {
		g_string_append_printf(line, " stat: %s", g_strerror(-r));
		g_ptr_array_add(lines, g_string_free(line, FALSE));
		return;
	}
	describe_attr(line, ino, &e.attr, what);
	r = S_ISREG(e.attr.mode) ? read_all(o, ino, &data) : 0;
	if (r < 0)
		g_string_append_printf(line, " read: %s", g_strerror(-r));
	else if (S_ISREG(e.attr.mode))
		describe_sum(line, data->data, data->len);
	if (S_ISLNK(e.attr.mode) && overlay_readlink(o, ino, &target) == 0)
		g_string_append_printf(line, " -> %s", target);
	if (overlay_listxattr(o, ino, &names) == 0) {
		for (const char *name = (char *)names->data; name && name < (char *)names->data + names->len;
		     name += strlen(name) + 1) {
			g_autoptr(GBytes) value = NULL;

			if (overlay_getxattr(o, ino, name, &value) == 0)
				describe_xattr(name, g_bytes_get_data(value, NULL), g_bytes_get_size(value), line);
		}
	}
	g_ptr_array_add(lines, g_string_free(line, FALSE));
}

static void describe_below(struct overlay *o, uint64_t dir, const char *path, unsigned int what, GPtrArray *lines)
{
	g_autoptr(GPtrArray) names = NULL;
	int r = list_names(o, dir, &names);

	if (r < 0) {
		g_ptr_array_add(lines, g_strdup_printf("%s/ list: %s", path, g_strerror(-r)));
		return;
	}
	for (guint i = 0; i < names->len; i++) {
		const char *name = g_ptr_array_index(names, i);
		g_autofree char *child = *path ? g_strconcat(path, "/", name, NULL) : g_strdup(name);
		struct overlay_entry e = { 0 };

		r = overlay_lookup(o, dir, name, &e);
		if (r < 0 || !e.ino) {
			g_ptr_array_add(lines, g_strdup_printf("%s lookup: %s", child, r < 0 ? g_strerror(-r) : "absent"));
			continue;
		}
		describe_node(o, e.ino, child, what, lines);
		if (S_ISDIR(e.attr.mode))
			describe_below(o, e.ino, child, what, lines);
		overlay_forget(o, e.ino, 1);
	}
}

static void paths_below(struct overlay *o, uint64_t dir, const char *path, GPtrArray *paths)
{
	g_autoptr(GPtrArray) names = NULL;

	OK(list_names(o, dir, &names));
	for (guint i = 0; i < names->len; i++) {
		const char *name = g_ptr_array_index(names, i);
		char *child = *path ? g_strconcat(path, "/", name, NULL) : g_strdup(name);
		struct overlay_entry e = { 0 };

		OK(overlay_lookup(o, dir, name, &e));
		g_ptr_array_add(paths, child);
		if (S_ISDIR(e.attr.mode))
			paths_below(o, e.ino, child, paths);
		overlay_forget(o, e.ino, 1);
	}
}

GPtrArray *view_paths(struct viewed *v)
{
	GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);

	viewed_open(v);
	paths_below(v->overlay, ROOT_INO, "", paths);
	return paths;
}

static char *lines_text(GPtrArray *lines)
{
	char *text;

	g_ptr_array_sort(lines, name_order);
	g_ptr_array_add(lines, NULL);
	text = g_strjoinv("\n", (char **)lines->pdata);
	g_ptr_array_unref(lines);
	return text;
}

static char *overlay_describe(struct overlay *o, unsigned int what)
{
	GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);

	describe_below(o, ROOT_INO, "", what, lines);
	return lines_text(lines);
}

char *view_describe(struct viewed *v, unsigned int what)
{
	viewed_open(v);
	return overlay_describe(v->overlay, what);
}

char *fresh_describe(struct viewed *v, unsigned int what)
{
	g_autofree char *copy = store_copy(v);
	g_autoptr(GError) error = NULL;
	struct store *store = store_open(copy, STORE_WRITE, &error);
	struct overlay *o;
	struct lower *lower;
	char *text;

	g_assert_no_error(error);
	OK(lower_open(v->workspace, &lower));
	o = overlay_new(store, lower, load_policy(v->rules));
	text = overlay_describe(o, what);
	overlay_free(o);
	run("rm -rf '%s'", copy);
	return text;
}

static void describe_disk_node(const char *full, const char *path, unsigned int what, GPtrArray *lines, struct stat *ret)
{
	GString *line = g_string_new(path);
	g_autofree char *data = NULL;
	char names[4096], value[4096];
	struct attr a;
	ssize_t n;
	gsize size;

	g_assert_cmpint(lstat(full, ret), ==, 0);
	a = (struct attr){ .mode = ret->st_mode,
			   .nlink = ret->st_nlink,
			   .uid = ret->st_uid,
			   .gid = ret->st_gid,
			   .size = ret->st_size,
			   .mtime = nsec_from_timespec(ret->st_mtim),
			   .ctime = nsec_from_timespec(ret->st_ctim) };
	describe_attr(line, ret->st_ino, &a, what);
	if (S_ISREG(a.mode)) {
		g_assert_true(g_file_get_contents(full, &data, &size, NULL));
		describe_sum(line, data, size);
	} else if (S_ISLNK(a.mode)) {
		data = g_file_read_link(full, NULL);
		g_string_append_printf(line, " -> %s", data);
	}
	n = llistxattr(full, names, sizeof(names));
	for (const char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
		ssize_t have = lgetxattr(full, name, value, sizeof(value));

		if (have >= 0)
			describe_xattr(name, value, have, line);
	}
	g_ptr_array_add(lines, g_string_free(line, FALSE));
}

static void describe_disk_below(const char *dir, const char *path, unsigned int what, GPtrArray *lines)
{
	GDir *d = g_dir_open(dir, 0, NULL);
	const char *name;

	g_assert_nonnull(d);
	while ((name = g_dir_read_name(d))) {
		g_autofree char *full = g_build_filename(dir, name, NULL);
		g_autofree char *child = *path ? g_strconcat(path, "/", name, NULL) : g_strdup(name);
		struct stat st;

		describe_disk_node(full, child, what, lines, &st);
		if (S_ISDIR(st.st_mode))
			describe_disk_below(full, child, what, lines);
	}
	g_dir_close(d);
}

char *disk_describe(const char *dir, unsigned int what)
{
	GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);

	describe_disk_below(dir, "", what, lines);
	return lines_text(lines);
}

bool describe_same(const char *a, const char *b)
{
	g_auto(GStrv) x = g_strsplit(a, "\n", -1), y = g_strsplit(b, "\n", -1);

	if (strcmp(a, b) == 0)
		return true;
	for (char **line = x; *line; line++)
		if (!g_strv_contains((const char *const *)y, *line))
			g_printerr("- %s\n", *line);
	for (char **line = y; *line; line++)
		if (!g_strv_contains((const char *const *)x, *line))
			g_printerr("+ %s\n", *line);
	return false;
}

int64_t view_unreachable_rows(struct viewed *v)
{
	struct db_query *q = db_query(store_db(overlay_store(v->overlay)),
				      "WITH RECURSIVE up (ino) AS (VALUES (1) UNION SELECT n.ino FROM name n JOIN up ON n.parent = up.ino "
				      "WHERE n.died = 9223372036854775807 AND n.ino != 0) "
				      "SELECT count(*) FROM name WHERE died = 9223372036854775807 AND parent NOT IN up");
	int64_t count;

	overlay_lock(v->overlay);
	g_assert_cmpint(db_step(q), ==, 1);
	count = db_int(q, 0);
	db_done(q);
	overlay_unlock(v->overlay);
	return count;
}

void view_check(struct viewed *v)
{
	/* Twice: the first walk of a view may write rows (another name of a changed inode). */
	g_free(view_describe(v, 0));
	{
		g_autofree char *memory = view_describe(v, DESCRIBE_INO | DESCRIBE_TIMES | DESCRIBE_LINKS);
		g_autofree char *disk = fresh_describe(v, DESCRIBE_INO | DESCRIBE_TIMES | DESCRIBE_LINKS);

		g_assert_true(describe_same(memory, disk));
		g_assert_cmpint(view_unreachable_rows(v), ==, 0);
	}
}

int64_t view_rows(struct viewed *v, const char *table)
{
	static const char *const tables[] = { "node", "name", "content" };
	static const char *const texts[] = { "SELECT count(*) FROM node WHERE died = 9223372036854775807",
					     "SELECT count(*) FROM name WHERE died = 9223372036854775807",
					     "SELECT count(*) FROM content" };
	int64_t count = -1;

	viewed_open(v);
	overlay_lock(v->overlay);
	for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
		struct db_query *q;

		if (strcmp(tables[i], table) != 0)
			continue;
		q = db_query(store_db(overlay_store(v->overlay)), texts[i]);
		g_assert_cmpint(db_step(q), ==, 1);
		count = db_int(q, 0);
		db_done(q);
	}
	overlay_unlock(v->overlay);
	return count;
}
