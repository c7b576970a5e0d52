/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * spans - how much of one file is in another, scored as git scores a rename
 *
 * A file is cut into lines, and what has no line break within 64 bytes into runs of 64. For each of a fixed number of
 * hashes it is known how many bytes are in spans of that hash: so moved lines count, memory has a bound whatever the file
 * holds, and two different spans that share a hash only make a score a little too high.
 */

#include <glib.h>
#include <stdint.h>

struct spans;

/* spans_new() - of an empty file. Bytes are added in order, in pieces of any size; then spans_end(), once. */
struct spans *spans_new(void);
void spans_add(struct spans *s, const void *data, size_t size);
void spans_end(struct spans *s);
void spans_free(struct spans *s);
typedef struct spans spans_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(spans_t, spans_free)

/* After spans_end(): */

/* spans_length() - hashes that occur: the score of two files takes as many steps as the sum of theirs. */
size_t spans_length(const struct spans *s);
/* spans_similarity() - percent of the larger file's bytes, rounded down, that the other has too; 0 when both are empty. */
uint8_t spans_similarity(const struct spans *a, const struct spans *b);
