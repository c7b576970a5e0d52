/* SPDX-License-Identifier: MIT */
#include "tools/policy_check.h"

#include "gate/gate_config.h"
#include "tools/exit.h"
#include "tools/run/commands.h"
#include "tools/run/limit.h"
#include "tools/run/places.h"

static bool check_gate(const struct policy *policy, const char *workspace, GError **error)
{
	g_autoptr(gate_config_t) config = gate_config_new(policy, workspace, error);

	return config != NULL;
}

bool policy_check_settings(const struct policy *policy, const char *workspace, GError **error)
{
	struct limits limits;
	size_t keep;
	bool log;

	return limits_read(policy, NULL, &limits, error) && commands_wanted(policy, &log, &keep, error) &&
	       places_check_home(policy, error) && check_gate(policy, workspace, error);
}
