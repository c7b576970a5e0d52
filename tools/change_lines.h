/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * change_lines - a change as lines for a terminal: readable, and harmless whatever is in it (tools/terminal_text.h)
 */

#include <glib.h>

#include "snapshot/selection.h"

struct shown_line {
	char kind; /* '@' the head of a hunk, ' ' '-' '+' its lines, '\\' a remark on one, '#' words about the change, '!' a warning */
	guint part; /* caller's */
	char *text; /* without the kind */
};

/* change_lines_new() - an array of struct shown_line that frees itself. */
GPtrArray *change_lines_new(void);
/* change_lines_title() - status and path: "M src/a.c", "R old -> new". Caller frees. */
char *change_lines_title(const struct change *c);
/* change_lines_words() - what no hunk tells: a rename, a mode, a kind. */
void change_lines_words(GPtrArray *lines, const struct change *c);
/* change_lines_add() - takes @text. */
void change_lines_add(GPtrArray *lines, char kind, guint part, char *text);
void change_lines_hunk(GPtrArray *lines, const struct hunks *h, guint i, guint part);
/* change_lines_whole() - the difference of a change that is not in parts; @max lines of it. 0 or -errno. */
int change_lines_whole(GPtrArray *lines, const struct change *c, struct tree *from, struct tree *to, guint max, GError **error);
