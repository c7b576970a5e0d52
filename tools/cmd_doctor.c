/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "tools/command.h"
#include "tools/doctor.h"
#include "tools/exit.h"
#include "tools/finding.h"
#include "tools/output.h"
#include "tools/sandbox.h"

/* The one that is named, or all. */
static GPtrArray *choose(const char *target, GError **error)
{
	GPtrArray *one;
	struct sandbox *s;

	if (!target)
		return sandbox_list(error);
	s = sandbox_resolve(target, error);
	if (!s)
		return NULL;
	one = g_ptr_array_new_with_free_func((GDestroyNotify)sandbox_free);
	g_ptr_array_add(one, s);
	return one;
}

static void print_json(GPtrArray *findings)
{
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.doctor/1");
	json_add_bool(&b, "fine", !findings_are_bad(findings));
	json_add(&b, "findings", findings_json(findings));
	json_print(stdout, g_variant_builder_end(&b));
}

int cmd_doctor(struct invocation *inv, GError **error)
{
	const struct command_syntax syntax = {
		.arguments = "[TARGET]",
		.description = "Tells whether the system has what sbxfs needs, and whether the sandboxes, or TARGET alone, "
			       "are sound: dead views, policies, and files that a rule closes but that have a second, open "
			       "name in the workspace, which is walked through for that. Each finding comes with what to "
			       "do. Exits with 10 when something is lacking. Changes nothing.",
		.max_args = 1,
		.json = true,
	};
	g_autoptr(GPtrArray) findings = NULL;
	g_autoptr(GPtrArray) all = NULL;

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	all = choose(command_arg(inv, 0), error);
	if (!all)
		return EXIT_INTERNAL;
	findings = findings_new();
	doctor_platform(findings);
	for (unsigned i = 0; i < all->len; i++)
		doctor_sandbox(findings, all->pdata[i]);
	if (inv->json)
		print_json(findings);
	else
		findings_print(findings);
	return findings_are_bad(findings) ? EXIT_PLATFORM : EXIT_DONE;
}
