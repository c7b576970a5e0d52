/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * blob - one side of a change as git would store it: a mode, bytes, an id
 *
 * A blob of up to BLOB_WHOLE_MAX bytes is held in memory; a larger one is only read in pieces and counts as binary, so
 * memory stays bounded whatever the sandbox holds.
 */

#include <glib.h>

#include "snapshot/compare.h"

#define BLOB_WHOLE_MAX (32 * 1024 * 1024)
/* A text of more lines counts as binary too: the line matcher needs some 60 bytes per line and side. */
#define BLOB_LINES_MAX (1024 * 1024)
/*
 * And a pair of texts of which more lines than this differ on both sides: two times a million random lines of one
 * letter keep the matcher busy for 15 to 30 seconds, 64 Ki for less than one. An edit in a long text stays a text.
 */
#define BLOB_CHANGED_LINES_MAX (64 * 1024)
#define BLOB_ID_SIZE 41
#define BLOB_ID_NONE "0000000000000000000000000000000000000000"

struct blob {
	uint32_t mode; /* 0100644, 0100755 or 0120000; 0 = nothing that git knows */
	uint64_t size;
	GBytes *bytes;		/* NULL when absent or too large */
	bool binary;		/* by git's rule: a NUL in the first 8000 bytes; or too large for lines */
	struct tree_file *file; /* of a large one */
};

/* blob_mode() - the mode git gives an entry; 0 for directories, special files and NULL. */
uint32_t blob_mode(const struct entry *e);

/* blob_open() - @s may have no entry, or one that git does not know: an absent blob. Clear it also after a failure. */
int blob_open(struct side s, struct blob *ret);
void blob_clear(struct blob *b);

/* blobs_are_text() - the difference is to be shown in lines. */
bool blobs_are_text(const struct blob *a, const struct blob *b);
/* blob_read() - exactly @size bytes; -ESTALE when they are no longer there. */
int blob_read(const struct blob *b, void *buf, size_t size, uint64_t offset);
/* blob_id() - git's object id (SHA-1), BLOB_ID_NONE for an absent blob. */
int blob_id(const struct blob *b, char ret[BLOB_ID_SIZE]);
