/* SPDX-License-Identifier: MIT */
#include "gate/secret_assign.h"

#include <string.h>

#include "gate/secret_value.h"

#define NAME_MAX_BEFORE 64
#define NAME_MAX_AFTER 96
#define VALUE_SCAN 320 /* a little more than the longest plausible one */
#define WORDS_MAX 48 /* in front of a quoted password */
#define GAP_MAX 64 /* white space between a name and its value */

/* How a value may be written where we are, and how sure we have to be. */
enum way {
	WAY_NONE,
	WAY_ASSIGN,  /* quoted or not */
	WAY_QUOTED,  /* only in quotes, and strict: arguments of calls */
	WAY_STRICT,  /* not quoted, strict: words of a command line */
	WAY_ELEMENT, /* up to the next '<' */
};

struct cursor {
	const uint8_t *data;
	size_t size;
	size_t at;
};

static int peek(const struct cursor *c, size_t ahead)
{
	return c->at + ahead < c->size ? c->data[c->at + ahead] : -1;
}

static bool take(struct cursor *c, const char *text)
{
	size_t n = strlen(text);

	if (c->at + n > c->size || memcmp(c->data + c->at, text, n) != 0)
		return false;
	c->at += n;
	return true;
}

static bool skip_blanks(struct cursor *c, bool lines)
{
	size_t start = c->at;

	while (c->at - start < GAP_MAX && (peek(c, 0) == ' ' || peek(c, 0) == '\t' || (lines && (peek(c, 0) == '\n' || peek(c, 0) == '\r'))))
		c->at++;
	return c->at > start;
}

static bool is_quote(int b)
{
	return b == '"' || b == '\'' || b == '`';
}

/* A quote, perhaps escaped as in JSON inside of a string. Returns it or 0. */
static int take_quote(struct cursor *c)
{
	size_t slashes = 0;

	while (slashes < 3 && peek(c, slashes) == '\\')
		slashes++;
	if (!is_quote(peek(c, slashes)))
		return 0;
	c->at += slashes + 1;
	return c->data[c->at - 1];
}

/* Names */

static bool is_name_byte(uint8_t b)
{
	return g_ascii_isalnum(b) || b == '_' || b == '-' || b == '.';
}

static void find_name(const struct scan_view *v, size_t at, size_t *ret_start, size_t *ret_end)
{
	size_t start = at, end = at;

	while (start > 0 && at - start < NAME_MAX_BEFORE && is_name_byte(v->data[start - 1]))
		start--;
	while (end < v->size && end - at < NAME_MAX_AFTER && is_name_byte(v->data[end]))
		end++;
	while (end > at && (v->data[end - 1] == '.' || v->data[end - 1] == '-'))
		end--;
	/* What is left of "\n" or "\t" in front. */
	if (start > 0 && v->data[start - 1] == '\\' && start < at && strchr("nrt", v->data[start]))
		start++;
	*ret_start = start;
	*ret_end = end;
}

/* "login NAME" in front on the same line: a netrc file, whose words have only blanks between them. */
static bool is_netrc(const struct scan_view *v, size_t name)
{
	size_t start = name > 256 ? name - 256 : 0;

	for (size_t i = name; i > start && v->data[i - 1] != '\n'; i--)
		if (i >= 6 && memcmp(v->data + i - 6, "login ", 6) == 0)
			return true;
	return false;
}

/* Nothing but @words and blanks in front on the same line. */
static bool follows(const struct scan_view *v, size_t at, const char *const *words)
{
	size_t end = at, start;

	while (end > 0 && (v->data[end - 1] == ' ' || v->data[end - 1] == '\t'))
		end--;
	for (start = end; start > 0 && g_ascii_isalpha(v->data[start - 1]);)
		start--;
	for (; end < at && *words; words++)
		if (strlen(*words) == end - start && g_ascii_strncasecmp((const char *)v->data + start, *words, end - start) == 0)
			break;
	if (end == at || !*words)
		return false;
	while (start > 0 && (v->data[start - 1] == ' ' || v->data[start - 1] == '\t'))
		start--;
	return start == 0 || v->data[start - 1] == '\n';
}

/* ENV NAME value */
static bool is_dockerfile(const struct scan_view *v, size_t name)
{
	static const char *const words[] = { "ENV", NULL };

	return follows(v, name, words);
}

/* define('NAME', 'value'): of the calls that take a name and a text the one that is no translation. */
static bool is_define(const struct scan_view *v, size_t name)
{
	static const char call[] = "define(";
	size_t n = strlen(call);

	while (name > 0 && strchr(" \t\"'", v->data[name - 1]) && v->data[name - 1])
		name--;
	return name >= n && g_ascii_strncasecmp((const char *)v->data + name - n, call, n) == 0;
}

/* Between name and value */

/* "value" as the next word, as in name/value pairs of JSON, YAML and XML. */
static bool take_value_word(struct cursor *c)
{
	struct cursor t = *c;

	skip_blanks(&t, true);
	if (peek(&t, 0) == ',') {
		t.at++;
		skip_blanks(&t, true);
	}
	take_quote(&t);
	if (!take(&t, "value") && !take(&t, "Value"))
		return false;
	take_quote(&t);
	skip_blanks(&t, false);
	if (peek(&t, 0) != '=' && peek(&t, 0) != ':')
		return false;
	t.at++;
	*c = t;
	return true;
}

/* "name: str = value", "name: Option<String> = value": the type in between. */
static void skip_type(struct cursor *c)
{
	struct cursor t = *c;
	size_t n = 0;

	skip_blanks(&t, false);
	while (n < 40 && peek(&t, 0) > 0 && (g_ascii_isalnum(peek(&t, 0)) || strchr("_<>[]|?&. ", peek(&t, 0)))) {
		t.at++;
		n++;
	}
	if (n == 0 || peek(&t, 0) != '=' || peek(&t, 1) == '=')
		return;
	t.at++;
	skip_blanks(&t, false);
	if (is_quote(peek(&t, 0)))
		*c = t;
}

static enum way take_operator(struct cursor *c, bool closed)
{
	static const char *const operators[] = { "===", "==", "=>", "?=", ":=", "||=", "?\?=", "+=", "<-", "=", NULL };

	for (const char *const *o = operators; *o; o++)
		if (take(c, *o))
			return WAY_ASSIGN;
	if (peek(c, 0) == ':' && peek(c, 1) != ':') {
		c->at++;
		skip_type(c);
		return WAY_ASSIGN;
	}
	if (peek(c, 0) == '>' && !closed) {
		c->at++;
		return WAY_ELEMENT;
	}
	if (peek(c, 0) == ',' && closed) {
		c->at++;
		return WAY_QUOTED;
	}
	if (peek(c, 0) == '(' && !closed) {
		c->at++;
		return WAY_QUOTED;
	}
	return WAY_NONE;
}

static enum way find_way(const struct scan_view *v, size_t name, struct cursor *c)
{
	const struct cursor begin = *c;
	bool closed = take_quote(c) != 0, blanks;
	enum way way;

	if (take_value_word(c))
		return WAY_ASSIGN;
	blanks = skip_blanks(c, false);
	/* config["name"] = and, in C, name[] = */
	if (peek(c, 0) == '[' && peek(c, 1) == ']')
		c->at++;
	if (peek(c, 0) == ']') {
		c->at++;
		skip_blanks(c, false);
	}
	way = take_operator(c, closed);
	if (way != WAY_NONE)
		return way;
	if (!blanks || closed)
		return WAY_NONE;
	*c = begin;
	if (name > 1 && v->data[name] == '-' && v->data[name + 1] == '-')
		return WAY_STRICT;
	return is_netrc(v, name) || is_dockerfile(v, name) ? WAY_ASSIGN : WAY_NONE;
}

/* Values */

static void skip_string_prefix(struct cursor *c)
{
	for (size_t i = 0; i < 3; i++) {
		if (peek(c, i) <= 0 || !strchr("bBrRuUfFL@$", peek(c, i)))
			return;
		if (is_quote(peek(c, i + 1))) {
			c->at += i + 1;
			return;
		}
	}
}

static bool quoted_end(const struct cursor *c, int quote, size_t *ret)
{
	for (size_t i = c->at; i < MIN(c->size, c->at + VALUE_SCAN) && c->data[i] != '\n'; i++) {
		if (c->data[i] != quote)
			continue;
		/* Of an escaped quote the backslash belongs to it. */
		while (i > c->at && c->data[i - 1] == '\\')
			i--;
		*ret = i;
		return true;
	}
	return false;
}

static bool ends_word(uint8_t b)
{
	static const uint8_t ends[256] = { [','] = 1, [';'] = 1, ['"'] = 1, ['\''] = 1, ['`'] = 1, ['<'] = 1, ['>'] = 1,  ['('] = 1, [')'] = 1,
					   ['['] = 1, [']'] = 1, ['{'] = 1, ['}'] = 1,	['|'] = 1, ['&'] = 1, ['='] = 1, ['\\'] = 1 };

	return b <= ' ' || ends[b];
}

/* A word. '=' ends it but as base64's padding. */
static size_t word_end(const struct cursor *c)
{
	size_t i = c->at, limit = MIN(c->size, c->at + VALUE_SCAN), pad;

	while (i < limit && !ends_word(c->data[i]))
		i++;
	for (pad = i; pad < limit && pad - i < 2 && c->data[pad] == '=';)
		pad++;
	return pad < limit && g_ascii_isalnum(c->data[pad]) ? i : pad;
}

static bool find_value(struct cursor *c, enum way way, size_t *ret_end, bool *ret_quoted)
{
	int quote;

	skip_blanks(c, way == WAY_QUOTED);
	skip_string_prefix(c);
	quote = take_quote(c);
	*ret_quoted = quote != 0;
	if (quote && peek(c, 0) == quote && peek(c, 1) == quote)
		c->at += 2;
	if (quote && quoted_end(c, quote, ret_end))
		return true;
	if (way == WAY_QUOTED || quote)
		return false;
	*ret_end = word_end(c);
	/* A call, an index or a block: code. */
	return *ret_end >= c->size || way == WAY_ELEMENT || !c->data[*ret_end] || !strchr("([{<", c->data[*ret_end]);
}

static bool match_assign(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	struct cursor c = { v->data, v->size, 0 };
	const char *text = (const char *)v->data;
	size_t start, end;
	enum secret_kind kind;
	enum way way;
	bool quoted;

	find_name(v, at, &start, &c.at);
	ret->shown = start;
	ret->shown_end = c.at;
	way = find_way(v, start, &c);
	if (way == WAY_NONE)
		return false;
	kind = secret_name_kind(text + start, ret->shown_end - start);
	if (kind == SECRET_NONE || !find_value(&c, way, &end, &quoted))
		return false;
	start = c.at;
	/* Words in front of the secret: "Bearer ", "token ". */
	if (quoted)
		for (size_t i = end; i > start && kind != SECRET_PASSWORD; i--)
			if (text[i - 1] == ' ') {
				start = i;
				break;
			}
	if ((way == WAY_QUOTED && !is_define(v, ret->shown)) || way == WAY_STRICT)
		kind = kind == SECRET_AUTH ? SECRET_NONE : SECRET_STRICT;
	if (!(kind == SECRET_AUTH && secret_basic_is_plausible(text + start, end - start)) &&
	    !secret_value_is_plausible(text + start, end - start, kind))
		return false;
	ret->rule = kind == SECRET_PASSWORD ? "password" : "generic-secret";
	ret->what = kind == SECRET_PASSWORD ? "a password" : "a secret";
	ret->joint = "=";
	ret->start = start;
	ret->end = end;
	ret->assigned = true;
	return true;
}

/* Words, and behind them a password in quotes: CREATE USER u IDENTIFIED BY 'password', ConvertTo-SecureString "password" */
static bool match_quoted(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	struct cursor c = { v->data, v->size, at };
	size_t end;
	bool quoted;

	while (c.at - at < WORDS_MAX && peek(&c, 0) > 0 && (g_ascii_isalpha(peek(&c, 0)) || peek(&c, 0) == ' ' || peek(&c, 0) == '-'))
		c.at++;
	*ret = (struct secret_match){ .rule = "password", .what = "a password", .shown = at, .shown_end = c.at };
	if (!find_value(&c, WAY_QUOTED, &end, &quoted) ||
	    !secret_value_is_plausible((const char *)v->data + c.at, end - c.at, SECRET_PASSWORD))
		return false;
	ret->start = c.at;
	ret->end = end;
	return true;
}

static const struct secret_anchor anchors[] = {
	{ "pass", true, match_assign },	 { "pwd", true, match_assign },	  { "secret", true, match_assign }, { "token", true, match_assign },
	{ "key", true, match_assign },	 { "cred", true, match_assign }, { "auth", true, match_assign },   { "psk", true, match_assign },
	{ "identified by ", true, match_quoted }, { "with password ", true, match_quoted },
	{ "ConvertTo-SecureString ", true, match_quoted }, { NULL, false, NULL },
};

const struct secret_anchor *secret_assign_anchors(void)
{
	return anchors;
}
