/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tools/command.h"
#include "tools/exit.h"
#include "tools/mcp_tools.h"
#include "tools/rpc.h"

/* Revisions of the Model Context Protocol, the newest first. For what is used here they are alike. */
static const char *const revisions[] = { "2025-06-18", "2025-03-26", "2024-11-05" };

#define INSTRUCTIONS                                                                                                               \
	"You work in a private view of the project: what you write does not reach the project's directory until the "              \
	"user has reviewed and committed it, and rules decide what you may see and change. Take a snapshot before a "              \
	"risky step. For an access that is refused, why tells the rule; do not try to get around it, tell the user. "              \
	"Only the user can commit, roll back or change the rules, with the sbxfs command."

/* The same revision if we have it, else the newest one of ours: then the client decides. */
static const char *negotiate(const char *wanted)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(revisions); i++)
		if (g_str_equal(revisions[i], wanted))
			return revisions[i];
	return revisions[0];
}

static JsonNode *initialize(JsonObject *params, GError **error)
{
	JsonNode *wanted = json_object_get_member(params, "protocolVersion");
	g_autoptr(JsonBuilder) b = json_builder_new();

	if (!wanted || !JSON_NODE_HOLDS_VALUE(wanted) || json_node_get_value_type(wanted) != G_TYPE_STRING) {
		g_set_error(error, RPC_ERROR, RPC_ERROR_PARAMS, "\"protocolVersion\" must be a string");
		return NULL;
	}
	json_builder_begin_object(b);
	json_builder_set_member_name(b, "protocolVersion");
	json_builder_add_string_value(b, negotiate(json_node_get_string(wanted)));
	json_builder_set_member_name(b, "capabilities");
	json_builder_begin_object(b);
	json_builder_set_member_name(b, "tools");
	json_builder_begin_object(b);
	json_builder_end_object(b);
	json_builder_end_object(b);
	json_builder_set_member_name(b, "serverInfo");
	json_builder_begin_object(b);
	json_builder_set_member_name(b, "name");
	json_builder_add_string_value(b, "sbxfs");
	json_builder_set_member_name(b, "version");
	json_builder_add_string_value(b, SBXFS_VERSION);
	json_builder_end_object(b);
	json_builder_set_member_name(b, "instructions");
	json_builder_add_string_value(b, INSTRUCTIONS);
	json_builder_end_object(b);
	return json_builder_get_root(b);
}

static JsonNode *nothing(void)
{
	JsonNode *node = json_node_new(JSON_NODE_OBJECT);

	json_node_take_object(node, json_object_new());
	return node;
}

/* @user: the target. */
static JsonNode *handle(const char *method, JsonObject *params, void *user, GError **error)
{
	if (g_str_equal(method, "initialize"))
		return initialize(params, error);
	if (g_str_equal(method, "ping") || g_str_has_prefix(method, "notifications/"))
		return nothing();
	if (g_str_equal(method, "tools/list"))
		return mcp_tools_list();
	if (g_str_equal(method, "tools/call"))
		return mcp_tools_call(params, user, error);
	g_set_error(error, RPC_ERROR, RPC_ERROR_METHOD, "there is no method \"%s\"", method);
	return NULL;
}

int cmd_mcp(struct invocation *inv, GError **error)
{
	const struct command_syntax syntax = {
		.arguments = "[TARGET]",
		.description = "Serves the Model Context Protocol on standard input and output, for an agent that shall "
			       "know of its sandbox: the tools status, diff, snapshot and why. None of them commits, "
			       "rolls back or approves. The agent's client starts it, from its own configuration, outside "
			       "of the view; without a TARGET each call finds the sandbox as the commands do.",
		.max_args = 1,
	};

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	if (g_getenv("SBXFS")) {
		tool_error(error, EXIT_PLATFORM, NULL,
			   "this program is confined (SBXFS is set), and no sandbox can be reached from in there; have the server "
			   "started outside: `sbxfs mcp NAME` in the configuration of a client that runs there");
		return EXIT_PLATFORM;
	}
	rpc_serve(stdin, stdout, handle, (void *)command_arg(inv, 0));
	return EXIT_DONE;
}
