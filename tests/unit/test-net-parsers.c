/* SPDX-License-Identifier: MIT */
/*
 * test-net-parsers - what the proxy of a run reads: TLS ClientHello, HTTP requests and bodies, SOCKS
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <string.h>

#include "tools/run/client_hello.h"
#include "tools/run/http_body.h"
#include "tools/run/http_request.h"
#include "tools/run/socks.h"
#include "tests/unit/hello.h"

/* ClientHello */

static void test_hello_names(void **state)
{
	(void)state;
	for (unsigned flags = 0; flags < HELLO_ALL; flags++) {
		g_autoptr(GByteArray) hello = hello_new(flags & HELLO_NO_NAME ? NULL : "a.example", flags);
		struct client_hello h;
		enum client_hello_state wanted = flags & HELLO_BROKEN ? CLIENT_HELLO_BAD : CLIENT_HELLO_DONE;

		/* each prefix asks for more, and reads no byte behind it */
		for (size_t n = 0; n < hello->len; n++) {
			g_autofree uint8_t *part = g_memdup2(hello->data, n);
			enum client_hello_state got = client_hello_parse(part, n, &h);

			assert_int_equal(got, flags & HELLO_TWO_RECORDS && got != CLIENT_HELLO_MORE ? CLIENT_HELLO_BAD
												    : CLIENT_HELLO_MORE);
		}
		if (client_hello_parse(hello->data, hello->len, &h) != wanted)
			fail_msg("flags %#x", flags);
		if (wanted != CLIENT_HELLO_DONE)
			continue;
		assert_string_equal(h.name, flags & (HELLO_NO_NAME | HELLO_NO_EXTENSIONS) ? "" : "a.example");
		assert_int_equal(h.encrypted, flags & HELLO_ECH && !(flags & HELLO_NO_EXTENSIONS));
	}
}

/* Any single byte changed: an answer, and never another name without its bytes having changed. */
static void test_hello_bytes(void **state)
{
	g_autoptr(GByteArray) hello = hello_new("a.example", 0);
	struct client_hello h;

	(void)state;
	for (size_t i = 0; i < hello->len; i++) {
		uint8_t old = hello->data[i];

		for (unsigned value = 0; value < 256; value++) {
			hello->data[i] = (uint8_t)value;
			client_hello_parse(hello->data, hello->len, &h);
			assert_true(memchr(h.name, '\0', sizeof(h.name)) != NULL);
		}
		hello->data[i] = old;
	}
}

static void test_hello_other(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} bad[] = {
		{ "GET / HTTP/1.1\r\n", 16 },
		{ "SSH-2.0-x\r\n", 11 },
		{ "\x16\x02\x00\x00\x04\x01\x00\x00\x00", 9 },
		{ "\x16\x03\x01\x00\x00", 5 },
		{ "\x16\x03\x01\x00\x03\x01\x00\x00", 8 },
		{ "\x16\x03\x01\xff\xff", 5 },
		{ "\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9 },
		{ "\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9 },
		{ "\x80\x2e\x01\x03\x01", 5 },
	};
	struct client_hello h;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
		if (client_hello_parse((const uint8_t *)bad[i].bytes, bad[i].size, &h) != CLIENT_HELLO_BAD)
			fail_msg("%zu", i);
	assert_int_equal(client_hello_parse((const uint8_t *)"", 0, &h), CLIENT_HELLO_MORE);
}

/* Requests */

static void test_requests(void **state)
{
	static const struct {
		const char *request;
		const char *fault;  /* a part of it; NULL: good */
		const char *target; /* with a good one */
		const char *head;
	} cases[] = {
		{ "GET http://a.com/x?y HTTP/1.1\r\nHost: a.com\r\n\r\n", NULL, "a.com:80",
		  "GET /x?y HTTP/1.1\r\nHost: a.com\r\nConnection: close\r\n\r\n" },
		{ "GET HTTP://A.COM:80 HTTP/1.1\r\nHost: a.com\r\n\r\n", NULL, "a.com:80",
		  "GET / HTTP/1.1\r\nHost: a.com\r\nConnection: close\r\n\r\n" },
		{ "GET http://a.com:8080?q HTTP/1.1\r\nhost:A.com:8080\r\n\r\n", NULL, "a.com:8080",
		  "GET /?q HTTP/1.1\r\nHost: a.com:8080\r\nConnection: close\r\n\r\n" },
		{ "GET http://a.com/ HTTP/1.0\r\n\r\n", NULL, "a.com:80",
		  "GET / HTTP/1.0\r\nHost: a.com\r\nConnection: close\r\n\r\n" },
		{ "GET http://[::1]:81/ HTTP/1.1\r\nHost: [::1]:81\r\n\r\n", NULL, "[::1]:81",
		  "GET / HTTP/1.1\r\nHost: [::1]:81\r\nConnection: close\r\n\r\n" },
		{ "POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nContent-Length: 5\r\nX: y\r\n\r\n", NULL, "a.com:80",
		  "POST / HTTP/1.1\r\nHost: a.com\r\nX: y\r\nContent-Length: 5\r\nConnection: close\r\n\r\n" },
		/* for one hop */
		{ "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nConnection: keep-alive, X-Gone\r\nX-Gone: 1\r\nKeep-Alive: "
		  "5\r\nProxy-Connection: x\r\n"
		  "Proxy-Authorization: secret\r\nTE: trailers\r\nX-Stays: 2\r\n\r\n",
		  NULL, "a.com:80", "GET / HTTP/1.1\r\nHost: a.com\r\nX-Stays: 2\r\nConnection: close\r\n\r\n" },
		{ "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", NULL,
		  "a.com:80", "GET / HTTP/1.1\r\nHost: a.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" },
		{ "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", NULL, "a.com:80",
		  "GET / HTTP/1.1\r\nHost: a.com\r\nConnection: close\r\n\r\n" },
		{ "CONNECT a.com:443 HTTP/1.1\r\nHost: whatever\r\n\r\n", NULL, "a.com:443", NULL },
		{ "CONNECT [::1]:443 HTTP/1.1\r\n\r\n", NULL, "[::1]:443", NULL },
		/* hosts */
		{ "GET http://a.com/ HTTP/1.1\r\nHost: b.com\r\n\r\n", "another host", NULL, NULL },
		{ "GET http://a.com/ HTTP/1.1\r\nHost: a.com:81\r\n\r\n", "another host", NULL, NULL },
		{ "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nHost: b.com\r\n\r\n", "more than one Host", NULL, NULL },
		{ "GET http://a.com/ HTTP/1.1\r\nHost: a.com, b.com\r\n\r\n", "another host", NULL, NULL },
		{ "GET http://a.com/ HTTP/1.1\r\n\r\n", "no Host", NULL, NULL },
		{ "GET http://a.com/ HTTP/1.1\r\nHost : a.com\r\n\r\n", "a name that is none", NULL, NULL },
		{ "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n X: folded\r\n\r\n", "folded", NULL, NULL },
		{ "GET http://b.com@a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n", "user in front", NULL, NULL },
		{ "GET http://a.com:80@b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n", "user in front", NULL, NULL },
		{ "GET http://2130706433/ HTTP/1.1\r\nHost: 2130706433\r\n\r\n", "no host", NULL, NULL },
		{ "GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n", "no host", NULL, NULL },
		{ "GET http://a.com#@b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n", "fragment", NULL, NULL },
		{ "GET http:///x HTTP/1.1\r\nHost: a.com\r\n\r\n", "no host", NULL, NULL },
		{ "GET http://a.com:0/ HTTP/1.1\r\nHost: a.com\r\n\r\n", "no host", NULL, NULL },
		{ "GET http://a.com\\@b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n", "user in front", NULL, NULL },
		{ "CONNECT a.com HTTP/1.1\r\n\r\n", "host:port", NULL, NULL },
		{ "CONNECT http://a.com:443 HTTP/1.1\r\n\r\n", "host:port", NULL, NULL },
		{ "CONNECT u@a.com:443 HTTP/1.1\r\n\r\n", "host:port", NULL, NULL },
		{ "CONNECT fe80::1%eth0:443 HTTP/1.1\r\n\r\n", "host:port", NULL, NULL },
		{ "GET https://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n", "this is a proxy", NULL, NULL },
		{ "GET ftp://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n", "this is a proxy", NULL, NULL },
		{ "GET / HTTP/1.1\r\nHost: a.com\r\n\r\n", "this is a proxy", NULL, NULL },
		/* smuggling */
		{ "POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		  "said twice", NULL, NULL },
		{ "POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "said twice",
		  NULL, NULL },
		{ "POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nContent-Length: +5\r\n\r\n", "no number", NULL, NULL },
		{ "POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nContent-Length: 5, 5\r\n\r\n", "no number", NULL, NULL },
		{ "POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		  "only transfer encoding", NULL, NULL },
		{ "POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nTransfer-Encoding: \x0b"
		  "chunked\r\n\r\n",
		  "control", NULL, NULL },
		{ "POST http://a.com/ HTTP/1.0\r\nHost: a.com\r\nTransfer-Encoding: chunked\r\n\r\n", "only transfer encoding",
		  NULL, NULL },
		{ "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nX: y\nHost: b.com\r\n\r\n", "control", NULL, NULL },
		{ "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nX: y\rHost: b.com\r\n\r\n", "control", NULL, NULL },
		{ "GET http://a.com/ HTTP/1.1\nHost: a.com\r\n\r\n", "control", NULL, NULL },
		{ "GET http://a.com/\xc3\xa9 HTTP/1.1\r\nHost: a.com\r\n\r\n", "percent-encoded", NULL, NULL },
		{ "GET  http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n", "METHOD", NULL, NULL },
		{ "GET http://a.com/ HTTP/2.0\r\nHost: a.com\r\n\r\n", "only HTTP", NULL, NULL },
		{ "GET http://a.com/\r\nHost: a.com\r\n\r\n", "METHOD", NULL, NULL },
		{ "G@T http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n", "METHOD", NULL, NULL },
		{ "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nno colon\r\n\r\n", "no field", NULL, NULL },
		{ "\r\n\r\n", "METHOD", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_auto(http_request_t) r = { 0 };
		const char *fault = http_request_init(&r, (const uint8_t *)cases[i].request, strlen(cases[i].request), NULL);

		if (!fault != !cases[i].fault || (fault && !strstr(fault, cases[i].fault)))
			fail_msg("%s\n-> %s", cases[i].request, fault ? fault : "taken");
		if (fault)
			continue;
		assert_string_equal(r.target.text, cases[i].target);
		if (g_strcmp0(r.head, cases[i].head) != 0)
			fail_msg("%s\n-> %s", cases[i].request, r.head);
	}
}

static void test_requests_in_tunnels(void **state)
{
	static const struct {
		const char *request, *fault;
	} cases[] = {
		{ "GET /x HTTP/1.1\r\nHost: a.com\r\n\r\n", NULL },
		{ "OPTIONS * HTTP/1.1\r\nHost: a.com:80\r\n\r\n", NULL },
		{ "GET /x HTTP/1.1\r\nHost: b.com\r\n\r\n", "another host" },
		{ "GET /x HTTP/1.0\r\n\r\n", "no Host" },
		{ "GET http://b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n", "begins with its path" },
		{ "CONNECT b.com:443 HTTP/1.1\r\nHost: a.com\r\n\r\n", "begins with its path" },
	};
	g_auto(net_target_t) tunnel = { 0 };

	(void)state;
	assert_true(net_target_init(&tunnel, "a.com", 80));
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_auto(http_request_t) r = { 0 };
		const char *fault = http_request_init(&r, (const uint8_t *)cases[i].request, strlen(cases[i].request), &tunnel);

		if (!fault != !cases[i].fault || (fault && !strstr(fault, cases[i].fault)))
			fail_msg("%s\n-> %s", cases[i].request, fault ? fault : "taken");
	}
}

/* What was tried is known even where it is nothing, and no password with it. */
static void test_notes(void **state)
{
	static const char *const cases[][2] = {
		{ "CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n", "0x7f.1:443" },
		{ "CONNECT me:pass@h.com:443 HTTP/1.1\r\n\r\n", "h.com:443" },
		{ "GET http://me:pa@ss@h.com/x?y HTTP/1.1\r\n\r\n", "h.com" },
		{ "GET http://2130706433/x?y HTTP/1.1\r\n\r\n", "2130706433" },
		{ "GET http:///x HTTP/1.1\r\n\r\n", NULL },
		{ "GET /x HTTP/1.1\r\n\r\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_auto(http_request_t) r = { 0 };

		assert_non_null(http_request_init(&r, (const uint8_t *)cases[i][0], strlen(cases[i][0]), NULL));
		if (g_strcmp0(r.target.text, cases[i][1]) != 0)
			fail_msg("%s\n-> %s", cases[i][0], r.target.text);
	}
}

static void test_many_fields(void **state)
{
	GString *s = g_string_new("GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n");
	g_auto(http_request_t) r = { 0 };

	(void)state;
	for (unsigned i = 0; i < 300; i++)
		g_string_append_printf(s, "X%u: y\r\n", i);
	g_string_append(s, "\r\n");
	assert_non_null(strstr(http_request_init(&r, (const uint8_t *)s->str, s->len, NULL), "too many"));
	g_string_free(s, TRUE);
}

/* Bodies */

static void test_bodies(void **state)
{
	static const struct {
		enum http_body_kind kind;
		uint64_t length;
		const char *data;
		int taken; /* -1: bad */
		bool done;
	} cases[] = {
		{ HTTP_BODY_NONE, 0, "GET / HTTP/1.1\r\n\r\n", 0, true },
		{ HTTP_BODY_LENGTH, 5, "12345GET /", 5, true },
		{ HTTP_BODY_LENGTH, 5, "123", 3, false },
		{ HTTP_BODY_LENGTH, 0, "x", 0, true },
		{ HTTP_BODY_CHUNKED, 0, "0\r\n\r\nGET /", 5, true },
		{ HTTP_BODY_CHUNKED, 0, "3\r\nabc\r\n0\r\n\r\nGET /", 13, true },
		{ HTTP_BODY_CHUNKED, 0, "3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\nGET", 23, true },
		{ HTTP_BODY_CHUNKED, 0, "A\r\n0123456789\r\n", 15, false },
		{ HTTP_BODY_CHUNKED, 0, "3\nabc\r\n0\r\n\r\n", -1, false },
		{ HTTP_BODY_CHUNKED, 0, "3\r\nabcd\r\n0\r\n\r\n", -1, false },
		{ HTTP_BODY_CHUNKED, 0, "3\r\nabc\n0\r\n\r\n", -1, false },
		{ HTTP_BODY_CHUNKED, 0, "\r\n", -1, false },
		{ HTTP_BODY_CHUNKED, 0, "-1\r\n", -1, false },
		{ HTTP_BODY_CHUNKED, 0, "0x3\r\nabc\r\n", -1, false },
		{ HTTP_BODY_CHUNKED, 0, " 3\r\nabc\r\n", -1, false },
		{ HTTP_BODY_CHUNKED, 0, "3 \r\nabc\r\n", -1, false },
		{ HTTP_BODY_CHUNKED, 0, "3;\nabc\r\n", -1, false },
		{ HTTP_BODY_CHUNKED, 0, "1000000000000000000\r\n", -1, false },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct http_body whole = { .kind = cases[i].kind, .left = cases[i].length }, bytes = whole;
		const uint8_t *data = (const uint8_t *)cases[i].data;
		size_t size = strlen(cases[i].data), taken = 0;
		bool bad = false, bad_byte = false;
		size_t n = http_body_take(&whole, data, size, &bad);

		if (bad != (cases[i].taken < 0) ||
		    (!bad && (n != (size_t)cases[i].taken || http_body_is_done(&whole) != cases[i].done)))
			fail_msg("%s: %zu, %s", cases[i].data, n, bad ? "bad" : "good");
		/* in pieces the same */
		for (size_t at = 0; at < size && !bad_byte; at++) {
			size_t one = http_body_take(&bytes, data + at, 1, &bad_byte);

			taken += one;
			if (!one)
				break;
		}
		assert_true(bad == bad_byte && taken == n);
	}
}

/* SOCKS */

static void test_socks(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		enum socks_state state;
		const char *target;
		enum socks_reply reply;
	} cases[] = {
		{ "\x05\x01\x00\x03\x05"
		  "a.com\x01\xbb",
		  12, SOCKS_READY, "a.com:443", 0 },
		{ "\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50", 10, SOCKS_READY, "127.0.0.1:80", 0 },
		{ "\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x50", 22, SOCKS_READY, "[::1]:80", 0 },
		{ "\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\x01\x00\x50", 22, SOCKS_READY, "127.0.0.1:80", 0 },
		{ "\x05\x01\x00\x03\x09"
		  "127.0.0.1\x01\xbb",
		  16, SOCKS_READY, "127.0.0.1:443", 0 },
		{ "\x05\x02\x00\x03\x05"
		  "a.com\x01\xbb",
		  12, SOCKS_BAD, NULL, SOCKS_NO_COMMAND },
		{ "\x05\x03\x00\x03\x05"
		  "a.com\x01\xbb",
		  12, SOCKS_BAD, NULL, SOCKS_NO_COMMAND },
		{ "\x05\x01\x00\x02\x05"
		  "a.com\x01\xbb",
		  12, SOCKS_BAD, NULL, SOCKS_NO_ADDRESS },
		{ "\x05\x01\x00\x03\x05"
		  "a\0com\x01\xbb",
		  12, SOCKS_BAD, "a?com", SOCKS_NO_ADDRESS },
		{ "\x05\x01\x00\x03\x05"
		  "a.com\x00\x00",
		  12, SOCKS_BAD, "a.com", SOCKS_NO_ADDRESS },
		{ "\x05\x01\x00\x03\x00\x01\xbb", 7, SOCKS_BAD, NULL, SOCKS_NO_ADDRESS },
		{ "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", 9, SOCKS_BAD, NULL, SOCKS_NO_COMMAND },
	};
	size_t used;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_auto(net_target_t) t = { 0 };
		enum socks_reply reply;
		enum socks_state got = socks_request((const uint8_t *)cases[i].bytes, cases[i].size, &used, &t, &reply);

		if (got != cases[i].state || g_strcmp0(t.text, cases[i].target) != 0 ||
		    (got == SOCKS_BAD && reply != cases[i].reply))
			fail_msg("%zu: state %d, %s, reply %d", i, got, t.text, reply);
		if (got == SOCKS_READY)
			assert_int_equal(used, cases[i].size);
		for (size_t n = 0; got == SOCKS_READY && n < cases[i].size; n++)
			assert_int_equal(socks_request((const uint8_t *)cases[i].bytes, n, &used, &t, &reply), SOCKS_MORE);
	}
	assert_int_equal(socks_greeting((const uint8_t *)"\x05\x02\x02\x00", 4, &used), SOCKS_READY);
	assert_int_equal(socks_greeting((const uint8_t *)"\x05\x01\x02", 3, &used), SOCKS_BAD);
	assert_int_equal(socks_greeting((const uint8_t *)"\x05\x02\x02", 3, &used), SOCKS_MORE);
	assert_int_equal(socks_greeting((const uint8_t *)"\x04\x01", 2, &used), SOCKS_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello_names),
		cmocka_unit_test(test_hello_bytes),
		cmocka_unit_test(test_hello_other),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_requests_in_tunnels),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_many_fields),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_socks),
	};

	return cmocka_run_group_tests_name("net-parsers", tests, NULL, NULL);
}
