/* SPDX-License-Identifier: MIT */
/*
 * fuzz-net - any bytes as what the proxy of a run reads: TLS, HTTP, SOCKS, hosts, entries of [network]
 *
 * What must hold beside the absence of a fault: what goes to a server in place of a request is a request for the same host that is
 * read in the same way again; a body read byte by byte ends where it ends when read at once; a host's text names that host.
 */

#include <string.h>

#include "rules/host_name.h"
#include "rules/net_pattern.h"
#include "tests/fuzz/replay.h"
#include "tools/run/client_hello.h"
#include "tools/run/http_request.h"
#include "tools/run/socks.h"

/* In memory that ends where they end, so that a read behind them is seen. */
static uint8_t *copy(const uint8_t *data, size_t size)
{
	return g_memdup2(size ? data : (const uint8_t *)"", MAX(size, 1));
}

static void try_hello(const uint8_t *data, size_t size)
{
	struct client_hello whole, part;

	if (client_hello_parse(data, size, &whole) != CLIENT_HELLO_DONE)
		return;
	/* What follows does not count. */
	for (size_t n = size - 1; n > 0 && client_hello_parse(data, n, &part) == CLIENT_HELLO_DONE; n--)
		g_assert_cmpstr(whole.name, ==, part.name);
}

static void try_target(const char *text)
{
	g_auto(net_target_t) t = { 0 };
	g_auto(net_target_t) again = { 0 };

	if (!net_target_parse(&t, text, 80))
		return;
	g_assert_true(net_target_parse(&again, t.text, 0));
	g_assert_true(net_target_equal(&t, &again));
}

static void try_body(struct http_body body, const uint8_t *data, size_t size)
{
	struct http_body bytes = body;
	bool bad = false, bad_byte = false;
	size_t n = http_body_take(&body, data, size, &bad), taken = 0;

	g_assert_cmpuint(n, <=, size);
	while (taken < size && !bad_byte && http_body_take(&bytes, data + taken, 1, &bad_byte))
		taken++;
	g_assert_cmpuint(taken, ==, n);
	g_assert_true(bad == bad_byte && http_body_is_done(&body) == http_body_is_done(&bytes));
}

static void try_request(const uint8_t *data, size_t size, const struct net_target *tunnel)
{
	g_auto(http_request_t) r = { 0 };
	g_auto(http_request_t) again = { 0 };
	size_t head = http_head_size(data, size);
	const struct net_target *target;

	if (!head || http_request_init(&r, data, head, tunnel) || r.connect)
		return;
	target = tunnel ? tunnel : &r.target;
	g_assert_null(http_request_init(&again, (const uint8_t *)r.head, strlen(r.head), target));
	g_assert_cmpuint(http_head_size((const uint8_t *)r.head, strlen(r.head)), ==, strlen(r.head));
	g_assert_cmpstr(r.head, ==, again.head);
	g_assert_cmpint(r.body.kind, ==, again.body.kind);
	g_assert_cmpuint(r.body.left, ==, again.body.left);
	try_body(r.body, data + head, size - head);
}

static void try_socks(const uint8_t *data, size_t size)
{
	g_auto(net_target_t) t = { 0 };
	enum socks_reply reply;
	size_t used = 0;

	if (socks_greeting(data, size, &used) == SOCKS_READY)
		g_assert_cmpuint(used, <=, size);
	if (socks_request(data, size, &used, &t, &reply) == SOCKS_READY)
		g_assert_cmpuint(used, <=, size);
}

static void try_text(const char *text)
{
	g_autofree char *name = host_name_new(text), *again = name ? host_name_new(name) : NULL;
	struct net_pattern pattern;

	g_assert_cmpstr(name, ==, again);
	if (net_pattern_init(&pattern, text, NULL) && name)
		net_pattern_has_name(&pattern, name);
	net_pattern_clear(&pattern);
	try_target(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree uint8_t *own = copy(data, size);
	g_autofree char *text = g_strndup((const char *)own, size);
	g_auto(net_target_t) tunnel = { 0 };

	net_target_init(&tunnel, "a.com", 80);
	try_hello(own, size);
	try_request(own, size, NULL);
	try_request(own, size, &tunnel);
	try_body((struct http_body){ .kind = HTTP_BODY_CHUNKED }, own, size);
	try_socks(own, size);
	try_text(text);
	return 0;
}
