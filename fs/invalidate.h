/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * invalidate - telling the kernel what to forget, from a thread of its own
 *
 * The kernel takes locks for it that a request in flight may hold, so it must never be done by a thread that serves requests. Queueing
 * never blocks and may be done under any lock. What concerns an inode that is *held*, because a request waits for a human with the
 * kernel's lock of it (a directory's while a name is made in it, a file's pages while they are read), is told when it is released; all
 * else does not wait for that. A request that begins to wait in the very moment of such a notification holds up the others until it has
 * its answer: rare, and never for ever.
 */

#include "fs/overlay.h"

struct invalidator;

struct invalidator *invalidator_new(const struct overlay_watcher *w);
void invalidator_free(struct invalidator *i); /* drops what is still queued */
void invalidator_expire(struct invalidator *i, uint64_t parent, const char *name);
void invalidator_inode(struct invalidator *i, uint64_t ino, bool data);
/* invalidator_hold(), invalidator_release() - around the wait of a request; counted. 0 is no inode. */
void invalidator_hold(struct invalidator *i, const uint64_t *inos, size_t n);
void invalidator_release(struct invalidator *i, const uint64_t *inos, size_t n);
/* invalidator_drain() - returns when everything queued before was told, but for what is held. Not from a thread that serves requests. */
void invalidator_drain(struct invalidator *i);
