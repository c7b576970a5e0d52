/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net_client - which tool makes a request: a hint for whoever reads the audit, since any program may call itself anything
 */

/* net_client_kind() - "npm", "pip", "cargo", ... by the User-Agent, else by the program's name. NULL = none of those known. */
const char *net_client_kind(const char *agent, const char *program);
