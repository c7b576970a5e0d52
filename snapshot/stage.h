/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * stage - making whole file system objects: of a tree's entry, or as a copy of another object, with all attributes
 *
 * Objects are made under their final attributes before anybody can see them by their final name. What can't be had (an owner that we
 * may not give, an xattr that the file system refuses) is noted and does not fail.
 */

#include "snapshot/tree.h"

/* Remarks for a person, the same ones counted together. */
struct notes;
struct notes *notes_new(void);
void notes_free(struct notes *n);
void notes_add(struct notes *n, const char *what, const char *path);
/* notes_list() - strings, frees itself. */
GPtrArray *notes_list(struct notes *n);

/* What an object gets. */
struct stage_attr {
	uint32_t set;      /* enum step_set of snapshot/journal.h */
	struct attr attr;
	GBytes *xattrs;    /* the whole set: others are removed; borrowed */
	GBytes *bytes;     /* of a file, instead of the entry's; borrowed, NULL = the entry's */
	const char *path;  /* for the notes: borrowed */
	struct notes *notes;
};

/* stage_entry() - @e's object as (@dirfd, @name); directories are made empty. 1 when it is of a kind that we may not make: noted. */
int stage_entry(struct tree *t, const struct entry *e, int dirfd, const char *name, const struct stage_attr *attr);
/* stage_copy() - (@from, @from_name) again as (@dirfd, @name). @temporary: NULL, or the name to use until it is complete (see .c). */
int stage_copy(int from, const char *from_name, int dirfd, const char *name, const char *temporary, const char *path,
	       struct notes *notes);
/* stage_set_attr() - in place; never follows a symlink. */
int stage_set_attr(int dirfd, const char *name, const struct stage_attr *attr);
int stage_xattrs(int dirfd, const char *name, GBytes **ret);
/* stage_equal() - the same bytes, target or device. 1, 0 or -errno. */
int stage_equal(int a, const char *a_name, int b, const char *b_name);
