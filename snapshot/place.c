/* SPDX-License-Identifier: MIT */
#include "snapshot/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* What one call may resolve; a longer path is walked in pieces. */
#define PIECE_MAX (PATH_MAX - NAME_MAX - 2)

static int walk(int dirfd, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	int fd;

	do {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	} while (fd < 0 && (errno == EINTR || errno == EAGAIN)); /* EAGAIN: a rename raced with the walk */
	return fd < 0 ? -errno : fd;
}

/* Opens the first @len bytes of @path as a directory. */
static int walk_pieces(int root, const char *path, size_t len)
{
	int dirfd = walk(root, ".");

	while (dirfd >= 0 && len > 0) {
		size_t piece = len;
		g_autofree char *part = NULL;
		int fd;

		if (piece > PIECE_MAX) {
			for (piece = PIECE_MAX; piece > 0 && path[piece] != '/'; piece--)
				;
			if (piece == 0) {
				close(dirfd);
				return -ENAMETOOLONG;
			}
		}
		part = g_strndup(path, piece);
		fd = walk(dirfd, part);
		close(dirfd);
		dirfd = fd;
		path += piece;
		len -= piece;
		for (; len > 0 && *path == '/'; len--)
			path++;
	}
	return dirfd;
}

int place_open(int root, const char *path, struct place *ret)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	int fd;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || *path == '/' || (slash && !*name))
		return -EINVAL;
	fd = walk_pieces(root, path, slash ? slash - path : 0);
	if (fd < 0)
		return fd;
	*ret = (struct place){ .dirfd = fd, .name = *name ? name : "." };
	return 0;
}

void place_close(struct place *p)
{
	if (p->dirfd >= 0)
		close(p->dirfd);
	p->dirfd = -1;
}

int place_stat_at(int dirfd, const char *name, struct fingerprint *ret)
{
	struct fingerprint print = { 0 };
	int r = lower_stat_at(dirfd, name, &print);

	if (r < 0 && r != -ENOENT)
		return r;
	*ret = print;
	return 0;
}

int place_stat(int root, const char *path, struct fingerprint *ret)
{
	g_auto(place_t) at = PLACE_NONE;
	int r = place_open(root, path, &at);

	return r < 0 ? r : place_stat_at(at.dirfd, at.name, ret);
}

int place_is_empty_dir(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *d;
	DIR *dir;
	int empty = 1;

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (empty && (d = readdir(dir)))
		empty = strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0;
	closedir(dir);
	return empty;
}

int place_mount(int dirfd, uint64_t ret[2])
{
	struct statx sx;

	if (statx(dirfd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_MNT_ID, &sx) < 0)
		return -errno;
	ret[0] = makedev(sx.stx_dev_major, sx.stx_dev_minor);
	ret[1] = sx.stx_mask & STATX_MNT_ID ? sx.stx_mnt_id : 0;
	return 0;
}
