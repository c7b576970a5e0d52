/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * audit_config - the section [audit] of a policy: how long records are kept and where copies of them go
 *
 *   file       appended to; absolute, %n stands for the sandbox's name; not in the workspace or the view
 *   syslog     yes or no
 *   command    gets the lines on its standard input
 *   keep       age of the oldest record, 90d; default 366d
 *   keep_size  bytes of records, 500M; default 1G
 *
 * The managed profile's and the user's copies are both made; of what is kept the managed profile's value holds. A workspace's own
 * file has nothing to say here.
 */

#include <glib.h>
#include <stdbool.h>

#include "snapshot/audit_writer.h"

struct policy;

/* audit_config_read() - @workspace and @mountpoint (NULL = none): where no copy may lie. Then audit_config_clear(). */
bool audit_config_read(const struct policy *policy, const char *sandbox, const char *workspace, const char *mountpoint,
		       struct audit_options *ret, GError **error);
void audit_config_clear(struct audit_options *o);
