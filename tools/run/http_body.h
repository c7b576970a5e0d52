/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * http_body - which bytes behind the head of an HTTP request still belong to it (RFC 9112, 6 and 7)
 *
 * What comes after them would be another request, which nobody has looked at. Strict about chunks: what one reader could take
 * for the end of a chunk and another not, is an error.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_body_kind { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED };

/* To begin with: the kind, and for HTTP_BODY_LENGTH how many bytes are left. The rest is 0. */
struct http_body {
	enum http_body_kind kind;
	uint64_t left;		      /* of the body, or of the chunk */
	unsigned state, digits, line; /* of the chunks */
};

/* http_body_take() - how many of the @size bytes are the body's; @ret_bad: they are no chunks. */
size_t http_body_take(struct http_body *b, const uint8_t *data, size_t size, bool *ret_bad);
bool http_body_is_done(const struct http_body *b);
