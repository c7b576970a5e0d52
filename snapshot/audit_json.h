/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * audit_json - a record of the audit as one line of JSON
 *
 * {"schema":"sbxfs.audit/1","seq","time","kind","operation","path","new_path","verdict","rule","result","errno","pid","uid","program","detail","hash"};
 * what a record does not have is left out. A record of an executed command (AUDIT_COMMAND, "exec" and "exit") has in place of "detail"
 * the object "command", whose members tools/run/commands.h lists. Strings that are not UTF-8 are made so, and KEY_b64 has the exact bytes.
 */

#include "snapshot/audit_record.h"

/* audit_json_line() - without the newline. @hash: 32 bytes or NULL. Caller frees. */
char *audit_json_line(const struct audit_record *r, const uint8_t *hash);
