/* SPDX-License-Identifier: MIT */
#include "fs/invalidate.h"

struct invalidator {
	struct overlay_watcher watcher;
	GAsyncQueue *queue;
	GThread *thread;
};

enum item_kind { ITEM_EXPIRE, ITEM_INODE, ITEM_MARK, ITEM_STOP };

struct item {
	enum item_kind kind;
	uint64_t ino;
	char *name;
	bool data;
	GMutex *lock; /* ITEM_MARK */
	GCond *reached;
	bool *done;
};

static void item_free(gpointer data)
{
	struct item *item = data;

	g_free(item->name);
	g_free(item);
}

static gpointer invalidator_main(gpointer data)
{
	struct invalidator *i = data;

	for (;;) {
		struct item *item = g_async_queue_pop(i->queue);
		enum item_kind kind = item->kind;

		if (kind == ITEM_EXPIRE) {
			i->watcher.expire_entry(item->ino, item->name, i->watcher.user);
		} else if (kind == ITEM_INODE) {
			i->watcher.inval_inode(item->ino, item->data, i->watcher.user);
		} else if (kind == ITEM_MARK) {
			g_mutex_lock(item->lock);
			*item->done = true;
			g_cond_signal(item->reached);
			g_mutex_unlock(item->lock);
		}
		item_free(item);
		if (kind == ITEM_STOP)
			return NULL;
	}
}

struct invalidator *invalidator_new(const struct overlay_watcher *w)
{
	struct invalidator *i = g_new0(struct invalidator, 1);

	i->watcher = *w;
	i->queue = g_async_queue_new_full(item_free);
	i->thread = g_thread_new("invalidate", invalidator_main, i);
	return i;
}

static void invalidator_push(struct invalidator *i, struct item item)
{
	g_async_queue_push(i->queue, g_memdup2(&item, sizeof(item)));
}

void invalidator_free(struct invalidator *i)
{
	if (!i)
		return;
	g_async_queue_push_front(i->queue, g_memdup2(&(struct item){ .kind = ITEM_STOP }, sizeof(struct item)));
	g_thread_join(i->thread);
	g_async_queue_unref(i->queue);
	g_free(i);
}

void invalidator_expire(struct invalidator *i, uint64_t parent, const char *name)
{
	if (i)
		invalidator_push(i, (struct item){ .kind = ITEM_EXPIRE, .ino = parent, .name = g_strdup(name) });
}

void invalidator_inode(struct invalidator *i, uint64_t ino, bool data)
{
	if (i)
		invalidator_push(i, (struct item){ .kind = ITEM_INODE, .ino = ino, .data = data });
}

void invalidator_drain(struct invalidator *i)
{
	GMutex lock;
	GCond reached;
	bool done = false;

	if (!i)
		return;
	g_mutex_init(&lock);
	g_cond_init(&reached);
	g_mutex_lock(&lock);
	invalidator_push(i, (struct item){ .kind = ITEM_MARK, .lock = &lock, .reached = &reached, .done = &done });
	while (!done)
		g_cond_wait(&reached, &lock);
	g_mutex_unlock(&lock);
	g_mutex_clear(&lock);
	g_cond_clear(&reached);
}
