/* SPDX-License-Identifier: MIT */
#include "snapshot/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "snapshot/audit_spool.h"
#include "snapshot/db.h"

/*
 * One step per version: what it does in a sentence, and its SQL. A released step is never changed. The columns of a
 * record are those of its encoding.
 */
/* AUDIT_DENIAL, and AUDIT_NETWORK with EACCES. SQLite uses the index for a condition in the same words. */
#define DENIED "kind = 2 OR (kind = 34 AND result = 13)"

static const struct {
	const char *what;
	const char *sql;
} steps[AUDIT_VERSION] = {
	{ "the first tables", "CREATE TABLE record ("
			      "  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind INTEGER NOT NULL, pid INTEGER "
			      "NOT NULL, uid INTEGER NOT NULL,"
			      "  result INTEGER NOT NULL, operation BLOB NOT NULL, program BLOB, path BLOB, new_path "
			      "BLOB, verdict BLOB, rule BLOB, detail BLOB,"
			      "  hash BLOB NOT NULL);"
			      /* --denied is the common question, and denials are few. */
			      "CREATE INDEX record_denied ON record (seq) WHERE " DENIED ";"
			      "CREATE TABLE checkpoint ("
			      "  id INTEGER PRIMARY KEY CHECK (id = 1), first INTEGER NOT NULL, last INTEGER NOT NULL, "
			      "anchor BLOB NOT NULL, head BLOB NOT NULL,"
			      "  spool_generation INTEGER NOT NULL, spool_offset INTEGER NOT NULL);"
			      "INSERT INTO checkpoint VALUES (1, 1, 0, zeroblob(32), zeroblob(32), 0, 0);" },
};

#define COLUMNS "seq, time, kind, pid, uid, result, operation, program, path, new_path, verdict, rule, detail, hash"
#define FIRST_STRING 6
#define HASH_COLUMN 13

struct audit {
	struct db *db;
	GChecksum *sum;
	GByteArray *scratch;
};

/* Life */

static int audit_upgrade(struct audit *a, bool write)
{
	struct db_query *q = db_query(a->db, "PRAGMA user_version");
	int64_t version;
	int r = db_step(q);

	if (r <= 0)
		return r < 0 ? r : -EIO;
	version = db_int(q, 0);
	db_done(q);
	if (version == AUDIT_VERSION)
		return 0;
	if (version > AUDIT_VERSION || !write)
		return version > AUDIT_VERSION ? -EPROTO : -ENOENT;
	r = db_exec(a->db, "BEGIN IMMEDIATE");
	for (; r == 0 && version < AUDIT_VERSION; version++) {
		g_autofree char *set = g_strdup_printf("PRAGMA user_version = %" PRId64, version + 1);

		r = db_exec(a->db, steps[version].sql);
		if (r == 0)
			r = db_exec(a->db, set);
	}
	if (r == 0)
		r = db_exec(a->db, "COMMIT");
	if (r < 0)
		db_exec(a->db, "ROLLBACK");
	return r;
}

int audit_open(const char *dir, bool write, struct audit **ret)
{
	g_autofree char *path = g_build_filename(dir, "audit.db", NULL);
	struct audit *a;
	struct db *db;
	int r = db_open(path, write, !write, &db);

	if (r < 0)
		return r;
	a = g_new0(struct audit, 1);
	a->db = db;
	a->sum = g_checksum_new(G_CHECKSUM_SHA256);
	a->scratch = g_byte_array_new();
	r = audit_upgrade(a, write);
	if (r < 0)
		g_clear_pointer(&a, audit_close);
	*ret = a;
	return r;
}

void audit_close(struct audit *a)
{
	if (!a)
		return;
	db_close(a->db);
	g_checksum_free(a->sum);
	g_byte_array_unref(a->scratch);
	g_free(a);
}

const char *audit_message(struct audit *a)
{
	return db_message(a->db);
}

/* The chain */

static void chain_next(struct audit *a, const uint8_t before[32], int64_t seq, const guint8 *data, size_t size,
		       uint8_t ret[32])
{
	int64_t le = GINT64_TO_LE(seq);
	gsize n = 32;

	g_checksum_reset(a->sum);
	g_checksum_update(a->sum, before, 32);
	g_checksum_update(a->sum, (const guchar *)&le, sizeof(le));
	g_checksum_update(a->sum, data, size);
	g_checksum_get_digest(a->sum, ret, &n);
}

static bool get_hash(struct db_query *q, int i, uint8_t ret[32])
{
	size_t size;
	const void *data = db_blob(q, i, &size);

	if (size != 32)
		return false;
	memcpy(ret, data, 32);
	return true;
}

int audit_checkpoint(struct audit *a, struct audit_checkpoint *ret)
{
	struct db_query *q =
		db_query(a->db, "SELECT first, last, spool_generation, spool_offset, anchor, head FROM checkpoint");
	int r = db_step(q);

	if (r <= 0)
		return r < 0 ? r : -EUCLEAN;
	*ret = (struct audit_checkpoint){ .first = db_int(q, 0),
					  .last = db_int(q, 1),
					  .spool_generation = (uint64_t)db_int(q, 2),
					  .spool_offset = (uint64_t)db_int(q, 3) };
	r = get_hash(q, 4, ret->anchor) && get_hash(q, 5, ret->head) ? 0 : -EUCLEAN;
	db_done(q);
	return r;
}

static int checkpoint_put(struct audit *a, const struct audit_checkpoint *c)
{
	struct db_query *q = db_query(a->db, "UPDATE checkpoint SET first = ?, last = ?, spool_generation = ?, "
					     "spool_offset = ?, anchor = ?, head = ?");

	db_bind_int(q, 0, c->first);
	db_bind_int(q, 1, c->last);
	db_bind_int(q, 2, (int64_t)c->spool_generation);
	db_bind_int(q, 3, (int64_t)c->spool_offset);
	db_bind_blob(q, 4, c->anchor, 32);
	db_bind_blob(q, 5, c->head, 32);
	return db_run(q);
}

static int record_put(struct audit *a, struct audit_checkpoint *c, const GByteArray *encoding, int32_t result)
{
	struct db_query *q =
		db_query(a->db, "INSERT INTO record (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
	const char **strings[AUDIT_STRINGS];
	struct audit_record r;

	if (!audit_record_decode(encoding->data, encoding->len, &r))
		return -EINVAL;
	r.result = result;
	g_byte_array_set_size(a->scratch, 0);
	audit_record_encode(&r, a->scratch);
	chain_next(a, c->head, ++c->last, a->scratch->data, a->scratch->len, c->head);
	db_bind_int(q, 0, c->last);
	db_bind_int(q, 1, r.time);
	db_bind_int(q, 2, r.kind);
	db_bind_int(q, 3, r.pid);
	db_bind_int(q, 4, r.uid);
	db_bind_int(q, 5, r.result);
	audit_record_strings(&r, strings);
	for (int i = 0; i < AUDIT_STRINGS; i++)
		if (*strings[i])
			db_bind_blob(q, FIRST_STRING + i, *strings[i], strlen(*strings[i]));
	db_bind_blob(q, HASH_COLUMN, c->head, 32);
	return db_run(q);
}

/* Changes made by @r so far are kept when it is 0. */
static int transaction_end(struct audit *a, int r)
{
	if (r == 0)
		r = db_exec(a->db, "COMMIT");
	if (r < 0)
		db_exec(a->db, "ROLLBACK");
	return r;
}

int audit_append(struct audit *a, GPtrArray *encodings, const int32_t *results, uint64_t spool_generation,
		 uint64_t spool_offset)
{
	struct audit_checkpoint c;
	int r = db_exec(a->db, "BEGIN IMMEDIATE");

	if (r < 0)
		return r;
	r = audit_checkpoint(a, &c);
	for (guint i = 0; r == 0 && i < encodings->len; i++)
		r = record_put(a, &c, g_ptr_array_index(encodings, i), results[i]);
	c.spool_generation = spool_generation;
	c.spool_offset = spool_offset;
	if (r == 0)
		r = checkpoint_put(a, &c);
	return transaction_end(a, r);
}

int audit_sync(struct audit *a)
{
	return db_checkpoint(a->db, false);
}

/* Reading */

static bool path_is_below(const char *path, const char *top)
{
	size_t n = strlen(top);

	if (n == 0)
		return path != NULL;
	return path && strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool audit_filter_matches(const struct audit_filter *f, const struct audit_record *r)
{
	if (f->denied && r->kind != AUDIT_DENIAL && !(r->kind == AUDIT_NETWORK && r->result == EACCES))
		return false;
	if (f->since > r->time || (f->operation && strcmp(f->operation, r->operation) != 0))
		return false;
	return !f->path || path_is_below(r->path, f->path) || path_is_below(r->new_path, f->path);
}

/*
 * Borrowed until the next step. False for a row that we have not written: bytes behind a NUL would be hidden from the
 * hash.
 */
static bool row_record(struct db_query *q, struct audit_record *ret, const uint8_t **ret_hash)
{
	const char **strings[AUDIT_STRINGS];
	bool good = true;
	size_t size;

	*ret = (struct audit_record){ .seq = db_int(q, 0),
				      .time = db_int(q, 1),
				      .kind = db_int(q, 2),
				      .pid = (int32_t)db_int(q, 3),
				      .uid = (uint32_t)db_int(q, 4),
				      .result = (int32_t)db_int(q, 5) };
	audit_record_strings(ret, strings);
	for (int i = 0; i < AUDIT_STRINGS; i++) {
		*strings[i] = db_text(q, FIRST_STRING + i);
		db_blob(q, FIRST_STRING + i, &size);
		good = good && (*strings[i] ? strlen(*strings[i]) : 0) == size;
	}
	if (!ret->operation)
		ret->operation = "";
	*ret_hash = db_blob(q, HASH_COLUMN, &size);
	return good && size == 32;
}

/* @ret_more: @fn wants more. */
static int list_chain(struct audit *a, const struct audit_filter *f, audit_fn fn, void *user, bool *ret_more)
{
	struct db_query *q =
		f->denied ? db_query(a->db, "SELECT " COLUMNS " FROM record WHERE (" DENIED ") AND seq > ? ORDER BY seq")
			  : db_query(a->db, "SELECT " COLUMNS " FROM record WHERE seq > ? ORDER BY seq");
	struct audit_record record;
	const uint8_t *hash;
	int r;

	db_bind_int(q, 0, f->after);
	while ((r = db_step(q)) > 0) {
		row_record(q, &record, &hash);
		if (audit_filter_matches(f, &record) && !fn(&record, hash, user)) {
			db_done(q);
			*ret_more = false;
			return 0;
		}
	}
	return r;
}

struct spooled {
	uint64_t end;
	int32_t result;
	GByteArray *encoding;
};

static void spooled_clear(gpointer data)
{
	g_byte_array_unref(((struct spooled *)data)->encoding);
}

static bool keep_spooled(const struct audit_record *r, uint64_t end, void *user)
{
	struct spooled s = { .end = end, .result = r->result, .encoding = g_byte_array_new() };

	audit_record_encode(r, s.encoding);
	g_array_append_val((GArray *)user, s);
	return true;
}

static void list_spooled(GArray *all, uint64_t generation, const struct audit_checkpoint *c,
			 const struct audit_filter *f, audit_fn fn, void *user)
{
	struct audit_record record;

	for (guint i = 0; i < all->len && generation >= c->spool_generation; i++) {
		const struct spooled *s = &g_array_index(all, struct spooled, i);

		if ((generation > c->spool_generation || s->end > c->spool_offset) &&
		    audit_record_decode(s->encoding->data, s->encoding->len, &record) &&
		    audit_filter_matches(f, &record) && !fn(&record, NULL, user))
			return;
	}
}

/* The spool is read first: what leaves it meanwhile is in the chain then, and the checkpoint tells which that is. */
int audit_list(struct audit *a, const char *dir, bool spooled, const struct audit_filter *f, audit_fn fn, void *user)
{
	g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(struct spooled));
	struct audit_checkpoint c = { 0 };
	uint64_t generation = 0;
	bool more = true;
	int r = 0;

	g_array_set_clear_func(all, spooled_clear);
	if (spooled)
		r = audit_spool_read(dir, 0, 0, keep_spooled, all, &generation);
	if (r == 0 && a)
		r = db_exec(a->db, "BEGIN");
	if (r < 0)
		return r;
	if (a) {
		r = list_chain(a, f, fn, user, &more);
		if (r == 0)
			r = audit_checkpoint(a, &c);
		db_exec(a->db, "COMMIT");
	}
	if (r == 0 && more)
		list_spooled(all, generation, &c, f, fn, user);
	return r;
}

/* Verifying */

static bool verify_row(struct audit *a, struct db_query *q, int64_t want, uint8_t hash[32],
		       struct audit_verification *v)
{
	struct audit_record record;
	const uint8_t *stored;
	bool whole = row_record(q, &record, &stored);

	v->seq = want;
	if (record.seq != want) {
		v->fault = g_strdup_printf(record.seq > want ? "record %" PRId64 " is missing"
							     : "there is a record before record %" PRId64,
					   want);
		return false;
	}
	g_byte_array_set_size(a->scratch, 0);
	audit_record_encode(&record, a->scratch);
	chain_next(a, hash, want, a->scratch->data, a->scratch->len, hash);
	if (whole && memcmp(hash, stored, 32) == 0)
		return true;
	v->fault = g_strdup_printf("record %" PRId64 " was changed, or is not at its place", want);
	return false;
}

static int verify_chain(struct audit *a, struct audit_verification *v)
{
	struct db_query *q = db_query(a->db, "SELECT " COLUMNS " FROM record ORDER BY seq");
	int64_t want = v->checkpoint.first;
	uint8_t hash[32];
	int r;

	memcpy(hash, v->checkpoint.anchor, 32);
	while ((r = db_step(q)) > 0) {
		if (!verify_row(a, q, want, hash, v)) {
			db_done(q);
			return 0;
		}
		v->records++;
		want++;
	}
	if (r < 0)
		return r;
	v->seq = want - 1;
	if (want - 1 < v->checkpoint.last)
		v->fault = g_strdup_printf("the end is missing: record %" PRId64 " should be the last, %" PRId64 " is",
					   v->checkpoint.last, want - 1);
	else if (want - 1 > v->checkpoint.last || memcmp(hash, v->checkpoint.head, 32) != 0)
		v->fault = g_strdup("the last record is not the one that the checkpoint names");
	return 0;
}

int audit_verify(struct audit *a, struct audit_verification *ret)
{
	int r = db_exec(a->db, "BEGIN"); /* one state, whatever is appended meanwhile */

	*ret = (struct audit_verification){ 0 };
	if (r < 0)
		return r;
	r = audit_checkpoint(a, &ret->checkpoint);
	if (r == -EUCLEAN)
		ret->fault = g_strdup("the checkpoint is missing or was changed");
	else if (r == 0)
		r = verify_chain(a, ret);
	db_exec(a->db, "COMMIT");
	return r == -EUCLEAN && ret->fault ? 0 : r;
}

void audit_verification_clear(struct audit_verification *v)
{
	g_clear_pointer(&v->fault, g_free);
}

/* Retention */

/* @parameter may have no place in @sql. */
static int query_int(struct audit *a, const char *sql, int64_t parameter, int64_t *ret)
{
	struct db_query *q = db_query(a->db, sql);
	int r;

	db_bind_int(q, 0, parameter);
	r = db_step(q);
	if (r <= 0)
		return r < 0 ? r : -ENODATA;
	*ret = db_int(q, 0);
	db_done(q);
	return 0;
}

/* The first record to keep. The oldest ones are looked at only as far as they are too old. */
static int keep_from(struct audit *a, const struct audit_checkpoint *c, int64_t before, uint64_t max_bytes,
		     int64_t *ret)
{
	int64_t young = 0, used = 0, n = c->last - c->first + 1;
	int r = query_int(a, "SELECT seq FROM record WHERE time >= ? ORDER BY seq LIMIT 1", before, &young);

	if (r == -ENODATA) {
		young = c->last + 1;
		r = 0;
	}
	*ret = MAX(c->first, young);
	if (r < 0 || max_bytes == 0)
		return r;
	r = query_int(a,
		      "SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM "
		      "pragma_freelist_count)",
		      0, &used);
	if (r == 0) {
		int64_t page = 4096;

		r = query_int(a, "SELECT page_size FROM pragma_page_size", 0, &page);
		used *= page;
	}
	if (r == 0 && n > 0 && (uint64_t)used > max_bytes) {
		/* Records are of like size, so a part of the bytes is that part of the records. */
		int64_t keep = (int64_t)((double)n * (double)max_bytes / (double)used);

		*ret = MAX(*ret, c->last - keep + 1);
	}
	return r;
}

static int drop_until(struct audit *a, struct audit_checkpoint *c, int64_t first)
{
	struct db_query *q = db_query(a->db, "SELECT hash FROM record WHERE seq = ?");
	int r;

	db_bind_int(q, 0, first - 1);
	r = db_step(q);
	if (r <= 0 || !get_hash(q, 0, c->anchor)) {
		if (r > 0)
			db_done(q);
		return r < 0 ? r : -EUCLEAN;
	}
	db_done(q);
	c->first = first;
	q = db_query(a->db, "DELETE FROM record WHERE seq < ?");
	db_bind_int(q, 0, first);
	r = db_run(q);
	return r < 0 ? r : checkpoint_put(a, c);
}

int audit_retain(struct audit *a, int64_t before, uint64_t max_bytes, uint64_t *ret_dropped)
{
	struct audit_checkpoint c;
	int64_t first = 0, was;
	int r = db_exec(a->db, "BEGIN IMMEDIATE");

	*ret_dropped = 0;
	if (r < 0)
		return r;
	r = audit_checkpoint(a, &c);
	if (r == 0)
		r = keep_from(a, &c, before, max_bytes, &first);
	was = c.first;
	if (r == 0 && first > was)
		r = drop_until(a, &c, first);
	r = transaction_end(a, r);
	if (r == 0)
		*ret_dropped = (uint64_t)(c.first - was);
	return r;
}
