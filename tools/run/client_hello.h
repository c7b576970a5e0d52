/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * client_hello - the first message of a TLS connection, for the name it asks for
 *
 * RFC 8446, 4.1.2 and 5.1; RFC 6066, 3. Strict: lengths that do not agree, bytes left over, a second extension of the name, more
 * than one name, a name that is none, and a message in more than one record are no ClientHello. (The standard allows the
 * last; no client in common use does it.) Reads nothing outside of what it is given and keeps nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLIENT_HELLO_MAX (16384 + 5) /* bytes of one record */

enum client_hello_state { CLIENT_HELLO_MORE, CLIENT_HELLO_DONE, CLIENT_HELLO_BAD };

struct client_hello {
	char name[256]; /* as sent; "" = it has none */
	bool encrypted; /* has the extension of an encrypted ClientHello, real or as decoy (RFC 9849): a second name may hide in it */
};

/* client_hello_parse() - of the first @size bytes; more are needed for CLIENT_HELLO_MORE, at most CLIENT_HELLO_MAX. */
enum client_hello_state client_hello_parse(const uint8_t *data, size_t size, struct client_hello *ret);
/* client_hello_is_tls() - the bytes begin as a record of a handshake does. */
bool client_hello_is_tls(const uint8_t *data, size_t size);
