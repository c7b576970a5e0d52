/* SPDX-License-Identifier: MIT */
#include "tests/unit/hello.h"

#include <string.h>

static void add(GByteArray *to, const void *data, size_t size)
{
	g_byte_array_append(to, data, (guint)size);
}

static void add_number(GByteArray *to, unsigned bytes, size_t value)
{
	while (bytes--) {
		guint8 byte = (guint8)(value >> 8 * bytes);

		add(to, &byte, 1);
	}
}

/* Takes @part. */
static void add_part(GByteArray *to, unsigned length_bytes, GByteArray *part)
{
	add_number(to, length_bytes, part->len);
	add(to, part->data, part->len);
	g_byte_array_unref(part);
}

static void add_extension(GByteArray *to, unsigned type, GByteArray *body)
{
	add_number(to, 2, type);
	add_part(to, 2, body);
}

static void add_name(GByteArray *to, const char *name)
{
	GByteArray *list = g_byte_array_new(), *body = g_byte_array_new(), *text = g_byte_array_new();

	add_number(list, 1, 0);
	add(text, name, strlen(name));
	add_part(list, 2, text);
	add_part(body, 2, list);
	add_extension(to, 0, body);
}

static GByteArray *extensions(const char *name, unsigned flags)
{
	GByteArray *all = g_byte_array_new(), *groups = g_byte_array_new();

	add_number(groups, 4, 0x0002001d);
	add_extension(all, 10, groups);
	if (name)
		add_name(all, name);
	if (flags & HELLO_TWO_NAMES)
		add_name(all, name ? name : "other"), add_name(all, "other");
	if (flags & HELLO_ECH)
		add_extension(all, 0xfe0d, g_byte_array_new());
	return all;
}

GByteArray *hello_new(const char *name, unsigned flags)
{
	GByteArray *body = g_byte_array_new(), *message = g_byte_array_new(), *record = g_byte_array_new();
	static const guint8 random[32], session[33] = { 32 }, ciphers[] = { 0, 2, 0x13, 1 }, compressions[] = { 1, 0 };

	add_number(body, 2, 0x0303);
	add(body, random, sizeof(random));
	add(body, session, sizeof(session));
	add(body, ciphers, sizeof(ciphers));
	add(body, compressions, sizeof(compressions));
	if (!(flags & HELLO_NO_EXTENSIONS) || flags & HELLO_TWO_NAMES)
		add_part(body, 2, extensions(name, flags));
	if (flags & HELLO_LEFT_OVER)
		add_number(body, 1, 0);
	add_number(message, 1, 1);
	add_part(message, 3, body);
	if (flags & HELLO_TWO_RECORDS) {
		GByteArray *first = g_byte_array_new();

		add(first, message->data, message->len / 2);
		g_byte_array_remove_range(message, 0, message->len / 2);
		add_number(record, 3, 0x160301);
		add_part(record, 2, first);
	}
	add_number(record, 3, 0x160301);
	add_part(record, 2, message);
	return record;
}
