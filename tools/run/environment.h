/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * environment - the variables of a confined program: a list of what is let through, and what says where it is
 */

#include <glib.h>

struct policy;

/*
 * environment_new() - from the caller's environment. @policy may let through more by "environment" of [run] (the
 * user's own profile only). Caller frees with g_strfreev().
 */
char **environment_new(const struct policy *policy, const char *sandbox, const char *home);
