/* SPDX-License-Identifier: MIT */
#include "tools/command_text.h"

#include <inttypes.h>
#include <json-glib/json-glib.h>
#include <stdint.h>
#include <string.h>

#include "snapshot/audit_record.h"
#include "snapshot/diff.h"

static const char *text_of(JsonObject *o, const char *key)
{
	return json_object_get_string_member_with_default(o, key, "");
}

static int64_t number_of(JsonObject *o, const char *key)
{
	return json_object_get_int_member_with_default(o, key, 0);
}

/* What a terminal should not get is written as git writes it, the rest as a shell takes it. */
static void add_word(GString *s, const char *word)
{
	g_autofree char *shown = *word ? diff_quote_path(word) : NULL;
	g_autofree char *quoted = g_shell_quote(word);
	bool special = shown && !g_str_equal(shown, word);

	if (s->len)
		g_string_append_c(s, ' ');
	if (special)
		g_string_append(s, shown);
	else
		g_string_append(s, *word && !strpbrk(word, " \t'\"\\$`&|;<>()*?[]{}~#!") ? word : quoted);
}

static char *command_line(JsonObject *o)
{
	JsonArray *argv = json_object_has_member(o, "argv") ? json_object_get_array_member(o, "argv") : NULL;
	GString *s = g_string_new(NULL);

	for (guint i = 0; argv && i < json_array_get_length(argv); i++)
		add_word(s, json_array_get_string_element(argv, i));
	if (!s->len)
		add_word(s, text_of(o, "path"));
	if (json_object_has_member(o, "argv_cut"))
		g_string_append(s, " ...");
	return g_string_free(s, FALSE);
}

static char *ending(JsonObject *o)
{
	double seconds = (double)number_of(o, "duration_ms") / 1000;

	if (json_object_has_member(o, "exit"))
		return g_strdup_printf("exit %" PRId64 " after %.3f s", number_of(o, "exit"), seconds);
	if (json_object_has_member(o, "signal"))
		return g_strdup_printf("signal %" PRId64 " after %.3f s", number_of(o, "signal"), seconds);
	return g_strdup_printf("ended after %.3f s", seconds);
}

static char *beginning(JsonObject *o)
{
	g_autofree char *path = diff_quote_path(text_of(o, "path"));
	g_autofree char *cwd = diff_quote_path(text_of(o, "cwd"));

	return g_strdup_printf("%s, in %s, by %" PRId64, path, cwd, number_of(o, "parent"));
}

bool command_text(const struct audit_record *r, char **ret_what, char **ret_how)
{
	g_autoptr(JsonNode) node = NULL;
	bool exec = g_strcmp0(r->operation, "exec") == 0;
	JsonObject *o;

	if (r->kind != AUDIT_COMMAND || !r->detail || !(exec || g_strcmp0(r->operation, "exit") == 0))
		return false;
	node = json_from_string(r->detail, NULL);
	if (!node || !JSON_NODE_HOLDS_OBJECT(node))
		return false;
	o = json_node_get_object(node);
	*ret_what = exec ? command_line(o) : diff_quote_path(text_of(o, "path"));
	*ret_how = exec ? beginning(o) : ending(o);
	return true;
}
