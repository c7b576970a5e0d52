/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fs/control.h"
#include "tools/attach.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/sandbox.h"
#include "tools/snapshots.h"

#define SNAPSHOT_NAME_MAX 200

static bool check_new_name(const char *name, GError **error)
{
	bool plain = g_utf8_validate(name, -1, NULL) && *name && strlen(name) <= SNAPSHOT_NAME_MAX;

	for (const char *c = name; plain && *c; c++)
		plain = (unsigned char)*c > ' ' && *c != 0x7f && *c != '/';
	if (plain && *name != '@' && *name != '-')
		return true;
	tool_error(error, EXIT_USAGE, name,
		   "'%s' cannot name a snapshot: use up to %d characters without spaces and slashes; names with @ in "
		   "front are made by rollback",
		   name, SNAPSHOT_NAME_MAX);
	return false;
}

static GVariant *call_with_name(struct attached *a, const char *operation, const char *name, GError **error)
{
	g_autoptr(GVariant) arguments = g_variant_ref_sink(g_variant_new_parsed("{'name': <%s>}", name));

	return control_call(a->control, operation, arguments, error);
}

static int print_done(struct invocation *inv, const struct attached *a, const char *what, const char *name,
		      GVariant *answer)
{
	int64_t epoch = 0;
	bool has_epoch = g_variant_lookup(answer, "epoch", "x", &epoch);
	GVariantBuilder b;

	if (!inv->json) {
		output_note("snapshot %s of sandbox %s %s", name, a->sandbox->name, what);
		return EXIT_DONE;
	}
	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.snapshot/1");
	json_add_string(&b, "sandbox", a->sandbox->name);
	json_add_string(&b, what, name);
	if (has_epoch)
		json_add_int(&b, "epoch", epoch);
	json_print(stdout, g_variant_builder_end(&b));
	return EXIT_DONE;
}

static int snapshot_create(struct invocation *inv, const char *name, const char *target, GError **error)
{
	g_autoptr(attached_t) a = NULL;
	g_autoptr(GVariant) answer = NULL;

	if (!check_new_name(name, error))
		return EXIT_USAGE;
	a = attached_open(target, ATTACH_CONTROL, error);
	answer = a ? call_with_name(a, "snapshot", name, error) : NULL;
	if (a && !answer && error && g_error_matches(*error, CONTROL_ERROR, CONTROL_ERROR_EXISTS)) {
		g_clear_error(error);
		tool_error(error, EXIT_USAGE, name,
			   "sandbox %s has a snapshot '%s' already; take another name, or delete that one first",
			   a->sandbox->name, name);
	}
	if (!answer)
		return EXIT_INTERNAL;
	return print_done(inv, a, "created", name, answer);
}

static int snapshot_delete(struct invocation *inv, const char *name, const char *target, GError **error)
{
	g_autoptr(attached_t) a = attached_open(target, ATTACH_CONTROL, error);
	g_autoptr(GVariant) answer = NULL;
	int64_t epoch;

	if (!a || !attached_epoch(a, name, &epoch, error))
		return EXIT_INTERNAL;
	answer = call_with_name(a, "snapshot-delete", name, error);
	if (!answer)
		return EXIT_INTERNAL;
	return print_done(inv, a, "deleted", name, answer);
}

static int snapshot_list(struct invocation *inv, const char *target, GError **error)
{
	g_autoptr(attached_t) a = attached_open(target, ATTACH_READ, error);
	g_autoptr(GPtrArray) all = NULL;
	int r;

	if (!a)
		return EXIT_INTERNAL;
	r = store_snapshot_list(a->store, &all);
	if (r < 0)
		tool_error_errno(error, r, a->sandbox->dir, "snapshots of %s", a->sandbox->name);
	else if (!inv->json)
		snapshots_print(all, "");
	else
		json_print(stdout,
			   g_variant_new_parsed(
				   "{'schema': <'sbxfs.snapshots/1'>, 'sandbox': <%s>, 'snapshots': <%@aa{sv}>}",
				   a->sandbox->name, snapshots_json(all)));
	return EXIT_DONE;
}

int cmd_snapshot(struct invocation *inv, GError **error)
{
	const struct command_syntax syntax = {
		.arguments = "create NAME [TARGET] | list [TARGET] | delete NAME [TARGET]",
		.description = "A snapshot is a name for the present state of the view. It costs the same whatever "
			       "has changed; `sbxfs rollback --to NAME` returns to it, `sbxfs diff --from NAME` "
			       "compares with it. Names with @ in front are made by rollback.",
		.min_args = 1,
		.max_args = 3,
		.json = true,
	};
	const char *verb, *first, *second;

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	verb = command_arg(inv, 0);
	first = command_arg(inv, 1);
	second = command_arg(inv, 2);
	if (g_str_equal(verb, "list") && !second)
		return snapshot_list(inv, first, error);
	if (g_str_equal(verb, "create") && first)
		return snapshot_create(inv, first, second, error);
	if (g_str_equal(verb, "delete") && first)
		return snapshot_delete(inv, first, second, error);
	tool_error(error, EXIT_USAGE, verb, "usage: %s %s", inv->program, syntax.arguments);
	return EXIT_USAGE;
}
