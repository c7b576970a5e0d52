/* SPDX-License-Identifier: MIT */
#include "snapshot/schema.h"

#include <errno.h>

/*
 * One step per version: what it does in a sentence, and its SQL. A released step is never changed.
 *
 * A row of node and name is a version: it is true in the epochs born <= E < died. died is 2^63-1 while it holds, so the live row is
 * found by the primary key alone, and past versions of it lie beside it.
 */
static const struct {
	const char *what;
	const char *sql;
} steps[SCHEMA_VERSION] = {
	{ "the first tables",
	  "CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
	  "CREATE TABLE origin ("
	  "  id INTEGER PRIMARY KEY, path BLOB NOT NULL,"
	  "  dev INTEGER NOT NULL, ino INTEGER NOT NULL, btime INTEGER NOT NULL,"
	  "  mode INTEGER NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL, nlink INTEGER NOT NULL, rdev INTEGER NOT NULL,"
	  "  size INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL,"
	  "  seen INTEGER NOT NULL, sha256 BLOB);"
	  "CREATE TABLE content ("
	  "  id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, kind INTEGER NOT NULL, size INTEGER NOT NULL, data BLOB,"
	  "  base INTEGER NOT NULL DEFAULT 0, base_origin INTEGER NOT NULL DEFAULT 0, base_size INTEGER NOT NULL DEFAULT 0);"
	  /* Pages of an object that its base no longer shows: a bit each, 4096 a chunk. */
	  "CREATE TABLE page ("
	  "  content INTEGER NOT NULL, chunk INTEGER NOT NULL, bits BLOB NOT NULL, PRIMARY KEY (content, chunk)) WITHOUT ROWID;"
	  "CREATE TABLE node ("
	  "  ino INTEGER NOT NULL, died INTEGER NOT NULL, born INTEGER NOT NULL, flags INTEGER NOT NULL,"
	  "  mode INTEGER NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL, nlink INTEGER NOT NULL, rdev INTEGER NOT NULL,"
	  "  size INTEGER NOT NULL, atime INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL,"
	  "  content INTEGER NOT NULL, origin INTEGER NOT NULL, target BLOB, xattrs BLOB,"
	  "  PRIMARY KEY (ino, died)) WITHOUT ROWID;"
	  "CREATE TABLE name ("
	  "  parent INTEGER NOT NULL, name BLOB NOT NULL, died INTEGER NOT NULL, born INTEGER NOT NULL,"
	  "  ino INTEGER NOT NULL, covers INTEGER NOT NULL,"
	  "  PRIMARY KEY (parent, name, died)) WITHOUT ROWID;"
	  /* What a rollback looks for: rows that began or ended after an epoch, not the whole table. */
	  "CREATE INDEX node_born ON node (born); CREATE INDEX node_died ON node (died) WHERE died < 9223372036854775807;"
	  "CREATE INDEX name_born ON name (born); CREATE INDEX name_died ON name (died) WHERE died < 9223372036854775807;"
	  "CREATE TABLE snapshot ("
	  "  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, epoch INTEGER NOT NULL, time INTEGER NOT NULL);"
	  "INSERT INTO setting VALUES ('epoch', '1');" },
	{ "the text of a changed workspace file, as the base of a merge",
	  "CREATE TABLE base (origin INTEGER PRIMARY KEY, data BLOB NOT NULL);" },
	{ "a writer may have left changes beside the index (redo.h), which those before would not find",
	  "INSERT INTO setting VALUES ('redo', '0');" },
};

static int schema_version(struct db *db, int64_t *ret)
{
	struct db_query *q = db_query(db, "PRAGMA user_version");
	int r = db_step(q);

	if (r <= 0)
		return r < 0 ? r : -EIO;
	*ret = db_int(q, 0);
	db_done(q);
	return 0;
}

int schema_check(struct db *db, int64_t *ret_version)
{
	int r = schema_version(db, ret_version);

	return r < 0 ? r : *ret_version <= SCHEMA_VERSION ? 0 : -EPROTO;
}

static int schema_step(struct db *db, int64_t version)
{
	g_autofree char *set = g_strdup_printf("PRAGMA user_version = %" G_GINT64_FORMAT, version + 1);
	int r = db_exec(db, steps[version].sql);

	return r < 0 ? r : db_exec(db, set);
}

int schema_upgrade(struct db *db)
{
	int64_t version;
	int r = schema_version(db, &version);

	if (r < 0)
		return r;
	if (version > SCHEMA_VERSION)
		return -EPROTO;
	if (version == SCHEMA_VERSION)
		return 0;
	r = db_exec(db, "BEGIN IMMEDIATE");
	for (; r == 0 && version < SCHEMA_VERSION; version++)
		r = schema_step(db, version);
	if (r == 0)
		r = db_exec(db, "COMMIT");
	if (r < 0)
		db_exec(db, "ROLLBACK");
	return r;
}
