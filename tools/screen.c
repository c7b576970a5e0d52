/* SPDX-License-Identifier: MIT */
#include "tools/screen.h"

#include <curses.h>
#include <signal.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/output.h"
#include "tools/terminal_text.h"

#define KEY_STOP 0x1a
/* A lone escape is known as such after so many ms; what follows one in a sequence of a key comes at once. */
#define ESCAPE_DELAY 25
#define EDIT_MAX 500

static SCREEN *terminal;
static bool colored;

static const struct {
	attr_t attributes;
	short color; /* -1 = the terminal's own */
} styles[] = {
	[SCREEN_PLAIN] = { A_NORMAL, -1 },
	[SCREEN_BAR] = { A_REVERSE, -1 },
	[SCREEN_CURSOR] = { A_REVERSE, -1 },
	[SCREEN_STRONG] = { A_BOLD, -1 },
	[SCREEN_FAINT] = { A_DIM, -1 },
	[SCREEN_ADDED] = { A_NORMAL, COLOR_GREEN },
	[SCREEN_REMOVED] = { A_NORMAL, COLOR_RED },
	[SCREEN_HUNK] = { A_NORMAL, COLOR_CYAN },
	[SCREEN_WARNING] = { A_BOLD, COLOR_YELLOW },
};

/* Opening */

static void init_colors(void)
{
	colored = output_has_color(STDOUT_FILENO) && has_colors() && start_color() == OK && use_default_colors() == OK;
	for (short i = 0; colored && i < (short)G_N_ELEMENTS(styles); i++)
		if (styles[i].color >= 0)
			init_pair(i, styles[i].color, -1);
}

/* newterm() would leak when it fails for that. */
static bool terminal_is_known(void)
{
	int known = 0;

	if (setupterm(NULL, STDOUT_FILENO, &known) == ERR)
		return false;
	del_curterm(cur_term);
	return true;
}

bool screen_open(GError **error)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		tool_error(
			error, EXIT_USAGE, NULL,
			"a review needs a terminal; without one there are sbxfs diff, sbxfs gate, sbxfs commit and sbxfs rollback");
		return false;
	}
	if (!terminal_is_known() || !(terminal = newterm(NULL, stdout, stdin))) {
		tool_error(error, EXIT_PLATFORM, NULL,
			   "nothing is known about a terminal of the kind TERM=%s: set TERM to what it is, xterm for most",
			   g_getenv("TERM"));
		return false;
	}
	set_escdelay(ESCAPE_DELAY);
	init_colors();
	raw(); /* ^C is a key here: no signal leaves the terminal as it is */
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	curs_set(0);
	return true;
}

void screen_close(void)
{
	if (!terminal)
		return;
	endwin();
	delscreen(terminal);
	terminal = NULL;
}

/* Output */

guint screen_rows(void)
{
	return LINES;
}

guint screen_columns(void)
{
	return COLS;
}

void screen_clear(void)
{
	erase();
}

static void set_style(enum screen_style style)
{
	attr_set(styles[style].attributes, colored && styles[style].color >= 0 ? (short)style : 0, NULL);
}

void screen_put(guint row, guint column, enum screen_style style, const char *text)
{
	g_autofree char *shown = NULL;
	g_autofree gunichar *wide = NULL;
	glong length;

	if (row >= screen_rows() || column >= screen_columns())
		return;
	shown = terminal_cut(g_strdup(text), screen_columns() - column);
	wide = g_utf8_to_ucs4_fast(shown, -1, &length);
	set_style(style);
	mvaddnwstr((int)row, (int)column, (const wchar_t *)wide, (int)length);
	set_style(SCREEN_PLAIN);
}

void screen_bar(guint row, enum screen_style style, const char *text)
{
	if (row >= screen_rows())
		return;
	set_style(style);
	mvhline((int)row, 0, ' ', COLS);
	set_style(SCREEN_PLAIN);
	screen_put(row, 0, style, text);
}

void screen_show(void)
{
	refresh();
}

/* Input */

static guint special_key(wint_t key)
{
	static const struct {
		wint_t key;
		guint ours;
	} keys[] = {
		{ KEY_RESIZE, SCREEN_KEY_RESIZE },
		{ KEY_UP, SCREEN_KEY_UP },
		{ KEY_DOWN, SCREEN_KEY_DOWN },
		{ KEY_LEFT, SCREEN_KEY_LEFT },
		{ KEY_RIGHT, SCREEN_KEY_RIGHT },
		{ KEY_PPAGE, SCREEN_KEY_PAGE_UP },
		{ KEY_NPAGE, SCREEN_KEY_PAGE_DOWN },
		{ KEY_HOME, SCREEN_KEY_HOME },
		{ KEY_END, SCREEN_KEY_LAST },
		{ KEY_BACKSPACE, SCREEN_KEY_BACKSPACE },
		{ KEY_ENTER, '\r' },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		if (keys[i].key == key)
			return keys[i].ours;
	return SCREEN_KEY_OTHER;
}

static void stop(void)
{
	endwin();
	raise(SIGSTOP);
	refresh();
}

guint screen_key(void)
{
	wint_t key;
	int r;

	for (;;) {
		refresh();
		r = get_wch(&key);
		if (r == KEY_CODE_YES)
			return special_key(key);
		if (r == ERR)
			return SCREEN_KEY_END;
		if (key == 0x7f || key == '\b')
			return SCREEN_KEY_BACKSPACE;
		if (key != KEY_STOP)
			return key;
		stop();
	}
}

static void show_edit(const char *label, const GString *text)
{
	guint width = screen_columns(), used = terminal_width(label), all = terminal_width(text->str);
	const char *end = text->str;

	/* The end is what is edited. */
	for (; *end && used + all + 1 > width; end = g_utf8_next_char(end))
		all = terminal_width(g_utf8_next_char(end));
	screen_bar(screen_rows() - 1, SCREEN_PLAIN, label);
	screen_put(screen_rows() - 1, used, SCREEN_PLAIN, end);
	screen_put(screen_rows() - 1, used + all, SCREEN_CURSOR, " ");
}

static void erase_last(GString *text)
{
	const char *last = text->len ? g_utf8_prev_char(text->str + text->len) : text->str;

	g_string_truncate(text, last - text->str);
}

char *screen_edit(const char *label, const char *text)
{
	g_autoptr(GString) line = g_string_new(text);

	for (;;) {
		guint key;

		show_edit(label, line);
		key = screen_key();
		if (key == '\r' || key == '\n')
			return g_strdup(line->str);
		if (key == SCREEN_KEY_ESCAPE || key == SCREEN_KEY_INTERRUPT || key == SCREEN_KEY_END)
			return NULL;
		if (key == SCREEN_KEY_BACKSPACE)
			erase_last(line);
		else if (key < SCREEN_KEY_END && g_unichar_isprint(key) && line->len < EDIT_MAX)
			g_string_append_unichar(line, key);
	}
}
