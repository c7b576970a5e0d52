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

/* The value of "@key = ..." in the configuration of @dir, as git itself writes it there. Caller frees. */
static char *config_value(const char *dir, const char *key)
{
	g_autofree char *path = g_build_filename(dir, "config", NULL), *start = g_strconcat(key, " = ", NULL);
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return NULL;
	lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; *line; line++)
		if (g_str_has_prefix(g_strstrip(*line), start))
			return g_strdup(*line + strlen(start));
	return NULL;
}

static bool leads_to(const char *base, const char *path, const char *wanted)
{
	g_autofree char *real = path ? resolve_from(base, path) : NULL;

	return real && g_str_equal(real, wanted);
}

/*
 * A .git file may have come with a commit of a program's, so what it names has to name @workspace as well: a work
 * tree's directory its .git file, a submodule's repository its top. One that has a work tree of its own, or is bare,
 * is not this workspace's. A repository that was put elsewhere (git init --separate-git-dir) knows of nothing.
 */
static bool belongs_to(const char *dir, const char *common, const char *workspace)
{
	g_autofree char *name = g_path_get_basename(common), *git_file = g_build_filename(workspace, ".git", NULL);
	g_autofree char *top = config_value(common, "worktree"), *bare = config_value(common, "bare"), *back = NULL;
	int fd;

	if (!g_str_equal(dir, common)) {
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		back = fd >= 0 ? read_line(fd, "gitdir") : NULL;
		if (fd >= 0)
			close(fd);
		return leads_to(dir, back, git_file);
	}
	return top ? leads_to(common, top, workspace) : !g_str_equal(name, ".git") && g_strcmp0(bare, "false") == 0;
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
	if (!common || !paths_below(dir, common) || !is_repository(common) || !belongs_to(dir, common, workspace))
		return NULL;
	if (paths_below(common, workspace) || paths_below(workspace, common))
		return NULL;
	return g_steal_pointer(&common);
}
