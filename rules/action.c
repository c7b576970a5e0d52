/* SPDX-License-Identifier: MIT */
#include "rules/action.h"

#include <string.h>

static const char *const names[ACTION_COUNT] = {
	[ACTION_WRITE] = "write", [ACTION_SCRATCH] = "scratch", [ACTION_ASK_CHANGE] = "ask-change", [ACTION_READ] = "read",
	[ACTION_ASK] = "ask",     [ACTION_MASK] = "mask",       [ACTION_DENY] = "deny",             [ACTION_HIDE] = "hide",
};

const char *action_name(enum action a)
{
	g_return_val_if_fail((unsigned)a < ACTION_COUNT, "hide");
	return names[a];
}

bool action_from_name(const char *name, enum action *ret_action)
{
	for (unsigned i = 0; i < ACTION_COUNT; i++) {
		if (strcmp(names[i], name) == 0) {
			*ret_action = (enum action)i;
			return true;
		}
	}
	return false;
}
