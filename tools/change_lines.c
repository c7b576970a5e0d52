/* SPDX-License-Identifier: MIT */
#include "tools/change_lines.h"

#include <inttypes.h>
#include <string.h>

#include "snapshot/blob.h"
#include "snapshot/diff.h"
#include "snapshot/lines.h"
#include "tools/output.h"
#include "tools/terminal_text.h"

/* A longer line is cut, which is said: nobody reads one of a megabyte, and it may not hide what comes behind it. */
#define LINE_BYTES_MAX (16 * 1024)

static void shown_line_free(gpointer data)
{
	struct shown_line *line = data;

	g_free(line->text);
	g_free(line);
}

GPtrArray *change_lines_new(void)
{
	return g_ptr_array_new_with_free_func(shown_line_free);
}

void change_lines_add(GPtrArray *lines, char kind, guint part, char *text)
{
	struct shown_line *line = g_new0(struct shown_line, 1);

	*line = (struct shown_line){ .kind = kind, .part = part, .text = text };
	g_ptr_array_add(lines, line);
}

static char *safe(const char *text)
{
	return terminal_text(text, strlen(text), 0);
}

static char *safe_line(const char *data, gsize size, guint column)
{
	g_autofree char *text = terminal_text(data, MIN(size, LINE_BYTES_MAX), column);

	if (size <= LINE_BYTES_MAX)
		return g_steal_pointer(&text);
	return g_strdup_printf("%s ... and %" G_GSIZE_FORMAT " more bytes of this line", text, size - LINE_BYTES_MAX);
}

char *change_lines_title(const struct change *c)
{
	g_autofree char *path = safe(*c->path ? c->path : "."), *from = c->from_path ? safe(c->from_path) : NULL;

	return g_strdup_printf("%c %s%s%s", c->status, from ? from : "", from ? " -> " : "", path);
}

void change_lines_words(GPtrArray *lines, const struct change *c)
{
	char *words = diff_describe(c);

	if (words)
		change_lines_add(lines, '#', 0, words);
}

/* Hunks */

struct hunk_sink {
	GPtrArray *lines;
	guint part;
};

static void add_hunk_line(char kind, const char *line, gsize size, void *user)
{
	struct hunk_sink *sink = user;

	/* The column of the kind counts. */
	change_lines_add(sink->lines, kind, sink->part, safe_line(line, size, kind == '@' ? 0 : 1));
}

void change_lines_hunk(GPtrArray *lines, const struct hunks *h, guint i, guint part)
{
	struct hunk_sink sink = { .lines = lines, .part = part };

	hunks_show(h, i, add_hunk_line, &sink);
}

/* Whole changes */

struct whole_sink {
	GPtrArray *lines;
	GString *line;
	guint left;
	uint64_t left_out;
};

static void end_line(struct whole_sink *s)
{
	const char *text = s->line->str;
	char kind = *text;

	if (s->line->len == 0)
		return;
	if (s->left == 0) {
		s->left_out++;
	} else {
		s->left--;
		change_lines_add(s->lines, kind, 0, kind == '@' ? safe(text) : safe_line(text + 1, s->line->len - 1, 1));
	}
	g_string_truncate(s->line, 0);
}

static void put(const char *data, size_t size, void *user)
{
	struct whole_sink *s = user;

	for (const char *end = data + size; data < end;) {
		const char *stop = memchr(data, '\n', end - data);

		g_string_append_len(s->line, data, (stop ? stop : end) - data);
		if (stop)
			end_line(s);
		data = stop ? stop + 1 : end;
	}
}

static char *size_words(const struct blob *a, const struct blob *b)
{
	g_autofree char *old = a->mode ? text_size(a->size) : g_strdup("nothing"),
			*new = b->mode ? text_size(b->size) : g_strdup("nothing");

	return g_strdup_printf("binary: %s -> %s", old, new);
}

static int add_content(struct whole_sink *s, const struct change *c, const struct blob *a, const struct blob *b, GError **error)
{
	int r = 0;

	if (!a->mode && !b->mode)
		return 0;
	if (!blobs_are_text(a, b)) {
		change_lines_add(s->lines, '#', 0, size_words(a, b));
		return 0;
	}
	if (c->status != CHANGE_TYPE)
		return lines_hunks(a->bytes, b->bytes, put, s, error);
	if (a->mode)
		r = lines_hunks(a->bytes, NULL, put, s, error);
	return r == 0 && b->mode ? lines_hunks(NULL, b->bytes, put, s, error) : r;
}

int change_lines_whole(GPtrArray *lines, const struct change *c, struct tree *from, struct tree *to, guint max, GError **error)
{
	struct whole_sink s = { .lines = lines, .line = g_string_new(NULL), .left = max };
	struct blob a = { 0 }, b = { 0 };
	int r = 0;

	change_lines_words(lines, c);
	if (c->content_changed) {
		r = blob_open((struct side){ from, c->before }, &a);
		if (r == 0)
			r = blob_open((struct side){ to, c->after }, &b);
		if (r < 0)
			change_error(error, r, "can't read", c->path);
		else
			r = add_content(&s, c, &a, &b, error);
	}
	end_line(&s);
	if (s.left_out > 0)
		change_lines_add(lines, '#', 0, g_strdup_printf("%" PRIu64 " more lines (see sbxfs diff)", s.left_out));
	blob_clear(&a);
	blob_clear(&b);
	g_string_free(s.line, TRUE);
	return r;
}
