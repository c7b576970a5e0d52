/* SPDX-License-Identifier: MIT */
#include "rules/net_pattern.h"

#include <string.h>

#include "rules/host_name.h"
#include "rules/policy_error.h"

static bool fail(const char *text, const char *why, GError **error)
{
	g_set_error(error, POLICY_ERROR, POLICY_ERROR_INVALID,
		    "\"%s\" %s; an entry is a domain (example.com, *.example.com), an address or a network (192.0.2.7, 10.0.0.0/8, "
		    "[fd00::/8]), with a port where it is not 80 or 443 (example.com:8443)",
		    text, why);
	return false;
}

static bool parse_port(struct net_pattern *p, const char *text)
{
	guint64 port;

	if (g_str_equal(text, "*")) {
		p->any_port = true;
		return true;
	}
	if (!g_ascii_string_to_unsigned(text, 10, 1, 65535, &port, NULL))
		return false;
	p->port = (unsigned)port;
	return true;
}

/* Cuts the port off @host; the host of "[...]" loses its brackets. */
static bool split_port(struct net_pattern *p, char **host)
{
	char *colon = strrchr(*host, ':');

	if (**host == '[') {
		char *end = strchr(*host, ']');

		if (!end || (end[1] && end[1] != ':'))
			return false;
		colon = end[1] ? end + 1 : NULL;
		*end = '\0';
		++*host;
	} else if (colon && colon != strchr(*host, ':')) {
		return true; /* an IPv6 address as it is */
	}
	if (!colon)
		return true;
	*colon = '\0';
	return parse_port(p, colon + 1);
}

bool net_pattern_init(struct net_pattern *p, const char *text, GError **error)
{
	g_autofree char *copy = g_strdup(text);
	char *host = copy;

	*p = (struct net_pattern){ 0 };
	if (strstr(text, "://"))
		return fail(text, "is a URL: leave out what stands around the host", error);
	if (!split_port(p, &host))
		return fail(text, "has a port that is none", error);
	if (address_range_parse(host, &p->range)) {
		struct address carried = address_carried(&p->range.first);

		if (memcmp(&carried, &p->range.first, sizeof(carried)) != 0 && !address_is_ipv4(&p->range.first))
			return fail(text, "stands for an IPv4 address, and is decided as that one; write it as such", error);
		return true;
	}
	if (strchr(host, '/'))
		return fail(text, "is no network: bits behind the prefix must be 0, and a path cannot be told", error);
	if (g_str_equal(host, "*")) {
		p->name = g_strdup("");
		p->below = true;
		return true;
	}
	p->below = g_str_has_prefix(host, "*.");
	p->name = host_name_new(host + (p->below ? 2 : 0));
	return p->name || fail(text, "is no domain and no address", error);
}

void net_pattern_clear(struct net_pattern *p)
{
	g_clear_pointer(&p->name, g_free);
}

bool net_pattern_has_name(const struct net_pattern *p, const char *name)
{
	size_t own, len = strlen(name);

	if (!p->name)
		return false;
	own = strlen(p->name);
	if (!p->below)
		return g_str_equal(p->name, name);
	if (own == 0)
		return true;
	return len > own + 1 && name[len - own - 1] == '.' && g_str_equal(name + len - own, p->name);
}

bool net_pattern_has_address(const struct net_pattern *p, const struct address *a)
{
	struct address carried = address_carried(a);

	return !p->name && address_range_has(&p->range, &carried);
}
