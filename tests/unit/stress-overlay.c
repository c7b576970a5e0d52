/* SPDX-License-Identifier: MIT */
/*
 * stress-overlay - many threads in one view, as the workers of a session are: names, data, FORGETs, while others take snapshots, roll back and
 * edit the workspace
 *
 * Meant for -fsanitize=thread (meson setup -Db_sanitize=thread), and a quick test of locks and lifetimes without. The argument is a number of
 * seconds. Afterwards everything is forgotten: memory and index agree, a way leads to each row, and no node is left that nothing needs.
 */

#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "viewed.h"

#ifdef __SANITIZE_THREAD__
#include <dlfcn.h>

/* The sanitizer does not see into GLib: here it is told what its locks, queues and counted references order. Set G_SLICE=always-malloc. */
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);

#define REAL(name)                                                                                                                 \
	static __typeof__(&(name)) real;                                                                                           \
	if (!__atomic_load_n(&real, __ATOMIC_ACQUIRE))                                                                             \
	__atomic_store_n(&real, (__typeof__(&(name)))dlsym(RTLD_NEXT, #name), __ATOMIC_RELEASE)

/* Links of a queue, inside GLib and under its own lock. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:g_queue_pop_tail\n";
}

void(g_mutex_lock)(GMutex *m)
{
	REAL(g_mutex_lock);
	real(m);
	__tsan_acquire(m);
}

void(g_mutex_unlock)(GMutex *m)
{
	REAL(g_mutex_unlock);
	__tsan_release(m);
	real(m);
}

void(g_cond_wait)(GCond *c, GMutex *m)
{
	REAL(g_cond_wait);
	__tsan_release(m);
	real(c, m);
	__tsan_acquire(m);
}

void(g_bytes_unref)(GBytes *b)
{
	REAL(g_bytes_unref);
	if (b) {
		__tsan_release(b);
		__tsan_acquire(b);
	}
	real(b);
}

void(g_async_queue_push)(GAsyncQueue *q, gpointer data)
{
	REAL(g_async_queue_push);
	__tsan_release(q);
	real(q, data);
}

void(g_async_queue_push_front)(GAsyncQueue *q, gpointer data)
{
	REAL(g_async_queue_push_front);
	__tsan_release(q);
	real(q, data);
}

gpointer(g_async_queue_pop)(GAsyncQueue *q)
{
	REAL(g_async_queue_pop);
	gpointer data = real(q);

	__tsan_acquire(q);
	return data;
}
#endif

#define WORKERS 6
#define HELD 40

static struct viewed *view;
static int stop;
static uint64_t done, told;

/* One thread of the kernel: what it holds, it may use. */
struct worker {
	GRand *rand;
	uint64_t held[HELD]; /* the root first */
	unsigned int count;
	unsigned int number;
};

static unsigned int dice(struct worker *w, unsigned int sides)
{
	return g_rand_int_range(w->rand, 0, sides);
}

static void forget_one(struct worker *w)
{
	unsigned int i;

	if (w->count < 2)
		return;
	i = 1 + dice(w, w->count - 1);
	overlay_forget(view->overlay, w->held[i], 1);
	w->held[i] = w->held[--w->count];
}

static void hold(struct worker *w, const struct overlay_entry *e)
{
	if (!e->ino)
		return;
	if (w->count == HELD)
		forget_one(w);
	w->held[w->count++] = e->ino;
}

struct listing_user {
	struct worker *worker;
	unsigned int left;
};

static bool list_one(const char *name, const struct overlay_entry *entry, uint64_t next_offset, void *user)
{
	struct listing_user *u = user;
	struct worker *w = u->worker;

	(void)next_offset;
	if (u->left == 0)
		return false;
	u->left--;
	/* Under the view's lock: only written down. There is room for it. */
	if (entry->attr.nlink > 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
		w->held[w->count++] = entry->ino;
	return true;
}

static void work_names(struct worker *w, const char *name, const char *other)
{
	uint64_t dir = w->held[dice(w, w->count)], second = w->held[dice(w, w->count)];
	struct overlay_entry e = { 0 };
	int r = -1;

	switch (dice(w, 9)) {
	case 0:
		r = overlay_mknod(view->overlay, dir, name, S_IFREG | 0644, 0, &somebody, &e);
		break;
	case 1:
		r = overlay_mkdir(view->overlay, dir, name, 0755, &somebody, &e);
		break;
	case 2:
		r = overlay_symlink(view->overlay, "nowhere", dir, name, &somebody, &e);
		break;
	case 3:
		r = overlay_link(view->overlay, second, dir, name, &e);
		break;
	case 4:
		overlay_unlink(view->overlay, dir, name);
		break;
	case 5:
		overlay_rmdir(view->overlay, dir, name);
		break;
	case 6:
		/* A kernel holds both directories and has looked up both names. */
		if (overlay_lookup(view->overlay, dir, name, &e) == 0 && e.ino) {
			struct overlay_entry to = { 0 };

			if (overlay_lookup(view->overlay, second, other, &to) == 0) {
				overlay_rename(view->overlay, dir, name, second, other, dice(w, 3));
				if (to.ino)
					overlay_forget(view->overlay, to.ino, 1);
			}
			overlay_forget(view->overlay, e.ino, 1);
		}
		break;
	default:
		r = overlay_lookup(view->overlay, dir, name, &e);
	}
	if (r == 0)
		hold(w, &e);
}

static void work_data(struct worker *w)
{
	uint64_t ino = w->held[dice(w, w->count)];
	struct attr a = { .mode = 0600 + dice(w, 64), .size = dice(w, 200000), .mtime = dice(w, 1000) };
	char buf[5000];
	g_autoptr(GByteArray) names = NULL;
	g_autoptr(GBytes) value = NULL;
	g_autofree char *target = NULL;
	struct overlay_entry e;

	memset(buf, 'a' + w->number, sizeof(buf));
	switch (dice(w, 9)) {
	case 0:
		overlay_write(view->overlay, ino, buf, dice(w, sizeof(buf)), dice(w, 100000), &somebody);
		break;
	case 1:
		overlay_setattr(view->overlay, ino, (const unsigned int[]){ SET_SIZE, SET_MODE, SET_MTIME }[dice(w, 3)], &a,
				&somebody, &e);
		break;
	case 2:
		overlay_fsync(view->overlay, ino);
		break;
	case 3:
		overlay_lseek(view->overlay, ino, dice(w, 1000), SEEK_DATA);
		break;
	case 4:
		overlay_setxattr(view->overlay, ino, "user.t", buf, dice(w, 100), 0);
		overlay_listxattr(view->overlay, ino, &names);
		break;
	case 5:
		overlay_getattr(view->overlay, ino, false, &e);
		overlay_readlink(view->overlay, ino, &target);
		overlay_getxattr(view->overlay, ino, "user.t", &value);
		break;
	case 6:
		overlay_fallocate(view->overlay, ino, 0, dice(w, 1000), dice(w, 1000) + 1);
		break;
	default:
		overlay_read(view->overlay, ino, buf, sizeof(buf), dice(w, 100000));
	}
}

static gpointer worker_main(gpointer data)
{
	struct worker *w = data;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		const char name[] = { 'a' + dice(w, 8), 0 }, other[] = { 'a' + dice(w, 8), 0 };

		switch (dice(w, 8)) {
		case 0:
			forget_one(w);
			break;
		case 1: {
			struct listing_user u = { w, dice(w, HELD / 4) };

			while (w->count + u.left > HELD)
				forget_one(w);
			overlay_readdir(view->overlay, w->held[dice(w, w->count)], 0, true, list_one, &u);
			break;
		}
		case 2:
		case 3:
		case 4:
			work_data(w);
			break;
		default:
			work_names(w, name, other);
		}
		__atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
	}
	while (w->count > 1)
		forget_one(w);
	return NULL;
}

static gpointer states_main(gpointer data)
{
	int64_t epochs[3] = { 0 };

	for (int i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		g_autofree char *name = g_strdup_printf("s%d", i);
		static const char *const paths[] = { "a", "b/c", NULL };
		struct overlay_counters counters;
		uint64_t names, nodes;
		int64_t pinned;

		if (overlay_snapshot(view->overlay, name, &epochs[i % 3]) < 0)
			abort();
		g_usleep(30000);
		overlay_counters(view->overlay, &counters);
		if (overlay_pin(view->overlay, &pinned) < 0 ||
		    overlay_settle(view->overlay, pinned, (const char *const[]){ "none", NULL }, NULL) < 0)
			abort();
		overlay_unpin(view->overlay, pinned);
		if (overlay_rollback(view->overlay, epochs[(i + 1) % 3], i % 2 ? paths : NULL, true, &names, &nodes) < 0)
			abort();
	}
	return data;
}

static gpointer owner_main(gpointer data)
{
	for (int i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		static const char *const edits[] = { "echo x >>a/1", "mv b/c b/d 2>/dev/null || mv b/d b/c",
						     "rm -rf c; mkdir c; echo c >c/a", "chmod 600 d || true",
						     "rm -f a/2; ln a/1 a/2" };

		host_run(view, edits[i % G_N_ELEMENTS(edits)]);
		g_usleep(20000);
	}
	return data;
}

static void told_entry(uint64_t parent, const char *name, void *user)
{
	(void)parent;
	(void)name;
	(void)user;
	__atomic_add_fetch(&told, 1, __ATOMIC_RELAXED);
}

static void told_inode(uint64_t ino, bool data, void *user)
{
	(void)ino;
	(void)data;
	(void)user;
	__atomic_add_fetch(&told, 1, __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
	const struct overlay_watcher watcher = { .expire_entry = told_entry, .inval_inode = told_inode };
	struct worker workers[WORKERS] = { 0 };
	GThread *threads[WORKERS + 2];
	struct overlay_counters counters;

	view = viewed_new(NULL);
	host_run(view,
		 "mkdir -p a b/c c; echo 1 >a/1; ln a/1 a/2; echo 2 >b/c/a; echo 3 >c/a; head -c 300000 /dev/zero >d; ln -s a e");
	viewed_open(view);
	overlay_watch(view->overlay, &watcher);
	for (unsigned int i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){ .rand = g_rand_new_with_seed(i), .held = { ROOT_INO }, .count = 1, .number = i };
		threads[i] = g_thread_new("worker", worker_main, &workers[i]);
	}
	threads[WORKERS] = g_thread_new("states", states_main, NULL);
	threads[WORKERS + 1] = g_thread_new("owner", owner_main, NULL);
	g_usleep((argc > 1 ? atoi(argv[1]) : 3) * 1000000L);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < G_N_ELEMENTS(threads); i++)
		g_thread_join(threads[i]);
	overlay_drain(view->overlay);
	view_check(view);
	overlay_counters(view->overlay, &counters);
	printf("%" G_GUINT64_FORMAT " operations, %" G_GUINT64_FORMAT " invalidations, %" G_GUINT64_FORMAT
	       " nodes left, %" G_GINT64_FORMAT " rows\n",
	       done, told, counters.nodes, view_rows(view, "node"));
	if (counters.nodes > (uint64_t)view_rows(view, "node") + 1)
		return 1;
	for (unsigned int i = 0; i < WORKERS; i++)
		g_rand_free(workers[i].rand);
	viewed_free(view);
	return 0;
}
