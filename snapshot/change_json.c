/* SPDX-License-Identifier: MIT */
#include "snapshot/change_json.h"

#include <json-glib/json-glib.h>
#include <string.h>

#include "snapshot/xattr.h"

struct json_totals {
	uint64_t by_status[128];
	uint64_t added;
	uint64_t removed;
	uint64_t binary;
};

struct json_sink {
	diff_write write;
	void *user;
};

static void put(struct json_sink *s, const char *text)
{
	s->write(text, strlen(text), s->user);
}

static void add_text(JsonBuilder *b, const char *key, const char *text)
{
	json_builder_set_member_name(b, key);
	json_builder_add_string_value(b, text);
}

static void add_number(JsonBuilder *b, const char *key, uint64_t value)
{
	json_builder_set_member_name(b, key);
	json_builder_add_int_value(b, value);
}

/* Bytes that should be text: JSON can hold only UTF-8. */
static void add_bytes(JsonBuilder *b, const char *key, const char *bytes)
{
	g_autofree char *valid = NULL, *encoded = NULL, *encoded_key = NULL;

	if (g_utf8_validate(bytes, -1, NULL)) {
		add_text(b, key, bytes);
		return;
	}
	valid = g_utf8_make_valid(bytes, -1);
	encoded = g_base64_encode((const guchar *)bytes, strlen(bytes));
	encoded_key = g_strconcat(key, "_b64", NULL);
	add_text(b, key, valid);
	add_text(b, encoded_key, encoded);
}

static char *to_text(JsonBuilder *b)
{
	g_autoptr(JsonGenerator) generator = json_generator_new();
	JsonNode *root = json_builder_get_root(b);
	char *text;

	json_generator_set_root(generator, root);
	text = json_generator_to_data(generator, NULL);
	json_node_unref(root);
	return text;
}

static const char *type_name(uint32_t mode)
{
	return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "symlink" : "special";
}

static void add_xattr(const char *name, const void *value, size_t size, void *user)
{
	g_autofree char *encoded = g_base64_encode(value, size);
	g_autofree char *valid = g_utf8_make_valid(name, -1);

	add_text(user, valid, encoded);
}

static int add_side(JsonBuilder *b, const char *key, struct tree *t, const struct entry *e, const uint8_t *sha256,
		    GBytes *xattrs)
{
	g_autofree char *mode = g_strdup_printf("%06o", e->attr.mode), *target = NULL;
	int r = 0;

	json_builder_set_member_name(b, key);
	json_builder_begin_object(b);
	add_text(b, "type", type_name(e->attr.mode));
	add_text(b, "mode", mode);
	add_number(b, "uid", e->attr.uid);
	add_number(b, "gid", e->attr.gid);
	if (S_ISREG(e->attr.mode))
		add_number(b, "size", e->attr.size);
	if (S_ISLNK(e->attr.mode))
		r = tree_readlink(t, e, &target);
	if (target) {
		add_number(b, "size", strlen(target));
		add_bytes(b, "target", target);
	}
	if (sha256) {
		GString *hex = g_string_new(NULL);

		for (int i = 0; i < 32; i++)
			g_string_append_printf(hex, "%02x", sha256[i]);
		add_text(b, "sha256", hex->str);
		g_string_free(hex, TRUE);
	}
	if (xattrs) {
		json_builder_set_member_name(b, "xattrs");
		json_builder_begin_object(b);
		xattrs_foreach(xattrs, add_xattr, b);
		json_builder_end_object(b);
	}
	json_builder_end_object(b);
	return r;
}

static int add_sides(JsonBuilder *b, const struct change *c, struct tree *from, struct tree *to)
{
	g_autoptr(GBytes) old = NULL, new = NULL;
	int r = 0;

	if (c->before)
		r = change_xattrs(from, c->before, &old);
	if (r == 0 && c->after)
		r = change_xattrs(to, c->after, &new);
	if (xattrs_equal(old, new)) {
		g_clear_pointer(&old, g_bytes_unref);
		g_clear_pointer(&new, g_bytes_unref);
	}
	if (r == 0 && c->before)
		r = add_side(b, "old", from, c->before, c->has_sha256_before ? c->sha256_before : NULL, old);
	if (r == 0 && c->after)
		r = add_side(b, "new", to, c->after, c->has_sha256_after ? c->sha256_after : NULL, new);
	return r;
}

static int change_to_json(const struct change *c, struct tree *from, struct tree *to, struct json_totals *totals,
			  char **ret, GError **error)
{
	g_autoptr(JsonBuilder) b = json_builder_new();
	const char status[] = { c->status, '\0' };
	uint64_t added, removed;
	bool binary;
	int r = diff_count_lines(c, from, to, &added, &removed, &binary, error);

	if (r < 0)
		return r;
	json_builder_begin_object(b);
	add_bytes(b, "path", *c->path ? c->path : ".");
	add_text(b, "status", status);
	if (c->from_path) {
		add_bytes(b, "from_path", c->from_path);
		add_number(b, "similarity", c->similarity);
	}
	r = add_sides(b, c, from, to);
	if (r < 0)
		return change_error(error, r, "can't read", c->path);
	json_builder_set_member_name(b, "binary");
	json_builder_add_boolean_value(b, binary);
	add_number(b, "added", added);
	add_number(b, "removed", removed);
	json_builder_end_object(b);
	totals->by_status[c->status & 127]++;
	totals->added += added;
	totals->removed += removed;
	totals->binary += binary;
	*ret = to_text(b);
	return 0;
}

/* Everything before the list. The closing brace is taken off again: the list and the summary follow. */
static char *head_to_json(const struct change_json_names *names)
{
	g_autoptr(JsonBuilder) b = json_builder_new();
	char *text;

	json_builder_begin_object(b);
	add_text(b, "schema", "sbxfs.diff/1");
	add_bytes(b, "sandbox", names->sandbox);
	add_bytes(b, "workspace", names->workspace);
	add_bytes(b, "from", names->from);
	add_bytes(b, "to", names->to);
	add_text(b, "digest", names->digest);
	json_builder_end_object(b);
	text = to_text(b);
	text[strlen(text) - 1] = '\0';
	return text;
}

static char *summary_to_json(guint n, const struct json_totals *totals)
{
	static const struct {
		const char *key;
		enum change_status status;
	} counts[] = {
		{ "added", CHANGE_ADDED },     { "modified", CHANGE_MODIFIED }, { "deleted", CHANGE_DELETED },
		{ "renamed", CHANGE_RENAMED }, { "type", CHANGE_TYPE },		{ "permission", CHANGE_PERMISSION },
		{ "xattr", CHANGE_XATTR },
	};
	g_autoptr(JsonBuilder) b = json_builder_new();

	json_builder_begin_object(b);
	add_number(b, "changes", n);
	for (size_t i = 0; i < G_N_ELEMENTS(counts); i++)
		add_number(b, counts[i].key, totals->by_status[counts[i].status]);
	add_number(b, "binary", totals->binary);
	add_number(b, "lines_added", totals->added);
	add_number(b, "lines_removed", totals->removed);
	json_builder_end_object(b);
	return to_text(b);
}

int change_json_write(GPtrArray *changes, struct tree *from, struct tree *to, const struct change_json_names *names,
		      diff_write write, void *user, GError **error)
{
	g_autofree char *head = head_to_json(names), *summary = NULL;
	struct json_sink sink = { write, user };
	struct json_totals totals = { 0 };

	put(&sink, head);
	put(&sink, ",\"changes\":[");
	for (guint i = 0; i < changes->len; i++) {
		g_autofree char *text = NULL;
		int r = change_to_json(g_ptr_array_index(changes, i), from, to, &totals, &text, error);

		if (r < 0)
			return r;
		if (i)
			put(&sink, ",");
		put(&sink, text);
	}
	summary = summary_to_json(changes->len, &totals);
	put(&sink, "],\"summary\":");
	put(&sink, summary);
	put(&sink, "}\n");
	return 0;
}
