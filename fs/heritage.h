/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * heritage - what a worker leaves to the next one, whatever it dies of
 *
 * Shared memory of the keeper (fs/keeper.h) and the workers that it forks: at the same address in all of them. What holds for the life of the
 * mount and is in no store is here. The policy is not: the keeper has it since the mount, and each worker gets it with the fork.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/deletions.h"
#include "fs/ledger.h"

struct roster;

#define HERITAGE_INIT_MAX 512

struct heritage {
	struct roster *roster;  /* what the kernel may name */
	int32_t keeper;         /* its process */
	uint32_t worker;        /* how many workers there were before this one; set by the keeper */
	uint32_t ready;         /* atomic: the kernel has the view */
	uint64_t answers;       /* atomic: messages written to the kernel, for the keeper to see that something goes on */
	uint64_t disk_limit;    /* the store's, as set last */
	struct deletions deletions; /* under overlay->lock */
	struct ledger ledger;
	uint32_t init_size;     /* of the kernel's INIT message; 0 = none came yet */
	char init[HERITAGE_INIT_MAX];
};

/* heritage_new() - before the first worker; NULL when there is no memory for it. Stays until the process ends. */
struct heritage *heritage_new(void);
