/* SPDX-License-Identifier: MIT */
#include "tools/policy_check.h"

#include <string.h>

#include "gate/gate_config.h"
#include "rules/policy.h"
#include "tools/exit.h"
#include "tools/run/commands.h"
#include "tools/run/limit.h"
#include "tools/run/places.h"

static bool check_gate(const struct policy *policy, const char *workspace, GError **error)
{
	g_autoptr(gate_config_t) config = gate_config_new(policy, workspace, error);

	return config != NULL;
}

/* As fs/ask_hook.c starts it: in /, found by the PATH of who mounts. What a script names in its first line is not looked at. */
static bool can_be_started(const char *program)
{
	g_autofree char *path = strchr(program, '/') ? g_canonicalize_filename(program, "/") : NULL, *found = g_find_program_in_path(path ? path : program);

	return found != NULL;
}

bool policy_check_hook(const struct policy *policy, GError **error)
{
	const struct policy_setting *s = policy_trusted_setting(policy, "ask", "on_ask");
	g_auto(GStrv) argv = NULL;

	/* That it is a command at all was looked at when it was read. */
	if (!s || !g_shell_parse_argv(s->value, NULL, &argv, NULL) || can_be_started(argv[0]))
		return true;
	tool_error(error, EXIT_POLICY, s->file,
		   "%s:%u: on_ask = \"%s\" cannot be started, so nobody would be told of a question: there is no program %s; install it, or name it by its "
		   "absolute path",
		   s->file, s->line, s->value, argv[0]);
	return false;
}

bool policy_check_settings(const struct policy *policy, const char *workspace, GError **error)
{
	struct limits limits;
	size_t keep;
	bool log;

	return policy_check_hook(policy, error) && limits_read(policy, NULL, &limits, error) && commands_wanted(policy, &log, &keep, error) &&
	       places_check_home(policy, error) && check_gate(policy, workspace, error);
}
