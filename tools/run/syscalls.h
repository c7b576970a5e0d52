/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * syscalls - the system calls that a confined program does not get, and the one home of libseccomp
 *
 * A list of what is refused, not of what is allowed: compilers, browsers and debuggers have to work. What is on it
 * either reaches the kernel beyond the namespaces (keys, bpf, perf, modules), makes new namespaces and mounts, opens a
 * large part of the kernel for little use (io_uring, userfaultfd, rare socket families), or types into the terminal
 * (TIOCSTI). A call of another architecture than the program's own (32-bit, x32) kills the process.
 */

#include <glib.h>
#include <stdbool.h>

/* syscalls_filter() - as a file from which bwrap reads it; the caller closes it. -1 with an error. */
int syscalls_filter(GError **error);
/*
 * syscalls_enter_proxy() - from here on this process, which has one thread, is refused all that, and to start programs or
 * processes, to touch other processes and to use unix sockets by name. False: it is not.
 */
bool syscalls_enter_proxy(void);
