/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * content - the bytes of one regular file that the sandbox changed
 *
 * Three homes behind one interface: the file in the workspace (unchanged: no content row at all), a blob in the index (small)
 * and a file in objects/ (large). A content grows from one home into the next by itself. A large file's first write copies
 * only the pages it touches: an object may have a *base* - the workspace file or an older content - from which the bytes
 * are read that were not written yet. Which pages are there is told by the object file's own extents (SEEK_DATA), so data and
 * the knowledge about it can't get out of step, whatever crash comes between.
 *
 * A content belongs to the epoch in which it was made. One of an older epoch is immutable; content_fork() makes its successor.
 *
 * The index part (content_new, content_fork, content_drop and any call that returns *ret_dirty) runs inside the caller's
 * store transaction. content_read() needs no transaction. One struct content is used under its caller's lock.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "snapshot/store.h"

struct content;

#define CONTENT_INLINE_MAX (64 * 1024)

/* content_open() - an existing content for reading and, in its own epoch, writing. @lower may be NULL if no base can be there. */
int content_open(struct store *s, struct lower *lower, int64_t id, struct content **ret);
/* content_new() - an empty one. */
int content_new(struct store *s, struct lower *lower, struct content **ret);
/*
 * content_from_lower() - what the workspace file @o holds, ready to be changed: copied whole and hashed (o->sha256 is set) when
 * small, reflinked where the file system can, else block-wise on demand. -ESTALE when it was modified meanwhile.
 * @keep: how many of its first bytes will be needed (a truncation needs fewer than all).
 */
int content_from_lower(struct store *s, struct lower *lower, struct origin *o, uint64_t keep, struct content **ret);
/* content_fork() - the writable successor of an immutable content, keeping its first @keep bytes. */
int content_fork(struct content *c, uint64_t keep, struct content **ret);
void content_close(struct content *c);
typedef struct content content_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(content_t, content_close)

int64_t content_id(const struct content *c);
uint64_t content_size(const struct content *c);
uint64_t content_blocks(const struct content *c); /* 512-byte units taken in the store, for st_blocks */
bool content_is_writable(const struct content *c);

/* content_read() - the number of bytes read, 0 at the end, or -errno (-ESTALE: the base changed under us). Holes read as zeros. */
ssize_t content_read(struct content *c, void *buf, size_t size, uint64_t offset);
/* content_write() - all of @size or -errno; the size grows as needed. */
int content_write(struct content *c, const void *buf, size_t size, uint64_t offset);
int content_truncate(struct content *c, uint64_t size);
/* content_allocate() - fallocate(2) with @mode; -EOPNOTSUPP for what it does not know. */
int content_allocate(struct content *c, int mode, uint64_t offset, uint64_t length);
/* content_seek() - SEEK_DATA and SEEK_HOLE; -ENXIO as lseek(2). */
int64_t content_seek(struct content *c, uint64_t offset, int whence);
/* content_sync() - the bytes are on the disk (the index is store_sync()'s). Needs no lock. */
int content_sync(struct content *c);
/* content_drop() - deletes a content of the current epoch that no row refers to any more; older ones are left to gc. */
int content_drop(struct store *s, int64_t id);
