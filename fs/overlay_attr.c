/* SPDX-License-Identifier: MIT */
/*
 * overlay_attr - attributes
 */
#include <errno.h>
#include <string.h>

#include "fs/overlay_private.h"

int overlay_getattr(struct overlay *o, uint64_t ino, bool for_data, struct overlay_entry *ret)
{
	struct node *n;
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = "read", .ino = ino });
	r = overlay_node(o, ino, &n);
	if (r == 0 && for_data)
		r = guard_look(&n->verdict);
	if (r == 0)
		r = node_entry(o, n, ret);
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}

static int set_owner_and_mode(struct node *n, unsigned int set, const struct attr *attr, const struct caller *who)
{
	struct attr *a = &n->row.attr;

	if (set & SET_MODE)
		a->mode = (a->mode & S_IFMT) | (attr->mode & 07777);
	if (set & SET_UID)
		a->uid = attr->uid;
	if (set & SET_GID)
		a->gid = attr->gid;
	if (who->kill_privileges && !S_ISDIR(a->mode)) {
		a->mode &= ~(uint32_t)S_ISUID;
		if (a->mode & S_IXGRP)
			a->mode &= ~(uint32_t)S_ISGID;
	}
	return 0;
}

static void set_times(struct node *n, unsigned int set, const struct attr *attr, int64_t now)
{
	struct attr *a = &n->row.attr;

	if (set & SET_ATIME)
		a->atime = set & SET_ATIME_NOW ? now : attr->atime;
	if (set & SET_MTIME)
		a->mtime = set & SET_MTIME_NOW ? now : attr->mtime;
	a->ctime = now;
}

static int setattr_rows(struct overlay *o, struct node *n, unsigned int set, const struct attr *attr, const struct caller *who)
{
	int r = node_own_attr(o, n);

	if (r == 0 && (set & SET_SIZE))
		r = node_set_size(o, n, attr->size);
	if (r == 0 && (set & (SET_UID | SET_GID)) && S_ISREG(n->row.attr.mode))
		r = node_drop_capability(o, n);
	if (r < 0)
		return r;
	set_owner_and_mode(n, set, attr, who);
	set_times(n, set, attr, nsec_now());
	return node_save(o, n);
}

/* What the audit calls it: what weighs most. */
static const char *set_name(unsigned int set)
{
	return set & SET_SIZE ? "truncate" : set & SET_MODE ? "chmod" : set & (SET_UID | SET_GID) ? "chown" : "utimes";
}

int overlay_setattr(struct overlay *o, uint64_t ino, unsigned int set, const struct attr *attr, const struct caller *who,
		    struct overlay_entry *ret)
{
	struct node *n;
	int r;

	overlay_lock(o);
	audit_begin(o, &(struct audit_about){ .operation = set_name(set), .ino = ino });
	r = overlay_node(o, ino, &n);
	if (r == 0)
		r = ask_to_change(o, n);
	if (r == 0 && (set & SET_SIZE) && !S_ISREG(n->row.attr.mode))
		r = node_is_dir(n) ? -EISDIR : -EINVAL;
	if (r == 0 && set)
		r = overlay_begin(o);
	if (r == 0 && set)
		r = overlay_end(o, setattr_rows(o, n, set, attr, who));
	if (r == 0)
		r = node_entry(o, n, ret);
	r = audit_end(o, r);
	overlay_unlock(o);
	return r;
}

int overlay_statfs(struct overlay *o, struct statvfs *ret)
{
	/* Free space is the store's: that is where writes go. */
	return fstatvfs(store_objects_fd(o->store), ret) < 0 ? -errno : 0;
}
