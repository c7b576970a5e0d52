/* SPDX-License-Identifier: MIT */
#include "tools/finding.h"

#include <stdarg.h>
#include <stdio.h>

#include "tools/output.h"

static const char *const levels[] = { "ok", "note", "lacking", "damaged" };

static void finding_free(gpointer data)
{
	struct finding *f = data;

	g_free(f->check);
	g_free(f->sandbox);
	g_free(f->message);
	g_free(f->remedy);
	g_free(f);
}

GPtrArray *findings_new(void)
{
	return g_ptr_array_new_with_free_func(finding_free);
}

void finding_add(GPtrArray *all, enum finding_level level, const char *check, const char *sandbox, const char *remedy,
		 const char *format, ...)
{
	struct finding *f = g_new0(struct finding, 1);
	va_list args;

	f->level = level;
	f->check = g_strdup(check);
	f->sandbox = g_strdup(sandbox);
	f->remedy = g_strdup(remedy);
	va_start(args, format);
	f->message = g_strdup_vprintf(format, args);
	va_end(args);
	g_ptr_array_add(all, f);
}

bool findings_are_bad(const GPtrArray *all)
{
	for (unsigned i = 0; i < all->len; i++)
		if (((const struct finding *)all->pdata[i])->level >= FINDING_LACKING)
			return true;
	return false;
}

void findings_print(const GPtrArray *all)
{
	for (unsigned i = 0; i < all->len; i++) {
		const struct finding *f = all->pdata[i];

		printf("%-8s %s%s%s: %s\n", levels[f->level], f->sandbox ? f->sandbox : "", f->sandbox ? ": " : "", f->check,
		       f->message);
		if (f->remedy)
			printf("         -> %s\n", f->remedy);
	}
}

GVariant *findings_json(const GPtrArray *all)
{
	GVariantBuilder rows;

	g_variant_builder_init(&rows, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < all->len; i++) {
		const struct finding *f = all->pdata[i];

		g_variant_builder_open(&rows, G_VARIANT_TYPE_VARDICT);
		json_add_string(&rows, "check", f->check);
		json_add_string(&rows, "level", levels[f->level]);
		json_add_string(&rows, "sandbox", f->sandbox);
		json_add_string(&rows, "message", f->message);
		json_add_string(&rows, "remedy", f->remedy);
		g_variant_builder_close(&rows);
	}
	return g_variant_builder_end(&rows);
}
