/* SPDX-License-Identifier: MIT */
#include "tools/html/text.h"

#include <stdbool.h>
#include <string.h>

/* Characters without an appearance that Unicode does not count among the controls. */
static const struct {
	gunichar first, last;
} invisible[] = {
	{ 0x034f, 0x034f },   /* combining grapheme joiner */
	{ 0x115f, 0x1160 },   /* Hangul fillers */
	{ 0x17b4, 0x17b5 },   /* Khmer inherent vowels */
	{ 0x180b, 0x180f },   /* Mongolian selectors */
	{ 0x2800, 0x2800 },   /* a Braille pattern without a dot */
	{ 0x3164, 0x3164 },   /* Hangul filler */
	{ 0xfe00, 0xfe0e },   /* variation selectors; the last one, for emoji, is everywhere */
	{ 0xffa0, 0xffa0 },   /* Hangul filler */
	{ 0xe0100, 0xe01ef }, /* variation selectors */
};

static bool is_visible(gunichar c)
{
	switch (g_unichar_type(c)) {
	case G_UNICODE_CONTROL:
	case G_UNICODE_FORMAT: /* bidirectional controls, zero widths, tags */
	case G_UNICODE_UNASSIGNED:
	case G_UNICODE_PRIVATE_USE:
	case G_UNICODE_SURROGATE:
	case G_UNICODE_LINE_SEPARATOR:
	case G_UNICODE_PARAGRAPH_SEPARATOR:
		return false;
	case G_UNICODE_SPACE_SEPARATOR:
		return c == ' ' || c == 0x3000; /* the ideographic one is as wide as a character */
	default:
		break;
	}
	for (size_t i = 0; i < G_N_ELEMENTS(invisible); i++)
		if (c >= invisible[i].first && c <= invisible[i].last)
			return false;
	return true;
}

static const char *entity(unsigned char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

static void put_escape(GString *out, bool marked, unsigned value, bool is_byte)
{
	g_string_append(out, marked ? "<samp>" : "");
	if (value == '\n' || value == '\r')
		g_string_append(out, value == '\n' ? "\\n" : "\\r");
	else if (is_byte)
		g_string_append_printf(out, "\\x%02x", value);
	else
		g_string_append_printf(out, "\\u{%x}", value);
	g_string_append(out, marked ? "</samp>" : "");
}

/* One character, or one byte that is none. Returns how many bytes it took. */
static size_t put_char(GString *out, const char *p, size_t left, bool marked)
{
	gunichar c = g_utf8_get_char_validated(p, left);
	size_t size;

	/* Also for U+0000, of which a length gives no warning. */
	if (!*p || c >= 0x80000000) {
		put_escape(out, marked, (unsigned char)*p, true);
		return 1;
	}
	size = g_utf8_skip[(unsigned char)*p];
	if (c == '\t' || is_visible(c))
		g_string_append_len(out, p, size);
	else
		put_escape(out, marked, c, c < 0x80);
	return size;
}

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c < 0x7f && !entity(c);
}

static void put(GString *out, const char *p, size_t size, bool marked)
{
	const char *end = p + size;

	while (p < end) {
		const char *start = p;

		while (p < end && is_plain(*p))
			p++;
		g_string_append_len(out, start, p - start);
		if (p < end && entity(*p))
			g_string_append(out, entity(*p++));
		else if (p < end)
			p += put_char(out, p, end - p, marked);
	}
}

void html_text(GString *out, const char *bytes, size_t size)
{
	put(out, bytes, size, true);
}

void html_string(GString *out, const char *text)
{
	put(out, text, strlen(text), true);
}

void html_plain(GString *out, const char *text)
{
	put(out, text, strlen(text), false);
}

void html_name(GString *out, const char *bytes, size_t size)
{
	g_string_append(out, "<bdi>");
	html_text(out, bytes, size);
	g_string_append(out, "</bdi>");
}

void html_path(GString *out, const char *path)
{
	path = *path ? path : ".";
	html_name(out, path, strlen(path));
}

/* The start of the character that @at is in. */
static size_t boundary(const char *bytes, size_t at)
{
	for (unsigned i = 0; i < 3 && at > 0 && ((unsigned char)bytes[at] & 0xc0) == 0x80; i++)
		at--;
	return at;
}

void html_folded(GString *out, const char *bytes, size_t size, size_t limit)
{
	size_t head, tail;

	if (size <= limit) {
		html_text(out, bytes, size);
		return;
	}
	head = boundary(bytes, limit * 2 / 3);
	tail = boundary(bytes, size - limit / 4);
	html_text(out, bytes, head);
	g_string_append_printf(out, "<details class=fold><summary>%zu more bytes</summary>", tail - head);
	html_text(out, bytes + head, tail - head);
	g_string_append(out, "</details>");
	html_text(out, bytes + tail, size - tail);
}
