/* SPDX-License-Identifier: MIT */
#include "rules/policy.h"

#include <string.h>

#include "rules/policy_internal.h"

const struct policy_match POLICY_MATCH_NONE = { { -1, -1, -1 } };

G_STATIC_ASSERT(sizeof(struct policy_match) <= 8);

const char *policy_layer_name(enum policy_layer layer)
{
	static const char *const names[POLICY_LAYERS] = { "managed", "user", "workspace" };

	g_return_val_if_fail((unsigned)layer < POLICY_LAYERS, "user");
	return names[layer];
}

/* Making */

struct policy *policy_new(void)
{
	struct policy *p = g_new0(struct policy, 1);

	p->strings = g_string_chunk_new(4096);
	p->settings = g_array_new(FALSE, FALSE, sizeof(struct policy_setting));
	for (int i = 0; i < POLICY_LAYERS; i++)
		p->layers[i].rules = rule_list_new();
	return p;
}

void policy_free(struct policy *p)
{
	if (!p)
		return;
	for (int i = 0; i < POLICY_LAYERS; i++)
		rule_list_free(p->layers[i].rules);
	g_array_unref(p->settings);
	g_string_chunk_free(p->strings);
	g_free(p);
}

const char *policy_intern(struct policy *p, const char *s)
{
	return s ? g_string_chunk_insert_const(p->strings, s) : NULL;
}

bool policy_add_rule(struct policy *p, enum policy_layer layer, const struct rule *rule, GError **error)
{
	struct rule r = *rule;

	r.file = policy_intern(p, rule->file);
	r.profile = policy_intern(p, rule->profile);
	r.pattern = pattern_ref(rule->pattern);
	if (!rule_list_add(p->layers[layer].rules, r)) {
		g_set_error(error, POLICY_ERROR, POLICY_ERROR_INVALID,
			    "%s:%u: more than %d rules in one layer; use patterns that cover more", rule->file, rule->line,
			    RULE_LIST_MAX);
		return false;
	}
	return true;
}

void policy_add_setting(struct policy *p, const struct policy_setting *setting)
{
	struct policy_setting s = *setting;

	s.section = policy_intern(p, s.section);
	s.key = policy_intern(p, s.key);
	s.value = policy_intern(p, s.value);
	s.profile = policy_intern(p, s.profile);
	s.file = policy_intern(p, s.file);
	g_array_append_val(p->settings, s);
}

static int compare_settings(const void *a, const void *b)
{
	const struct policy_setting *x = a, *y = b;

	if (x->layer != y->layer)
		return (int)x->layer - (int)y->layer;
	return strcmp(x->section, y->section);
}

void policy_seal(struct policy *p)
{
	g_array_sort(p->settings, compare_settings); /* documented as stable */
	for (int i = 0; i < POLICY_LAYERS; i++)
		rule_list_seal(p->layers[i].rules);
}

/* Asking */

const char *policy_name(const struct policy *p)
{
	return p->layers[POLICY_USER].profile;
}

const char *policy_description(const struct policy *p)
{
	return p->description;
}

const char *policy_layer_profile(const struct policy *p, enum policy_layer layer)
{
	return p->layers[layer].profile;
}

/* What a layer says where none of its rules matches. The most open action is no opinion. */
static enum action layer_default(int layer)
{
	return layer == POLICY_USER ? POLICY_DEFAULT_ACTION : ACTION_WRITE;
}

static enum action layer_action(const struct policy *p, struct policy_match m, int layer)
{
	int i = m.rule[layer];

	return i >= 0 ? rule_list_get(p->layers[layer].rules, i)->action : layer_default(layer);
}

static struct policy_match match(const struct policy *p, struct policy_match parent, const char *path, size_t len, bool is_dir)
{
	struct policy_match m = parent;
	struct pattern_subject s;

	pattern_subject_init(&s, path, len, is_dir);
	for (int i = 0; i < POLICY_LAYERS; i++) {
		if (p->layers[i].profile)
			m.rule[i] = (int16_t)rule_list_last_match(p->layers[i].rules, parent.rule[i], layer_default(i), &s);
	}
	pattern_subject_clear(&s);
	return m;
}

struct policy_match policy_match_child(const struct policy *p, struct policy_match parent, const char *path, bool is_dir)
{
	return match(p, parent, path, strlen(path), is_dir);
}

struct policy_match policy_match_path(const struct policy *p, const char *path, bool is_dir)
{
	size_t len = strlen(path);
	struct policy_match m = match(p, POLICY_MATCH_NONE, path, 0, len > 0 || is_dir);

	for (size_t i = 1; i <= len; i++) {
		if (i == len || path[i] == '/')
			m = match(p, m, path, i, i < len || is_dir);
	}
	return m;
}

enum action policy_action(const struct policy *p, struct policy_match m)
{
	enum action a = ACTION_WRITE;

	for (int i = 0; i < POLICY_LAYERS; i++)
		a = MAX(a, layer_action(p, m, i));
	return a;
}

enum action policy_action_granted(const struct policy *p, struct policy_match m)
{
	enum action granted = ACTION_WRITE;

	for (int i = 0; i < POLICY_LAYERS; i++) {
		enum action a = layer_action(p, m, i);

		if (a != ACTION_ASK && a != ACTION_ASK_CHANGE)
			granted = MAX(granted, a);
	}
	return granted;
}

/* A path below is more open only if each layer that is as closed as the verdict opens there. */
static enum pattern_below open_below(const struct policy *p, struct policy_match m, const char *path)
{
	enum pattern_below result = PATTERN_BELOW_NAMED;
	enum action a = policy_action(p, m);
	size_t len = strlen(path);

	if (a == ACTION_WRITE)
		return PATTERN_BELOW_NEVER;
	for (int i = 0; i < POLICY_LAYERS; i++) {
		if (layer_action(p, m, i) == a)
			result = MIN(result, rule_list_open_below(p->layers[i].rules, m.rule[i], a, path, len));
	}
	return result;
}

bool policy_has_action(const struct policy *p, enum action a)
{
	for (int layer = 0; layer < POLICY_LAYERS; layer++) {
		const struct rule_list *rules = p->layers[layer].rules;

		for (int i = 0; rules && i < rule_list_count(rules); i++)
			if (rule_list_get(rules, i)->action == a)
				return true;
	}
	return false;
}

bool policy_may_open_below(const struct policy *p, struct policy_match m, const char *path)
{
	return open_below(p, m, path) != PATTERN_BELOW_NEVER;
}

bool policy_names_open_below(const struct policy *p, struct policy_match m, const char *path)
{
	return open_below(p, m, path) == PATTERN_BELOW_NAMED;
}

bool policy_names_closed_below(const struct policy *p, struct policy_match m, const char *path)
{
	enum action closing = MAX(policy_action(p, m) + 1, ACTION_READ);

	for (int i = 0; i < POLICY_LAYERS; i++)
		if (rule_list_names_below(p->layers[i].rules, m.rule[i], closing, path, strlen(path)))
			return true;
	return false;
}

/* Of several layers with the same verdict the first is named, but a rule before the default. */
bool policy_explain(const struct policy *p, struct policy_match m, struct policy_reason *ret_reason)
{
	enum action a = policy_action(p, m);
	const struct rule *r;

	for (int i = 0; i < POLICY_LAYERS; i++) {
		if (m.rule[i] < 0 || layer_action(p, m, i) != a)
			continue;
		r = rule_list_get(p->layers[i].rules, m.rule[i]);
		*ret_reason = (struct policy_reason){
			.action = a,
			.layer = (enum policy_layer)i,
			.pattern = pattern_text(r->pattern),
			.profile = r->profile,
			.file = r->file,
			.line = r->line,
		};
		return true;
	}
	*ret_reason = (struct policy_reason){ .action = a, .layer = POLICY_USER, .profile = policy_name(p) };
	return false;
}

/* Settings */

const struct policy_setting *policy_settings(const struct policy *p, unsigned *ret_count)
{
	*ret_count = p->settings->len;
	return (const struct policy_setting *)(void *)p->settings->data;
}

const struct policy_setting *policy_layer_setting(const struct policy *p, enum policy_layer layer, const char *section, const char *key)
{
	for (unsigned i = p->settings->len; i-- > 0;) {
		const struct policy_setting *s = &g_array_index(p->settings, struct policy_setting, i);

		if (s->layer == layer && strcmp(s->section, section) == 0 && strcmp(s->key, key) == 0)
			return s;
	}
	return NULL;
}

const struct policy_setting *policy_setting(const struct policy *p, const char *section, const char *key)
{
	return policy_layer_setting(p, POLICY_USER, section, key);
}

const struct policy_setting *policy_trusted_setting(const struct policy *p, const char *section, const char *key)
{
	const struct policy_setting *s = policy_layer_setting(p, POLICY_MANAGED, section, key);

	return s ? s : policy_setting(p, section, key);
}
