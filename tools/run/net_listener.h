/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net_listener - a listening socket on the loopback of another network namespace
 *
 * A socket belongs for ever to the namespace it was made in, whoever uses it. So a child process enters that of the run, makes
 * the socket and hands it out; then nothing of ours is inside, and no byte is copied twice. The kernel lets whoever made a user
 * namespace enter what it owns, so this works for an ordinary user too.
 */

#include <glib.h>
#include <sys/types.h>

/* net_listener_new() - at 127.0.0.1:@port in the namespace of @first, whether its loopback is up already or not. -1. */
int net_listener_new(pid_t first, unsigned port, GError **error);
