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

static bool key_is_secret(const char *key)
{
	static const char *const words[] = { "pass",  "pwd",  "secret", "token",  "key",  "auth", "cred", "private", "cert",
					     "sign",  "salt", "cookie", "session", "dsn", "conn", "url",  "uri",     "bearer" };
	g_autofree char *lower = g_ascii_strdown(key, -1);

	for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
		if (strstr(lower, words[i]))
			return true;
	return false;
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

/* Passes over the rest of a quoted value that goes on for several lines. False when it never ends. */
static bool skip_quoted(struct masking *m, const char *value)
{
	char quote = *value;

	if (quote != '"' && quote != '\'')
		return true;
	for (const char *p = value + 1; *p; p++) {
		if (*p == '\\' && quote == '"' && p[1])
			p++;
		else if (*p == quote)
			return true;
	}
	while (m->next < m->end) {
		g_autofree char *line = next_line(m);

		if (strchr(line, quote))
			return true;
	}
	return false;
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
	if (*text == '[' && strchr(text, ']')) {
		m->ini = true;
		g_string_append_printf(m->out, "%s\n", line);
		return true;
	}
	head = split_key(line, m->ini, &key);
	if (head == 0)
		return false;
	value = line + head + strspn(line + head, " \t");
	if (m->ini && !key_is_secret(key)) {
		g_string_append_printf(m->out, "%s\n", line);
		return true;
	}
	g_string_append_len(m->out, line, head);
	g_string_append(m->out, MASK_VALUE "\n");
	return skip_quoted(m, value);
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
