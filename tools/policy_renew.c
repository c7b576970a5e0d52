/* SPDX-License-Identifier: MIT */
#include "tools/policy_renew.h"

#include <string.h>

#include "rules/policy.h"
#include "tools/policy_store.h"
#include "tools/terminal_text.h"

#define TOLD_MAX 20

/* A policy whose managed and workspace layers are those of now; its user layer says nothing. */
static struct policy *find_others(const char *workspace, GError **error)
{
	struct policy_sources sources;
	struct policy *p;

	policy_places_init(&sources, NULL, workspace);
	g_clear_pointer(&sources.config, g_free);
	g_clear_pointer(&sources.user_dir, g_free);
	p = policy_load(&sources, error);
	policy_sources_clear(&sources);
	return p;
}

struct policy *policy_renew(const struct policy *kept, const char *workspace, GError **error)
{
	struct policy *others = find_others(workspace, error);
	g_autofree char *text = NULL;

	if (!others)
		return NULL;
	text = policy_to_ini_renewed(kept, others);
	policy_free(others);
	return policy_load_text(text, "policy.ini", error);
}

/* Telling */

/* Each rule and setting of a layer as a line of its own: "[files] deny = x". */
static char **lines_of(const struct policy *p, enum policy_layer layer)
{
	g_autofree char *text = policy_layer_text(p, layer);
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	GPtrArray *told = g_ptr_array_new();
	const char *section = "";

	for (char **line = lines; *line; line++) {
		if (**line == '[') {
			section = *line + 1;
			(*line)[strcspn(*line, " ")] = '\0';
		} else if (**line) {
			g_ptr_array_add(told, g_strdup_printf("[%s] %s", section, *line));
		}
	}
	g_ptr_array_add(told, NULL);
	return (char **)g_ptr_array_free(told, FALSE);
}

/* How often each is there. */
static GHashTable *count_lines(char **lines)
{
	GHashTable *counts = g_hash_table_new(g_str_hash, g_str_equal);

	for (char **line = lines; *line; line++)
		g_hash_table_insert(counts, *line, GINT_TO_POINTER(GPOINTER_TO_INT(g_hash_table_lookup(counts, *line)) + 1));
	return counts;
}

/* Those of @lines that @others has not, each as often as it is missing there. */
static void add_missing(GPtrArray *changes, char sign, char **lines, char **others)
{
	g_autoptr(GHashTable) counts = count_lines(others);

	for (char **line = lines; *line; line++) {
		int left = GPOINTER_TO_INT(g_hash_table_lookup(counts, *line));

		if (left == 0)
			g_ptr_array_add(changes, g_strdup_printf("%c %s", sign, *line));
		else
			g_hash_table_insert(counts, *line, GINT_TO_POINTER(left - 1));
	}
}

/* Lines with a sign before them: "+ [files] deny = x". */
static GPtrArray *changes_of(const struct policy *kept, const struct policy *now, enum policy_layer layer)
{
	GPtrArray *changes = g_ptr_array_new_with_free_func(g_free);
	g_auto(GStrv) before = lines_of(kept, layer), after = lines_of(now, layer);

	if (g_strv_equal((const char *const *)before, (const char *const *)after))
		return changes;
	add_missing(changes, '-', before, after);
	add_missing(changes, '+', after, before);
	if (changes->len == 0)
		g_ptr_array_add(changes, g_strdup("the same rules in another order"));
	return changes;
}

static const char *source_of(enum policy_layer layer)
{
	return layer == POLICY_MANAGED ? "the managed profile" : "the workspace's " POLICY_WORKSPACE_FILE;
}

static void add_notes(GPtrArray *notes, const struct policy *kept, const struct policy *now, enum policy_layer layer)
{
	g_autoptr(GPtrArray) changes = changes_of(kept, now, layer);

	if (changes->len == 0)
		return;
	g_ptr_array_add(notes, g_strdup_printf("note: %s is another one than at the mount before, and holds from now on:", source_of(layer)));
	for (guint i = 0; i < MIN(changes->len, TOLD_MAX); i++) {
		g_autofree char *line = terminal_text(changes->pdata[i], strlen(changes->pdata[i]), 0);

		g_ptr_array_add(notes, g_strdup_printf("  %s", line));
	}
	if (changes->len > TOLD_MAX)
		g_ptr_array_add(notes, g_strdup_printf("  and %u more; the policy in force is policy.ini in the store", changes->len - TOLD_MAX));
}

GPtrArray *policy_renew_notes(const struct policy *kept, const struct policy *now)
{
	GPtrArray *notes = g_ptr_array_new_with_free_func(g_free);

	add_notes(notes, kept, now, POLICY_MANAGED);
	add_notes(notes, kept, now, POLICY_WORKSPACE);
	return notes;
}
