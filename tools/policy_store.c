/* SPDX-License-Identifier: MIT */
#include "tools/policy_store.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "rules/policy.h"
#include "tools/exit.h"
#include "tools/paths.h"

void policy_places_init(struct policy_sources *sources, const char *wanted, const char *workspace)
{
	const char *built = paths_built_profiles();

	policy_sources_init(sources, wanted, workspace);
	if (built) {
		g_free(sources->shipped_dir);
		sources->shipped_dir = g_strdup(built);
	}
}

/* Where a profile that was asked for by name lies: places come in the order in which they are searched. */
static char *find_file(const struct policy_sources *sources, const char *name)
{
	g_autoptr(GPtrArray) all = policy_list_profiles(sources, NULL);

	for (unsigned i = 0; all && i < all->len; i++) {
		const struct policy_profile *profile = all->pdata[i];

		if (g_str_equal(profile->name, name))
			return g_strdup(profile->file);
	}
	return NULL;
}

struct policy *policy_find(const char *wanted, const char *workspace, char **ret_profile, char **ret_path,
			   GError **error)
{
	struct policy_sources sources;
	struct policy *p;
	bool is_file = wanted && (strchr(wanted, '/') || g_str_has_suffix(wanted, ".ini"));

	policy_places_init(&sources, wanted, workspace);
	p = policy_load(&sources, error);
	if (p) {
		*ret_profile = g_strdup(policy_name(p));
		*ret_path = is_file ? g_canonicalize_filename(wanted, NULL) : find_file(&sources, *ret_profile);
	}
	policy_sources_clear(&sources);
	return p;
}

static char *policy_path(const char *dir)
{
	return g_build_filename(dir, "policy.ini", NULL);
}

char *policy_store_text(const char *dir, GError **error)
{
	g_autofree char *path = policy_path(dir);
	g_autoptr(GError) failure = NULL;
	char *text;

	if (g_file_get_contents(path, &text, NULL, &failure))
		return text;
	tool_error(error, EXIT_POLICY, path, "the policy in force cannot be read: %s; mount with -p PROFILE to set one",
		   failure->message);
	return NULL;
}

struct policy *policy_store_load(const char *dir, GError **error)
{
	g_autofree char *path = policy_path(dir);
	g_autofree char *text = policy_store_text(dir, error);

	return text ? policy_load_text(text, path, error) : NULL;
}

static void sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

bool policy_store_save(const char *dir, const char *text, GError **error)
{
	g_autofree char *path = policy_path(dir);

	/* Writes a temporary file, syncs it and renames it. */
	if (!g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE,
				      0600, error))
		return false;
	sync_dir(dir);
	return true;
}
