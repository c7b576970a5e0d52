/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * journal - the on-disk record of one commit: what it does to the workspace, step by step, and how far it got
 *
 * A commit lives in commit/ID/ of the store (ID: 1, 2, 3, ...):
 *
 *   journal   the plan; written once, complete, before the first step
 *   state     one word and a newline; absent means "applying". Replaced as a whole when the commit moves on
 *   files/N   the object of step N: before the step what is to come, after it what was there (the pre-image). One
 *             rename exchanges them, so the inode found tells on which side of the step we are
 *   files/N.old  only for steps that copy (workspace and store on different file systems): the pre-image; files/N stays
 *
 * A directory without a journal never touched the workspace.
 *
 * Format of journal: the line "sbxfs-journal 3" (the version), a line with the SHA-256 of the rest in hex, then a GVariant in
 * little-endian byte order of the type
 *   (x x a(y u b ay ay P P u P ay ay) aay aay)
 * epoch, time, the steps (kind, number, copied, path, from, before, staged, set, attr, xattrs, old xattrs: see struct step), the
 * paths to settle, and those of them of which a part was committed (which version 1 does not have; version 2 has no
 * STEP_HOLD). P is a fingerprint (t t x u u u u t t x x x): dev, ino, btime, mode, uid, gid, nlink, rdev, size, atime, mtime, ctime.
 * Paths are bytestrings with their NUL; xattrs are as in snapshot/xattr.h, empty for none.
 */

#include <glib.h>

#include "snapshot/store.h"

enum step_kind {
	STEP_MKDIR = 1, /* nothing becomes a directory */
	STEP_CREATE,    /* nothing becomes the staged object */
	STEP_REPLACE,   /* what is there becomes the staged object */
	STEP_MOVE,      /* the object at @from goes to @path, where nothing is */
	STEP_LINK,      /* @path becomes one more name of the object at @from */
	STEP_ATTR,      /* attributes are set in place */
	STEP_DELETE,    /* a name that is no directory goes */
	STEP_RMDIR,     /* a directory goes, if it is empty */
	STEP_HOLD,      /* the object at @from gets one more name in files/, for the CREATE or REPLACE of @path that has its number */
};

enum step_set {
	SET_MODE = 1,
	SET_OWNER = 2,
	SET_TIMES = 4,
	SET_XATTRS = 8,
};

struct step {
	enum step_kind kind;
	uint32_t number;           /* of its object in files/, 0 = none */
	bool copied;               /* the directory is on another file system than the store */
	char *path;
	char *from;                /* STEP_MOVE, STEP_LINK, STEP_HOLD; of what is put after that one, and gets attributes, too */
	struct fingerprint before; /* what the step expects at @path (@from for MOVE, LINK, HOLD, and ATTR of what comes from there); .attr.mode 0 = nothing, or any directory for ATTR */
	struct fingerprint staged; /* the object in files/ */
	uint32_t set;              /* enum step_set: which of the following STEP_ATTR sets */
	struct attr attr;
	GBytes *xattrs;
	GBytes *old_xattrs;        /* of what STEP_ATTR changes and STEP_RMDIR removes */
};

struct journal {
	char *id;
	int64_t epoch;    /* the state that is committed */
	int64_t time;     /* wall clock, ns */
	GPtrArray *steps; /* struct step, in the order of doing; owned */
	GPtrArray *paths; /* for the caller to settle; owned */
	GPtrArray *partial; /* those of @paths that keep their changes in the view; owned */
};

enum journal_state {
	JOURNAL_NONE,        /* no journal: nothing was done */
	JOURNAL_APPLYING,    /* goes forward */
	JOURNAL_APPLIED,     /* the workspace has it, the view was not told */
	JOURNAL_FINISHED,    /* kept for undo */
	JOURNAL_BACKING_OUT, /* goes back: it met a change of the workspace on its way */
	JOURNAL_BACKED_OUT,  /* kept as a record of what was touched; no files */
	JOURNAL_UNDOING,
	JOURNAL_UNDONE,      /* the workspace is as before, the view was not told */
};

/* Values */

struct step *step_new(enum step_kind kind, const char *path);
void step_free(struct step *s);
struct journal *journal_new(void);
void journal_free(struct journal *j);
typedef struct journal journal_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(journal_t, journal_free)

/* Disk. @dirfd is that of commit/ID. 0 or -errno. */

/* journal_write() - complete and synced, or not there at all. */
int journal_write(int dirfd, const struct journal *j);
/* journal_read() - -ENOENT; -EUCLEAN when it is damaged, -EPROTO when a newer sbxfs wrote it. */
int journal_read(int dirfd, struct journal **ret);
int journal_set_state(int dirfd, enum journal_state state);
int journal_get_state(int dirfd, enum journal_state *ret);

/* The directory of commits */

/* commits_open() - commit/ of the store, made if needed and locked for this process; -EBUSY when another one commits. */
int commits_open(struct store *s, int *ret_fd);
/* commits_list() - the numbers of all commits, oldest first; caller frees. */
int commits_list(int commits, GArray **ret);
/* commit_new() - makes commit/ID/ and its files/. */
int commit_new(int commits, char **ret_id, int *ret_fd);
int commit_open(int commits, const char *id, int *ret_fd);
/* commit_drop() - removes the directory and all in it; commit_drop_files() only files/. */
int commit_drop(int commits, const char *id);
int commit_drop_files(int dirfd);
/* remove_tree() - a directory and all below it; 0 when there is none. Follows nothing. */
int remove_tree(int dirfd, const char *name);
int fsync_dir(int dirfd);

/*
 * For tests only: called at every point where a crash would leave something else on the disk than at the point before. NULL in the
 * product; the crash tests kill themselves in it.
 */
extern void (*boundary_hook)(const char *what);
static inline void boundary(const char *what)
{
	if (G_UNLIKELY(boundary_hook))
		boundary_hook(what);
}
