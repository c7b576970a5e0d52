/* SPDX-License-Identifier: MIT */
#include "tools/asked.h"

#include <inttypes.h>
#include <stdio.h>

#include "fs/control.h"
#include "snapshot/diff.h"

GVariant *asked_list(struct control *c, GError **error)
{
	g_autoptr(GVariant) answer = control_call(c, "questions", NULL, error);
	GVariant *list = answer ? g_variant_lookup_value(answer, "questions", G_VARIANT_TYPE("aa{sv}")) : NULL;

	if (answer && !list)
		g_set_error_literal(error, CONTROL_ERROR, CONTROL_ERROR_FAILED, "the view gave no list of questions");
	return list;
}

/* As a shell or git would quote it: what a program chose as a name must not steer a terminal. */
static char *quoted(GVariant *question, const char *key)
{
	const char *text = NULL;

	return g_variant_lookup(question, key, "&s", &text) ? diff_quote_path(text) : NULL;
}

void asked_print_one(GVariant *question, const char *indent)
{
	g_autofree char *operation = quoted(question, "operation"), *subject = quoted(question, "subject");
	g_autofree char *to = quoted(question, "new_subject"), *program = quoted(question, "program"), *rule = quoted(question, "rule");
	guint32 id = 0, uid = 0, waiting = 0;
	gint64 left = 0;
	gint32 pid = 0;

	g_variant_lookup(question, "id", "u", &id);
	g_variant_lookup(question, "uid", "u", &uid);
	g_variant_lookup(question, "waiting", "u", &waiting);
	g_variant_lookup(question, "pid", "i", &pid);
	g_variant_lookup(question, "seconds_left", "x", &left);
	printf("%s%" PRIu32 "  %s %s%s%s  by %s[%" PRId32 "] uid %" PRIu32 ", %" PRId64 " s left", indent, id, operation, subject,
	       to ? " -> " : "", to ? to : "", program ? program : "", pid, uid, left);
	if (waiting > 1)
		printf(", %" PRIu32 " wait", waiting);
	putchar('\n');
	if (rule)
		printf("%s   %s\n", indent, rule);
}

void asked_print(GVariant *questions, const char *indent)
{
	for (gsize i = 0; i < g_variant_n_children(questions); i++) {
		g_autoptr(GVariant) question = g_variant_get_child_value(questions, i);

		asked_print_one(question, indent);
	}
}
