/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "rules/policy.h"
#include "snapshot/audit.h"
#include "snapshot/fsck.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/finding.h"
#include "tools/output.h"
#include "tools/policy_store.h"
#include "tools/sandbox.h"
#include "tools/view_lock.h"

#define KEEP "keep a copy of the store; what can still be read: sbxfs diff. The workspace is not concerned"

struct examination {
	struct sandbox *sandbox;
	GPtrArray *findings;
	int lock; /* -1: somebody else works on the store */
	bool alone; /* view_change_begin() */
	bool has_leftovers, repaired;
};
typedef struct examination examination_t; /* for g_auto() only */

static void examination_clear(struct examination *e)
{
	if (e->lock >= 0)
		close(e->lock);
	if (e->alone)
		view_change_end(e->sandbox->name);
	g_clear_pointer(&e->findings, g_ptr_array_unref);
	g_clear_pointer(&e->sandbox, sandbox_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(examination_t, examination_clear)

static void add(struct examination *e, enum finding_level level, const char *check, const char *remedy, const char *message)
{
	finding_add(e->findings, level, check, e->sandbox->name, remedy, "%s", message);
}

static void take_finding(enum fsck_kind kind, const char *check, const char *message, void *user)
{
	struct examination *e = user;

	e->has_leftovers = e->has_leftovers || kind == FSCK_LEFTOVER;
	if (kind == FSCK_DAMAGE)
		add(e, FINDING_DAMAGED, check, KEEP, message);
	else
		add(e, FINDING_NOTE, check, kind == FSCK_LEFTOVER ? "nothing refers to it: sbxfs fsck --repair removes it" : NULL,
		    message);
}

static void check_store(struct examination *e)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(store_t) s = store_open(e->sandbox->dir, STORE_READ, &error);
	unsigned before = e->findings->len;
	int r;

	if (!s) {
		add(e, FINDING_DAMAGED, "store", KEEP, error->message);
		return;
	}
	r = fsck_run(s, e->lock >= 0, take_finding, e);
	if (r < 0)
		add(e, FINDING_DAMAGED, "store", KEEP, g_strerror(-r));
	else if (e->findings->len == before)
		add(e, FINDING_OK, "store", NULL, "the index and what it refers to agree");
	if (e->lock < 0)
		add(e, FINDING_NOTE, "objects", "sbxfs umount, then once more",
		    "it is in use, so files of large contents were not looked at");
}

static void check_policy(struct examination *e)
{
	g_autoptr(GError) error = NULL;
	struct policy *p = policy_store_load(e->sandbox->dir, &error);

	if (p)
		add(e, FINDING_OK, "policy", NULL, policy_name(p));
	else
		add(e, FINDING_DAMAGED, "policy", "a mount with -p gives it a new one", error->message);
	g_clear_pointer(&p, policy_free);
}

static void check_audit(struct examination *e)
{
	g_autoptr(audit_t) a = NULL;
	struct audit_verification v = { 0 };
	int r = audit_open(e->sandbox->dir, false, &a);

	if (r == 0)
		r = audit_verify(a, &v);
	if (r == -ENOENT)
		add(e, FINDING_NOTE, "audit", NULL, "nothing was ever recorded");
	else if (r < 0)
		add(e, FINDING_DAMAGED, "audit", "keep a copy of it", g_strerror(-r));
	else if (v.fault)
		add(e, FINDING_DAMAGED, "audit", "keep a copy of it", v.fault);
	else
		finding_add(e->findings, FINDING_OK, "audit", e->sandbox->name, NULL,
			    "%" PRIu64 " records, none changed, missing or moved", v.records);
	audit_verification_clear(&v);
}

/* The lock changes hands: a mount that gets it first is as good a reason to stop as one that has it. */
static bool repair(struct examination *e, GError **error)
{
	g_autoptr(store_t) s = NULL;
	int r;

	close(e->lock);
	e->lock = -1;
	s = store_open(e->sandbox->dir, STORE_WRITE, error);
	if (!s)
		return false;
	r = fsck_repair(s);
	if (r < 0) {
		tool_error_errno(error, r, e->sandbox->dir, "what nothing refers to could not all be removed");
		return false;
	}
	e->repaired = true;
	return true;
}

static void print_json(const struct examination *e)
{
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.fsck/1");
	json_add_string(&b, "sandbox", e->sandbox->name);
	json_add_bool(&b, "sound", !findings_are_bad(e->findings));
	json_add_bool(&b, "repaired", e->repaired);
	json_add(&b, "findings", findings_json(e->findings));
	json_print(stdout, g_variant_builder_end(&b));
}

int cmd_fsck(struct invocation *inv, GError **error)
{
	gboolean wants_repair = FALSE;
	const GOptionEntry options[] = {
		{ "repair", 0, 0, G_OPTION_ARG_NONE, &wants_repair, "Remove what nothing refers to", NULL },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "[TARGET]",
		.description =
			"Checks the store of a sandbox: that everything the index refers to is there and is what it says, in "
			"the present and in all snapshots, the policy in force, and the chain of the audit. Exits with 1 "
			"when something is damaged. What is only left over is told and, with --repair, removed.",
		.options = options,
		.max_args = 1,
		.json = true,
	};
	g_auto(examination_t) e = { .lock = -1 };

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	e.sandbox = sandbox_resolve(command_arg(inv, 0), error);
	if (!e.sandbox)
		return EXIT_INTERNAL;
	e.findings = findings_new();
	/* A view that a run has left is gone first. */
	e.alone = wants_repair && view_change_begin(e.sandbox->name, error);
	if (wants_repair && !e.alone)
		return EXIT_BUSY;
	e.lock = sandbox_lock(e.sandbox, wants_repair ? error : NULL);
	if (e.lock < 0 && wants_repair)
		return EXIT_BUSY;
	check_store(&e);
	check_policy(&e);
	check_audit(&e);
	/* Where a row is damaged, what seems to be left over may be what it spoke of. */
	if (wants_repair && findings_are_bad(e.findings))
		output_note("nothing was removed, since something is damaged");
	else if (wants_repair && e.has_leftovers && !repair(&e, error))
		return EXIT_INTERNAL;
	if (inv->json)
		print_json(&e);
	else
		findings_print(e.findings);
	if (e.repaired)
		output_note("what nothing refers to was removed");
	return findings_are_bad(e.findings) ? EXIT_DIFFERENCES : EXIT_DONE;
}
