/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * redo - changes of the index that have returned to their callers and wait for the next commit of SQLite
 *
 * A commit costs more than the statements of a small change. So the changes of one busy moment share a transaction, and what makes each
 * of them last is this file, `redo` in the store: one write(2) for each, of its statements with their values. Who opens a store whose last
 * writer died runs them again, on the very state they were made on (store.c).
 *
 * A *batch* is the changes of one transaction. They are written from the start of the file over those of the batch before; the index
 * keeps the number of the batch it has, in the transaction that commits it, so those of the next number, and only those, are still to be done. It
 * survives kill -9 with all that returned; after a power cut it is a beginning of the batch, with all up to the last redo_sync(), or stale. Its space is taken from the
 * disk ahead, and behind it as much as the index may grow by in committing a batch (*room*): without that nothing is promised.
 *
 * Format, host order: records of a header (struct record_header in redo.c) and the change's statements. A statement is the number of its text in the
 * batch, the text itself where it comes for the first time, the row it has to insert, and its values. Records of one batch carry the same random
 * number, so that what a power cut left of another past is not taken for one of them.
 *
 * Used under the store's lock. Errors are 0 or -errno.
 */

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/db.h"

struct redo;

/* A change larger than this is committed by SQLite at once: that costs less than writing it twice. */
#define REDO_CHANGE_MAX (16 * 1024)
/* As many changes make a batch, at most. */
#define REDO_BATCH_MAX 64

/* redo_open() - of the store @dir; for writing it is made if need be. -ENOENT: none, for reading. */
int redo_open(const char *dir, bool writable, struct redo **ret);
void redo_close(struct redo *r);
/* redo_has() - whether the file has changes of @batch. */
bool redo_has(struct redo *r, int64_t batch);
/*
 * redo_run() - makes the changes of @batch again, in @db's open transaction. @ret_count: how many. -EUCLEAN: they were made on another state than
 * this. Abort the transaction on errors.
 */
int redo_run(struct redo *r, struct db *db, int64_t batch, unsigned *ret_count);

/* redo_begin_batch() - what is promised from now on belongs to @batch. */
void redo_begin_batch(struct redo *r, int64_t batch);
/* redo_begin_change() - forgets what was noted and not promised. */
void redo_begin_change(struct redo *r);
/* redo_note() - a statement of this change, for db_watch(). */
void redo_note(const char *sql, const struct db_value *values, int count, int64_t last_id, void *redo);
/*
 * redo_promise() - from here on the change survives the process. On failure (-E2BIG, -ENOSPC without room, ...) the batch is as before, and the change has to be
 * committed.
 */
int redo_promise(struct redo *r);
/*
 * redo_take_room() - as far as the disk has it. redo_free_room() - for the commit of a batch on a full one; true when there was some. Atomic: the
 * first may be called without the lock.
 */
void redo_take_room(struct redo *r);
bool redo_free_room(struct redo *r);
bool redo_has_room(const struct redo *r);
/*
 * redo_needs_sync() - from now on the batch has something that is safe from a power cut in this file only; so the index is synced between its commit
 * and the next batch. redo_sync() - makes it so; needs no lock.
 */
void redo_needs_sync(struct redo *r);
bool redo_is_needed(const struct redo *r); /* atomic */
int redo_sync(struct redo *r);
/* redo_count() - changes promised in this batch. */
unsigned redo_count(const struct redo *r);
