/* SPDX-License-Identifier: MIT */
#include "gate/gate_report.h"

#include <inttypes.h>
#include <json-glib/json-glib.h>
#include <string.h>

#include "snapshot/diff.h"

static unsigned count(const struct gate_result *r, enum gate_level level)
{
	unsigned n = 0;

	for (guint i = 0; i < r->findings->len; i++)
		n += ((const struct gate_finding *)r->findings->pdata[i])->level == level;
	return n;
}

char *gate_report_counts(const struct gate_result *r)
{
	unsigned refused = count(r, GATE_REFUSE), review = count(r, GATE_REVIEW);
	GString *s = g_string_new(NULL);

	if (refused)
		g_string_append_printf(s, "%u refused", refused);
	if (review)
		g_string_append_printf(s, "%s%u to review", s->len ? ", " : "", review);
	if (r->unlisted)
		g_string_append_printf(s, "%s%" PRIu64 " more not listed", s->len ? ", " : "", r->unlisted);
	return s->len ? g_string_free(s, FALSE) : (g_string_free(s, TRUE), g_strdup("nothing found"));
}

/* Text */

static char *place_of(const struct gate_finding *f)
{
	g_autofree char *path = f->path ? diff_quote_path(f->path) : g_strdup("(all changes)");

	return f->line ? g_strdup_printf("%s:%" PRIu64, path, f->line) : g_steal_pointer(&path);
}

void gate_report_text(const struct gate_result *r, bool all, gate_write write, void *user)
{
	for (guint i = 0; i < r->findings->len; i++) {
		const struct gate_finding *f = r->findings->pdata[i];
		g_autofree char *place = place_of(f), *line = NULL;

		if (f->level == GATE_PASS && !all)
			continue;
		line = g_strdup_printf("%-6s  %s  %s: %s%s%s%s%s%s\n", gate_level_name(f->level), f->rule, place, f->message,
				       f->excerpt ? ": " : "", f->excerpt ? f->excerpt : "", f->fingerprint ? " [" : "",
				       f->fingerprint ? f->fingerprint : "", f->fingerprint ? "]" : "");
		write(line, strlen(line), user);
	}
}

/* JSON */

static void add_string(JsonBuilder *b, const char *key, const char *text)
{
	g_autofree char *valid = text ? g_utf8_make_valid(text, -1) : NULL;

	json_builder_set_member_name(b, key);
	if (valid)
		json_builder_add_string_value(b, valid);
	else
		json_builder_add_null_value(b);
}

static void add_int(JsonBuilder *b, const char *key, int64_t value)
{
	json_builder_set_member_name(b, key);
	json_builder_add_int_value(b, value);
}

static void add_bool(JsonBuilder *b, const char *key, bool value)
{
	json_builder_set_member_name(b, key);
	json_builder_add_boolean_value(b, value);
}

static void begin_object(JsonBuilder *b, const char *key)
{
	json_builder_set_member_name(b, key);
	json_builder_begin_object(b);
}

static void begin_array(JsonBuilder *b, const char *key)
{
	json_builder_set_member_name(b, key);
	json_builder_begin_array(b);
}

static void finish(JsonBuilder *b, gate_write write, void *user)
{
	g_autoptr(JsonGenerator) generator = json_generator_new();
	JsonNode *root = json_builder_get_root(b);
	g_autofree char *text = NULL;

	json_generator_set_root(generator, root);
	text = json_generator_to_data(generator, NULL);
	json_node_unref(root);
	write(text, strlen(text), user);
	write("\n", 1, user);
}

static void add_path(JsonBuilder *b, const char *path)
{
	g_autofree char *encoded = NULL;

	add_string(b, "path", path && !*path ? "." : path);
	if (!path || g_utf8_validate(path, -1, NULL))
		return;
	encoded = g_base64_encode((const guchar *)path, strlen(path));
	add_string(b, "path_b64", encoded);
}

static void add_finding(JsonBuilder *b, const struct gate_finding *f)
{
	json_builder_begin_object(b);
	add_string(b, "check", gate_check_name(f->check));
	add_string(b, "level", gate_level_name(f->level));
	add_path(b, f->path);
	if (f->line)
		add_int(b, "line", (int64_t)f->line);
	else
		add_string(b, "line", NULL);
	add_string(b, "rule", f->rule);
	add_string(b, "message", f->message);
	add_string(b, "excerpt", f->excerpt);
	add_string(b, "fingerprint", f->fingerprint);
	json_builder_end_object(b);
}

static void add_test(JsonBuilder *b, const struct gate_test *t)
{
	if (!t->command) {
		add_string(b, "test", NULL);
		return;
	}
	begin_object(b, "test");
	add_string(b, "command", t->command);
	add_bool(b, "ran", t->ran);
	if (t->ran)
		add_int(b, "status", t->status);
	else
		add_string(b, "status", NULL);
	add_int(b, "duration_ms", t->duration / 1000000);
	add_string(b, "reason", t->reason);
	json_builder_end_object(b);
}

void gate_report_json(const struct gate_result *r, const struct gate_report_names *names, gate_write write, void *user)
{
	g_autoptr(JsonBuilder) b = json_builder_new();

	json_builder_begin_object(b);
	add_string(b, "schema", "sbxfs.gate/1");
	add_string(b, "sandbox", names->sandbox);
	add_string(b, "workspace", names->workspace);
	add_string(b, "digest", names->digest);
	add_string(b, "verdict", gate_level_name(r->verdict));
	begin_array(b, "checks");
	for (unsigned i = 0; i < GATE_CHECKS; i++)
		if (r->checks & 1u << i)
			json_builder_add_string_value(b, gate_check_name((enum gate_check)i));
	json_builder_end_array(b);
	begin_array(b, "findings");
	for (guint i = 0; i < r->findings->len; i++)
		add_finding(b, r->findings->pdata[i]);
	json_builder_end_array(b);
	add_int(b, "unlisted", (int64_t)r->unlisted);
	add_test(b, &r->test);
	json_builder_end_object(b);
	finish(b, write, user);
}

/* SARIF */

static void add_text(JsonBuilder *b, const char *key, const char *text)
{
	begin_object(b, key);
	add_string(b, "text", text);
	json_builder_end_object(b);
}

static void add_rules(JsonBuilder *b, const struct gate_result *r)
{
	g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

	begin_array(b, "rules");
	for (guint i = 0; i < r->findings->len; i++) {
		const struct gate_finding *f = r->findings->pdata[i];
		g_autofree char *about = g_strdup_printf("Check \"%s\" of the gate", gate_check_name(f->check));

		if (!g_hash_table_add(seen, f->rule))
			continue;
		json_builder_begin_object(b);
		add_string(b, "id", f->rule);
		add_text(b, "shortDescription", about);
		json_builder_end_object(b);
	}
	json_builder_end_array(b);
}

static void add_location(JsonBuilder *b, const struct gate_finding *f)
{
	g_autofree char *uri = g_uri_escape_bytes((const uint8_t *)f->path, strlen(f->path), "/");

	begin_array(b, "locations");
	json_builder_begin_object(b);
	begin_object(b, "physicalLocation");
	begin_object(b, "artifactLocation");
	add_string(b, "uri", uri);
	add_string(b, "uriBaseId", "SRCROOT");
	json_builder_end_object(b);
	if (f->line) {
		begin_object(b, "region");
		add_int(b, "startLine", (int64_t)f->line);
		json_builder_end_object(b);
	}
	json_builder_end_object(b);
	json_builder_end_object(b);
	json_builder_end_array(b);
}

static void add_result(JsonBuilder *b, const struct gate_finding *f)
{
	static const char *const levels[] = { "none", "warning", "error" };
	g_autofree char *message = f->excerpt ? g_strdup_printf("%s: %s", f->message, f->excerpt) : g_strdup(f->message);

	json_builder_begin_object(b);
	add_string(b, "ruleId", f->rule);
	add_string(b, "kind", f->level == GATE_PASS ? "informational" : "fail");
	add_string(b, "level", levels[f->level]);
	add_text(b, "message", message);
	if (f->path)
		add_location(b, f);
	if (f->fingerprint) {
		begin_object(b, "partialFingerprints");
		add_string(b, "sbxfsGate/v1", f->fingerprint);
		json_builder_end_object(b);
	}
	json_builder_end_object(b);
}

static void add_run(JsonBuilder *b, const struct gate_result *r, const struct gate_report_names *names)
{
	g_autofree char *path = g_uri_escape_bytes((const uint8_t *)names->workspace, strlen(names->workspace), "/");
	g_autofree char *root = g_strdup_printf("file://%s%s", path, g_str_has_suffix(path, "/") ? "" : "/");

	json_builder_begin_object(b);
	begin_object(b, "tool");
	begin_object(b, "driver");
	add_string(b, "name", "sbxfs gate");
	add_string(b, "version", SBXFS_VERSION);
	add_rules(b, r);
	json_builder_end_object(b);
	json_builder_end_object(b);
	begin_object(b, "originalUriBaseIds");
	begin_object(b, "SRCROOT");
	add_string(b, "uri", root);
	json_builder_end_object(b);
	json_builder_end_object(b);
	begin_array(b, "results");
	for (guint i = 0; i < r->findings->len; i++)
		add_result(b, r->findings->pdata[i]);
	json_builder_end_array(b);
	begin_object(b, "properties");
	add_string(b, "verdict", gate_level_name(r->verdict));
	add_string(b, "digest", names->digest);
	add_int(b, "unlisted", (int64_t)r->unlisted);
	json_builder_end_object(b);
	json_builder_end_object(b);
}

void gate_report_sarif(const struct gate_result *r, const struct gate_report_names *names, gate_write write, void *user)
{
	g_autoptr(JsonBuilder) b = json_builder_new();

	json_builder_begin_object(b);
	add_string(b, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	add_string(b, "version", "2.1.0");
	begin_array(b, "runs");
	add_run(b, r, names);
	json_builder_end_array(b);
	json_builder_end_object(b);
	finish(b, write, user);
}
