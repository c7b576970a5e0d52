/* SPDX-License-Identifier: MIT */
#include "snapshot/audit_json.h"

#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <string.h>

static void add_text(JsonBuilder *b, const char *key, const char *value)
{
	json_builder_set_member_name(b, key);
	json_builder_add_string_value(b, value);
}

static void add_int(JsonBuilder *b, const char *key, int64_t value)
{
	json_builder_set_member_name(b, key);
	json_builder_add_int_value(b, value);
}

static void add_bytes(JsonBuilder *b, const char *key, const char *value)
{
	g_autofree char *valid = value ? g_utf8_make_valid(value, -1) : NULL;

	if (!value)
		return;
	add_text(b, key, valid);
	if (strcmp(valid, value) != 0) {
		g_autofree char *encoded = g_base64_encode((const guchar *)value, strlen(value));
		g_autofree char *encoded_key = g_strconcat(key, "_b64", NULL);

		add_text(b, encoded_key, encoded);
	}
}

static char *time_text(int64_t ns)
{
	g_autoptr(GDateTime) second = g_date_time_new_from_unix_utc(ns / 1000000000);
	g_autoptr(GDateTime) time = second ? g_date_time_add(second, ns % 1000000000 / 1000) : NULL;

	return time ? g_date_time_format(time, "%Y-%m-%dT%H:%M:%S.%fZ") : g_strdup("?");
}

static void add_hash(JsonBuilder *b, const uint8_t *hash)
{
	char hex[65];

	for (int i = 0; i < 32; i++)
		g_snprintf(hex + 2 * i, 3, "%02x", hash[i]);
	add_text(b, "hash", hex);
}

/* The detail of what was executed is JSON itself, and an object here. */
static bool add_command(JsonBuilder *b, const struct audit_record *r)
{
	bool is_json = r->kind == AUDIT_COMMAND && r->detail && (!strcmp(r->operation, "exec") || !strcmp(r->operation, "exit"));
	JsonNode *node = is_json ? json_from_string(r->detail, NULL) : NULL;

	if (!node)
		return false;
	json_builder_set_member_name(b, "command");
	json_builder_add_value(b, node);
	return true;
}

char *audit_json_line(const struct audit_record *r, const uint8_t *hash)
{
	g_autoptr(JsonBuilder) b = json_builder_new();
	g_autoptr(JsonGenerator) generator = json_generator_new();
	g_autofree char *time = time_text(r->time);
	JsonNode *root;
	char *text;

	json_builder_begin_object(b);
	add_text(b, "schema", "sbxfs.audit/1");
	if (r->seq)
		add_int(b, "seq", r->seq);
	add_text(b, "time", time);
	add_text(b, "kind", audit_kind_name(r->kind));
	add_bytes(b, "operation", r->operation);
	add_bytes(b, "path", r->path);
	add_bytes(b, "new_path", r->new_path);
	add_bytes(b, "verdict", r->verdict);
	add_bytes(b, "rule", r->rule);
	add_text(b, "result", r->result ? g_strerror(r->result) : "ok");
	add_int(b, "errno", r->result);
	add_int(b, "pid", r->pid);
	add_int(b, "uid", r->uid);
	add_bytes(b, "program", r->program);
	if (!add_command(b, r))
		add_bytes(b, "detail", r->detail);
	if (hash)
		add_hash(b, hash);
	json_builder_end_object(b);
	root = json_builder_get_root(b);
	json_generator_set_root(generator, root);
	text = json_generator_to_data(generator, NULL);
	json_node_unref(root);
	return text;
}
