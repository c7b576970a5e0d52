/* SPDX-License-Identifier: MIT */
#include "layered.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/xattr.h"

#define OK(expr)                                                                                                       \
	do {                                                                                                           \
		int ok_r = (expr);                                                                                     \
		if (ok_r < 0)                                                                                          \
			g_error("%s:%d: %s: %s", __FILE__, __LINE__, #expr, g_strerror(-ok_r));                        \
	} while (0)

struct layered *layered_new(void)
{
	struct layered *l = g_new0(struct layered, 1);
	g_autofree char *store = NULL;
	g_autoptr(GError) error = NULL;

	/* Not g_dir_make_tmp(), which remembers the first TMPDIR. */
	l->dir = g_build_filename(g_getenv("TMPDIR") ? g_getenv("TMPDIR") : "/tmp", "sbxfs-test-XXXXXX", NULL);
	if (!g_mkdtemp(l->dir))
		g_error("%s: %s", l->dir, g_strerror(errno));
	l->workspace = g_build_filename(l->dir, "workspace", NULL);
	store = g_build_filename(l->dir, "store", NULL);
	g_assert_cmpint(g_mkdir(l->workspace, 0755), ==, 0);
	OK(lower_open(l->workspace, &l->lower));
	l->store = store_create(store, l->workspace, &error);
	g_assert_no_error(error);
	return l;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void layered_free(struct layered *l)
{
	store_close(l->store);
	lower_close(l->lower);
	nftw(l->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	g_free(l->workspace);
	g_free(l->dir);
	g_free(l);
}

/* The workspace */

static char *host_path(struct layered *l, const char *path)
{
	g_autofree char *full = g_build_filename(l->workspace, path, NULL);
	g_autofree char *parent = g_path_get_dirname(full);

	g_mkdir_with_parents(parent, 0755);
	return g_steal_pointer(&full);
}

void host_write(struct layered *l, const char *path, const void *data, size_t size, mode_t mode)
{
	g_autofree char *full = host_path(l, path);
	int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	/* Not g_file_set_contents(): it syncs, or (G_FILE_SET_CONTENTS_NONE in GLib 2.74) leaves the end of a longer file in place. */
	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpint(write(fd, data, size), ==, size);
	g_assert_cmpint(close(fd), ==, 0);
	g_assert_cmpint(chmod(full, mode), ==, 0);
}

void host_text(struct layered *l, const char *path, const char *text)
{
	host_write(l, path, text, strlen(text), 0644);
}

void host_symlink(struct layered *l, const char *path, const char *target)
{
	g_autofree char *full = host_path(l, path);

	g_assert_cmpint(symlink(target, full), ==, 0);
}

void host_replace(struct layered *l, const char *path, const char *target)
{
	g_autofree char *full = host_path(l, path);

	g_assert_cmpint(unlink(full), ==, 0);
	g_assert_cmpint(symlink(target, full), ==, 0);
}

void host_mkdir(struct layered *l, const char *path)
{
	g_autofree char *full = host_path(l, path);

	g_assert_cmpint(mkdir(full, 0755), ==, 0);
}

/* The view */

static void split(const char *path, char **ret_dir, char **ret_name)
{
	const char *slash = strrchr(path, '/');

	*ret_dir = slash ? g_strndup(path, slash - path) : g_strdup("");
	*ret_name = g_strdup(slash ? slash + 1 : path);
}

static struct entry *lookup(struct layered *l, const char *path)
{
	g_autoptr(tree_t) live = tree_open(l->store, l->lower, EPOCH_LIVE);
	struct entry *e = NULL;

	OK(tree_lookup_path(live, path, &e));
	return e;
}

static int64_t origin_of(struct layered *l, const char *path)
{
	struct origin o = { .path = g_strdup(path), .seen = nsec_now() };
	int64_t id;

	OK(lower_stat(l->lower, path, &o.print));
	OK(store_origin_add(l->store, &o));
	id = o.id;
	origin_clear(&o);
	return id;
}

static void make_row(struct layered *l, const char *path, struct node_row *ret);

/* What the workspace has at the very place of @path, if its directory merges one: 0 = nothing. */
static int64_t covered(struct layered *l, const char *dir, const char *name)
{
	g_autoptr(entry_t) e = lookup(l, dir);
	g_autofree char *path = e->lower ? path_join(e->lower, name) : NULL;
	struct fingerprint print;

	return path && lower_stat(l->lower, path, &print) == 0 ? origin_of(l, path) : 0;
}

static void put_name(struct layered *l, const char *path, uint64_t ino)
{
	g_autofree char *dir = NULL, *name = NULL;
	struct node_row parent = { 0 };
	struct name_row row = { 0 };
	int64_t covers;

	split(path, &dir, &name);
	make_row(l, dir, &parent);
	covers = covered(l, dir, name);
	row = (struct name_row){ .parent = parent.ino, .name = g_strdup(name), .ino = ino, .covers = covers };
	if (!ino && !covers)
		OK(store_name_drop(l->store, parent.ino, name));
	else
		OK(store_name_put(l->store, &row));
	name_row_clear(&row);
	node_row_clear(&parent);
}

/* The row of what is at @path; made when the workspace's own still shows there. */
static void make_row(struct layered *l, const char *path, struct node_row *ret)
{
	g_autoptr(entry_t) e = lookup(l, path);
	struct fingerprint print;

	g_assert_nonnull(e);
	if (e->ino)
		OK(store_node_get(l->store, EPOCH_LIVE, e->ino, ret));
	if (ret->ino)
		return;
	OK(lower_stat(l->lower, e->lower, &print));
	*ret = (struct node_row){ .ino = *path ? print.ino : ROOT_INO,
				  .attr = e->attr,
				  .origin = origin_of(l, e->lower) };
	OK(store_node_put(l->store, ret));
	if (*path)
		put_name(l, path, ret->ino);
}

static void new_node(struct layered *l, const char *path, mode_t mode, dev_t dev, const char *target)
{
	struct node_row n = {
		.ino = store_new_ino(l->store),
		.flags = NODE_OWN_ATTR | NODE_OWN_TIMES | NODE_OWN_XATTR,
		.attr = { .mode = mode, .uid = geteuid(), .gid = getegid(), .nlink = 1, .rdev = dev, .mtime = nsec_now() },
		.target = g_strdup(target)
	};

	OK(store_begin(l->store));
	OK(store_node_put(l->store, &n));
	put_name(l, path, n.ino);
	OK(store_commit(l->store));
	node_row_clear(&n);
}

void view_write(struct layered *l, const char *path, const void *data, size_t size)
{
	g_autoptr(entry_t) e = lookup(l, path);
	g_autoptr(content_t) content = NULL;
	struct node_row n = { 0 };

	if (!e)
		new_node(l, path, S_IFREG | 0644, 0, NULL);
	OK(store_begin(l->store));
	make_row(l, path, &n);
	g_assert_true(S_ISREG(n.attr.mode));
	OK(content_new(l->store, l->lower, &content));
	if (size)
		OK(content_write(content, data, size, 0));
	n.content = content_id(content);
	n.attr.size = size;
	n.attr.mtime = nsec_now();
	OK(store_node_put(l->store, &n));
	OK(store_commit(l->store));
	node_row_clear(&n);
}

void view_text(struct layered *l, const char *path, const char *text)
{
	view_write(l, path, text, strlen(text));
}

void view_touch(struct layered *l, const char *path)
{
	g_autoptr(tree_t) live = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(entry_t) e = lookup(l, path);
	g_autoptr(tree_file_t) f = NULL;
	g_autofree char *data = g_malloc(e->attr.size + 1);
	struct node_row n = { 0 };
	ssize_t size;

	OK(tree_file_open(live, e, &f));
	size = tree_file_read(f, data, e->attr.size, 0);
	g_assert_cmpint(size, ==, e->attr.size);
	view_write(l, path, data, size);
	OK(store_begin(l->store));
	make_row(l, path, &n);
	n.flags |= NODE_OWN_TIMES;
	n.attr.mtime += NSEC_PER_SEC;
	OK(store_node_put(l->store, &n));
	OK(store_commit(l->store));
	node_row_clear(&n);
}

void view_symlink(struct layered *l, const char *path, const char *target)
{
	new_node(l, path, S_IFLNK | 0777, 0, target);
}

void view_mkdir(struct layered *l, const char *path)
{
	new_node(l, path, S_IFDIR | 0755, 0, NULL);
}

void view_mkfifo(struct layered *l, const char *path)
{
	new_node(l, path, S_IFIFO | 0644, 0, NULL);
}

void view_device(struct layered *l, const char *path, dev_t dev)
{
	new_node(l, path, S_IFCHR | 0644, dev, NULL);
}

static void view_edit(struct layered *l, const char *path, void (*edit)(struct node_row *n, const void *arg),
		      const void *arg)
{
	struct node_row n = { 0 };

	OK(store_begin(l->store));
	make_row(l, path, &n);
	edit(&n, arg);
	OK(store_node_put(l->store, &n));
	OK(store_commit(l->store));
	node_row_clear(&n);
}

static void edit_mode(struct node_row *n, const void *arg)
{
	n->attr.mode = (n->attr.mode & S_IFMT) | *(const mode_t *)arg;
	n->flags |= NODE_OWN_ATTR;
}

static void edit_owner(struct node_row *n, const void *arg)
{
	n->attr.uid = n->attr.gid = *(const uid_t *)arg;
	n->flags |= NODE_OWN_ATTR;
}

static void edit_xattr(struct node_row *n, const void *arg)
{
	const char *const *pair = arg;
	GBytes *set = xattrs_with(n->xattrs, pair[0], pair[1], pair[1] ? strlen(pair[1]) : 0);

	g_clear_pointer(&n->xattrs, g_bytes_unref);
	n->xattrs = set;
	n->flags |= NODE_OWN_XATTR;
}

void view_chmod(struct layered *l, const char *path, mode_t mode)
{
	view_edit(l, path, edit_mode, &mode);
}

void view_chown(struct layered *l, const char *path, uid_t id)
{
	view_edit(l, path, edit_owner, &id);
}

void view_xattr(struct layered *l, const char *path, const char *name, const char *value)
{
	const char *pair[] = { name, value };

	view_edit(l, path, edit_xattr, pair);
}

void view_remove(struct layered *l, const char *path)
{
	OK(store_begin(l->store));
	put_name(l, path, 0);
	OK(store_commit(l->store));
}

static void move_name(struct layered *l, const char *from, const char *to, bool keep)
{
	struct node_row n = { 0 };

	OK(store_begin(l->store));
	make_row(l, from, &n);
	if (!keep)
		put_name(l, from, 0);
	put_name(l, to, n.ino);
	OK(store_commit(l->store));
	node_row_clear(&n);
}

void view_add_name(struct layered *l, const char *from, const char *to)
{
	move_name(l, from, to, true);
}

void view_rename(struct layered *l, const char *from, const char *to)
{
	move_name(l, from, to, false);
}

/* Looking */

GPtrArray *layered_changes(struct layered *l, int64_t from, int64_t to, const struct change_options *options)
{
	g_autoptr(tree_t) a = tree_open(l->store, l->lower, from), b = tree_open(l->store, l->lower, to);
	g_autoptr(GError) error = NULL;
	GPtrArray *changes = NULL;

	changes_between(a, b, options, &changes, &error);
	g_assert_no_error(error);
	return changes;
}

char *changes_text(GPtrArray *changes)
{
	GString *s = g_string_new(NULL);

	for (guint i = 0; i < changes->len; i++) {
		const struct change *c = g_ptr_array_index(changes, i);

		g_string_append_printf(s, "%c %s%s%s\n", c->status, c->from_path ? c->from_path : "",
				       c->from_path ? " -> " : "", c->path);
	}
	return g_string_free(s, FALSE);
}

static void list_files(struct tree *t, const struct entry *dir, const char *path, GHashTable *files)
{
	GPtrArray *list;

	OK(tree_list(t, dir, &list));
	for (guint i = 0; i < list->len; i++) {
		struct entry *e = g_ptr_array_index(list, i);
		char *child = path_join(path, e->name), *target;
		GString *s = g_string_new(NULL);
		uint8_t sha256[32];

		if (S_ISDIR(e->attr.mode)) {
			list_files(t, e, child, files);
		} else if (S_ISLNK(e->attr.mode)) {
			OK(tree_readlink(t, e, &target));
			g_string_append_printf(s, "symlink %s", target);
			g_free(target);
		} else if (S_ISREG(e->attr.mode)) {
			OK(tree_hash(t, e, sha256));
			g_string_append(s, e->attr.mode & S_IXUSR ? "executable " : "file ");
			for (int k = 0; k < 32; k++)
				g_string_append_printf(s, "%02x", sha256[k]);
		}
		if (s->len)
			g_hash_table_insert(files, g_steal_pointer(&child), g_strdup(s->str));
		g_free(child);
		g_string_free(s, TRUE);
	}
	g_ptr_array_unref(list);
}

static GHashTable *tree_files(struct tree *t)
{
	GHashTable *files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	g_autoptr(entry_t) root = NULL;

	OK(tree_root(t, &root));
	list_files(t, root, "", files);
	return files;
}

static char *one_sided(GHashTable *a, GHashTable *b)
{
	GHashTableIter iter;
	gpointer path, what;

	g_hash_table_iter_init(&iter, a);
	while (g_hash_table_iter_next(&iter, &path, &what)) {
		const char *other = g_hash_table_lookup(b, path);

		if (!other || strcmp(what, other) != 0)
			return g_strdup_printf("%s: %s, %s", (char *)path, (char *)what, other ? other : "missing");
	}
	return NULL;
}

char *trees_differ(struct tree *a, struct tree *b)
{
	g_autoptr(GHashTable) x = tree_files(a), y = tree_files(b);
	char *found = one_sided(x, y);

	return found ? found : one_sided(y, x);
}
