/* SPDX-License-Identifier: MIT */
#include "tools/mcp_tools.h"

#include <stdbool.h>
#include <string.h>

#include "tools/exit.h"
#include "tools/own_command.h"
#include "tools/rpc.h"

#define ANSWER_MAX (64 * 1024 * 1024) /* of one JSON object, which is held in memory */
#define PAGE_DEFAULT (32 * 1024)
#define PAGE_MIN 1024
#define PAGE_MAX (256 * 1024)
#define DIFF_TRIES 4

typedef JsonNode *(*tool_run)(JsonObject *arguments, const char *target, GError **error);

static JsonNode *run_status(JsonObject *arguments, const char *target, GError **error);
static JsonNode *run_diff(JsonObject *arguments, const char *target, GError **error);
static JsonNode *run_snapshot(JsonObject *arguments, const char *target, GError **error);
static JsonNode *run_why(JsonObject *arguments, const char *target, GError **error);

static const struct tool {
	const char *name;
	tool_run run;
	bool read_only;
	const char *title, *description;
	const char *properties; /* of the input schema */
	const char *required;
} tools[] = {
	{ "status", run_status, true, "Status of the sandbox",
	  "The sandbox that this project's view belongs to: workspace, mountpoint, policy, number of changed paths, snapshots, "
	  "disk use.",
	  "{}", "[]" },
	{ "diff", run_diff, true, "Changes in the sandbox",
	  "What the view has changed against the workspace, or between snapshots. The first part of the answer has the digest, the "
	  "counts and "
	  "every deleted path, whatever the page's size; the second the page of text. Where there is more, the first part has "
	  "next_offset.",
	  "{'paths': {'type': 'array', 'items': {'type': 'string'}, 'description': 'Only these paths or patterns, and what is "
	  "below them'},"
	  " 'format': {'type': 'string', 'enum': ['patch', 'stat', 'name-status'], 'description': 'Default: patch'},"
	  " 'from': {'type': 'string', 'description': 'A snapshot to compare with, instead of the workspace'},"
	  " 'to': {'type': 'string', 'description': 'A snapshot to show, instead of the view as it is now'},"
	  " 'offset': {'type': 'integer', 'minimum': 0, 'description': 'Where the page begins, in bytes: next_offset of the page "
	  "before'},"
	  " 'limit': {'type': 'integer', 'minimum': 1024, 'maximum': 262144, 'description': 'Bytes of the page; default 32768'}}",
	  "[]" },
	{ "snapshot", run_snapshot, false, "Snapshots of the sandbox",
	  "Gives the present state of the view a name (create), or lists the names there are (list). Cheap, whatever has changed. "
	  "Only the user can "
	  "go back to one: sbxfs rollback --to NAME.",
	  "{'action': {'type': 'string', 'enum': ['create', 'list']},"
	  " 'name': {'type': 'string', 'description': 'For create: no spaces and slashes, no - or @ in front'}}",
	  "['action']" },
	{ "why", run_why, true, "The rule for a path",
	  "Which rule of the policy decides about a path, and whether an operation on it is allowed. For a permission error or a "
	  "read-only file.",
	  "{'path': {'type': 'string'},"
	  " 'op': {'type': 'string', 'enum': ['list', 'stat', 'read', 'write', 'create', 'delete', 'rename', 'chmod']}}",
	  "['path']" },
};

/* The list */

static JsonNode *schema_part(const char *text)
{
	g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');

	return json_from_string(json, NULL);
}

static JsonObject *schema_of(const struct tool *t)
{
	JsonObject *schema = json_object_new();

	json_object_set_string_member(schema, "type", "object");
	json_object_set_member(schema, "properties", schema_part(t->properties));
	json_object_set_member(schema, "required", schema_part(t->required));
	json_object_set_boolean_member(schema, "additionalProperties", FALSE);
	return schema;
}

static JsonObject *describe(const struct tool *t)
{
	JsonObject *o = json_object_new();
	JsonObject *hints = json_object_new();

	json_object_set_string_member(o, "name", t->name);
	json_object_set_string_member(o, "title", t->title);
	json_object_set_string_member(o, "description", t->description);
	json_object_set_object_member(o, "inputSchema", schema_of(t));
	json_object_set_boolean_member(hints, "readOnlyHint", t->read_only);
	json_object_set_boolean_member(hints, "destructiveHint", FALSE);
	json_object_set_boolean_member(hints, "openWorldHint", FALSE);
	json_object_set_object_member(o, "annotations", hints);
	return o;
}

static JsonNode *node_of(JsonObject *o)
{
	JsonNode *node = json_node_new(JSON_NODE_OBJECT);

	json_node_take_object(node, o);
	return node;
}

JsonNode *mcp_tools_list(void)
{
	JsonObject *result = json_object_new();
	JsonArray *all = json_array_new();

	for (unsigned i = 0; i < G_N_ELEMENTS(tools); i++)
		json_array_add_object_element(all, describe(&tools[i]));
	json_object_set_array_member(result, "tools", all);
	return node_of(result);
}

/* Arguments */

G_GNUC_PRINTF(2, 3)
static bool refuse(GError **error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	*error = g_error_new_valist(RPC_ERROR, RPC_ERROR_PARAMS, format, args);
	va_end(args);
	return false;
}

static bool is_string(JsonNode *node)
{
	return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING;
}

/* NULL when it is not there. */
static bool get_string(JsonObject *arguments, const char *key, const char **ret, GError **error)
{
	JsonNode *node = json_object_get_member(arguments, key);

	*ret = NULL;
	if (!node)
		return true;
	if (!is_string(node))
		return refuse(error, "\"%s\" must be a string", key);
	*ret = json_node_get_string(node);
	return true;
}

static bool get_number(JsonObject *arguments, const char *key, int64_t min, int64_t max, int64_t *number, GError **error)
{
	JsonNode *node = json_object_get_member(arguments, key);

	if (!node)
		return true;
	if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_INT64 || json_node_get_int(node) < min ||
	    json_node_get_int(node) > max)
		return refuse(error, "\"%s\" must be a whole number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, key, min, max);
	*number = json_node_get_int(node);
	return true;
}

/* The schema says it too, but not every client asks it. */
static bool check_names(const struct tool *t, JsonObject *arguments, GError **error)
{
	g_autoptr(JsonNode) properties = schema_part(t->properties);
	g_autoptr(GList) names = json_object_get_members(arguments);

	for (GList *name = names; name; name = name->next)
		if (!json_object_has_member(json_node_get_object(properties), name->data))
			return refuse(error, "%s takes no argument \"%s\"", t->name, (char *)name->data);
	return true;
}

/* Results */

static void add_text(JsonArray *content, const char *text, ssize_t size)
{
	g_autofree char *valid = g_utf8_make_valid(text, size);
	JsonObject *part = json_object_new();

	json_object_set_string_member(part, "type", "text");
	json_object_set_string_member(part, "text", valid);
	json_array_add_object_element(content, part);
}

static JsonObject *result_new(JsonArray *content, bool is_error)
{
	JsonObject *result = json_object_new();

	json_object_set_array_member(result, "content", content);
	json_object_set_boolean_member(result, "isError", is_error);
	return result;
}

static JsonNode *result_of_failure(const char *message)
{
	JsonArray *content = json_array_new();

	add_text(content, message, -1);
	return node_of(result_new(content, true));
}

/* What the command had to say goes to whoever called: names, remedies. */
static JsonNode *result_of_exit(const struct own_result *r)
{
	g_autofree char *message = g_strdup_printf("%s(exit code %d)", r->err->str, r->code);

	return result_of_failure(message);
}

/* Commands */

/* Runs a command that answers with one JSON object. NULL with *@ret_failure set to the result to send instead. */
static JsonNode *run_json(GPtrArray *arguments, JsonNode **ret_failure)
{
	const struct own_command command = { .arguments = (const char *const *)arguments->pdata, .limit = ANSWER_MAX };
	g_auto(own_result_t) r = { 0 };
	g_autoptr(GError) error = NULL;
	JsonNode *answer = NULL;

	if (!own_command_run(&command, &r, &error))
		*ret_failure = result_of_failure(error->message);
	else if (r.code != EXIT_DONE)
		*ret_failure = result_of_exit(&r);
	else if (r.size > ANSWER_MAX)
		*ret_failure = result_of_failure("the answer is too long; ask for fewer paths");
	else if (!(answer = json_from_string(r.out->str, &error)))
		*ret_failure = result_of_failure(error ? error->message : "the command gave no answer");
	return answer;
}

static GPtrArray *arguments_new(const char *command, const char *option, const char *target)
{
	GPtrArray *all = g_ptr_array_new_with_free_func(g_free);

	g_ptr_array_add(all, g_strdup(command));
	if (option)
		g_ptr_array_add(all, g_strdup(option));
	if (target)
		g_ptr_array_add(all, g_strdup(target));
	return all;
}

/* As text for whoever reads it, and as it is for programs. */
static JsonNode *run_simple(GPtrArray *arguments)
{
	JsonNode *failure = NULL;
	g_autoptr(JsonNode) answer = NULL;
	g_autofree char *text = NULL;
	JsonArray *content;
	JsonObject *result;

	g_ptr_array_add(arguments, NULL);
	answer = run_json(arguments, &failure);
	if (!answer)
		return failure;
	text = json_to_string(answer, TRUE);
	content = json_array_new();
	add_text(content, text, -1);
	result = result_new(content, false);
	json_object_set_member(result, "structuredContent", g_steal_pointer(&answer));
	return node_of(result);
}

static JsonNode *run_status(JsonObject *arguments, const char *target, GError **error)
{
	g_autoptr(GPtrArray) command = arguments_new("status", "--json", target);

	(void)arguments;
	(void)error;
	return run_simple(command);
}

static JsonNode *run_why(JsonObject *arguments, const char *target, GError **error)
{
	g_autoptr(GPtrArray) command = arguments_new("why", "--json", NULL);
	const char *path, *op;

	if (!get_string(arguments, "path", &path, error) || !get_string(arguments, "op", &op, error))
		return NULL;
	if (!path) {
		refuse(error, "why needs a \"path\"");
		return NULL;
	}
	if (op)
		g_ptr_array_add(command, g_strconcat("--op=", op, NULL));
	g_ptr_array_add(command, g_strconcat(*path == '-' ? "./" : "", path, NULL));
	if (target)
		g_ptr_array_add(command, g_strdup(target));
	return run_simple(command);
}

static JsonNode *run_snapshot(JsonObject *arguments, const char *target, GError **error)
{
	g_autoptr(GPtrArray) command = NULL;
	const char *action, *name;

	if (!get_string(arguments, "action", &action, error) || !get_string(arguments, "name", &name, error))
		return NULL;
	if (g_strcmp0(action, "list") == 0) {
		command = arguments_new("snapshot", "--json", "list");
	} else if (g_strcmp0(action, "create") == 0 && name && *name && *name != '-') {
		command = arguments_new("snapshot", "--json", "create");
		g_ptr_array_add(command, g_strdup(name));
	} else {
		refuse(error, "snapshot needs an \"action\", create or list, and create a \"name\" without - in front");
		return NULL;
	}
	if (target)
		g_ptr_array_add(command, g_strdup(target));
	return run_simple(command);
}

/* Differences */

struct diff_query {
	const char *format, *from, *to;
	int64_t offset, limit;
	JsonArray *paths; /* NULL = all */
	const char *target;
};

static bool get_paths(JsonObject *arguments, JsonArray **ret, GError **error)
{
	JsonNode *node = json_object_get_member(arguments, "paths");
	bool good = !node || JSON_NODE_HOLDS_ARRAY(node);

	*ret = node && good ? json_node_get_array(node) : NULL;
	for (unsigned i = 0; *ret && i < json_array_get_length(*ret); i++)
		good = good && is_string(json_array_get_element(*ret, i));
	return good || refuse(error, "\"paths\" must be an array of strings");
}

static bool get_query(JsonObject *arguments, struct diff_query *q, GError **error)
{
	if (!get_string(arguments, "format", &q->format, error) || !get_string(arguments, "from", &q->from, error) ||
	    !get_string(arguments, "to", &q->to, error) || !get_paths(arguments, &q->paths, error) ||
	    !get_number(arguments, "offset", 0, G_MAXINT64, &q->offset, error) ||
	    !get_number(arguments, "limit", PAGE_MIN, PAGE_MAX, &q->limit, error))
		return false;
	if (!q->format)
		q->format = "patch";
	return g_str_equal(q->format, "patch") || g_str_equal(q->format, "stat") || g_str_equal(q->format, "name-status") ||
	       refuse(error, "\"format\" must be patch, stat or name-status");
}

/* @option: how to answer; NULL = as a patch. */
static GPtrArray *diff_arguments(const struct diff_query *q, const char *option)
{
	GPtrArray *command = arguments_new("diff", option, q->target);

	if (q->from)
		g_ptr_array_add(command, g_strconcat("--from=", q->from, NULL));
	if (q->to)
		g_ptr_array_add(command, g_strconcat("--to=", q->to, NULL));
	if (q->paths)
		g_ptr_array_add(command, g_strdup("--"));
	for (unsigned i = 0; q->paths && i < json_array_get_length(q->paths); i++)
		g_ptr_array_add(command, g_strdup(json_array_get_string_element(q->paths, i)));
	g_ptr_array_add(command, NULL);
	return command;
}

static void add_deleted(JsonObject *head, JsonObject *diff)
{
	JsonArray *changes = json_object_get_array_member(diff, "changes");
	JsonArray *deleted = json_array_new();

	for (unsigned i = 0; i < json_array_get_length(changes); i++) {
		JsonObject *change = json_array_get_object_element(changes, i);

		if (g_str_equal(json_object_get_string_member(change, "status"), "D"))
			json_array_add_string_element(deleted, json_object_get_string_member(change, "path"));
	}
	json_object_set_array_member(head, "deleted", deleted);
}

/* What the first page has besides: the digest, the counts, and every deletion, also of what a page shows as a rename by its content. */
static JsonObject *read_head(const struct diff_query *q, JsonNode **ret_failure)
{
	g_autoptr(GPtrArray) command = diff_arguments(q, "--json");
	g_autoptr(JsonNode) answer = NULL;
	JsonObject *diff, *head;

	g_ptr_array_insert(command, 1, g_strdup("--no-renames"));
	answer = run_json(command, ret_failure);
	if (!answer)
		return NULL;
	diff = json_node_get_object(answer);
	head = json_object_new();
	json_object_set_string_member(head, "digest", json_object_get_string_member(diff, "digest"));
	json_object_set_member(head, "summary", json_node_copy(json_object_get_member(diff, "summary")));
	add_deleted(head, diff);
	return head;
}

/* A diff tells the digest on standard error, unless there are no changes or it lists only names. Caller frees. */
static char *digest_told(const struct own_result *r)
{
	const char *at = strstr(r->err->str, "digest: ");

	return at ? g_strndup(at + strlen("digest: "), strcspn(at + strlen("digest: "), "\n")) : NULL;
}

/* A page ends with a line, if one ends in its second half, and never within a character. */
static size_t page_length(const GString *text, bool is_last)
{
	const char *newline = g_strrstr_len(text->str, text->len, "\n");
	size_t n = newline ? (size_t)(newline - text->str) + 1 : 0;

	if (is_last)
		return text->len;
	if (n > text->len / 2)
		return n;
	for (n = text->len; n > text->len - 3 && ((unsigned char)text->str[n - 1] & 0xc0) == 0x80; n--)
		;
	return ((unsigned char)text->str[n - 1] & 0xc0) == 0xc0 ? n - 1 : text->len;
}

static JsonNode *diff_result(const struct diff_query *q, JsonObject *head, const struct own_result *page)
{
	bool is_last = (uint64_t)q->offset + page->out->len >= page->size;
	size_t length = page_length(page->out, is_last);
	g_autoptr(JsonNode) node = node_of(head);
	JsonArray *content = json_array_new();
	g_autofree char *text = NULL;

	json_object_set_int_member(head, "offset", q->offset);
	json_object_set_int_member(head, "size", (gint64)page->size);
	if (!is_last)
		json_object_set_int_member(head, "next_offset", q->offset + (gint64)length);
	text = json_to_string(node, FALSE);
	add_text(content, text, -1);
	add_text(content, page->out->str, (ssize_t)length);
	return node_of(result_new(content, false));
}

static bool is_same_state(JsonObject *head, const char *digest)
{
	return !digest || g_strcmp0(json_object_get_string_member(head, "digest"), digest) == 0;
}

/* Two commands look at one state if their digests agree; in a view that is being worked in that takes another try. */
static JsonNode *try_diff(const struct diff_query *q, bool *ret_same, GPtrArray *text_command)
{
	const struct own_command command = { .arguments = (const char *const *)text_command->pdata,
					     .offset = (uint64_t)q->offset,
					     .limit = (size_t)q->limit };
	JsonNode *failure = NULL;
	g_autoptr(JsonObject) head = q->offset ? json_object_new() : read_head(q, &failure);
	g_auto(own_result_t) page = { 0 };
	g_autoptr(GError) error = NULL;
	g_autofree char *digest = NULL;

	*ret_same = true;
	if (!head)
		return failure;
	if (!own_command_run(&command, &page, &error))
		return result_of_failure(error->message);
	if (page.code != EXIT_DONE)
		return result_of_exit(&page);
	digest = digest_told(&page);
	if (q->offset && digest)
		json_object_set_string_member(head, "digest", digest);
	*ret_same = is_same_state(head, digest);
	return diff_result(q, g_steal_pointer(&head), &page);
}

static JsonNode *run_diff(JsonObject *arguments, const char *target, GError **error)
{
	struct diff_query q = { .limit = PAGE_DEFAULT, .target = target };
	g_autoptr(GPtrArray) command = NULL;
	g_autofree char *option = NULL;

	if (!get_query(arguments, &q, error))
		return NULL;
	option = g_str_equal(q.format, "patch") ? NULL : g_strconcat("--", q.format, NULL);
	command = diff_arguments(&q, option);
	for (int i = 0; i < DIFF_TRIES; i++) {
		bool same;
		g_autoptr(JsonNode) result = try_diff(&q, &same, command);

		if (same)
			return g_steal_pointer(&result);
	}
	return result_of_failure("the view is being changed all the time; try again, or take a snapshot and show that with \"to\"");
}

/* The call */

JsonNode *mcp_tools_call(JsonObject *params, const char *target, GError **error)
{
	JsonNode *arguments = json_object_get_member(params, "arguments");
	g_autoptr(JsonObject) none = json_object_new();
	const char *name;

	if (!get_string(params, "name", &name, error))
		return NULL;
	if (arguments && !JSON_NODE_HOLDS_OBJECT(arguments)) {
		refuse(error, "\"arguments\" must be an object");
		return NULL;
	}
	for (unsigned i = 0; name && i < G_N_ELEMENTS(tools); i++) {
		JsonObject *given = arguments ? json_node_get_object(arguments) : none;

		if (g_str_equal(tools[i].name, name))
			return check_names(&tools[i], given, error) ? tools[i].run(given, target, error) : NULL;
	}
	refuse(error, "there is no tool \"%s\"", name ? name : "");
	return NULL;
}
