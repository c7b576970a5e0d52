/* SPDX-License-Identifier: MIT */

/*
 * Random change sets: a commit makes the workspace what the view is, an undo makes it what it was, and either of them, killed at
 * any point and recovered, is one or the other; again and again on the same workspace, whose change times nobody puts back.
 *
 * Usage: test-commit-random [SETS [FIRST SEED]]
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "applied.h"
#include "snapshot/journal.h"

#define ROUNDS 6

static int kill_at;
static int *points; /* shared with the children */

static void kill_hook(const char *what)
{
	(void)what;
	if (++*points == kill_at)
		kill(getpid(), SIGKILL);
}

struct trial {
	struct layered *l;
	GRand *rand;
	guint32 seed;
	char *store;
	char *start, *end;
	int64_t epoch;
};

#define CHECK(t, x, ...) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "seed %u: %s: ", (t)->seed, #x); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			_exit(1); \
		} \
	} while (0)

/* Scenes */

static int pick(struct trial *t, int n)
{
	return g_rand_int_range(t->rand, 0, n);
}

static char *random_name(struct trial *t)
{
	static const char *const odd[] = { "sp ace", "\xff\xfe", "new\nline", "\"quote\"", "-dash", "\xc3\xa9t\xc3\xa9", "back\\slash" };
	int n = pick(t, 40);

	return n < (int)G_N_ELEMENTS(odd) ? g_strdup_printf("%s%d", odd[n], pick(t, 100)) : g_strdup_printf("n%d", pick(t, 1000));
}

/* Never the same twice: a file that is written back unchanged has new times, and times alone are no change. */
static GBytes *random_bytes(struct trial *t)
{
	static const int sizes[] = { 0, 1, 20, 300, 5000, 70000, 200000 };
	static int serial;
	gsize size = sizes[pick(t, G_N_ELEMENTS(sizes))];
	GString *data = g_string_new(NULL);

	g_string_printf(data, "%d\n", serial++);
	for (gsize i = 0; i < size; i++)
		g_string_append_c(data, i % 30 == 29 ? '\n' : 'a' + (i / 7) % 26);
	return g_string_free_to_bytes(data);
}

/* No hard links: to struct layered, unlike the view, two names of one inode are two files. */
static void host_random(struct trial *t)
{
	g_autoptr(GPtrArray) dirs = g_ptr_array_new_with_free_func(g_free);

	g_ptr_array_add(dirs, g_strdup(""));
	for (int i = 5 + pick(t, 25); i > 0; i--) {
		g_autofree char *name = random_name(t), *path = path_join(g_ptr_array_index(dirs, pick(t, dirs->len)), name);
		g_autofree char *full = host_at(t->l, path);
		g_autoptr(GBytes) bytes = random_bytes(t);

		if (access(full, F_OK) == 0 || g_file_test(full, G_FILE_TEST_IS_SYMLINK))
			continue;
		switch (pick(t, 8)) {
		case 0:
		case 1:
			host_mkdir(t->l, path);
			g_ptr_array_add(dirs, g_strdup(path));
			break;
		case 2:
			host_symlink(t->l, path, "n1");
			break;
		default:
			host_write(t->l, path, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), pick(t, 3) ? 0644 : 0755);
		}
	}
}

struct listing {
	GPtrArray *paths; /* of everything but the root */
	GPtrArray *dirs;  /* with the root */
	GPtrArray *files;
};

static void list_below(struct trial *t, struct tree *tree, const struct entry *dir, const char *path, struct listing *ret)
{
	g_autoptr(GPtrArray) entries = NULL;

	g_ptr_array_add(ret->dirs, g_strdup(path));
	CHECK(t, tree_list(tree, dir, &entries) == 0, "list");
	for (guint i = 0; i < entries->len; i++) {
		const struct entry *e = g_ptr_array_index(entries, i);
		g_autofree char *child = path_join(path, e->name);

		g_ptr_array_add(ret->paths, g_strdup(child));
		if (S_ISDIR(e->attr.mode))
			list_below(t, tree, e, child, ret);
		else if (S_ISREG(e->attr.mode))
			g_ptr_array_add(ret->files, g_strdup(child));
	}
}

static void listing_init(struct trial *t, struct listing *ret)
{
	g_autoptr(tree_t) live = tree_open(t->l->store, t->l->lower, EPOCH_LIVE);
	g_autoptr(entry_t) root = NULL;

	ret->paths = g_ptr_array_new_with_free_func(g_free);
	ret->dirs = g_ptr_array_new_with_free_func(g_free);
	ret->files = g_ptr_array_new_with_free_func(g_free);
	CHECK(t, tree_root(live, &root) == 0, "root");
	list_below(t, live, root, "", ret);
}

static void listing_clear(struct listing *s)
{
	g_ptr_array_unref(s->paths);
	g_ptr_array_unref(s->dirs);
	g_ptr_array_unref(s->files);
}

static const char *one_of(struct trial *t, GPtrArray *paths)
{
	return paths->len ? g_ptr_array_index(paths, pick(t, paths->len)) : NULL;
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* A name that is free, in any directory. */
static char *free_path(struct trial *t, const struct listing *s)
{
	for (;;) {
		g_autofree char *name = random_name(t), *path = path_join(one_of(t, s->dirs), name);

		if (!g_ptr_array_find_with_equal_func(s->paths, path, g_str_equal, NULL))
			return g_steal_pointer(&path);
	}
}

/* No view_touch(): times alone are no change. */
static void change_one(struct trial *t, const struct listing *s)
{
	g_autofree char *new = free_path(t, s);
	g_autoptr(GBytes) bytes = random_bytes(t);
	const char *path = one_of(t, s->paths), *file = one_of(t, s->files);
	int what = pick(t, 20);

	if (what < 4)
		view_write(t->l, new, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
	else if (what < 6)
		view_mkdir(t->l, new);
	else if (what < 7)
		view_symlink(t->l, new, "some/where");
	else if (what < 11 && file)
		view_write(t->l, file, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
	else if (what < 13 && file)
		view_chmod(t->l, file, pick(t, 2) ? 0700 : 0644);
	else if (what < 16 && path)
		view_remove(t->l, path);
	else if (path && !is_below(new, path))
		view_rename(t->l, path, new);
}

static void view_random(struct trial *t)
{
	for (int i = 1 + pick(t, 30); i > 0; i--) {
		struct listing s;

		listing_init(t, &s);
		change_one(t, &s);
		listing_clear(&s);
	}
}

static void trial_init(struct trial *t, guint32 seed)
{
	struct committing c;

	*t = (struct trial){ .l = layered_new(), .rand = g_rand_new_with_seed(seed), .seed = seed };
	host_random(t);
	tick();
	view_random(t);
	t->store = g_strdup(store_dir(t->l->store));
	t->start = disk_describe(t->l->workspace);
	committing_init(&c, t->l, NULL);
	t->epoch = c.job.epoch;
	t->end = tree_describe(c.to);
	committing_clear(&c);
	store_close(t->l->store);
	t->l->store = NULL;
}

static void trial_clear(struct trial *t)
{
	layered_free(t->l);
	g_rand_free(t->rand);
	g_free(t->store);
	g_free(t->start);
	g_free(t->end);
}

/* What is killed */

static bool run(struct trial *t, int at, void (*fn)(struct trial *t))
{
	g_autoptr(GError) error = NULL;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		t->l->store = store_open(t->store, STORE_WRITE, &error);
		CHECK(t, t->l->store, "%s", error->message);
		kill_at = at;
		*points = 0;
		boundary_hook = kill_hook;
		fn(t);
		store_close(t->l->store);
		_exit(0);
	}
	CHECK(t, waitpid(pid, &status, 0) == pid, "waitpid");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return false;
	CHECK(t, status == 0, "the child failed at point %d", at);
	return true;
}

static void finish(struct trial *t, struct apply_result *r, GPtrArray *conflicts, GError *error)
{
	const struct conflict *first = conflicts ? g_ptr_array_index(conflicts, 0) : NULL;

	CHECK(t, !error, "%s", error->message);
	CHECK(t, !first, "conflict: %s %s", conflict_kind_name(first->kind), first->path);
	if (r->id)
		apply_finish(t->l->store, r->id, &error);
	CHECK(t, !error, "%s", error->message);
	apply_result_clear(r);
}

static void do_commit(struct trial *t)
{
	g_autoptr(tree_t) to = tree_open(t->l->store, t->l->lower, t->epoch);
	g_autoptr(GPtrArray) changes = layered_changes(t->l, TREE_LOWER, t->epoch, NULL), conflicts = NULL;
	struct apply_job job = { .store = t->l->store, .lower = t->l->lower, .to = to, .epoch = t->epoch, .changes = changes };
	struct apply_result r = { 0 };
	GError *error = NULL;

	apply_changes(&job, &r, &conflicts, &error);
	finish(t, &r, conflicts, error);
}

static void do_undo(struct trial *t)
{
	struct apply_result r = { 0 };
	GPtrArray *conflicts = NULL;
	GError *error = NULL;

	apply_undo(t->l->store, t->l->lower, NULL, &r, &conflicts, &error);
	finish(t, &r, conflicts, error);
}

static void do_recover(struct trial *t)
{
	struct apply_result r = { 0 };
	GError *error = NULL;

	apply_recover(t->l->store, t->l->lower, &r, &error);
	finish(t, &r, NULL, error);
}

/* True for the end. */
static bool at_end(struct trial *t, const char *what)
{
	g_autofree char *now = disk_describe(t->l->workspace);

	if (strcmp(now, t->end) == 0)
		return true;
	if (strcmp(t->start, now) != 0)
		describe_same(t->end, now); /* says where */
	CHECK(t, describe_same(t->start, now), "%s: between", what);
	return false;
}

static int kill_one(struct trial *t, void (*fn)(struct trial *t), const char *what)
{
	bool committed;
	int total;

	committed = at_end(t, what);
	run(t, 0, fn);
	total = *points;
	CHECK(t, at_end(t, what) != committed, "%s did nothing", what);
	run(t, 0, fn == do_commit ? do_undo : do_commit);
	CHECK(t, at_end(t, what) == committed, "%s was not taken back", what);
	run(t, 1 + pick(t, total), fn);
	while (!run(t, 1 + pick(t, total), do_recover))
		;
	return at_end(t, what) != committed;
}

static int trial(guint32 seed)
{
	struct trial t;
	int kills = 0;

	trial_init(&t, seed);
	for (int i = 0; strcmp(t.start, t.end) != 0 && i < ROUNDS; i++, kills++)
		kill_one(&t, at_end(&t, "round") ? do_undo : do_commit, "killed and recovered");
	trial_clear(&t);
	return kills;
}

int main(int argc, char **argv)
{
	int sets = argc > 1 ? atoi(argv[1]) : 40;
	guint32 first = argc > 2 ? atoi(argv[2]) : 1;
	int kills = 0;

	points = mmap(NULL, sizeof(*points), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 0);
	for (int i = 0; i < sets; i++)
		kills += trial(first + i);
	printf("%d random change sets, %d kills\n", sets, kills);
	return 0;
}
