/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net_pattern - one entry of a list in [network]: which places on the network it means
 *
 *   example.com          that name
 *   *.example.com        every name below it, not itself
 *   *                    every name
 *   192.0.2.7            that address; 10.0.0.0/8 and fd00::/8: a network
 *   NAME:8443, 10.0.0.0/8:5432, [fd00::/8]:443   with a port; :* is every port
 *
 * A name never matches an address, nor an address a name.
 */

#include <glib.h>
#include <stdbool.h>

#include "rules/address.h"

struct net_pattern {
	char *name; /* normalised, of "*" the empty string; NULL: it is of addresses */
	bool below; /* the names below it */
	struct address_range range;
	unsigned port; /* 0 = none was written */
	bool any_port;
};

/* net_pattern_init() - POLICY_ERROR_INVALID says what is wrong with @text. */
bool net_pattern_init(struct net_pattern *p, const char *text, GError **error);
void net_pattern_clear(struct net_pattern *p);

/* net_pattern_has_name() - @name as host_name_new() gives it. Ports are the caller's. */
bool net_pattern_has_name(const struct net_pattern *p, const char *name);
/* net_pattern_has_address() - by what the address carries. */
bool net_pattern_has_address(const struct net_pattern *p, const struct address *a);
