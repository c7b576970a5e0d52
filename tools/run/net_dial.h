/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net_dial - names to addresses by the system's resolver, addresses to connections
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "rules/address.h"

#define NET_DIAL_ADDRESSES 32

/*
 * net_dial_init() - before the first name, in a process with one thread: no domain is searched beside (resolv.conf(5),
 * search), so no other name is asked for than the one that was decided on. A dot at its end would do that too, and miss hosts(5).
 */
void net_dial_init(void);
/* net_dial_resolve() - appends to @ret (of struct address) what @name leads to, at most NET_DIAL_ADDRESSES. */
void net_dial_resolve(const char *name, GArray *ret);
/* net_dial_connect() - a socket, or -errno. */
int net_dial_connect(const struct address *a, unsigned port);
