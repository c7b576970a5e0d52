/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * command_text - a record of the command log (tools/run/commands.h) for people
 */

#include <stdbool.h>

struct audit_record;

/*
 * command_text() - @ret_what: the command line, quoted for a shell, or the program; @ret_how: where it was started, or how it ended.
 * False for a record of another kind. Caller frees both.
 */
bool command_text(const struct audit_record *r, char **ret_what, char **ret_how);
