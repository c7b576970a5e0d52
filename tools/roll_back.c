/* SPDX-License-Identifier: MIT */
#include "tools/roll_back.h"

#include <inttypes.h>
#include <string.h>

#include "fs/control.h"
#include "tools/attach.h"
#include "tools/exit.h"
#include "tools/sandbox.h"

#define AUTOMATIC "@before-rollback-"

static char *next_automatic_name(struct attached *a, GError **error)
{
	g_autoptr(GPtrArray) all = NULL;
	uint64_t last = 0;
	int code = store_snapshot_list(a->store, &all);

	if (code < 0) {
		tool_error_errno(error, code, NULL, "snapshots of %s", a->sandbox->name);
		return NULL;
	}
	for (unsigned i = 0; i < all->len; i++) {
		const char *name = ((const struct snapshot *)all->pdata[i])->name;

		if (g_str_has_prefix(name, AUTOMATIC))
			last = MAX(last, g_ascii_strtoull(name + strlen(AUTOMATIC), NULL, 10));
	}
	return g_strdup_printf(AUTOMATIC "%" PRIu64, last + 1);
}

bool roll_back(struct attached *a, int64_t to, GVariant *paths, bool scratch, struct roll_back_result *ret, GError **error)
{
	g_autofree char *undo = next_automatic_name(a, error);
	g_autoptr(GVariant) taken = paths ? g_variant_ref_sink(paths) : NULL, arguments = NULL, answer = NULL;
	GVariantBuilder b;

	if (!undo)
		return false;
	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	g_variant_builder_add(&b, "{sv}", "to", g_variant_new_int64(to));
	g_variant_builder_add(&b, "{sv}", "name", g_variant_new_string(undo));
	g_variant_builder_add(&b, "{sv}", "scratch", g_variant_new_boolean(scratch));
	if (taken)
		g_variant_builder_add(&b, "{sv}", "paths", taken);
	arguments = g_variant_ref_sink(g_variant_builder_end(&b));
	answer = control_call(a->control, "rollback", arguments, error);
	if (!answer)
		return false;
	ret->undo = g_steal_pointer(&undo);
	g_variant_lookup(answer, "names", "t", &ret->names);
	g_variant_lookup(answer, "nodes", "t", &ret->nodes);
	return true;
}
