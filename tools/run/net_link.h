/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net_link - what the process of the proxy asks of `sbxfs run`, which alone has the control socket and can look at processes
 *
 * A pair of unix sockets that keep messages apart. Each call is one message, a GVariant (sa{sv}), with a descriptor to answer
 * on; the answer is one a{sv} on that. The proxy reads what strangers send, so nothing it says is trusted: it can have requests
 * recorded and questions put, and nothing else.
 *
 *   who     {port u}                                    -> pid i, program s
 *   ask     {subject s, operation s, program s, pid i}  -> allowed b, by s
 *   record  {operation s, subject s, verdict s, rule s, detail s, result i, pid i, program s}  -> {}, or nothing when that failed
 */

#include "tools/run/net_proxy.h"

#define NET_LINK_MESSAGE_MAX 32768

/* The proxy's side */

/* net_link_backend() - all but @resolve and @connect; @link is borrowed and lives as long. */
struct net_backend net_link_backend(const int *link);

/* The side of `sbxfs run` */

/* What serves the calls. who() is called from the thread of net_link_serve(), ask() from threads of their own. */
struct net_link_handlers {
	void (*who)(void *user, unsigned port, struct net_peer *ret);
	bool (*ask)(void *user, const char *subject, const char *operation, const struct net_peer *peer, char **ret_by);
	bool (*record)(void *user, const struct net_record *r);
	void *(*hold)(void *user); /* keeps @user alive for an ask(), after which comes drop() */
	void (*drop)(void *user);
	void *user;
};

/* net_link_serve() - until the other side is closed. */
void net_link_serve(int link, const struct net_link_handlers *h);
