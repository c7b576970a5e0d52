/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * address - IP addresses, and what kind of place they lead to
 *
 * A plain value of 16 bytes in network order; an IPv4 address is kept in its mapped form, ::ffff:a.b.c.d, so that the two
 * spellings of it are one address. Other forms that carry an IPv4 address, which some router on the way translates, count
 * as what they carry: 64:ff9b::/96 (NAT64, RFC 6052), 2002::/16 (6to4, RFC 3056), ::/96 (RFC 4291, 2.5.5.1).
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct address {
	uint8_t bytes[16];
};

struct address_range {
	struct address first; /* bits behind the prefix are 0 */
	unsigned bits;	      /* of the prefix, 0 to 128 */
};

#define ADDRESS_TEXT_SIZE 46

/*
 * address_parse() - dotted decimal with four numbers, or an IPv6 address without brackets and zone. Octal, hexadecimal,
 * short and one-number spellings of IPv4 are none.
 */
bool address_parse(const char *text, struct address *ret);
/* address_text() - the usual spelling, into @text, which is returned. */
const char *address_text(const struct address *a, char text[static ADDRESS_TEXT_SIZE]);
bool address_is_ipv4(const struct address *a);
/* address_carried() - the IPv4 address that @a carries, or @a. */
struct address address_carried(const struct address *a);

/* address_range_parse() - "10.0.0.0/8", "fd00::/8" or one address. False also when bits behind the prefix are set. */
bool address_range_parse(const char *text, struct address_range *ret);
bool address_range_has(const struct address_range *r, const struct address *a);

/* Where no ordinary server on the internet is: the machine itself, its neighbours, what routers and clouds keep for themselves. */
struct address_kind {
	const char *name; /* "loopback" */
	bool never;	  /* no rule can open it */
	struct address_range range;
};

/*
 * address_special() - the kind of @a (of what it carries), the narrowest; NULL for an ordinary public address. Sources: the
 * IANA special-purpose address registries; the metadata services of cloud providers.
 */
const struct address_kind *address_special(const struct address *a);
