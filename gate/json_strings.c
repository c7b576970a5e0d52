/* SPDX-License-Identifier: MIT */
#include "gate/json_strings.h"

#include <glib.h>
#include <string.h>

struct parser {
	const char *p, *end;
	uint64_t line;
	json_string_fn fn;
	void *user;
	char *keys[JSON_STRINGS_DEPTH];
	bool is_object[JSON_STRINGS_DEPTH];
	unsigned depth;
};

static void skip_blanks(struct parser *x)
{
	while (x->p < x->end && (*x->p == ' ' || *x->p == '\t' || *x->p == '\n' || *x->p == '\r'))
		x->line += *x->p++ == '\n';
}

static bool take(struct parser *x, char c)
{
	if (x->p >= x->end || *x->p != c)
		return false;
	x->p++;
	return true;
}

static bool take_hex(struct parser *x, gunichar *ret)
{
	*ret = 0;
	if (x->end - x->p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		int d = g_ascii_xdigit_value(*x->p++);

		if (d < 0)
			return false;
		*ret = *ret << 4 | (gunichar)d;
	}
	return true;
}

static bool take_unicode(struct parser *x, GString *s)
{
	gunichar c, low;

	if (!take_hex(x, &c))
		return false;
	if (c >= 0xd800 && c < 0xdc00) {
		if (!take(x, '\\') || !take(x, 'u') || !take_hex(x, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	} else if (c >= 0xdc00 && c < 0xe000) {
		return false;
	}
	g_string_append_unichar(s, c ? c : 0xfffd);
	return true;
}

static bool take_escape(struct parser *x, GString *s)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (x->p >= x->end || !*x->p)
		return false;
	if (*x->p == 'u') {
		x->p++;
		return take_unicode(x, s);
	}
	at = strchr(from, *x->p++);
	if (at)
		g_string_append_c(s, to[at - from]);
	return at != NULL;
}

/* The rest of a string, its quote taken already; NULL when it is none. Caller frees. */
static char *take_string(struct parser *x)
{
	GString *s = g_string_new(NULL);
	bool ok = true;

	while (ok && x->p < x->end && (uint8_t)*x->p >= ' ' && *x->p != '"') {
		if (*x->p != '\\') {
			g_string_append_c(s, *x->p++);
			continue;
		}
		x->p++;
		ok = take_escape(x, s);
	}
	if (ok && take(x, '"'))
		return g_string_free(s, FALSE);
	g_string_free(s, TRUE);
	return NULL;
}

static bool skip_literal(struct parser *x)
{
	const char *start = x->p;

	while (x->p < x->end && (g_ascii_isalnum(*x->p) || *x->p == '+' || *x->p == '-' || *x->p == '.'))
		x->p++;
	return x->p > start;
}

static bool push(struct parser *x, bool is_object)
{
	if (x->depth == JSON_STRINGS_DEPTH)
		return false;
	x->is_object[x->depth] = is_object;
	x->keys[x->depth++] = g_strdup("");
	return true;
}

static void pop(struct parser *x)
{
	g_clear_pointer(&x->keys[--x->depth], g_free);
}

static bool take_key(struct parser *x)
{
	char *key;

	skip_blanks(x);
	key = take(x, '"') ? take_string(x) : NULL;
	if (!key)
		return false;
	g_free(x->keys[x->depth - 1]);
	x->keys[x->depth - 1] = key;
	skip_blanks(x);
	return take(x, ':');
}

/* After a value: closes what ends here. False for wrong text; @ret_more: another value comes. */
static bool after_value(struct parser *x, bool *ret_more)
{
	*ret_more = false;
	while (x->depth > 0) {
		bool is_object = x->is_object[x->depth - 1];

		skip_blanks(x);
		if (take(x, ',')) {
			*ret_more = true;
			return !is_object || take_key(x);
		}
		if (!take(x, is_object ? '}' : ']'))
			return false;
		pop(x);
	}
	return true;
}

/* False for wrong text; @ret_opened: it was an object or array with something in it, whose first value comes. */
static bool take_value(struct parser *x, bool *ret_opened)
{
	char *value;
	bool go_on;

	*ret_opened = false;
	skip_blanks(x);
	if (take(x, '"')) {
		value = take_string(x);
		go_on = value && x->fn((const char *const *)x->keys, x->depth, value, x->line, x->user);
		g_free(value);
		return go_on;
	}
	if (!take(x, '{') && !take(x, '['))
		return skip_literal(x);
	go_on = x->p[-1] == '{';
	if (!push(x, go_on))
		return false;
	skip_blanks(x);
	if (take(x, go_on ? '}' : ']')) {
		pop(x);
		return true;
	}
	*ret_opened = true;
	return !go_on || take_key(x);
}

bool json_strings(const char *text, size_t size, json_string_fn fn, void *user)
{
	struct parser x = { .p = text, .end = text + size, .line = 1, .fn = fn, .user = user };
	bool more = true, opened, ok = true;

	if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		x.p += 3;
	while (ok && more) {
		ok = take_value(&x, &opened);
		if (ok && !opened)
			ok = after_value(&x, &more);
	}
	skip_blanks(&x);
	ok = ok && x.p == x.end;
	while (x.depth > 0)
		pop(&x);
	return ok;
}
