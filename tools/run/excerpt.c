/* SPDX-License-Identifier: MIT */
#include "tools/run/excerpt.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

struct excerpt {
	size_t half;
	uint64_t total;
	char *head;
	char *tail; /* a ring: the byte at n of the stream, beyond the head, lies at n % half */
};

struct excerpt *excerpt_new(size_t size)
{
	struct excerpt *e = g_new0(struct excerpt, 1);

	e->half = MAX(size / 2, 1);
	e->head = g_malloc(e->half);
	e->tail = g_malloc(e->half);
	return e;
}

void excerpt_add(struct excerpt *e, const char *data, size_t size)
{
	size_t n = e->total < e->half ? MIN(size, e->half - (size_t)e->total) : 0;

	memcpy(e->head + MIN(e->total, e->half), data, n);
	e->total += size;
	data += n;
	size -= n;
	if (size > e->half) {
		data += size - e->half;
		size = e->half;
	}
	while (size > 0) {
		size_t at = (size_t)((e->total - size) % e->half);

		n = MIN(size, e->half - at);
		memcpy(e->tail + at, data, n);
		data += n;
		size -= n;
	}
}

static void add_tail(const struct excerpt *e, GString *out)
{
	size_t size = (size_t)MIN(e->total - e->half, e->half), at = (size_t)((e->total - size) % e->half);
	size_t n = MIN(size, e->half - at);

	g_string_append_len(out, e->tail + at, (gssize)n);
	g_string_append_len(out, e->tail, (gssize)(size - n));
}

char *excerpt_text(const struct excerpt *e)
{
	GString *out = g_string_new_len(e->head, (gssize)MIN(e->total, e->half));
	char *text;

	if (e->total > 2 * (uint64_t)e->half)
		g_string_append_printf(out, "\n[%" PRIu64 " bytes left out]\n", e->total - 2 * (uint64_t)e->half);
	if (e->total > e->half)
		add_tail(e, out);
	text = g_utf8_make_valid(out->str, (gssize)out->len);
	g_string_free(out, TRUE);
	return text;
}

void excerpt_free(struct excerpt *e)
{
	g_free(e->head);
	g_free(e->tail);
	g_free(e);
}
