/* SPDX-License-Identifier: MIT */
#include "rules/regex_literal.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

struct reader {
	const char *p;
	GString *run;
	GString *best;
};

static void end_run(struct reader *r)
{
	if (r->run->len > r->best->len && g_utf8_validate_len(r->run->str, r->run->len, NULL))
		g_string_assign(r->best, r->run->str);
	g_string_truncate(r->run, 0);
}

/* Quotations and control characters take the following text with them; they are left to PCRE2. */
static bool is_plain_escape(const char *p)
{
	return p[1] && !strchr("QEc", p[1]);
}

/* Past a [:name:] in a class, or NULL: what is not quite one, PCRE2 reads as plain characters. */
static const char *skip_posix(const char *p)
{
	const char *end = p + 2;

	if (*end == '^')
		end++;
	while (g_ascii_isalpha(*end))
		end++;
	return end[0] == ':' && end[1] == ']' ? end + 2 : NULL;
}

/* Past the class at @p, or NULL. */
static const char *skip_class(const char *p)
{
	p++;
	if (*p == '^')
		p++;
	if (*p == ']')
		p++;
	while (p && *p && *p != ']') {
		if (p[0] == '\\')
			p = is_plain_escape(p) ? p + 2 : NULL;
		else if (p[0] == '[' && (p[1] == ':' || p[1] == '.' || p[1] == '='))
			p = skip_posix(p);
		else
			p++;
	}
	return p && *p ? p + 1 : NULL;
}

/* A plain group, or a look at what stands before or behind. Names, options, comments and conditions are left to PCRE2. */
static bool is_plain_group(const char *p)
{
	if (p[1] == '*')
		return false;
	if (p[1] != '?')
		return true;
	return p[2] == ':' || p[2] == '=' || p[2] == '!' || (p[2] == '<' && (p[3] == '=' || p[3] == '!'));
}

/* Past the group at @p, whatever it holds, unless it holds what may reach out of it. */
static const char *skip_group(const char *p)
{
	int depth = 0;

	while (*p) {
		if (*p == '[') {
			p = skip_class(p);
			if (!p)
				return NULL;
			continue;
		}
		if (p[0] == '\\') {
			if (!is_plain_escape(p))
				return NULL;
			p += 2;
			continue;
		}
		if (*p == '(') {
			if (!is_plain_group(p))
				return NULL;
			depth++;
		} else if (*p == ')' && --depth == 0) {
			return p + 1;
		}
		p++;
	}
	return NULL;
}

/* A quantifier follows: what stands last in the run may not be there at all. */
static void drop_last(GString *run)
{
	const char *last = g_utf8_find_prev_char(run->str, run->str + run->len);

	g_string_truncate(run, last ? last - run->str : 0);
}

static bool read_escape(struct reader *r)
{
	char c = r->p[1];

	if (!c || g_ascii_isdigit(c) || (unsigned char)c >= 0x80)
		return false;
	if (!g_ascii_isalpha(c))
		g_string_append_c(r->run, c);
	else if (strchr("dDwWsSbBAzZhHvVRX", c))
		end_run(r);
	else
		return false;
	r->p += 2;
	return true;
}

static bool read_one(struct reader *r)
{
	switch (*r->p) {
	case '\\':
		return read_escape(r);
	case '[':
		end_run(r);
		r->p = skip_class(r->p);
		return r->p != NULL;
	case '(':
		end_run(r);
		r->p = skip_group(r->p);
		return r->p != NULL;
	case '*':
	case '?':
		drop_last(r->run);
		end_run(r);
		break;
	case '{':
		drop_last(r->run);
		end_run(r);
		r->p += 1 + strspn(r->p + 1, "0123456789,");
		if (*r->p != '}')
			return false;
		break;
	case '+':
	case '.':
	case '^':
	case '$':
		end_run(r);
		break;
	case '|':
	case ')':
		return false;
	default:
		g_string_append_c(r->run, *r->p);
	}
	r->p++;
	return true;
}

char *regex_literal(const char *regex)
{
	struct reader r = { .p = regex, .run = g_string_new(NULL), .best = g_string_new(NULL) };
	bool ok = true;

	while (ok && *r.p)
		ok = read_one(&r);
	if (ok)
		end_run(&r);
	else
		g_string_truncate(r.best, 0);
	g_string_free(r.run, TRUE);
	return g_string_free(r.best, FALSE);
}
