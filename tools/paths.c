/* SPDX-License-Identifier: MIT */
#include "tools/paths.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/exit.h"

char *paths_state_dir(GError **error)
{
	const char *home = g_get_user_state_dir();

	if (!g_path_is_absolute(home)) {
		tool_error(error, EXIT_POLICY, home, "XDG_STATE_HOME must be an absolute path, it is '%s'", home);
		return NULL;
	}
	return g_build_filename(home, "sbxfs", NULL);
}

static bool is_own_dir(const char *dir, mode_t forbidden)
{
	struct stat st;

	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & forbidden);
}

bool paths_make_private_dir(const char *dir, GError **error)
{
	if (g_mkdir_with_parents(dir, 0700) < 0) {
		tool_error_errno(error, -errno, dir, "cannot make %s", dir);
		return false;
	}
	if (!is_own_dir(dir, 077)) {
		tool_error(
			error, EXIT_POLICY, dir,
			"%s must be a directory of your own that nobody else may enter: chmod 700 it, or move it away",
			dir);
		return false;
	}
	return true;
}

char *paths_runtime_place(void)
{
	const char *set = g_getenv("XDG_RUNTIME_DIR");
	g_autofree char *usual = g_strdup_printf("/run/user/%u", (unsigned)geteuid());

	if (set && g_path_is_absolute(set) && is_own_dir(set, 022))
		return g_build_filename(set, "sbxfs", NULL);
	if (is_own_dir(usual, 077))
		return g_build_filename(usual, "sbxfs", NULL);
	return g_strdup_printf("/tmp/sbxfs-%u", (unsigned)geteuid());
}

char *paths_runtime_dir(GError **error)
{
	g_autofree char *dir = paths_runtime_place();

	return paths_make_private_dir(dir, error) ? g_steal_pointer(&dir) : NULL;
}

char *paths_socket(const char *runtime, const char *name)
{
	return g_strdup_printf("%s/%s.sock", runtime, name);
}

char *paths_default_mountpoint(const char *runtime, const char *name)
{
	return g_build_filename(runtime, name, "mnt", NULL);
}

const char *paths_built_profiles(void)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);

	return self && paths_below(self, SBXFS_BUILD_DIR) ? SBXFS_SOURCE_DIR "/contrib/profiles" : NULL;
}

char *paths_resolve(const char *path)
{
	g_autofree char *absolute = NULL;
	g_autofree char *dir = NULL;
	g_autofree char *base = NULL;
	char *real = realpath(path, NULL);
	char *result;

	if (real || errno != ENOTCONN)
		return real;
	absolute = g_canonicalize_filename(path, NULL);
	dir = g_path_get_dirname(absolute);
	base = g_path_get_basename(absolute);
	real = realpath(dir, NULL);
	if (!real)
		return NULL;
	result = g_build_filename(real, base, NULL);
	free(real);
	return result;
}

char *paths_cwd(void)
{
	char *real = paths_resolve(".");

	return real ? real : g_get_current_dir();
}

const char *paths_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1 && *dir == '/')
		return path + 1;
	if (strncmp(path, dir, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	return path[n] ? path + n + 1 : path + n;
}
