/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * limit - how much a run may use, from the profile's [limits] and --limit
 *
 *   memory     of all processes together, and of each tmpfs   512M, 4G (1024s)
 *   processes  at the same time, threads not counted where the supervisor counts
 *   cpu        time of all processes together                 90s, 10m
 *   time       on the clock                                   30m, 2h
 *   files      open at the same time, of each process
 *   output     bytes on standard output and error together, unless that is a terminal
 *   disk       what the store takes; kept by the view, also without a run
 *
 * Of the layers of a policy the tightest value holds. --limit stands in for the user's own profile, and can be looser
 * than that; a managed policy and the workspace's own file can only be tightened by it.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct policy;

enum limit { LIMIT_MEMORY, LIMIT_PROCESSES, LIMIT_CPU, LIMIT_TIME, LIMIT_FILES, LIMIT_OUTPUT, LIMIT_DISK };
#define LIMIT_COUNT 7

/* Bytes, numbers or milliseconds; 0 = no limit. */
struct limits {
	uint64_t value[LIMIT_COUNT];
};

/*
 * limits_read() - @given: each value of --limit ("memory=4G,time=30m"), or NULL. What is not understood is an error.
 */
bool limits_read(const struct policy *policy, char *const *given, struct limits *ret, GError **error);

const char *limit_name(enum limit which);
/* limit_text() - "memory=4G", for a message. Caller frees. */
char *limit_text(const struct limits *l, enum limit which);
