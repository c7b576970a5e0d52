/* SPDX-License-Identifier: MIT */
#include "tools/change_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "snapshot/diff.h"
#include "tools/output.h"

/* JSON */

GVariant *changes_json(GPtrArray *changes)
{
	GVariantBuilder list;

	g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < changes->len; i++) {
		const struct change *c = changes->pdata[i];
		const char status[] = { (char)c->status, '\0' };

		g_variant_builder_open(&list, G_VARIANT_TYPE_VARDICT);
		json_add_path(&list, "path", *c->path ? c->path : ".");
		json_add_string(&list, "status", status);
		if (c->from_path)
			json_add_path(&list, "from_path", c->from_path);
		if (c->partial)
			json_add_bool(&list, "partial", true);
		g_variant_builder_close(&list);
	}
	return g_variant_builder_end(&list);
}

/* Counting */

static const struct {
	enum change_status status;
	const char *word;
} words[] = {
	{ CHANGE_ADDED, "added" },     { CHANGE_MODIFIED, "modified" }, { CHANGE_DELETED, "deleted" },
	{ CHANGE_RENAMED, "renamed" }, { CHANGE_TYPE, "type" },		{ CHANGE_PERMISSION, "permission" },
	{ CHANGE_XATTR, "xattr" },
};

static unsigned count_status(GPtrArray *changes, enum change_status status)
{
	unsigned n = 0;

	for (unsigned i = 0; i < changes->len; i++)
		n += ((const struct change *)changes->pdata[i])->status == status;
	return n;
}

GVariant *changes_summary_json(GPtrArray *changes)
{
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_int(&b, "paths", changes->len);
	for (unsigned i = 0; i < G_N_ELEMENTS(words); i++)
		json_add_int(&b, words[i].word, count_status(changes, words[i].status));
	return g_variant_builder_end(&b);
}

char *changes_count_text(GPtrArray *changes)
{
	GString *text = g_string_new(NULL);

	for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
		unsigned n = count_status(changes, words[i].status);

		if (n)
			g_string_append_printf(text, "%s%u %s", text->len ? ", " : "", n, words[i].word);
	}
	return g_string_free(text, FALSE);
}

static void change_print(const struct change *c)
{
	g_autofree char *path = diff_quote_path(c->path);
	g_autofree char *from = c->from_path ? diff_quote_path(c->from_path) : NULL;

	printf("  %c %s%s%s%s\n", c->status, from ? from : "", from ? " -> " : "", path, c->partial ? " (in part)" : "");
}

void changes_print(GPtrArray *changes, unsigned limit)
{
	unsigned shown = 0, left_out = 0;

	for (unsigned i = 0; i < changes->len; i++) {
		const struct change *c = changes->pdata[i];
		bool deletes = c->status == CHANGE_DELETED || c->status == CHANGE_TYPE || c->status == CHANGE_RENAMED;

		if (limit && !deletes && shown >= limit) {
			left_out++;
			continue;
		}
		shown += !deletes;
		change_print(c);
	}
	if (left_out)
		printf("  ... and %u more that delete nothing (`sbxfs diff --name-status` lists them)\n", left_out);
}

/* Conflicts */

GVariant *conflicts_json(GPtrArray *conflicts)
{
	GVariantBuilder list;

	g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < conflicts->len; i++) {
		const struct conflict *c = conflicts->pdata[i];

		g_variant_builder_open(&list, G_VARIANT_TYPE_VARDICT);
		json_add_path(&list, "path", c->path);
		json_add_string(&list, "kind", conflict_kind_name(c->kind));
		json_add_string(&list, "base", c->base);
		json_add_string(&list, "workspace", c->workspace);
		json_add_string(&list, "sandbox", c->sandbox);
		g_variant_builder_close(&list);
	}
	return g_variant_new_parsed("{'conflicts': <%@aa{sv}>}", g_variant_builder_end(&list));
}

const char *conflict_sentence(enum conflict_kind kind)
{
	switch (kind) {
	case CONFLICT_CONTENT:
		return "changed in the workspace too";
	case CONFLICT_TYPE:
		return "is another kind of object in the workspace now";
	case CONFLICT_EXISTS:
		return "is new in the view, but the workspace has one too";
	case CONFLICT_MISSING:
		return "was deleted in the workspace";
	case CONFLICT_PARENT:
		return "has no directory to go into in the workspace";
	case CONFLICT_ATTR:
		return "mode, owner or attributes changed in the workspace too";
	}
	return "differs";
}

void conflicts_print(GPtrArray *conflicts)
{
	fflush(stdout);
	for (unsigned i = 0; i < conflicts->len; i++) {
		const struct conflict *c = conflicts->pdata[i];
		g_autofree char *path = diff_quote_path(c->path);

		fprintf(stderr, "conflict: %s: %s (recorded: %s; now: %s; in the view: %s)\n", path,
			conflict_sentence(c->kind), c->base ? c->base : "?", c->workspace ? c->workspace : "?",
			c->sandbox ? c->sandbox : "?");
	}
}
