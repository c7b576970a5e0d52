/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * screen - the terminal as a whole, row by row; the home of ncurses
 *
 * One for the process. Texts are those of tools/terminal_text.h: nothing in them can do more than be seen. Rows and columns count
 * from 0; what does not fit is cut. Between screen_open() and screen_close() nothing else may be printed.
 */

#include <glib.h>
#include <stdbool.h>

enum screen_style {
	SCREEN_PLAIN,
	SCREEN_BAR,    /* a title or a line of keys */
	SCREEN_CURSOR, /* where one is */
	SCREEN_STRONG,
	SCREEN_FAINT,
	SCREEN_ADDED,
	SCREEN_REMOVED,
	SCREEN_HUNK,
	SCREEN_WARNING,
};

/* Keys that are no character; those above are their own number. */
enum screen_key {
	SCREEN_KEY_END = 0x110000, /* the terminal went away */
	SCREEN_KEY_RESIZE,
	SCREEN_KEY_UP,
	SCREEN_KEY_DOWN,
	SCREEN_KEY_LEFT,
	SCREEN_KEY_RIGHT,
	SCREEN_KEY_PAGE_UP,
	SCREEN_KEY_PAGE_DOWN,
	SCREEN_KEY_HOME,
	SCREEN_KEY_LAST,
	SCREEN_KEY_BACKSPACE,
	SCREEN_KEY_OTHER,
};
#define SCREEN_KEY_ESCAPE 0x1b
#define SCREEN_KEY_INTERRUPT 0x03

/* screen_open() - EXIT_USAGE without a terminal, EXIT_PLATFORM when nothing is known about it. */
bool screen_open(GError **error);
void screen_close(void);

guint screen_rows(void);
guint screen_columns(void);
void screen_clear(void);
void screen_put(guint row, guint column, enum screen_style style, const char *text);
/* screen_bar() - a whole row. */
void screen_bar(guint row, enum screen_style style, const char *text);
/* screen_show() - what was put becomes visible. */
void screen_show(void);
/* screen_key() - shows it and waits. Stopping (^Z) and coming back happen in here. */
guint screen_key(void);
/* screen_edit() - a line to be edited in the last row; NULL when it was given up. Caller frees. */
char *screen_edit(const char *label, const char *text);
