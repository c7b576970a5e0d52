/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * page - lines of a change on the screen: wrapped, coloured and scrolled
 *
 * A line that is longer than the screen is wide goes on in the next row: nothing of a change can hide beyond the right edge.
 */

#include <glib.h>
#include <stdbool.h>

struct page {
	GPtrArray *lines;  /* struct shown_line; borrowed */
	GPtrArray *rows;   /* of the present width */
	guint columns;	   /* that width */
	guint top, height; /* rows in sight */
};
void page_clear(struct page *p);

/* page_set() - other lines, or the same ones again because they changed. */
void page_set(struct page *p, GPtrArray *lines);
/* page_draw() - from screen row @first, @height rows. Lines of @part get a mark; 0 = none. */
void page_draw(struct page *p, guint first, guint height, guint part);
/* page_key() - true when @key was one that scrolls. */
bool page_key(struct page *p, guint key);
/* page_part() - @part if some of it is in sight, else the first part that is; 0 = none. */
guint page_part(const struct page *p, guint part);
/* page_go_to() - the first line of @part comes into sight. */
void page_go_to(struct page *p, guint part);
