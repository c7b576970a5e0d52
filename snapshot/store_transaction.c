/* SPDX-License-Identifier: MIT */
/*
 * store_transaction - how changes last
 *
 * Promised changes (redo.h) stay in SQLite's open transaction, so whoever reads through this handle sees them, and the next change joins them. All are
 * committed together. When a change is aborted, or a commit fails, the transaction is rolled back and the promised ones are made again.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/store_private.h"

#define BATCH_KEY "redo"

/* The reserve */

/* Room for some hundred deletions in the write-ahead log; each makes more. */
#define RESERVE_SIZE (1024 * 1024)

static void store_take_reserve(struct store *s)
{
	if (s->reserve_fd < 0 || __atomic_load_n(&s->reserved, __ATOMIC_ACQUIRE))
		return;
	if (posix_fallocate(s->reserve_fd, 0, RESERVE_SIZE) == 0)
		__atomic_store_n(&s->reserved, 1, __ATOMIC_RELEASE);
	else if (ftruncate(s->reserve_fd, 0) < 0)
		g_debug("the reserve can't be shortened");
}

void store_open_reserve(struct store *s)
{
	g_autofree char *path = g_build_filename(s->dir, "reserve", NULL);

	s->reserve_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	store_take_reserve(s);
}

bool store_free_reserve(struct store *s)
{
	if (!__atomic_exchange_n(&s->reserved, 0, __ATOMIC_ACQ_REL))
		return false;
	return ftruncate(s->reserve_fd, 0) == 0;
}

/* The disk */

/* The write-ahead log, which SQLite keeps as long as the connection is open. Returns the descriptor or -errno. */
static int store_wal(struct store *s)
{
	g_autofree char *path = NULL;
	int fd = __atomic_load_n(&s->wal_fd, __ATOMIC_ACQUIRE), expected = -1;

	if (fd >= 0)
		return fd;
	path = g_build_filename(s->dir, "store.db-wal", NULL);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (__atomic_compare_exchange_n(&s->wal_fd, &expected, fd, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return fd;
	close(fd);
	return expected;
}

/*
 * In WAL mode with synchronous = NORMAL a commit is in the log but not yet on the disk; a checkpoint syncs the log before it empties it. So
 * syncing the log is what is left to do, and it needs neither the connection nor its lock.
 */
static int sync_log(struct store *s, uint64_t commits)
{
	int fd = store_wal(s);

	if (fd < 0 && fd != -ENOENT)
		return fd;
	if (fd >= 0 && fdatasync(fd) < 0)
		return -errno;
	if (__atomic_load_n(&s->synced, __ATOMIC_RELAXED) < commits)
		__atomic_store_n(&s->synced, commits, __ATOMIC_RELAXED);
	return 0;
}

/* Transactions */

/* What kill -9 may make the remembered size wrong by. */
#define USAGE_STEP (1024 * 1024)

static bool waits(const struct store *s)
{
	return __atomic_load_n(&s->waiting, __ATOMIC_RELAXED);
}

/* All commits are. */
static bool is_synced(const struct store *s)
{
	return __atomic_load_n(&s->synced, __ATOMIC_RELAXED) == s->commits;
}

static void roll_back(struct store *s)
{
	/* A full disk may have ended the transaction already; then this says so, and that is all right. */
	db_run(db_query(s->db, "ROLLBACK"));
}

/* With the promised changes in it. */
static int open_transaction(struct store *s)
{
	unsigned again;
	int r = db_run(db_query(s->db, "BEGIN IMMEDIATE"));

	if (r < 0 || !waits(s))
		return r;
	r = redo_run(s->redo, s->db, s->batch + 1, &again);
	if (r == 0 && again != redo_count(s->redo))
		r = -EUCLEAN;
	if (r < 0)
		roll_back(s);
	return r;
}

/* After a failure. If this fails, too, the next change tries again before it is made. */
static void open_transaction_anew(struct store *s)
{
	roll_back(s);
	if (waits(s) && open_transaction(s) < 0)
		g_debug("promised changes wait in %s/redo", s->dir);
}

static int put_batch(struct store *s, int64_t batch)
{
	static const char sql[] = "INSERT INTO setting VALUES ('" BATCH_KEY "', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
	g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, batch);

	return db_write(s->db, sql, &(struct db_value){ .type = DB_TEXT, .data = text, .size = strlen(text) }, 1);
}

/* It is committed. What was synced in its file only is so in the index before it is written over. */
static void end_batch(struct store *s)
{
	s->batch++;
	__atomic_store_n(&s->waiting, 0, __ATOMIC_RELAXED);
	if (redo_is_needed(s->redo) && sync_log(s, s->commits) < 0)
		s->stuck = true;
	else
		redo_begin_batch(s->redo, s->batch + 1);
}

static int commit_all(struct store *s)
{
	int r = waits(s) ? put_batch(s, s->batch + 1) : 0;

	s->changing = false;
	if (r == 0)
		r = db_run(db_query(s->db, "COMMIT"));
	if (r < 0)
		return r;
	s->commits++;
	if (waits(s))
		end_batch(s);
	return 0;
}

int store_begin(struct store *s)
{
	int r = db_in_transaction(s->db) ? 0 : open_transaction(s);

	s->epoch_before = s->epoch;
	s->changing = r == 0;
	if (s->redo)
		redo_begin_change(s->redo);
	return r;
}

int store_commit(struct store *s)
{
	int r = usage_save(s, USAGE_STEP);

	if (r == 0)
		r = commit_all(s);
	if (r < 0)
		store_abort(s);
	return r;
}

int store_promise(struct store *s)
{
	int r = usage_save(s, USAGE_STEP);

	if (r < 0 || !s->redo || s->stuck || redo_count(s->redo) >= REDO_BATCH_MAX || redo_promise(s->redo) < 0)
		return store_commit(s);
	s->changing = false;
	__atomic_store_n(&s->waiting, 1, __ATOMIC_RELAXED);
	/* If that fails, the next one is not promised. */
	if (redo_count(s->redo) == REDO_BATCH_MAX && store_flush(s) < 0)
		g_debug("%u changes wait in %s/redo", redo_count(s->redo), s->dir);
	return 0;
}

void store_abort(struct store *s)
{
	s->changing = false;
	s->epoch = s->epoch_before;
	open_transaction_anew(s);
}

bool store_waits(const struct store *s, bool cheap)
{
	return waits(s) && !(cheap && redo_is_needed(s->redo));
}

int store_flush(struct store *s)
{
	int r = 0;

	if (waits(s) && !db_in_transaction(s->db))
		r = open_transaction(s);
	if (r == 0 && waits(s))
		r = commit_all(s);
	if (r == -ENOSPC && redo_free_room(s->redo)) {
		open_transaction_anew(s);
		r = db_in_transaction(s->db) ? commit_all(s) : -ENOSPC;
	}
	if (r < 0)
		open_transaction_anew(s);
	return r;
}

/* What db_watch() tells. Whatever is written belongs to a change, or there is no promised one that it could get lost with and it is a commit. */
static void note_written(const char *sql, const struct db_value *values, int count, int64_t last_id, void *user)
{
	struct store *s = user;

	g_warn_if_fail(s->changing || !waits(s));
	s->commits += !s->changing;
	if (s->redo)
		redo_note(sql, values, count, last_id, s->redo);
}

/* The setting; 0 when there is none, or no table. */
static int64_t stored_batch(struct store *s)
{
	g_autofree char *text = store_get(s, BATCH_KEY);

	return text ? g_ascii_strtoll(text, NULL, 10) : 0;
}

static int make_again(struct store *s)
{
	unsigned count;
	int r = db_run(db_query(s->db, "BEGIN IMMEDIATE"));

	if (r == 0)
		r = redo_run(s->redo, s->db, s->batch + 1, &count);
	if (r == 0)
		r = put_batch(s, s->batch + 1);
	if (r == 0)
		r = db_run(db_query(s->db, "COMMIT"));
	if (r < 0)
		roll_back(s);
	else
		s->batch++;
	return r;
}

int store_redo(struct store *s)
{
	int r = redo_open(s->dir, true, &s->redo);

	/* Of what the last writer committed nobody knows whether it is on the disk. */
	s->commits++;
	db_watch(s->db, note_written, s);
	/* There is none, and no room for one. */
	if (r == -ENOSPC || r == -EDQUOT)
		return 0;
	if (r < 0)
		return r;
	s->batch = stored_batch(s);
	if (redo_has(s->redo, s->batch + 1)) {
		r = make_again(s);
		if (r == -ENOSPC && (redo_free_room(s->redo) || store_free_reserve(s)))
			r = make_again(s);
	}
	if (r < 0)
		return r;
	redo_begin_batch(s->redo, s->batch + 1);
	return 0;
}

bool store_lags(struct store *s)
{
	struct redo *redo;
	bool lags;

	if (redo_open(s->dir, false, &redo) < 0)
		return false;
	lags = redo_has(redo, stored_batch(s) + 1);
	redo_close(redo);
	return lags;
}

/*
 * Promised changes are made anew on the index as it is, so they are safe in their own file when that index is. It has its blocks already, while the
 * log grows, and there is no commit to be made. But that the log grows also has the file system write down what was made before, the names of new
 * objects among it, without which the index would speak of files that are not there.
 */
int store_sync_begin(struct store *s, struct store_sync *ret)
{
	int r = 0;

	*ret = (struct store_sync){ .what = STORE_SYNC_INDEX };
	if (waits(s) && is_synced(s) && !__atomic_load_n(&s->objects.created, __ATOMIC_RELAXED)) {
		redo_needs_sync(s->redo);
		ret->what = STORE_SYNC_PROMISED;
		return 0;
	}
	if (waits(s))
		r = store_flush(s);
	ret->objects = __atomic_exchange_n(&s->objects.created, 0, __ATOMIC_RELAXED);
	ret->commits = s->commits;
	if (r == 0 && is_synced(s) && !ret->objects)
		ret->what = STORE_SYNC_NOTHING;
	return r;
}

int store_sync(struct store *s, const struct store_sync *what)
{
	int r = what->what == STORE_SYNC_PROMISED ? redo_sync(s->redo) : what->what == STORE_SYNC_INDEX ? sync_log(s, what->commits) : 0;

	if (r < 0 && what->objects)
		__atomic_store_n(&s->objects.created, 1, __ATOMIC_RELAXED);
	return r;
}

/* A log shorter than this is left alone: a checkpoint syncs twice, and what the log holds is as safe as in the database. */
#define WAL_LONG (4 * 1024 * 1024)

int store_checkpoint(struct store *s)
{
	int fd = store_wal(s), r = 0;
	struct stat st;

	store_take_reserve(s);
	if (s->redo)
		redo_take_room(s->redo);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < WAL_LONG)
		return 0;

	if (!s->checkpoint_db) {
		g_autofree char *path = g_build_filename(s->dir, "store.db", NULL);

		r = db_open(path, false, false, &s->checkpoint_db);
	}
	return r < 0 ? r : db_checkpoint(s->checkpoint_db, false);
}
