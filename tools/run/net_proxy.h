/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net_proxy - the only way out of a confined run: an HTTP and SOCKS 5 proxy on one port, which decides by rules/network.h
 *
 * What is let through goes to an address that was checked, one of those the name had when it was asked for this request. What goes
 * to port 443 must be TLS for the name that was asked for (client_hello.h), what goes to port 80 HTTP for that host
 * (http_request.h); TLS on other ports must not name another host. For a host given by its address, TLS has no name. A name that no
 * rule lets through is not resolved.
 *
 * A thread for each connection, at most NET_PROXY_CONNECTIONS; more wait in the kernel. It takes about 150 KiB for each.
 * What a proxy needs of the outside it gets from its backend, whose functions are called from all these threads.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rules/network.h"

#define NET_PROXY_CONNECTIONS 256
#define NET_PROGRAM_SIZE 32

struct net_proxy;

/* Who asks, as far as it can be told. */
struct net_peer {
	pid_t pid; /* 0 = unknown */
	char program[NET_PROGRAM_SIZE];
};

/* For the audit. Strings may be NULL but for @operation and @subject. */
struct net_record {
	const char *operation; /* "request", "request-end" */
	const char *subject;   /* "host:port" */
	const char *verdict, *rule, *detail;
	int result; /* errno */
	struct net_peer peer;
};

struct net_backend {
	/* Who has the other end of a connection from that port on the program's loopback. */
	void (*who)(void *user, unsigned port, struct net_peer *ret);
	/* Waits for a human. False: not allowed. @ret_by: who said so, or why nobody did; caller frees. */
	bool (*ask)(void *user, const char *subject, const char *operation, const struct net_peer *peer, char **ret_by);
	/* False: it could not be recorded. */
	bool (*record)(void *user, const struct net_record *r);
	/* As net_dial_resolve(). */
	void (*resolve)(void *user, const char *name, GArray *ret);
	/* As net_dial_connect(). */
	int (*connect)(void *user, const struct address *a, unsigned port);
	void *user;
};

/* net_proxy_new() - borrows both. */
struct net_proxy *net_proxy_new(const struct network *rules, const struct net_backend *backend);
/* net_proxy_run() - serves @listener until @stop is readable or hung up, then ends all connections and waits for that. */
void net_proxy_run(struct net_proxy *p, int listener, int stop);
void net_proxy_free(struct net_proxy *p);
