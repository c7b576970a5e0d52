/* SPDX-License-Identifier: MIT */
#include "snapshot/store.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "snapshot/object.h"
#include "snapshot/redo.h"
#include "snapshot/schema.h"
#include "snapshot/store_private.h"

G_DEFINE_QUARK(sbxfs-store-error-quark, store_error)

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	g_free(s->name);
	g_free(s);
}

struct db *store_db(struct store *s)
{
	return s->db;
}

/* Life */

static void *store_fail(struct store *s, GError **error, int code, const char *what, int r)
{
	g_set_error(error, STORE_ERROR, code, "store %s: %s: %s", s->dir, what,
		    s->db && r != -ENOENT && r != -EPROTO ? db_message(s->db) : g_strerror(-r));
	store_close(s);
	return NULL;
}

static int store_load(struct store *s)
{
	g_autofree char *epoch = store_get(s, "epoch");
	struct db_query *q;
	int r;

	if (!epoch)
		return -EUCLEAN;
	s->epoch = g_ascii_strtoll(epoch, NULL, 10);
	q = db_query(s->db, "SELECT max(ino) FROM node");
	r = db_step(q);
	if (r < 0)
		return r;
	s->next_ino = MAX((uint64_t)db_int(q, 0) + 1, FIRST_OWN_INO);
	db_done(q);
	return 0;
}

/* Only a hint for people; who serves the store is told by the lock. */
static void store_sign_lock(struct store *s)
{
	g_autofree char *pid = g_strdup_printf("%d\n", (int)getpid());

	if (ftruncate(s->lock_fd, 0) < 0 || pwrite(s->lock_fd, pid, strlen(pid), 0) < 0)
		g_debug("lock file not filled in");
}

static bool store_take_lock(struct store *s, GError **error)
{
	g_autofree char *path = g_build_filename(s->dir, "lock", NULL);

	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock_fd < 0) {
		g_set_error(error, STORE_ERROR, STORE_ERROR_FAILED, "store %s: lock: %s", s->dir, g_strerror(errno));
		return false;
	}
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		g_set_error(error, STORE_ERROR, STORE_ERROR_BUSY, "store %s is in use by another process", s->dir);
		return false;
	}
	store_sign_lock(s);
	return true;
}

static struct store *store_new(const char *dir)
{
	struct store *s = g_new0(struct store, 1);

	s->dir = g_canonicalize_filename(dir, NULL);
	s->objects.fd = s->lock_fd = s->wal_fd = s->reserve_fd = -1;
	return s;
}

/* What a dead writer promised was made by the schema of then. */
static int store_prepare(struct store *s)
{
	int r;

	store_open_reserve(s);
	r = store_redo(s);
	return r < 0 ? r : schema_upgrade(s->db);
}


static struct store *store_open_files(struct store *s, enum store_mode mode, bool create, GError **error)
{
	g_autofree char *path = g_build_filename(s->dir, "store.db", NULL);
	g_autofree char *objects = g_build_filename(s->dir, "objects", NULL);
	int r;

	if (s->lock_fd >= 0)
		store_sign_lock(s);
	else if (mode == STORE_WRITE && !store_take_lock(s, error)) {
		store_close(s);
		return NULL;
	}
	r = db_open(path, create, mode == STORE_READ, &s->db);
	if (r < 0)
		return store_fail(s, error, r == -ENOENT ? STORE_ERROR_NOT_FOUND : STORE_ERROR_FAILED, "store.db", r);
	r = mode == STORE_WRITE ? store_prepare(s) : schema_check(s->db, &s->version);
	if (r == -EPROTO) {
		g_set_error(error, STORE_ERROR, STORE_ERROR_SCHEMA,
			    "store %s was written by a newer sbxfs (its schema is not version %d): use that sbxfs, or destroy the sandbox",
			    s->dir, SCHEMA_VERSION);
		store_close(s);
		return NULL;
	}
	if (r == 0)
		r = store_load(s);
	if (r < 0)
		return store_fail(s, error, r == -ENOSPC ? STORE_ERROR_NO_SPACE : STORE_ERROR_FAILED, "store.db", r);
	s->objects.fd = open(objects, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->objects.fd < 0)
		return store_fail(s, error, STORE_ERROR_FAILED, "objects", -errno);
	return s;
}

struct store *store_create(const char *dir, const char *workspace, GError **error)
{
	struct store *s = store_new(dir);
	g_autofree char *path = g_build_filename(s->dir, "store.db", NULL);
	g_autofree char *objects = g_build_filename(s->dir, "objects", NULL);
	g_autofree char *redo = g_build_filename(s->dir, "redo", NULL);
	int r;

	if (g_mkdir_with_parents(s->dir, 0700) < 0 || g_mkdir_with_parents(objects, 0700) < 0)
		return store_fail(s, error, STORE_ERROR_FAILED, "mkdir", -errno);
	if (g_file_test(path, G_FILE_TEST_EXISTS)) {
		g_set_error(error, STORE_ERROR, STORE_ERROR_EXISTS, "store %s exists already", s->dir);
		store_close(s);
		return NULL;
	}
	unlink(redo); /* of a store that was here before */
	s = store_open_files(s, STORE_WRITE, true, error);
	if (!s)
		return NULL;
	r = store_set(s, "workspace", workspace);
	s->usage.known = true;
	if (r == 0)
		r = store_set(s, "objects_bytes", "0");
	if (r < 0)
		return store_fail(s, error, STORE_ERROR_FAILED, "settings", r);
	return s;
}

#define IS_ORPHAN "died = 9223372036854775807 AND nlink = 0 AND ino != 1 AND ino NOT IN (SELECT ino FROM temp.held)"

struct holders {
	bool (*held)(uint64_t ino, void *user); /* NULL: nobody */
	void *user;
};

/* Temporary: those that only open descriptors hold, but do. */
static int store_list_held(struct store *s, const struct holders *h)
{
	g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(uint64_t));
	int r = db_exec(s->db, "CREATE TEMP TABLE IF NOT EXISTS held (ino INTEGER PRIMARY KEY); DELETE FROM temp.held");
	struct db_query *q = db_query(s->db, "SELECT ino FROM node WHERE " IS_ORPHAN);

	while (r == 0 && h->held && (r = db_step(q)) > 0) {
		uint64_t ino = db_int(q, 0);

		if (h->held(ino, h->user))
			g_array_append_val(found, ino);
		r = 0;
	}
	for (guint i = 0; r == 0 && i < found->len; i++) {
		q = db_query(s->db, "INSERT INTO temp.held VALUES (?)");
		db_bind_int(q, 0, g_array_index(found, uint64_t, i));
		r = db_run(q);
	}
	return r;
}

/*
 * What a crash left: nodes that only open descriptors still held, or whose rows waited for others. What the index holds of
 * them goes with them when it is of this epoch, for then no snapshot has it.
 */
static int store_drop_orphans(struct store *s, const struct holders *h)
{
	static const char *const steps[] = {
		"BEGIN IMMEDIATE",
		"CREATE TEMP TABLE orphan AS SELECT n.content AS id FROM node n JOIN content c ON c.id = n.content "
		"WHERE " IS_ORPHAN " AND c.kind != 1 AND c.epoch = (SELECT CAST(value AS INTEGER) FROM setting WHERE key = 'epoch')",
		"DELETE FROM page WHERE content IN (SELECT id FROM orphan)",
		"DELETE FROM content WHERE id IN (SELECT id FROM orphan)",
		"DELETE FROM node WHERE " IS_ORPHAN,
		"DROP TABLE orphan",
		"COMMIT",
	};
	int r = store_list_held(s, h);

	for (unsigned i = 0; r == 0 && i < G_N_ELEMENTS(steps); i++)
		r = db_exec(s->db, steps[i]);
	if (r < 0)
		db_exec(s->db, "ROLLBACK");
	return r;
}

/* Takes @s. */
static struct store *store_start(struct store *s, enum store_mode mode, const struct holders *h, GError **error)
{
	int r;

	if (!g_file_test(s->dir, G_FILE_TEST_IS_DIR)) {
		g_set_error(error, STORE_ERROR, STORE_ERROR_NOT_FOUND, "no store at %s", s->dir);
		store_close(s);
		return NULL;
	}
	s = store_open_files(s, mode, false, error);
	if (s && mode == STORE_WRITE) {
		usage_load(s);
		r = store_drop_orphans(s, h);
		if (r < 0 && r != -ENOSPC)
			return store_fail(s, error, STORE_ERROR_FAILED, "store.db", r);
	}
	return s;
}

/*
 * A reader sees what is committed. What a dead writer promised, or a store of an older version, takes a writer for a moment; one that is there
 * commits by itself before it lets anybody read.
 */
static bool store_catch_up(const struct store *s, GError **error)
{
	g_autoptr(GError) why = NULL;
	g_autoptr(store_t) writer = store_open(s->dir, STORE_WRITE, &why);

	if (writer || (s->version >= SCHEMA_READABLE && g_error_matches(why, STORE_ERROR, STORE_ERROR_BUSY)))
		return true;
	if (g_error_matches(why, STORE_ERROR, STORE_ERROR_BUSY))
		g_set_error(error, STORE_ERROR, STORE_ERROR_SCHEMA, "store %s is served by an older sbxfs: unmount the view first", s->dir);
	else
		g_propagate_error(error, g_steal_pointer(&why));
	return false;
}

struct store *store_open(const char *dir, enum store_mode mode, GError **error)
{
	struct store *s = store_start(store_new(dir), mode, &(struct holders){ 0 }, error);
	bool ok;

	if (!s || mode == STORE_WRITE || !(s->version < SCHEMA_VERSION || store_lags(s)))
		return s;
	ok = store_catch_up(s, error);
	store_close(s);
	return ok ? store_start(store_new(dir), mode, &(struct holders){ 0 }, error) : NULL;
}

#define WAIT_STEP (20 * G_TIME_SPAN_MILLISECOND)
#define WAIT_STEPS 100

struct store *store_open_patiently(const char *dir, GError **error)
{
	struct store *s = NULL;

	for (int i = 1; !s; i++) {
		GError *why = NULL;

		s = store_open(dir, STORE_WRITE, &why);
		if (!s && (i == WAIT_STEPS || !g_error_matches(why, STORE_ERROR, STORE_ERROR_BUSY))) {
			g_propagate_error(error, why);
			return NULL;
		}
		if (!s)
			g_usleep(WAIT_STEP);
		g_clear_error(&why);
	}
	return s;
}

struct store *store_take_over(const char *dir, int lock, bool (*held)(uint64_t ino, void *user), void *user, GError **error)
{
	struct store *s = store_new(dir);

	s->lock_fd = lock;
	return store_start(s, STORE_WRITE, &(struct holders){ held, user }, error);
}

int store_lock(const struct store *s)
{
	return s->lock_fd;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	if (s->lock_fd >= 0 && s->db && (store_flush(s) < 0 || usage_save(s, 0) < 0))
		g_debug("the size of the store is not remembered");
	redo_close(s->redo);
	db_close(s->checkpoint_db);
	db_close(s->db);
	if (s->objects.fd >= 0)
		close(s->objects.fd);
	if (s->wal_fd >= 0)
		close(s->wal_fd);
	if (s->reserve_fd >= 0)
		close(s->reserve_fd);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	g_free(s->dir);
	g_free(s);
}

const char *store_dir(const struct store *s)
{
	return s->dir;
}

int store_objects_fd(const struct store *s)
{
	return s->objects.fd;
}

struct object_dir *store_objects(struct store *s)
{
	return &s->objects;
}

struct usage *store_usage_state(struct store *s)
{
	return &s->usage;
}

char *store_get(struct store *s, const char *key)
{
	struct db_query *q = db_query(s->db, "SELECT value FROM setting WHERE key = ?");
	char *value = NULL;

	db_bind_text(q, 0, key);
	if (db_step(q) > 0) {
		value = g_strdup(db_text(q, 0));
		db_done(q);
	}
	return value;
}

static int setting_put(struct store *s, const char *key, const char *value)
{
	struct db_query *q = db_query(s->db, "INSERT INTO setting VALUES (?, ?) "
					     "ON CONFLICT (key) DO UPDATE SET value = excluded.value");

	db_bind_text(q, 0, key);
	db_bind_text(q, 1, value);
	return db_run(q);
}

/* A change of its own, where none is being made. @alone tells end_alone() which it was. */
static int begin_alone(struct store *s, bool *alone)
{
	*alone = !s->changing;
	return *alone ? store_begin(s) : 0;
}

static int end_alone(struct store *s, bool alone, int r)
{
	if (!alone)
		return r;
	if (r == 0)
		return store_commit(s);
	store_abort(s);
	return r;
}

int store_set(struct store *s, const char *key, const char *value)
{
	bool alone;
	int r = begin_alone(s, &alone);

	return r < 0 ? r : end_alone(s, alone, setting_put(s, key, value));
}

int store_settings(struct store *s, const char *prefix, void (*fn)(const char *key, const char *value, void *user), void *user)
{
	struct db_query *q = db_query(s->db, "SELECT key, value FROM setting WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key");
	int r;

	db_bind_text(q, 0, prefix);
	while ((r = db_step(q)) > 0)
		fn(db_text(q, 0), db_text(q, 1), user);
	return r;
}

/* Epochs and snapshots */

int64_t store_epoch(const struct store *s)
{
	return s->epoch;
}

int store_epoch_next(struct store *s, int64_t *ret_epoch)
{
	g_autofree char *value = g_strdup_printf("%" G_GINT64_FORMAT, s->epoch + 1);
	int r = store_set(s, "epoch", value);

	if (r == 0)
		*ret_epoch = s->epoch++;
	return r;
}

int store_snapshot_create(struct store *s, const char *name, int64_t *ret_epoch)
{
	struct db_query *q = db_query(s->db, "INSERT INTO snapshot (name, epoch, time) VALUES (?, ?, ?)");
	int r;

	db_bind_text(q, 0, name);
	db_bind_int(q, 1, s->epoch);
	db_bind_int(q, 2, nsec_now());
	r = db_run(q);
	return r < 0 ? r : store_epoch_next(s, ret_epoch);
}

int store_snapshot_delete(struct store *s, const char *name)
{
	struct db_query *q = db_query(s->db, "DELETE FROM snapshot WHERE name = ?");
	int64_t epoch;
	bool alone;
	int r = store_snapshot_find(s, name, &epoch);

	if (r == 0)
		r = begin_alone(s, &alone);
	if (r < 0)
		return r;
	db_bind_text(q, 0, name);
	return end_alone(s, alone, db_run(q));
}

int store_snapshot_find(struct store *s, const char *name, int64_t *ret_epoch)
{
	struct db_query *q = db_query(s->db, "SELECT epoch FROM snapshot WHERE name = ?");
	int r;

	db_bind_text(q, 0, name);
	r = db_step(q);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	*ret_epoch = db_int(q, 0);
	db_done(q);
	return 0;
}

int store_snapshot_list(struct store *s, GPtrArray **ret)
{
	struct db_query *q = db_query(s->db, "SELECT id, name, epoch, time FROM snapshot ORDER BY id");
	g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func((GDestroyNotify)snapshot_free);
	int r;

	while ((r = db_step(q)) > 0) {
		struct snapshot *snapshot = g_new0(struct snapshot, 1);

		snapshot->id = db_int(q, 0);
		snapshot->name = g_strdup(db_text(q, 1));
		snapshot->epoch = db_int(q, 2);
		snapshot->time = db_int(q, 3);
		g_ptr_array_add(list, snapshot);
	}
	if (r == 0)
		*ret = g_steal_pointer(&list);
	return r;
}

uint64_t store_new_ino(struct store *s)
{
	return s->next_ino++;
}
