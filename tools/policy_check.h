/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * policy_check - the settings of a policy that are only used later, read at once
 *
 * What a run or the gate would stumble over has to be said when the policy is checked or taken for a mount, not when an agent has worked
 * for an hour.
 */

#include <glib.h>
#include <stdbool.h>

struct policy;

/* policy_check_settings() - EXIT_POLICY with file and line. @workspace: where a baseline of the gate may not lie; NULL = none. */
bool policy_check_settings(const struct policy *policy, const char *workspace, GError **error);
/* policy_check_hook() - the part of it that may be otherwise at the next mount: whether on_ask names a program that is there. */
bool policy_check_hook(const struct policy *policy, GError **error);
