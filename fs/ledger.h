/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * ledger - which requests of the kernel are done, though their answers may not have gone out
 *
 * A worker can die between the commit of a change and the answer to the request for it. The kernel then gives the same request to the next
 * worker, to which it must not look as if somebody else had done it before: a mkdir would fail with EEXIST, an exchange would be taken back.
 * So each change is written down here, in memory that outlives the worker (fs/heritage.h):
 *   ledger_prepare()  right before the commit: the request, and what will be in the index when it is committed, the number and ctime of
 *                     the row that was written last. That costs the transaction nothing, and it is enough, for a single change
 *                     is in that state at a time, and nothing is written after it that could hide it.
 *   ledger_settle()   right after the commit: done, or nothing happened.
 *   ledger_answered() after the answer: the entry is free.
 * The next worker first asks the index about the one that was prepared (ledger_resolve()), then knows (ledger_is_done()).
 *
 * prepare, settle and resolve under one lock of the caller's; the others from any thread. A request is known by its `unique` without
 * the bit that says that it came again.
 */

#include <stdbool.h>
#include <stdint.h>

/* More than threads serve requests, for an entry whose answer went out right before its worker died is only cleared when there is no other. */
#define LEDGER_ENTRIES 256

enum ledger_state { LEDGER_FREE, LEDGER_PREPARED, LEDGER_DONE };

struct ledger_entry {
	uint64_t unique;
	uint64_t ino; /* LEDGER_PREPARED: the row, and its ctime */
	int64_t ctime;
	uint32_t worker; /* its number */
	uint32_t state;
};

/* In shared memory, zeroed to begin with. */
struct ledger {
	struct ledger_entry entries[LEDGER_ENTRIES];
};

/* ledger_prepare() - of the worker number @worker; NULL when there are no entries: the change is made all the same. */
struct ledger_entry *ledger_prepare(struct ledger *l, uint32_t worker, uint64_t unique, uint64_t ino, int64_t ctime);
void ledger_settle(struct ledger_entry *e, bool done);
/* ledger_answered() - by the thread that settled it, or by any when it came @again. */
void ledger_answered(struct ledger *l, uint64_t unique, bool again);
/* ledger_resolve() - before the first change of a new worker; @committed says whether the index has the row. */
void ledger_resolve(struct ledger *l, bool (*committed)(uint64_t ino, int64_t ctime, void *user), void *user);
bool ledger_is_done(const struct ledger *l, uint64_t unique);
