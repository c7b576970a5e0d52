/* SPDX-License-Identifier: MIT */
#include "tools/change_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "snapshot/diff.h"
#include "tools/output.h"

/* JSON */

static char *hex(const uint8_t sha256[32])
{
	GString *text = g_string_sized_new(64);

	for (int i = 0; i < 32; i++)
		g_string_append_printf(text, "%02x", sha256[i]);
	return g_string_free(text, FALSE);
}

/* @sha256 may be NULL; an object that is not there is null. */
static GVariant *object_json(const struct attr *attr, const uint8_t *sha256)
{
	g_autofree char *mode = g_strdup_printf("%06o", attr->mode);
	g_autofree char *digest = sha256 ? hex(sha256) : NULL;
	GVariantBuilder b;

	if (!attr->mode)
		return g_variant_new_maybe(G_VARIANT_TYPE_VARDICT, NULL);
	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "mode", mode);
	json_add_int(&b, "size", S_ISDIR(attr->mode) ? 0 : (int64_t)attr->size);
	json_add_string(&b, "sha256", digest);
	return g_variant_builder_end(&b);
}

static GVariant *side_json(const struct entry *e, bool has_sha256, const uint8_t *sha256)
{
	const struct attr none = { 0 };

	return object_json(e ? &e->attr : &none, has_sha256 ? sha256 : NULL);
}

static bool add_counts(GVariantBuilder *b, const struct change *c, struct tree *from, struct tree *to, GError **error)
{
	uint64_t added, removed;
	bool binary;

	if (diff_count_lines(c, from, to, &added, &removed, &binary, error) < 0)
		return false;
	json_add_bool(b, "binary", binary);
	json_add(b, "added", g_variant_new_maybe(G_VARIANT_TYPE_INT64, binary ? NULL : g_variant_new_int64((int64_t)added)));
	json_add(b, "removed", g_variant_new_maybe(G_VARIANT_TYPE_INT64, binary ? NULL : g_variant_new_int64((int64_t)removed)));
	return true;
}

GVariant *change_json(const struct change *c, struct tree *from, struct tree *to, GError **error)
{
	const char status[] = { (char)c->status, '\0' };
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_path(&b, "path", c->path);
	json_add_string(&b, "status", status);
	json_add_path(&b, "from_path", c->from_path);
	json_add(&b, "old", side_json(c->before, c->has_sha256_before, c->sha256_before));
	json_add(&b, "new", side_json(c->after, c->has_sha256_after, c->sha256_after));
	if (from && !add_counts(&b, c, from, to, error)) {
		g_variant_builder_clear(&b);
		return NULL;
	}
	return g_variant_builder_end(&b);
}

GVariant *changes_json(GPtrArray *changes, struct tree *from, struct tree *to, GError **error)
{
	GVariantBuilder list;

	g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < changes->len; i++) {
		GVariant *one = change_json(changes->pdata[i], from, to, error);

		if (!one) {
			g_variant_builder_clear(&list);
			return NULL;
		}
		g_variant_builder_add_value(&list, one);
	}
	return g_variant_builder_end(&list);
}

/* Counting */

static const struct {
	enum change_status status;
	const char *word;
} words[] = {
	{ CHANGE_ADDED, "added" },	      { CHANGE_MODIFIED, "modified" }, { CHANGE_DELETED, "deleted" },
	{ CHANGE_RENAMED, "renamed" },	      { CHANGE_TYPE, "type" },	       { CHANGE_PERMISSION, "permission" },
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

	if (from)
		printf("  %c %s -> %s\n", c->status, from, path);
	else
		printf("  %c %s\n", c->status, path);
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

static const struct change *find_change(GPtrArray *changes, const char *path)
{
	for (unsigned i = 0; i < changes->len; i++) {
		const struct change *c = changes->pdata[i];

		if (g_strcmp0(c->path, path) == 0 || g_strcmp0(c->from_path, path) == 0)
			return c;
	}
	return NULL;
}

static GVariant *base_json(const struct change *c, struct store *s)
{
	const struct entry *e = c ? (c->after ? c->after : c->before) : NULL;
	struct origin origin = { 0 };
	int64_t id = e ? (e->covers ? e->covers : e->origin) : 0;
	GVariant *json;

	if (id && store_origin_get(s, id, &origin) < 0)
		origin = (struct origin){ 0 };
	json = object_json(&origin.print.attr, origin.has_sha256 ? origin.sha256 : NULL);
	origin_clear(&origin);
	return json;
}

static GVariant *workspace_json(const char *path, struct lower *l)
{
	struct fingerprint print = { 0 };

	if (lower_stat(l, path, &print) < 0)
		print = (struct fingerprint){ 0 };
	return object_json(&print.attr, NULL);
}

GVariant *conflicts_json(GPtrArray *conflicts, GPtrArray *changes, struct store *s, struct lower *l)
{
	GVariantBuilder list;

	g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < conflicts->len; i++) {
		const struct conflict *conflict = conflicts->pdata[i];
		const struct change *c = find_change(changes, conflict->path);

		g_variant_builder_open(&list, G_VARIANT_TYPE_VARDICT);
		json_add_path(&list, "path", conflict->path);
		json_add_string(&list, "kind", conflict_kind_name(conflict->kind));
		json_add(&list, "base", base_json(c, s));
		json_add(&list, "workspace", workspace_json(conflict->path, l));
		json_add(&list, "sandbox", side_json(c ? c->after : NULL, c && c->has_sha256_after, c ? c->sha256_after : NULL));
		g_variant_builder_close(&list);
	}
	return g_variant_new_parsed("{'conflicts': <%@aa{sv}>}", g_variant_builder_end(&list));
}

static const char *conflict_sentence(enum conflict_kind kind)
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
	}
	return "differs";
}

void conflicts_print(GPtrArray *conflicts)
{
	fflush(stdout);
	for (unsigned i = 0; i < conflicts->len; i++) {
		const struct conflict *c = conflicts->pdata[i];
		g_autofree char *path = diff_quote_path(c->path);

		fprintf(stderr, "conflict: %s: %s\n", path, conflict_sentence(c->kind));
	}
}
