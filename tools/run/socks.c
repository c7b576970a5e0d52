/* SPDX-License-Identifier: MIT */
#include "tools/run/socks.h"

#include <string.h>

enum { COMMAND_CONNECT = 1 };
enum { ADDRESS_IPV4 = 1, ADDRESS_NAME = 3, ADDRESS_IPV6 = 4 };

enum socks_state socks_greeting(const uint8_t *data, size_t size, size_t *ret_used)
{
	if (size && data[0] != SOCKS_VERSION)
		return SOCKS_BAD;
	if (size < 2 || size < 2u + data[1])
		return SOCKS_MORE;
	*ret_used = 2u + data[1];
	return memchr(data + 2, 0, data[1]) ? SOCKS_READY : SOCKS_BAD;
}

static bool read_host(const uint8_t *at, unsigned type, size_t length, struct net_target *ret)
{
	g_autofree char *host = NULL;
	unsigned port = (unsigned)at[length] << 8 | at[length + 1];
	char text[ADDRESS_TEXT_SIZE];
	struct address a = { .bytes = { [10] = 0xff, [11] = 0xff } };

	if (type == ADDRESS_NAME) {
		host = memchr(at, '\0', length) ? NULL : g_strndup((const char *)at, length);
		if (host && port && net_target_init(ret, host, port))
			return true;
		net_target_note(ret, (const char *)at, length);
		return false;
	}
	memcpy(a.bytes + sizeof(a.bytes) - length, at, length);
	return port && net_target_init(ret, address_text(&a, text), port);
}

enum socks_state socks_request(const uint8_t *data, size_t size, size_t *ret_used, struct net_target *ret,
			       enum socks_reply *ret_reply)
{
	size_t before = 4, length;

	*ret_reply = SOCKS_NO_COMMAND;
	if (size && data[0] != SOCKS_VERSION)
		return SOCKS_BAD;
	if (size < 5)
		return SOCKS_MORE;
	if (data[1] != COMMAND_CONNECT || data[2] != 0)
		return SOCKS_BAD;
	*ret_reply = SOCKS_NO_ADDRESS;
	if (data[3] == ADDRESS_NAME) {
		before = 5;
		length = data[4];
	} else if (data[3] == ADDRESS_IPV4 || data[3] == ADDRESS_IPV6) {
		length = data[3] == ADDRESS_IPV4 ? 4 : 16;
	} else {
		return SOCKS_BAD;
	}
	if (size < before + length + 2)
		return SOCKS_MORE;
	*ret_used = before + length + 2;
	return read_host(data + before, data[3], length, ret) ? SOCKS_READY : SOCKS_BAD;
}

/* The bound address is nobody's business. */
void socks_reply(enum socks_reply code, uint8_t reply[static SOCKS_REPLY_SIZE])
{
	const uint8_t fixed[SOCKS_REPLY_SIZE] = { SOCKS_VERSION, (uint8_t)code, 0, ADDRESS_IPV4 };

	memcpy(reply, fixed, sizeof(fixed));
}
