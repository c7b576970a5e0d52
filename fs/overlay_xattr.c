/* SPDX-License-Identifier: MIT */
/*
 * overlay_xattr - extended attributes
 */
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "fs/overlay_private.h"
#include "snapshot/xattr.h"

#define CAPABILITY "security.capability"

/* An ACL (system.*) that is stored but not enforced would be a lie: programs fall back to chmod(2) when there is none. */
static bool xattr_is_supported(const char *name)
{
	return g_str_has_prefix(name, "user.") || g_str_has_prefix(name, "trusted.") || g_str_has_prefix(name, "security.");
}

int node_xattrs(struct overlay *o, struct node *n, GBytes **ret)
{
	g_autofree char *path = NULL;

	if ((n->row.flags & NODE_OWN_XATTR) || !n->is_lower) {
		*ret = n->row.xattrs ? g_bytes_ref(n->row.xattrs) : NULL;
		return 0;
	}
	path = node_shown_path(o, n);
	return path ? lower_xattrs(o->lower, path, ret) : -ESTALE;
}

static int node_put_xattrs(struct overlay *o, struct node *n, GBytes *set)
{
	int r = node_anchor(o, n);

	if (r < 0)
		return r;
	node_edit(o, n);
	g_clear_pointer(&n->row.xattrs, g_bytes_unref);
	n->row.xattrs = set ? g_bytes_ref(set) : NULL;
	n->row.ino = n->ino;
	n->row.flags |= NODE_OWN_XATTR;
	n->row.attr.ctime = nsec_now();
	return node_save(o, n);
}

int node_own_xattrs(struct overlay *o, struct node *n)
{
	g_autoptr(GBytes) set = NULL;
	int64_t ctime = n->row.attr.ctime;
	int r = n->row.flags & NODE_OWN_XATTR ? 0 : node_xattrs(o, n, &set);

	if (r < 0 || (n->row.flags & NODE_OWN_XATTR))
		return r;
	r = node_put_xattrs(o, n, set);
	n->row.attr.ctime = ctime;
	return r < 0 ? r : node_save(o, n);
}

int node_drop_capability(struct overlay *o, struct node *n)
{
	g_autoptr(GBytes) set = NULL, less = NULL;
	const void *value;
	size_t size;
	int r = node_xattrs(o, n, &set);

	if (r < 0)
		return r == -ESTALE ? 0 : r;
	if (!xattrs_get(set, CAPABILITY, &value, &size))
		return 0;
	less = xattrs_with(set, CAPABILITY, NULL, 0);
	return node_put_xattrs(o, n, less);
}

static int xattr_node(struct overlay *o, uint64_t ino, const char *name, struct node **ret)
{
	if (name && !xattr_is_supported(name))
		return -EOPNOTSUPP;
	return overlay_node(o, ino, ret) < 0 ? -ESTALE : guard_read_xattr(&(*ret)->verdict);
}

/* Labels and capabilities are shown with a listing; the others hold what a program put there. */
static bool xattr_is_content(const char *name)
{
	return name && !g_str_has_prefix(name, "security.");
}

/* All of them, for @operation; @name: the one that is asked for, NULL = no single one. */
static int read_xattrs(struct overlay *o, uint64_t ino, const char *name, const char *operation, GBytes **ret)
{
	struct node *n;
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = operation, .ino = ino });
	r = xattr_node(o, ino, name, &n);
	/* ls(1) asks each file for a label of the system's. That there is none says nothing, and a refusal would be an error to it. */
	if (r == -EACCES && name && !g_str_has_prefix(name, "user."))
		r = -ENODATA;
	if (r == 0 && xattr_is_content(name))
		r = ask_to_read(o, n);
	if (r == 0)
		r = node_xattrs(o, n, ret);
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}

int overlay_getxattr(struct overlay *o, uint64_t ino, const char *name, GBytes **ret)
{
	g_autoptr(GBytes) set = NULL;
	const void *value;
	size_t size;
	int r = read_xattrs(o, ino, name, "getxattr", &set);

	if (r < 0)
		return r;
	if (!xattrs_get(set, name, &value, &size))
		return -ENODATA;
	*ret = g_bytes_new(value, size);
	return 0;
}

/* What getxattr(2) says is not supported is not listed either. */
static GBytes *xattrs_shown(GBytes *set)
{
	g_autoptr(GByteArray) names = xattrs_names(set);
	GBytes *shown = set ? g_bytes_ref(set) : NULL;

	for (const char *name = (char *)names->data; name && name < (char *)names->data + names->len; name += strlen(name) + 1) {
		GBytes *less;

		if (xattr_is_supported(name))
			continue;
		less = xattrs_with(shown, name, NULL, 0);
		g_bytes_unref(shown);
		shown = less;
	}
	return shown;
}

int overlay_listxattr(struct overlay *o, uint64_t ino, GByteArray **ret)
{
	g_autoptr(GBytes) set = NULL, shown = NULL;
	int r = read_xattrs(o, ino, NULL, "listxattr", &set);

	if (r < 0)
		return r;
	shown = xattrs_shown(set);
	*ret = xattrs_names(shown);
	return 0;
}

static int change_xattr(struct overlay *o, uint64_t ino, const char *name, const void *value, size_t size, int flags)
{
	g_autoptr(GBytes) set = NULL, more = NULL;
	const void *old;
	size_t old_size;
	struct node *n;
	bool exists;
	int r = xattr_node(o, ino, name, &n);

	if (r == 0)
		r = ask_to_change(o, n);
	if (r == 0)
		r = node_xattrs(o, n, &set);
	if (r < 0)
		return r;
	exists = xattrs_get(set, name, &old, &old_size);
	if (exists && (flags & XATTR_CREATE))
		return -EEXIST;
	if (!exists && (flags & XATTR_REPLACE))
		return -ENODATA;
	more = xattrs_with(set, name, value, size);
	r = overlay_begin(o);
	return r < 0 ? r : overlay_end(o, node_put_xattrs(o, n, more));
}

int overlay_setxattr(struct overlay *o, uint64_t ino, const char *name, const void *value, size_t size, int flags)
{
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = "setxattr", .ino = ino, .detail = name });
	r = change_xattr(o, ino, name, value ? value : "", size, flags);
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}

int overlay_removexattr(struct overlay *o, uint64_t ino, const char *name)
{
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = "removexattr", .ino = ino, .detail = name });
	r = change_xattr(o, ino, name, NULL, 0, XATTR_REPLACE);
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}
