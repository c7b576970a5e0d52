/* SPDX-License-Identifier: MIT */
#include "tools/rpc.h"

#include <string.h>

G_DEFINE_QUARK(sbxfs - rpc - error - quark, rpc_error)

#define OUTSIDE_STRINGS " \t\r{}[]:,-+.0123456789eE" /* and the letters of: */ "truefalsnl"

/* JSON */

/* @size counts from behind the opening quote. Returns how many bytes the string takes with the closing one, or 0. */
static size_t string_length(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '"')
			return i + 1;
		if (text[i] == '\\')
			i++;
		else if ((unsigned char)text[i] < ' ')
			break;
	}
	return 0;
}

/*
 * Exactly one object or array, no deeper than we can stand, of nothing but what JSON is made of. Comments, other quotes
 * and a second value on the line would pass json-glib, which is left to find all other faults.
 */
static const char *find_fault(const char *text, size_t size)
{
	unsigned depth = 0;
	bool begun = false;

	if (!g_utf8_validate_len(text, size, NULL))
		return "it is no UTF-8";
	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (!strchr(OUTSIDE_STRINGS, c) && c != '"')
			return "there is a character that has no place in JSON";
		if (strchr(" \t\r", c))
			continue;
		if (depth == 0 && (begun || (c != '{' && c != '[')))
			return "it is not one object";
		begun = true;
		if (c == '"') {
			size_t n = string_length(text + i + 1, size - i - 1);

			if (n == 0)
				return "a string has no end";
			i += n;
		} else if (c == '{' || c == '[') {
			if (++depth > RPC_DEPTH_MAX)
				return "it is nested too deeply";
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	return !begun || depth > 0 ? "it ends early" : NULL;
}

static JsonNode *parse(const char *line, size_t size, GError **error)
{
	g_autoptr(JsonParser) parser = json_parser_new();
	g_autoptr(GError) failure = NULL;
	const char *fault = find_fault(line, size);

	if (!fault && !json_parser_load_from_data(parser, line, size, &failure))
		fault = failure->message;
	if (!fault)
		return json_parser_steal_root(parser);
	g_set_error(error, RPC_ERROR, RPC_ERROR_PARSE, "this is no JSON: %s", fault);
	return NULL;
}

static char *serialize(JsonNode *node)
{
	g_autoptr(JsonNode) owned = node;

	return json_to_string(owned, FALSE);
}

/* Answers */

/* @id: NULL = null. */
static JsonObject *answer_new(JsonNode *id)
{
	JsonObject *o = json_object_new();

	json_object_set_string_member(o, "jsonrpc", "2.0");
	json_object_set_member(o, "id", id ? json_node_copy(id) : json_node_new(JSON_NODE_NULL));
	return o;
}

static JsonNode *answer_node(JsonObject *o)
{
	JsonNode *node = json_node_new(JSON_NODE_OBJECT);

	json_node_take_object(node, o);
	return node;
}

static JsonNode *answer_error(JsonNode *id, const GError *error)
{
	g_autofree char *message = g_utf8_make_valid(error->message, -1);
	JsonObject *o = answer_new(id);
	JsonObject *e = json_object_new();

	json_object_set_int_member(e, "code", error->domain == RPC_ERROR ? error->code : RPC_ERROR_INTERNAL);
	json_object_set_string_member(e, "message", message);
	json_object_set_object_member(o, "error", e);
	return answer_node(o);
}

static bool is_id(JsonNode *id)
{
	GType type = id && JSON_NODE_HOLDS_VALUE(id) ? json_node_get_value_type(id) : G_TYPE_INVALID;

	return type == G_TYPE_STRING || type == G_TYPE_INT64 || type == G_TYPE_DOUBLE;
}

static const char *string_member(JsonObject *o, const char *key)
{
	JsonNode *node = json_object_get_member(o, key);

	return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING ? json_node_get_string(node)
												      : NULL;
}

static const char *find_request_fault(JsonObject *o, JsonNode *id)
{
	if (g_strcmp0(string_member(o, "jsonrpc"), "2.0") != 0)
		return "\"jsonrpc\" must be \"2.0\"";
	if (!string_member(o, "method"))
		return "there is no \"method\"";
	return id && !is_id(id) ? "\"id\" must be a string or a number" : NULL;
}

static JsonNode *call(JsonObject *request, rpc_handler handler, void *user, GError **error)
{
	JsonNode *params = json_object_get_member(request, "params");
	g_autoptr(JsonObject) none = json_object_new();

	if (params && !JSON_NODE_HOLDS_OBJECT(params)) {
		g_set_error(error, RPC_ERROR, RPC_ERROR_PARAMS, "\"params\" must be an object");
		return NULL;
	}
	return handler(string_member(request, "method"), params ? json_node_get_object(params) : none, user, error);
}

static JsonNode *answer_message(JsonNode *message, rpc_handler handler, void *user)
{
	JsonObject *o = JSON_NODE_HOLDS_OBJECT(message) ? json_node_get_object(message) : NULL;
	JsonNode *id = o ? json_object_get_member(o, "id") : NULL;
	g_autoptr(JsonNode) result = NULL;
	g_autoptr(GError) error = NULL;
	const char *fault;
	JsonObject *answer;

	if (o && !json_object_has_member(o, "method") &&
	    (json_object_has_member(o, "result") || json_object_has_member(o, "error")))
		return NULL;
	fault = o ? find_request_fault(o, id) : "it is no object";
	if (fault) {
		error = g_error_new(RPC_ERROR, RPC_ERROR_REQUEST, "this is no request: %s", fault);
		return answer_error(is_id(id) ? id : NULL, error);
	}
	result = call(o, handler, user, &error);
	if (!id)
		return NULL;
	if (!result)
		return answer_error(id, error);
	answer = answer_new(id);
	json_object_set_member(answer, "result", g_steal_pointer(&result));
	return answer_node(answer);
}

static JsonNode *answer_batch(JsonArray *batch, rpc_handler handler, void *user)
{
	g_autoptr(JsonArray) answers = json_array_new();
	JsonNode *node;

	for (unsigned i = 0; i < json_array_get_length(batch); i++) {
		JsonNode *answer = answer_message(json_array_get_element(batch, i), handler, user);

		if (answer)
			json_array_add_element(answers, answer);
	}
	if (json_array_get_length(answers) == 0)
		return NULL;
	node = json_node_new(JSON_NODE_ARRAY);
	json_node_take_array(node, g_steal_pointer(&answers));
	return node;
}

char *rpc_answer(const char *line, size_t size, rpc_handler handler, void *user)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(JsonNode) message = parse(line, size, &error);
	JsonNode *answer;

	if (!message)
		answer = answer_error(NULL, error);
	else if (JSON_NODE_HOLDS_ARRAY(message) && json_array_get_length(json_node_get_array(message)) > 0)
		answer = answer_batch(json_node_get_array(message), handler, user);
	else
		answer = answer_message(message, handler, user);
	return answer ? serialize(answer) : NULL;
}

/* Lines */

/* False at the end. A line that is too long is read to its end and dropped; @ret_whole tells. */
static bool read_line(FILE *in, GString *line, bool *ret_whole)
{
	int c;

	g_string_truncate(line, 0);
	*ret_whole = true;
	while ((c = getc_unlocked(in)) != EOF && c != '\n') {
		if (line->len < RPC_LINE_MAX)
			g_string_append_c(line, (char)c);
		else
			*ret_whole = false;
	}
	return c != EOF || line->len > 0;
}

static char *answer_long_line(void)
{
	g_autoptr(GError) error = g_error_new(RPC_ERROR, RPC_ERROR_REQUEST, "a message may have %d bytes", RPC_LINE_MAX);

	return serialize(answer_error(NULL, error));
}

static bool is_blank(const GString *line)
{
	return strspn(line->str, " \t\r") == line->len;
}

void rpc_serve(FILE *in, FILE *out, rpc_handler handler, void *user)
{
	g_autoptr(GString) line = g_string_new(NULL);
	bool whole;

	while (read_line(in, line, &whole)) {
		g_autofree char *answer = NULL;

		if (is_blank(line))
			continue;
		answer = whole ? rpc_answer(line->str, line->len, handler, user) : answer_long_line();
		if (answer && (fprintf(out, "%s\n", answer) < 0 || fflush(out) != 0))
			return;
	}
}
