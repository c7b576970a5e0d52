/* SPDX-License-Identifier: MIT */
/*
 * test-overlay-model - random operations on a view and on a plain directory, which must agree
 *
 * After each batch the view, the directory and another view that is opened on the store as it is on the disk are walked and compared.
 * Between the operations come snapshots, rollbacks, commits, restarts and FORGETs; some operations fail at every one of their writes to the
 * store, one after the other, and must leave no trace. SBXFS_TEST_SEED and SBXFS_TEST_ROUNDS change the runs.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "faults.h"
#include "snapshot/gc.h"
#include "viewed.h"

#define HANDLES 4

struct handle {
	uint64_t ino; /* 0 = free */
	int fd;
};

struct run {
	struct viewed *v;
	char *model;
	GRand *rand;
	guint64 dropped;      /* by gc */
	GPtrArray *snapshots; /* of int64_t: the directory model-N holds each */
	struct handle handles[HANDLES];
	unsigned int taken;
	bool verbose;
};

static int shell(const char *format, ...) G_GNUC_PRINTF(1, 2);
static int shell(const char *format, ...)
{
	va_list args;
	g_autofree char *command = NULL;

	va_start(args, format);
	command = g_strdup_vprintf(format, args);
	va_end(args);
	return system(command);
}

static unsigned int dice(struct run *r, unsigned int sides)
{
	return g_rand_int_range(r->rand, 0, sides);
}

/* Names */

static void collect(const char *dir, const char *path, GPtrArray *all)
{
	GDir *d = g_dir_open(dir, 0, NULL);
	const char *name;

	while ((name = g_dir_read_name(d))) {
		g_autofree char *full = g_build_filename(dir, name, NULL);
		char *child = *path ? g_strconcat(path, "/", name, NULL) : g_strdup(name);
		struct stat st;

		g_ptr_array_add(all, child);
		if (lstat(full, &st) == 0 && S_ISDIR(st.st_mode))
			collect(full, child, all);
	}
	g_dir_close(d);
}

static gint path_order(gconstpointer a, gconstpointer b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *pick_path(struct run *r)
{
	g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(g_free);
	const char *name = &"a\0b\0c\0d\0e\0f"[dice(r, 6) * 2];
	char *found;

	collect(r->model, "", all);
	g_ptr_array_sort(all, path_order);
	if (all->len == 0 || dice(r, 12) == 0)
		return g_strdup(name);
	found = g_ptr_array_index(all, dice(r, all->len));
	return dice(r, 3) == 0 ? g_strconcat(found, "/", name, NULL) : g_strdup(found);
}

static char *model_path(struct run *r, const char *path)
{
	return g_build_filename(r->model, path, NULL);
}

/* A kernel follows links and so would never ask for this. */
static bool goes_through_link(struct run *r, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		g_autofree char *part = g_strndup(path, slash - path), *full = model_path(r, part);
		struct stat st;

		if (lstat(full, &st) == 0 && S_ISLNK(st.st_mode))
			return true;
	}
	return false;
}

static uint32_t model_type(struct run *r, const char *path)
{
	g_autofree char *full = model_path(r, path);
	struct stat st;

	return lstat(full, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

/* Operations */

enum kind {
	OP_CREATE,
	OP_MKDIR,
	OP_SYMLINK,
	OP_LINK,
	OP_UNLINK,
	OP_RMDIR,
	OP_RENAME,
	OP_WRITE,
	OP_TRUNCATE,
	OP_CHMOD,
	OP_XATTR,
	OP_UTIMENS,
	OP_COUNT,
};

struct op {
	enum kind kind;
	char *path, *to;
	unsigned int flags;
	uint64_t offset;
	GBytes *data;
};

static void op_clear(struct op *op)
{
	g_free(op->path);
	g_free(op->to);
	g_clear_pointer(&op->data, g_bytes_unref);
}

static int op_in_view(struct viewed *v, const struct op *op)
{
	gsize size;
	const void *data = g_bytes_get_data(op->data, &size);

	switch (op->kind) {
	case OP_CREATE:
		return view_create(v, op->path, 0644);
	case OP_MKDIR:
		return view_mkdir(v, op->path);
	case OP_SYMLINK:
		return view_symlink(v, op->to, op->path);
	case OP_LINK:
		return view_link(v, op->path, op->to);
	case OP_UNLINK:
		return view_unlink(v, op->path);
	case OP_RMDIR:
		return view_rmdir(v, op->path);
	case OP_RENAME:
		return view_rename(v, op->path, op->to, op->flags);
	case OP_WRITE:
		return view_write(v, op->path, data, size, op->offset);
	case OP_TRUNCATE:
		return view_truncate(v, op->path, op->offset);
	case OP_CHMOD:
		return view_chmod(v, op->path, op->flags);
	case OP_XATTR:
		return view_setxattr(v, op->path, "user.t", op->flags ? op->to : NULL);
	case OP_UTIMENS:
		return view_utimens(v, op->path, op->offset);
	case OP_COUNT:
		break;
	}
	return -EINVAL;
}

static int op_in_model(struct run *r, const struct op *op)
{
	g_autofree char *path = model_path(r, op->path), *to = op->to ? model_path(r, op->to) : NULL;
	struct timespec times[2] = { nsec_to_timespec(op->offset), nsec_to_timespec(op->offset) };
	gsize size;
	const void *data = g_bytes_get_data(op->data, &size);
	int fd, n = 0;

	switch (op->kind) {
	case OP_CREATE:
		n = fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
		if (fd >= 0)
			close(fd);
		break;
	case OP_MKDIR:
		n = mkdir(path, 0755);
		break;
	case OP_SYMLINK:
		n = symlink(op->to, path);
		break;
	case OP_LINK:
		n = link(path, to);
		break;
	case OP_UNLINK:
		n = unlink(path);
		break;
	case OP_RMDIR:
		n = rmdir(path);
		break;
	case OP_RENAME:
		n = renameat2(AT_FDCWD, path, AT_FDCWD, to, op->flags);
		break;
	case OP_WRITE:
		n = fd = open(path, O_WRONLY);
		if (fd >= 0) {
			assert_int_equal(pwrite(fd, data, size, op->offset), size);
			close(fd);
		}
		break;
	case OP_TRUNCATE:
		n = truncate(path, op->offset);
		break;
	case OP_CHMOD:
		n = chmod(path, op->flags);
		break;
	case OP_XATTR:
		n = op->flags ? setxattr(path, "user.t", op->to, strlen(op->to), 0) : removexattr(path, "user.t");
		break;
	case OP_UTIMENS:
		n = utimensat(AT_FDCWD, path, times, 0);
		break;
	case OP_COUNT:
		break;
	}
	return n < 0 ? -errno : 0;
}

static GBytes *pick_data(struct run *r)
{
	gsize size = dice(r, 4) ? dice(r, 200) + 1 : dice(r, 200000) + 1;
	guint8 *data = g_malloc(size);

	memset(data, 'a' + dice(r, 26), size);
	return g_bytes_new_take(data, size);
}

static const char *const op_names[] = { "create", "mkdir", "symlink",  "link",	"unlink", "rmdir",
					"rename", "write", "truncate", "chmod", "xattr",  "utimens" };

/* False when it is nothing that a kernel would ask. */
static bool op_pick(struct run *r, struct op *op)
{
	uint32_t type;

	*op = (struct op){ .kind = dice(r, OP_COUNT), .path = pick_path(r), .data = pick_data(r) };
	type = model_type(r, op->path);
	if (goes_through_link(r, op->path))
		return false;
	switch (op->kind) {
	case OP_SYMLINK:
		op->to = g_strdup_printf("nowhere/%u", dice(r, 100));
		break;
	case OP_LINK:
	case OP_RENAME:
		op->to = pick_path(r);
		if (op->kind == OP_RENAME)
			op->flags = (const unsigned int[]){ 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE }[dice(r, 4)];
		return !goes_through_link(r, op->to) && (op->kind == OP_RENAME || type != S_IFDIR);
	case OP_WRITE:
	case OP_TRUNCATE:
		op->offset = dice(r, 3) ? dice(r, 100) : dice(r, 150000);
		return type == S_IFREG;
	case OP_UTIMENS:
		op->offset = dice(r, 1000000) * UINT64_C(1000003);
		return type == S_IFREG || type == S_IFDIR;
	case OP_CHMOD:
		op->flags = (const unsigned int[]){ 0644, 0755, 0600, 0700 }[dice(r, 4)];
		/* The model is a directory that its owner has to get through; the view here has no kernel in front of it. */
		if (type == S_IFDIR && geteuid() != 0)
			op->flags |= 0100;
		return type == S_IFREG || type == S_IFDIR;
	case OP_XATTR:
		op->flags = dice(r, 3);
		op->to = g_strdup_printf("value%u", dice(r, 100));
		return type == S_IFREG || type == S_IFDIR;
	default:
		break;
	}
	return true;
}

/* The operation with its first, second, ... write to the store failing, until it needs no more of them. Returns what it says at last. */
static int op_with_faults(struct run *r, const struct op *op)
{
	const unsigned int all = DESCRIBE_INO | DESCRIBE_TIMES | DESCRIBE_LINKS;
	g_autofree char *before = NULL;

	g_free(view_describe(r->v, 0));
	before = view_describe(r->v, all);
	for (unsigned int n = 1;; n++) {
		g_autofree char *after = NULL, *fresh = NULL;
		bool fired;
		int got;

		fault_arm(n, dice(r, 2) ? -EIO : -ENOSPC);
		got = op_in_view(r->v, op);
		fired = fault_disarm();
		if (!fired || got == 0)
			return got;
		after = view_describe(r->v, all);
		fresh = fresh_describe(r->v, all);
		/* As after any failed write(2), bytes of a large file may be the new ones already. */
		if ((op->kind != OP_WRITE && !describe_same(before, after)) || !describe_same(after, fresh))
			fail_msg("%s %s %s: a failure at write %u left something", op_names[op->kind], op->path,
				 op->to ? op->to : "", n);
	}
}

/* Handles: open files, with or without a name */

static void handle_close(struct run *r, struct handle *h)
{
	if (!h->ino)
		return;
	if (r->v->overlay)
		overlay_forget(r->v->overlay, h->ino, 1);
	close(h->fd);
	h->ino = 0;
}

static void handles_close(struct run *r, bool only_unlinked)
{
	for (int i = 0; i < HANDLES; i++) {
		struct stat st = { 0 };

		if (r->handles[i].ino && (!only_unlinked || fstat(r->handles[i].fd, &st) < 0 || st.st_nlink == 0))
			handle_close(r, &r->handles[i]);
	}
}

static void handle_open(struct run *r)
{
	struct handle *h = &r->handles[dice(r, HANDLES)];
	g_autofree char *path = pick_path(r), *full = model_path(r, path), *dir = g_path_get_dirname(path),
			*name = g_path_get_basename(path);
	struct overlay_entry e;
	int error;
	uint64_t parent;

	handle_close(r, h);
	if (model_type(r, path) != S_IFREG || goes_through_link(r, path))
		return;
	parent = kernel_walk(r->v, strcmp(dir, ".") == 0 ? "" : dir, &error);
	assert_int_not_equal(parent, 0);
	assert_int_equal(overlay_lookup(r->v->overlay, parent, name, &e), 0);
	assert_int_not_equal(e.ino, 0);
	h->ino = e.ino;
	h->fd = open(full, O_RDWR);
	assert_true(h->fd >= 0);
}

static void handle_write(struct run *r)
{
	struct handle *h = &r->handles[dice(r, HANDLES)];
	g_autoptr(GBytes) bytes = pick_data(r);
	gsize size;
	const void *data = g_bytes_get_data(bytes, &size);
	uint64_t offset = dice(r, 1000);

	if (!h->ino)
		return;
	assert_int_equal(overlay_write(r->v->overlay, h->ino, data, size, offset, &somebody), 0);
	assert_int_equal(pwrite(h->fd, data, size, offset), size);
}

static void handles_check(struct run *r)
{
	for (int i = 0; i < HANDLES; i++) {
		struct handle *h = &r->handles[i];
		g_autofree char *got = NULL, *want = NULL;
		struct overlay_entry e;
		struct stat st;

		if (!h->ino)
			continue;
		assert_int_equal(fstat(h->fd, &st), 0);
		want = g_malloc(st.st_size + 1);
		assert_int_equal(pread(h->fd, want, st.st_size, 0), st.st_size);
		want[st.st_size] = '\0';
		assert_int_equal(overlay_getattr(r->v->overlay, h->ino, false, &e), 0);
		assert_int_equal(e.attr.size, st.st_size);
		assert_int_equal(e.attr.nlink, st.st_nlink);
		assert_int_equal(view_read_ino(r->v, h->ino, &got), 0);
		assert_string_equal(got, want);
	}
}

/* States */

static void model_copy(const char *from, const char *to)
{
	assert_int_equal(shell("rm -rf '%s' && cp -a '%s' '%s'", to, from, to), 0);
}

static void run_snapshot(struct run *r)
{
	g_autofree char *name = g_strdup_printf("s%u", r->taken++);
	g_autofree char *copy = g_strdup_printf("%s-%u", r->model, r->snapshots->len);
	int64_t *epoch = g_new(int64_t, 1);

	*epoch = view_snapshot(r->v, name);
	g_ptr_array_add(r->snapshots, epoch);
	model_copy(r->model, copy);
}

static void run_rollback(struct run *r)
{
	guint i = dice(r, r->snapshots->len);
	g_autofree char *copy = g_strdup_printf("%s-%u", r->model, i);

	if (dice(r, 2))
		handles_close(r, false);
	view_rollback(r->v, *(int64_t *)g_ptr_array_index(r->snapshots, i), NULL);
	model_copy(copy, r->model);
	handles_close(r, false);
}

/* Some paths: what that leaves is only checked to be one state, in memory and on the disk. Then all of it. */
static void run_rollback_paths(struct run *r)
{
	g_autofree char *path = pick_path(r);

	handles_close(r, false);
	view_rollback(r->v, *(int64_t *)g_ptr_array_index(r->snapshots, dice(r, r->snapshots->len)), path);
	view_check(r->v);
	run_rollback(r);
}

/* The past snapshots were states over the old workspace and can't be compared any more. */
static void run_commit(struct run *r)
{
	g_autofree char *got = NULL, *want = NULL, *changes = NULL;

	handles_close(r, true);
	/* A file with several names shows its changes, and is committed, under those that were looked up. */
	g_free(view_describe(r->v, 0));
	if (!view_commit(r->v, NULL))
		return; /* refused, which is not this test's business; nothing happened */
	got = disk_describe(r->v->workspace, 0);
	want = disk_describe(r->model, 0);
	assert_true(describe_same(want, got));
	changes = view_changes(r->v);
	assert_string_equal(changes, "");
	g_ptr_array_set_size(r->snapshots, 0);
	run_snapshot(r);
}

static void forget_snapshot(struct run *r)
{
	int64_t epoch = *(int64_t *)g_ptr_array_index(r->snapshots, r->snapshots->len - 1);
	struct store *s = overlay_store(r->v->overlay);
	g_autoptr(GPtrArray) all = NULL;

	overlay_lock(r->v->overlay);
	assert_int_equal(store_snapshot_list(s, &all), 0);
	for (guint i = 0; i < all->len; i++) {
		const struct snapshot *snapshot = all->pdata[i];

		if (snapshot->epoch == epoch)
			assert_int_equal(store_snapshot_delete(s, snapshot->name), 0);
	}
	overlay_unlock(r->v->overlay);
	g_ptr_array_set_size(r->snapshots, r->snapshots->len - 1);
}

/* What is dropped is what a dry run announces, and nothing of it is missed afterwards. */
static void run_gc(struct run *r)
{
	g_autoptr(gc_t) dry = NULL;
	g_autoptr(gc_t) g = NULL;

	if (r->snapshots->len > 1)
		forget_snapshot(r);
	assert_int_equal(overlay_gc(r->v->overlay, false, true, &dry), 0);
	assert_int_equal(overlay_gc(r->v->overlay, false, false, &g), 0);
	assert_int_equal(gc_result(g)->versions, gc_result(dry)->versions);
	assert_int_equal(gc_result(g)->contents, gc_result(dry)->contents);
	assert_int_equal(gc_result(g)->bytes, gc_result(dry)->bytes);
	r->dropped += gc_result(g)->versions;
}

static void run_check(struct run *r)
{
	g_autofree char *want = disk_describe(r->model, DESCRIBE_LINKS);
	g_autofree char *got = view_describe(r->v, DESCRIBE_LINKS);

	assert_true(describe_same(want, got));
	view_check(r->v);
	handles_check(r);
}

static void run_op(struct run *r)
{
	struct op op;

	if (op_pick(r, &op)) {
		int got, want;

		if (r->verbose)
			g_printerr("%s %s %s %u %" G_GUINT64_FORMAT "\n", op_names[op.kind], op.path, op.to ? op.to : "", op.flags,
				   op.offset);
		got = dice(r, 4) ? op_in_view(r->v, &op) : op_with_faults(r, &op);
		want = op_in_model(r, &op);
		if (got != want)
			fail_msg("%s %s %s %u: %s, want %s", op_names[op.kind], op.path, op.to ? op.to : "", op.flags,
				 g_strerror(-got), g_strerror(-want));
	}
	op_clear(&op);
}

static void run_step(struct run *r)
{
	unsigned int what = dice(r, 120);

	if (r->verbose && what < 17)
		g_printerr("step %u\n", what);
	if (what < 3)
		run_snapshot(r);
	else if (what < 5)
		run_rollback(r);
	else if (what < 6)
		run_rollback_paths(r);
	else if (what < 7)
		run_commit(r);
	else if (what < 8)
		run_gc(r);
	else if (what < 11)
		kernel_forget_all(r->v);
	else if (what < 12) {
		handles_close(r, false);
		viewed_reopen(r->v);
	} else if (what < 15)
		handle_open(r);
	else if (what < 17)
		handle_write(r);
	else
		run_op(r);
}

static void scene(struct viewed *v)
{
	host_run(v,
		 "mkdir -p a/b/c d/e; echo 1 >a/1; echo 2 >a/b/2; echo 3 >a/b/c/3; head -c 100000 /dev/zero | tr '\\0' x >d/big; "
		 "ln -s 1 a/link; ln a/1 d/one; ln a/1 d/e/uno; chmod 755 a/b/2; echo 4 >4; mkdir empty; "
		 "setfattr -n user.t -v old a/b/2 2>/dev/null || true");
}

static void test_model(void **state)
{
	const char *seed = g_getenv("SBXFS_TEST_SEED"), *rounds = g_getenv("SBXFS_TEST_ROUNDS");
	guint32 first = seed ? strtoul(seed, NULL, 10) : 1, count = rounds ? strtoul(rounds, NULL, 10) : 6;

	guint64 dropped = 0;

	(void)state;
	for (guint32 n = first; n < first + count; n++) {
		struct run r = { .v = viewed_new(NULL),
				 .rand = g_rand_new_with_seed(n),
				 .verbose = g_getenv("SBXFS_TEST_VERBOSE") != NULL };

		g_printerr("# seed %u\n", n);
		r.model = g_build_filename(r.v->dir, "model", NULL);
		r.snapshots = g_ptr_array_new_with_free_func(g_free);
		scene(r.v);
		model_copy(r.v->workspace, r.model);
		viewed_open(r.v);
		run_snapshot(&r);
		for (int i = 0; i < 200; i++) {
			run_step(&r);
			if (i % 5 == 4)
				run_check(&r);
		}
		dropped += r.dropped;
		handles_close(&r, false);
		kernel_forget_all(r.v);
		g_ptr_array_unref(r.snapshots);
		g_rand_free(r.rand);
		viewed_free(r.v);
		g_free(r.model);
	}
	/* A few runs may have nothing to drop. */
	assert_true(dropped > 0 || count < 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_model) };

	umask(022);
	return cmocka_run_group_tests_name("overlay-model", tests, NULL, NULL);
}
