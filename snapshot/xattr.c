/* SPDX-License-Identifier: MIT */
#include "snapshot/xattr.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#define XATTRS_TYPE G_VARIANT_TYPE("a(ayay)")

static GVariant *xattrs_variant(GBytes *set)
{
	return g_variant_ref_sink(g_variant_new_from_bytes(XATTRS_TYPE, set, FALSE));
}

void xattrs_foreach(GBytes *set, void (*fn)(const char *name, const void *value, size_t size, void *user), void *user)
{
	g_autoptr(GVariant) all = NULL;

	if (!set)
		return;
	all = xattrs_variant(set);
	for (gsize i = 0; i < g_variant_n_children(all); i++) {
		g_autoptr(GVariant) pair = g_variant_get_child_value(all, i);
		g_autoptr(GVariant) name = g_variant_get_child_value(pair, 0);
		g_autoptr(GVariant) value = g_variant_get_child_value(pair, 1);
		gsize size;
		const void *data = g_variant_get_fixed_array(value, &size, 1);

		fn(g_variant_get_bytestring(name), data ? data : "", size, user);
	}
}

struct xattr_search {
	const char *name;
	const void *value;
	size_t size;
};

static void xattr_match(const char *name, const void *value, size_t size, void *user)
{
	struct xattr_search *search = user;

	if (strcmp(name, search->name) == 0) {
		search->value = value;
		search->size = size;
	}
}

bool xattrs_get(GBytes *set, const char *name, const void **ret_value, size_t *ret_size)
{
	struct xattr_search search = { .name = name };

	/* The values point into @set itself: a GVariant made from bytes does not copy aligned byte arrays. */
	xattrs_foreach(set, xattr_match, &search);
	if (!search.value)
		return false;
	*ret_value = search.value;
	*ret_size = search.size;
	return true;
}

struct xattr_edit {
	const char *name;
	const void *value;
	size_t size;
	bool placed;
	gsize count;
	GVariantBuilder builder;
};

static void xattr_append(struct xattr_edit *edit, const char *name, const void *value, size_t size)
{
	g_variant_builder_add(&edit->builder, "(@ay@ay)", g_variant_new_bytestring(name),
			      g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, value, size, 1));
	edit->count++;
}

static void xattr_place(struct xattr_edit *edit)
{
	if (!edit->placed && edit->value)
		xattr_append(edit, edit->name, edit->value, edit->size);
	edit->placed = true;
}

static void xattr_copy(const char *name, const void *value, size_t size, void *user)
{
	struct xattr_edit *edit = user;
	int order = strcmp(name, edit->name);

	if (order >= 0)
		xattr_place(edit);
	if (order != 0)
		xattr_append(edit, name, value, size);
}

GBytes *xattrs_with(GBytes *set, const char *name, const void *value, size_t size)
{
	struct xattr_edit edit = { .name = name, .value = value, .size = size };
	g_autoptr(GVariant) all = NULL;

	g_variant_builder_init(&edit.builder, XATTRS_TYPE);
	xattrs_foreach(set, xattr_copy, &edit);
	xattr_place(&edit);
	all = g_variant_ref_sink(g_variant_builder_end(&edit.builder));
	return edit.count > 0 ? g_variant_get_data_as_bytes(all) : NULL;
}

static void xattr_add_name(const char *name, const void *value, size_t size, void *user)
{
	(void)value;
	(void)size;
	g_byte_array_append(user, (const guint8 *)name, strlen(name) + 1);
}

GByteArray *xattrs_names(GBytes *set)
{
	GByteArray *names = g_byte_array_new();

	xattrs_foreach(set, xattr_add_name, names);
	return names;
}

bool xattrs_equal(GBytes *a, GBytes *b)
{
	return a == b || (a && b && g_bytes_equal(a, b));
}

ssize_t xattr_grow(const char *path, const char *name, char **buf)
{
	for (;;) {
		ssize_t n = name ? getxattr(path, name, NULL, 0) : listxattr(path, NULL, 0);

		if (n <= 0)
			return n < 0 ? -errno : 0;
		g_free(*buf);
		*buf = g_malloc(n);
		n = name ? getxattr(path, name, *buf, n) : listxattr(path, *buf, n);
		if (n >= 0)
			return n;
		if (errno != ERANGE)
			return -errno;
	}
}
