/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * content - the bytes of one regular file that the sandbox changed
 *
 * Three homes behind one interface: the file in the workspace (unchanged: no content row at all), a blob in the index
 * (small) and a file in objects/ (large). A content grows from one home into the next by itself. A large file's first
 * write copies only the pages it touches: an object may have a *base* - the workspace file or an older content - from
 * which the bytes are read that were not written yet. Which pages were is kept in the index (table page), written after
 * the bytes and in the same transaction as whatever else the change changes; a page counts only while the object also
 * has data there (content.c says why).
 *
 * A content belongs to the epoch in which it was made. One of an older epoch is immutable; content_fork() makes its
 * successor.
 *
 * Transactions: content_open() reads the index; content_new, content_from_lower, content_fork, content_drop,
 * content_write, content_truncate and content_allocate write it, inside the caller's transaction. When one of them
 * fails, or the transaction is aborted for another reason, every content it changed is given to content_revert() or
 * closed, before any other use: memory is then ahead of the index. Bytes written to an object are not undone by that
 * where they replaced bytes of the same object, as after any failed write(2); sizes, inline bytes and pages that still
 * came from the base are. The other calls don't use the store, so they need neither a transaction nor its lock.
 *
 * One struct content is used under its caller's lock (content_sync() excepted), and no content is opened twice for
 * writing. It holds at most one descriptor for its object, and one for each step down to its base, taken at the first
 * use.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "snapshot/store.h"

struct content;

#define CONTENT_INLINE_MAX (64 * 1024)

/*
 * content_open() - an existing content for reading and, in its own epoch, writing; -ENOENT. @lower may be NULL if no
 * base can be there; it and @s are borrowed until content_close().
 */
int content_open(struct store *s, struct lower *lower, int64_t id, struct content **ret);
/* content_new() - an empty one. */
int content_new(struct store *s, struct lower *lower, struct content **ret);
/*
 * content_from_lower() - what the workspace file @o holds, ready to be changed: copied whole and hashed when small,
 * reflinked where the file system can, else block-wise on demand. @keep: how many of its first bytes will be needed (a
 * truncation needs fewer than all). -ESTALE when the file is not, or no longer, what @o says: record it anew and try
 * again. @o is added to the index when it has no id yet, and gets its hash (o->sha256, and in the index) when it was
 * read whole.
 */
int content_from_lower(struct store *s, struct lower *lower, struct origin *o, uint64_t keep, struct content **ret);
/*
 * content_fork() - the writable successor of an immutable content, keeping its first @keep bytes. -EINVAL for a
 * writable one.
 */
int content_fork(struct content *c, uint64_t keep, struct content **ret);
/*
 * content_revert() - what the index says, after an abort. -ENOENT: it was made in the aborted transaction, so close it.
 */
int content_revert(struct content *c);
/* content_ref() - one more content_close() to come: for a content_sync() after the lock is given up. */
struct content *content_ref(struct content *c);
void content_close(struct content *c);
typedef struct content content_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(content_t, content_close)

int64_t content_id(const struct content *c);
uint64_t content_size(const struct content *c);
/*
 * content_blocks() - 512-byte units for st_blocks: those in the store and those that still lie in the base (0 would say
 * "all hole").
 */
uint64_t content_blocks(struct content *c);
bool content_is_writable(const struct content *c);

/*
 * content_read() - the number of bytes read, 0 at the end, or -errno (-ESTALE: the base changed under us). Holes read
 * as zeros.
 */
ssize_t content_read(struct content *c, void *buf, size_t size, uint64_t offset);
/* content_write() - all of @size or -errno; the size grows as needed. -EROFS for a content of an older epoch. */
int content_write(struct content *c, const void *buf, size_t size, uint64_t offset);
int content_truncate(struct content *c, uint64_t size);
/*
 * content_allocate() - fallocate(2) with @mode: plain, KEEP_SIZE, PUNCH_HOLE and ZERO_RANGE; -EOPNOTSUPP for what it
 * does not know. Inside the range that the base shows, holes are written as zeros and nothing is reserved.
 */
int content_allocate(struct content *c, int mode, uint64_t offset, uint64_t length);
/* content_seek() - SEEK_DATA and SEEK_HOLE; -ENXIO as lseek(2). */
int64_t content_seek(struct content *c, uint64_t offset, int whence);
/* content_sync() - the bytes are on the disk, those of its base too (the index is store_sync()'s). Needs no lock. */
int content_sync(struct content *c);

/*
 * A change never takes away bytes that the index still speaks of before its transaction is committed. What it left
 * behind is given back afterwards, outside a transaction: by content_trim() what a truncation cut off, by
 * content_purge() the file of a dropped content (no harm if the content is there, again or still), by
 * content_purge_all() what a crash left, at the start.
 */
int content_trim(struct content *c);
/*
 * content_drop() - deletes a content of the current epoch that no row refers to any more; older ones are left to gc. 1 when
 * it leaves a file to content_purge(), else 0 or -errno.
 */
int content_drop(struct store *s, int64_t id);
int content_purge(struct store *s, int64_t id);
int content_purge_all(struct store *s);
