/* SPDX-License-Identifier: MIT */
/*
 * test-redo - changes that were promised and not committed: what a process that comes after kill -9 finds of them
 *
 * What kill -9 leaves is a copy of the store's directory, made while the store is open. test-overlay-model looks at such a copy after all kinds of
 * operations.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layered.h"
#include "snapshot/content.h"
#include "snapshot/schema.h"
#include "snapshot/store_private.h"

typedef struct layered layered_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(layered_t, layered_free)

/* The store */

static char *store_at(struct layered *l, const char *name)
{
	return g_build_filename(l->dir, name, NULL);
}

static void copy(struct layered *l, const char *from, const char *to)
{
	g_autofree char *command = g_strdup_printf("rm -rf '%s/%s' && cp -a '%s/%s' '%s/%s'", l->dir, to, l->dir, from, l->dir, to);

	assert_int_equal(system(command), 0);
}

static struct store *open_at(struct layered *l, const char *name, enum store_mode mode)
{
	g_autofree char *dir = store_at(l, name);
	g_autoptr(GError) error = NULL;
	struct store *s = store_open(dir, mode, &error);

	assert_null(error);
	return s;
}

/* What the successor finds, as if the process died now. */
static struct store *after_kill(struct layered *l)
{
	copy(l, "store", "killed");
	return open_at(l, "killed", STORE_WRITE);
}

static void put(struct store *s, uint64_t ino, uint32_t mode)
{
	struct node_row n;

	assert_int_equal(store_node_get(s, EPOCH_LIVE, ino, &n), 0);
	n.ino = ino;
	n.attr.mode = mode;
	n.attr.nlink = 1;
	assert_int_equal(store_node_put(s, &n), 0);
	node_row_clear(&n);
}

static void promise(struct store *s, uint64_t ino, uint32_t mode)
{
	assert_int_equal(store_begin(s), 0);
	put(s, ino, mode);
	assert_int_equal(store_promise(s), 0);
}

static uint32_t mode_of(struct store *s, uint64_t ino)
{
	struct node_row n;
	uint32_t mode;

	assert_int_equal(store_node_get(s, EPOCH_LIVE, ino, &n), 0);
	mode = n.ino ? n.attr.mode : 0;
	node_row_clear(&n);
	return mode;
}

static uint32_t committed_mode(struct layered *l, uint64_t ino)
{
	g_autoptr(store_t) reader = open_at(l, "store", STORE_READ);

	return mode_of(reader, ino);
}

/* The file of promises */

static void read_redo(struct layered *l, const char *store, char **ret, gsize *ret_size)
{
	g_autofree char *path = g_build_filename(l->dir, store, "redo", NULL);

	assert_true(g_file_get_contents(path, ret, ret_size, NULL));
}

static void write_redo(struct layered *l, const char *store, const char *data, gsize size)
{
	g_autofree char *path = g_build_filename(l->dir, store, "redo", NULL);

	assert_true(g_file_set_contents(path, data, (gssize)size, NULL));
}

/* Of the record at @offset, header included; the size of its statements is the last word of that. */
static gsize record_size(const char *data, gsize offset)
{
	uint64_t size;

	memcpy(&size, data + offset + 24, sizeof(size));
	return 32 + size;
}

/* Promising */

static void test_promised_is_kept(void **state)
{
	g_autoptr(layered_t) l = layered_new();

	(void)state;
	for (uint32_t i = 1; i <= 3; i++) {
		g_autoptr(store_t) next = NULL;

		promise(l->store, 10, i);
		promise(l->store, 10 + i, 7);
		assert_int_equal(mode_of(l->store, 10), i);
		assert_int_equal(committed_mode(l, 10), 0);
		next = after_kill(l);
		assert_int_equal(mode_of(next, 10), i);
		assert_int_equal(mode_of(next, 10 + i), 7);
	}
	assert_true(store_waits(l->store, false));
	assert_int_equal(store_flush(l->store), 0);
	assert_false(store_waits(l->store, false));
	assert_int_equal(committed_mode(l, 10), 3);
}

/* Nobody serves it: a reader sees what the dead writer promised. */
static void test_a_reader_catches_up(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autoptr(store_t) reader = NULL;

	(void)state;
	promise(l->store, 10, 1);
	copy(l, "store", "killed");
	reader = open_at(l, "killed", STORE_READ);
	assert_int_equal(mode_of(reader, 10), 1);
}

static void test_closing_commits(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *dir = store_at(l, "store"), *redo = g_build_filename(dir, "redo", NULL);

	(void)state;
	promise(l->store, 10, 1);
	g_clear_pointer(&l->store, store_close);
	assert_int_equal(g_unlink(redo), 0);
	l->store = open_at(l, "store", STORE_WRITE);
	assert_int_equal(mode_of(l->store, 10), 1);
}

static void test_an_aborted_change_leaves_the_promised_ones(void **state)
{
	g_autoptr(layered_t) l = layered_new();

	(void)state;
	promise(l->store, 10, 1);
	/* Texts that only it had are not taken for known by the next. */
	assert_int_equal(store_begin(l->store), 0);
	put(l->store, 10, 2);
	assert_int_equal(store_set(l->store, "k", "v"), 0);
	store_abort(l->store);
	assert_int_equal(mode_of(l->store, 10), 1);
	assert_int_equal(store_begin(l->store), 0);
	assert_int_equal(store_set(l->store, "other", "v"), 0);
	put(l->store, 11, 1);
	assert_int_equal(store_promise(l->store), 0);
	{
		g_autoptr(store_t) next = after_kill(l);
		g_autofree char *k = store_get(next, "k"), *other = store_get(next, "other");

		assert_null(k);
		assert_string_equal(other, "v");
		assert_int_equal(mode_of(next, 10), 1);
		assert_int_equal(mode_of(next, 11), 1);
	}
}

static void test_a_commit_takes_them_along(void **state)
{
	g_autoptr(layered_t) l = layered_new();

	(void)state;
	promise(l->store, 10, 1);
	assert_int_equal(store_begin(l->store), 0);
	put(l->store, 10, 2);
	assert_int_equal(store_commit(l->store), 0);
	assert_false(store_waits(l->store, false));
	assert_int_equal(committed_mode(l, 10), 2);
	/* And is not followed by the older one. */
	{
		g_autoptr(store_t) next = after_kill(l);

		assert_int_equal(mode_of(next, 10), 2);
	}
	/* A setting outside any change is one of its own. */
	promise(l->store, 10, 3);
	assert_int_equal(store_set(l->store, "k", "v"), 0);
	assert_int_equal(committed_mode(l, 10), 3);
}

static void test_a_batch_ends(void **state)
{
	g_autoptr(layered_t) l = layered_new();

	(void)state;
	for (uint32_t i = 1; i <= REDO_BATCH_MAX; i++) {
		assert_int_equal(committed_mode(l, 10), 0);
		promise(l->store, 10, i);
	}
	assert_false(store_waits(l->store, false));
	assert_int_equal(committed_mode(l, 10), REDO_BATCH_MAX);
}

/* What is too large, can't be told or has no room is committed instead. */
static void test_what_is_not_promised(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *large = g_strnfill(REDO_CHANGE_MAX, 'x');

	(void)state;
	assert_int_equal(store_begin(l->store), 0);
	put(l->store, 10, 1);
	assert_int_equal(store_set(l->store, "large", large), 0);
	assert_int_equal(store_promise(l->store), 0);
	assert_int_equal(committed_mode(l, 10), 1);

	assert_int_equal(store_begin(l->store), 0);
	assert_int_equal(db_exec(store_db(l->store), "UPDATE node SET mode = 2"), 0);
	assert_int_equal(store_promise(l->store), 0);
	assert_int_equal(committed_mode(l, 10), 2);

	assert_true(redo_free_room(l->store->redo));
	promise(l->store, 10, 3);
	assert_int_equal(committed_mode(l, 10), 3);
	redo_take_room(l->store->redo);
	promise(l->store, 10, 4);
	assert_int_equal(committed_mode(l, 10), 3);
}

/* DELETE ... RETURNING changes with its first row; and numbers of new rows come out the same. */
static void test_contents(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autoptr(store_t) next = NULL;
	struct content *c[3];
	char got[8];

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(store_begin(l->store), 0);
		assert_int_equal(content_new(l->store, l->lower, &c[i]), 0);
		assert_int_equal(content_write(c[i], "content", 7, 0), 0);
		assert_int_equal(store_promise(l->store), 0);
	}
	assert_int_equal(store_begin(l->store), 0);
	assert_int_equal(content_drop(l->store, content_id(c[0])), 0);
	assert_int_equal(store_promise(l->store), 0);
	next = after_kill(l);
	for (int i = 0; i < 3; i++) {
		g_autoptr(content_t) found = NULL;

		assert_int_equal(content_open(next, l->lower, content_id(c[i]), &found), i == 0 ? -ENOENT : 0);
		if (found) {
			assert_int_equal(content_read(found, got, sizeof(got), 0), 7);
			assert_memory_equal(got, "content", 7);
		}
		content_close(c[i]);
	}
}

/* The disk. tests/cases/power.py cuts the power. */

static enum store_sync_what sync_store(struct store *s)
{
	struct store_sync sync;

	assert_int_equal(store_sync_begin(s, &sync), 0);
	assert_int_equal(store_sync(s, &sync), 0);
	return sync.what;
}

static void test_syncing(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	struct store *s = l->store;

	(void)state;
	/* What was committed is not yet on the disk, so what is promised after it would be lost with it. */
	promise(s, 10, 1);
	assert_int_equal(sync_store(s), STORE_SYNC_INDEX);
	assert_int_equal(committed_mode(l, 10), 1);
	assert_int_equal(sync_store(s), STORE_SYNC_NOTHING);
	promise(s, 10, 2);
	assert_true(store_waits(s, true));
	assert_int_equal(sync_store(s), STORE_SYNC_PROMISED);
	promise(s, 10, 3);
	assert_int_equal(sync_store(s), STORE_SYNC_PROMISED);
	assert_int_equal(committed_mode(l, 10), 1);
	assert_false(store_waits(s, true));
	/* An object that was made has no name on the disk yet. */
	s->objects.created = 1;
	promise(s, 10, 3);
	assert_int_equal(sync_store(s), STORE_SYNC_INDEX);
	promise(s, 10, 3);
	assert_int_equal(sync_store(s), STORE_SYNC_PROMISED);
	/* The index has it on the disk before the next batch is written over it. */
	assert_int_equal(store_flush(s), 0);
	assert_int_equal(sync_store(s), STORE_SYNC_NOTHING);
	/* Of what was not synced nobody waits for the disk. */
	promise(s, 10, 4);
	assert_true(store_waits(s, true));
	assert_int_equal(store_flush(s), 0);
	promise(s, 10, 5);
	assert_int_equal(sync_store(s), STORE_SYNC_INDEX);
	/* Nor does anybody know of what a process before this one committed, or of a statement by itself. */
	store_close(s);
	s = l->store = open_at(l, "store", STORE_WRITE);
	promise(s, 10, 6);
	assert_int_equal(sync_store(s), STORE_SYNC_INDEX);
	put(s, 11, 1);
	promise(s, 10, 7);
	assert_int_equal(sync_store(s), STORE_SYNC_INDEX);
}

/* What a crash leaves of the file */

static void test_torn(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *data = NULL;
	gsize size, first, second;

	(void)state;
	promise(l->store, 10, 1);
	promise(l->store, 10, 2);
	promise(l->store, 10, 3);
	read_redo(l, "store", &data, &size);
	first = record_size(data, 0);
	second = first + record_size(data, first);
	/* Each byte of the second record: then the third counts no more, either. */
	for (gsize at = first; at < second; at++) {
		g_autoptr(store_t) next = NULL;

		copy(l, "store", "killed");
		data[at] ^= 1;
		write_redo(l, "killed", data, size);
		data[at] ^= 1;
		next = open_at(l, "killed", STORE_WRITE);
		assert_int_equal(mode_of(next, 10), 1);
	}
	/* And wherever it ends. */
	for (gsize end = 0; end <= second; end += 13) {
		g_autoptr(store_t) next = NULL;

		copy(l, "store", "killed");
		write_redo(l, "killed", data, end);
		next = open_at(l, "killed", STORE_WRITE);
		assert_int_equal(mode_of(next, 10), end < first ? 0 : end < second ? 1 : 2);
	}
}

/* A power cut brought back an older index: what was promised on a newer one is not made on it. */
static void test_stale(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *data = NULL;
	g_autoptr(store_t) next = NULL;
	gsize size;

	(void)state;
	copy(l, "store", "older");
	promise(l->store, 10, 1);
	assert_int_equal(store_flush(l->store), 0);
	promise(l->store, 10, 2);
	read_redo(l, "store", &data, &size);
	write_redo(l, "older", data, size);
	next = open_at(l, "older", STORE_WRITE);
	assert_int_equal(mode_of(next, 10), 0);
}

/* Behind the records of a new batch lie those that another past of the same number left, and they would fit. */
static void test_another_past(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *data = NULL, *other = NULL;
	g_autoptr(store_t) next = NULL;
	gsize size, first;

	(void)state;
	copy(l, "store", "older");
	promise(l->store, 10, 1);
	promise(l->store, 11, 1);
	read_redo(l, "store", &data, &size);
	next = open_at(l, "older", STORE_WRITE);
	promise(next, 10, 2);
	read_redo(l, "older", &other, &size);
	first = record_size(other, 0);
	assert_int_equal(first, record_size(data, 0));
	memcpy(data, other, first);
	copy(l, "older", "killed");
	store_close(next);
	write_redo(l, "killed", data, size);
	next = open_at(l, "killed", STORE_WRITE);
	assert_int_equal(mode_of(next, 10), 2);
	assert_int_equal(mode_of(next, 11), 0);
}

/* A store that is not what the changes were made on is not changed by them, and not opened. */
static void test_another_state(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *dir = store_at(l, "killed"), *path = g_build_filename(dir, "store.db", NULL), *data = NULL;
	g_autoptr(GError) error = NULL;
	struct origin origin = { .path = (char *)"f" };
	struct db *db;
	gsize size;

	(void)state;
	assert_int_equal(store_begin(l->store), 0);
	assert_int_equal(store_origin_add(l->store, &origin), 0);
	assert_int_equal(store_promise(l->store), 0);
	copy(l, "store", "killed");
	assert_int_equal(db_open(path, false, false, &db), 0);
	assert_int_equal(db_exec(db, "INSERT INTO origin VALUES (5, 'x', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL)"), 0);
	db_close(db);
	read_redo(l, "killed", &data, &size);
	assert_null(store_open(dir, STORE_WRITE, &error));
	assert_true(g_error_matches(error, STORE_ERROR, STORE_ERROR_FAILED));
	g_clear_error(&error);
	/* A reader would not see what was promised. */
	assert_null(store_open(dir, STORE_READ, &error));
	assert_non_null(error);
	{
		g_autofree char *now = NULL;
		gsize now_size;

		read_redo(l, "killed", &now, &now_size);
		assert_int_equal(now_size, size);
		assert_memory_equal(now, data, size);
	}
}

static void test_a_new_store_in_the_place_of_another(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *dir = store_at(l, "new"), *data = NULL;
	g_autoptr(GError) error = NULL;
	g_autoptr(store_t) s = NULL;
	gsize size;

	(void)state;
	promise(l->store, 10, 1);
	read_redo(l, "store", &data, &size);
	assert_int_equal(g_mkdir(dir, 0700), 0);
	write_redo(l, "new", data, size);
	s = store_create(dir, l->workspace, &error);
	assert_null(error);
	assert_int_equal(mode_of(s, 10), 0);
}

/* Versions */

static void test_an_older_schema(void **state)
{
	g_autoptr(layered_t) l = layered_new();
	g_autofree char *dir = store_at(l, "store");
	g_autoptr(GError) error = NULL;
	int64_t version;

	(void)state;
	assert_int_equal(store_begin(l->store), 0);
	put(l->store, 10, 1);
	assert_int_equal(store_commit(l->store), 0);
	assert_int_equal(db_exec(store_db(l->store), "DELETE FROM setting WHERE key = 'redo'; PRAGMA user_version = 2"), 0);
	/* Somebody serves it as it is, and is to be unmounted. */
	assert_int_equal(committed_mode(l, 10), 1);
	assert_int_equal(db_exec(store_db(l->store), "DROP TABLE base; PRAGMA user_version = 1"), 0);
	assert_null(store_open(dir, STORE_READ, &error));
	assert_true(g_error_matches(error, STORE_ERROR, STORE_ERROR_SCHEMA));
	assert_non_null(strstr(error->message, "unmount"));
	g_clear_pointer(&l->store, store_close);
	l->store = open_at(l, "store", STORE_READ);
	assert_int_equal(schema_check(store_db(l->store), &version), 0);
	assert_int_equal(version, SCHEMA_VERSION);
	assert_int_equal(mode_of(l->store, 10), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_promised_is_kept),
		cmocka_unit_test(test_a_reader_catches_up),
		cmocka_unit_test(test_closing_commits),
		cmocka_unit_test(test_an_aborted_change_leaves_the_promised_ones),
		cmocka_unit_test(test_a_commit_takes_them_along),
		cmocka_unit_test(test_a_batch_ends),
		cmocka_unit_test(test_what_is_not_promised),
		cmocka_unit_test(test_contents),
		cmocka_unit_test(test_syncing),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_another_past),
		cmocka_unit_test(test_another_state),
		cmocka_unit_test(test_a_new_store_in_the_place_of_another),
		cmocka_unit_test(test_an_older_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
