/* SPDX-License-Identifier: MIT */
#include "snapshot/compare.h"

#include <errno.h>
#include <string.h>

#include "snapshot/change.h"
#include "snapshot/xattr.h"

#define CHUNK (64 * 1024)

int side_identity(struct side s, char **ret)
{
	struct origin o = { 0 };
	int r = 0;

	*ret = NULL;
	if (s.entry->lower) {
		*ret = g_strdup(s.entry->lower);
	} else if (s.entry->origin) {
		r = store_origin_get(tree_store(s.tree), s.entry->origin, &o);
		*ret = g_steal_pointer(&o.path);
		origin_clear(&o);
	}
	return r;
}

bool sides_share(struct side a, struct side b)
{
	return tree_lower(a.tree) == tree_lower(b.tree);
}

static bool sides_show_same_lower(struct side a, struct side b)
{
	return sides_share(a, b) && a.entry->lower && b.entry->lower && strcmp(a.entry->lower, b.entry->lower) == 0;
}

bool sides_same_directory(struct side a, struct side b)
{
	if (sides_show_same_lower(a, b))
		return true;
	return sides_share(a, b) && a.entry->ino && a.entry->ino == b.entry->ino && !a.entry->lower && !b.entry->lower;
}

bool sides_known_equal(struct side a, struct side b)
{
	if (a.entry->content || b.entry->content)
		return a.entry->content == b.entry->content && tree_store(a.tree) == tree_store(b.tree);
	return sides_show_same_lower(a, b) || (a.entry->attr.size == 0 && b.entry->attr.size == 0);
}

/* Reads until @size bytes are there or the file ends. */
static ssize_t read_full(struct tree_file *f, char *buf, size_t size, uint64_t offset)
{
	size_t used = 0;

	while (used < size) {
		ssize_t n = tree_file_read(f, buf + used, size - used, offset + used);

		if (n < 0)
			return n;
		if (n == 0)
			break;
		used += n;
	}
	return used;
}

int sides_compare_bytes(struct side a, struct side b, bool *ret_equal)
{
	g_autofree char *x = NULL, *y = NULL;
	g_autoptr(tree_file_t) f = NULL, g = NULL;
	int r;

	if (a.entry->attr.size != b.entry->attr.size || sides_known_equal(a, b)) {
		*ret_equal = a.entry->attr.size == b.entry->attr.size;
		return 0;
	}
	r = tree_file_open(a.tree, a.entry, &f);
	if (r == 0)
		r = tree_file_open(b.tree, b.entry, &g);
	if (r < 0)
		return r;
	x = g_malloc(CHUNK);
	y = g_malloc(CHUNK);
	for (uint64_t offset = 0;; offset += CHUNK) {
		ssize_t n = read_full(f, x, CHUNK, offset);
		ssize_t m = n < 0 ? n : read_full(g, y, CHUNK, offset);

		if (m < 0)
			return m;
		if (n != m || memcmp(x, y, n) != 0 || n < CHUNK) {
			*ret_equal = n == m && memcmp(x, y, n) == 0;
			return 0;
		}
	}
}

int sides_compare_targets(struct side a, struct side b, bool *ret_equal)
{
	g_autofree char *x = NULL, *y = NULL;
	int r = 0;

	if (sides_show_same_lower(a, b)) {
		*ret_equal = true;
		return 0;
	}
	r = tree_readlink(a.tree, a.entry, &x);
	if (r == 0)
		r = tree_readlink(b.tree, b.entry, &y);
	if (r == 0)
		*ret_equal = strcmp(x, y) == 0;
	return r;
}

int sides_compare_xattrs(struct side a, struct side b, bool *ret_equal)
{
	g_autoptr(GBytes) x = NULL, y = NULL;
	int r;

	if (!a.entry->own_xattrs && !b.entry->own_xattrs && sides_share(a, b)) {
		g_autofree char *from = NULL, *to = NULL;

		r = side_identity(a, &from);
		if (r == 0)
			r = side_identity(b, &to);
		if (r < 0 || (from && to && strcmp(from, to) == 0)) {
			*ret_equal = true;
			return r;
		}
	}
	r = change_xattrs(a.tree, a.entry, &x);
	if (r == 0)
		r = change_xattrs(b.tree, b.entry, &y);
	if (r == 0)
		*ret_equal = xattrs_equal(x, y);
	return r;
}

/*
 * How many bytes of a file fall into lines (or runs of 64 bytes without a newline) of each hash: git's way to score a
 * rename, with a table of fixed size. Two lines that share a bucket only make the score a little too high.
 */
static int count_spans(struct side s, uint64_t *buckets, size_t n_buckets)
{
	g_autofree unsigned char *buf = g_malloc(CHUNK);
	g_autoptr(tree_file_t) f = NULL;
	uint64_t offset = 0, length = 0;
	uint32_t hash = 5381;
	ssize_t n;
	int r = tree_file_open(s.tree, s.entry, &f);

	if (r < 0)
		return r;
	while ((n = tree_file_read(f, buf, CHUNK, offset)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			hash = hash * 33 + buf[i];
			length++;
			if (buf[i] != '\n' && length < 64)
				continue;
			buckets[(hash ^ hash >> 16) % n_buckets] += length;
			hash = 5381;
			length = 0;
		}
		offset += n;
	}
	buckets[(hash ^ hash >> 16) % n_buckets] += length;
	return n;
}

int sides_similarity(struct side a, struct side b, uint8_t *ret)
{
	uint64_t size = MAX(a.entry->attr.size, b.entry->attr.size), common = 0;
	size_t n_buckets = CLAMP(size / 8, 251, 65521);
	g_autofree uint64_t *x = g_new0(uint64_t, n_buckets), *y = g_new0(uint64_t, n_buckets);
	int r = count_spans(a, x, n_buckets);

	if (r == 0)
		r = count_spans(b, y, n_buckets);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_buckets; i++)
		common += MIN(x[i], y[i]);
	*ret = size ? MIN(common * 100 / size, 99) : 0;
	return 0;
}
