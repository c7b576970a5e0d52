/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * streams - standard input, output and error of a confined program
 *
 * A terminal, a pipe and /dev/null are handed on as they are. A file or a socket is not: its descriptor could be
 * opened again through /proc/self/fd, for writing too, and a directory would be a way out. What comes from or goes to
 * a file runs through a pipe and a thread of ours, and so does output that is counted or kept. Input is read ahead of the
 * program.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct excerpt;
struct streams;

/*
 * streams_new() - looks at descriptors 0 to 2. @limit: bytes of output, 0 = none. @keep: bytes of each output that are kept as an
 * excerpt, unless it goes to a terminal. An error when one is a directory.
 */
struct streams *streams_new(uint64_t limit, size_t keep, GError **error);
/* streams_enter() - in the child: its descriptors 0 to 2. Async-signal-safe; false with errno. */
bool streams_enter(const struct streams *s);
/* streams_start() - in the parent, after the fork. */
void streams_start(struct streams *s);
/* streams_full_fd() - becomes readable when more than the limit was written. Borrowed. */
int streams_full_fd(const struct streams *s);
/* streams_finish() - waits until all output of a program that has ended is written, and stops reading input. */
void streams_finish(struct streams *s);
/*
 * streams_excerpt() - of descriptor 1 or 2, after streams_finish(); NULL when nothing was kept. Both in one when they go to the
 * same file. Borrowed.
 */
const struct excerpt *streams_excerpt(const struct streams *s, int fd);
void streams_free(struct streams *s);
