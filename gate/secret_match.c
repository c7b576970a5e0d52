/* SPDX-License-Identifier: MIT */
#include "gate/secret_match.h"

#include <string.h>

#include "gate/secret_value.h"

#define KEY_BODY_MIN 64   /* base64 digits that make a header the header of a key */
#define KEY_SEARCH 2048   /* how far behind it they have to be */
#define PUTTY_MAX 8192
#define USERINFO_MAX 512
#define COMMAND_MAX 512
#define SCHEME_MAX 24
#define TOKEN_MAX 4096

static bool is_base64url(uint8_t b)
{
	return g_ascii_isalnum(b) || b == '-' || b == '_';
}

static bool is_base64(uint8_t b)
{
	return g_ascii_isalnum(b) || b == '+' || b == '/';
}

/* Bytes from @at on that @in takes. */
static size_t run_of(const struct scan_view *v, size_t at, bool (*in)(uint8_t), size_t max)
{
	size_t n = 0;

	while (n < max && at + n < v->size && in(v->data[at + n]))
		n++;
	return n;
}

static bool has_text(const struct scan_view *v, size_t at, const char *text)
{
	size_t n = strlen(text);

	return at + n <= v->size && memcmp(v->data + at, text, n) == 0;
}

/* Private keys */

/*
 * Enough base64 soon behind the header, whatever stands between its lines: white space, escaped line breaks, quotes, comment signs,
 * headers such as "Proc-Type: 4,ENCRYPTED".
 */
static size_t key_body_end(const struct scan_view *v, size_t at)
{
	size_t limit = MIN(v->size, at + KEY_SEARCH), body = 0;

	while (at < limit && body < KEY_BODY_MIN) {
		size_t n = run_of(v, at, is_base64, 128);

		if (n >= 16)
			body += n;
		else if (has_text(v, at, "-----"))
			return 0;
		at += MAX(n, 1);
	}
	return body >= KEY_BODY_MIN ? at : 0;
}

static bool match_pem(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	static const char *const ends[] = { "PRIVATE KEY-----", "PRIVATE KEY BLOCK-----", NULL };
	size_t label = at + strlen("-----BEGIN "), end = 0;

	for (size_t i = label; i < MIN(v->size, label + 40) && v->data[i] != '\n' && !end; i++)
		for (const char *const *e = ends; *e; e++)
			if (has_text(v, i, *e))
				end = i + strlen(*e);
	if (!end)
		return false;
	ret->shown = at;
	ret->shown_end = end;
	ret->start = at;
	ret->end = key_body_end(v, end);
	ret->rule = "private-key";
	ret->what = "a private key";
	return ret->end != 0;
}

/* The same, with the whole file as base64: how configuration carries keys. */
static bool match_pem_base64(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	g_autofree char *text = NULL;
	g_autofree guchar *plain = NULL;
	gsize size;
	size_t n;

	if (at > 0 && is_base64(v->data[at - 1]))
		return false;
	n = run_of(v, at, is_base64, 2048);
	if (n < 100)
		return false;
	text = g_strndup((const char *)v->data + at, n / 4 * 4);
	plain = g_base64_decode(text, &size);
	if (!g_strstr_len((const char *)plain, MIN(size, 60), "PRIVATE KEY"))
		return false;
	*ret = (struct secret_match){ .rule = "private-key", .what = "a private key in base64", .start = at, .end = at + n };
	return true;
}

static bool match_putty(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	static const char lines[] = "Private-Lines:";
	const uint8_t *found = memmem(v->data + at, MIN(v->size - at, PUTTY_MAX), lines, strlen(lines));
	size_t body = found ? (size_t)(found - v->data) + strlen(lines) : v->size;

	/* Their number; without it, it is a program that writes such files. */
	while (body < v->size && v->data[body] == ' ')
		body++;
	if (body >= v->size || !g_ascii_isdigit(v->data[body]))
		return false;
	ret->end = key_body_end(v, body);
	ret->start = ret->shown = at;
	ret->shown_end = at + strlen("PuTTY-User-Key-File-");
	ret->rule = "private-key";
	ret->what = "a private key";
	return ret->end != 0;
}

/* Signed tokens */

/* The payload of the example that every text about them shows. */
#define JWT_EXAMPLE "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lI"

static bool match_jwt(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	size_t head, body, sign;

	if (at > 0 && is_base64url(v->data[at - 1]) && !(at > 1 && v->data[at - 2] == '\\'))
		return false;
	head = run_of(v, at, is_base64url, TOKEN_MAX);
	if (head < 12 || !has_text(v, at + head, ".eyJ"))
		return false;
	if (has_text(v, at + head + 1, JWT_EXAMPLE))
		return false;
	body = run_of(v, at + head + 1, is_base64url, TOKEN_MAX);
	if (body < 12 || !has_text(v, at + head + 1 + body, "."))
		return false;
	sign = run_of(v, at + head + body + 2, is_base64url, TOKEN_MAX);
	if (sign < 16 || secret_value_is_placeholder((const char *)v->data + at + head + body + 2, sign))
		return false;
	*ret = (struct secret_match){ .rule = "jwt", .what = "a signed token (JWT)", .start = at, .end = at + head + body + 2 + sign };
	ret->shown = at;
	ret->shown_end = at + 3;
	return true;
}

/* URLs */

static bool is_userinfo(uint8_t b)
{
	return b > ' ' && b < 0x7f && !strchr("/\"'`<>\\|,", b);
}

static bool is_scheme(uint8_t b)
{
	return g_ascii_isalnum(b) || b == '+' || b == '.' || b == '-';
}

static size_t scheme_start(const struct scan_view *v, size_t at)
{
	size_t n = 0;

	while (n < SCHEME_MAX && at > n && is_scheme(v->data[at - n - 1]))
		n++;
	return at - n;
}

/*
 * scheme://user:password@host. The password ends at the last @ in front of the path; some contain one. A user's name that is a token
 * counts too.
 */
static bool match_url(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	size_t info = at + 3, n = run_of(v, info, is_userinfo, USERINFO_MAX), start = scheme_start(v, at), at_sign = 0;
	const char *text = (const char *)v->data;
	const char *colon;

	for (size_t i = n; i > 0 && !at_sign; i--)
		if (text[info + i - 1] == '@')
			at_sign = info + i - 1;
	if (at - start < 2 || !at_sign)
		return false;
	colon = memchr(text + info, ':', at_sign - info);
	ret->shown = start;
	ret->shown_end = info;
	ret->rule = "url-password";
	ret->what = "a password in a URL";
	ret->end = at_sign;
	ret->start = colon ? (size_t)(colon + 1 - text) : info;
	if (colon)
		return secret_password_is_plausible(text + info, colon - (text + info), colon + 1, at_sign - ret->start);
	return secret_value_is_plausible(text + info, at_sign - info, SECRET_STRICT);
}

/* Authorization */

static bool is_header_token(uint8_t b)
{
	return g_ascii_isalnum(b) || (b && strchr("-._~+/=", b));
}

static bool starts_word(const struct scan_view *v, size_t at)
{
	return at == 0 || !(g_ascii_isalnum(v->data[at - 1]) || v->data[at - 1] == '_') || (at > 1 && v->data[at - 2] == '\\');
}

static bool match_basic(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	size_t start = at + strlen("basic "), n = run_of(v, start, is_header_token, TOKEN_MAX);

	if (!starts_word(v, at) || !secret_basic_is_plausible((const char *)v->data + start, n))
		return false;
	*ret = (struct secret_match){ .rule = "basic-auth", .what = "a password for HTTP", .start = start, .end = start + n };
	ret->shown = at;
	ret->shown_end = start;
	return true;
}

static bool match_bearer(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	size_t start = at + strlen("bearer "), n = run_of(v, start, is_header_token, TOKEN_MAX);

	if (!starts_word(v, at) || !secret_value_is_plausible((const char *)v->data + start, n, SECRET_STRICT))
		return false;
	*ret = (struct secret_match){ .rule = "bearer-token", .what = "a token for HTTP", .start = start, .end = start + n };
	ret->shown = at;
	ret->shown_end = start;
	ret->assigned = true;
	return true;
}

/* curl -u user:password */
static bool match_curl(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	size_t limit = MIN(v->size, at + COMMAND_MAX);
	const char *text = (const char *)v->data;

	if (!starts_word(v, at))
		return false;
	for (size_t i = at + strlen("curl "); i + 4 < limit && text[i] != '\n'; i++) {
		size_t start, n;
		const char *colon;

		if (text[i] != '-' || text[i - 1] != ' ' || (!has_text(v, i, "-u") && !has_text(v, i, "--user")))
			continue;
		start = i + (text[i + 1] == 'u' ? 2 : 6);
		while (start < limit && strchr(" ='\"", text[start]) && text[start])
			start++;
		n = run_of(v, start, is_userinfo, USERINFO_MAX);
		colon = memchr(text + start, ':', n);
		if (!colon)
			continue;
		if (!secret_password_is_plausible(text + start, colon - (text + start), colon + 1, text + start + n - (colon + 1)))
			return false;
		*ret = (struct secret_match){ .rule = "command-password", .what = "a password in a command", .shown = i, .shown_end = start };
		ret->start = colon + 1 - text;
		ret->end = start + n;
		return true;
	}
	return false;
}

/* Behind @option, which stands in front of a word or begins one: a word that can be a password. */
static bool take_argument(const struct scan_view *v, size_t at, const char *option, struct secret_match *ret)
{
	const char *text = (const char *)v->data;
	size_t start = at + strlen(option), n;

	if (!has_text(v, at, option))
		return false;
	while (start < v->size && (text[start] == '\'' || text[start] == '"'))
		start++;
	n = run_of(v, start, is_userinfo, USERINFO_MAX);
	if (!secret_value_is_plausible(text + start, n, SECRET_PASSWORD))
		return false;
	*ret = (struct secret_match){ .rule = "command-password", .what = "a password in a command", .shown = at, .shown_end = start };
	ret->start = start;
	ret->end = start + n;
	return true;
}

/* sshpass -p password */
static bool match_sshpass(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	size_t option = at + strlen("sshpass ");

	return starts_word(v, at) && (take_argument(v, option, "-p ", ret) || take_argument(v, option, "-p", ret));
}

/* mysql -u user -ppassword, and mysqldump, mysqladmin */
static bool match_mysql(const struct scan_view *v, size_t at, struct secret_match *ret)
{
	size_t limit = MIN(v->size, at + COMMAND_MAX);

	if (!starts_word(v, at))
		return false;
	for (size_t i = at; i + 1 < limit && v->data[i] != '\n'; i++)
		if (v->data[i] == ' ' && has_text(v, i, " -p") && !has_text(v, i, " -p "))
			return take_argument(v, i + 1, "-p", ret);
	return false;
}

static const struct secret_anchor anchors[] = {
	{ "-----BEGIN ", false, match_pem },
	{ "LS0tLS1CRUdJTi", false, match_pem_base64 },
	{ "PuTTY-User-Key-File-", false, match_putty },
	{ "eyJ", false, match_jwt },
	{ "://", false, match_url },
	{ "basic ", true, match_basic },
	{ "bearer ", true, match_bearer },
	{ "curl ", false, match_curl },
	{ "sshpass ", false, match_sshpass },
	{ "mysql", false, match_mysql },
	{ NULL, false, NULL },
};

const struct secret_anchor *secret_match_anchors(void)
{
	return anchors;
}
