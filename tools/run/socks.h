/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * socks - what a client of SOCKS version 5 sends (RFC 1928)
 *
 * Without authentication, and CONNECT only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/run/net_target.h"

#define SOCKS_VERSION 5
#define SOCKS_MAX 262 /* bytes of the longest message */
#define SOCKS_REPLY_SIZE 10

enum socks_reply {
	SOCKS_DONE = 0,
	SOCKS_REFUSED = 2,     /* by the rules */
	SOCKS_UNREACHABLE = 4, /* no such host */
	SOCKS_NO_CONNECTION = 5,
	SOCKS_NO_COMMAND = 7,
	SOCKS_NO_ADDRESS = 8, /* of that kind */
};

enum socks_state { SOCKS_MORE, SOCKS_READY, SOCKS_BAD };

/* socks_greeting() - @ret_used: its bytes. SOCKS_BAD also when the client insists on authentication. */
enum socks_state socks_greeting(const uint8_t *data, size_t size, size_t *ret_used);
/* socks_request() - SOCKS_BAD with @ret_reply: what to answer; @ret may have a text then. It is to be cleared but after SOCKS_MORE. */
enum socks_state socks_request(const uint8_t *data, size_t size, size_t *ret_used, struct net_target *ret,
			       enum socks_reply *ret_reply);
void socks_reply(enum socks_reply code, uint8_t reply[static SOCKS_REPLY_SIZE]);
