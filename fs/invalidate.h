/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * invalidate - telling the kernel what to forget, from a thread of its own
 *
 * The kernel takes locks for it that a request in flight may hold, so it must never be done by a thread that serves requests. Queueing
 * never blocks and may be done under any lock.
 */

#include "fs/overlay.h"

struct invalidator;

struct invalidator *invalidator_new(const struct overlay_watcher *w);
void invalidator_free(struct invalidator *i); /* drops what is still queued */
void invalidator_expire(struct invalidator *i, uint64_t parent, const char *name);
void invalidator_inode(struct invalidator *i, uint64_t ino, bool data);
/* invalidator_drain() - returns when everything queued before was told. Not from a thread that serves requests. */
void invalidator_drain(struct invalidator *i);
