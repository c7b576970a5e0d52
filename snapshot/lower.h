/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * lower - reading the workspace, and never writing it
 *
 * A struct lower holds one directory descriptor for the root of the workspace; everything is reached below it by relative
 * paths that never follow a symlink and never leave it (openat2(2)). "" is the root itself. Files are opened with O_NOATIME
 * where that is permitted. Where the process may (CAP_SYS_ADMIN), reads go through a private, read-only, noatime clone of the
 * mount, so not even a fault in this program could write through it.
 *
 * The descriptor is taken before a view is mounted, so a view may lie on top of its own workspace: lookups below the
 * descriptor see what is under the mount.
 *
 * Thread-safe: nothing changes after lower_open(). Functions return 0 or -errno; results are set only on success.
 */

#include <glib.h>
#include <stdbool.h>

#include "snapshot/attr.h"

struct lower;

/* What one object of the workspace looked like: the identity a commit checks. */
struct fingerprint {
	uint64_t dev;
	uint64_t ino;
	int64_t btime; /* creation, 0 where the file system does not tell */
	struct attr attr;
};

struct lower_name {
	char *name;
	uint64_t ino;
	unsigned char type; /* DT_... of dirent, DT_UNKNOWN possible */
};

/* Life */

/* lower_open() - @path is made absolute; -ENOTDIR for anything but a directory. Free with lower_close(). */
int lower_open(const char *path, struct lower **ret);
/*
 * lower_give() - the two descriptors that it is made of, borrowed; lower_open_given() - the same from copies of them, which it takes: in another process,
 * where the path may lead into a view by now, and a new clone would hold that view.
 */
void lower_give(const struct lower *l, int ret[2]);
int lower_open_given(const int fds[2], const char *path, struct lower **ret);
/* lower_open_fd() - the same from a directory descriptor, which stays the caller's; @path is only remembered. */
int lower_open_fd(int fd, const char *path, struct lower **ret);
void lower_close(struct lower *l);

typedef struct lower lower_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(lower_t, lower_close)

const char *lower_path(const struct lower *l);
/* lower_root_fd() - O_PATH descriptor of the real root (not of the clone); borrowed. */
int lower_root_fd(const struct lower *l);
/* lower_dev() - device number of the root. */
uint64_t lower_dev(const struct lower *l);

/* Reading */

int lower_stat(const struct lower *l, const char *path, struct fingerprint *ret);
/* lower_stat_at() - @name in the directory @dirfd, as returned by lower_open_file(). */
int lower_stat_at(int dirfd, const char *name, struct fingerprint *ret);
/* lower_open_file() - @flags: O_RDONLY, O_PATH, O_DIRECTORY...; O_NOFOLLOW and O_CLOEXEC are added. Returns the fd or -errno. */
int lower_open_file(const struct lower *l, const char *path, int flags);
/* lower_list() - the entries of a directory but "." and "..", in the order of the disk; array of struct lower_name, frees itself. */
int lower_list(const struct lower *l, const char *path, GPtrArray **ret);
/* lower_readlink() - the verbatim target; caller frees. */
int lower_readlink(const struct lower *l, const char *path, char **ret);
/* lower_xattrs() - all extended attributes, as in snapshot/xattr.h; NULL when there are none. */
int lower_xattrs(const struct lower *l, const char *path, GBytes **ret);

/* fingerprint_same() - same object and unchanged since: ino, btime, type, size, mtime, ctime. Not dev: its number may differ after a reboot. */
bool fingerprint_same(const struct fingerprint *a, const struct fingerprint *b);
