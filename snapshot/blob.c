/* SPDX-License-Identifier: MIT */
#include "snapshot/blob.h"

#include <errno.h>
#include <string.h>

#define CHUNK (256 * 1024)
#define BINARY_PROBE 8000

uint32_t blob_mode(const struct entry *e)
{
	if (!e)
		return 0;
	if (S_ISLNK(e->attr.mode))
		return S_IFLNK;
	if (S_ISREG(e->attr.mode))
		return S_IFREG | (e->attr.mode & S_IXUSR ? 0755 : 0644);
	return 0;
}

/* The whole file, even when it is no longer as large as stat said: a program may be writing it. */
static int read_whole(struct tree_file *f, uint64_t size, GBytes **ret)
{
	size_t room = size + 1, used = 0;
	g_autofree char *buf = g_malloc(room);
	ssize_t n;

	while ((n = tree_file_read(f, buf + used, room - used, used)) > 0) {
		used += n;
		if (used < room)
			continue;
		if (room > BLOB_WHOLE_MAX)
			return -ESTALE;
		room *= 2;
		buf = g_realloc(buf, room);
	}
	if (n == 0)
		*ret = g_bytes_new_take(g_steal_pointer(&buf), used);
	return n;
}

static bool has_more_lines(const char *data, size_t size, size_t limit)
{
	const char *end = data + size;
	size_t lines = 0;

	if (size <= limit)
		return false;
	while (lines <= limit && (data = memchr(data, '\n', end - data))) {
		lines++;
		data++;
	}
	return lines > limit;
}

static int open_file(struct side s, struct blob *b)
{
	g_autoptr(tree_file_t) f = NULL;
	const char *data;
	gsize size;
	int r = tree_file_open(s.tree, s.entry, &f);

	if (r < 0)
		return r;
	if (b->size > BLOB_WHOLE_MAX) {
		b->file = g_steal_pointer(&f);
		b->binary = true;
		return 0;
	}
	r = read_whole(f, b->size, &b->bytes);
	if (r < 0)
		return r;
	data = g_bytes_get_data(b->bytes, &size);
	b->size = size;
	b->binary = size && (memchr(data, '\0', MIN(size, BINARY_PROBE)) || has_more_lines(data, size, BLOB_LINES_MAX));
	return 0;
}

int blob_open(struct side s, struct blob *ret)
{
	char *target;
	int r;

	*ret = (struct blob){ .mode = blob_mode(s.entry) };
	if (!ret->mode)
		return 0;
	ret->size = s.entry->attr.size;
	if (S_ISREG(ret->mode))
		return open_file(s, ret);
	r = tree_readlink(s.tree, s.entry, &target);
	if (r < 0)
		return r;
	ret->size = strlen(target);
	ret->bytes = g_bytes_new_take(target, ret->size);
	return 0;
}

void blob_clear(struct blob *b)
{
	g_clear_pointer(&b->bytes, g_bytes_unref);
	g_clear_pointer(&b->file, tree_file_close);
}

bool blobs_are_text(const struct blob *a, const struct blob *b)
{
	size_t limit = MIN(a->size, b->size), prefix = 0, suffix = 0;
	const char *x, *y;

	if (a->binary || b->binary)
		return false;
	if (limit <= BLOB_CHANGED_LINES_MAX)
		return true;
	x = g_bytes_get_data(a->bytes, NULL);
	y = g_bytes_get_data(b->bytes, NULL);
	while (prefix < limit && x[prefix] == y[prefix])
		prefix++;
	while (suffix < limit - prefix && x[a->size - suffix - 1] == y[b->size - suffix - 1])
		suffix++;
	return !has_more_lines(x + prefix, a->size - prefix - suffix, BLOB_CHANGED_LINES_MAX) ||
	       !has_more_lines(y + prefix, b->size - prefix - suffix, BLOB_CHANGED_LINES_MAX);
}

int blob_read(const struct blob *b, void *buf, size_t size, uint64_t offset)
{
	size_t used = 0;

	if (offset > b->size || size > b->size - offset)
		return -ESTALE;
	if (b->bytes) {
		memcpy(buf, (const char *)g_bytes_get_data(b->bytes, NULL) + offset, size);
		return 0;
	}
	while (used < size) {
		ssize_t n = tree_file_read(b->file, (char *)buf + used, size - used, offset + used);

		if (n <= 0)
			return n < 0 ? n : -ESTALE;
		used += n;
	}
	return 0;
}

int blob_id(const struct blob *b, char ret[BLOB_ID_SIZE])
{
	g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA1);
	char header[32];
	int n, r = 0;

	if (!b->mode) {
		memcpy(ret, BLOB_ID_NONE, BLOB_ID_SIZE);
		return 0;
	}
	n = g_snprintf(header, sizeof(header), "blob %" G_GUINT64_FORMAT, b->size);
	g_checksum_update(sum, (const guchar *)header, n + 1);
	if (b->bytes) {
		g_checksum_update(sum, g_bytes_get_data(b->bytes, NULL), b->size);
	} else {
		g_autofree guchar *buf = g_malloc(CHUNK);

		for (uint64_t offset = 0; r == 0 && offset < b->size; offset += CHUNK) {
			size_t size = MIN(CHUNK, b->size - offset);

			r = blob_read(b, buf, size, offset);
			g_checksum_update(sum, buf, r == 0 ? size : 0);
		}
	}
	memcpy(ret, g_checksum_get_string(sum), BLOB_ID_SIZE);
	return r;
}
