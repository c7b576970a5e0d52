/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * usage - what a process and all its descendants use, as /proc shows it
 *
 * The numbers are of a moment that lasts as long as the reading; processes that come and go are seen or not.
 */

#include <stdint.h>
#include <sys/types.h>

struct usage {
	uint64_t processes; /* without the first */
	uint64_t memory;    /* bytes mapped that are of no file; what several share counts more than once */
	uint64_t cpu_ms;    /* with children that have ended and were waited for */
};

/* usage_read() - stops at @enough processes. */
void usage_read(pid_t first, uint64_t enough, struct usage *ret);
/* usage_open_memory() - bytes in memfds, mapped or not. A look at each open file. */
uint64_t usage_open_memory(pid_t first);
/*
 * usage_exact_memory() - bytes, both together, a shared page counted once. Takes longer. Not seen is what no process has open or mapped, as
 * detached segments of shmget(2), and what the kernel keeps for one: the buffers of sockets and pipes.
 */
uint64_t usage_exact_memory(pid_t first);
/* usage_signal_children() - to the direct children of @first. */
void usage_signal_children(pid_t first, int number);
