/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net_target - where a request wants to go: a name or an address, and a port
 */

#include <glib.h>
#include <stdbool.h>

#include "rules/address.h"

struct net_target {
	char *name;		/* normalised; NULL: it was given as an address */
	struct address address; /* without a name */
	unsigned port;
	char *text; /* "name:port", "[address]:port": for messages and the audit */
};

/* net_target_init() - @host without brackets. False when it is neither a name nor an address; net_target_clear() else. */
bool net_target_init(struct net_target *t, const char *host, unsigned port);
/*
 * net_target_parse() - "host", "host:port", "[address]:port" as in URLs and Host fields. @default_port 0: it must have one.
 * Nothing may stand before the host: "user@host" is refused.
 */
bool net_target_parse(struct net_target *t, const char *authority, unsigned default_port);
/*
 * net_target_note() - @text is none: only ->text is set (NULL for nothing), to what can be shown of its first @size bytes, for the audit tells what was tried. A user and
 * a password in front of a host are left out. To be cleared, too.
 */
void net_target_note(struct net_target *t, const char *text, size_t size);
void net_target_clear(struct net_target *t);
typedef struct net_target net_target_t; /* for g_auto() only */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(net_target_t, net_target_clear)

bool net_target_equal(const struct net_target *a, const struct net_target *b);
