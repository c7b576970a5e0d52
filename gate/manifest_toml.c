/* SPDX-License-Identifier: MIT */

/*
 * manifest_toml - pyproject.toml, Cargo.toml, Pipfile
 *
 * Read key by key and not line by line: strings of several lines can hold what looks like a section, and a list goes on behind a
 * bracket or a number sign that is a part of a string or a comment. Quotes around keys mean nothing, so they are dropped; a key with
 * escapes is not read, and reported instead.
 */

#include <string.h>

#include "gate/manifest_private.h"

struct string {
	char *text;
	uint64_t line;
};

struct toml {
	struct manifest_reader *reader;
	const char *p, *end;
	uint64_t line;
	char *section;
	GString *value;    /* of the key in hand: without comments, on one line */
	GArray *strings;   /* struct string: those in the value */
};

static void string_clear(void *data)
{
	g_free(((struct string *)data)->text);
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strstr(text, *words))
			return true;
	return false;
}

/* Text */

static bool at(const struct toml *t, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(t->end - t->p) >= n && memcmp(t->p, text, n) == 0;
}

static void to_line_end(struct toml *t)
{
	const char *nl = memchr(t->p, '\n', t->end - t->p);

	t->p = nl ? nl : t->end;
}

static void skip_blanks(struct toml *t)
{
	for (; t->p < t->end; t->p++) {
		if (*t->p == '#')
			to_line_end(t);
		if (t->p == t->end || !g_ascii_isspace(*t->p))
			return;
		t->line += *t->p == '\n';
	}
}

/* From a quote to behind the one that ends it. */
static void take_string(struct toml *t)
{
	const char quote = *t->p, triple[] = { quote, quote, quote, '\0' };
	const bool several = at(t, triple);
	const char *close = several ? triple : triple + 2, *start;
	struct string s = { .line = t->line };

	t->p += strlen(close);
	start = t->p;
	while (t->p < t->end && !at(t, close) && (several || *t->p != '\n')) {
		if (*t->p == '\\' && quote == '"' && t->p + 1 < t->end)
			t->p++;
		t->line += *t->p++ == '\n';
	}
	/* Quotes in front of the three that end it are a part of it. */
	while (several && t->p + 3 < t->end && t->p[3] == quote)
		t->p++;
	s.text = g_strndup(start, t->p - start);
	if (t->p < t->end && at(t, close))
		t->p += strlen(close);
	g_array_append_val(t->strings, s);
}

/* To the end of the line that ends the value. False: a bracket is open still when the text ends. */
static bool take_value(struct toml *t)
{
	int depth = 0;

	g_string_truncate(t->value, 0);
	g_array_set_size(t->strings, 0);
	while (t->p < t->end && (*t->p != '\n' || depth > 0)) {
		const char *start = t->p;

		if (*t->p == '#') {
			to_line_end(t);
			continue;
		}
		if (*t->p == '"' || *t->p == '\'') {
			take_string(t);
			g_string_append_len(t->value, start, t->p - start);
			continue;
		}
		depth += *t->p == '[' || *t->p == '{';
		depth -= *t->p == ']' || *t->p == '}';
		t->line += *t->p == '\n';
		g_string_append_c(t->value, g_ascii_isspace(*t->p) ? ' ' : *t->p);
		t->p++;
	}
	return depth <= 0;
}

/* Up to one of @ends outside of quotes, or the line's end; without quotes and blanks. NULL when it is too long for a name. */
static char *take_name(struct toml *t, const char *ends)
{
	g_autoptr(GString) name = g_string_new(NULL);
	char quote = '\0';

	for (; t->p < t->end && *t->p != '\n' && (quote || !*t->p || !strchr(ends, *t->p)); t->p++) {
		if (quote ? *t->p == quote : *t->p == '"' || *t->p == '\'')
			quote = quote ? '\0' : *t->p;
		else if (!g_ascii_isspace(*t->p) && *t->p)
			g_string_append_c(name, *t->p);
	}
	if (name->len > MANIFEST_NAME_MAX)
		return NULL;
	return g_strdup(name->str);
}

/* Keys */

/* A name with escapes is not read, so it matters. */
static bool matters(const char *path)
{
	static const char *const words[] = { "dependenc", "requires", "packages", "patch", "replace", "source", "extras", "index", "find-links",
					     "\\", NULL };

	return is_one_of(path, words);
}

static bool is_build_code(const char *path, const char *section, const char *key)
{
	static const char *const paths[] = { "package.build", "package.links", "tool.poetry.build", "tool.poetry.build.script", NULL };
	static const char *const keys[] = { "build-backend", "backend-path", NULL };
	static const char *const sections[] = { "build.hooks", "cmdclass", NULL };

	return g_strv_contains(paths, path) || g_strv_contains(keys, key) || is_one_of(section, sections);
}

static bool add_list(struct toml *t, const char *path)
{
	for (guint i = 0; i < t->strings->len; i++) {
		const struct string *s = &g_array_index(t->strings, struct string, i);

		if (!manifest_add(t->reader, MANIFEST_DEPENDENCY, path, manifest_first_word(s->text, " \t\n=<>!~;[@("), s->text, s->line))
			return false;
	}
	return true;
}

/* @name: as it was written behind the section's, with dots. */
static bool add_key(struct toml *t, const char *name, uint64_t line)
{
	static const char *const commands[] = { "scripts", "entry-points", NULL }, *const sources[] = { "source", "patch", "replace", "index", NULL };
	g_autofree char *path = g_strconcat(t->section, *t->section ? "." : "", name, NULL);
	g_autofree char *section = g_strdup(path);
	char *dot = strrchr(section, '.');
	const char *key = dot ? dot + 1 : section;
	enum manifest_part part = MANIFEST_DEPENDENCY;

	/* The key lies behind the dot, in the same bytes. */
	if (dot)
		*dot = '\0';
	if (is_build_code(path, dot ? section : "", key))
		part = MANIFEST_BUILD;
	else if (dot && is_one_of(section, commands))
		part = MANIFEST_SCRIPT;
	else if (!matters(path))
		return true;
	else if (*t->value->str == '[')
		return add_list(t, path);
	else if (dot && is_one_of(section, sources))
		part = MANIFEST_SOURCE;
	return manifest_add(t->reader, part, t->section, g_strdup(name), t->value->str, line);
}

static bool take_section(struct toml *t)
{
	while (t->p < t->end && (*t->p == '[' || *t->p == ' ' || *t->p == '\t'))
		t->p++;
	g_free(t->section);
	t->section = take_name(t, "]");
	to_line_end(t);
	return t->section != NULL;
}

static bool take_key(struct toml *t)
{
	const uint64_t line = t->line;
	g_autofree char *name = take_name(t, "=#");
	bool whole;

	if (!name)
		return false;
	if (t->p < t->end && *t->p == '=')
		t->p++;
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\t'))
		t->p++;
	whole = take_value(t);
	g_strchomp(t->value->str);
	return whole && add_key(t, name, line);
}

bool manifest_toml(struct manifest_reader *r, const char *text, size_t size)
{
	struct toml t = { .reader = r, .p = text, .end = text + size, .line = 1, .section = g_strdup("") };
	bool ok = true;

	if (at(&t, "\xef\xbb\xbf"))
		t.p += 3;
	t.value = g_string_new(NULL);
	t.strings = g_array_new(FALSE, FALSE, sizeof(struct string));
	g_array_set_clear_func(t.strings, string_clear);
	for (skip_blanks(&t); ok && t.p < t.end; skip_blanks(&t))
		ok = *t.p == '[' ? take_section(&t) : take_key(&t);
	g_free(t.section);
	g_string_free(t.value, TRUE);
	g_array_unref(t.strings);
	return ok;
}
