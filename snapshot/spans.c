/* SPDX-License-Identifier: MIT */
#include "snapshot/spans.h"

#define RUN_MAX 64
#define HASHES 65521
#define HASH_START 5381

struct span {
	uint32_t hash;
	uint64_t bytes;
};

struct spans {
	uint64_t *bytes; /* by hash; until spans_end() */
	GArray *found;	 /* struct span, by hash; .bytes only since spans_end() */
	uint64_t size;
	/* The span that has not ended yet. */
	uint32_t hash;
	uint64_t length;
};

struct spans *spans_new(void)
{
	struct spans *s = g_new0(struct spans, 1);

	s->bytes = g_new0(uint64_t, HASHES);
	s->found = g_array_new(FALSE, FALSE, sizeof(struct span));
	s->hash = HASH_START;
	return s;
}

void spans_free(struct spans *s)
{
	if (!s)
		return;
	g_free(s->bytes);
	g_array_unref(s->found);
	g_free(s);
}

static void end_span(struct spans *s)
{
	struct span found = { .hash = (s->hash ^ s->hash >> 16) % HASHES };

	if (!s->bytes[found.hash])
		g_array_append_val(s->found, found);
	s->bytes[found.hash] += s->length;
	s->hash = HASH_START;
	s->length = 0;
}

void spans_add(struct spans *s, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	s->size += size;
	for (size_t i = 0; i < size; i++) {
		s->hash = s->hash * 33 + bytes[i];
		s->length++;
		if (bytes[i] == '\n' || s->length == RUN_MAX)
			end_span(s);
	}
}

static int compare_hashes(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

void spans_end(struct spans *s)
{
	if (s->length)
		end_span(s);
	g_array_sort(s->found, compare_hashes);
	for (guint i = 0; i < s->found->len; i++) {
		struct span *found = &g_array_index(s->found, struct span, i);

		found->bytes = s->bytes[found->hash];
	}
	g_clear_pointer(&s->bytes, g_free);
}

size_t spans_length(const struct spans *s)
{
	return s->found->len;
}

static uint64_t common_bytes(const struct spans *a, const struct spans *b)
{
	const struct span *x = (const struct span *)a->found->data, *y = (const struct span *)b->found->data;
	const struct span *x_end = x + a->found->len, *y_end = y + b->found->len;
	uint64_t common = 0;

	while (x < x_end && y < y_end) {
		if (x->hash == y->hash) {
			common += MIN(x->bytes, y->bytes);
			x++;
			y++;
		} else if (x->hash < y->hash) {
			x++;
		} else {
			y++;
		}
	}
	return common;
}

uint8_t spans_similarity(const struct spans *a, const struct spans *b)
{
	uint64_t size = MAX(a->size, b->size);

	return size ? common_bytes(a, b) * 100 / size : 0;
}
