/* SPDX-License-Identifier: MIT */
#include "tools/store_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/sandbox.h"

#define NEW ".new"
#define REMOVED ".removed"

static char *hidden_name(const char *dir, const char *suffix)
{
	g_autofree char *parent = g_path_get_dirname(dir);
	g_autofree char *name = g_path_get_basename(dir);

	return g_strdup_printf("%s/.%s.%d%s", parent, name, (int)getpid(), suffix);
}

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
	g_autofree char *doomed = hidden_name(dir, REMOVED);
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

char *store_dir_making(const char *dir)
{
	char *made = hidden_name(dir, NEW);

	store_dir_drop(made);
	return made;
}

bool store_dir_place(const char *made, const char *dir, GError **error)
{
	if (rename(made, dir) == 0)
		return true;
	if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR)
		tool_error(error, EXIT_BUSY, dir,
			   "%s is there already: another command made this sandbox in the same moment, or it is no store and in the way", dir);
	else
		tool_error_errno(error, -errno, dir, "the store %s", dir);
	return false;
}

void store_dir_drop(const char *made)
{
	int r = remove_directory(AT_FDCWD, made);

	if (r < 0 && r != -ENOENT)
		g_debug("%s: %s", made, g_strerror(-r));
}

/* The process in such a name; 0 when it is none. */
static pid_t maker_of(const char *name)
{
	g_autofree char *rest = g_str_has_suffix(name, NEW)	  ? g_strndup(name, strlen(name) - strlen(NEW))
				: g_str_has_suffix(name, REMOVED) ? g_strndup(name, strlen(name) - strlen(REMOVED))
								  : NULL;
	const char *dot = rest && *rest == '.' ? strrchr(rest + 1, '.') : NULL;

	return dot ? (pid_t)atoi(dot + 1) : 0;
}

void store_dir_sweep(const char *state)
{
	GDir *dir = g_dir_open(state, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *path = g_build_filename(state, name, NULL);
		pid_t maker = maker_of(name);

		/* A maker in another namespace is not seen, but its lock is. */
		if (maker > 0 && kill(maker, 0) < 0 && errno == ESRCH && !sandbox_is_locked(path))
			store_dir_drop(path);
	}
	g_clear_pointer(&dir, g_dir_close);
}
