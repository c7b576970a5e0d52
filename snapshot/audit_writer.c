/* SPDX-License-Identifier: MIT */
#include "snapshot/audit_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/attr.h"
#include "snapshot/audit.h"
#include "snapshot/audit_spool.h"

G_DEFINE_QUARK(sbxfs - audit - error - quark, audit_error)

/* Beyond this the spool starts again as soon as all of it is in the database. */
#define SPOOL_MAX (4 * 1024 * 1024)
/* Records after which the database's log is moved into the database. */
#define UNSYNCED_MAX 16384
/* Records waiting for the database; more of those that can't be refused are only counted. */
#define QUEUE_MAX 65536
/* How often a database that can't be written is tried again. */
#define RETRY_US (100 * G_TIME_SPAN_MILLISECOND)

struct batch {
	GPtrArray *encodings; /* GByteArray */
	GArray *results;      /* int32_t */
	uint64_t spool_generation;
	uint64_t spool_offset;
};

struct audit_writer {
	char *dir;
	GThread *thread;
	struct audit *audit; /* of the thread, once it runs */
	int64_t began;	     /* the last record before it was opened */

	GMutex lock; /* protects all below */
	GCond wake;  /* there is something to do */
	GCond done;  /* a batch has been tried */
	struct audit_spool *spool;
	struct batch queue;
	bool prepared;
	uint64_t prepared_at;
	GByteArray *prepared_encoding;
	int failed;	/* -errno of the last batch */
	guint unsynced; /* records since the last audit_sync() */
	uint64_t lost;	/* records that found no place */
	bool busy;	/* a batch is under way */
	bool flush;	/* somebody waits */
	bool stop;
	GPtrArray *sinks; /* struct audit_sink */
};

/* Batches */

static void batch_init(struct batch *b)
{
	b->encodings = g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
	b->results = g_array_new(FALSE, FALSE, sizeof(int32_t));
}

static void batch_clear(struct batch *b)
{
	g_clear_pointer(&b->encodings, g_ptr_array_unref);
	g_clear_pointer(&b->results, g_array_unref);
}

static void batch_add(struct batch *b, GByteArray *encoding, int32_t result)
{
	g_ptr_array_add(b->encodings, encoding);
	g_array_append_val(b->results, result);
}

/* What waits at the front: a batch that failed. */
static void batch_prepend(struct batch *b, struct batch *front)
{
	for (guint i = 0; i < b->encodings->len; i++)
		batch_add(front, g_byte_array_ref(g_ptr_array_index(b->encodings, i)),
			  g_array_index(b->results, int32_t, i));
	batch_clear(b);
	b->encodings = g_steal_pointer(&front->encodings);
	b->results = g_steal_pointer(&front->results);
}

static GByteArray *encode(struct audit_record *r)
{
	GByteArray *out = g_byte_array_sized_new(256);

	r->time = nsec_now();
	audit_record_encode(r, out);
	return out;
}

/* Under the lock. */
static void queue_add(struct audit_writer *w, GByteArray *encoding, int32_t result)
{
	/* The thread sleeps only while there is nothing. */
	if (w->queue.encodings->len == 0)
		g_cond_signal(&w->wake);
	batch_add(&w->queue, encoding, result);
}

/* Records */

/* The last batch could not be written; perhaps it can now. Under the lock, which is given up meanwhile. */
static int try_again(struct audit_writer *w)
{
	if (w->failed == 0 || w->stop)
		return w->failed;
	w->flush = true;
	g_cond_signal(&w->wake);
	g_cond_wait(&w->done, &w->lock);
	return w->failed;
}

int audit_writer_prepare(struct audit_writer *w, struct audit_record *r, bool frees)
{
	g_autoptr(GByteArray) encoding = NULL;
	int e;

	r->result = 0;
	encoding = encode(r);
	g_mutex_lock(&w->lock);
	g_assert(!w->prepared);
	e = frees ? 0 : try_again(w);
	if (e == 0)
		e = audit_spool_append(w->spool, 0, encoding, &w->prepared_at);
	if (e == 0) {
		w->prepared = true;
		w->prepared_encoding = g_steal_pointer(&encoding);
	}
	g_mutex_unlock(&w->lock);
	return e;
}

void audit_writer_settle(struct audit_writer *w, int32_t result)
{
	g_mutex_lock(&w->lock);
	g_assert(w->prepared);
	if (result != 0 && audit_spool_set_result(w->spool, w->prepared_at, result) < 0)
		g_debug("the spool says that a change was made which failed");
	w->prepared = false;
	queue_add(w, g_steal_pointer(&w->prepared_encoding), result);
	g_mutex_unlock(&w->lock);
}

int audit_writer_append(struct audit_writer *w, struct audit_record *r)
{
	GByteArray *encoding = encode(r);
	uint64_t offset;
	int e;

	g_mutex_lock(&w->lock);
	e = audit_spool_append(w->spool, r->result, encoding, &offset);
	/* Not in the spool, it may still reach the database. */
	if (e == 0 || w->queue.encodings->len < QUEUE_MAX) {
		queue_add(w, encoding, r->result);
	} else {
		g_byte_array_unref(encoding);
		w->lost++;
	}
	g_mutex_unlock(&w->lock);
	return e;
}

void audit_writer_note(struct audit_writer *w, struct audit_record *r)
{
	GByteArray *encoding = encode(r);

	g_mutex_lock(&w->lock);
	if (w->queue.encodings->len < QUEUE_MAX) {
		queue_add(w, encoding, r->result);
	} else {
		g_byte_array_unref(encoding);
		w->lost++;
	}
	g_mutex_unlock(&w->lock);
}

/* The thread */

/* Under the lock. */
static void wake_sinks(struct audit_writer *w)
{
	for (guint i = 0; i < w->sinks->len; i++)
		audit_sink_wake(w->sinks->pdata[i]);
}

static void record_sink(struct audit_writer *w, const char *detail)
{
	struct audit_record r = {
		.kind = AUDIT_LOG, .operation = "sink", .result = EIO, .pid = (int32_t)getpid(), .uid = getuid(), .detail = detail
	};

	audit_writer_append(w, &r);
}

static void sink_left(enum audit_sink_kind kind, const char *why, void *user)
{
	g_autofree char *detail = g_strdup_printf("the copy (%s) is given up: %s", audit_sink_kind_name(kind), why);

	record_sink(user, detail);
}

/* Under the lock. */
static void note_lost(struct audit_writer *w)
{
	g_autofree char *detail = g_strdup_printf(
		"%" PRIu64 " denials or reads found no place while the audit could not be written", w->lost);
	struct audit_record r = {
		.kind = AUDIT_LOG, .operation = "lost", .detail = detail, .pid = (int32_t)getpid(), .uid = getuid()
	};

	w->lost = 0;
	batch_add(&w->queue, encode(&r), 0);
}

/* One batch; enters and leaves with the lock, and gives it up meanwhile unless @locked. */
static void move_batch(struct audit_writer *w, bool locked)
{
	struct batch b = w->queue;
	int r;

	b.spool_generation = audit_spool_generation(w->spool);
	/* A prepared change has its place in the spool already but comes with a later batch. */
	b.spool_offset = w->prepared ? w->prepared_at : audit_spool_size(w->spool);
	batch_init(&w->queue);
	w->busy = true;
	if (!locked)
		g_mutex_unlock(&w->lock);
	r = audit_append(w->audit, b.encodings, (const int32_t *)(void *)b.results->data, b.spool_generation,
			 b.spool_offset);
	if (!locked)
		g_mutex_lock(&w->lock);
	if (r == 0)
		wake_sinks(w);
	w->busy = false;
	w->failed = r;
	w->unsynced += b.encodings->len;
	if (r < 0)
		batch_prepend(&w->queue, &b);
	else if (w->lost > 0)
		note_lost(w);
	batch_clear(&b);
	g_cond_broadcast(&w->done);
}

/*
 * Keeps the spool and the database's log short. What leaves the spool must not be lost with the power, so the disk
 * first; nobody waits for it. Only the few records that came meanwhile are moved with requests waiting.
 */
static void tidy(struct audit_writer *w)
{
	bool shrink = audit_spool_size(w->spool) > SPOOL_MAX;
	int r;

	if (!shrink && w->unsynced < UNSYNCED_MAX)
		return;
	w->unsynced = 0;
	w->busy = true;
	g_mutex_unlock(&w->lock);
	r = audit_sync(w->audit);
	g_mutex_lock(&w->lock);
	w->busy = false;
	g_cond_broadcast(&w->done);
	if (r == 0 && shrink && w->queue.encodings->len > 0)
		move_batch(w, true);
	/* With a change under way, or a record that has just come: next time. */
	if (r == 0 && shrink && !w->prepared && w->queue.encodings->len == 0 && audit_spool_restart(w->spool, 0) < 0)
		g_debug("the spool of the audit grows on");
}

/* Lets records gather, unless somebody waits for them. */
static void gather(struct audit_writer *w, gint64 time)
{
	gint64 end = g_get_monotonic_time() + time;

	while (!w->stop && !w->flush && g_cond_wait_until(&w->wake, &w->lock, end))
		;
}

static gpointer writer_main(gpointer data)
{
	struct audit_writer *w = data;

	g_mutex_lock(&w->lock);
	for (;;) {
		while (w->queue.encodings->len == 0 && !w->stop)
			g_cond_wait(&w->wake, &w->lock);
		if (w->queue.encodings->len == 0)
			break;
		gather(w, w->failed < 0 ? RETRY_US : AUDIT_BATCH_DELAY_MS * G_TIME_SPAN_MILLISECOND);
		w->flush = false;
		move_batch(w, false);
		if (w->failed == 0)
			tidy(w);
		if (w->stop && w->failed < 0)
			break; /* the spool has what matters */
	}
	g_mutex_unlock(&w->lock);
	return NULL;
}

int audit_writer_flush(struct audit_writer *w)
{
	int r;

	g_mutex_lock(&w->lock);
	do {
		w->flush = w->queue.encodings->len > 0;
		if (!w->flush && !w->busy)
			break;
		g_cond_signal(&w->wake);
		g_cond_wait(&w->done, &w->lock);
	} while (w->failed == 0);
	r = w->failed;
	g_mutex_unlock(&w->lock);
	return r;
}

/* Life */

static bool recover_one(const struct audit_record *r, uint64_t end, void *user)
{
	GByteArray *encoding = g_byte_array_new();

	(void)end;
	audit_record_encode(r, encoding);
	batch_add(user, encoding, r->result);
	return true;
}

/* What the spool has and the chain has not; then the spool begins anew. */
static int writer_recover(struct audit_writer *w)
{
	struct audit_checkpoint c;
	uint64_t generation;
	struct batch b = { 0 };
	int r = audit_checkpoint(w->audit, &c);

	if (r < 0)
		return r;
	w->began = c.last;
	batch_init(&b);
	r = audit_spool_read(w->dir, c.spool_generation, c.spool_offset, recover_one, &b, &generation);
	if (r == 0 && b.encodings->len > 0) {
		g_autofree char *detail = g_strdup_printf("%u records of a process that was killed; if the last one is "
							  "a change, it may not have been made",
							  b.encodings->len);
		struct audit_record note = { .kind = AUDIT_LOG,
					     .operation = "recover",
					     .detail = detail,
					     .pid = (int32_t)getpid(),
					     .uid = getuid() };

		batch_add(&b, encode(&note), 0);
		r = audit_append(w->audit, b.encodings, (const int32_t *)(void *)b.results->data,
				 audit_spool_generation(w->spool), audit_spool_size(w->spool));
	}
	if (r == -ENOSPC || r == -EDQUOT) {
		/* They wait in the queue, and so does every change, until there is room. */
		batch_prepend(&w->queue, &b);
		w->failed = r;
		return 0;
	}
	batch_clear(&b);
	if (r == 0 && (audit_spool_size(w->spool) > SPOOL_START || generation < c.spool_generation)) {
		r = audit_sync(w->audit);
		if (r == 0)
			r = audit_spool_restart(w->spool, c.spool_generation);
	}
	return r;
}

static void writer_free(struct audit_writer *w)
{
	audit_close(w->audit);
	audit_spool_close(w->spool);
	batch_clear(&w->queue);
	g_ptr_array_unref(w->sinks);
	g_mutex_clear(&w->lock);
	g_cond_clear(&w->wake);
	g_cond_clear(&w->done);
	g_free(w->dir);
	g_free(w);
}

static void set_error(GError **error, const char *dir, int r)
{
	int code = r == -EBUSY			  ? AUDIT_ERROR_BUSY
		   : r == -EPROTO		  ? AUDIT_ERROR_VERSION
		   : r == -ENOSPC || r == -EDQUOT ? AUDIT_ERROR_NO_SPACE
						  : AUDIT_ERROR_FAILED;

	g_set_error(error, AUDIT_ERROR, code, "the audit in %s: %s", dir,
		    r == -EBUSY	    ? "another process writes it"
		    : r == -EPROTO  ? "it was written by a newer sbxfs"
		    : r == -EUCLEAN ? "audit.db is damaged; move it away to begin a new one"
				    : g_strerror(-r));
}

/* Signals are the main thread's. */
static void start_thread(struct audit_writer *w)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	w->thread = g_thread_new("audit", writer_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct audit_writer *audit_writer_open(const char *dir, GError **error)
{
	struct audit_writer *w = g_new0(struct audit_writer, 1);
	int r;

	w->dir = g_strdup(dir);
	w->sinks = g_ptr_array_new();
	g_mutex_init(&w->lock);
	g_cond_init(&w->wake);
	g_cond_init(&w->done);
	batch_init(&w->queue);
	r = audit_spool_open(dir, &w->spool);
	if (r == 0)
		r = audit_open(dir, true, &w->audit);
	if (r == 0)
		r = writer_recover(w);
	if (r < 0) {
		set_error(error, dir, r);
		writer_free(w);
		return NULL;
	}
	start_thread(w);
	return w;
}

/* While the thread still runs: what they leave behind has a record. */
static void close_sinks(struct audit_writer *w)
{
	g_autoptr(GPtrArray) sinks = NULL;

	if (w->sinks->len == 0)
		return;
	audit_writer_flush(w);
	g_mutex_lock(&w->lock);
	sinks = g_steal_pointer(&w->sinks);
	w->sinks = g_ptr_array_new();
	g_mutex_unlock(&w->lock);
	for (guint i = 0; i < sinks->len; i++)
		if (!audit_sink_close(sinks->pdata[i]))
			record_sink(w, "a copy did not take all records before the end");
}

void audit_writer_close(struct audit_writer *w)
{
	if (!w)
		return;
	close_sinks(w);
	g_mutex_lock(&w->lock);
	w->stop = true;
	g_cond_signal(&w->wake);
	g_mutex_unlock(&w->lock);
	g_thread_join(w->thread);
	if (w->failed == 0)
		audit_sync(w->audit);
	writer_free(w);
}

bool audit_writer_sink(struct audit_writer *w, enum audit_sink_kind kind, const char *target, GError **error)
{
	struct audit_sink *s = audit_sink_open(w->dir, kind, target, w->began, sink_left, w, error);

	if (!s)
		return false;
	g_mutex_lock(&w->lock);
	g_ptr_array_add(w->sinks, s);
	g_mutex_unlock(&w->lock);
	return true;
}

int audit_writer_retain(struct audit_writer *w, int64_t before, uint64_t max_bytes)
{
	struct audit_record note = {
		.kind = AUDIT_LOG, .operation = "retain", .pid = (int32_t)getpid(), .uid = getuid()
	};
	g_autofree char *detail = NULL;
	uint64_t dropped = 0;
	int r;

	g_mutex_lock(&w->lock);
	while (w->busy)
		g_cond_wait(&w->done, &w->lock);
	r = audit_retain(w->audit, before, max_bytes, &dropped);
	g_mutex_unlock(&w->lock);
	if (r < 0 || dropped == 0)
		return r;
	note.detail = detail = g_strdup_printf("%" PRIu64 " records dropped, the oldest ones", dropped);
	return audit_writer_append(w, &note);
}
