/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * rule_list - the rules of one trust layer in order, of which the last that matches decides
 *
 * Life: new, add rules in order, seal, then any number of rule_list_last_match() from any threads (nothing changes any more), free.
 *
 * Nearly every rule needs some literal text in the path. From each such text one short gram goes into a hash table, so looking up a
 * path costs one pass over its bytes and a try of the few rules whose text is there, whatever the number of rules. Rules without
 * such a text are tried one by one.
 */

#include <glib.h>
#include <stdbool.h>

#include "rules/action.h"
#include "rules/pattern.h"

#define RULE_LIST_MAX 32767 /* an index fits in int16_t */

struct rule {
	enum action action;
	unsigned line;        /* where it stands */
	const char *file;     /* borrowed: lives longer than the list */
	const char *profile;  /* the same */
	struct pattern *pattern;
};

struct rule_list;

struct rule_list *rule_list_new(void);
void rule_list_free(struct rule_list *l);

/* rule_list_add() - appends; takes @rule's reference to its pattern, also when it returns false: there are RULE_LIST_MAX already. */
bool rule_list_add(struct rule_list *l, struct rule rule);
void rule_list_seal(struct rule_list *l);

int rule_list_count(const struct rule_list *l);
const struct rule *rule_list_get(const struct rule_list *l, int i);

/*
 * rule_list_last_match() - the index of the last rule behind @floor that matches @s, or @floor
 *
 * @fallback is the verdict where not even @floor (then -1) is a rule. A rule whose pattern cannot tell (PATTERN_UNSURE) counts as a
 * match when its action is more closed than what is decided without it, else not.
 */
int rule_list_last_match(const struct rule_list *l, int floor, enum action fallback, struct pattern_subject *s);

/* rule_list_last_match_slowly() - the same answer without the index: what the other is tested against. */
int rule_list_last_match_slowly(const struct rule_list *l, int floor, enum action fallback, struct pattern_subject *s);

/* rule_list_open_below() - what the rules behind @floor that are more open than @action can match below the directory @path */
enum pattern_below rule_list_open_below(const struct rule_list *l, int floor, enum action action, const char *path, size_t len);
/* rule_list_names_below() - does a rule behind @floor that is at least as closed as @action name @path on its way to something below? */
bool rule_list_names_below(const struct rule_list *l, int floor, enum action action, const char *path, size_t len);
