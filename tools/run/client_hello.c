/* SPDX-License-Identifier: MIT */
#include "tools/run/client_hello.h"

#include <string.h>

#define RECORD_HANDSHAKE 22
#define RECORD_HEADER 5
#define MESSAGE_CLIENT_HELLO 1
#define EXTENSION_SERVER_NAME 0
#define EXTENSION_ESNI 0xffce
#define EXTENSION_ECH 0xfe0d
#define NAME_HOST 0

/* What is left to read; a read beyond it fails, and so do all that follow. */
struct reader {
	const uint8_t *at, *end;
	bool bad;
};

static size_t left(const struct reader *r)
{
	return (size_t)(r->end - r->at);
}

static unsigned take(struct reader *r, unsigned bytes)
{
	unsigned value = 0;

	if (r->bad || left(r) < bytes) {
		r->bad = true;
		return 0;
	}
	while (bytes--)
		value = value << 8 | *r->at++;
	return value;
}

/* What is behind a length of so many bytes. */
static struct reader take_part(struct reader *r, unsigned length_bytes)
{
	unsigned size = take(r, length_bytes);
	struct reader part = { r->at, r->at, r->bad };

	if (r->bad || left(r) < size) {
		r->bad = part.bad = true;
		return part;
	}
	r->at += size;
	part.end = r->at;
	return part;
}

static bool read_name(struct reader extension, struct client_hello *ret)
{
	struct reader list = take_part(&extension, 2);
	unsigned type = take(&list, 1);
	struct reader name = take_part(&list, 2);

	if (extension.bad || list.bad || left(&extension) || left(&list) || type != NAME_HOST || !left(&name) ||
	    left(&name) >= sizeof(ret->name) || memchr(name.at, '\0', left(&name)))
		return false;
	memcpy(ret->name, name.at, left(&name));
	ret->name[left(&name)] = '\0';
	return true;
}

static bool read_extensions(struct reader all, struct client_hello *ret)
{
	bool named = false;

	while (left(&all)) {
		unsigned type = take(&all, 2);
		struct reader extension = take_part(&all, 2);

		if (all.bad)
			return false;
		if (type == EXTENSION_ECH || type == EXTENSION_ESNI)
			ret->encrypted = true;
		if (type != EXTENSION_SERVER_NAME)
			continue;
		if (named || !read_name(extension, ret))
			return false;
		named = true;
	}
	return true;
}

/* The body: version, random, session, ciphers, compressions, extensions (which an old client may leave out). */
static bool read_body(struct reader body, struct client_hello *ret)
{
	struct reader extensions;

	if (take(&body, 2) >> 8 != 3)
		return false;
	for (unsigned i = 0; i < 32; i++)
		take(&body, 1);
	take_part(&body, 1);
	take_part(&body, 2);
	take_part(&body, 1);
	if (body.bad || !left(&body))
		return !body.bad;
	extensions = take_part(&body, 2);
	return !body.bad && !left(&body) && read_extensions(extensions, ret);
}

bool client_hello_is_tls(const uint8_t *data, size_t size)
{
	return size > 0 && data[0] == RECORD_HANDSHAKE && (size < 2 || data[1] == 3);
}

enum client_hello_state client_hello_parse(const uint8_t *data, size_t size, struct client_hello *ret)
{
	struct reader r = { data, data + size, false }, message, body;
	size_t length;

	*ret = (struct client_hello){ 0 };
	if (size && !client_hello_is_tls(data, size))
		return CLIENT_HELLO_BAD;
	if (size < RECORD_HEADER)
		return CLIENT_HELLO_MORE;
	length = (size_t)data[3] << 8 | data[4];
	if (length < 4 || length > CLIENT_HELLO_MAX - RECORD_HEADER)
		return CLIENT_HELLO_BAD;
	if (size < RECORD_HEADER + length)
		return CLIENT_HELLO_MORE;
	take(&r, 3);
	message = take_part(&r, 2);
	if (take(&message, 1) != MESSAGE_CLIENT_HELLO)
		return CLIENT_HELLO_BAD;
	body = take_part(&message, 3);
	return !message.bad && !left(&message) && read_body(body, ret) ? CLIENT_HELLO_DONE : CLIENT_HELLO_BAD;
}
