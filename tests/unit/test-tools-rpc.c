/* SPDX-License-Identifier: MIT */

/*
 * JSON-RPC from whoever speaks it: what is answered, with which code, what is not, and that nothing ends the server.
 */

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "tools/rpc.h"

static JsonNode *handle(const char *method, JsonObject *params, void *user, GError **error)
{
	unsigned *calls = user;

	++*calls;
	if (g_str_equal(method, "echo"))
		return json_node_init_object(json_node_alloc(), params);
	if (g_str_equal(method, "fail"))
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "no \xff such file");
	else
		g_set_error(error, RPC_ERROR, RPC_ERROR_METHOD, "no method");
	return NULL;
}

static void check(const char *line, const char *expected, unsigned expected_calls)
{
	unsigned calls = 0;
	g_autofree char *answer = rpc_answer(line, strlen(line), handle, &calls);

	g_assert_cmpstr(answer, ==, expected);
	g_assert_cmpuint(calls, ==, expected_calls);
}

#define ECHO_1 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}"
#define ANSWER_1 "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"

static void test_requests(void)
{
	check(ECHO_1, ANSWER_1, 1);
	check(" \t" ECHO_1 "\r", ANSWER_1, 1);
	check("{\"jsonrpc\":\"2.0\",\"id\":\"a\\u00e9\\n\",\"method\":\"echo\",\"params\":{\"x\":[{\"y\":\"}\\\"]\"}]}}",
	      "{\"jsonrpc\":\"2.0\",\"id\":\"a\xc3\xa9\\n\",\"result\":{\"x\":[{\"y\":\"}\\\"]\"}]}}", 1);
	check("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"other\"}",
	      "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no method\"}}", 1);
	check("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fail\"}",
	      "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"no \xef\xbf\xbd such file\"}}", 1);
}

static void test_no_answer(void)
{
	check("{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}", NULL, 1);
	check("{\"jsonrpc\":\"2.0\",\"method\":\"fail\"}", NULL, 1);
	check("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", NULL, 0);
	check("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"\"}}", NULL, 0);
}

static void test_batches(void)
{
	check("[" ECHO_1 ",{\"jsonrpc\":\"2.0\",\"method\":\"echo\"},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\"}]",
	      "[" ANSWER_1 ",{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]", 3);
	check("[{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}]", NULL, 1);
}

static gint64 code_of(const char *line, size_t size)
{
	unsigned calls = 0;
	g_autofree char *answer = rpc_answer(line, size, handle, &calls);
	g_autoptr(JsonNode) node = answer ? json_from_string(answer, NULL) : NULL;

	g_assert_nonnull(node);
	g_assert_cmpuint(calls, ==, 0);
	g_assert_null(strchr(answer, '\n'));
	return json_object_get_int_member(json_object_get_object_member(json_node_get_object(node), "error"), "code");
}

static void test_what_is_no_request(void)
{
	static const char *const lines[] = {
		"{}",
		"[]",
		"{\"id\":1,\"method\":\"echo\"}",
		"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"echo\"}",
		"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"echo\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}",
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"echo\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"echo\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"echo\"}",
	};
	const char positional[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1]}";

	for (unsigned i = 0; i < G_N_ELEMENTS(lines); i++)
		g_assert_cmpint(code_of(lines[i], strlen(lines[i])), ==, RPC_ERROR_REQUEST);
	g_assert_cmpint(code_of(positional, strlen(positional)), ==, RPC_ERROR_PARAMS);
}

static void test_what_is_no_json(void)
{
	static const char *const lines[] = {
		"x",
		"5",
		"null",
		"\"text\"",
		"{",
		"{\"a\":1,}",
		"{\"a\"",
		"{\"a\":\"",
		"{\"a\":\"\\",
		"{\"a\":\"x\x01\"}",
		"{\"a\":\"\\ud800\"}",
		"]",
		"{]",
		ECHO_1 ECHO_1,
		ECHO_1 " x",
		"/* no */" ECHO_1,
		"{'a':1}",
		"{\"a\":'\"'}",
		"{\"a\":\"\xff\"}",
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(lines); i++)
		g_assert_cmpint(code_of(lines[i], strlen(lines[i])), ==, RPC_ERROR_PARSE);
	g_assert_cmpint(code_of("{\"a\":\0001}", 7), ==, RPC_ERROR_PARSE);
}

/* Sound, and deep enough to take the whole stack of a parser that calls itself. */
static void test_deep_nesting(void)
{
	const unsigned depth = RPC_LINE_MAX / 2 - 10;
	g_autoptr(GString) line = g_string_new("{\"a\":");

	for (unsigned i = 0; i < depth; i++)
		g_string_append_c(line, '[');
	for (unsigned i = 0; i < depth; i++)
		g_string_append_c(line, ']');
	g_string_append_c(line, '}');
	g_assert_cmpint(code_of(line->str, line->len), ==, RPC_ERROR_PARSE);
}

/* Lines of any length: too long ones are answered and do not stop what follows; the last one may lack its end. */
static void test_lines(void)
{
	g_autoptr(GString) input = g_string_new("\n  \n" ECHO_1 "\n");
	unsigned calls = 0;
	size_t size = 0;
	char *output = NULL;
	FILE *in, *out;

	for (int i = 0; i < 3 * RPC_LINE_MAX; i++)
		g_string_append_c(input, '[');
	g_string_append(input, "\n" ECHO_1 "\n" ECHO_1);
	in = fmemopen(input->str, input->len, "r");
	out = open_memstream(&output, &size);
	rpc_serve(in, out, handle, &calls);
	fclose(in);
	fclose(out);
	g_assert_cmpuint(calls, ==, 3);
	g_assert_cmpstr(output, ==,
			ANSWER_1
			"\n{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"a message may have 1048576 "
			"bytes\"}}\n" ANSWER_1 "\n" ANSWER_1 "\n");
	free(output);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/tools/rpc/requests", test_requests);
	g_test_add_func("/tools/rpc/no_answer", test_no_answer);
	g_test_add_func("/tools/rpc/batches", test_batches);
	g_test_add_func("/tools/rpc/what_is_no_request", test_what_is_no_request);
	g_test_add_func("/tools/rpc/what_is_no_json", test_what_is_no_json);
	g_test_add_func("/tools/rpc/deep_nesting", test_deep_nesting);
	g_test_add_func("/tools/rpc/lines", test_lines);
	return g_test_run();
}
