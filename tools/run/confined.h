/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * confined - the confined program, from its start by bwrap to its exit status
 *
 * Between us and the program stand bwrap, which waits outside of the namespaces, and the first process of the new
 * process namespace; killing that one ends everything in it. When this process dies, however that comes, the kernel
 * ends bwrap, and with it the rest.
 *
 * On a terminal all are in one process group: the keys for stop, interrupt and quit reach the program, and we
 * and bwrap leave what they mean to it. SIGTERM and SIGHUP are handed on; if the program is still there after
 * a few seconds it is killed.
 *
 * Limits. Open files and processes are kept by the kernel (setrlimit(2), and a control group for root, whose processes
 * setrlimit does not count); time, CPU time and memory by looking every few milliseconds, and ending everything when it
 * is too much. Where no control group can be made, root's processes are looked at too.
 */

#include <glib.h>
#include <stdbool.h>

#include "tools/run/limit.h"

struct net;

struct confined {
	char **places;	      /* arguments of bwrap: what can be seen */
	char **environment;   /* all of it */
	char *const *command; /* with its arguments */
	const char *hostname;
	struct limits limits;
	struct net *net; /* NULL = nothing but loopback */
};

#define CONFINED_TIMEOUT 124
#define CONFINED_KILLED 137

/*
 * confined_run() - @ret_status is what the shell would say: the program's exit status, 128+N for a signal, 127 when
 * there is no such program, 124 after the time limit, 137 after another limit (which was said on standard error). An
 * error means that it did not run; EXIT_PLATFORM with what is missing and the remedy.
 */
bool confined_run(const struct confined *c, int *ret_status, GError **error);
