/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * network - what the [network] sections of a policy say about names, addresses and ports
 *
 *   default = deny | ask | allow   where no entry matches; deny when it is not there
 *   allow, ask, deny = ENTRY, ...  see rules/net_pattern.h
 *
 * As in [files] the last entry that matches decides, in the order of the file, those of extended profiles first. Each layer gives
 * its own verdict and the most closed one holds; a managed or workspace layer without a default has no opinion where nothing
 * matches, so it can only close.
 *
 * Ports. An "allow" without a port means 80 and 443, and so does "default = allow"; "ask" and "deny" mean all. "allow = X:*" does
 * not mean the ports of databases, clusters and mail (network_port_kind()): those are named one by one.
 *
 * A request for a name is decided twice: the name first, without resolving it, then each address it leads to. An address that is
 * special (rules/address.h) is refused, unless an entry of the user's layer names it: the address, or a network that is
 * special as a whole; 0.0.0.0/0 names none. A request for an address is decided by the entries of addresses and the default alone.
 *
 * Does not change after network_new(); may be asked from many threads.
 */

#include <glib.h>
#include <stdbool.h>

#include "rules/address.h"

struct policy;
struct network;

/* From open to closed. */
enum network_action { NETWORK_ALLOW, NETWORK_ASK, NETWORK_DENY };

struct network_verdict {
	enum network_action action;
	const char *rule; /* "FILE:LINE: KEY = ENTRY", or what is built in. Borrowed. */
};

const char *network_action_name(enum network_action a);

/* network_check_entries() - the value of a list in [network] has no mistakes. */
bool network_check_entries(const char *value, GError **error);

struct network *network_new(const struct policy *policy);
void network_free(struct network *n);
/* network_lets_through() - whether the user's layer has anything but denials. */
bool network_lets_through(const struct network *n);
/* network_profile() - whose [network] a person would edit. Borrowed. */
const char *network_profile(const struct network *n);

/* network_name() - @name as host_name_new() gives it. */
struct network_verdict network_name(const struct network *n, const char *name, unsigned port);
/* network_address() - one that a permitted name leads to. */
struct network_verdict network_address(const struct network *n, const struct address *a, unsigned port);
/* network_literal() - one that was asked for itself. */
struct network_verdict network_literal(const struct network *n, const struct address *a, unsigned port);

/* network_port_kind() - "PostgreSQL", for a port that is only opened by its number; NULL. */
const char *network_port_kind(unsigned port);
