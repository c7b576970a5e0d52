/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * fsck - does the index agree with itself and with objects/?
 *
 * Whatever a row refers to must be there and be what the row says: nodes of names in each epoch that can be looked at,
 * contents of nodes, bases of contents, origins, files of large contents; the texts kept for merges have the hash that
 * their origin recorded. Contents have no hash of their own, for they are written in place, so a bit that changed in
 * the middle of one is not found.
 *
 * Looking changes nothing. A repair removes what no row refers to, which is what a killed process left, and nothing
 * else: where something is missing or contradicts itself, only a human can say what to give up.
 */

#include <stdbool.h>

#include "snapshot/store.h"

enum fsck_kind {
	FSCK_DAMAGE,   /* something is missing or wrong */
	FSCK_LEFTOVER, /* nothing refers to it; fsck_repair() removes it */
	FSCK_NOTE,     /* sound, and worth knowing */
};

/*
 * @check: a word for what was looked at; @message: for people, UTF-8. Of one check only the first few are told, then
 * their number.
 */
typedef void (*fsck_fn)(enum fsck_kind kind, const char *check, const char *message, void *user);

/*
 * fsck_run() - @alone: nobody can write the store meanwhile (its lock is held), so the files of contents are looked at,
 * too. 0 whatever is found; -errno when it could not be looked at to the end.
 */
int fsck_run(struct store *s, bool alone, fsck_fn fn, void *user);
/*
 * fsck_repair() - of a store that is open for writing and in which nothing is damaged: a damaged row may be the one that
 * speaks of what seems to be left over.
 */
int fsck_repair(struct store *s);
