/* SPDX-License-Identifier: MIT */
#include "snapshot/lower.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "snapshot/xattr.h"

struct lower {
	char *path;
	int real; /* O_PATH */
	int root; /* where reads begin: the clone, or a duplicate of @real */
	uint64_t dev;
};

/* One call resolves at most this much of a path; longer ones go in pieces (a path may be longer than PATH_MAX). */
#define PIECE_MAX (PATH_MAX - NAME_MAX - 2)

int64_t nsec_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return nsec_from_timespec(ts);
}

/*
 * A copy of the mount that @fd lies in, as it is now, that refuses writes and updates no access times, and that no mount made
 * later appears in. Needs CAP_SYS_ADMIN; -errno without.
 */
static int lower_clone(int fd)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOATIME, .attr_clr = MOUNT_ATTR__ATIME,
				   .propagation = MS_PRIVATE };
	int clone = open_tree(fd, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (clone < 0)
		return -errno;
	if (mount_setattr(clone, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0) {
		int r = -errno;

		close(clone);
		return r;
	}
	return clone;
}

int lower_open_fd(int fd, const char *path, struct lower **ret)
{
	g_autofree struct lower *l = g_new0(struct lower, 1);
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	l->real = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (l->real < 0)
		return -errno;
	l->root = lower_clone(l->real);
	if (l->root < 0)
		l->root = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (l->root < 0) {
		int r = -errno;

		close(l->real);
		return r;
	}
	l->dev = st.st_dev;
	l->path = g_strdup(path);
	*ret = g_steal_pointer(&l);
	return 0;
}

void lower_give(const struct lower *l, int ret[2])
{
	ret[0] = l->real;
	ret[1] = l->root;
}

int lower_open_given(const int fds[2], const char *path, struct lower **ret)
{
	struct lower *l;
	struct stat st;

	if (fstat(fds[0], &st) < 0)
		return -errno;
	l = g_new0(struct lower, 1);
	l->real = fds[0];
	l->root = fds[1];
	l->dev = st.st_dev;
	l->path = g_strdup(path);
	*ret = l;
	return 0;
}

int lower_open(const char *path, struct lower **ret)
{
	g_autofree char *absolute = g_canonicalize_filename(path, NULL);
	int fd = open(absolute, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = lower_open_fd(fd, absolute, ret);
	close(fd);
	return r;
}

void lower_close(struct lower *l)
{
	if (!l)
		return;
	close(l->real);
	close(l->root);
	g_free(l->path);
	g_free(l);
}

const char *lower_path(const struct lower *l)
{
	return l->path;
}

int lower_root_fd(const struct lower *l)
{
	return l->real;
}

uint64_t lower_dev(const struct lower *l)
{
	return l->dev;
}

/* Without O_PATH, and not for a descriptor that has to be opened again: readers must not leave access times behind. */
static int open_beneath(int dirfd, const char *path, int flags)
{
	struct open_how how = { .flags = flags | O_NOFOLLOW | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOATIME | O_NONBLOCK),
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	int fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	if (fd < 0 && errno == EPERM && (how.flags & O_NOATIME)) {
		how.flags &= ~(uint64_t)O_NOATIME;
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	}
	return fd < 0 ? -errno : fd;
}

int lower_open_file(const struct lower *l, const char *path, int flags)
{
	int dirfd = l->root, fd;

	while (strlen(path) > PIECE_MAX) {
		g_autofree char *piece = g_strndup(path, PIECE_MAX);
		char *slash = strrchr(piece, '/');

		if (!slash)
			return -ENAMETOOLONG;
		*slash = '\0';
		fd = open_beneath(dirfd, piece, O_PATH | O_DIRECTORY);
		if (dirfd != l->root)
			close(dirfd);
		if (fd < 0)
			return fd;
		dirfd = fd;
		path += slash - piece + 1;
	}
	fd = open_beneath(dirfd, *path ? path : ".", flags);
	if (dirfd != l->root)
		close(dirfd);
	return fd;
}

static void fingerprint_from_statx(const struct statx *sx, struct fingerprint *ret)
{
#define TIME(t) ((t).tv_sec * NSEC_PER_SEC + (t).tv_nsec)
	*ret = (struct fingerprint){
		.dev = makedev(sx->stx_dev_major, sx->stx_dev_minor),
		.ino = sx->stx_ino,
		.btime = sx->stx_mask & STATX_BTIME ? TIME(sx->stx_btime) : 0,
		.attr = { .mode = sx->stx_mode, .uid = sx->stx_uid, .gid = sx->stx_gid, .nlink = sx->stx_nlink,
			  .rdev = makedev(sx->stx_rdev_major, sx->stx_rdev_minor), .size = sx->stx_size, .blocks = sx->stx_blocks,
			  .atime = TIME(sx->stx_atime), .mtime = TIME(sx->stx_mtime), .ctime = TIME(sx->stx_ctime) },
	};
#undef TIME
}

int lower_stat_at(int dirfd, const char *name, struct fingerprint *ret)
{
	struct statx sx;

	if (statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name ? 0 : AT_EMPTY_PATH),
		  STATX_BASIC_STATS | STATX_BTIME, &sx) < 0)
		return -errno;
	fingerprint_from_statx(&sx, ret);
	return 0;
}

int lower_stat(const struct lower *l, const char *path, struct fingerprint *ret)
{
	int fd, r;

	/* A plain name can't hold a symlink in the middle, so it needs no descriptor of its own. */
	if (!strchr(path, '/'))
		return lower_stat_at(l->root, path, ret);
	fd = lower_open_file(l, path, O_PATH);
	if (fd < 0)
		return fd;
	r = lower_stat_at(fd, "", ret);
	close(fd);
	return r;
}

static void lower_name_free(gpointer data)
{
	struct lower_name *n = data;

	g_free(n->name);
	g_free(n);
}

int lower_list(const struct lower *l, const char *path, GPtrArray **ret)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(lower_name_free);
	int fd = lower_open_file(l, path, O_RDONLY | O_DIRECTORY);
	struct dirent *d;
	DIR *dir;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (errno = 0, (d = readdir(dir))) {
		struct lower_name *n;

		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		n = g_new0(struct lower_name, 1);
		n->name = g_strdup(d->d_name);
		n->ino = d->d_ino;
		n->type = d->d_type;
		g_ptr_array_add(names, n);
	}
	if (errno) {
		int r = -errno;

		closedir(dir);
		return r;
	}
	closedir(dir);
	*ret = g_steal_pointer(&names);
	return 0;
}

int lower_readlink(const struct lower *l, const char *path, char **ret)
{
	g_autofree char *target = g_malloc(PATH_MAX + 1);
	int fd = lower_open_file(l, path, O_PATH);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = readlinkat(fd, "", target, PATH_MAX);
	if (n < 0) {
		int r = -errno;

		close(fd);
		return r == -ENOENT ? -EINVAL : r; /* not a symlink */
	}
	close(fd);
	target[n] = '\0';
	*ret = g_steal_pointer(&target);
	return 0;
}

int lower_xattrs(const struct lower *l, const char *path, GBytes **ret)
{
	g_autofree char *names = NULL, *value = NULL, *magic = NULL;
	g_autoptr(GBytes) set = NULL;
	ssize_t size, n;
	int fd = lower_open_file(l, path, O_PATH);

	if (fd < 0)
		return fd;
	/* f*xattr() refuse O_PATH; the magic link leads to the very object, a symlink included, and no further. */
	magic = g_strdup_printf("/proc/self/fd/%d", fd);
	size = xattr_grow(magic, NULL, &names);
	for (char *name = names; size > 0 && name < names + size; name += strlen(name) + 1) {
		GBytes *more;

		n = xattr_grow(magic, name, &value);
		if (n < 0)
			continue; /* gone again, or not ours to read (trusted.*) */
		more = xattrs_with(set, name, value ? value : "", n);
		g_clear_pointer(&set, g_bytes_unref);
		set = more;
	}
	close(fd);
	if (size < 0 && size != -EOPNOTSUPP)
		return size;
	*ret = g_steal_pointer(&set);
	return 0;
}

bool fingerprint_same(const struct fingerprint *a, const struct fingerprint *b)
{
	return a->ino == b->ino && a->btime == b->btime &&
	       (a->attr.mode & S_IFMT) == (b->attr.mode & S_IFMT) && a->attr.size == b->attr.size &&
	       a->attr.mtime == b->attr.mtime && a->attr.ctime == b->attr.ctime;
}
