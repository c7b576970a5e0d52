/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * watch - hearing of what the owner changes in the workspace while it is mounted
 *
 * One inotify watch a workspace directory that the view has shown, kept as long as its node. What is watched may be cached by the kernel without
 * end: an event tells which name of which node to forget. A directory that can't be watched any more (the user's limit is reached) is
 * cached for a second only. Not reported by the system, and therefore not cached: changes through another hard link of a file.
 */

#include <stdbool.h>
#include <stdint.h>

struct lower;
struct watch;

enum watch_event {
	WATCH_NAME,     /* a name came, went, or stands for something else */
	WATCH_DATA,     /* bytes (and attributes) of the object under a name */
	WATCH_ATTR,     /* attributes of the object under a name */
	WATCH_SELF,     /* attributes of the directory itself */
	WATCH_GONE,     /* the directory is no longer there, or no longer where it was: it is not watched any more */
	WATCH_OVERFLOW, /* events were lost: anything may have changed. @ino is 0 */
};

/* Called from the watching thread, without locks. @name is NULL for WATCH_SELF, WATCH_GONE and WATCH_OVERFLOW. */
typedef void (*watch_fn)(uint64_t ino, const char *name, enum watch_event event, void *user);

/* watch_new() - NULL where the system gives no inotify instance; then nothing is watched. */
struct watch *watch_new(struct lower *l, watch_fn fn, void *user);
void watch_free(struct watch *w);
/* watch_add() - the workspace directory @path, which node @ino shows. False when it can't be watched. */
bool watch_add(struct watch *w, uint64_t ino, const char *path);
void watch_remove(struct watch *w, uint64_t ino);
/* watch_is_full() - a directory could not be watched for want of watches. */
bool watch_is_full(struct watch *w);
