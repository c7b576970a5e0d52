/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * http_request - the head of an HTTP/1 request to a proxy, and what goes to the server in its place
 *
 * RFC 9112. Two forms are understood: to the proxy, "CONNECT host:port" and "METHOD http://host/path"; in a tunnel to port 80,
 * "METHOD /path", with the host in its Host field. Strict: lines end in CRLF and are not folded, one Host that agrees with
 * the target, one Content-Length or "Transfer-Encoding: chunked", no control characters. What differs between readers is how
 * requests are smuggled.
 *
 * To the server goes the same method, path and fields, without those that are for one hop; and "Connection: close", since
 * one connection carries one request. "Upgrade: websocket" is the exception.
 */

#include <glib.h>
#include <stdbool.h>

#include "tools/run/http_body.h"
#include "tools/run/net_target.h"

#define HTTP_HEAD_MAX 32768

struct http_request {
	bool connect;
	bool upgrade; /* to a websocket */
	struct net_target target;
	struct http_body body;
	char *agent; /* User-Agent, or NULL */
	char *head;  /* for the server; NULL with @connect */
};

/* http_head_size() - of the head in the first @size bytes, with its empty line; 0 = it has not ended yet. */
size_t http_head_size(const uint8_t *data, size_t size);
/*
 * http_request_init() - @tunnel: where the tunnel goes that it comes through, or NULL. NULL, or what is wrong with it, for a
 * person; @r is to be cleared in either case, and may have a target even then.
 */
const char *http_request_init(struct http_request *r, const uint8_t *head, size_t size, const struct net_target *tunnel);
void http_request_clear(struct http_request *r);
typedef struct http_request http_request_t; /* for g_auto() only */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(http_request_t, http_request_clear)
