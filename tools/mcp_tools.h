/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * mcp_tools - what an agent may ask of its sandbox: status, diff, snapshot, why
 *
 * To look and to keep a state, not more: what decides about the changes, commit, rollback and approvals, is for a human
 * and his terminal, and the audit, which knows what else runs here, is his too. Each tool is a command of this program
 * (tools/own_command.h), so it shows and refuses what that does: nothing that the policy denies, hides or masks.
 */

#include <glib.h>
#include <json-glib/json-glib.h>

/* mcp_tools_list() - the result of tools/list. Caller owns the node. */
JsonNode *mcp_tools_list(void);
/*
 * mcp_tools_call() - the result of tools/call with @params, for the sandbox @target (NULL: found as the commands find
 * it). A tool that fails is a result too; @error (RPC_ERROR; not NULL) is for what cannot be called.
 */
JsonNode *mcp_tools_call(JsonObject *params, const char *target, GError **error);
