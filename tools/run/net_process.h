/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net_process - the process in which the proxy works
 *
 * It reads what the confined program and strangers on the network send, so it has as little as it can do with: no file open but
 * the link, no capability, for root another user's number, no_new_privs, Landlock (where the kernel has it): only the system's
 * files can be read, none written; and a filter of system calls: no program is started, no process made, no socket of a
 * local service used. It ends when its parent does.
 */

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

struct network;

/* net_process_start() - @rules are as they are at this moment. @ret_link: see net_link.h. Before this process has threads. */
bool net_process_start(const struct network *rules, pid_t *ret_pid, int *ret_link, GError **error);
/* net_process_serve() - waits until it is confined and hands it the listening socket, which stays the caller's. */
bool net_process_serve(int link, int listener, GError **error);
