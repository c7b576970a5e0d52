/* SPDX-License-Identifier: MIT */
#include "tools/roll_back.h"

#include <inttypes.h>
#include <string.h>

#include "fs/control.h"
#include "snapshot/change.h"
#include "snapshot/pathspec.h"
#include "snapshot/restoring.h"
#include "tools/attach.h"
#include "tools/exit.h"
#include "tools/path_args.h"
#include "tools/sandbox.h"

#define AUTOMATIC "@before-rollback-"

static char *next_automatic_name(struct attached *a, GError **error)
{
	g_autoptr(GPtrArray) all = NULL;
	uint64_t last = 0;
	int code = store_snapshot_list(a->store, &all);

	if (code < 0) {
		tool_error_errno(error, code, NULL, "snapshots of %s", a->sandbox->name);
		return NULL;
	}
	for (unsigned i = 0; i < all->len; i++) {
		const char *name = ((const struct snapshot *)all->pdata[i])->name;

		if (g_str_has_prefix(name, AUTOMATIC))
			last = MAX(last, g_ascii_strtoull(name + strlen(AUTOMATIC), NULL, 10));
	}
	return g_strdup_printf(AUTOMATIC "%" PRIu64, last + 1);
}

/* Borrowed strings and a NULL. The view knows paths only, so globs are replaced by the changes that they match. */
static GPtrArray *named_paths(char **paths, const GPtrArray *changes)
{
	GPtrArray *named = g_ptr_array_new();
	bool glob = false;

	for (char **p = paths; *p; p++) {
		glob = glob || path_args_is_glob(*p);
		g_ptr_array_add(named, *p);
	}
	for (unsigned i = 0; glob && i < changes->len; i++) {
		const struct change *c = changes->pdata[i];

		g_ptr_array_add(named, c->path);
		if (c->from_path)
			g_ptr_array_add(named, c->from_path);
	}
	g_ptr_array_add(named, NULL);
	return named;
}

static gint path_order(gconstpointer a, gconstpointer b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool lies_in_one_of(GHashTable *dirs, const char *path)
{
	g_autofree char *above = g_strdup(path);
	char *slash = above;

	while (slash && !g_hash_table_contains(dirs, above)) {
		slash = strrchr(above, '/');
		if (slash)
			*slash = '\0';
	}
	return slash != NULL;
}

/* Copies of those of @paths that lie in no other one of them, and a NULL. Sorts @paths: what lies in another one comes after it. */
static char **outermost(GPtrArray *paths)
{
	g_autoptr(GHashTable) kept = g_hash_table_new(g_str_hash, g_str_equal);
	GPtrArray *all = g_ptr_array_new();

	g_ptr_array_sort(paths, path_order);
	for (unsigned i = 0; i < paths->len; i++) {
		const char *path = paths->pdata[i];

		if (lies_in_one_of(kept, path))
			continue;
		g_hash_table_add(kept, (gpointer)path);
		g_ptr_array_add(all, g_strdup(path));
	}
	g_ptr_array_add(all, NULL);
	return (char **)g_ptr_array_free(all, FALSE);
}

static bool check_covered(const GPtrArray *changes, char **restored, GError **error)
{
	g_autoptr(pathspec_t) spec = pathspec_new((const char *const *)restored);

	for (unsigned i = 0; i < changes->len; i++) {
		const struct change *c = changes->pdata[i];

		if (*restored && pathspec_match(spec, c->path) == PATHSPEC_ALL)
			continue;
		tool_error(error, EXIT_USAGE, c->path,
			   "%s differs as a directory above it was moved or exchanged: roll back that directory, which takes along "
			   "all that was changed in it; nothing was rolled back",
			   c->path);
		return false;
	}
	return true;
}

bool roll_back_choose(struct attached *a, int64_t now, int64_t to, char **paths, const GPtrArray *changes, char ***ret, GError **error)
{
	g_autoptr(GPtrArray) named = named_paths(paths, changes), found = NULL;
	g_autoptr(restoring_t) restoring = NULL;
	g_auto(GStrv) restored = NULL;
	int code = restoring_new(a->store, now, to, (const char *const *)named->pdata, &restoring);

	if (code < 0) {
		tool_error_errno(error, code, NULL, "changes of %s", a->sandbox->name);
		return false;
	}
	found = restoring_paths(restoring);
	restored = outermost(found);
	if (!check_covered(changes, restored, error))
		return false;
	for (unsigned i = 0; named->pdata[i]; i++)
		g_ptr_array_add(found, g_strdup(named->pdata[i]));
	*ret = outermost(found);
	return true;
}

bool roll_back(struct attached *a, int64_t to, char *const *paths, bool scratch, struct roll_back_result *ret, GError **error)
{
	g_autofree char *undo = next_automatic_name(a, error);
	g_autoptr(GVariant) arguments = NULL, answer = NULL;
	GVariantBuilder b;

	if (!undo)
		return false;
	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	g_variant_builder_add(&b, "{sv}", "to", g_variant_new_int64(to));
	g_variant_builder_add(&b, "{sv}", "name", g_variant_new_string(undo));
	g_variant_builder_add(&b, "{sv}", "scratch", g_variant_new_boolean(scratch));
	if (paths)
		g_variant_builder_add(&b, "{sv}", "paths", g_variant_new_bytestring_array((const char *const *)paths, -1));
	arguments = g_variant_ref_sink(g_variant_builder_end(&b));
	answer = control_call(a->control, "rollback", arguments, error);
	if (!answer)
		return false;
	ret->undo = g_steal_pointer(&undo);
	g_variant_lookup(answer, "names", "t", &ret->names);
	g_variant_lookup(answer, "nodes", "t", &ret->nodes);
	return true;
}
