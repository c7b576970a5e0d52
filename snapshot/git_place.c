/* SPDX-License-Identifier: MIT */
#include "snapshot/git_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/journal.h"
#include "snapshot/tree.h"

#define SMALL_MAX 4096
#define GITDIR "gitdir: "
#define HEAD_OF "ref: "

static int open_dir(int dirfd, const char *path, int flags)
{
	int fd = openat(dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

char *git_place_read(int dirfd, const char *path)
{
	g_autofree char *buf = g_malloc0(SMALL_MAX + 1);
	int fd = openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return g_strdup("");
	n = read(fd, buf, SMALL_MAX);
	close(fd);
	buf[MAX(n, 0)] = '\0';
	return g_strchomp(g_steal_pointer(&buf));
}

/* Looking */

static bool is_repository(int gitdir)
{
	struct stat st;

	return fstatat(gitdir, "HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The repository of one directory: its descriptor, or -ENOENT. */
static int gitdir_of(int dirfd)
{
	g_autofree char *text = NULL;
	struct stat st;
	int fd = -ENOENT;

	if (fstatat(dirfd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (S_ISDIR(st.st_mode))
		fd = open_dir(dirfd, ".git", O_NOFOLLOW);
	if (S_ISREG(st.st_mode)) {
		text = git_place_read(dirfd, ".git");
		fd = g_str_has_prefix(text, GITDIR) ? open_dir(dirfd, text + strlen(GITDIR), 0) : -ENOENT;
	}
	if (fd >= 0 && !is_repository(fd)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}

/* The directory above, or -ENOENT at the top of a file system. */
static int parent_of(int dirfd)
{
	struct stat here, above;
	int fd = open_dir(dirfd, "..", 0);

	if (fd < 0)
		return fd;
	if (fstat(dirfd, &here) == 0 && fstat(fd, &above) == 0 && here.st_dev == above.st_dev && here.st_ino != above.st_ino)
		return fd;
	close(fd);
	return -ENOENT;
}

static int find_commondir(struct git_place *g)
{
	g_autofree char *text = git_place_read(g->gitdir, "commondir");

	g->commondir = *text ? open_dir(g->gitdir, text, 0) : open_dir(g->gitdir, ".", 0);
	return g->commondir < 0 ? g->commondir : 0;
}

int git_place_find(const struct lower *l, struct git_place *ret)
{
	g_autofree char *path = g_strdup(lower_path(l));
	g_auto(git_place_t) g = GIT_PLACE_NONE;
	int r;

	g.prefix = g_strdup("");
	g.top = open_dir(lower_root_fd(l), ".", 0);
	while (g.top >= 0 && (g.gitdir = gitdir_of(g.top)) == -ENOENT) {
		g_autofree char *name = g_path_get_basename(path);
		g_autofree char *above = g_path_get_dirname(path);
		g_autofree char *prefix = *g.prefix ? path_join(name, g.prefix) : g_strdup(name);
		int up = parent_of(g.top);

		close(g.top);
		g.top = up;
		g_free(g.prefix);
		g.prefix = g_steal_pointer(&prefix);
		g_free(path);
		path = g_steal_pointer(&above);
	}
	if (g.top < 0 || g.gitdir < 0)
		return g.top < 0 ? g.top : g.gitdir;
	r = find_commondir(&g);
	if (r < 0)
		return r;
	*ret = g;
	g = (struct git_place)GIT_PLACE_NONE;
	return 0;
}

void git_place_clear(struct git_place *g)
{
	if (g->gitdir >= 0)
		close(g->gitdir);
	if (g->commondir >= 0)
		close(g->commondir);
	if (g->top >= 0)
		close(g->top);
	g_free(g->prefix);
	*g = (struct git_place)GIT_PLACE_NONE;
}

/* Links */

static int link_one(int dirfd, int target, const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/self/fd/%d/%s", target, name);
	struct stat st;

	if (fstatat(target, name, &st, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	return symlinkat(path, dirfd, name) < 0 ? -errno : 0;
}

int git_place_link(const struct git_place *g, int dirfd, const char *name)
{
	/* Not index: libgit2 is given one that is never written. Not hooks, worktrees, modules. */
	static const char *const common[] = { "config", "info", "logs", "objects", "packed-refs", "refs", "shallow" };
	int r = remove_tree(dirfd, name), fd;

	if (r == 0 && mkdirat(dirfd, name, 0700) < 0)
		r = -errno;
	if (r < 0)
		return r;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = link_one(fd, g->gitdir, "HEAD");
	for (size_t i = 0; r == 0 && i < G_N_ELEMENTS(common); i++)
		r = link_one(fd, g->commondir, common[i]);
	close(fd);
	return r;
}

/* HEAD */

static bool head_is(int dirfd, const char *path, const char *ref)
{
	g_autofree char *text = git_place_read(dirfd, path);

	return g_str_has_prefix(text, HEAD_OF) && g_str_equal(text + strlen(HEAD_OF), ref);
}

bool git_place_has_head(const struct git_place *g, const char *ref)
{
	int fd = openat(g->commondir, "worktrees", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	bool found = head_is(g->gitdir, "HEAD", ref) || head_is(g->commondir, "HEAD", ref);
	struct dirent *d;

	while (!found && dir && (d = readdir(dir))) {
		g_autofree char *path = g_build_filename(d->d_name, "HEAD", NULL);

		found = d->d_name[0] != '.' && head_is(fd, path, ref);
	}
	if (dir)
		closedir(dir);
	return found;
}

int git_place_sync(const struct git_place *g)
{
	int fd = openat(g->commondir, "objects", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = syncfs(fd) < 0 ? -errno : 0;
	close(fd);
	return r;
}
