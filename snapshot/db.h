/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * db - the one home of SQLite
 *
 * A thin layer: prepared statements kept for the life of the connection and found by the address of their text (so pass string
 * literals), results as 0 or -errno (-ENOSPC for a full disk, -EUCLEAN for damage, -EBUSY, -EROFS, -EIO). Not thread-safe:
 * one connection, one user at a time.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct db;
struct db_query;

/* db_open() - opens (@create: or makes) a database in WAL mode. @readonly sees what others commit. */
int db_open(const char *path, bool create, bool readonly, struct db **ret);
void db_close(struct db *db);
/* db_message() - SQLite's words for the last failure; borrowed until the next call. */
const char *db_message(struct db *db);

/*
 * db_checkpoint() - moves the WAL into the database, as far as no reader is in the way. @truncate: waits for the readers and empties the file.
 */
int db_checkpoint(struct db *db, bool truncate);

/* db_exec() - one or more statements without results. */
int db_exec(struct db *db, const char *sql);

/*
 * db_query() - a statement ready to bind, borrowed. Never NULL: a text that does not prepare gives a query whose db_step() fails. Columns
 * and parameters are numbered from 0. Step until it returns 0 or an error, or call db_done(), before the next use of the same text.
 */
struct db_query *db_query(struct db *db, const char *sql);
void db_bind_int(struct db_query *q, int i, int64_t value);
void db_bind_text(struct db_query *q, int i, const char *value);                    /* NULL binds NULL; must live until db_done() */
void db_bind_blob(struct db_query *q, int i, const void *value, size_t size);       /* the same */
void db_bind_null(struct db_query *q, int i);
int db_step(struct db_query *q);      /* 1 = a row, 0 = the end, -errno; resets itself on 0 and on errors */
void db_done(struct db_query *q);
int db_run(struct db_query *q);       /* step to the end: 0 or -errno */
int64_t db_int(struct db_query *q, int i);
const char *db_text(struct db_query *q, int i);                                     /* borrowed until the next step; NULL for NULL */
const void *db_blob(struct db_query *q, int i, size_t *ret_size);                   /* the same */
bool db_is_null(struct db_query *q, int i);
int64_t db_last_id(struct db *db); /* of the row that the last insertion made */
int db_changes(struct db *db); /* rows that the last statement changed */
/* db_in_transaction() - one was begun and neither committed nor, as a failure may do, rolled back. */
bool db_in_transaction(struct db *db);

/* What is bound to a parameter. */
enum db_type { DB_NULL, DB_INT, DB_TEXT, DB_BLOB };
struct db_value {
	enum db_type type;
	int64_t number;
	const void *data; /* of a text or blob; borrowed */
	size_t size;	  /* bytes of it */
};
#define DB_VALUES_MAX 24 /* a statement has no more parameters */

/*
 * db_watch() - @fn is told each statement that may have changed the database, right after it did: its text, its values, and the row it inserted, 0 for
 * none (which db_last_id() then says, too). Not told: BEGIN and its like. Of db_exec() only that it ran: @count is -1. NULL ends it.
 */
typedef void (*db_watch_fn)(const char *sql, const struct db_value *values, int count, int64_t last_id, void *user);
void db_watch(struct db *db, db_watch_fn fn, void *user);
/* db_write() - such a statement again, with db_last_id() as it was told. Not told to db_watch(). */
int db_write(struct db *db, const char *sql, const struct db_value *values, int count);
