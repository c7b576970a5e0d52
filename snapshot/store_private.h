/* SPDX-License-Identifier: MIT */
#pragma once

/* store_private - for the other files of snapshot/ that keep tables in the same index. */

#include "snapshot/db.h"
#include "snapshot/store.h"

struct db *store_db(struct store *s);

/* store_usage.c: what the store remembers of its size. */
struct usage {
	uint64_t limit;
	bool known;    /* the sum of the objects is what object_dir.used says */
	int64_t saved; /* that sum as the index has it */
};
struct usage *store_usage_state(struct store *s);
/* usage_load() - at the opening. usage_save() - before a commit, when it has changed by more than @step. */
void usage_load(struct store *s);
int usage_save(struct store *s, int64_t step);
