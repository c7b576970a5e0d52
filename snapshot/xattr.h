/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * xattr - a set of extended attributes as one immutable value
 *
 * Format: the serialised GVariant of type a(ayay), (name, value) sorted by name, names without their NUL. An empty set is
 * NULL. Sets are compared with xattrs_equal(), never byte by byte with something else's format.
 */

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* xattrs_get() - borrowed from @set until it is freed; false when absent. */
bool xattrs_get(GBytes *set, const char *name, const void **ret_value, size_t *ret_size);
/* xattrs_with() - a new set with @name set; @value NULL removes it. Caller frees; NULL when the result is empty. */
GBytes *xattrs_with(GBytes *set, const char *name, const void *value, size_t size);
/* xattrs_names() - names, each with its NUL, as listxattr(2) gives them. Caller frees. */
GByteArray *xattrs_names(GBytes *set);
void xattrs_foreach(GBytes *set, void (*fn)(const char *name, const void *value, size_t size, void *user), void *user);
bool xattrs_equal(GBytes *a, GBytes *b);
/*
 * xattr_grow() - getxattr(2), or with @name NULL listxattr(2), of @path into *buf, which grows until the answer fits. Returns the size or
 * -errno. *buf is the caller's, NULL at first.
 */
ssize_t xattr_grow(const char *path, const char *name, char **buf);
