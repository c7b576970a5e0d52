/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/diff.h"
#include "tools/attach.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/sandbox.h"

/* -1 when it cannot be told: a list must not fail because one workspace is gone. */
static int64_t count_changes(const struct sandbox *s)
{
	g_autoptr(attached_t) a = attached_open(s->name, ATTACH_READ, NULL);
	uint64_t changes;

	return a && attached_count_changes(a, &changes, NULL) ? (int64_t)changes : -1;
}

static void print_row(const struct sandbox *s, int width)
{
	int64_t changes = count_changes(s);
	g_autofree char *count = changes < 0 ? g_strdup("?") : g_strdup_printf("%" PRId64, changes);
	g_autofree char *workspace = s->workspace ? diff_quote_path(s->workspace) : g_strdup("?");
	g_autofree char *mountpoint = s->mounted ? diff_quote_path(s->mountpoint) : g_strdup("-");

	printf("%-*s  %-9s  %7s  %s  %s\n", width, s->name, sandbox_state(s), count, workspace, mountpoint);
	if (s->problem)
		output_note("%s", s->problem);
}

static void print_table(GPtrArray *all)
{
	int width = strlen("NAME");

	for (unsigned i = 0; i < all->len; i++)
		width = MAX(width, (int)strlen(((struct sandbox *)all->pdata[i])->name));
	if (all->len == 0)
		output_note("there are no sandboxes yet; `sbxfs mount WORKSPACE` makes one");
	else
		printf("%-*s  %-9s  %7s  %s  %s\n", width, "NAME", "STATE", "CHANGES", "WORKSPACE", "MOUNTPOINT");
	for (unsigned i = 0; i < all->len; i++)
		print_row(all->pdata[i], width);
}

static GVariant *json_row(const struct sandbox *s)
{
	GVariantBuilder b;
	int64_t changes = count_changes(s);

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "sandbox", s->name);
	json_add_path(&b, "workspace", s->workspace);
	json_add_path(&b, "mountpoint", s->mounted ? s->mountpoint : NULL);
	json_add_path(&b, "store", s->dir);
	json_add_string(&b, "state", sandbox_state(s));
	json_add(&b, "changes",
		 g_variant_new_maybe(G_VARIANT_TYPE_INT64, changes < 0 ? NULL : g_variant_new_int64(changes)));
	if (s->problem)
		json_add_string(&b, "problem", s->problem);
	return g_variant_builder_end(&b);
}

static void print_json(GPtrArray *all)
{
	GVariantBuilder rows;
	GVariantBuilder b;

	g_variant_builder_init(&rows, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < all->len; i++)
		g_variant_builder_add_value(&rows, json_row(all->pdata[i]));
	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.list/1");
	json_add(&b, "sandboxes", g_variant_builder_end(&rows));
	json_print(stdout, g_variant_builder_end(&b));
}

int cmd_list(struct invocation *inv, GError **error)
{
	const struct command_syntax syntax = {
		.arguments = "",
		.description =
			"Lists the sandboxes of this user: state, number of changed paths, workspace and mountpoint.",
		.json = true,
	};
	g_autoptr(GPtrArray) all = NULL;

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	all = sandbox_list(error);
	if (!all)
		return EXIT_INTERNAL;
	if (inv->json)
		print_json(all);
	else
		print_table(all);
	return EXIT_DONE;
}
