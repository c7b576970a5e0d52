/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * output - what the commands print, and the one home of json-glib
 *
 * Standard output carries the answer, standard error the rest. A JSON answer is put together as a GVariant (a{sv}
 * keeps the order of its keys) and printed on one line; a maybe that holds nothing becomes null.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Answer and chatter */

enum output_level {
	OUTPUT_QUIET = -1,
	OUTPUT_NORMAL = 0,
	OUTPUT_VERBOSE = 1,
};
/* output_set_level() - of the process, for output_note() and output_detail(). */
void output_set_level(enum output_level level);
/* output_note() - a line on standard error, made plain, unless quiet; output_detail() - only when verbose. */
void output_note(const char *format, ...) G_GNUC_PRINTF(1, 2);
void output_detail(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* output_pager() - standard output is a terminal: from here on it goes through $PAGER, until output_finish(). */
void output_pager(void);
/* output_goes_on() - right after a write to standard output: did it take it? Whoever writes much need not go on. */
bool output_goes_on(void);
/*
 * output_finish() - waits for the pager and tells whether everything arrived. A reader that went away early is no
 * failure.
 */
bool output_finish(GError **error);
/* output_has_color() - a terminal, and neither NO_COLOR nor TERM=dumb. Ask for standard output before output_pager(). */
bool output_has_color(int fd);
/* output_line_color() - the escape sequence for a line of a hunk that begins with @kind, or NULL. COLOR_END ends it. */
const char *output_line_color(char kind);
#define COLOR_END "\033[m"

/* Git's patch format with colours, fed in pieces. */
struct patch_colorer;
struct patch_colorer *patch_colorer_new(FILE *out);
void patch_colorer_write(struct patch_colorer *p, const char *data, size_t size);
void patch_colorer_free(struct patch_colorer *p);

/* JSON */

void json_add(GVariantBuilder *b, const char *key, GVariant *value);
void json_add_string(GVariantBuilder *b, const char *key, const char *value); /* NULL = null; made valid UTF-8 */
void json_add_int(GVariantBuilder *b, const char *key, int64_t value);
void json_add_bool(GVariantBuilder *b, const char *key, bool value);
/* json_add_path() - a file name; bytes that are not UTF-8 add KEY_b64 with the exact ones. */
void json_add_path(GVariantBuilder *b, const char *key, const char *path);
/* json_print() - one line on @out; takes a floating @value. */
void json_print(FILE *out, GVariant *value);

/* Words */

/* text_time() - ISO 8601 in UTC, from ns since 1970. text_size() - "12.3 MB". Caller frees what these return. */
char *text_time(int64_t ns);
/* text_plain() - control characters as \ooo, so that a file's name in a message moves no cursor and makes no line. */
char *text_plain(const char *text);
char *text_size(uint64_t bytes);
