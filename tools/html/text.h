/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * text - bytes of anybody's as text of a web page
 *
 * The contents and names on the page are the sandboxed program's. Here they become text and nothing else: what means something to HTML
 * is escaped, and what a reader could not see, or would see in another place (control characters, bytes that are no UTF-8, bidirectional
 * overrides, invisible and unassigned characters, spaces that look like U+0020), is shown as a marked escape such as \x1b or \u{202e}.
 * The page's markup takes no byte from outside but through these functions.
 */

#include <glib.h>

/* html_text() - appends @size bytes, for the inside of an element. A tab stays; a line break is shown as \n. */
void html_text(GString *out, const char *bytes, size_t size);
/* html_string() - the same for a string. */
void html_string(GString *out, const char *text);
/* html_plain() - the same without markup around the escapes: for a title. */
void html_plain(GString *out, const char *text);
/* html_name() - a name among other text, which letters that are written from right to left in it do not reorder. */
void html_name(GString *out, const char *bytes, size_t size);
/* html_path() - the same for a path as on the command line: "." for the root. */
void html_path(GString *out, const char *path);

/*
 * html_folded() - as html_text(), but of more than @limit bytes only the two ends are seen until the reader opens the rest, which is on
 * the page too. For flow content.
 */
void html_folded(GString *out, const char *bytes, size_t size, size_t limit);
