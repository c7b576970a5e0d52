/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * terminal_text - names and contents on a terminal that must not obey them
 *
 * Control characters, escape sequences with them, and characters that are not seen but turn what is seen around (U+202E and its
 * like) are written out: ^[, <U+202E>. So are bytes that are no UTF-8 (<FF>), and what the locale cannot show.
 */

#include <glib.h>

/* terminal_text() - one line of UTF-8; tabs become blanks up to the next multiple of 8, counted from @column. Caller frees. */
char *terminal_text(const char *data, gsize size, guint column);
/* terminal_width() - the columns that a text of terminal_text() takes. */
guint terminal_width(const char *text);
/* terminal_cut() - cuts @text behind the last character that fits into @width columns, and returns it. */
char *terminal_cut(char *text, guint width);
