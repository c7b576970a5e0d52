/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "rules/policy.h"
#include "snapshot/diff.h"
#include "tools/attach.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/path_args.h"
#include "tools/paths.h"
#include "tools/sandbox.h"

/* What a program may do, by the most closed action that still allows it. */
static const struct operation {
	const char *name;
	enum action allowed_up_to;
	bool of_names; /* it changes the directory as well */
} operations[] = {
	{ "list", ACTION_DENY, false },	    { "stat", ACTION_DENY, false },	{ "read", ACTION_MASK, false },
	{ "write", ACTION_SCRATCH, false }, { "create", ACTION_SCRATCH, true }, { "delete", ACTION_SCRATCH, true },
	{ "rename", ACTION_SCRATCH, true }, { "chmod", ACTION_SCRATCH, false },
};

struct answer {
	char *path;
	char *lower; /* the workspace path it came from, when that is another one and decides */
	struct policy_reason reason;
	enum action granted; /* what is left when a human says yes; see policy_action_granted() */
	bool is_dir;
	enum action around;  /* of the directory it lies in */
	bool lost;	     /* it lies in one that is hidden, and not shown as the way to something open */
	const struct operation *operation; /* NULL = not asked for */
};
typedef struct answer answer_t; /* for g_auto() only */

static void answer_clear(struct answer *a)
{
	g_free(a->path);
	g_free(a->lower);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(answer_t, answer_clear)

static bool find_operation(const char *name, const struct operation **ret, GError **error)
{
	g_autoptr(GString) names = g_string_new(NULL);

	for (unsigned i = 0; name && i < G_N_ELEMENTS(operations); i++) {
		if (g_str_equal(operations[i].name, name)) {
			*ret = &operations[i];
			return true;
		}
		g_string_append_printf(names, "%s%s", i ? ", " : "", operations[i].name);
	}
	if (name)
		tool_error(error, EXIT_USAGE, name, "there is no operation '%s'; it is one of: %s", name, names->str);
	return !name;
}

/* It waits for a human, as far as anything opens then. */
static bool operation_asks(const struct answer *a)
{
	if (a->operation->allowed_up_to == ACTION_MASK)
		return a->reason.action == ACTION_ASK;
	return a->operation->allowed_up_to == ACTION_SCRATCH && a->granted <= ACTION_SCRATCH &&
	       (a->reason.action == ACTION_ASK || a->reason.action == ACTION_ASK_CHANGE);
}

/* With which error it fails, without a yes where it asks. */
static const char *refusal(const struct answer *a)
{
	enum action action = a->reason.action == ACTION_ASK ? a->granted : a->reason.action;

	if (operation_asks(a))
		return "EACCES";
	/* A name that is not there is refused in the same way whether something hidden has it or not. */
	if (action == ACTION_HIDE)
		return g_str_equal(a->operation->name, "create") && !a->lost ? "EACCES" : "ENOENT";
	if (action == ACTION_DENY && (a->around >= ACTION_DENY || (a->is_dir && g_str_equal(a->operation->name, "list"))))
		return "EACCES";
	/* In a directory that is closed names neither come nor go, however open what they name. */
	if (a->operation->of_names && (a->around == ACTION_READ || a->around >= ACTION_MASK))
		action = MAX(action, a->around);
	if (action <= a->operation->allowed_up_to)
		return NULL;
	return action == ACTION_READ || action == ACTION_MASK ? "EROFS" : "EACCES";
}


static bool is_gone(const struct policy *policy, const char *dir)
{
	struct policy_match m = policy_match_path(policy, dir, true);

	return policy_action(policy, m) == ACTION_HIDE && !policy_names_open_below(policy, m, dir);
}

static void look_around(const struct policy *policy, const char *path, bool is_dir, struct answer *a)
{
	g_autofree char *parent = strchr(path, '/') ? g_path_get_dirname(path) : NULL;

	a->is_dir = is_dir;
	a->around = policy_action(policy, policy_match_path(policy, parent ? parent : "", true));
	a->lost = parent && is_gone(policy, parent);
}

/* The verdict sticks to the object, so it is asked for both: the path it has and the path it came from. */
static bool explain(struct attached *a, const char *path, bool is_dir, struct answer *ret, GError **error)
{
	g_autoptr(tree_t) live = tree_open(a->store, a->lower, EPOCH_LIVE);
	g_autoptr(entry_t) e = NULL;
	struct policy_reason other;
	struct policy_match m;
	int r = tree_lookup_path(live, path, &e);

	if (r < 0) {
		tool_error_errno(error, r, path, "%s", path);
		return false;
	}
	is_dir = e ? S_ISDIR(e->attr.mode) : is_dir;
	ret->path = g_strdup(path);
	look_around(a->policy, path, is_dir, ret);
	m = policy_match_path(a->policy, path, is_dir);
	policy_explain(a->policy, m, &ret->reason);
	ret->granted = policy_action_granted(a->policy, m);
	if (!e || !e->lower || g_str_equal(e->lower, path))
		return true;
	m = policy_match_path(a->policy, e->lower, is_dir);
	policy_explain(a->policy, m, &other);
	ret->granted = MAX(ret->granted, policy_action_granted(a->policy, m));
	if (other.action > ret->reason.action) {
		ret->reason = other;
		ret->lower = g_strdup(e->lower);
	}
	return true;
}

static void print_text(const struct answer *a)
{
	g_autofree char *path = diff_quote_path(*a->path ? a->path : ".");
	g_autofree char *from = a->lower ? diff_quote_path(a->lower) : NULL;
	const struct policy_reason *r = &a->reason;

	printf("%s: %s\n", path, action_name(r->action));
	if (from)
		printf("  it came from %s\n", from);
	if (r->pattern)
		printf("  %s:%u: %s = %s (profile %s, %s)\n", r->file, r->line, action_name(r->action), r->pattern,
		       r->profile, policy_layer_name(r->layer));
	else
		printf("  no rule matches: the default\n");
	if (a->operation && operation_asks(a))
		printf("  %s waits for a human's yes: sbxfs ask (else EACCES)\n", a->operation->name);
	else if (a->operation && refusal(a))
		printf("  %s is refused (%s)\n", a->operation->name, refusal(a));
	else if (a->operation)
		printf("  %s is allowed\n", a->operation->name);
}

static void print_json(const struct attached *where, const struct answer *a)
{
	const struct policy_reason *r = &a->reason;
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.why/1");
	json_add_string(&b, "sandbox", where->sandbox->name);
	json_add_path(&b, "path", a->path);
	json_add_path(&b, "came_from", a->lower);
	json_add_string(&b, "action", action_name(r->action));
	json_add_string(&b, "pattern", r->pattern);
	json_add_string(&b, "profile", r->profile);
	json_add_string(&b, "layer", policy_layer_name(r->layer));
	json_add_path(&b, "file", r->file);
	json_add(&b, "line",
		 g_variant_new_maybe(G_VARIANT_TYPE_INT64, r->pattern ? g_variant_new_int64(r->line) : NULL));
	if (a->operation) {
		json_add_string(&b, "operation", a->operation->name);
		json_add_bool(&b, "allowed", !refusal(a));
		json_add_string(&b, "error", refusal(a));
		json_add_bool(&b, "asks", operation_asks(a));
	}
	json_print(stdout, g_variant_builder_end(&b));
}

/* Without a TARGET, a path in a view or a workspace tells the sandbox by itself. */
static const char *target_of(const struct invocation *inv)
{
	const char *target = command_arg(inv, 1);
	const char *path = command_arg(inv, 0);

	return target || !g_path_is_absolute(path) ? target : path;
}

int cmd_why(struct invocation *inv, GError **error)
{
	g_autofree char *operation = NULL;
	const GOptionEntry options[] = {
		{ "op", 0, 0, G_OPTION_ARG_FILENAME, &operation,
		  "Also tell whether this is allowed: list, stat, read, write, create, "
		  "delete, rename, chmod",
		  "OPERATION" },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "PATH [TARGET]",
		.description = "Tells what the policy says about PATH, and which rule decides: its file and line.",
		.options = options,
		.min_args = 1,
		.max_args = 2,
		.json = true,
	};
	g_autoptr(attached_t) a = NULL;
	g_autofree char *cwd = paths_cwd();
	g_autofree char *path = NULL;
	g_auto(answer_t) answer = { 0 };

	if (!command_parse(inv, &syntax, error) || !find_operation(operation, &answer.operation, error))
		return EXIT_DONE;
	a = attached_open(target_of(inv), ATTACH_READ, error);
	path = a ? path_args_one(a->sandbox, cwd, command_arg(inv, 0), error) : NULL;
	if (!path || !attached_has_lower(a, error) ||
	    !explain(a, path, g_str_has_suffix(command_arg(inv, 0), "/"), &answer, error))
		return EXIT_INTERNAL;
	if (inv->json)
		print_json(a, &answer);
	else
		print_text(&answer);
	return EXIT_DONE;
}
