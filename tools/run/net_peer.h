/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net_peer - which process inside has a connection to the proxy
 *
 * By the kernel's table of sockets in the network namespace of the run and the descriptors of its processes. A hint: several
 * processes may share a socket, and one may be gone before it is looked for.
 */

#include "tools/run/net_proxy.h"

/* net_peer_find() - @first: a process of the run. @port: of the program's end. Nothing found: pid 0. */
void net_peer_find(pid_t first, unsigned port, struct net_peer *ret);
