/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net_ask - a question to a human about a place on the network, by way of the process that serves the view
 *
 * Who asks the same in the meantime waits for the same answer; for how long one holds is decided there. Where nobody can be asked,
 * or nobody answers, it is no.
 */

#include <glib.h>
#include <stdbool.h>

#include "tools/run/net_proxy.h"

struct net_asker;

/* net_asker_new() - @socket: the control socket of the view. */
struct net_asker *net_asker_new(const char *socket);
void net_asker_free(struct net_asker *a);
/*
 * net_asker_ask() - waits; from any thread. True: allowed. @ret_by: who said so, or why nobody did, for the audit and for
 * the program; caller frees.
 */
bool net_asker_ask(struct net_asker *a, const char *subject, const char *operation, const struct net_peer *peer, char **ret_by);
