/* SPDX-License-Identifier: MIT */
#include "rules/profile.h"

#include <string.h>

#include "rules/network.h"
#include "rules/policy_error.h"
#include "rules/policy_file.h"
#include "rules/setting.h"

#define PROFILES_MAX 1000

/*
 * Of the sections whose values others interpret: what may stand in them, and whether more than once. [network]:
 * rules/network.h; [limits]: tools/run/limit.h; [run]: tools/run/places.h, environment.h; [gate]: gate/gate_config.h.
 */
static const struct {
	const char *section;
	const char *key;
	bool list;
} known_settings[] = {
	{ "network", "default", false },
	{ "network", "allow", true },
	{ "network", "deny", true },
	{ "network", "ask", true },
	{ "limits", "memory", false },
	{ "limits", "processes", false },
	{ "limits", "disk", false },
	{ "limits", "time", false },
	{ "limits", "cpu", false },
	{ "limits", "files", false },
	{ "limits", "output", false },
	{ "limits", "deletions", false },
	{ "limits", "deletions_per_minute", false },
	{ "ask", "timeout", false },
	{ "ask", "on_ask", false },
	{ "run", "home.read", true },
	{ "run", "home.write", true },
	{ "run", "environment", true },
	{ "gate", "checks", false },
	{ "gate", "allow", true },
	{ "gate", "review", true },
	{ "gate", "test", false },
	{ "gate", "test_time", false },
	{ "gate", "max_files", false },
	{ "gate", "max_lines", false },
	{ "gate", "max_deleted", false },
	{ "gate", "max_size", false },
	{ "gate", "max_share", false },
	{ "gate", "secret_paths", true },
	{ "gate", "secret_words", true },
	{ "gate", "baseline", false },
};

/* A line of [files], kept until the whole file is read: "nocase" may stand below it. */
struct files_line {
	struct profile *profile;
	enum action action;
	char *value;
	unsigned line;
};

struct parser {
	struct profile_file *file;
	GArray *files_lines;
	GHashTable *seen; /* "section key" of what may be there once, and sections -> line */
	GHashTable *used; /* profile name -> line of the first section that speaks of it */
};

G_GNUC_PRINTF(4, 5)
static bool fail(GError **error, const struct profile_file *f, unsigned line, const char *format, ...)
{
	g_autofree char *message = NULL;
	va_list args;

	va_start(args, format);
	message = g_strdup_vprintf(format, args);
	va_end(args);
	g_set_error(error, POLICY_ERROR, POLICY_ERROR_INVALID, "%s:%u: %s", f->path, line, message);
	return false;
}

/* Life */

static void setting_clear(void *data)
{
	struct profile_setting *s = data;

	g_free(s->key);
	g_free(s->value);
}

static void rule_clear(void *data)
{
	pattern_unref(((struct rule *)data)->pattern);
}

static void files_line_clear(void *data)
{
	g_free(((struct files_line *)data)->value);
}

static struct profile *profile_new(const struct profile_file *f, const char *name, unsigned line)
{
	struct profile *p = g_new0(struct profile, 1);

	p->file = f;
	p->name = g_strdup(name);
	p->line = line;
	p->rules = g_array_new(FALSE, FALSE, sizeof(struct rule));
	g_array_set_clear_func(p->rules, rule_clear);
	p->settings = g_array_new(FALSE, FALSE, sizeof(struct profile_setting));
	g_array_set_clear_func(p->settings, setting_clear);
	return p;
}

static void profile_free(void *data)
{
	struct profile *p = data;

	g_array_unref(p->rules);
	g_array_unref(p->settings);
	g_strfreev(p->extends);
	g_free(p->description);
	g_free(p->name);
	g_free(p);
}

void profile_file_free(void *file)
{
	struct profile_file *f = file;

	if (!f)
		return;
	g_ptr_array_unref(f->profiles);
	g_free(f->path);
	g_free(f);
}

/* Finding */

struct profile *profile_file_find(const struct profile_file *f, const char *name)
{
	for (unsigned i = 0; i < f->profiles->len; i++) {
		struct profile *p = f->profiles->pdata[i];

		if (strcmp(p->name, name) == 0)
			return p;
	}
	return NULL;
}

bool profile_extends(const struct profile *p, const char *name)
{
	return p->extends && g_strv_contains((const char *const *)p->extends, name);
}

struct profile *profile_file_leaf(const struct profile_file *f)
{
	for (unsigned i = f->profiles->len; i-- > 0;) {
		struct profile *p = f->profiles->pdata[i];
		bool extended = false;

		for (unsigned j = 0; j < f->profiles->len; j++)
			extended = extended || (j != i && profile_extends(f->profiles->pdata[j], p->name));
		if (!extended)
			return p;
	}
	return f->profiles->pdata[f->profiles->len - 1];
}

const char *profile_setting_known(const char *section, const char *key)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(known_settings); i++) {
		if (strcmp(known_settings[i].section, section) == 0 && strcmp(known_settings[i].key, key) == 0)
			return known_settings[i].section;
	}
	return NULL;
}

static bool setting_is_list(const char *section, const char *key)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(known_settings); i++) {
		if (strcmp(known_settings[i].section, section) == 0 && strcmp(known_settings[i].key, key) == 0)
			return known_settings[i].list;
	}
	return false;
}

/* Sections and keys */

static bool is_name(const char *s)
{
	if (!g_ascii_isalnum(*s))
		return false;
	return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(s);
}

/* False when it was there before. */
static bool first_time(struct parser *x, const char *section, const char *key, unsigned line, unsigned *ret_before)
{
	g_autofree char *id = g_strdup_printf("%s\n%s", section, key);

	*ret_before = GPOINTER_TO_UINT(g_hash_table_lookup(x->seen, id));
	if (*ret_before)
		return false;
	g_hash_table_insert(x->seen, g_steal_pointer(&id), GUINT_TO_POINTER(line));
	return true;
}

/* "kind name" in two. */
static bool split_section(struct parser *x, const struct policy_file_item *item, char **ret_kind, const char **ret_name,
			  GError **error)
{
	static const char *const kinds[] = { "profile", "files", "network", "limits", "ask", "run", "gate", NULL };
	g_autofree char *kind = g_strdup(item->section);
	char *name = strpbrk(kind, " \t");

	if (name) {
		*name++ = '\0';
		name = g_strchug(name);
	}
	if (!g_strv_contains(kinds, kind))
		return fail(error, x->file, item->line,
			    "unknown section [%s]; known are [profile NAME], [files NAME], [network NAME], "
			    "[limits NAME], [ask NAME], [run NAME] and [gate NAME]",
			    item->section);
	if (!name || !is_name(name))
		return fail(error, x->file, item->line,
			    "[%s] needs a profile's name made of letters, digits, \".\", \"_\" and \"-\"", item->section);
	*ret_name = item->section + (name - kind);
	*ret_kind = g_steal_pointer(&kind);
	return true;
}

static bool begin_section(struct parser *x, const struct policy_file_item *item, GError **error)
{
	g_autofree char *kind = NULL;
	const char *name;
	unsigned before;

	if (!split_section(x, item, &kind, &name, error))
		return false;
	if (!first_time(x, kind, name, item->line, &before))
		return fail(error, x->file, item->line, "a second [%s %s], the first is in line %u; %s", kind, name, before,
			    strcmp(kind, "profile") == 0 ? "rename one of the two profiles" : "put their lines together");
	if (x->file->profiles->len >= PROFILES_MAX)
		return fail(error, x->file, item->line, "more than %d profiles in one file; split it", PROFILES_MAX);
	if (strcmp(kind, "profile") == 0)
		g_ptr_array_add(x->file->profiles, profile_new(x->file, name, item->line));
	if (!g_hash_table_contains(x->used, name))
		g_hash_table_insert(x->used, g_strdup(name), GUINT_TO_POINTER(item->line));
	return true;
}

static bool parse_bool(struct parser *x, const struct policy_file_item *item, bool *ret, GError **error)
{
	if (strcmp(item->value, "yes") == 0)
		*ret = true;
	else if (strcmp(item->value, "no") == 0)
		*ret = false;
	else
		return fail(error, x->file, item->line, "%s = \"%s\" must be yes or no", item->key, item->value);
	return true;
}

static bool parse_extends(struct parser *x, struct profile *p, const struct policy_file_item *item, GError **error)
{
	g_auto(GStrv) names = g_strsplit(*item->value ? item->value : ",", ",", -1);

	for (unsigned i = 0; names[i]; i++) {
		if (!is_name(g_strstrip(names[i])))
			return fail(error, x->file, item->line,
				    "extends = \"%s\" must be a profile's name, or a list of them with commas", item->value);
	}
	p->extends = g_steal_pointer(&names);
	p->extends_line = item->line;
	return true;
}

static bool profile_key(struct parser *x, struct profile *p, const struct policy_file_item *item, GError **error)
{
	if (strcmp(item->key, "description") == 0) {
		p->description = g_strdup(item->value);
		return true;
	}
	if (strcmp(item->key, "extends") == 0)
		return parse_extends(x, p, item, error);
	if (strcmp(item->key, "nocase") == 0)
		return parse_bool(x, item, &p->nocase, error);
	return fail(error, x->file, item->line, "unknown key \"%s\" in [%s]; known are description, extends and nocase", item->key,
		    item->section);
}

static bool files_key(struct parser *x, struct profile *p, const struct policy_file_item *item, GError **error)
{
	struct files_line l = { .profile = p, .line = item->line };

	if (!action_from_name(item->key, &l.action))
		return fail(error, x->file, item->line,
			    "unknown action \"%s\" in [%s]; known are write, scratch, ask-change, read, ask, mask, deny "
			    "and hide",
			    item->key, item->section);
	l.value = g_strdup(item->value);
	g_array_append_val(x->files_lines, l);
	return true;
}

/* Of settings that a mount depends on: what can't be understood is an error before there is one. */
static bool check_value(struct parser *x, const char *section, const struct policy_file_item *item, GError **error)
{
	g_autoptr(GError) e = NULL;
	uint64_t n;

	if (strcmp(section, "ask") == 0 && strcmp(item->key, "timeout") == 0 && !setting_seconds(item->value, &n))
		return fail(error, x->file, item->line, "timeout = \"%s\" must be a time such as 90, 5m or 1h", item->value);
	if (strcmp(section, "ask") == 0 && strcmp(item->key, "on_ask") == 0 && !g_shell_parse_argv(item->value, NULL, NULL, &e))
		return fail(error, x->file, item->line, "on_ask = \"%s\" is no command: %s", item->value, e->message);
	if (g_str_has_prefix(item->key, "deletions") && !setting_count(item->value, &n))
		return fail(error, x->file, item->line, "%s = \"%s\" must be a number from 1 on", item->key, item->value);
	return true;
}

static bool setting_key(struct parser *x, struct profile *p, const char *kind, const struct policy_file_item *item, GError **error)
{
	struct profile_setting s = { .section = profile_setting_known(kind, item->key), .line = item->line };

	if (!s.section)
		return fail(error, x->file, item->line, "unknown key \"%s\" in [%s]", item->key, item->section);
	if (!*item->value)
		return fail(error, x->file, item->line, "\"%s\" in [%s] has no value", item->key, item->section);
	if (strcmp(kind, "network") == 0 && strcmp(item->key, "default") == 0 && strcmp(item->value, "allow") != 0 &&
	    strcmp(item->value, "deny") != 0 && strcmp(item->value, "ask") != 0)
		return fail(error, x->file, item->line, "default = \"%s\" must be allow, deny or ask", item->value);
	if (!check_value(x, s.section, item, error))
		return false;
	if (strcmp(kind, "network") == 0 && strcmp(item->key, "default") != 0 && !network_check_entries(item->value, error)) {
		g_prefix_error(error, "%s:%u: ", x->file->path, item->line);
		return false;
	}
	s.key = g_strdup(item->key);
	s.value = g_strdup(item->value);
	g_array_append_val(p->settings, s);
	return true;
}

static bool take_item(const struct policy_file_item *item, void *user, GError **error)
{
	struct parser *x = user;
	g_autofree char *kind = NULL;
	struct profile *p;
	const char *name;
	unsigned before;

	if (!item->key)
		return begin_section(x, item, error);
	if (!*item->section)
		return fail(error, x->file, item->line, "\"%s\" stands in front of the first section", item->key);
	if (!split_section(x, item, &kind, &name, error))
		return false;
	p = profile_file_find(x->file, name);
	if (!p)
		return fail(error, x->file, item->line, "[%s] has no [profile %s] above it", item->section, name);
	if (strcmp(kind, "files") == 0)
		return files_key(x, p, item, error);
	if (!setting_is_list(kind, item->key) && !first_time(x, item->section, item->key, item->line, &before))
		return fail(error, x->file, item->line, "a second \"%s\" in [%s], the first is in line %u", item->key,
			    item->section, before);
	if (strcmp(kind, "profile") == 0)
		return profile_key(x, p, item, error);
	return setting_key(x, p, kind, item, error);
}

/* Rules */

static bool add_rule(const struct profile_file *f, const struct files_line *l, const char *text, GError **error)
{
	struct rule r = { .action = l->action, .line = l->line, .file = f->path, .profile = l->profile->name };

	r.pattern = pattern_new(text, l->profile->nocase, error);
	if (!r.pattern) {
		g_prefix_error(error, "%s:%u: ", f->path, l->line);
		return false;
	}
	g_array_append_val(l->profile->rules, r);
	return true;
}

/* The end of the list element at @p: a comma that is not quoted, or the end. */
static char *element_end(char *p)
{
	while (*p && *p != ',')
		p += p[0] == '\\' && p[1] ? 2 : 1;
	return p;
}

static bool add_rules(const struct profile_file *f, struct files_line *l, GError **error)
{
	bool last = false;

	if (g_str_has_prefix(l->value, "re:"))
		return add_rule(f, l, l->value, error);
	for (char *p = l->value, *end; !last; p = end + 1) {
		end = element_end(p);
		last = !*end;
		*end = '\0';
		g_strstrip(p);
		if (g_str_has_prefix(p, "re:"))
			return fail(error, f, l->line,
				    "\"%s\" in a list; a regular expression needs a line of its own, and a name that begins "
				    "with re: is written \\re:", p);
		if (!add_rule(f, l, p, error))
			return false;
	}
	return true;
}

static bool finish(struct parser *x, GError **error)
{
	GHashTableIter iter;
	void *name, *line;

	g_hash_table_iter_init(&iter, x->used);
	while (g_hash_table_iter_next(&iter, &name, &line)) {
		if (!profile_file_find(x->file, name))
			return fail(error, x->file, GPOINTER_TO_UINT(line),
				    "this section speaks of \"%s\", but there is no [profile %s] in the "
				    "file",
				    (char *)name, (char *)name);
	}
	if (x->file->profiles->len == 0) {
		g_set_error(error, POLICY_ERROR, POLICY_ERROR_INVALID, "%s: no profile in this file; begin one with [profile NAME]",
			    x->file->path);
		return false;
	}
	for (unsigned i = 0; i < x->files_lines->len; i++) {
		if (!add_rules(x->file, &g_array_index(x->files_lines, struct files_line, i), error))
			return false;
	}
	return true;
}

struct profile_file *profile_file_parse(const char *text, size_t len, const char *path, GError **error)
{
	struct profile_file *f = g_new0(struct profile_file, 1);
	struct parser x = {
		.file = f,
		.files_lines = g_array_new(FALSE, FALSE, sizeof(struct files_line)),
		.seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
		.used = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
	};

	f->path = g_strdup(path);
	f->profiles = g_ptr_array_new_with_free_func(profile_free);
	g_array_set_clear_func(x.files_lines, files_line_clear);
	if (!policy_file_parse(text, len, path, take_item, &x, error) || !finish(&x, error))
		g_clear_pointer(&f, profile_file_free);
	g_array_unref(x.files_lines);
	g_hash_table_unref(x.seen);
	g_hash_table_unref(x.used);
	return f;
}
