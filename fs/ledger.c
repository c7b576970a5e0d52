/* SPDX-License-Identifier: MIT */
#include "fs/ledger.h"

#include <stddef.h>

/* What this thread's request has done. */
static _Thread_local struct ledger_entry *settled;

static uint32_t state_of(const struct ledger_entry *e)
{
	return __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct ledger_entry *e, enum ledger_state state)
{
	__atomic_store_n(&e->state, state, __ATOMIC_RELEASE);
}

/* A free one, else the oldest that a worker before this one left: its request came again long ago, or never. */
static struct ledger_entry *take(struct ledger *l, uint32_t worker)
{
	struct ledger_entry *oldest = NULL;

	for (int i = 0; i < LEDGER_ENTRIES; i++) {
		struct ledger_entry *e = &l->entries[i];

		if (state_of(e) == LEDGER_FREE)
			return e;
		if (e->worker < worker && (!oldest || e->worker < oldest->worker))
			oldest = e;
	}
	return oldest;
}

struct ledger_entry *ledger_prepare(struct ledger *l, uint32_t worker, uint64_t unique, uint64_t ino, int64_t ctime)
{
	struct ledger_entry *e = take(l, worker);

	if (!e)
		return NULL;
	set_state(e, LEDGER_FREE);
	e->unique = unique;
	e->ino = ino;
	e->ctime = ctime;
	e->worker = worker;
	set_state(e, LEDGER_PREPARED);
	return e;
}

void ledger_settle(struct ledger_entry *e, bool done)
{
	if (!e)
		return;
	set_state(e, done ? LEDGER_DONE : LEDGER_FREE);
	settled = done ? e : NULL;
}

void ledger_answered(struct ledger *l, uint64_t unique, bool again)
{
	if (settled && settled->unique == unique)
		set_state(settled, LEDGER_FREE);
	settled = NULL;
	for (int i = 0; again && i < LEDGER_ENTRIES; i++)
		if (state_of(&l->entries[i]) == LEDGER_DONE && l->entries[i].unique == unique)
			set_state(&l->entries[i], LEDGER_FREE);
}

void ledger_resolve(struct ledger *l, bool (*committed)(uint64_t ino, int64_t ctime, void *user), void *user)
{
	for (int i = 0; i < LEDGER_ENTRIES; i++) {
		struct ledger_entry *e = &l->entries[i];

		if (state_of(e) == LEDGER_PREPARED)
			ledger_settle(e, committed(e->ino, e->ctime, user));
	}
}

bool ledger_is_done(const struct ledger *l, uint64_t unique)
{
	for (int i = 0; i < LEDGER_ENTRIES; i++)
		if (state_of(&l->entries[i]) == LEDGER_DONE && l->entries[i].unique == unique)
			return true;
	return false;
}
