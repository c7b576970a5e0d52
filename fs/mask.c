/* SPDX-License-Identifier: MIT */
#include "fs/mask.h"

#include <stdbool.h>
#include <string.h>

struct masking {
	const char *next, *end;
	GString *out;
	bool ini; /* a [section] was seen */
};

/* The next line without its newline. */
static char *next_line(struct masking *m)
{
	const char *newline = memchr(m->next, '\n', m->end - m->next);
	const char *stop = newline ? newline : m->end;
	char *line = g_strndup(m->next, stop - m->next);

	m->next = newline ? newline + 1 : m->end;
	return line;
}

/* @behind: one of these characters has to follow somewhere; NULL = nothing has to. */
static bool speaks_of_secret(const char *text, const char *behind)
{
	static const char *const words[] = { "pass", "pwd",    "pw",	  "secret", "token", "key",  "auth", "cred",   "private",
					     "cert", "sign",   "salt",	  "cookie", "session", "dsn", "conn", "url",  "uri",
					     "bearer", "hook", "header", "access", "otp",    "seed", "phrase", "mnemonic", "jwt", "hmac" };
	g_autofree char *lower = g_ascii_strdown(text, -1);

	for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
		const char *at = strstr(lower, words[i]);

		if (at && (!behind || strpbrk(at, behind)))
			return true;
	}
	return false;
}

static bool key_is_secret(const char *key)
{
	return speaks_of_secret(key, NULL);
}

/* The length of "KEY=" or "KEY =" in front of the value, and the key; 0 when the line has no such thing. */
static size_t split_key(const char *line, bool colon, char **ret_key)
{
	const char *p = line + strspn(line, " \t"), *start;
	size_t n;

	if (g_str_has_prefix(p, "export ") || g_str_has_prefix(p, "export\t"))
		p += strlen("export ") + strspn(p + strlen("export "), " \t");
	start = p;
	while (g_ascii_isalnum(*p) || (*p && strchr("_.-", *p)))
		p++;
	n = p - start;
	p += strspn(p, " \t");
	if (n == 0 || !(*p == '=' || (colon && *p == ':')))
		return 0;
	*ret_key = g_strndup(start, n);
	return p + 1 - line;
}

/*
 * "[name]" and nothing behind it, as in INI files, git's configuration and TOML. A list in brackets, which may be all secrets, begins as
 * well with a bracket; and a subsection may be a URL with a password in it.
 */
static bool is_section(const char *text)
{
	const char *p = text + 1;

	if (!g_ascii_isalnum(*p))
		return false;
	while (g_ascii_isalnum(*p) || (*p && strchr(" _.:/\"-", *p)))
		p++;
	return *p == ']' && !p[1 + strspn(p + 1, " \t\r")];
}

/* In a URL, or as more settings in the value: Environment=PASSWORD=x, extraHeader = Authorization: x, db = { password = "x" }. */
static bool has_password(const char *value)
{
	const char *authority = strstr(value, "://");

	return (authority && strchr(authority, '@')) || speaks_of_secret(value, "=: \t");
}

static bool ends_in_backslash(const char *line)
{
	size_t n = strlen(line);

	while (n > 0 && g_ascii_isspace(line[n - 1]))
		n--;
	return n > 0 && line[n - 1] == '\\';
}

/* @count of them in a row, as TOML and Python have three. */
static bool closes(const char *text, char quote, size_t count)
{
	size_t row = 0;

	for (const char *p = text; *p; p++) {
		row = *p == quote ? row + 1 : 0;
		if (row == count)
			return true;
		if (*p == '\\' && quote == '"' && p[1])
			p++;
	}
	return false;
}

/* The size of what belongs to a value because it is indented deeper than its key; 0 when nothing does. With sections, empty lines may come first. */
static size_t deeper_size(const struct masking *m, size_t indent)
{
	const char *line = m->next;

	while (line < m->end) {
		const char *p = line;
		const char *newline = memchr(line, '\n', m->end - line);

		while (p < m->end && (*p == ' ' || *p == '\t'))
			p++;
		if (p < m->end && *p != '\n' && *p != '\r')
			return (size_t)(p - line) > indent ? (newline ? newline + 1 : m->end) - m->next : 0;
		if (!m->ini || !newline)
			return 0;
		line = newline + 1;
	}
	return 0;
}

/*
 * Passes over the lines in which @value goes on: up to its closing quote, after a backslash, or indented deeper than its key (@indent). What
 * looks like a key in them is a piece of the value. False when a quote never ends.
 */
static bool skip_value(struct masking *m, const char *value, size_t indent)
{
	char quote = *value == '"' || *value == '\'' ? *value : '\0';
	size_t count = quote && value[1] == quote && value[2] == quote ? 3 : 1;
	g_autofree char *line = g_strdup(quote ? value + count : value);
	size_t deeper;

	while (quote || ends_in_backslash(line)) {
		if (quote && closes(line, quote, count)) {
			quote = '\0';
			continue;
		}
		if (m->next == m->end)
			return !quote;
		g_free(line);
		line = next_line(m);
	}
	while ((deeper = deeper_size(m, indent)))
		m->next += deeper;
	return true;
}

static bool mask_line(struct masking *m)
{
	g_autofree char *line = next_line(m), *key = NULL;
	const char *text = line + strspn(line, " \t\r"), *value;
	size_t head;

	if (!*text) {
		g_string_append_c(m->out, '\n');
		return true;
	}
	if (*text == '#' || *text == ';') {
		g_string_append_printf(m->out, "%c\n", *text);
		return true;
	}
	if (*text == '[' && is_section(text)) {
		m->ini = true;
		g_string_append_printf(m->out, "%s\n", line);
		return true;
	}
	head = split_key(line, m->ini, &key);
	if (head == 0)
		return false;
	value = line + head + strspn(line + head, " \t");
	if (m->ini && !key_is_secret(key) && !has_password(value)) {
		g_string_append_printf(m->out, "%s\n", line);
		return true;
	}
	g_string_append_len(m->out, line, head);
	g_string_append(m->out, MASK_VALUE "\n");
	return skip_value(m, value, text - line);
}

GBytes *mask_text(const char *data, size_t size)
{
	struct masking m = { .next = data, .end = data + size, .out = g_string_new(NULL) };
	bool understood = size <= MASK_MAX && !memchr(data, '\0', size);

	while (understood && m.next < m.end)
		understood = mask_line(&m);
	if (!understood)
		g_string_truncate(m.out, 0);
	return g_string_free_to_bytes(m.out);
}
