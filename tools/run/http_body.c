/* SPDX-License-Identifier: MIT */
#include "tools/run/http_body.h"

#include <glib.h>

#define DIGITS_MAX 15
#define LINE_MAX_BYTES 4096 /* of an extension, and of all trailers together */

enum {
	CHUNK_SIZE,
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	TRAILER_START,
	TRAILER_LINE,
	TRAILER_LF,
	END_LF,
	END,
};

bool http_body_is_done(const struct http_body *b)
{
	return b->kind == HTTP_BODY_CHUNKED ? b->state == END : b->left == 0;
}

static bool is_text(uint8_t c)
{
	return c == '\t' || (c >= ' ' && c != 0x7f);
}

static bool take_size(struct http_body *b, uint8_t c)
{
	if (g_ascii_isxdigit((char)c)) {
		b->left = b->left << 4 | (unsigned)g_ascii_xdigit_value((char)c);
		return ++b->digits <= DIGITS_MAX;
	}
	b->state = c == '\r' ? CHUNK_SIZE_LF : CHUNK_EXTENSION;
	b->line = 0;
	return b->digits > 0 && (c == '\r' || c == ';');
}

/* A line of text up to its CR, then @next. */
static bool take_line(struct http_body *b, uint8_t c, unsigned next)
{
	if (c == '\r')
		b->state = next;
	return c == '\r' || (is_text(c) && ++b->line <= LINE_MAX_BYTES);
}

static bool expect(struct http_body *b, uint8_t c, uint8_t wanted, unsigned next)
{
	b->state = next;
	return c == wanted;
}

static bool take_byte(struct http_body *b, uint8_t c)
{
	switch (b->state) {
	case CHUNK_SIZE:
		return take_size(b, c);
	case CHUNK_EXTENSION:
		return take_line(b, c, CHUNK_SIZE_LF);
	case CHUNK_SIZE_LF:
		b->line = 0;
		return expect(b, c, '\n', b->left ? CHUNK_DATA : TRAILER_START);
	case CHUNK_DATA_CR:
		return expect(b, c, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		b->digits = 0;
		return expect(b, c, '\n', CHUNK_SIZE);
	case TRAILER_START:
		if (c == '\r') {
			b->state = END_LF;
			return true;
		}
		b->state = TRAILER_LINE;
		return take_line(b, c, TRAILER_LF);
	case TRAILER_LINE:
		return take_line(b, c, TRAILER_LF);
	case TRAILER_LF:
		return expect(b, c, '\n', TRAILER_START);
	default:
		return expect(b, c, '\n', END);
	}
}

static size_t take_data(struct http_body *b, size_t size)
{
	size_t n = (size_t)MIN(b->left, size);

	b->left -= n;
	return n;
}

size_t http_body_take(struct http_body *b, const uint8_t *data, size_t size, bool *ret_bad)
{
	size_t used = 0;

	*ret_bad = false;
	if (b->kind != HTTP_BODY_CHUNKED)
		return take_data(b, size);
	while (used < size && b->state != END) {
		if (b->state == CHUNK_DATA) {
			used += take_data(b, size - used);
			if (!b->left)
				b->state = CHUNK_DATA_CR;
		} else if (!take_byte(b, data[used++])) {
			*ret_bad = true;
			return used - 1;
		}
	}
	return used;
}
