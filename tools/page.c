/* SPDX-License-Identifier: MIT */
#include "tools/page.h"

#include <string.h>

#include "tools/change_lines.h"
#include "tools/screen.h"
#include "tools/terminal_text.h"

/* For the mark and the kind of the line. */
#define MARGIN 2

struct row {
	const struct shown_line *line;
	char *text;
	bool goes_on; /* not the line's first */
};

static void row_free(gpointer data)
{
	struct row *row = data;

	g_free(row->text);
	g_free(row);
}

void page_clear(struct page *p)
{
	g_clear_pointer(&p->rows, g_ptr_array_unref);
}

/* Rows */

static void wrap(struct page *p, const struct shown_line *line)
{
	guint width = p->columns > MARGIN ? p->columns - MARGIN : 1;
	const char *text = line->text;

	do {
		struct row *row = g_new0(struct row, 1);

		*row = (struct row){ .line = line, .text = terminal_cut(g_strdup(text), width), .goes_on = text != line->text };
		/* A wide character in one column. */
		if (!*row->text && *text) {
			g_free(row->text);
			row->text = g_strndup(text, g_utf8_next_char(text) - text);
		}
		text += strlen(row->text);
		g_ptr_array_add(p->rows, row);
	} while (*text);
}

static void make_rows(struct page *p)
{
	g_clear_pointer(&p->rows, g_ptr_array_unref);
	p->rows = g_ptr_array_new_with_free_func(row_free);
	p->columns = screen_columns();
	for (guint i = 0; i < p->lines->len; i++)
		wrap(p, p->lines->pdata[i]);
}

void page_set(struct page *p, GPtrArray *lines)
{
	p->lines = lines;
	make_rows(p);
}

static const struct row *row_at(const struct page *p, guint i)
{
	return p->rows->pdata[i];
}

/* Another width: what was at the top stays there. */
static void adapt(struct page *p)
{
	const struct shown_line *top = p->top < p->rows->len ? row_at(p, p->top)->line : NULL;

	if (p->columns == screen_columns())
		return;
	make_rows(p);
	for (p->top = 0; top && p->top < p->rows->len && row_at(p, p->top)->line != top;)
		p->top++;
}

static guint last_top(const struct page *p)
{
	return p->rows->len > p->height ? p->rows->len - p->height : 0;
}

/* Drawing */

static enum screen_style style_of(char kind)
{
	switch (kind) {
	case '+':
		return SCREEN_ADDED;
	case '-':
		return SCREEN_REMOVED;
	case '@':
		return SCREEN_HUNK;
	case '!':
		return SCREEN_WARNING;
	case '\\':
		return SCREEN_FAINT;
	case '#':
		return SCREEN_STRONG;
	default:
		return SCREEN_PLAIN;
	}
}

static void draw_row(const struct row *row, guint at, guint part)
{
	bool patch = strchr("+- \\", row->line->kind) != NULL && !row->goes_on;
	const char kind[] = { patch ? row->line->kind : ' ', '\0' };

	screen_put(at, 0, SCREEN_CURSOR, part && row->line->part == part ? " " : "");
	screen_put(at, 1, style_of(row->line->kind), kind);
	screen_put(at, MARGIN, style_of(row->line->kind), row->text);
}

void page_draw(struct page *p, guint first, guint height, guint part)
{
	p->height = height;
	adapt(p);
	p->top = MIN(p->top, last_top(p));
	for (guint i = 0; i < height && p->top + i < p->rows->len; i++)
		draw_row(row_at(p, p->top + i), first + i, part);
}

/* Moving */

static void scroll_by(struct page *p, int rows)
{
	int top = (int)p->top + rows;

	p->top = MIN((guint)MAX(top, 0), last_top(p));
}

bool page_key(struct page *p, guint key)
{
	int height = MAX((int)p->height - 1, 1);

	switch (key) {
	case SCREEN_KEY_UP:
	case 'k':
		scroll_by(p, -1);
		return true;
	case SCREEN_KEY_DOWN:
	case 'j':
		scroll_by(p, 1);
		return true;
	case SCREEN_KEY_PAGE_UP:
	case 'b':
		scroll_by(p, -height);
		return true;
	case SCREEN_KEY_PAGE_DOWN:
	case ' ':
		scroll_by(p, height);
		return true;
	case SCREEN_KEY_HOME:
	case 'g':
		p->top = 0;
		return true;
	case SCREEN_KEY_LAST:
	case 'G':
		p->top = last_top(p);
		return true;
	default:
		return false;
	}
}

guint page_part(const struct page *p, guint part)
{
	guint found = 0;

	for (guint i = p->top; i < p->rows->len && i < p->top + p->height; i++) {
		guint here = row_at(p, i)->line->part;

		if (here && here == part)
			return part;
		if (here && !found)
			found = here;
	}
	return found ? found : part;
}

void page_go_to(struct page *p, guint part)
{
	for (guint i = 0; i < p->rows->len; i++) {
		if (row_at(p, i)->line->part != part)
			continue;
		if (i < p->top || i + 1 >= p->top + p->height)
			p->top = i;
		return;
	}
}
