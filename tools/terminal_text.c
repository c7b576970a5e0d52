/* SPDX-License-Identifier: MIT */
#include "tools/terminal_text.h"

#include <stdbool.h>
#include <wchar.h>

#define TAB 8

/* What libc takes for printable is what a terminal of this locale can show; formatting characters are printable to it. */
static bool is_shown(gunichar c)
{
	switch (g_unichar_type(c)) {
	case G_UNICODE_FORMAT:
	case G_UNICODE_LINE_SEPARATOR:
	case G_UNICODE_PARAGRAPH_SEPARATOR:
	case G_UNICODE_CONTROL:
		return false;
	default:
		return wcwidth((wchar_t)c) >= 0;
	}
}

static void append_tab(GString *s, guint *column)
{
	do {
		g_string_append_c(s, ' ');
	} while (++*column % TAB);
}

static void append_char(GString *s, gunichar c, guint *column)
{
	gsize before = s->len;

	if (is_shown(c)) {
		g_string_append_unichar(s, c);
		*column += wcwidth((wchar_t)c);
		return;
	}
	if (c < 0x20 || c == 0x7f)
		g_string_append_printf(s, "^%c", (char)(c ^ 0x40));
	else
		g_string_append_printf(s, "<U+%04X>", c);
	*column += s->len - before;
}

char *terminal_text(const char *data, gsize size, guint column)
{
	GString *s = g_string_sized_new(size + 1);
	const char *end = data + size;

	while (data < end) {
		gunichar c = g_utf8_get_char_validated(data, end - data);

		if (c == (gunichar)-1 || c == (gunichar)-2) {
			g_string_append_printf(s, "<%02X>", (guchar)*data++);
			column += 4;
			continue;
		}
		if (c == '\t')
			append_tab(s, &column);
		else
			append_char(s, c, &column);
		data += c ? g_utf8_skip[(guchar)*data] : 1;
	}
	return g_string_free(s, FALSE);
}

guint terminal_width(const char *text)
{
	guint width = 0;

	for (; *text; text = g_utf8_next_char(text))
		width += MAX(wcwidth((wchar_t)g_utf8_get_char(text)), 0);
	return width;
}

char *terminal_cut(char *text, guint width)
{
	char *p = text;

	while (*p) {
		guint w = MAX(wcwidth((wchar_t)g_utf8_get_char(p)), 0);

		if (w > width)
			break;
		width -= w;
		p = g_utf8_next_char(p);
	}
	*p = '\0';
	return text;
}
