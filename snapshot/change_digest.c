/* SPDX-License-Identifier: MIT */
#include "snapshot/change.h"

#include <string.h>

#include "snapshot/xattr.h"

/*
 * The canonical list: a version line, then for each change its fields, each as its length (8 bytes, big-endian) and its
 * bytes, so no two lists look alike. Numbers are fields of 8 bytes, big-endian.
 */

static void put(GChecksum *sum, const void *data, size_t size)
{
	uint64_t length = GUINT64_TO_BE(size);

	g_checksum_update(sum, (const guchar *)&length, sizeof(length));
	g_checksum_update(sum, data, size);
}

static void put_text(GChecksum *sum, const char *text)
{
	put(sum, text, strlen(text));
}

static void put_number(GChecksum *sum, uint64_t value)
{
	value = GUINT64_TO_BE(value);
	put(sum, &value, sizeof(value));
}

static void put_xattr(const char *name, const void *value, size_t size, void *user)
{
	put_text(user, name);
	put(user, value, size);
}

static int put_content(GChecksum *sum, struct change *c, struct tree *to)
{
	const struct entry *e = c->after;
	g_autofree char *target = NULL;
	int r = 0;

	if (S_ISREG(e->attr.mode)) {
		if (!c->has_sha256_after) {
			r = tree_hash(to, e, c->sha256_after);
			c->has_sha256_after = r == 0;
		}
		put_number(sum, e->attr.size);
		put(sum, c->sha256_after, sizeof(c->sha256_after));
	} else if (S_ISLNK(e->attr.mode)) {
		r = tree_readlink(to, e, &target);
		put_text(sum, target ? target : "");
	} else if (S_ISCHR(e->attr.mode) || S_ISBLK(e->attr.mode)) {
		put_number(sum, e->attr.rdev);
	}
	return r;
}

static int put_change(GChecksum *sum, struct change *c, struct tree *to)
{
	const struct entry *e = c->after;
	const char status[] = { c->status, '\0' };
	g_autoptr(GBytes) xattrs = NULL;
	int r;

	put_text(sum, status);
	put_text(sum, c->path);
	put_text(sum, c->from_path ? c->from_path : "");
	if (!e)
		return 0;
	/* A symlink's permissions are not its own. */
	put_number(sum, S_ISLNK(e->attr.mode) ? S_IFLNK : e->attr.mode);
	put_number(sum, e->attr.uid);
	put_number(sum, e->attr.gid);
	r = put_content(sum, c, to);
	if (r == 0)
		r = change_xattrs(to, e, &xattrs);
	if (r == 0)
		xattrs_foreach(xattrs, put_xattr, sum);
	return r;
}

static gint path_order(gconstpointer a, gconstpointer b)
{
	const struct change *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

char *changes_digest(GPtrArray *changes, struct tree *to, GError **error)
{
	g_autoptr(GPtrArray) sorted = g_ptr_array_sized_new(changes->len);
	g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);

	for (guint i = 0; i < changes->len; i++)
		g_ptr_array_add(sorted, g_ptr_array_index(changes, i));
	g_ptr_array_sort(sorted, path_order);
	put_text(sum, "sbxfs.digest/1");
	for (guint i = 0; i < sorted->len; i++) {
		struct change *c = g_ptr_array_index(sorted, i);
		int r = put_change(sum, c, to);

		if (r < 0) {
			change_error(error, r, "can't digest", c->path);
			return NULL;
		}
	}
	return g_strdup(g_checksum_get_string(sum));
}
