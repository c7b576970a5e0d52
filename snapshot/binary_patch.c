/* SPDX-License-Identifier: MIT */
#include "snapshot/binary_patch.h"

#include <errno.h>
#include <gio/gio.h>
#include <string.h>

#include "snapshot/lines.h"

#define SMALL_MAX (8 * 1024 * 1024)
#define CHUNK (1024 * 1024)
#define BLOCK 4096
#define LINE 52 /* bytes in one line of base85 */

/* Base 85, as in git's base85.c: lines of up to 52 bytes, each with its length in front (A-Z: 1-26, a-z: 27-52). */

struct base85 {
	diff_write write;
	void *user;
	uint8_t line[LINE];
	size_t used;
};

static void base85_line(struct base85 *b)
{
	static const char digits[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
	char out[1 + LINE / 4 * 5 + 1];
	size_t n = 0;

	if (!b->used)
		return;
	out[n++] = b->used <= 26 ? 'A' + b->used - 1 : 'a' + b->used - 27;
	memset(b->line + b->used, 0, LINE - b->used);
	for (size_t i = 0; i < b->used; i += 4) {
		uint32_t word;

		memcpy(&word, b->line + i, 4);
		word = GUINT32_FROM_BE(word);
		for (int k = 4; k >= 0; k--) {
			out[n + k] = digits[word % 85];
			word /= 85;
		}
		n += 5;
	}
	out[n++] = '\n';
	b->write(out, n, b->user);
	b->used = 0;
}

static void base85_put(struct base85 *b, const uint8_t *data, size_t size)
{
	while (size) {
		size_t n = MIN(size, LINE - b->used);

		memcpy(b->line + b->used, data, n);
		b->used += n;
		data += n;
		size -= n;
		if (b->used == LINE)
			base85_line(b);
	}
}

static void base85_end(struct base85 *b)
{
	base85_line(b);
	b->write("\n", 1, b->user);
}

static void write_title(struct base85 *b, bool delta, uint64_t size)
{
	g_autofree char *title = g_strdup_printf("%s %" G_GUINT64_FORMAT "\n", delta ? "delta" : "literal", size);

	b->write(title, strlen(title), b->user);
}

/* Small: by libgit2 */

static void write_half(const struct lines_binary *half, void *user)
{
	struct base85 *b = user;

	write_title(b, half->delta, half->inflated_size);
	base85_put(b, half->data, half->size);
	base85_end(b);
}

/* Large: deflated on the way out */

struct deflater {
	GConverter *zlib;
	struct base85 *out;
};

static int deflate_put(struct deflater *d, const void *data, size_t size, bool last)
{
	GConverterResult result = G_CONVERTER_CONVERTED;
	uint8_t buf[16 * 1024];

	while (last ? result != G_CONVERTER_FINISHED : size > 0) {
		gsize taken, made;

		result = g_converter_convert(d->zlib, data, size, buf, sizeof(buf),
					     last ? G_CONVERTER_INPUT_AT_END : G_CONVERTER_NO_FLAGS, &taken, &made,
					     NULL);
		if (result == G_CONVERTER_ERROR)
			return -EIO;
		base85_put(d->out, buf, made);
		data = (const char *)data + taken;
		size -= taken;
	}
	return 0;
}

static int write_literal(struct deflater *d, const struct blob *b)
{
	g_autofree char *buf = g_malloc(CHUNK);
	int r = 0;

	write_title(d->out, false, b->size);
	for (uint64_t offset = 0; r == 0 && offset < b->size; offset += CHUNK) {
		size_t size = MIN(CHUNK, b->size - offset);

		r = blob_read(b, buf, size, offset);
		if (r == 0)
			r = deflate_put(d, buf, size, false);
	}
	return r;
}

/* What two files have in common */

struct match {
	uint64_t from; /* offset in the source */
	uint64_t to;   /* offset in the target */
	uint64_t size;
};

struct common {
	const struct blob *before;
	const struct blob *after;
	GArray *matches; /* of struct match, ascending on both sides */
	char *x;	 /* CHUNK bytes each */
	char *y;
};

static void add_match(GArray *matches, uint64_t from, uint64_t to, uint64_t size)
{
	struct match m = { from, to, size };
	struct match *last = matches->len ? &g_array_index(matches, struct match, matches->len - 1) : NULL;

	if (last && last->from + last->size == from && last->to + last->size == to)
		last->size += size;
	else if (size)
		g_array_append_val(matches, m);
}

static int read_both(struct common *c, uint64_t from, uint64_t to, size_t size)
{
	int r = blob_read(c->before, c->x, size, from);

	return r == 0 ? blob_read(c->after, c->y, size, to) : r;
}

static int common_prefix(struct common *c, uint64_t limit, uint64_t *ret)
{
	uint64_t offset = 0;

	while (offset < limit) {
		size_t size = MIN(CHUNK, limit - offset), i = 0;
		int r = read_both(c, offset, offset, size);

		if (r < 0)
			return r;
		if (memcmp(c->x, c->y, size) != 0) {
			while (c->x[i] == c->y[i])
				i++;
			*ret = offset + i;
			return 0;
		}
		offset += size;
	}
	*ret = limit;
	return 0;
}

static int common_suffix(struct common *c, uint64_t limit, uint64_t *ret)
{
	uint64_t done = 0;

	while (done < limit) {
		size_t size = MIN(CHUNK, limit - done), i = size;
		int r = read_both(c, c->before->size - done - size, c->after->size - done - size, size);

		if (r < 0)
			return r;
		if (memcmp(c->x, c->y, size) != 0) {
			while (c->x[i - 1] == c->y[i - 1])
				i--;
			*ret = done + size - i;
			return 0;
		}
		done += size;
	}
	*ret = limit;
	return 0;
}

/* Blocks that are the same at the same offset: what writing in place leaves alone. */
static int common_blocks(struct common *c, uint64_t start, uint64_t end)
{
	for (uint64_t offset = start; offset < end; offset += CHUNK) {
		size_t size = MIN(CHUNK, end - offset);
		int r = read_both(c, offset, offset, size);

		if (r < 0)
			return r;
		for (size_t i = 0; i < size; i += BLOCK) {
			size_t n = MIN(BLOCK, size - i);

			if (memcmp(c->x + i, c->y + i, n) == 0)
				add_match(c->matches, offset + i, offset + i, n);
		}
	}
	return 0;
}

static int find_common(struct common *c)
{
	uint64_t limit = MIN(c->before->size, c->after->size), prefix = 0, suffix = 0;
	int r = common_prefix(c, limit, &prefix);

	if (r == 0)
		r = common_suffix(c, limit - prefix, &suffix);
	add_match(c->matches, 0, 0, prefix);
	if (r == 0)
		r = common_blocks(c, prefix, limit - suffix);
	add_match(c->matches, c->before->size - suffix, c->after->size - suffix, suffix);
	return r;
}

/*
 * Git's delta: both sizes as varints, then operations. A byte below 128 says how many bytes to insert follow; one above
 * copies from the source, its low bits telling which bytes of the offset (4) and the size (3) follow, little-endian.
 */

#define INSERT_MAX 127
#define COPY_MAX 0xffffff

struct delta {
	const struct blob *source;
	const struct blob *target;
	struct deflater *out; /* NULL: only @size is wanted */
	uint64_t size;
};

static int delta_put(struct delta *d, const void *data, size_t size)
{
	d->size += size;
	return d->out ? deflate_put(d->out, data, size, false) : 0;
}

static int delta_varint(struct delta *d, uint64_t value)
{
	uint8_t buf[10];
	size_t n = 0;

	do {
		buf[n++] = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);
		value >>= 7;
	} while (value);
	return delta_put(d, buf, n);
}

static int delta_copy(struct delta *d, uint64_t offset, uint64_t size)
{
	int r = 0;

	while (r == 0 && size) {
		uint64_t part = MIN(size, COPY_MAX), bits = offset | part << 32;
		uint8_t op[8] = { 0x80 };
		size_t n = 1;

		for (int i = 0; i < 7; i++) {
			uint8_t byte = bits >> (8 * i);

			if (!byte)
				continue;
			op[0] |= 1 << i;
			op[n++] = byte;
		}
		r = delta_put(d, op, n);
		offset += part;
		size -= part;
	}
	return r;
}

static int delta_insert(struct delta *d, uint64_t offset, uint64_t size)
{
	uint8_t op[1 + INSERT_MAX];
	int r = 0;

	if (!d->out) {
		d->size += size + (size + INSERT_MAX - 1) / INSERT_MAX;
		return 0;
	}
	for (uint64_t i = 0; r == 0 && i < size; i += INSERT_MAX) {
		op[0] = MIN(size - i, INSERT_MAX);
		r = blob_read(d->target, op + 1, op[0], offset + i);
		if (r == 0)
			r = delta_put(d, op, op[0] + 1);
	}
	return r;
}

/* @back: from the new file to the old one; the matches are read the other way round. */
static int delta_run(struct delta *d, GArray *matches, bool back)
{
	uint64_t at = 0;
	int r = delta_varint(d, d->source->size);

	if (r == 0)
		r = delta_varint(d, d->target->size);
	for (guint i = 0; r == 0 && i < matches->len; i++) {
		struct match m = g_array_index(matches, struct match, i);

		if (back)
			m = (struct match){ m.to, m.from, m.size };
		if (m.from + m.size > UINT32_MAX)
			continue; /* beyond what a copy can address */
		r = delta_insert(d, at, m.to - at);
		if (r == 0)
			r = delta_copy(d, m.from, m.size);
		at = m.to + m.size;
	}
	return r == 0 ? delta_insert(d, at, d->target->size - at) : r;
}

/* One direction. @optional: nothing at all rather than a large file in full. */
static int write_large_half(struct common *c, struct base85 *b, bool back, bool optional)
{
	struct delta d = { .source = back ? c->after : c->before, .target = back ? c->before : c->after };
	g_autoptr(GZlibCompressor) zlib = NULL;
	struct deflater deflater = { .out = b };
	int r = delta_run(&d, c->matches, back);
	bool delta = d.size < d.target->size && c->matches->len;

	if (r < 0 || (!delta && optional && d.target->size > BLOB_WHOLE_MAX))
		return r;
	zlib = g_zlib_compressor_new(G_ZLIB_COMPRESSOR_FORMAT_ZLIB, 1);
	deflater.zlib = G_CONVERTER(zlib);
	if (delta) {
		write_title(b, true, d.size);
		d.out = &deflater;
		r = delta_run(&d, c->matches, back);
	} else {
		r = write_literal(&deflater, d.target);
	}
	if (r == 0)
		r = deflate_put(&deflater, "", 0, true);
	base85_end(b);
	return r;
}

static int write_large(const struct blob *before, const struct blob *after, struct base85 *b)
{
	g_autoptr(GArray) matches = g_array_new(FALSE, FALSE, sizeof(struct match));
	g_autofree char *x = g_malloc(CHUNK), *y = g_malloc(CHUNK);
	struct common c = { .before = before, .after = after, .matches = matches, .x = x, .y = y };
	int r = find_common(&c);

	if (r == 0)
		r = write_large_half(&c, b, false, false);
	return r == 0 ? write_large_half(&c, b, true, true) : r;
}

int binary_patch(const struct blob *before, const struct blob *after, diff_write write, void *user, GError **error)
{
	static const char title[] = "GIT binary patch\n";
	struct base85 b = { .write = write, .user = user };
	int r;

	write(title, strlen(title), user);
	if (before->size <= SMALL_MAX && after->size <= SMALL_MAX)
		return lines_binary(before->bytes, after->bytes, write_half, &b, error);
	r = write_large(before, after, &b);
	if (r < 0)
		g_set_error(error, STORE_ERROR, STORE_ERROR_FAILED, "%s",
			    r == -ESTALE ? "changed while it was being read" : g_strerror(-r));
	return r;
}
