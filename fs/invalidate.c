/* SPDX-License-Identifier: MIT */
#include "fs/invalidate.h"

struct invalidator {
	struct overlay_watcher watcher;
	GAsyncQueue *queue;
	GThread *thread;
	GMutex lock;
	GHashTable *held; /* inode number (borrowed from the value) -> struct held; protected by @lock */
};

struct held {
	uint64_t ino;
	unsigned count;
	GQueue parked; /* struct item */
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

static void held_free(gpointer data)
{
	g_queue_clear_full(&((struct held *)data)->parked, item_free);
	g_free(data);
}

static bool park(struct invalidator *i, struct item *item)
{
	struct held *h;

	g_mutex_lock(&i->lock);
	h = item->ino ? g_hash_table_lookup(i->held, &item->ino) : NULL;
	if (h)
		g_queue_push_tail(&h->parked, item);
	g_mutex_unlock(&i->lock);
	return h;
}

static gpointer invalidator_main(gpointer data)
{
	struct invalidator *i = data;

	if (i->watcher.begin)
		i->watcher.begin(i->watcher.user);
	for (;;) {
		struct item *item = g_async_queue_pop(i->queue);
		enum item_kind kind = item->kind;

		if (park(i, item))
			continue;
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
	g_mutex_init(&i->lock);
	i->held = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, held_free);
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
	g_hash_table_unref(i->held);
	g_mutex_clear(&i->lock);
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

static void hold_one(struct invalidator *i, uint64_t ino)
{
	struct held *h = g_hash_table_lookup(i->held, &ino);

	if (!h) {
		h = g_new0(struct held, 1);
		h->ino = ino;
		g_queue_init(&h->parked);
		g_hash_table_insert(i->held, &h->ino, h);
	}
	h->count++;
}

static void release_one(struct invalidator *i, uint64_t ino)
{
	struct held *h = g_hash_table_lookup(i->held, &ino);
	struct item *item;

	if (--h->count > 0)
		return;
	while ((item = g_queue_pop_head(&h->parked)))
		g_async_queue_push(i->queue, item);
	g_hash_table_remove(i->held, &ino);
}

static void for_each_held(struct invalidator *i, const uint64_t *inos, size_t n, void (*fn)(struct invalidator *i, uint64_t ino))
{
	if (!i)
		return;
	g_mutex_lock(&i->lock);
	for (size_t k = 0; k < n; k++)
		if (inos[k])
			fn(i, inos[k]);
	g_mutex_unlock(&i->lock);
}

void invalidator_hold(struct invalidator *i, const uint64_t *inos, size_t n)
{
	for_each_held(i, inos, n, hold_one);
}

void invalidator_release(struct invalidator *i, const uint64_t *inos, size_t n)
{
	for_each_held(i, inos, n, release_one);
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
