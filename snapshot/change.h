/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * change - what differs between two trees, path by path
 *
 * Two states that share most of their history share most of their rows, so directories are compared by the names that
 * have rows on either side; a whole directory is walked only where one side has something else entirely (new, deleted,
 * replaced or renamed directories). Net-zero changes do not appear; times alone are no change. A rename is recognised
 * by identity: the new path's node came from the deleted path (for equal or similar contents see snapshot/similar.h). Directories are never renames: a moved directory of N
 * files is N renames, and the directories themselves are added and deleted. Special files are listed, never read.
 *
 * The two trees may lie over different workspaces; then nothing is taken as shared and everything is compared.
 */

#include "snapshot/tree.h"

enum change_status {
	CHANGE_ADDED = 'A',
	CHANGE_MODIFIED = 'M', /* content, symlink target, or mode together with content */
	CHANGE_DELETED = 'D',
	CHANGE_RENAMED = 'R', /* from_path; content may differ too */
	CHANGE_TYPE = 'T',
	CHANGE_PERMISSION = 'P', /* mode or owner only */
	CHANGE_XATTR = 'X',	 /* xattrs only */
};

struct change {
	char *path; /* "" is the root itself */
	enum change_status status;
	char *from_path;      /* CHANGE_RENAMED */
	struct entry *before; /* NULL for CHANGE_ADDED */
	struct entry *after;  /* NULL for CHANGE_DELETED */
	bool partial;	      /* a human took only a part of it: see snapshot/selection.h */
	bool content_changed; /* bytes, target, device number; true when a side is missing or of another type */
	bool xattrs_changed;  /* both sides are there, of one type, and their xattrs differ */
	uint8_t similarity; /* CHANGE_RENAMED: percent of the bytes that are in both, 100 only when all are */
	bool has_sha256_before, has_sha256_after;
	uint8_t sha256_before[32], sha256_after[32]; /* regular files only */
};

void change_free(struct change *c);

/*
 * The caller's say in what may be seen: false leaves out the path and all below it, on both sides: neither listed nor
 * read. @path is where the entry is, @lower where its bytes come from (NULL = nowhere in the workspace).
 */
typedef bool (*change_filter)(const char *path, const char *lower, bool is_dir, void *user);

struct change_options {
	change_filter filter;
	void *filter_user;
	const char *const *paths; /* NULL-terminated: only these paths and what is below them; NULL = all */
	bool no_hash;		  /* leave sha256 out (for --name-status) */
};

/* change_mode_changed() - permissions or owner differ; false when one side is missing. */
bool change_mode_changed(const struct change *c);

/*
 * change_xattrs() - the extended attributes of one side of a change. Unlike tree_xattrs() it knows that a file with own
 * content but without own xattrs still shows those of its origin.
 */
int change_xattrs(struct tree *t, const struct entry *e, GBytes **ret);

/* change_error() - says in @error what -errno @r meant for @path. Returns @r. */
int change_error(GError **error, int r, const char *what, const char *path);

/* changes_between() - array of struct change, deletions first, then by path; frees itself. */
int changes_between(struct tree *from, struct tree *to, const struct change_options *options, GPtrArray **ret,
		    GError **error);

/*
 * changes_digest() - SHA-256, as lower-case hex (caller frees), over the canonical list: for each change in order of
 * its path status, path, from_path, and of the new side mode, owner, size, content hash or link target, xattrs.
 * Independent of machine, order and time.
 */
char *changes_digest(GPtrArray *changes, struct tree *to, GError **error);

/*
 * change_rename() - @c, an added path, becomes a rename of @source, a deleted one, which gives up its side and stays as an
 * empty shell until changes_sweep(). What differs and how much is for the caller to say.
 */
void change_rename(struct change *c, struct change *source);
void changes_sweep(GPtrArray *changes);

/* changes_paths() - every path that one of them speaks of; the strings are borrowed. */
GPtrArray *changes_paths(GPtrArray *changes);
