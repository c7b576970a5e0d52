/* SPDX-License-Identifier: MIT */
#include "fs/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "snapshot/lower.h"

#define EVENTS                                                                                                       \
	(IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | \
	 IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

struct watch {
	struct lower *lower;
	watch_fn fn;
	void *user;
	int inotify_fd;
	int stop_fd;
	GThread *thread;
	GMutex lock; /* a leaf: nothing else is taken under it. Protects the tables and @full */
	GHashTable *ino_of; /* watch descriptor -> ino */
	GHashTable *wd_of;  /* ino -> watch descriptor */
	bool full;
};

static uint64_t watch_ino(struct watch *w, int wd)
{
	uint64_t *ino, found = 0;

	g_mutex_lock(&w->lock);
	ino = g_hash_table_lookup(w->ino_of, GINT_TO_POINTER(wd));
	if (ino)
		found = *ino;
	g_mutex_unlock(&w->lock);
	return found;
}

static void watch_drop(struct watch *w, int wd)
{
	uint64_t *ino;

	g_mutex_lock(&w->lock);
	ino = g_hash_table_lookup(w->ino_of, GINT_TO_POINTER(wd));
	if (ino)
		g_hash_table_remove(w->wd_of, ino);
	g_hash_table_remove(w->ino_of, GINT_TO_POINTER(wd));
	g_mutex_unlock(&w->lock);
}

static void watch_report(struct watch *w, const struct inotify_event *e)
{
	const char *name = e->len > 0 ? e->name : NULL;
	uint64_t ino;

	if (e->mask & IN_Q_OVERFLOW) {
		w->fn(0, NULL, WATCH_OVERFLOW, w->user);
		return;
	}
	ino = watch_ino(w, e->wd);
	if (!ino)
		return;
	if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) {
		watch_drop(w, e->wd);
		if (e->mask & IN_MOVE_SELF)
			inotify_rm_watch(w->inotify_fd, e->wd);
		w->fn(ino, NULL, WATCH_GONE, w->user);
	} else if (!name) {
		w->fn(ino, NULL, WATCH_SELF, w->user);
	} else if (e->mask & (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)) {
		w->fn(ino, name, WATCH_NAME, w->user);
	} else {
		w->fn(ino, name, e->mask & IN_ATTRIB ? WATCH_ATTR : WATCH_DATA, w->user);
	}
}

static gpointer watch_main(gpointer data)
{
	char buf[64 * 1024] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct watch *w = data;
	struct pollfd fds[] = { { .fd = w->inotify_fd, .events = POLLIN }, { .fd = w->stop_fd, .events = POLLIN } };

	for (;;) {
		ssize_t n;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (fds[1].revents)
			return NULL;
		n = read(w->inotify_fd, buf, sizeof(buf));
		for (char *p = buf; n > 0 && p < buf + n; p += sizeof(struct inotify_event) + ((struct inotify_event *)p)->len)
			watch_report(w, (struct inotify_event *)p);
	}
}

struct watch *watch_new(struct lower *l, watch_fn fn, void *user)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct watch *w;

	if (fd < 0)
		return NULL;
	w = g_new0(struct watch, 1);
	w->lower = l;
	w->fn = fn;
	w->user = user;
	w->inotify_fd = fd;
	w->stop_fd = eventfd(0, EFD_CLOEXEC);
	g_mutex_init(&w->lock);
	w->ino_of = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
	w->wd_of = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	w->thread = g_thread_new("watch", watch_main, w);
	return w;
}

void watch_free(struct watch *w)
{
	uint64_t one = 1;

	if (!w)
		return;
	if (write(w->stop_fd, &one, sizeof(one)) < 0)
		g_debug("the watching thread can't be stopped");
	g_thread_join(w->thread);
	close(w->inotify_fd);
	close(w->stop_fd);
	g_hash_table_unref(w->ino_of);
	g_hash_table_unref(w->wd_of);
	g_mutex_clear(&w->lock);
	g_free(w);
}

bool watch_add(struct watch *w, uint64_t ino, const char *path)
{
	g_autofree char *magic = NULL;
	int fd, wd;

	if (!w || w->full)
		return false;
	fd = lower_open_file(w->lower, path, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return false;
	magic = g_strdup_printf("/proc/self/fd/%d", fd);
	g_mutex_lock(&w->lock);
	wd = inotify_add_watch(w->inotify_fd, magic, EVENTS);
	if (wd < 0 && errno == ENOSPC) {
		w->full = true;
		g_warning("no more inotify watches (fs.inotify.max_user_watches): directories are checked once a second from here on");
	} else if (wd >= 0) {
		/* The same directory under another node: the last one shown hears of it. */
		uint64_t *old = g_hash_table_lookup(w->ino_of, GINT_TO_POINTER(wd));

		if (old)
			g_hash_table_remove(w->wd_of, old);
		g_hash_table_insert(w->ino_of, GINT_TO_POINTER(wd), g_memdup2(&ino, sizeof(ino)));
		g_hash_table_insert(w->wd_of, g_memdup2(&ino, sizeof(ino)), GINT_TO_POINTER(wd));
	}
	g_mutex_unlock(&w->lock);
	close(fd);
	return wd >= 0;
}

void watch_remove(struct watch *w, uint64_t ino)
{
	gpointer wd;

	if (!w)
		return;
	g_mutex_lock(&w->lock);
	if (g_hash_table_lookup_extended(w->wd_of, &ino, NULL, &wd)) {
		g_hash_table_remove(w->wd_of, &ino);
		g_hash_table_remove(w->ino_of, wd);
		inotify_rm_watch(w->inotify_fd, GPOINTER_TO_INT(wd));
	}
	g_mutex_unlock(&w->lock);
}

bool watch_is_full(struct watch *w)
{
	return w && w->full;
}
