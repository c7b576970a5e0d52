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

/* net_dial_resolve() - appends to @ret (of struct address) what @name leads to, at most NET_DIAL_ADDRESSES. */
void net_dial_resolve(const char *name, GArray *ret);
/* net_dial_connect() - a socket, or -errno. */
int net_dial_connect(const struct address *a, unsigned port);
