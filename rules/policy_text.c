/* SPDX-License-Identifier: MIT */
/*
 * policy_text - a policy as one text, and back
 *
 * An INI file whose first line is MARK. Its sections are named after the layers, since the names of profiles need not differ there:
 *
 *   [profile user]            one for each layer that somebody speaks for
 *   name = NAME
 *   description = TEXT        of the user layer
 *   [files user]
 *   nocase = yes              from here on, until the next "nocase"
 *   ;@ FILE:LINE PROFILE      the origin of the next line
 *   deny = PATTERN            one pattern: commas do not part it
 *   [network user]            and limits, ask, run, audit, gate
 *   ;@ FILE:LINE PROFILE
 *   KEY = VALUE
 *
 * The last line is END: a text that was cut short must not load as a policy with fewer rules.
 * FILE is written with C's escapes. A change of this format takes another number in MARK.
 */

#include <string.h>

#include "rules/policy.h"
#include "rules/policy_file.h"
#include "rules/policy_internal.h"
#include "rules/profile.h"

#define MARK "; sbxfs merged policy 1"
#define END "; end of policy"

static const char *const setting_sections[] = { "network", "limits", "ask", "run", "audit", "gate" };

/* Writing */

static void write_origin(GString *out, const char *file, unsigned line, const char *profile)
{
	g_autofree char *escaped = g_strescape(file, NULL);

	g_string_append_printf(out, ";@ %s:%u %s\n", escaped, line, profile);
}

/* @origins: with the note that says where each line is from. */
static void write_rules(GString *out, const struct policy *p, int layer, bool origins)
{
	const struct rule_list *rules = p->layers[layer].rules;
	bool nocase = false;

	if (rule_list_count(rules) > 0)
		g_string_append_printf(out, "\n[files %s]\n", policy_layer_name((enum policy_layer)layer));
	for (int i = 0; i < rule_list_count(rules); i++) {
		const struct rule *r = rule_list_get(rules, i);

		if (pattern_is_nocase(r->pattern) != nocase) {
			nocase = !nocase;
			g_string_append_printf(out, "nocase = %s\n", nocase ? "yes" : "no");
		}
		if (origins)
			write_origin(out, r->file, r->line, r->profile);
		g_string_append_printf(out, "%s = %s\n", action_name(r->action), pattern_text(r->pattern));
	}
}

static void write_settings(GString *out, const struct policy *p, int layer, const char *section, bool origins)
{
	bool begun = false;

	for (unsigned i = 0; i < p->settings->len; i++) {
		const struct policy_setting *s = &g_array_index(p->settings, struct policy_setting, i);

		if ((int)s->layer != layer || strcmp(s->section, section) != 0)
			continue;
		if (!begun)
			g_string_append_printf(out, "\n[%s %s]\n", section, policy_layer_name((enum policy_layer)layer));
		begun = true;
		if (origins)
			write_origin(out, s->file, s->line, s->profile);
		g_string_append_printf(out, "%s = %s\n", s->key, s->value);
	}
}

static void write_all(GString *out, const struct policy *p, int layer, bool origins)
{
	write_rules(out, p, layer, origins);
	for (unsigned j = 0; j < G_N_ELEMENTS(setting_sections); j++)
		write_settings(out, p, layer, setting_sections[j], origins);
}

static void write_layer(GString *out, const struct policy *p, int layer)
{
	if (!p->layers[layer].profile)
		return;
	g_string_append_printf(out, "\n[profile %s]\nname = %s\n", policy_layer_name((enum policy_layer)layer),
			       p->layers[layer].profile);
	if (layer == POLICY_USER && p->description)
		g_string_append_printf(out, "description = %s\n", p->description);
	write_all(out, p, layer, true);
}

char *policy_layer_text(const struct policy *p, enum policy_layer layer)
{
	GString *out = g_string_new(NULL);

	write_all(out, p, (int)layer, false);
	return g_string_free(out, FALSE);
}

char *policy_to_ini_renewed(const struct policy *p, const struct policy *others)
{
	GString *out = g_string_new(MARK "\n");

	g_string_append(out,
			"; The last matching rule of each layer gives its verdict; the most closed verdict of the layers holds.\n");
	for (int i = 0; i < POLICY_LAYERS; i++)
		write_layer(out, i == POLICY_USER ? p : others, i);
	g_string_append(out, "\n" END "\n");
	return g_string_free(out, FALSE);
}

char *policy_to_ini(const struct policy *p)
{
	return policy_to_ini_renewed(p, p);
}

/* Reading */

struct reader {
	struct policy *policy;
	const char *origin;
	bool nocase[POLICY_LAYERS];
};

G_GNUC_PRINTF(4, 5)
static bool fail(GError **error, const struct reader *r, unsigned line, const char *format, ...)
{
	g_autofree char *message = NULL;
	va_list args;

	va_start(args, format);
	message = g_strdup_vprintf(format, args);
	va_end(args);
	g_set_error(error, POLICY_ERROR, POLICY_ERROR_INVALID, "%s:%u: %s in a merged policy", r->origin, line, message);
	return false;
}

/* "FILE:LINE PROFILE". Without a note the line is its own origin. */
static bool read_origin(struct reader *r, const struct policy_file_item *item, const char *default_profile, const char **ret_file,
			unsigned *ret_line, const char **ret_profile, GError **error)
{
	g_autofree char *note = g_strdup(item->note), *file = NULL;
	char *space, *colon;
	guint64 line = 0;

	*ret_file = policy_intern(r->policy, r->origin);
	*ret_line = item->line;
	*ret_profile = default_profile;
	if (!note)
		return true;
	space = strrchr(note, ' ');
	if (space)
		*space = '\0';
	colon = strrchr(note, ':');
	if (!space || !colon || !g_ascii_string_to_unsigned(colon + 1, 10, 0, G_MAXUINT, &line, NULL))
		return fail(error, r, item->line - 1, "bad origin \"%s\"", item->note);
	*colon = '\0';
	file = g_strcompress(note);
	*ret_file = policy_intern(r->policy, file);
	*ret_line = (unsigned)line;
	*ret_profile = policy_intern(r->policy, space + 1);
	return true;
}

static bool read_profile_key(struct reader *r, int layer, const struct policy_file_item *item, GError **error)
{
	struct policy *p = r->policy;

	if (strcmp(item->key, "name") == 0 && *item->value && !p->layers[layer].profile)
		p->layers[layer].profile = policy_intern(p, item->value);
	else if (strcmp(item->key, "description") == 0 && layer == POLICY_USER)
		p->description = policy_intern(p, item->value);
	else
		return fail(error, r, item->line, "unknown or repeated key \"%s\"", item->key);
	return true;
}

static bool read_rule(struct reader *r, int layer, const struct policy_file_item *item, GError **error)
{
	struct rule rule = { 0 };
	bool ok;

	if (strcmp(item->key, "nocase") == 0) {
		r->nocase[layer] = strcmp(item->value, "yes") == 0;
		return r->nocase[layer] || strcmp(item->value, "no") == 0 ? true : fail(error, r, item->line, "bad \"nocase\"");
	}
	if (!action_from_name(item->key, &rule.action))
		return fail(error, r, item->line, "unknown action \"%s\"", item->key);
	if (!read_origin(r, item, r->policy->layers[layer].profile, &rule.file, &rule.line, &rule.profile, error))
		return false;
	rule.pattern = pattern_new(item->value, r->nocase[layer], error);
	if (!rule.pattern) {
		g_prefix_error(error, "%s:%u: ", r->origin, item->line);
		return false;
	}
	ok = policy_add_rule(r->policy, (enum policy_layer)layer, &rule, error);
	pattern_unref(rule.pattern);
	return ok;
}

static bool read_setting(struct reader *r, int layer, const char *kind, const struct policy_file_item *item, GError **error)
{
	struct policy_setting s = { .layer = (enum policy_layer)layer, .key = item->key, .value = item->value };

	s.section = profile_setting_known(kind, item->key);
	if (!s.section)
		return fail(error, r, item->line, "unknown section or key \"%s\"", item->key);
	if (!read_origin(r, item, r->policy->layers[layer].profile, &s.file, &s.line, &s.profile, error))
		return false;
	policy_add_setting(r->policy, &s);
	return true;
}

static bool read_item(const struct policy_file_item *item, void *user, GError **error)
{
	struct reader *r = user;
	g_autofree char *kind = g_strdup(item->section);
	char *name = strchr(kind, ' ');
	int layer = 0;

	if (name)
		*name++ = '\0';
	while (name && layer < POLICY_LAYERS && strcmp(name, policy_layer_name((enum policy_layer)layer)) != 0)
		layer++;
	if (!name || layer == POLICY_LAYERS)
		return fail(error, r, item->line, "unknown section [%s]", item->section);
	if (strcmp(kind, "profile") == 0)
		return item->key ? read_profile_key(r, layer, item, error) : true;
	if (!r->policy->layers[layer].profile)
		return fail(error, r, item->line, "[%s] without a name for its layer above it", item->section);
	if (strcmp(kind, "files") == 0)
		return item->key ? read_rule(r, layer, item, error) : true;
	if (item->key)
		return read_setting(r, layer, kind, item, error);
	for (unsigned i = 0; i < G_N_ELEMENTS(setting_sections); i++) {
		if (strcmp(kind, setting_sections[i]) == 0)
			return true;
	}
	return fail(error, r, item->line, "unknown section [%s]", item->section);
}

bool policy_text_is_merged(const char *text)
{
	return g_str_has_prefix(text, MARK "\n");
}

struct policy *policy_text_load(const char *text, const char *origin, GError **error)
{
	struct reader r = { .policy = policy_new(), .origin = origin };
	bool ok = policy_file_parse(text, strlen(text), origin, read_item, &r, error);

	if (ok && !g_str_has_suffix(text, "\n" END "\n"))
		ok = fail(error, &r, 1, "the end is missing");
	if (ok && !r.policy->layers[POLICY_USER].profile)
		ok = fail(error, &r, 1, "no [profile user]");
	if (!ok) {
		policy_free(r.policy);
		return NULL;
	}
	policy_seal(r.policy);
	return r.policy;
}
