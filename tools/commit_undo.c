/* SPDX-License-Identifier: MIT */
#include "tools/commit_undo.h"

#include <stdio.h>
#include <string.h>

#include "snapshot/apply.h"
#include "snapshot/content_origin.h"
#include "tools/attach.h"
#include "tools/change_text.h"
#include "tools/confirm.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/sandbox.h"

#define SUMMARY_LINES 40

static bool is_id(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

bool commit_undo_parse(const GPtrArray *args, struct commit_undo *ret, GError **error)
{
	const char *last = args->len ? args->pdata[args->len - 1] : NULL;

	if (args->len == 2 && !is_id(last)) {
		tool_error(error, EXIT_USAGE, NULL, "'%s' is no number of a commit (--undo [ID])", last);
		return false;
	}
	ret->id = last && is_id(last) ? last : NULL;
	ret->target = args->len == 2 || !ret->id ? (args->len ? args->pdata[0] : NULL) : NULL;
	return true;
}

static bool refuse(const struct commit_undo *u, GPtrArray *conflicts, GError **error)
{
	const struct conflict *first = conflicts->pdata[0];

	if (u->json)
		json_print(stdout, conflicts_json(conflicts));
	else
		conflicts_print(conflicts);
	tool_error(error, EXIT_CONFLICT, first->path,
		   "the workspace no longer has what the commit wrote: %u paths differ; nothing was changed",
		   conflicts->len);
	return false;
}

/* A large file that was changed again takes the pages that were not written from the committed one, which will be gone. */
static bool check_readers(struct attached *a, const struct apply_result *r, GError **error)
{
	g_autoptr(GHashTable) paths = g_hash_table_new(g_str_hash, g_str_equal);
	g_autoptr(GPtrArray) found = NULL;
	g_autofree char *list = NULL;
	int code;

	for (unsigned i = 0; i < r->paths->len; i++)
		g_hash_table_add(paths, r->paths->pdata[i]);
	code = contents_reading(a->store, r->epoch, paths, &found);
	if (code < 0) {
		tool_error_errno(error, code, NULL, "contents of %s", a->sandbox->name);
		return false;
	}
	if (found->len == 0)
		return true;
	g_ptr_array_add(found, NULL);
	list = g_strjoinv(", ", (char **)found->pdata);
	tool_error(error, EXIT_CONFLICT, found->pdata[0],
		   "the view has changed large files again that the commit wrote, and still reads parts of them from the "
		   "workspace: %s; nothing was changed. Commit or roll back these first",
		   list);
	return false;
}

static void print_summary(const struct attached *a, const struct commit_undo *u, const struct apply_result *r)
{
	printf("%s: undo commit %s: %u paths of %s go back to what they were\n", a->sandbox->name, r->id, r->paths->len,
	       a->sandbox->workspace);
	for (unsigned i = 0; i < r->paths->len && (u->dry_run || i < SUMMARY_LINES); i++)
		printf("  %s\n", (const char *)r->paths->pdata[i]);
	if (!u->dry_run && r->paths->len > SUMMARY_LINES)
		printf("  ... and %u more (-n lists them)\n", r->paths->len - SUMMARY_LINES);
}

static void print_json(const struct attached *a, const struct commit_undo *u, const struct apply_result *r)
{
	GVariantBuilder b, paths, notes;

	g_variant_builder_init(&paths, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < r->paths->len; i++) {
		g_variant_builder_open(&paths, G_VARIANT_TYPE_VARDICT);
		json_add_path(&paths, "path", r->paths->pdata[i]);
		g_variant_builder_close(&paths);
	}
	g_variant_builder_init(&notes, G_VARIANT_TYPE_STRING_ARRAY);
	for (unsigned i = 0; r->notes && i < r->notes->len; i++)
		g_variant_builder_add(&notes, "s", r->notes->pdata[i]);
	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.undo/1");
	json_add_string(&b, "sandbox", a->sandbox->name);
	json_add_path(&b, "workspace", a->sandbox->workspace);
	json_add_bool(&b, "dry_run", u->dry_run);
	json_add_string(&b, "id", r->id);
	json_add(&b, "paths", g_variant_builder_end(&paths));
	json_add(&b, "notes", g_variant_builder_end(&notes));
	json_print(stdout, g_variant_builder_end(&b));
}

static void print_result(const struct commit_undo *u, const struct apply_result *r)
{
	if (u->dry_run) {
		output_note("nothing was changed (--dry-run)");
		return;
	}
	for (unsigned i = 0; r->notes && i < r->notes->len; i++)
		output_note("note: %s", (const char *)r->notes->pdata[i]);
	printf("undone: commit %s. Its changes are pending in the view again\n", r->id);
}

static bool undo(struct attached *a, const struct commit_undo *u, struct apply_result *r, GError **error)
{
	g_autoptr(GPtrArray) conflicts = NULL;

	if (apply_undo_check(a->store, a->lower, u->id, r, &conflicts, error) < 0)
		return false;
	if (conflicts)
		return refuse(u, conflicts, error);
	if (!check_readers(a, r, error))
		return false;
	if (!u->json)
		print_summary(a, u, r);
	if (u->dry_run)
		return true;
	if (!confirm("Put the workspace back?", u->yes, error))
		return false;
	if (!attached_keep(a, r->epoch, r->paths, error))
		return false;
	g_autofree char *id = g_strdup(r->id);

	apply_result_clear(r);
	if (apply_undo(a->store, a->lower, id, r, &conflicts, error) < 0)
		return false;
	if (conflicts)
		return refuse(u, conflicts, error);
	return attached_finish(a, r, error);
}

bool commit_undo_run(const struct commit_undo *u, GError **error)
{
	g_autoptr(attached_t) a = attached_open(u->target, ATTACH_CONTROL, error);
	struct apply_result result = { 0 };
	bool ok = a && attached_lock_commits(a, error) && undo(a, u, &result, error);

	if (ok && u->json)
		print_json(a, u, &result);
	else if (ok)
		print_result(u, &result);
	apply_result_clear(&result);
	return ok;
}
