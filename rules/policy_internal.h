/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * policy_internal - how a policy is put together; for policy.c, policy_load.c and policy_text.c only
 */

#include "rules/policy.h"
#include "rules/rule_list.h"

struct policy_layer_rules {
	const char *profile; /* NULL: nobody speaks for this layer */
	struct rule_list *rules;
};

struct policy {
	GStringChunk *strings; /* every borrowed string below, each once */
	const char *description;
	struct policy_layer_rules layers[POLICY_LAYERS];
	GArray *settings; /* struct policy_setting */
};

struct policy *policy_new(void);
const char *policy_intern(struct policy *p, const char *s);

/* Appends to a layer; strings are interned, the pattern is referenced. An error when there are too many rules. */
bool policy_add_rule(struct policy *p, enum policy_layer layer, const struct rule *rule, GError **error);
void policy_add_setting(struct policy *p, const struct policy_setting *setting);

/* After the last rule. */
void policy_seal(struct policy *p);

/* Takes the merged text that policy_to_ini() writes. */
bool policy_text_is_merged(const char *text);
struct policy *policy_text_load(const char *text, const char *origin, GError **error);
