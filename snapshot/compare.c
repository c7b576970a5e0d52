/* SPDX-License-Identifier: MIT */
#include "snapshot/compare.h"

#include <errno.h>
#include <string.h>

#include "snapshot/change.h"
#include "snapshot/spans.h"
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

static int count_spans(struct side s, struct spans **ret)
{
	g_autofree char *buf = g_malloc(CHUNK);
	g_autoptr(tree_file_t) f = NULL;
	uint64_t offset = 0;
	ssize_t n;
	int r = tree_file_open(s.tree, s.entry, &f);

	if (r < 0)
		return r;
	*ret = spans_new();
	while ((n = tree_file_read(f, buf, CHUNK, offset)) > 0) {
		spans_add(*ret, buf, n);
		offset += n;
	}
	spans_end(*ret);
	return n;
}

int sides_similarity(struct side a, struct side b, uint8_t *ret)
{
	g_autoptr(spans_t) x = NULL, y = NULL;
	int r = count_spans(a, &x);

	if (r == 0)
		r = count_spans(b, &y);
	if (r == 0)
		*ret = MIN(spans_similarity(x, y), 99);
	return r;
}
