/* SPDX-License-Identifier: MIT */
#include "tools/snapshots.h"

#include <stdio.h>

#include "snapshot/store.h"
#include "tools/output.h"

GVariant *snapshots_json(const GPtrArray *all)
{
	GVariantBuilder rows;

	g_variant_builder_init(&rows, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < all->len; i++) {
		const struct snapshot *s = all->pdata[i];
		g_autofree char *time = text_time(s->time);

		g_variant_builder_open(&rows, G_VARIANT_TYPE_VARDICT);
		json_add_path(&rows, "name", s->name);
		json_add_string(&rows, "time", time);
		json_add_int(&rows, "epoch", s->epoch);
		g_variant_builder_close(&rows);
	}
	return g_variant_builder_end(&rows);
}

void snapshots_print(const GPtrArray *all, const char *indent)
{
	for (unsigned i = 0; i < all->len; i++) {
		const struct snapshot *s = all->pdata[i];
		g_autofree char *time = text_time(s->time);

		printf("%s%s  %s\n", indent, time, s->name);
	}
}
