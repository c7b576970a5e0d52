/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * platform - what a confinement needs of the system, and what to do when it is not there
 */

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* platform_find_bwrap() - its path, caller frees; NULL with the remedy as error. */
char *platform_find_bwrap(GError **error);
/* platform_check() - tries the namespaces of a run, with nothing in them; the reason and the remedy as @error. */
bool platform_check(GError **error);
/* platform_explain() - after bwrap has failed: sets @error to the likely reason. @first: it had made namespaces.
 * False. */
bool platform_explain(pid_t first, GError **error);
