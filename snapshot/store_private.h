/* SPDX-License-Identifier: MIT */
#pragma once

/* store_private - for the other files of snapshot/ that keep tables in the same index. */

#include "snapshot/db.h"
#include "snapshot/object.h"
#include "snapshot/redo.h"
#include "snapshot/store.h"

/* store_usage.c: what the store remembers of its size. */
struct usage {
	uint64_t limit;
	bool known;    /* the sum of the objects is what object_dir.used says */
	int64_t saved; /* that sum as the index has it */
};

struct store {
	char *dir;
	struct object_dir objects;
	struct usage usage;
	int lock_fd; /* -1 for a reader */
	int wal_fd;  /* for store_sync(); -1 until the log is there */
	int reserve_fd;
	int reserved; /* atomic: the file holds its space */
	struct db *db;
	struct db *checkpoint_db; /* opened by the first store_checkpoint() */
	int64_t version;	  /* a reader's: of the schema that it found */
	int64_t epoch;
	uint64_t next_ino;
	/* store_transaction.c */
	struct redo *redo;    /* NULL: every change is committed at once */
	int64_t batch;	      /* of redo.h: the last one that the index has */
	int waiting;	      /* atomic: there are promised changes */
	uint64_t commits;     /* of SQLite, here */
	uint64_t synced;      /* atomic: so many of them are safe from a power cut */
	bool changing;	      /* between store_begin() and what ends it */
	bool stuck;	      /* the index can't be synced, so what redo has is not written over */
	int64_t epoch_before; /* for store_abort() */
};

struct db *store_db(struct store *s);

/*
 * store_transaction.c. store_redo() - opens the promised changes for writing, and commits those that a dead writer left. store_lags() - a reader's: there are
 * some that the index does not have. store_open_reserve() - before both.
 */
int store_redo(struct store *s);
bool store_lags(struct store *s);
void store_open_reserve(struct store *s);

struct usage *store_usage_state(struct store *s);
/* usage_load() - at the opening. usage_save() - before a commit, when it has changed by more than @step. */
void usage_load(struct store *s);
int usage_save(struct store *s, int64_t step);
