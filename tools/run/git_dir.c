/* SPDX-License-Identifier: MIT */
#include "tools/run/git_dir.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/paths.h"

#define LINE_SIZE 4200

/* The first line of a small regular file; NULL for anything else. Caller frees. */
static char *read_line(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[LINE_SIZE];
	struct stat st;
	ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (n <= 0 || memchr(text, '\0', n))
		return NULL;
	text[n] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	return g_strdup(text);
}

static char *resolve_from(const char *base, const char *path)
{
	g_autofree char *whole = g_path_is_absolute(path) ? g_strdup(path) : g_build_filename(base, path, NULL);

	return paths_resolve(whole);
}

static bool holds(const char *dir, const char *name, GFileTest test)
{
	g_autofree char *path = g_build_filename(dir, name, NULL);

	return g_file_test(path, test);
}

static bool is_repository(const char *dir)
{
	return holds(dir, "HEAD", G_FILE_TEST_IS_REGULAR) && holds(dir, "objects", G_FILE_TEST_IS_DIR) &&
	       holds(dir, "refs", G_FILE_TEST_IS_DIR);
}

static char *common_dir(const char *git_dir)
{
	int fd = open(git_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g_autofree char *line = fd >= 0 ? read_line(fd, "commondir") : NULL;

	if (fd >= 0)
		close(fd);
	return line ? resolve_from(git_dir, line) : g_strdup(git_dir);
}

char *git_dir_outside(int workspace_fd, const char *workspace)
{
	g_autofree char *line = read_line(workspace_fd, ".git");
	g_autofree char *dir = NULL;
	g_autofree char *common = NULL;

	if (!line || !g_str_has_prefix(line, "gitdir: "))
		return NULL;
	dir = resolve_from(workspace, line + strlen("gitdir: "));
	common = dir ? common_dir(dir) : NULL;
	/* The directory of a work tree lies in the one that is shared; anything else was not made by git. */
	if (!common || !paths_below(dir, common) || !is_repository(common))
		return NULL;
	if (paths_below(common, workspace) || paths_below(workspace, common))
		return NULL;
	return g_steal_pointer(&common);
}
