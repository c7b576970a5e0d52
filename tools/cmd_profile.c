/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "rules/policy.h"
#include "tools/audit_config.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/policy_check.h"
#include "tools/policy_store.h"

static void list_text(GPtrArray *all)
{
	for (unsigned i = 0; i < all->len; i++) {
		const struct policy_profile *p = all->pdata[i];

		printf("%-28s %s\n", p->name, p->description ? p->description : "");
	}
}

static void list_json(GPtrArray *all)
{
	GVariantBuilder rows;

	g_variant_builder_init(&rows, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < all->len; i++) {
		const struct policy_profile *p = all->pdata[i];

		g_variant_builder_open(&rows, G_VARIANT_TYPE_VARDICT);
		json_add_string(&rows, "name", p->name);
		json_add_string(&rows, "description", p->description);
		json_add_path(&rows, "file", p->file);
		json_add_int(&rows, "line", p->line);
		g_variant_builder_close(&rows);
	}
	json_print(stdout, g_variant_new_parsed("{'schema': <'sbxfs.profiles/1'>, 'profiles': <%@aa{sv}>}",
						g_variant_builder_end(&rows)));
}

static bool profile_list(bool json, GError **error)
{
	struct policy_sources sources;
	g_autoptr(GPtrArray) all = NULL;

	policy_places_init(&sources, NULL, NULL);
	all = policy_list_profiles(&sources, error);
	policy_sources_clear(&sources);
	if (!all)
		return false;
	if (json)
		list_json(all);
	else
		list_text(all);
	return true;
}

static void profile_json(const char *profile, const char *path, const char *text)
{
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.profile/1");
	json_add_string(&b, "profile", profile);
	json_add_path(&b, "file", path);
	if (text)
		json_add_string(&b, "text", text);
	json_print(stdout, g_variant_builder_end(&b));
}

/* Without a workspace: no place for what it says is too close to one. */
static bool check_settings(const struct policy *p, GError **error)
{
	struct audit_options audit;
	bool ok = audit_config_read(p, policy_name(p), "/dev/null", NULL, &audit, error);

	audit_config_clear(&audit);
	return ok && policy_check_settings(p, NULL, error);
}

/* @check: only whether it is sound, said in one line. */
static bool profile_load(const char *wanted, bool check, bool json, GError **error)
{
	g_autofree char *profile = NULL;
	g_autofree char *path = NULL;
	g_autofree char *text = NULL;
	struct policy *p = policy_find(wanted, NULL, &profile, &path, error);
	bool ok;

	if (!p)
		return false;
	text = policy_to_ini(p);
	ok = !check || check_settings(p, error);
	policy_free(p);
	if (!ok)
		return false;
	if (json)
		profile_json(profile, path, check ? NULL : text);
	else if (check)
		printf("%s: profile %s is sound\n", path ? path : wanted, profile);
	else
		fputs(text, stdout);
	return true;
}

/* A bare word given to check is a file, not a profile's name. */
static bool profile_check(const char *file, bool json, GError **error)
{
	g_autofree char *path = g_canonicalize_filename(file, NULL);

	return profile_load(path, true, json, error);
}

int cmd_profile(struct invocation *inv, GError **error)
{
	const struct command_syntax syntax = {
		.arguments = "list | show [NAME] | check FILE",
		.description = "Lists the profiles that can be found, shows one with all it inherits as one file "
			       "(default: the default profile), or checks a profile file.",
		.min_args = 1,
		.max_args = 2,
		.json = true,
	};
	const char *verb, *argument;

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	verb = command_arg(inv, 0);
	argument = command_arg(inv, 1);
	if (g_str_equal(verb, "list") && !argument)
		profile_list(inv->json, error);
	else if (g_str_equal(verb, "show"))
		profile_load(argument, false, inv->json, error);
	else if (g_str_equal(verb, "check") && argument)
		profile_check(argument, inv->json, error);
	else
		tool_error(error, EXIT_USAGE, verb, "usage: %s %s", inv->program, syntax.arguments);
	return EXIT_DONE;
}
