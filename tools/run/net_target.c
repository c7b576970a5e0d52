/* SPDX-License-Identifier: MIT */
#include "tools/run/net_target.h"

#include <string.h>

#include "rules/host_name.h"

#define NOTE_MAX 300

bool net_target_init(struct net_target *t, const char *host, unsigned port)
{
	char text[ADDRESS_TEXT_SIZE];

	*t = (struct net_target){ .port = port };
	if (address_parse(host, &t->address)) {
		bool v4 = address_is_ipv4(&t->address);

		t->text = g_strdup_printf(v4 ? "%s:%u" : "[%s]:%u", address_text(&t->address, text), port);
		return true;
	}
	t->name = host_name_new(host);
	if (t->name)
		t->text = g_strdup_printf("%s:%u", t->name, port);
	return t->name != NULL;
}

static bool parse_port(const char *text, unsigned *ret)
{
	guint64 port;

	if (!g_ascii_string_to_unsigned(text, 10, 1, 65535, &port, NULL))
		return false;
	*ret = (unsigned)port;
	return true;
}

bool net_target_parse(struct net_target *t, const char *authority, unsigned default_port)
{
	g_autofree char *copy = g_strdup(authority);
	bool bracket = *copy == '[';
	char *host = bracket ? copy + 1 : copy;
	char *end = strpbrk(host, bracket ? "]" : ":");
	char *rest = end;
	unsigned port = default_port;

	*t = (struct net_target){ 0 };
	if (bracket) {
		if (!end)
			return false;
		*rest++ = '\0';
		if (!strchr(host, ':'))
			return false;
	}
	if (rest && *rest == ':') {
		*rest++ = '\0';
		if (!parse_port(rest, &port))
			return false;
	} else if (rest && *rest) {
		return false;
	}
	return port && net_target_init(t, host, port);
}

void net_target_note(struct net_target *t, const char *text, size_t size)
{
	const char *at = memrchr(text, '@', size);
	const char *host = at ? at + 1 : text;
	size_t left = MIN(size - (size_t)(host - text), NOTE_MAX);

	*t = (struct net_target){ 0 };
	if (left == 0)
		return;
	t->text = g_malloc0(left + 1);
	for (size_t i = 0; i < left; i++)
		t->text[i] = host[i] <= ' ' || host[i] > '~' ? '?' : host[i];
}

void net_target_clear(struct net_target *t)
{
	g_clear_pointer(&t->name, g_free);
	g_clear_pointer(&t->text, g_free);
}

bool net_target_equal(const struct net_target *a, const struct net_target *b)
{
	if (a->port != b->port || !a->name != !b->name)
		return false;
	return a->name ? g_str_equal(a->name, b->name) : memcmp(&a->address, &b->address, sizeof(a->address)) == 0;
}
