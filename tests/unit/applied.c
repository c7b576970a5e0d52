/* SPDX-License-Identifier: MIT */
#include "applied.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "snapshot/xattr.h"

#define OK(expr) \
	do { \
		int ok_r = (expr); \
		if (ok_r < 0) \
			g_error("%s:%d: %s: %s", __FILE__, __LINE__, #expr, g_strerror(-ok_r)); \
	} while (0)

bool links_arrive = true;

/* Committing */

void committing_init(struct committing *c, struct layered *l, const char *const *paths)
{
	static int number;
	struct change_options options = { .paths = paths };
	g_autofree char *name = g_strdup_printf("@commit-%d-%d", (int)getpid(), number++);
	int64_t epoch;

	OK(store_snapshot_create(l->store, name, &epoch));
	*c = (struct committing){ .to = tree_open(l->store, l->lower, epoch) };
	c->job = (struct apply_job){ .store = l->store, .lower = l->lower, .to = c->to, .epoch = epoch };
	c->job.changes = layered_changes(l, TREE_LOWER, epoch, &options);
}

void committing_clear(struct committing *c)
{
	g_ptr_array_unref(c->job.changes);
	tree_close(c->to);
}

void commit_ok(struct layered *l, struct apply_result *ret)
{
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	g_autofree char *want = NULL, *got = NULL;
	struct apply_result result = { 0 };
	struct committing c;
	int r;

	committing_init(&c, l, NULL);
	want = tree_describe(c.to);
	r = apply_changes(&c.job, &result, &conflicts, &error);
	g_assert_no_error(error);
	g_assert_cmpint(r, ==, 0);
	for (guint i = 0; conflicts && i < conflicts->len; i++) {
		const struct conflict *x = g_ptr_array_index(conflicts, i);

		g_error("conflict: %s %s: %s, %s, %s", conflict_kind_name(x->kind), x->path, x->base, x->workspace, x->sandbox);
	}
	got = disk_describe(l->workspace);
	g_assert_true(describe_same(want, got));
	if (result.id)
		apply_finish(l->store, result.id, &error);
	g_assert_no_error(error);
	if (ret)
		*ret = result;
	else
		apply_result_clear(&result);
	committing_clear(&c);
}

static gint conflict_order(gconstpointer a, gconstpointer b)
{
	const struct conflict *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

char *commit_refused(struct layered *l)
{
	g_autoptr(GPtrArray) conflicts = NULL, found = NULL;
	g_autoptr(GError) error = NULL;
	g_autofree char *before = disk_describe(l->workspace), *after = NULL;
	struct apply_result result = { 0 };
	GString *text = g_string_new(NULL);
	struct committing c;

	committing_init(&c, l, NULL);
	OK(conflicts_find(&c.job, &found, &error));
	OK(apply_changes(&c.job, &result, &conflicts, &error));
	g_assert_no_error(error);
	after = disk_describe(l->workspace);
	if (conflicts) {
		g_assert_true(describe_same(before, after));
		g_assert_cmpint(found->len, ==, conflicts->len);
		g_ptr_array_sort(conflicts, conflict_order);
	} else {
		apply_result_clear(&result);
	}
	for (guint i = 0; conflicts && i < conflicts->len; i++) {
		const struct conflict *x = g_ptr_array_index(conflicts, i);

		g_string_append_printf(text, "%s %s\n", conflict_kind_name(x->kind), x->path);
	}
	committing_clear(&c);
	return g_string_free(text, FALSE);
}

/* Describing. Both sides go through the same tree interface: the disk is a tree without rows. */

struct describer {
	struct tree *tree;
	GHashTable *names; /* inode or row -> the first of its names */
	GPtrArray *lines;
};

static void describe_xattr(const char *name, const void *value, size_t size, void *user)
{
	if (g_str_has_prefix(name, "user."))
		g_string_append_printf(user, " %s=%.*s", name, (int)size, (const char *)value);
}

static void describe_bytes(struct tree *t, const struct entry *e, GString *line)
{
	uint8_t sha256[32];
	char *target;

	if (S_ISREG(e->attr.mode)) {
		OK(tree_hash(t, e, sha256));
		g_string_append_printf(line, " %" G_GUINT64_FORMAT " ", e->attr.size);
		for (int k = 0; k < 8; k++)
			g_string_append_printf(line, "%02x", sha256[k]);
	} else if (S_ISLNK(e->attr.mode)) {
		OK(tree_readlink(t, e, &target));
		g_string_append_printf(line, " -> %s", target);
		g_free(target);
	}
}

/* A name of a file that has been met by another one says so: what shows the workspace's is told by that inode, what has its own bytes by its row. */
static void describe_link(struct describer *d, const struct entry *e, const char *path, GString *line)
{
	bool shows = e->lower && e->content == 0;
	struct fingerprint print = { 0 };
	char *key;
	const char *first;

	if (S_ISDIR(e->attr.mode) || !links_arrive)
		return;
	if (shows)
		OK(lower_stat(tree_lower(d->tree), e->lower, &print));
	key = g_strdup_printf("%s %" G_GUINT64_FORMAT, shows ? "inode" : "row", shows ? print.ino : e->ino);
	first = g_hash_table_lookup(d->names, key);
	if (first)
		g_string_append_printf(line, " = %s", first);
	else
		g_hash_table_insert(d->names, g_steal_pointer(&key), g_strdup(path));
	g_free(key);
}

static void describe_dir(struct describer *d, const struct entry *dir, const char *path)
{
	GPtrArray *list;

	OK(tree_list(d->tree, dir, &list));
	for (guint i = 0; i < list->len; i++) {
		struct entry *e = g_ptr_array_index(list, i);
		g_autofree char *child = path_join(path, e->name);
		GString *line = g_string_new(child);
		GBytes *xattrs = NULL;

		g_string_append_printf(line, " %o %u:%u", S_ISLNK(e->attr.mode) ? S_IFLNK : e->attr.mode, e->attr.uid, e->attr.gid);
		describe_bytes(d->tree, e, line);
		if (!S_ISDIR(e->attr.mode))
			g_string_append_printf(line, " %" G_GINT64_FORMAT, e->attr.mtime);
		OK(change_xattrs(d->tree, e, &xattrs));
		xattrs_foreach(xattrs, describe_xattr, line);
		g_clear_pointer(&xattrs, g_bytes_unref);
		describe_link(d, e, child, line);
		g_ptr_array_add(d->lines, g_string_free(line, FALSE));
		if (S_ISDIR(e->attr.mode))
			describe_dir(d, e, child);
	}
	g_ptr_array_unref(list);
}

static gint line_order(gconstpointer a, gconstpointer b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *tree_describe(struct tree *t)
{
	struct describer d = { .tree = t, .lines = g_ptr_array_new_with_free_func(g_free) };
	struct entry *root;
	char *text;

	d.names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	OK(tree_root(t, &root));
	describe_dir(&d, root, "");
	g_hash_table_unref(d.names);
	entry_free(root);
	g_ptr_array_sort(d.lines, line_order);
	g_ptr_array_add(d.lines, NULL);
	text = g_strjoinv("\n", (char **)d.lines->pdata);
	g_ptr_array_unref(d.lines);
	return text;
}

char *disk_describe(const char *dir)
{
	struct lower *l;
	struct tree *t;
	char *text;

	OK(lower_open(dir, &l));
	t = tree_open(NULL, l, TREE_LOWER);
	text = tree_describe(t);
	tree_close(t);
	lower_close(l);
	return text;
}

bool describe_same(const char *a, const char *b)
{
	g_auto(GStrv) x = g_strsplit(a, "\n", -1), y = g_strsplit(b, "\n", -1);
	guint i = 0;

	while (x[i] && y[i] && strcmp(x[i], y[i]) == 0)
		i++;
	if (!x[i] && !y[i])
		return true;
	g_printerr("differ: '%s', '%s'\n", x[i] ? x[i] : "(end)", y[i] ? y[i] : "(end)");
	return false;
}

/* Workspace and view */

char *host_at(struct layered *l, const char *path)
{
	return g_build_filename(l->workspace, path, NULL);
}

char *host_read(struct layered *l, const char *path)
{
	g_autofree char *full = host_at(l, path);
	char *text = NULL;

	g_file_get_contents(full, &text, NULL, NULL);
	return text;
}

bool host_on_tmpfs(struct layered *l)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", l->workspace, "tmpfs", 0, NULL) < 0)
		return false;
	links_arrive = false;
	lower_close(l->lower);
	OK(lower_open(l->workspace, &l->lower));
	return true;
}

void tick(void)
{
	g_usleep(30 * 1000);
}

void host_hardlink(struct layered *l, const char *from, const char *to)
{
	g_autofree char *a = host_at(l, from), *b = host_at(l, to);

	g_assert_cmpint(link(a, b), ==, 0);
}

void view_hardlink(struct layered *l, const char *from, const char *to)
{
	g_autoptr(tree_t) live = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autofree char *dir = g_path_get_dirname(to), *name = g_path_get_basename(to);
	g_autoptr(entry_t) e = NULL, parent = NULL;
	struct node_row n = { 0 };
	struct name_row row;

	/* Gives both the file and the directory a row. */
	OK(tree_lookup_path(live, from, &e));
	view_chmod(l, from, e->attr.mode & 07777);
	if (strcmp(dir, ".") != 0) {
		g_autoptr(entry_t) d = NULL;

		OK(tree_lookup_path(live, dir, &d));
		view_chmod(l, dir, d->attr.mode & 07777);
	}
	g_clear_pointer(&e, entry_free);
	OK(tree_lookup_path(live, from, &e));
	OK(tree_lookup_path(live, strcmp(dir, ".") == 0 ? "" : dir, &parent));
	OK(store_begin(l->store));
	OK(store_node_get(l->store, EPOCH_LIVE, e->ino, &n));
	n.attr.nlink++;
	OK(store_node_put(l->store, &n));
	row = (struct name_row){ .parent = parent->ino, .name = name, .ino = n.ino };
	OK(store_name_put(l->store, &row));
	OK(store_commit(l->store));
	node_row_clear(&n);
}

/* The scene */

void scene_host(struct layered *l)
{
	g_autofree char *big = g_malloc(300000);

	memset(big, 'o', 300000);
	host_text(l, "edit.txt", "one\n");
	host_text(l, "mode.sh", "#!/bin/sh\n");
	host_text(l, "xattr.txt", "x\n");
	host_text(l, "dir/kept.txt", "kept\n");
	host_text(l, "dir/gone.txt", "gone\n");
	host_write(l, "dir/big.bin", big, 300000, 0640);
	host_text(l, "moved-from/1", "1\n");
	host_text(l, "moved-from/2", "2\n");
	host_text(l, "moved-from/deep/3", "3\n");
	host_write(l, "moved-from/4", "4\n", 2, 0755);
	host_symlink(l, "moved-from/link", "deep/3");
	host_text(l, "tree-gone/a", "a\n");
	host_text(l, "tree-gone/b/c", "c\n");
	host_mkdir(l, "tree-gone/empty");
	host_text(l, "to-dir", "was a file\n");
	host_text(l, "to-file/inside", "was below a directory\n");
	host_symlink(l, "symlink", "edit.txt");
	host_symlink(l, "link-to-file", "edit.txt");
	host_text(l, "swap-a", "a\n");
	host_text(l, "swap-b", "bb\n");
	host_text(l, "single", "single\n");
	host_text(l, "h1", "linked\n");
	host_hardlink(l, "h1", "h2");
	host_text(l, "k1", "three names\n");
	host_hardlink(l, "k1", "k2");
	host_hardlink(l, "k1", "dir/k3");
	host_text(l, "k-over", "gives way\n");
}

/* tmpfs has user xattrs only since Linux 6.6. */
static bool has_xattrs(const char *dir)
{
	bool has = setxattr(dir, "user.sbxfs-probe", "", 0, 0) == 0;

	removexattr(dir, "user.sbxfs-probe");
	return has;
}

void scene_view(struct layered *l)
{
	g_autofree char *big = g_malloc(200000);

	memset(big, 'n', 200000);
	if (has_xattrs(l->workspace))
		view_xattr(l, "xattr.txt", "user.sbxfs-test", "yes");
	view_text(l, "edit.txt", "one\ntwo\n");
	view_chmod(l, "mode.sh", 0755);
	view_write(l, "dir/big.bin", big, 200000);
	view_remove(l, "dir/gone.txt");
	view_mkdir(l, "dir/new");
	view_text(l, "dir/new/n", "n\n");
	view_mkdir(l, "dir/new/empty");
	view_chmod(l, "dir/new/empty", 0750);
	view_rename(l, "moved-from", "moved-to");
	view_text(l, "moved-to/2", "2, edited\n");
	view_remove(l, "moved-to/4");
	view_remove(l, "tree-gone");
	view_remove(l, "to-dir");
	view_mkdir(l, "to-dir");
	view_text(l, "to-dir/f", "f\n");
	view_remove(l, "to-file");
	view_text(l, "to-file", "a file now\n");
	view_remove(l, "symlink");
	view_symlink(l, "symlink", "elsewhere/not/there");
	view_remove(l, "link-to-file");
	view_text(l, "link-to-file", "no link\n");
	view_rename(l, "swap-a", "swap-t");
	view_rename(l, "swap-b", "swap-a");
	view_rename(l, "swap-t", "swap-b");
	view_rename(l, "single", "dir/single");
	view_mkfifo(l, "fifo");
	view_text(l, "l1", "two names\n");
	view_hardlink(l, "l1", "l2");
	view_text(l, "h1", "unlinked\n");
	/* Its names in the workspace stay, go, and get something else; one is in the place of another file. */
	view_hardlink(l, "k1", "dir/new/k4");
	view_remove(l, "k-over");
	view_rename(l, "k1", "k-over");
	view_text(l, "k1", "another\n");
	view_remove(l, "dir/k3");
}
