/* SPDX-License-Identifier: MIT */
#include "tools/run/net_client.h"

#include <glib.h>

/* How they begin. */
static const struct {
	const char *kind, *agent, *program;
} clients[] = {
	{ "npm", "npm/", "npm" },	   { "npm", NULL, "npx" },
	{ "pnpm", "pnpm/", "pnpm" },	   { "yarn", "yarn/", "yarn" },
	{ "pip", "pip/", "pip" },	   { "uv", "uv/", "uv" },
	{ "cargo", "cargo", "cargo" },	   { "maven", "Apache-Maven/", "mvn" },
	{ "gradle", "Gradle/", "gradle" }, { "apt", "Debian APT", "apt" },
	{ "apt", NULL, "https" },	   { "apt", NULL, "http" },
	{ "git", "git/", "git" },	   { "go", "Go-http-client/", "go" },
	{ "gem", "RubyGems/", "gem" },	   { "curl", "curl/", "curl" },
	{ "wget", "Wget/", "wget" },
};

const char *net_client_kind(const char *agent, const char *program)
{
	for (unsigned i = 0; agent && i < G_N_ELEMENTS(clients); i++)
		if (clients[i].agent && g_str_has_prefix(agent, clients[i].agent))
			return clients[i].kind;
	for (unsigned i = 0; program && i < G_N_ELEMENTS(clients); i++)
		if (clients[i].program && g_str_has_prefix(program, clients[i].program))
			return clients[i].kind;
	return NULL;
}
