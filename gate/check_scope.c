/* SPDX-License-Identifier: MIT */

/* check_scope - where a change may be: "allow" and "review" of the policy */

#include <string.h>

#include "gate/check.h"
#include "rules/pattern.h"

/* What the engine can't decide is not allowed, and wants a review. */
static bool is_allowed_by(GPtrArray *patterns, const char *path, bool is_dir)
{
	return gate_patterns_match(patterns, path, is_dir, false);
}

static bool is_allowed(const struct gate *g, const char *path, bool is_dir)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(g->config->allow); i++)
		if (g->config->allow[i] && !is_allowed_by(g->config->allow[i], path, is_dir))
			return false;
	return true;
}

/* A new directory on the way to something that may be allowed ("allow = src/lib/" and src is new) brings nothing by itself. */
static bool is_way(const struct gate *g, const char *path)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(g->config->allow); i++) {
		GPtrArray *patterns = g->config->allow[i];
		bool leads = !patterns || is_allowed_by(patterns, path, true);

		for (guint k = 0; !leads && k < patterns->len; k++)
			leads = pattern_match_below(patterns->pdata[k], path, strlen(path)) != PATTERN_BELOW_NEVER;
		if (!leads)
			return false;
	}
	return true;
}

static void look_at(struct gate *g, const char *path, bool is_dir, bool added)
{
	if (!is_allowed(g, path, is_dir) && !(is_dir && added && is_way(g, path)))
		gate_report(g, GATE_SCOPE, GATE_REFUSE, path, 0, "outside", "changes something outside of the allowed paths");
	else if (gate_patterns_match(g->config->review, path, is_dir, true))
		gate_report(g, GATE_SCOPE, GATE_REVIEW, path, 0, "review", "the policy wants a review of changes here");
}

static int scope_change(struct gate *g, const struct change *c, GError **error)
{
	const struct entry *e = c->after ? c->after : c->before;
	bool is_dir = S_ISDIR(e->attr.mode);

	(void)error;
	look_at(g, c->path, is_dir, c->status == CHANGE_ADDED);
	if (c->from_path)
		look_at(g, c->from_path, is_dir, false);
	return 0;
}

const struct check check_scope = { .name = "scope", .change = scope_change };
