/* SPDX-License-Identifier: MIT */
#include "tools/path_args.h"

#include <string.h>

#include "tools/exit.h"
#include "tools/paths.h"
#include "tools/sandbox.h"

static const char *inside(const struct sandbox *s, const char *path)
{
	const char *below = s->mountpoint ? paths_below(path, s->mountpoint) : NULL;

	return below ? below : paths_below(path, s->workspace);
}

/* The directory part may go through symlinks that lie outside of the sandbox. */
static char *resolve_outside(const char *path)
{
	g_autofree char *dir = g_path_get_dirname(path);
	g_autofree char *base = g_path_get_basename(path);
	g_autofree char *real = paths_resolve(dir);

	return real ? g_build_filename(real, base, NULL) : NULL;
}

char *path_args_one(const struct sandbox *s, const char *cwd, const char *path, GError **error)
{
	g_autofree char *absolute = NULL;
	g_autofree char *real = NULL;
	const char *below;

	if (!*path) {
		tool_error(error, EXIT_USAGE, path, "an empty path names nothing; use . for everything");
		return NULL;
	}
	absolute = g_canonicalize_filename(path, inside(s, cwd) ? cwd : s->workspace);
	below = inside(s, absolute);
	if (!below) {
		real = resolve_outside(absolute);
		below = real ? inside(s, real) : NULL;
	}
	if (!below) {
		g_free(real);
		real = paths_resolve(absolute);
		below = real ? inside(s, real) : NULL;
	}
	if (!below)
		tool_error(error, EXIT_USAGE, path, "%s is outside of the workspace %s", path, s->workspace);
	return g_strdup(below);
}

bool path_args_new(const struct sandbox *s, const GPtrArray *paths, char ***ret, GError **error)
{
	g_autoptr(GPtrArray) result = g_ptr_array_new_with_free_func(g_free);
	g_autofree char *cwd = paths_cwd();
	bool all = !paths || paths->len == 0;

	for (unsigned i = 0; paths && i < paths->len; i++) {
		char *path = path_args_one(s, cwd, paths->pdata[i], error);

		if (!path)
			return false;
		all = all || !*path;
		g_ptr_array_add(result, path);
	}
	if (all) {
		*ret = NULL;
		return true;
	}
	g_ptr_array_add(result, NULL);
	*ret = (char **)g_ptr_array_free(g_steal_pointer(&result), FALSE);
	return true;
}

bool path_args_is_glob(const char *path)
{
	return strpbrk(path, "*?[") != NULL;
}
