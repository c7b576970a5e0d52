/* SPDX-License-Identifier: MIT */

/*
 * Kills a commit at every point where the disk differs from the point before, looks at the workspace as it lies there, and recovers:
 * the workspace is then the start or the end. The recovery is killed at every one of its points as well. With undo the
 * same way, and with the workspace on a file system of its own. And the power is cut at every point: the file system that
 * holds workspace and store is shut down without writing its log (EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN) and mounted anew.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "applied.h"
#include "snapshot/journal.h"

static int kill_at; /* 0 = never */
static int points;
static struct disk *disk; /* whose power is cut when the process is killed; NULL = none */
static bool spoiled;	  /* the workspace is changed by somebody else as well */

#define CHECK(x, ...) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #x); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			_exit(1); \
		} \
	} while (0)

/* A file system of its own, in a file, behind a loop device */

#define SHUTDOWN _IOR('X', 125, uint32_t) /* of ext4, xfs and f2fs */
#define SHUTDOWN_NO_LOG 2

struct disk {
	char *image, *point;
};

static bool disk_mount(const struct disk *d)
{
	g_autofree char *command = g_strdup_printf("mount -o loop '%s' '%s' 2>/dev/null", d->image, d->point);

	return system(command) == 0;
}

static void disk_unmount(const struct disk *d)
{
	CHECK(umount2(d->point, 0) == 0, "umount %s: %s", d->point, strerror(errno));
}

static bool disk_init(struct disk *d, const char *type)
{
	g_autofree char *command = NULL;

	d->point = g_dir_make_tmp("sbxfs-disk-XXXXXX", NULL);
	d->image = g_strconcat(d->point, ".img", NULL);
	command = g_strdup_printf("truncate -s 400M '%s' && mkfs.%s -q '%s' 2>/dev/null", d->image, type, d->image);
	return system(command) == 0 && disk_mount(d);
}

static void disk_clear(struct disk *d)
{
	umount2(d->point, MNT_DETACH);
	rmdir(d->point);
	unlink(d->image);
	g_free(d->point);
	g_free(d->image);
}

static void disk_sync(const struct disk *d)
{
	int fd = open(d->point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0 && syncfs(fd) == 0, "syncfs: %s", strerror(errno));
	close(fd);
}

/* What was not synced is gone; until it is mounted anew, every access fails. */
static void disk_cut(const struct disk *d)
{
	int fd = open(d->point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t how = SHUTDOWN_NO_LOG;

	CHECK(fd >= 0 && ioctl(fd, SHUTDOWN, &how) == 0, "shutdown: %s", strerror(errno));
	close(fd);
}

static void disk_restart(const struct disk *d)
{
	disk_unmount(d);
	CHECK(disk_mount(d), "mount %s", d->point);
}

static void kill_hook(const char *what)
{
	(void)what;
	if (++points != kill_at)
		return;
	if (disk)
		disk_cut(disk);
	kill(getpid(), SIGKILL);
}

struct crash {
	struct layered *l;
	char *store;
	char *start, *end;
	int64_t epoch;
};

static void store_reopen(struct crash *c)
{
	g_autoptr(GError) error = NULL;

	c->l->store = store_open(c->store, STORE_WRITE, &error);
	CHECK(c->l->store, "%s", error->message);
	CHECK(lower_open(c->l->workspace, &c->l->lower) == 0, "workspace");
}

static void crash_init(struct crash *c, bool tmpfs)
{
	struct committing committing;

	*c = (struct crash){ .l = layered_new() };
	CHECK(!disk || g_str_has_prefix(c->l->dir, disk->point), "%s is not on the disk", c->l->dir);
	if (tmpfs)
		CHECK(mount("tmpfs", c->l->workspace, "tmpfs", 0, NULL) == 0, "%s", strerror(errno));
	lower_close(c->l->lower);
	CHECK(lower_open(c->l->workspace, &c->l->lower) == 0, "workspace");
	c->store = g_strdup(store_dir(c->l->store));
	scene_host(c->l);
	tick();
	scene_view(c->l);
	c->start = disk_describe(c->l->workspace);
	committing_init(&committing, c->l, NULL);
	c->epoch = committing.job.epoch;
	c->end = tree_describe(committing.to);
	committing_clear(&committing);
	store_close(c->l->store);
	c->l->store = NULL;
	/* This process keeps nothing open there. */
	lower_close(c->l->lower);
	c->l->lower = NULL;
	if (disk)
		disk_sync(disk);
}

static void crash_clear(struct crash *c, bool tmpfs)
{
	if (tmpfs)
		umount2(c->l->workspace, MNT_DETACH);
	layered_free(c->l);
	g_free(c->store);
	g_free(c->start);
	g_free(c->end);
}

/* In a child, killed at point @at. False when it was; true when it ran through. */
static bool run_killed(struct crash *c, int at, void (*fn)(struct crash *c))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		store_reopen(c);
		kill_at = at;
		points = 0;
		fn(c);
		store_close(c->l->store);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	/* Whoever was not killed had the power cut right afterwards: what was done is there to stay. */
	if (disk && WIFEXITED(status))
		disk_cut(disk);
	if (disk)
		disk_restart(disk);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return false;
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child failed at point %d: status %x", at, status);
	return true;
}

static void do_commit(struct crash *c)
{
	g_autoptr(tree_t) to = tree_open(c->l->store, c->l->lower, c->epoch);
	g_autoptr(GPtrArray) changes = layered_changes(c->l, TREE_LOWER, c->epoch, NULL), conflicts = NULL;
	struct apply_job job = { .store = c->l->store, .lower = c->l->lower, .to = to, .epoch = c->epoch, .changes = changes };
	struct apply_result result = { 0 };
	g_autoptr(GError) error = NULL;

	boundary_hook = kill_hook;
	apply_changes(&job, &result, &conflicts, &error);
	CHECK(!error, "%s", error->message);
	CHECK(!conflicts, "conflict");
	boundary_hook = NULL;
	apply_finish(c->l->store, result.id, &error);
	CHECK(!error, "%s", error->message);
	apply_result_clear(&result);
}

/* What the view does is its own transaction (test-commit-random); here it is a point more. */
static int view_is_told(const struct apply_result *undone, void *user, GError **error)
{
	(void)user;
	(void)error;
	CHECK(undone->undone && undone->paths->len > 0, "what the view is told");
	return 0;
}

static const struct undo_view crash_view = { .begins = view_is_told, .returns = view_is_told };

static void do_recover(struct crash *c)
{
	struct apply_result result = { 0 };
	g_autoptr(GError) error = NULL;

	boundary_hook = kill_hook;
	apply_recover(c->l->store, c->l->lower, &crash_view, &result, &error);
	CHECK(!error, "%s", error->message);
	boundary_hook = NULL;
	/* Nobody else was there, so there is nothing to remark; above all, nothing to take back. */
	CHECK(spoiled || !result.notes || result.notes->len == 0, "%s", (char *)g_ptr_array_index(result.notes, 0));
	if (result.id)
		apply_finish(c->l->store, result.id, &error);
	CHECK(!error, "%s", error->message);
	apply_result_clear(&result);
}

static void do_undo(struct crash *c)
{
	struct apply_result result = { 0 };
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;

	boundary_hook = kill_hook;
	apply_undo(c->l->store, c->l->lower, NULL, &crash_view, &result, &conflicts, &error);
	CHECK(!error, "%s", error->message);
	CHECK(!conflicts, "conflict");
	apply_finish(c->l->store, result.id, &error);
	CHECK(!error, "%s", error->message);
	apply_result_clear(&result);
}

/* A backing out, caused by a file that changed. */
static void spoil_hook(const char *what)
{
	static bool done;

	if (strcmp(what, "journal written") == 0 && !done) {
		done = true;
		CHECK(truncate("swap-b", 1) == 0, "spoil");
	}
	kill_hook(what);
}

static void do_spoiled_commit(struct crash *c)
{
	g_autoptr(tree_t) to = tree_open(c->l->store, c->l->lower, c->epoch);
	g_autoptr(GPtrArray) changes = layered_changes(c->l, TREE_LOWER, c->epoch, NULL), conflicts = NULL;
	struct apply_job job = { .store = c->l->store, .lower = c->l->lower, .to = to, .epoch = c->epoch, .changes = changes };
	struct apply_result result = { 0 };
	g_autoptr(GError) error = NULL;

	CHECK(chdir(c->l->workspace) == 0, "chdir");
	boundary_hook = spoil_hook;
	apply_changes(&job, &result, &conflicts, &error);
	CHECK(!error, "%s", error->message);
	CHECK(conflicts, "no conflict");
}

/* Looking */

/* What of a line must be old or new: everything but the attributes, which come in a step of their own, and other names, which come and go. */
static char *line_core(const char *line)
{
	const char *link = strstr(line, " = ");
	g_auto(GStrv) words = g_strsplit(line, " ", -1);

	if (g_strv_length(words) > 4 && g_str_has_prefix(words[1], "100"))
		return g_strjoin(" ", words[0], "file", words[3], words[4], NULL);
	if (g_str_has_prefix(words[1], "4"))
		return g_strjoin(" ", words[0], "dir", NULL);
	return link ? g_strndup(line, link - line) : g_strdup(line);
}

static GHashTable *cores(const char *text)
{
	GHashTable *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

	for (char **line = lines; *line; line++)
		g_hash_table_add(set, line_core(*line));
	return set;
}

static void check_between(struct crash *c, int at, bool temporaries)
{
	g_autofree char *text = disk_describe(c->l->workspace);
	g_autoptr(GHashTable) start = cores(c->start), end = cores(c->end), now = cores(text);
	GHashTableIter iter;
	gpointer line;

	g_hash_table_iter_init(&iter, now);
	while (g_hash_table_iter_next(&iter, &line, NULL)) {
		if (temporaries && strstr(line, ".sbxfs-"))
			continue;
		CHECK(g_hash_table_contains(start, line) || g_hash_table_contains(end, line), "point %d: neither old nor new: %s", at,
		      (char *)line);
	}
}

/* Returns 1 for the end, 0 for the start. */
static int check_whole(struct crash *c, int at)
{
	g_autofree char *text = disk_describe(c->l->workspace);

	if (strcmp(text, c->end) == 0)
		return 1;
	CHECK(describe_same(text, c->start), "point %d: between", at);
	return 0;
}

static void check_store_is_clean(struct crash *c)
{
	g_autofree char *path = g_build_filename(c->store, "commit", NULL);
	/* To drop an empty commit is not worth a sync: after a power cut it may be there once more. */
	GDir *dir = disk ? NULL : g_dir_open(path, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *journal = g_build_filename(path, name, "journal", NULL);

		CHECK(g_file_test(journal, G_FILE_TEST_EXISTS), "commit/%s without a journal was not dropped", name);
	}
	g_clear_pointer(&dir, g_dir_close);
}

/* Loops */

/* Every point of @fn, then a recovery that runs through. */
static int every_point(bool tmpfs, void (*before)(struct crash *), void (*fn)(struct crash *), const char *what)
{
	int ends = 0, starts = 0;

	for (int at = 1;; at++) {
		struct crash c;
		bool through;

		crash_init(&c, tmpfs);
		if (before)
			run_killed(&c, 0, before);
		through = run_killed(&c, at, fn);
		if (!disk)
			check_between(&c, at, tmpfs);
		run_killed(&c, 0, do_recover);
		(check_whole(&c, at) ? ends++ : starts++);
		check_store_is_clean(&c);
		crash_clear(&c, tmpfs);
		if (through) {
			printf("%s: killed at %d points: %d times the start, %d times the end\n", what, at - 1, starts, ends);
			return at - 1;
		}
	}
}

/* At every @stride-th point of @fn, a recovery that is killed at each of its points in turn, on and on until it is through. */
static void every_recovery(bool tmpfs, void (*before)(struct crash *), void (*fn)(struct crash *), int total, int stride, const char *what)
{
	int kills = 0;

	for (int at = 1; at <= total; at += stride) {
		struct crash c;
		int point = 1;

		crash_init(&c, tmpfs);
		if (before)
			run_killed(&c, 0, before);
		run_killed(&c, at, fn);
		while (!run_killed(&c, point, do_recover)) {
			if (!disk)
				check_between(&c, at, tmpfs);
			point++;
			kills++;
		}
		check_whole(&c, at);
		check_store_is_clean(&c);
		crash_clear(&c, tmpfs);
	}
	printf("%s: %d kills of recoveries\n", what, kills);
}

static off_t host_size(struct layered *l, const char *path)
{
	g_autofree char *full = host_at(l, path);
	struct stat st;

	return lstat(full, &st) < 0 ? -1 : st.st_size;
}

/* After the backing out all is as it was, but for the one file that somebody else changed. */
static void every_backing_out(void)
{
	int at;

	spoiled = true;
	for (at = 1;; at++) {
		g_autofree char *now = NULL;
		struct crash c;
		bool through;

		crash_init(&c, false);
		through = run_killed(&c, at, do_spoiled_commit);
		run_killed(&c, 0, do_recover);
		now = disk_describe(c.l->workspace);
		if (host_size(c.l, "swap-b") != 1) { /* killed before somebody else came */
			check_whole(&c, at);
			crash_clear(&c, false);
			continue;
		}
		for (char **lines = g_strsplit(c.start, "\n", -1), **line = lines;; line++) {
			if (!*line) {
				g_strfreev(lines);
				break;
			}
			CHECK(g_str_has_prefix(*line, "swap-b ") || strstr(now, *line), "point %d: not put back: %s", at, *line);
		}
		crash_clear(&c, false);
		if (through)
			break;
	}
	spoiled = false;
	printf("backing out: killed at %d points\n", at - 1);
}

static void all(bool tmpfs, const char *where)
{
	g_autofree char *commit = g_strconcat("commit", where, NULL), *back = g_strconcat("undo", where, NULL);
	int n = every_point(tmpfs, NULL, do_commit, commit);

	every_recovery(tmpfs, NULL, do_commit, n, 13, commit);
	n = every_point(tmpfs, do_commit, do_undo, back);
	every_recovery(tmpfs, do_commit, do_undo, n, 31, back);
}

static void power(const char *type)
{
	g_autofree char *commit = g_strdup_printf("commit, power cut on %s", type);
	g_autofree char *undo = g_strdup_printf("undo, power cut on %s", type);
	struct disk d = { 0 };

	if (disk_init(&d, type)) {
		disk = &d;
		setenv("TMPDIR", d.point, 1);
		every_point(false, NULL, do_commit, commit);
		every_recovery(false, NULL, do_commit, 90, 31, commit);
		every_point(false, do_commit, do_undo, undo);
		disk = NULL;
	} else {
		printf("skipped: power cuts on %s (needs mkfs.%s and a loop device)\n", type, type);
	}
	disk_clear(&d);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Where syncing costs nothing: this syncs thousands of times. TMPDIR runs it on another file system. */
	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 0);
	all(false, "");
	every_backing_out();
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		printf("skipped: the workspace on a file system of its own (needs to be root)\n");
	else {
		const char *tmp = g_get_tmp_dir();

		links_arrive = false;
		all(true, " to another file system");
		links_arrive = true;
		power("ext4");
		setenv("TMPDIR", tmp, 1);
		power("xfs");
	}
	return 0;
}
