/* SPDX-License-Identifier: MIT */
#include "rules/glob.h"

#include <string.h>

#include "rules/policy_error.h"

enum element_kind { ELEMENT_LITERAL, ELEMENT_ANY, ELEMENT_STAR, ELEMENT_CLASS };

struct element {
	enum element_kind kind;
	GString *text; /* the literal's bytes, or the class as a regular expression; else NULL */
};

/* One component: its elements, or none of them for a double star. */
struct component {
	bool double_star;
	GArray *elements;
};

static void element_clear(void *data)
{
	struct element *e = data;

	if (e->text)
		g_string_free(e->text, TRUE);
}

static void component_free(void *data)
{
	struct component *c = data;

	g_array_unref(c->elements);
	g_free(c);
}

/* Always NULL, so that a function can end with it. */
static void *fail(GError **error, const char *message)
{
	g_set_error_literal(error, POLICY_ERROR, POLICY_ERROR_PATTERN, message);
	return NULL;
}

/* Reading */

/* The end of the class that starts at @p (a "["), just past its "]"; NULL when it has none. */
static const char *class_end(const char *p)
{
	p++;
	if (*p == '!' || *p == '^')
		p++;
	if (*p == ']')
		p++;
	while (*p && *p != ']') {
		if (p[0] == '[' && p[1] == ':') {
			const char *end = strstr(p + 2, ":]");

			p = end ? end + 2 : p + 1;
		} else {
			p += p[0] == '\\' && p[1] ? 2 : 1;
		}
	}
	return *p ? p + 1 : NULL;
}

static size_t char_len(const char *p)
{
	gunichar c = g_utf8_get_char_validated(p, -1);

	return c == (gunichar)-1 || c == (gunichar)-2 ? 1 : (size_t)(g_utf8_next_char(p) - p);
}

static void append_quoted(GString *out, const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)p[i] < 0x80 && !g_ascii_isalnum(p[i]))
			g_string_append_c(out, '\\');
		g_string_append_c(out, p[i]);
	}
}

static bool append_posix_class(GString *out, const char **p, GError **error)
{
	static const char *const known[] = { "alnum", "alpha", "blank", "cntrl", "digit", "graph",
					     "lower", "print", "punct", "space", "upper", "xdigit" };
	const char *end = strstr(*p + 2, ":]");

	for (size_t i = 0; end && i < G_N_ELEMENTS(known); i++) {
		if (strlen(known[i]) == (size_t)(end - *p - 2) && strncmp(*p + 2, known[i], strlen(known[i])) == 0) {
			g_string_append_len(out, *p, end + 2 - *p);
			*p = end + 2;
			return true;
		}
	}
	fail(error, "a class has an unknown [:name:]; known are alnum alpha blank cntrl digit graph lower print punct space upper "
		    "xdigit, and a plain \"[\" in a class is written \\[");
	return false;
}

static void append_class_char(GString *out, const char **p)
{
	size_t len;

	if (**p == '\\' && (*p)[1])
		(*p)++;
	len = char_len(*p);
	append_quoted(out, *p, len);
	*p += len;
}

/* The class between @p and @end as a regular expression. Its look-ahead keeps negated ones away from the slash. */
static GString *class_regex(const char *p, const char *end, GError **error)
{
	g_autoptr(GString) out = g_string_new("(?!/)[");
	const char *last = end - 1; /* the closing bracket */

	p++;
	if (*p == '!' || *p == '^') {
		g_string_append_c(out, '^');
		p++;
	}
	while (p < last) {
		if (p[0] == '[' && (p[1] == ':' || p[1] == '=' || p[1] == '.')) {
			if (!append_posix_class(out, &p, error))
				return NULL;
			continue;
		}
		append_class_char(out, &p);
		if (p[0] == '-' && p + 1 < last) {
			g_string_append_c(out, '-');
			p++;
			append_class_char(out, &p);
		}
	}
	g_string_append_c(out, ']');
	return g_steal_pointer(&out);
}

static struct element *last_element(GArray *elements)
{
	return elements->len ? &g_array_index(elements, struct element, elements->len - 1) : NULL;
}

static void add_element(GArray *elements, enum element_kind kind, GString *text)
{
	struct element e = { .kind = kind, .text = text };

	g_array_append_val(elements, e);
}

static void add_literal(GArray *elements, const char *p, size_t len)
{
	struct element *last = last_element(elements);

	if (last && last->kind == ELEMENT_LITERAL)
		g_string_append_len(last->text, p, len);
	else
		add_element(elements, ELEMENT_LITERAL, g_string_new_len(p, len));
}

static void add_wildcard(GArray *elements, enum element_kind kind)
{
	struct element *last = last_element(elements);

	if (kind == ELEMENT_ANY || !last || last->kind != ELEMENT_STAR)
		add_element(elements, kind, NULL);
}

static bool add_class(GArray *elements, const char **p, GError **error)
{
	const char *end = class_end(*p);
	GString *regex = NULL;

	if (end)
		regex = class_regex(*p, end, error);
	else
		fail(error, "a \"[\" has no \"]\"; a plain bracket is written \\[");
	if (!regex)
		return false;
	add_element(elements, ELEMENT_CLASS, regex);
	*p = end;
	return true;
}

static struct component *component_new(const char *text, GError **error)
{
	struct component *c;
	const char *p = text;

	if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
		return fail(error, "a component \".\" or \"..\" matches nothing; patterns are relative to the workspace");
	c = g_new0(struct component, 1);
	c->elements = g_array_new(FALSE, FALSE, sizeof(struct element));
	g_array_set_clear_func(c->elements, element_clear);
	c->double_star = strcmp(text, "**") == 0;
	while (*p && !c->double_star) {
		if (*p == '*' || *p == '?') {
			add_wildcard(c->elements, *p == '*' ? ELEMENT_STAR : ELEMENT_ANY);
			p++;
		} else if (*p == '[') {
			if (!add_class(c->elements, &p, error)) {
				component_free(c);
				return NULL;
			}
		} else {
			size_t len;

			p += *p == '\\';
			len = char_len(p);
			add_literal(c->elements, p, len);
			p += len;
		}
	}
	return c;
}

/* Where the component that starts at @p ends: at a slash that is in no class, or at the end. Counts braces on the way. */
static const char *component_end(const char *p, int *depth, GError **error)
{
	while (*p && *p != '/') {
		if (*p == '[') {
			const char *end = class_end(p), *slash = strchr(p, '/');

			if (!end)
				break; /* component_new() says what is wrong */
			if (slash && slash < end)
				return fail(error, "a class cannot hold a slash");
			p = end;
			continue;
		}
		if (*p == '\\' && (!p[1] || p[1] == '/'))
			return fail(error, "a backslash stands before nothing that it can quote");
		*depth += (*p == '{') - (*p == '}');
		if (*depth < 0)
			break;
		p += *p == '\\' ? 1 + char_len(p + 1) : 1;
	}
	return *p == '[' ? p + strlen(p) : p;
}

/* All components, with runs of double stars as one. */
static GPtrArray *split(const char *text, GError **error)
{
	g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(component_free);
	int depth = 0;

	for (const char *p = text, *end;; p = end + 1) {
		g_autofree char *part = NULL;
		struct component *c, *before = parts->len ? parts->pdata[parts->len - 1] : NULL;

		end = component_end(p, &depth, error);
		if (!end)
			return NULL;
		if (depth < 0 || (!*end && depth != 0))
			return fail(error,
				    "braces do not pair up; they are plain characters here and make no alternatives, so write two "
				    "patterns, or \\{ for the character");
		if (end == p)
			return fail(error, "an empty component (\"//\") matches nothing");
		part = g_strndup(p, end - p);
		c = component_new(part, error);
		if (!c)
			return NULL;
		if (c->double_star && before && before->double_star)
			component_free(c);
		else
			g_ptr_array_add(parts, c);
		if (!*end)
			return g_steal_pointer(&parts);
	}
}

/* As a regular expression */

/*
 * Between two stars the first place where the text fits is as good as any later one, since the next star can take up whatever
 * lies between. So each star but the last is lazy and atomic, and nothing is tried twice.
 */
static void append_component(GString *out, const struct component *c)
{
	unsigned stars = 0, seen = 0;

	for (unsigned i = 0; i < c->elements->len; i++)
		stars += g_array_index(c->elements, struct element, i).kind == ELEMENT_STAR;
	for (unsigned i = 0; i < c->elements->len; i++) {
		const struct element *e = &g_array_index(c->elements, struct element, i);

		switch (e->kind) {
		case ELEMENT_LITERAL:
			append_quoted(out, e->text->str, e->text->len);
			break;
		case ELEMENT_ANY:
			g_string_append(out, "[^/]");
			break;
		case ELEMENT_CLASS:
			g_string_append(out, e->text->str);
			break;
		case ELEMENT_STAR:
			if (seen++ > 0)
				g_string_append_c(out, ')');
			g_string_append(out, seen < stars ? "(?>[^/]*?" : "(?:[^/]*");
			break;
		}
	}
	if (stars)
		g_string_append_c(out, ')');
}

static void append_group(GString *out, GPtrArray *parts, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		if (i > from)
			g_string_append_c(out, '/');
		append_component(out, parts->pdata[i]);
	}
}

static unsigned group_end(GPtrArray *parts, unsigned i)
{
	while (i < parts->len && !((struct component *)parts->pdata[i])->double_star)
		i++;
	return i;
}

/* The same thought one level up: groups of components between double stars. */
static char *path_regex(GPtrArray *parts)
{
	GString *out = g_string_new("\\A");
	unsigned from = 0, to = group_end(parts, 0);

	append_group(out, parts, from, to);
	if (to > 0 && to < parts->len)
		g_string_append_c(out, '/');
	while (to < parts->len) {
		from = to + 1;
		to = group_end(parts, from);
		if (from == parts->len) {
			g_string_append(out, "[^/]");
			return g_string_free(out, FALSE);
		}
		g_string_append(out, to < parts->len ? "(?>(?:[^/]++/)*?" : "(?:[^/]++/)*");
		append_group(out, parts, from, to);
		if (to < parts->len)
			g_string_append(out, "/)");
	}
	g_string_append(out, "\\z");
	return g_string_free(out, FALSE);
}

/* As a shape */

static const char *plain_text(const struct component *c)
{
	const struct element *e = &g_array_index(c->elements, struct element, 0);

	if (c->double_star || c->elements->len != 1 || e->kind != ELEMENT_LITERAL)
		return NULL;
	return e->text->str;
}

/* A double star, a star, or a star after a double star; tied to the root or not, since what a star matches it covers. */
static bool matches_all(GPtrArray *parts)
{
	struct component *first = parts->pdata[0], *last = parts->pdata[parts->len - 1];

	if (parts->len > 2 || (parts->len == 2 && !first->double_star))
		return false;
	return last->double_star ||
	       (last->elements->len == 1 && g_array_index(last->elements, struct element, 0).kind == ELEMENT_STAR);
}

/* Up to three elements: text, a star, text, or a star, text, a star. */
static enum glob_shape name_shape(const struct component *c, char **ret_first, char **ret_second)
{
	const struct element *e = (const struct element *)(void *)c->elements->data;
	unsigned n = c->elements->len, i = 0;
	const char *first = "", *second = "";

	if (plain_text(c)) {
		*ret_first = g_strdup(plain_text(c));
		return GLOB_NAME;
	}
	if (n == 3 && e[0].kind == ELEMENT_STAR && e[1].kind == ELEMENT_LITERAL && e[2].kind == ELEMENT_STAR) {
		*ret_first = g_strdup(e[1].text->str);
		return GLOB_CONTAINS;
	}
	if (i < n && e[i].kind == ELEMENT_LITERAL)
		first = e[i++].text->str;
	if (i == n || e[i++].kind != ELEMENT_STAR)
		return GLOB_REGEX;
	if (i < n && e[i].kind == ELEMENT_LITERAL)
		second = e[i++].text->str;
	if (i < n)
		return GLOB_REGEX;
	*ret_first = g_strdup(first);
	*ret_second = g_strdup(second);
	return GLOB_AFFIX;
}

static enum glob_shape path_shape(GPtrArray *parts, char **ret_first)
{
	g_autoptr(GString) text = g_string_new(NULL);

	for (unsigned i = 0; i < parts->len; i++) {
		struct component *c = parts->pdata[i];

		if (c->double_star && i > 0 && i == parts->len - 1) {
			*ret_first = g_string_free(g_steal_pointer(&text), FALSE);
			return GLOB_BELOW;
		}
		if (!plain_text(c))
			return GLOB_REGEX;
		g_string_append_printf(text, "%s%s", plain_text(c), i < parts->len - 1 ? "/" : "");
	}
	*ret_first = g_string_free(g_steal_pointer(&text), FALSE);
	return GLOB_PATH;
}

/*
 * A literal with a byte that is part of no character does not compare byte by byte: such a byte is a character of its own, and not
 * a piece of one. Those few go the long way.
 */
static bool is_text(const char *s)
{
	return !s || g_utf8_validate(s, -1, NULL);
}

static void set_shape(struct glob *g, GPtrArray *parts)
{
	if (matches_all(parts) && !g->dir_only) {
		g->shape = GLOB_ALL;
		return;
	}
	if (g->in_name)
		g->shape = name_shape(parts->pdata[parts->len - 1], &g->first, &g->second);
	else if (!g->any_depth)
		g->shape = path_shape(parts, &g->first);
	if (!is_text(g->first) || !is_text(g->second))
		g->shape = GLOB_REGEX;
}

static void set_literal(struct glob *g, GPtrArray *parts)
{
	const char *best = "";

	if (g->shape == GLOB_PATH || g->shape == GLOB_BELOW) {
		best = g->first;
	} else if (g->shape != GLOB_ALL) {
		for (unsigned i = 0; i < parts->len; i++) {
			GArray *elements = ((struct component *)parts->pdata[i])->elements;

			for (unsigned j = 0; j < elements->len; j++) {
				const struct element *e = &g_array_index(elements, struct element, j);

				if (e->kind == ELEMENT_LITERAL && e->text->len > strlen(best))
					best = e->text->str;
			}
		}
	}
	g->literal = g_strdup(best);
}

static void set_prefix(struct glob *g, GPtrArray *parts)
{
	unsigned end = group_end(parts, 0);

	for (unsigned i = 0; i < end; i++) {
		const char *plain = plain_text(parts->pdata[i]);

		g_ptr_array_add(g->prefix, g_strdup(plain ? plain : ""));
	}
	g->prefix_open = end < parts->len;
}

static struct glob *glob_new_all(void)
{
	struct glob *g = g_new0(struct glob, 1);

	g->shape = GLOB_ALL;
	g->any_depth = true;
	g->regex = g_strdup("");
	g->literal = g_strdup("");
	g->prefix = g_ptr_array_new_with_free_func(g_free);
	return g;
}

static void glob_fill(struct glob *g, GPtrArray *parts, bool tied)
{
	bool leading = ((struct component *)parts->pdata[0])->double_star;

	g->prefix = g_ptr_array_new_with_free_func(g_free);
	g->any_depth = leading || (!tied && parts->len == 1);
	/* A name at any depth: "x", or "x" after a leading double star. */
	g->in_name = g->any_depth && parts->len - leading == 1;
	set_shape(g, parts);
	set_literal(g, parts);
	set_prefix(g, parts);
	if (g->in_name) {
		GString *out = g_string_new("\\A");

		append_component(out, parts->pdata[parts->len - 1]);
		g_string_append(out, "\\z");
		g->regex = g_string_free(out, FALSE);
	} else {
		g->regex = path_regex(parts);
	}
}

struct glob *glob_new(const char *text, GError **error)
{
	g_autoptr(GPtrArray) parts = NULL;
	g_autofree char *body = NULL;
	struct glob *g;
	bool tied, dir_only;
	size_t len;

	if (!*text)
		return fail(error, "an empty pattern");
	if (*text == '!')
		return fail(error, "a leading \"!\" has no meaning here: write the exception as a later line with its own action, "
				   "and a name that begins with ! as \\!");
	if (g_str_has_prefix(text, "~/") || strcmp(text, "~") == 0)
		return fail(error,
			    "patterns are relative to the workspace, \"~\" is not a home directory; a name ~ is written \\~");
	if (strcmp(text, "/") == 0 || strcmp(text, ".") == 0 || strcmp(text, "./") == 0)
		return glob_new_all();

	tied = text[0] == '/' || g_str_has_prefix(text, "./");
	body = g_strdup(text + (text[0] == '/' ? 1 : tied ? 2 : 0));
	len = strlen(body);
	dir_only = len > 0 && body[len - 1] == '/';
	if (dir_only)
		body[len - 1] = '\0';
	parts = split(body, error);
	if (!parts)
		return NULL;
	g = g_new0(struct glob, 1);
	g->dir_only = dir_only;
	glob_fill(g, parts, tied);
	return g;
}

void glob_free(struct glob *g)
{
	if (!g)
		return;
	g_free(g->first);
	g_free(g->second);
	g_free(g->regex);
	g_free(g->literal);
	g_ptr_array_unref(g->prefix);
	g_free(g);
}

/* Matching */

static bool same(const char *a, const char *b, size_t len, bool nocase_ascii)
{
	return nocase_ascii ? g_ascii_strncasecmp(a, b, len) == 0 : memcmp(a, b, len) == 0;
}

bool glob_shape_matches(const struct glob *g, const char *path, size_t len, const char *name, bool nocase_ascii)
{
	size_t name_len = len - (size_t)(name - path), first = g->first ? strlen(g->first) : 0, second;

	switch (g->shape) {
	case GLOB_ALL:
		return true;
	case GLOB_NAME:
		return name_len == first && same(name, g->first, first, nocase_ascii);
	case GLOB_AFFIX:
		second = strlen(g->second);
		return name_len >= first + second && same(name, g->first, first, nocase_ascii) &&
		       same(name + name_len - second, g->second, second, nocase_ascii);
	case GLOB_CONTAINS:
		for (size_t i = 0; i + first <= name_len; i++) {
			if (same(name + i, g->first, first, nocase_ascii))
				return true;
		}
		return false;
	case GLOB_PATH:
		return len == first && same(path, g->first, first, nocase_ascii);
	case GLOB_BELOW:
		return len > first && same(path, g->first, first, nocase_ascii);
	case GLOB_REGEX:
		break;
	}
	g_return_val_if_reached(false);
}

static bool is_ascii(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)s[i] >= 0x80)
			return false;
	}
	return true;
}

/* One component of the path against one of the pattern. */
static enum glob_below match_part(const char *plain, const char *part, size_t len, bool nocase)
{
	if (!*plain)
		return GLOB_BELOW_MAYBE;
	if (strlen(plain) == len && same(plain, part, len, nocase))
		return GLOB_BELOW_NAMED;
	return nocase && !(is_ascii(part, len) && is_ascii(plain, strlen(plain))) ? GLOB_BELOW_MAYBE : GLOB_BELOW_NEVER;
}

enum glob_below glob_match_below(const struct glob *g, const char *path, size_t len, bool nocase)
{
	enum glob_below result = GLOB_BELOW_NAMED;
	size_t at = 0;

	if (g->shape == GLOB_ALL)
		return GLOB_BELOW_NEVER; /* matches @path too */
	if (g->any_depth)
		return GLOB_BELOW_MAYBE;
	for (unsigned i = 0; i < g->prefix->len; i++) {
		const char *slash;
		size_t end;

		if (at >= len)
			return result;
		slash = memchr(path + at, '/', len - at);
		end = slash ? (size_t)(slash - path) : len;
		result = MIN(result, match_part(g->prefix->pdata[i], path + at, end - at, nocase));
		if (result == GLOB_BELOW_NEVER)
			return result;
		at = end + 1;
	}
	if (!g->prefix_open)
		return GLOB_BELOW_NEVER;
	return at >= len ? result : GLOB_BELOW_MAYBE;
}
