/* SPDX-License-Identifier: MIT */
/*
 * policy_load - from the places where profiles lie to a policy
 *
 * Files are read only as far as the search goes. One that is read and cannot be understood ends everything, also when the wanted
 * profile is in another: it might have held it.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rules/policy.h"
#include "rules/policy_file.h"
#include "rules/policy_internal.h"
#include "rules/profile.h"

#define EXTENDS_MAX 64 /* how deep */

/* In the order of the search. */
enum place { PLACE_CONFIG, PLACE_USER, PLACE_MANAGED, PLACE_SHIPPED, PLACE_COUNT };

struct loader {
	const char *paths[PLACE_COUNT];
	GPtrArray *files[PLACE_COUNT]; /* struct profile_file; NULL until the search gets there */
};

/* Sources */

static char *find_shipped_dir(void)
{
	g_autofree char *exe = g_file_read_link("/proc/self/exe", NULL), *bin = NULL, *dir = NULL;

	if (exe) {
		bin = g_path_get_dirname(exe);
		dir = g_build_filename(bin, "..", "share", "sbxfs", "profiles", NULL);
		if (g_file_test(dir, G_FILE_TEST_IS_DIR))
			return g_canonicalize_filename(dir, NULL);
	}
	return g_strdup(SBXFS_PROFILES_DIR);
}

void policy_sources_init(struct policy_sources *s, const char *profile, const char *workspace)
{
	const char *config = g_getenv("SBXFS_CONFIG");

	*s = (struct policy_sources){
		.profile = g_strdup(profile),
		.workspace = g_strdup(workspace),
		.config = config && *config ? g_strdup(config) : NULL,
		.user_dir = g_build_filename(g_get_user_config_dir(), "sbxfs", NULL),
		.managed_dir = g_strdup("/etc/sbxfs"),
		.shipped_dir = find_shipped_dir(),
	};
}

void policy_sources_clear(struct policy_sources *s)
{
	g_free(s->profile);
	g_free(s->workspace);
	g_free(s->config);
	g_free(s->user_dir);
	g_free(s->managed_dir);
	g_free(s->shipped_dir);
	*s = (struct policy_sources){ 0 };
}

/* Files */

static struct profile_file *load_file(const char *path, bool follow, GError **error)
{
	g_autofree char *text = NULL;
	size_t len;

	text = policy_file_read(path, follow, &len, error);
	return text ? profile_file_parse(text, len, path, error) : NULL;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The *.ini files of a directory, in the order of their names; none when it does not exist. */
static GPtrArray *list_dir(const char *path, GError **error)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GError) e = NULL;
	g_autoptr(GDir) dir = g_dir_open(path, 0, &e);
	const char *name;

	if (!dir && !g_error_matches(e, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
		g_set_error(error, POLICY_ERROR, POLICY_ERROR_UNREADABLE, "%s: cannot be read: %s", path, e->message);
		return NULL;
	}
	while (dir && (name = g_dir_read_name(dir))) {
		if (*name != '.' && g_str_has_suffix(name, ".ini"))
			g_ptr_array_add(names, g_build_filename(path, name, NULL));
	}
	g_ptr_array_sort(names, compare_names);
	return g_steal_pointer(&names);
}

static bool load_place(struct loader *l, enum place place, GError **error)
{
	g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(profile_file_free);
	g_autoptr(GPtrArray) paths = NULL;
	const char *path = l->paths[place];

	if (l->files[place])
		return true;
	if (path && place == PLACE_CONFIG && !g_file_test(path, G_FILE_TEST_IS_DIR)) {
		paths = g_ptr_array_new_with_free_func(g_free);
		g_ptr_array_add(paths, g_strdup(path));
	} else if (path) {
		paths = list_dir(path, error);
		if (!paths)
			return false;
	}
	for (unsigned i = 0; paths && i < paths->len; i++) {
		struct profile_file *f = load_file(paths->pdata[i], true, error);

		if (!f)
			return false;
		g_ptr_array_add(files, f);
	}
	l->files[place] = g_steal_pointer(&files);
	return true;
}

/* Names */

/* In one place, but not @except. 0 and NULL for none; -1 and @error for two. */
static int find_in_place(struct loader *l, enum place place, const char *name, const struct profile *except,
			 struct profile **ret_profile, GError **error)
{
	GPtrArray *files = l->files[place];
	struct profile *found = NULL;

	for (unsigned i = 0; i < files->len; i++) {
		struct profile *p = profile_file_find(files->pdata[i], name);

		if (!p || p == except)
			continue;
		if (found) {
			g_set_error(error, POLICY_ERROR, POLICY_ERROR_INVALID,
				    "%s:%u: profile \"%s\" is also in %s:%u; rename one of the two", p->file->path, p->line, name,
				    found->file->path, found->line);
			return -1;
		}
		found = p;
	}
	*ret_profile = found;
	return 0;
}

/* From @first on. NULL without an error when it is nowhere. */
static struct profile *find(struct loader *l, enum place first, const char *name, const struct profile *except,
			    enum place *ret_place, GError **error)
{
	for (enum place i = first; i < PLACE_COUNT; i++) {
		struct profile *p = NULL;

		if (!load_place(l, i, error) || find_in_place(l, i, name, except, &p, error) < 0)
			return NULL;
		if (p) {
			*ret_place = i;
			return p;
		}
	}
	return NULL;
}

static void set_not_found(struct loader *l, const char *name, GError **error)
{
	g_autoptr(GString) known = g_string_new(NULL);

	for (int i = 0; i < PLACE_COUNT; i++) {
		for (unsigned j = 0; l->files[i] && j < l->files[i]->len; j++) {
			struct profile_file *f = l->files[i]->pdata[j];

			for (unsigned k = 0; k < f->profiles->len; k++)
				g_string_append_printf(known, "%s%s", known->len ? ", " : "",
						       ((struct profile *)f->profiles->pdata[k])->name);
		}
	}
	g_set_error(error, POLICY_ERROR, POLICY_ERROR_NOT_FOUND, "no profile \"%s\"; there are: %s%s%s", name,
		    known->len ? known->str : "none",
		    g_file_test(name, G_FILE_TEST_IS_REGULAR) ? "; for the file of that name write ./" : "",
		    g_file_test(name, G_FILE_TEST_IS_REGULAR) ? name : "");
}

/* Following "extends" */

struct chain {
	struct loader *loader;
	struct policy *policy;
	enum policy_layer layer;
	GPtrArray *open; /* the profiles on the way down */
	GHashTable *done;
};

static bool add_profile(struct chain *c, const struct profile *p, GError **error)
{
	for (unsigned i = 0; i < p->rules->len; i++) {
		if (!policy_add_rule(c->policy, c->layer, &g_array_index(p->rules, struct rule, i), error))
			return false;
	}
	for (unsigned i = 0; i < p->settings->len; i++) {
		const struct profile_setting *s = &g_array_index(p->settings, struct profile_setting, i);

		policy_add_setting(c->policy, &(struct policy_setting){
			.layer = c->layer,
			.section = s->section,
			.key = s->key,
			.value = s->value,
			.profile = p->name,
			.file = p->file->path,
			.line = s->line,
		});
	}
	return true;
}

static bool fail_circle(struct chain *c, const struct profile *p, const struct profile *to, GError **error)
{
	g_autoptr(GString) way = g_string_new(NULL);
	unsigned i = 0;

	while (c->open->pdata[i] != to)
		i++;
	for (; i < c->open->len; i++)
		g_string_append_printf(way, "%s -> ", ((struct profile *)c->open->pdata[i])->name);
	g_set_error(error, POLICY_ERROR, POLICY_ERROR_INVALID, "%s:%u: \"extends\" runs in a circle: %s%s", p->file->path,
		    p->extends_line, way->str, to->name);
	return false;
}

static bool follow(struct chain *c, struct profile *p, enum place place, GError **error)
{
	if (c->open->len >= EXTENDS_MAX) {
		g_set_error(error, POLICY_ERROR, POLICY_ERROR_INVALID, "%s:%u: \"extends\" goes deeper than %d profiles",
			    p->file->path, p->line, EXTENDS_MAX);
		return false;
	}
	g_ptr_array_add(c->open, p);
	for (unsigned i = 0; p->extends && p->extends[i]; i++) {
		g_autoptr(GError) e = NULL;
		struct profile *parent = profile_file_find(p->file, p->extends[i]);
		enum place from = place;

		if (!parent || parent == p)
			parent = find(c->loader, place, p->extends[i], p, &from, &e);
		if (!parent) {
			if (!e)
				set_not_found(c->loader, p->extends[i], &e);
			g_propagate_prefixed_error(error, g_steal_pointer(&e), "%s:%u: extends: ", p->file->path, p->extends_line);
			return false;
		}
		if (g_ptr_array_find(c->open, parent, NULL))
			return fail_circle(c, p, parent, error);
		if (!g_hash_table_contains(c->done, parent) && !follow(c, parent, from, error))
			return false;
	}
	g_ptr_array_remove_index(c->open, c->open->len - 1);
	g_hash_table_add(c->done, p);
	return add_profile(c, p, error);
}

static bool add_layer(struct loader *l, struct policy *policy, enum policy_layer layer, struct profile *p, enum place place,
		      GError **error)
{
	struct chain c = {
		.loader = l,
		.policy = policy,
		.layer = layer,
		.open = g_ptr_array_new(),
		.done = g_hash_table_new(NULL, NULL),
	};
	bool ok = follow(&c, p, place, error);

	policy->layers[layer].profile = policy_intern(policy, p->name);
	if (layer == POLICY_USER)
		policy->description = policy_intern(policy, p->description);
	g_ptr_array_unref(c.open);
	g_hash_table_unref(c.done);
	return ok;
}

/* Layers */

static bool is_file_name(const char *profile)
{
	return strchr(profile, '/') || g_str_has_suffix(profile, ".ini");
}

static bool load_user(struct loader *l, struct policy *policy, const char *profile, GError **error)
{
	enum place place = PLACE_CONFIG;
	g_autofree char *path = NULL, *cwd = NULL;
	struct profile_file *f;
	struct profile *p;
	GError *e = NULL;
	bool ok;

	if (!is_file_name(profile)) {
		p = find(l, PLACE_CONFIG, profile, NULL, &place, &e);
		if (!p && !e)
			set_not_found(l, profile, &e);
		if (!p)
			return g_propagate_error(error, e), false;
		return add_layer(l, policy, POLICY_USER, p, place, error);
	}
	/* Its name is kept, and is to mean the same from another directory. */
	cwd = g_get_current_dir();
	path = g_path_is_absolute(profile) ? g_strdup(profile) : g_build_filename(cwd, profile, NULL);
	f = load_file(path, true, error);
	if (!f)
		return false;
	ok = add_layer(l, policy, POLICY_USER, profile_file_leaf(f), place, error);
	profile_file_free(f);
	return ok;
}

/* The one profile in the managed directory that no other there extends. */
static bool find_managed(struct loader *l, struct profile **ret_profile, GError **error)
{
	g_autoptr(GPtrArray) all = g_ptr_array_new();
	struct profile *leaf = NULL;

	if (!load_place(l, PLACE_MANAGED, error))
		return false;
	for (unsigned i = 0; i < l->files[PLACE_MANAGED]->len; i++) {
		struct profile_file *f = l->files[PLACE_MANAGED]->pdata[i];

		for (unsigned j = 0; j < f->profiles->len; j++)
			g_ptr_array_add(all, f->profiles->pdata[j]);
	}
	for (unsigned i = 0; i < all->len; i++) {
		struct profile *p = all->pdata[i];
		bool extended = false;

		for (unsigned j = 0; j < all->len; j++)
			extended = extended || (j != i && profile_extends(all->pdata[j], p->name));
		if (extended)
			continue;
		if (leaf) {
			g_set_error(error, POLICY_ERROR, POLICY_ERROR_INVALID,
				    "%s:%u: a second managed profile \"%s\", the first is \"%s\" in %s:%u; add one that extends "
				    "both, it will apply",
				    p->file->path, p->line, p->name, leaf->name, leaf->file->path, leaf->line);
			return false;
		}
		leaf = p;
	}
	*ret_profile = leaf ? leaf : all->len ? all->pdata[0] : NULL; /* all extended: a circle, which add_layer() reports */
	return true;
}

static bool load_managed(struct loader *l, struct policy *policy, GError **error)
{
	struct profile *p;

	if (!find_managed(l, &p, error))
		return false;
	return p ? add_layer(l, policy, POLICY_MANAGED, p, PLACE_MANAGED, error) : true;
}

/* What is asked, and what runs then, is not for those to say who write into the workspace. */
static bool check_workspace_file(const struct profile_file *f, GError **error)
{
	for (unsigned i = 0; i < f->profiles->len; i++) {
		const struct profile *p = f->profiles->pdata[i];

		for (unsigned j = 0; j < p->settings->len; j++) {
			const struct profile_setting *s = &g_array_index(p->settings, struct profile_setting, j);

			if (strcmp(s->section, "ask") != 0)
				continue;
			g_set_error(error, POLICY_ERROR, POLICY_ERROR_INVALID,
				    "%s:%u: [ask] cannot stand in the workspace's own file; put it into your profile", f->path, s->line);
			return false;
		}
	}
	return true;
}

static bool load_workspace(struct loader *l, struct policy *policy, const char *workspace, GError **error)
{
	g_autofree char *path = g_build_filename(workspace, POLICY_WORKSPACE_FILE, NULL);
	struct profile_file *f;
	GError *e = NULL;
	bool ok;

	f = load_file(path, false, &e);
	if (g_error_matches(e, POLICY_ERROR, POLICY_ERROR_NOT_FOUND)) {
		g_error_free(e);
		return true;
	}
	if (!f)
		return g_propagate_error(error, e), false;
	ok = check_workspace_file(f, error) && add_layer(l, policy, POLICY_WORKSPACE, profile_file_leaf(f), PLACE_MANAGED, error);
	profile_file_free(f);
	return ok;
}

static void loader_init(struct loader *l, const struct policy_sources *s)
{
	*l = (struct loader){ .paths = { s->config, s->user_dir, s->managed_dir, s->shipped_dir } };
}

static void loader_clear(struct loader *l)
{
	for (int i = 0; i < PLACE_COUNT; i++)
		g_clear_pointer(&l->files[i], g_ptr_array_unref);
}

struct policy *policy_load(const struct policy_sources *sources, GError **error)
{
	struct policy *policy = policy_new();
	struct loader l;

	loader_init(&l, sources);
	if (load_user(&l, policy, sources->profile ? sources->profile : POLICY_DEFAULT_PROFILE, error) &&
	    load_managed(&l, policy, error) && (!sources->workspace || load_workspace(&l, policy, sources->workspace, error)))
		policy_seal(policy);
	else
		g_clear_pointer(&policy, policy_free);
	loader_clear(&l);
	return policy;
}

struct policy *policy_load_text(const char *text, const char *origin, GError **error)
{
	struct policy *policy;
	struct profile_file *f;
	struct loader l;

	if (policy_text_is_merged(text))
		return policy_text_load(text, origin, error);
	f = profile_file_parse(text, strlen(text), origin, error);
	if (!f)
		return NULL;
	loader_init(&l, &(struct policy_sources){ 0 });
	policy = policy_new();
	if (add_layer(&l, policy, POLICY_USER, profile_file_leaf(f), PLACE_CONFIG, error))
		policy_seal(policy);
	else
		g_clear_pointer(&policy, policy_free);
	loader_clear(&l);
	profile_file_free(f);
	return policy;
}

/* Listing */

static void policy_profile_free(void *data)
{
	struct policy_profile *p = data;

	g_free(p->name);
	g_free(p->description);
	g_free(p->file);
	g_free(p);
}

static void list_file(GPtrArray *list, const struct profile_file *f)
{
	for (unsigned i = 0; i < f->profiles->len; i++) {
		const struct profile *p = f->profiles->pdata[i];
		struct policy_profile *out = g_new0(struct policy_profile, 1);

		out->name = g_strdup(p->name);
		out->description = g_strdup(p->description);
		out->file = g_strdup(f->path);
		out->line = p->line;
		g_ptr_array_add(list, out);
	}
}

GPtrArray *policy_list_profiles(const struct policy_sources *sources, GError **error)
{
	g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(policy_profile_free);
	struct loader l;
	bool ok = true;

	loader_init(&l, sources);
	for (int i = 0; ok && i < PLACE_COUNT; i++) {
		ok = load_place(&l, (enum place)i, error);
		for (unsigned j = 0; ok && j < l.files[i]->len; j++)
			list_file(list, l.files[i]->pdata[j]);
	}
	loader_clear(&l);
	return ok ? g_steal_pointer(&list) : NULL;
}
