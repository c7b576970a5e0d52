/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * hunk - the way from one text to another in pieces, some of which are taken
 *
 * The pieces are the hunks of a unified diff; one that holds several edits can be split between them. hunks_compose() gives the
 * text with the pieces that were taken, byte by byte what either side has: line ends, a missing last one and empty texts included. So
 * none taken is the text before, all taken the one after, and the rest is the difference from the composed text to the one after.
 */

#include <glib.h>
#include <stdbool.h>

enum choice {
	CHOICE_OPEN, /* not decided */
	CHOICE_TAKEN,
	CHOICE_REFUSED,
	CHOICE_MIXED, /* only as an answer: of several parts */
};

struct hunks;

/* hunks_new() - both texts are kept; -EIO when they can't be compared. All is open at first. Free with hunks_free(). */
int hunks_new(GBytes *before, GBytes *after, struct hunks **ret, GError **error);
void hunks_free(struct hunks *h);

guint hunks_count(const struct hunks *h);
/* hunks_can_split() - it holds more than one edit. */
bool hunks_can_split(const struct hunks *h, guint i);
/* hunks_split() - the hunk becomes as many as it has edits, all chosen as it was; those behind it get higher numbers. */
void hunks_split(struct hunks *h, guint i);
void hunks_choose(struct hunks *h, guint i, enum choice choice);
enum choice hunks_choice(const struct hunks *h, guint i);
/* hunks_state() - of them all. CHOICE_OPEN when there are none. */
enum choice hunks_state(const struct hunks *h);

/* hunks_compose() - the text with what was taken; caller frees. */
GBytes *hunks_compose(const struct hunks *h);

/*
 * hunks_show() - hunk @i line by line: '@' for its head, ' ', '-' and '+' for lines without their line break, '\\' for what git says of
 * a last line that has none. @line is not terminated and may hold anything.
 */
typedef void (*hunk_line)(char kind, const char *line, gsize size, void *user);
void hunks_show(const struct hunks *h, guint i, hunk_line fn, void *user);
