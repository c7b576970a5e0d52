/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * deletions - how many names were removed, in all and in the last minute, and whether that is more than a policy lets pass
 *
 * A plain value, zeroed to begin with. Times are microseconds of any clock that does not go back. The last minute is kept in seconds: it
 * is the 60 seconds up to and with the present one.
 */

#include <stdbool.h>
#include <stdint.h>

#define DELETIONS_SECONDS 60

struct deletions {
	uint64_t limit;            /* 0 = none */
	uint64_t limit_per_minute; /* 0 = none */
	uint64_t total;
	int64_t second; /* the last one counted in */
	uint32_t counts[DELETIONS_SECONDS];
};

/* deletions_full() - one more would be beyond a limit; @ret_limit: the key of the limit in a policy. */
bool deletions_full(struct deletions *d, int64_t now, const char **ret_limit);
void deletions_count(struct deletions *d, int64_t now);
/* deletions_restart() - somebody looked at it: counts from nothing again. */
void deletions_restart(struct deletions *d);
