/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net - the network of one run
 *
 * Inside there is nothing but loopback, always. With the mode "allowlist" a proxy listens there, at NET_PORT, for HTTP and
 * SOCKS 5 alike; it works outside, in a process of its own (net_process.h), and the environment tells programs of it.
 *
 * Steps: net_start(), while this process has one thread; net_open() once there are namespaces and before the program starts;
 * net_finish() after it has ended.
 */

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#define NET_PORT 3128

struct policy;
struct net;

/*
 * net_mode() - @option: of --net, or NULL. Without one the network is on when the user's profile has something in [network]
 * that is not a denial. An error for any other word than off and allowlist.
 */
bool net_mode(const char *option, const struct policy *policy, bool *ret_on, GError **error);

/* net_start() - @control_socket: of the view, for the audit and for questions. */
struct net *net_start(const struct policy *policy, const char *control_socket, GError **error);
/* net_open() - @first: a process in the namespaces of the run, which waits. */
bool net_open(struct net *n, pid_t first, GError **error);
/* net_environment() - adds to @environment (takes it) what tells programs of the proxy. */
char **net_environment(char **environment);
/* net_finish() - ends all connections, has them recorded, and says on standard error how many requests there were. */
void net_finish(struct net *n);
void net_free(struct net *n);
typedef struct net net_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(net_t, net_free)
