/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * confirm - asking before something is done that cannot simply be undone
 */

#include <glib.h>
#include <stdbool.h>

/*
 * confirm() - true when @yes, or when a human at the terminal agrees to @question. Without a terminal it is a usage
 * error that names -y; a no is EXIT_REVIEW. The question goes to standard error.
 */
bool confirm(const char *question, bool yes, GError **error);
