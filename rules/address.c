/* SPDX-License-Identifier: MIT */
#include "rules/address.h"

#include <arpa/inet.h>
#include <string.h>

#define IPV4_BITS 96 /* of the prefix that stands in front of an IPv4 address */

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

static bool parse_family(int family, const char *text, struct address *ret)
{
	struct address a = { { 0 } };

	if (family == AF_INET)
		memcpy(a.bytes, mapped, sizeof(mapped));
	if (inet_pton(family, text, a.bytes + (family == AF_INET ? sizeof(mapped) : 0)) != 1)
		return false;
	*ret = a;
	return true;
}

bool address_parse(const char *text, struct address *ret)
{
	return parse_family(strchr(text, ':') ? AF_INET6 : AF_INET, text, ret);
}

bool address_is_ipv4(const struct address *a)
{
	return memcmp(a->bytes, mapped, sizeof(mapped)) == 0;
}

const char *address_text(const struct address *a, char text[static ADDRESS_TEXT_SIZE])
{
	bool v4 = address_is_ipv4(a);

	return inet_ntop(v4 ? AF_INET : AF_INET6, a->bytes + (v4 ? sizeof(mapped) : 0), text, ADDRESS_TEXT_SIZE);
}

/* Ranges */

static bool bit_is_set(const struct address *a, unsigned i)
{
	return a->bytes[i / 8] & (0x80 >> i % 8);
}

bool address_range_parse(const char *text, struct address_range *ret)
{
	const char *slash = strchr(text, '/');
	g_autofree char *host = slash ? g_strndup(text, (size_t)(slash - text)) : g_strdup(text);
	bool v4 = !strchr(host, ':');
	struct address_range r = { .bits = 128 };
	guint64 bits;

	if (!address_parse(host, &r.first))
		return false;
	if (slash) {
		if (!g_ascii_string_to_unsigned(slash + 1, 10, 0, v4 ? 32 : 128, &bits, NULL))
			return false;
		r.bits = (unsigned)bits + (v4 ? IPV4_BITS : 0);
	}
	for (unsigned i = r.bits; i < 128; i++)
		if (bit_is_set(&r.first, i))
			return false;
	*ret = r;
	return true;
}

bool address_range_has(const struct address_range *r, const struct address *a)
{
	unsigned whole = r->bits / 8, rest = r->bits % 8;

	if (memcmp(r->first.bytes, a->bytes, whole) != 0)
		return false;
	return rest == 0 || (r->first.bytes[whole] ^ a->bytes[whole]) >> (8 - rest) == 0;
}

/* What carries an IPv4 address, and from which byte on. */

static const struct {
	uint8_t prefix[12];
	unsigned prefix_size;
	unsigned at;
} carriers[] = {
	{ { 0x00, 0x64, 0xff, 0x9b }, 12, 12 },
	{ { 0x20, 0x02 }, 2, 2 },
	{ { 0 }, 12, 12 },
};

struct address address_carried(const struct address *a)
{
	static const uint8_t low[15]; /* of :: and ::1, which carry nothing */
	struct address carried;

	if (memcmp(a->bytes, low, sizeof(low)) == 0 && a->bytes[15] <= 1)
		return *a;
	memcpy(carried.bytes, mapped, sizeof(mapped));
	for (unsigned i = 0; i < G_N_ELEMENTS(carriers); i++) {
		if (memcmp(a->bytes, carriers[i].prefix, carriers[i].prefix_size) != 0)
			continue;
		memcpy(carried.bytes + sizeof(mapped), a->bytes + carriers[i].at, 4);
		return carried;
	}
	return *a;
}

/* Kinds. The first that has an address is its kind, so the narrow ones stand in front. */

static const struct {
	const char *range, *name;
	bool never;
} special[] = {
	{ "169.254.169.254", "cloud metadata", false },
	{ "169.254.170.2", "cloud metadata", false },
	{ "100.100.100.200", "cloud metadata", false },
	{ "168.63.129.16", "cloud metadata", false },
	{ "192.0.0.192", "cloud metadata", false },
	{ "fd00:ec2::254", "cloud metadata", false },
	{ "0.0.0.0/8", "unspecified", true },
	{ "127.0.0.0/8", "loopback", false },
	{ "10.0.0.0/8", "private", false },
	{ "172.16.0.0/12", "private", false },
	{ "192.168.0.0/16", "private", false },
	{ "100.64.0.0/10", "shared (carrier-grade NAT)", false },
	{ "169.254.0.0/16", "link-local", false },
	{ "192.0.0.0/24", "reserved", false },
	{ "192.0.2.0/24", "documentation", false },
	{ "192.88.99.0/24", "reserved", false },
	{ "198.18.0.0/15", "benchmarking", false },
	{ "198.51.100.0/24", "documentation", false },
	{ "203.0.113.0/24", "documentation", false },
	{ "224.0.0.0/4", "multicast", true },
	{ "240.0.0.0/4", "reserved", true },
	{ "::", "unspecified", true },
	{ "::1", "loopback", false },
	{ "64:ff9b:1::/48", "private", false },
	{ "2001::/23", "reserved", false },
	{ "2001:db8::/32", "documentation", false },
	{ "3fff::/20", "documentation", false },
	{ "fc00::/7", "unique-local", false },
	{ "fe80::/10", "link-local", false },
	{ "fec0::/10", "private", false },
	{ "ff00::/8", "multicast", true },
};

static struct address_kind kinds[G_N_ELEMENTS(special)];

static void fill_kinds(void)
{
	static gsize done;

	if (!g_once_init_enter(&done))
		return;
	for (unsigned i = 0; i < G_N_ELEMENTS(special); i++) {
		kinds[i].name = special[i].name;
		kinds[i].never = special[i].never;
		if (!address_range_parse(special[i].range, &kinds[i].range))
			g_assert_not_reached();
	}
	g_once_init_leave(&done, 1);
}

/* All that is public in IPv6 lies in 2000::/3. */
static const struct address_kind unassigned = { .name = "reserved", .range = { .bits = 0 } };

const struct address_kind *address_special(const struct address *a)
{
	struct address carried = address_carried(a);

	fill_kinds();
	for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++)
		if (address_range_has(&kinds[i].range, &carried))
			return &kinds[i];
	return address_is_ipv4(&carried) || carried.bytes[0] >> 5 == 1 ? NULL : &unassigned;
}
