/* SPDX-License-Identifier: MIT */
#include "snapshot/db.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

struct db {
	sqlite3 *handle;
	GHashTable *queries; /* address of the text -> struct db_query */
	db_watch_fn watch;   /* NULL: nobody */
	void *watch_user;
};

struct db_query {
	sqlite3_stmt *stmt; /* NULL: did not prepare, and error says why */
	int error;
	struct db *db;
	const char *sql;
	bool changes; /* it may change the database */
	bool stepped; /* since it was reset */
	int count;    /* of parameters */
	struct db_value values[DB_VALUES_MAX];
};

static int db_errno(int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_CONSTRAINT:
		return -EEXIST;
	case SQLITE_TOOBIG:
		return -EFBIG;
	case SQLITE_CANTOPEN:
		return -ENOENT;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	default:
		return -EIO;
	}
}

/* A full disk shows as an I/O error of a write where SQLite does not call it SQLITE_FULL; the system's own errno then tells. */
static int db_last_errno(struct db *db, int code)
{
	if ((code & 0xff) == SQLITE_IOERR) {
		int sys = sqlite3_system_errno(db->handle);

		if (sys == ENOSPC || sys == EDQUOT)
			return -sys;
	}
	return db_errno(code);
}

static void db_query_free(gpointer data)
{
	struct db_query *q = data;

	sqlite3_finalize(q->stmt);
	g_free(q);
}

int db_open(const char *path, bool create, bool readonly, struct db **ret)
{
	struct db *db = g_new0(struct db, 1);
	int flags = SQLITE_OPEN_NOMUTEX | (readonly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
		    (create ? SQLITE_OPEN_CREATE : 0);
	int code = sqlite3_open_v2(path, &db->handle, flags, NULL);
	int r;

	db->queries = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, db_query_free);
	if (code != SQLITE_OK) {
		r = db_errno(code);
		db_close(db);
		return r;
	}
	sqlite3_extended_result_codes(db->handle, 1);
	sqlite3_busy_timeout(db->handle, 10000);
	/*
	 * A log of 4000 pages is moved into the database by the commit that made it so long. Mostly that is done already, by
	 * db_checkpoint() on another connection; but only a moment without a newer commit lets the log begin anew.
	 */
	r = db_exec(db, readonly ? "PRAGMA query_only = 1" : "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
						       "PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 16777216");
	if (r < 0) {
		db_close(db);
		return r;
	}
	*ret = db;
	return 0;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	g_hash_table_unref(db->queries);
	sqlite3_close(db->handle);
	g_free(db);
}

const char *db_message(struct db *db)
{
	return sqlite3_errmsg(db->handle);
}

int db_exec(struct db *db, const char *sql)
{
	if (db->watch)
		db->watch(sql, NULL, -1, 0, db->watch_user);
	return db_last_errno(db, sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}

struct db_query *db_query(struct db *db, const char *sql)
{
	struct db_query *q = g_hash_table_lookup(db->queries, sql);

	if (q && q->stmt)
		return q;
	if (!q) {
		q = g_new0(struct db_query, 1);
		q->db = db;
		q->sql = sql;
		g_hash_table_insert(db->queries, (gpointer)sql, q);
	}
	q->error = db_last_errno(db, sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &q->stmt, NULL));
	if (q->stmt) {
		q->changes = !sqlite3_stmt_readonly(q->stmt) && !g_str_has_prefix(sql, "BEGIN");
		q->count = sqlite3_bind_parameter_count(q->stmt);
		g_assert(q->count <= DB_VALUES_MAX);
	}
	return q;
}

static void bind(struct db_query *q, int i, struct db_value v)
{
	if (i < q->count)
		q->values[i] = v;
	switch (v.type) {
	case DB_NULL:
		sqlite3_bind_null(q->stmt, i + 1);
		break;
	case DB_INT:
		sqlite3_bind_int64(q->stmt, i + 1, v.number);
		break;
	case DB_TEXT:
		sqlite3_bind_text(q->stmt, i + 1, v.data, (int)v.size, SQLITE_STATIC);
		break;
	case DB_BLOB:
		sqlite3_bind_blob64(q->stmt, i + 1, v.data, v.size, SQLITE_STATIC);
		break;
	}
}

void db_bind_int(struct db_query *q, int i, int64_t value)
{
	bind(q, i, (struct db_value){ .type = DB_INT, .number = value });
}

void db_bind_text(struct db_query *q, int i, const char *value)
{
	bind(q, i, (struct db_value){ .type = value ? DB_TEXT : DB_NULL, .data = value, .size = value ? strlen(value) : 0 });
}

void db_bind_blob(struct db_query *q, int i, const void *value, size_t size)
{
	/* A NULL pointer would bind NULL, but an empty blob is a value; and that of nothing is NULL. */
	bind(q, i, (struct db_value){ .type = value || size == 0 ? DB_BLOB : DB_NULL, .data = value ? value : "", .size = size });
}

void db_bind_null(struct db_query *q, int i)
{
	bind(q, i, (struct db_value){ .type = DB_NULL });
}

int db_step(struct db_query *q)
{
	int code, r;

	if (!q->stmt)
		return q->error < 0 ? q->error : -EIO;
	if (q->changes && !q->stepped)
		sqlite3_set_last_insert_rowid(q->db->handle, 0);
	code = sqlite3_step(q->stmt);
	/* All is changed with the first step, also when rows are returned (https://www.sqlite.org/lang_returning.html). */
	if ((code == SQLITE_ROW || code == SQLITE_DONE) && q->changes && !q->stepped && q->db->watch)
		q->db->watch(q->sql, q->values, q->count, db_last_id(q->db), q->db->watch_user);
	q->stepped = true;
	if (code == SQLITE_ROW)
		return 1;
	r = code == SQLITE_DONE ? 0 : db_errno(code);
	if (r == -EIO) {
		int sys = sqlite3_system_errno(sqlite3_db_handle(q->stmt));

		if (sys == ENOSPC || sys == EDQUOT)
			r = -sys;
	}
	db_done(q);
	return r;
}

void db_done(struct db_query *q)
{
	sqlite3_reset(q->stmt);
	sqlite3_clear_bindings(q->stmt);
	q->stepped = false;
	memset(q->values, 0, (size_t)q->count * sizeof(q->values[0]));
}

int db_run(struct db_query *q)
{
	int r;

	while ((r = db_step(q)) > 0)
		;
	return r;
}

int64_t db_int(struct db_query *q, int i)
{
	return sqlite3_column_int64(q->stmt, i);
}

const char *db_text(struct db_query *q, int i)
{
	return (const char *)sqlite3_column_text(q->stmt, i);
}

const void *db_blob(struct db_query *q, int i, size_t *ret_size)
{
	const void *data = sqlite3_column_blob(q->stmt, i);

	*ret_size = sqlite3_column_bytes(q->stmt, i);
	return data;
}

bool db_is_null(struct db_query *q, int i)
{
	return sqlite3_column_type(q->stmt, i) == SQLITE_NULL;
}

int64_t db_last_id(struct db *db)
{
	return sqlite3_last_insert_rowid(db->handle);
}

int db_changes(struct db *db)
{
	return sqlite3_changes(db->handle);
}

int db_checkpoint(struct db *db, bool truncate)
{
	int mode = truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;

	return db_last_errno(db, sqlite3_wal_checkpoint_v2(db->handle, NULL, mode, NULL, NULL));
}

bool db_in_transaction(struct db *db)
{
	return !sqlite3_get_autocommit(db->handle);
}

void db_watch(struct db *db, db_watch_fn fn, void *user)
{
	db->watch = fn;
	db->watch_user = user;
}

int db_write(struct db *db, const char *sql, const struct db_value *values, int count)
{
	struct db_query *q = db_query(db, sql);
	db_watch_fn watch = db->watch;
	int r;

	if (q->stmt && (count != q->count || !q->changes))
		return -EUCLEAN;
	for (int i = 0; q->stmt && i < count; i++)
		bind(q, i, values[i]);
	db->watch = NULL;
	r = db_run(q);
	db->watch = watch;
	return r;
}
