/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * attr - what stat(2) shows of one file, as a plain value
 *
 * Times are nanoseconds since 1970-01-01 UTC (years 1678 to 2262). @blocks is in units of 512 bytes.
 */

#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

struct attr {
	uint32_t mode; /* type and permission bits */
	uint32_t uid;
	uint32_t gid;
	uint32_t nlink;
	uint64_t rdev;
	uint64_t size;
	uint64_t blocks;
	int64_t atime;
	int64_t mtime;
	int64_t ctime;
};

#define NSEC_PER_SEC 1000000000LL

static inline int64_t nsec_from_timespec(struct timespec ts)
{
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static inline struct timespec nsec_to_timespec(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC };

	if (ts.tv_nsec < 0) {
		ts.tv_sec--;
		ts.tv_nsec += NSEC_PER_SEC;
	}
	return ts;
}

/* The wall clock, in ns. */
int64_t nsec_now(void);
