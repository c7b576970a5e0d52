/* SPDX-License-Identifier: MIT */
#include "snapshot/fsck.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/content_private.h"
#include "snapshot/store_private.h"

#define TOLD_MAX 20 /* of one check */

struct fsck {
	struct store *store;
	fsck_fn fn;
	void *user;
	/* of the check under way */
	enum fsck_kind kind;
	const char *check;
	unsigned found;
};

/* Telling */

static void begin(struct fsck *f, enum fsck_kind kind, const char *check)
{
	f->kind = kind;
	f->check = check;
	f->found = 0;
}

G_GNUC_PRINTF(2, 3)
static void tell(struct fsck *f, const char *format, ...)
{
	g_autofree char *message = NULL;
	g_autofree char *valid = NULL;
	va_list args;

	if (f->found++ >= TOLD_MAX)
		return;
	va_start(args, format);
	message = g_strdup_vprintf(format, args);
	va_end(args);
	valid = g_utf8_make_valid(message, -1);
	f->fn(f->kind, f->check, valid, f->user);
}

static void end(struct fsck *f)
{
	g_autofree char *message = NULL;

	if (f->found <= TOLD_MAX)
		return;
	message = g_strdup_printf("and %u more", f->found - TOLD_MAX);
	f->fn(f->kind, f->check, message, f->user);
}

/* The index */

#define NOW "(SELECT CAST(value AS INTEGER) FROM setting WHERE key = 'epoch')"
/* The epochs that somebody can look at. Of others gc may have taken a name's versions and left the node's, or the other way round. */
#define SHOWN "(SELECT epoch AS e FROM snapshot UNION SELECT " NOW ")"
/* A name as "PARENT/NAME"; of a blob, so what is no UTF-8 is made some when it is told. */
#define NAME "printf('%d/%s', n.parent, CAST(n.name AS TEXT))"

/* Each row that a query gives is a fault, in words. */
static const struct query {
	enum fsck_kind kind;
	const char *check;
	const char *sql;
} queries[] = {
	{ FSCK_DAMAGE, "epochs",
	  "SELECT printf('node %d holds from epoch %d to %d', ino, born, died) FROM node WHERE born >= died OR born < 1 OR born "
	  "> " NOW },
	{ FSCK_DAMAGE, "epochs",
	  "SELECT printf('name %s holds from epoch %d to %d', " NAME
	  ", born, died) FROM name n WHERE born >= died OR born < 1 OR born > " NOW },
	{ FSCK_DAMAGE, "epochs",
	  "SELECT printf('content %d is of epoch %d, which is to come', id, epoch) FROM content WHERE epoch > " NOW },
	{ FSCK_DAMAGE, "epochs",
	  "SELECT printf('snapshot %s is of epoch %d, which is not over', name, epoch) FROM snapshot WHERE epoch >= " NOW },
	{ FSCK_DAMAGE, "versions",
	  "SELECT printf('two versions of node %d hold in epoch %d', ino, born) FROM"
	  " (SELECT ino, born, lag(died) OVER (PARTITION BY ino ORDER BY died) AS past FROM node) WHERE born < past" },
	{ FSCK_DAMAGE, "versions",
	  "SELECT printf('two versions of name %s hold in epoch %d', " NAME ", n.born) FROM"
	  " (SELECT parent, name, born, lag(died) OVER (PARTITION BY parent, name ORDER BY died) AS past FROM name) n WHERE n.born "
	  "< n.past" },
	{ FSCK_DAMAGE, "names",
	  "SELECT printf('name %s: there is no node %d in epoch %d', " NAME ", n.ino, e) FROM name n JOIN " SHOWN
	  " ON n.born <= e AND n.died > e WHERE n.ino <> 0 AND NOT EXISTS"
	  " (SELECT 1 FROM node o WHERE o.ino = n.ino AND o.born <= e AND o.died > e)" },
	{ FSCK_DAMAGE, "names",
	  "SELECT printf('name %s: there is no directory %d', " NAME ", n.parent) FROM name n WHERE n.parent <> 1 AND EXISTS"
	  " (SELECT 1 FROM " SHOWN " WHERE n.born <= e AND n.died > e) AND NOT EXISTS"
	  " (SELECT 1 FROM node o WHERE o.ino = n.parent AND (o.mode & 61440) IN (0, 16384))" },
	{ FSCK_DAMAGE, "contents",
	  "SELECT printf('node %d: there is no content %d', ino, content) FROM node WHERE content <> 0 AND content NOT IN (SELECT "
	  "id FROM content)" },
	{ FSCK_DAMAGE, "contents",
	  "SELECT printf('content %d: there is no content %d under it', id, base) FROM content WHERE base <> 0 AND"
	  " (base = id OR base NOT IN (SELECT id FROM content))" },
	{ FSCK_DAMAGE, "contents",
	  "SELECT printf('content %d: kind %d, size %d, %d bytes kept, %d shown of its base', id, kind, size, length(data), "
	  "base_size) FROM content"
	  " WHERE kind NOT IN (0, 1) OR size < 0 OR (kind = 0 AND ifnull(length(data), 0) <> size) OR (kind = 1 AND base_size > "
	  "size)" },
	{ FSCK_DAMAGE, "contents",
	  "SELECT printf('node %d has %d bytes, its content %d has %d', n.ino, n.size, c.id, c.size) FROM node n JOIN content c ON "
	  "c.id = n.content"
	  " WHERE n.size <> c.size" },
	{ FSCK_DAMAGE, "origins",
	  "SELECT printf('node %d: there is no origin %d', ino, origin) FROM node WHERE origin <> 0 AND origin NOT IN (SELECT id "
	  "FROM origin)" },
	{ FSCK_DAMAGE, "origins",
	  "SELECT printf('name %s: there is no origin %d', " NAME
	  ", n.covers) FROM name n WHERE n.covers <> 0 AND n.covers NOT IN (SELECT id FROM origin)" },
	{ FSCK_DAMAGE, "origins",
	  "SELECT printf('content %d: there is no origin %d', id, base_origin) FROM content WHERE base_origin <> 0 AND base_origin "
	  "NOT IN (SELECT id FROM origin)" },
	{ FSCK_LEFTOVER, "pages",
	  "SELECT printf('pages of content %d, which is not there', content) FROM page WHERE content NOT IN (SELECT id FROM "
	  "content) GROUP BY content" },
	{ FSCK_LEFTOVER, "merge-texts",
	  "SELECT printf('text of origin %d, which is not there', origin) FROM base WHERE origin NOT IN (SELECT id FROM origin)" },
	{ FSCK_NOTE, "unused",
	  "SELECT printf('%d contents that no node has any more, %d bytes; sbxfs gc gives them back', count(*), sum(size)) FROM "
	  "content WHERE id NOT IN "
	  "(SELECT content FROM node) AND"
	  " id NOT IN (SELECT base FROM content) HAVING count(*) > 0" },
};

static int run_query(struct fsck *f, const char *sql)
{
	struct db_query *q = db_query(store_db(f->store), sql);
	int r;

	while ((r = db_step(q)) > 0)
		tell(f, "%s", db_text(q, 0));
	return r;
}

/* SQLite's own look at its pages and indices. */
static int check_database(struct fsck *f)
{
	struct db_query *q = db_query(store_db(f->store), "PRAGMA integrity_check");
	int r;

	begin(f, FSCK_DAMAGE, "database");
	while ((r = db_step(q)) > 0)
		if (!g_str_equal(db_text(q, 0), "ok"))
			tell(f, "%s", db_text(q, 0));
	end(f);
	return r;
}

static int check_index(struct fsck *f)
{
	int r = 0;

	for (unsigned i = 0; r >= 0 && i < G_N_ELEMENTS(queries); i++) {
		begin(f, queries[i].kind, queries[i].check);
		r = run_query(f, queries[i].sql);
		end(f);
	}
	return r;
}

/* What merges start from is the file of the time, whose hash the origin has. */
static int check_bases(struct fsck *f)
{
	struct db_query *q = db_query(
		store_db(f->store),
		"SELECT b.origin, b.data, o.sha256 FROM base b JOIN origin o ON o.id = b.origin WHERE o.sha256 IS NOT NULL");
	int r;

	begin(f, FSCK_DAMAGE, "merge-texts");
	while ((r = db_step(q)) > 0) {
		g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
		size_t size, hash_size, n = 32;
		const void *data = db_blob(q, 1, &size);
		uint8_t digest[32];
		const void *hash;

		g_checksum_update(sum, data, size);
		g_checksum_get_digest(sum, digest, &n);
		hash = db_blob(q, 2, &hash_size);
		if (hash_size != n || memcmp(hash, digest, n) != 0)
			tell(f, "the text of origin %" PRId64 " is not what was recorded of it", db_int(q, 0));
	}
	end(f);
	return r;
}

/* Objects */

static int check_objects(struct fsck *f)
{
	struct db_query *q = db_query(store_db(f->store), "SELECT id FROM content WHERE kind = 1");
	int r;

	begin(f, FSCK_DAMAGE, "objects");
	while ((r = db_step(q)) > 0) {
		g_autoptr(object_t) o = NULL;
		int64_t id = db_int(q, 0);
		int opened = object_open(store_objects(f->store), id, false, &o);

		if (opened < 0)
			tell(f, "the file of content %" PRId64 " cannot be opened: %s", id,
			     opened == -EUCLEAN ? "it is not there" : g_strerror(-opened));
	}
	end(f);
	return r;
}

static int check_object_name(struct fsck *f, int dirfd, const char *name)
{
	int64_t id = object_parse_name(name);
	int has = id > 0 ? content_has_object(f->store, id) : 0;
	struct stat st = { 0 };

	if (has != 0)
		return MIN(has, 0);
	if (id <= 0) {
		f->kind = FSCK_NOTE;
		tell(f, "objects/%s is none of ours and is left alone", name);
		return 0;
	}
	f->kind = FSCK_LEFTOVER;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		tell(f, "objects/%s has no content, %" PRIu64 " bytes", name, (uint64_t)st.st_blocks * 512);
	return 0;
}

static int check_orphans(struct fsck *f)
{
	int fd = openat(store_objects_fd(f->store), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!dir) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	begin(f, FSCK_LEFTOVER, "objects");
	while (r >= 0 && (e = readdir(dir)))
		if (!g_str_equal(e->d_name, ".") && !g_str_equal(e->d_name, ".."))
			r = check_object_name(f, fd, e->d_name);
	end(f);
	closedir(dir);
	return r;
}

int fsck_run(struct store *s, bool alone, fsck_fn fn, void *user)
{
	struct fsck f = { .store = s, .fn = fn, .user = user };
	/* One state of the index for all queries, also beside a process that writes. */
	int r = db_exec(store_db(s), "BEGIN");

	if (r < 0)
		return r;
	r = check_database(&f);
	if (r >= 0)
		r = check_index(&f);
	if (r >= 0)
		r = check_bases(&f);
	if (r >= 0 && alone)
		r = check_objects(&f);
	if (r >= 0 && alone)
		r = check_orphans(&f);
	db_exec(store_db(s), "ROLLBACK");
	return r;
}

int fsck_repair(struct store *s)
{
	int r = store_begin(s);

	if (r < 0)
		return r;
	r = db_exec(store_db(s), "DELETE FROM page WHERE content NOT IN (SELECT id FROM content);"
				 "DELETE FROM base WHERE origin NOT IN (SELECT id FROM origin)");
	if (r < 0) {
		store_abort(s);
		return r;
	}
	r = store_commit(s);
	return r < 0 ? r : content_purge_all(s);
}
