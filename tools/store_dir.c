/* SPDX-License-Identifier: MIT */
#include "tools/store_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/exit.h"

static int remove_below(int dirfd, const char *name);

static int remove_entries(DIR *dir)
{
	struct dirent *e;
	int r = 0;

	while (r == 0 && (errno = 0, e = readdir(dir)))
		if (!g_str_equal(e->d_name, ".") && !g_str_equal(e->d_name, ".."))
			r = remove_below(dirfd(dir), e->d_name);
	return r < 0 ? r : -errno;
}

static int remove_directory(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir;
	int r;

	/* What a commit staged may have any mode. */
	if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)!fchmod(fd, 0700);
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	r = remove_entries(dir);
	closedir(dir);
	return r < 0 || unlinkat(parent, name, AT_REMOVEDIR) == 0 ? r : -errno;
}

static int remove_below(int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, 0) == 0)
		return 0;
	return errno == EISDIR || errno == EPERM ? remove_directory(dirfd, name) : -errno;
}

static bool is_store(const char *dir)
{
	g_autofree char *index = g_build_filename(dir, "store.db", NULL);
	struct stat st;

	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && lstat(index, &st) == 0 &&
	       S_ISREG(st.st_mode);
}

bool store_dir_remove(const char *dir, GError **error)
{
	g_autofree char *parent = g_path_get_dirname(dir);
	g_autofree char *name = g_path_get_basename(dir);
	/* No sandbox is found under a name with a dot in front. */
	g_autofree char *doomed = g_strdup_printf("%s/.%s.%d.removed", parent, name, (int)getpid());
	int r;

	if (!is_store(dir)) {
		tool_error(error, EXIT_NOT_FOUND, dir, "%s is not a store of yours, it was left alone", dir);
		return false;
	}
	r = rename(dir, doomed) < 0 ? -errno : remove_directory(AT_FDCWD, doomed);
	if (r < 0)
		tool_error_errno(error, r, dir, "cannot delete %s", dir);
	return r == 0;
}
