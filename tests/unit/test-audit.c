/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "snapshot/attr.h"
#include "snapshot/audit.h"
#include "snapshot/audit_json.h"
#include "snapshot/audit_spool.h"
#include "snapshot/audit_writer.h"
#include "snapshot/db.h"

static int setup(void **state)
{
	*state = g_dir_make_tmp("test-audit-XXXXXX", NULL);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const files[] = { "audit.db", "audit.db-wal", "audit.db-shm", "audit.spool", "sink" };
	char *dir = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
		g_autofree char *path = g_build_filename(dir, files[i], NULL);

		g_unlink(path);
	}
	assert_int_equal(g_rmdir(dir), 0);
	g_free(dir);
	return 0;
}

static struct audit_record change(const char *operation, const char *path)
{
	return (struct audit_record){ .kind = AUDIT_CHANGE,
				      .operation = operation,
				      .program = "test",
				      .path = path,
				      .verdict = "write",
				      .rule = "p.ini:3: write = **",
				      .pid = 42,
				      .uid = 7 };
}

static void put(struct audit_writer *w, struct audit_record r)
{
	assert_int_equal(audit_writer_prepare(w, &r, false), 0);
	audit_writer_settle(w, 0);
}

static struct audit_writer *open_writer(const char *dir)
{
	g_autoptr(GError) error = NULL;
	struct audit_writer *w = audit_writer_open(dir, &error);

	if (error)
		fail_msg("%s", error->message);
	return w;
}

static bool add_line(const struct audit_record *r, const uint8_t *hash, void *user)
{
	g_string_append_printf(user, "%s%s %s", hash ? "" : "~", r->operation, r->path ? r->path : "-");
	if (r->new_path)
		g_string_append_printf(user, " %s", r->new_path);
	if (r->result)
		g_string_append_printf(user, " !%d", r->result);
	g_string_append_c(user, '|');
	return true;
}

static char *listed(const char *dir, const struct audit_filter *f)
{
	g_autoptr(audit_t) a = NULL;
	GString *s = g_string_new(NULL);

	assert_int_equal(audit_open(dir, false, &a), 0);
	assert_int_equal(audit_list(a, dir, true, f, add_line, s), 0);
	return g_string_free(s, FALSE);
}

static void expect(const char *dir, const struct audit_filter *f, const char *want)
{
	const struct audit_filter all = { 0 };
	g_autofree char *got = listed(dir, f ? f : &all);

	assert_string_equal(got, want);
}

static void expect_among(const char *dir, const char *want)
{
	const struct audit_filter all = { 0 };
	g_autofree char *got = listed(dir, &all);

	assert_non_null(strstr(got, want));
}

/* The fault that is found, or "". */
static char *fault_of(const char *dir, uint64_t *ret_records)
{
	g_autoptr(audit_t) a = NULL;
	struct audit_verification v;
	char *fault;

	assert_int_equal(audit_open(dir, false, &a), 0);
	assert_int_equal(audit_verify(a, &v), 0);
	*ret_records = v.records;
	fault = g_strdup(v.fault ? v.fault : "");
	audit_verification_clear(&v);
	return fault;
}

static void expect_sound(const char *dir, uint64_t records)
{
	uint64_t found;
	g_autofree char *fault = fault_of(dir, &found);

	assert_string_equal(fault, "");
	assert_int_equal(found, records);
}

static void expect_fault(const char *dir, const char *want)
{
	uint64_t found;
	g_autofree char *fault = fault_of(dir, &found);

	if (!strstr(fault, want))
		fail_msg("'%s' instead of '%s'", fault, want);
}

static void fill(const char *dir, int n)
{
	struct audit_writer *w = open_writer(dir);

	for (int i = 1; i <= n; i++) {
		g_autofree char *path = g_strdup_printf("f%d", i);

		put(w, change("write", path));
	}
	audit_writer_close(w);
}

static void tamper(const char *dir, const char *sql)
{
	g_autofree char *path = g_build_filename(dir, "audit.db", NULL);
	struct db *db;

	assert_int_equal(db_open(path, false, false, &db), 0);
	if (db_exec(db, sql) < 0)
		fail_msg("%s: %s", sql, db_message(db));
	db_close(db);
}

/* Encoding */

static void test_encoding_round_trip(void **state)
{
	static const char *const texts[] = { NULL, "", "a", "line\nbreak", "\xff\xfe\x80", "tab\t\"quote\"", "long" };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
		g_autoptr(GByteArray) out = g_byte_array_new();
		struct audit_record r = { .time = INT64_MIN + 5,
					  .kind = AUDIT_DENIAL,
					  .pid = -1,
					  .uid = UINT32_MAX,
					  .result = EROFS,
					  .operation = "op",
					  .path = texts[i],
					  .detail = texts[i] },
				    back;

		audit_record_encode(&r, out);
		assert_true(audit_record_decode(out->data, out->len, &back));
		assert_int_equal(back.time, r.time);
		assert_int_equal(back.kind, r.kind);
		assert_int_equal(back.pid, -1);
		assert_int_equal(back.uid, UINT32_MAX);
		assert_int_equal(back.result, EROFS);
		assert_int_equal(g_strcmp0(back.path, texts[i]), 0);
		assert_int_equal(g_strcmp0(back.detail, texts[i]), 0);
		assert_null(back.new_path);
	}
}

static void test_decoding_refuses_what_is_cut_or_changed(void **state)
{
	g_autoptr(GByteArray) out = g_byte_array_new();
	struct audit_record r = change("rename", "a"), back;

	(void)state;
	r.new_path = "b";
	audit_record_encode(&r, out);
	for (guint n = 0; n < out->len; n++) {
		g_autofree guint8 *copy = g_memdup2(out->data, n);

		assert_false(audit_record_decode(copy, n, &back));
	}
	/* Whatever the bytes are, nothing outside of them is read: the sanitizers watch. */
	for (guint n = 0; n < out->len; n++) {
		g_autofree guint8 *copy = g_memdup2(out->data, out->len);

		for (int bit = 0; bit < 8; bit++) {
			copy[n] ^= 1 << bit;
			if (audit_record_decode(copy, out->len, &back) && back.path)
				assert_true(strlen(back.path) < out->len);
			copy[n] ^= 1 << bit;
		}
	}
}

/* The chain */

static void test_records_are_chained_in_order(void **state)
{
	struct audit_writer *w = open_writer(*state);
	struct audit_record denial = { .kind = AUDIT_DENIAL, .operation = "lookup", .path = ".env" };
	struct audit_record reading = { .kind = AUDIT_READ, .operation = "read", .path = "r" };
	struct audit_record move = change("rename", "a/old");

	put(w, change("create", "a/b"));
	audit_writer_append(w, &denial);
	audit_writer_note(w, &reading);
	move.new_path = "c/new";
	put(w, move);
	assert_int_equal(audit_writer_flush(w), 0);
	expect(*state, NULL, "create a/b|lookup .env|read r|rename a/old c/new|");
	expect(*state, &(struct audit_filter){ .denied = true }, "lookup .env|");
	expect(*state, &(struct audit_filter){ .path = "a" }, "create a/b|rename a/old c/new|");
	expect(*state, &(struct audit_filter){ .path = "c/new" }, "rename a/old c/new|");
	expect(*state, &(struct audit_filter){ .path = "a/ol" }, "");
	expect(*state, &(struct audit_filter){ .operation = "read" }, "read r|");
	expect(*state, &(struct audit_filter){ .after = 3 }, "rename a/old c/new|");
	expect(*state, &(struct audit_filter){ .since = nsec_now() + NSEC_PER_SEC }, "");
	expect_sound(*state, 4);
	audit_writer_close(w);
	expect_sound(*state, 4);
	fill(*state, 3);
	expect_sound(*state, 7);
}

static void test_a_failed_change_says_so(void **state)
{
	struct audit_writer *w = open_writer(*state);
	struct audit_record r = change("write", "f");

	assert_int_equal(audit_writer_prepare(w, &r, false), 0);
	audit_writer_settle(w, ENOSPC);
	put(w, change("write", "g"));
	audit_writer_close(w);
	expect(*state, NULL, "write f !28|write g|");
	expect_sound(*state, 2);
}

static void test_hostile_paths(void **state)
{
	static const char *const paths[] = { "a\nb",
					     "\xff\xfe",
					     "\x1b[31mred",
					     "quote\"'\\",
					     " ",
					     "-rf",
					     "\xe2\x80\xae"
					     "cod.exe",
					     "{\"a\":1}" };
	struct audit_writer *w = open_writer(*state);
	g_autofree char *name = g_strnfill(255, 'x'), *deep = g_strnfill(8000, 'd');

	for (size_t i = 0; i < G_N_ELEMENTS(paths); i++)
		put(w, change("create", paths[i]));
	put(w, change("create", name));
	put(w, change("create", deep));
	audit_writer_close(w);
	expect_sound(*state, G_N_ELEMENTS(paths) + 2);
	for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
		g_autofree char *want = g_strdup_printf("create %s|", paths[i]);

		expect(*state, &(struct audit_filter){ .path = paths[i] }, want);
	}
}

static void test_json_is_one_line_and_keeps_the_bytes(void **state)
{
	struct audit_record r = change("create", "a\n\xff\"");
	g_autofree char *json = audit_json_line(&r, NULL);

	(void)state;
	assert_null(strchr(json, '\n'));
	assert_non_null(strstr(json, "\"path_b64\":\"YQr/Ig==\""));
	assert_true(g_utf8_validate(json, -1, NULL));
	assert_non_null(strstr(json, "\"schema\":\"sbxfs.audit/1\""));
	assert_null(strstr(json, "new_path"));
}

/* Tampering */

static void test_any_changed_column_is_found(void **state)
{
	static const char *const edits[] = {
		"time = time + 1",
		"kind = 3",
		"pid = 1",
		"uid = 0",
		"result = 13",
		"operation = 'read'",
		"program = 'root'",
		"path = 'g3'",
		"new_path = 'x'",
		"verdict = 'deny'",
		"rule = NULL",
		"detail = ''",
		"hash = zeroblob(32)",
		"hash = x'00'",
		"path = path || x'0041'",
		"seq = 11",
	};

	fill(*state, 10);
	for (size_t i = 0; i < G_N_ELEMENTS(edits); i++) {
		g_autofree char *sql = g_strdup_printf(
			"CREATE TABLE old AS SELECT * FROM record WHERE seq = 3; UPDATE record SET %s WHERE seq = 3",
			edits[i]);

		tamper(*state, sql);
		expect_fault(*state, "record 3 ");
		tamper(*state,
		       "DELETE FROM record WHERE seq IN (3, 11); INSERT INTO record SELECT * FROM old; DROP TABLE old");
		expect_sound(*state, 10);
	}
}

static void test_removed_and_moved_rows_are_found(void **state)
{
	fill(*state, 10);
	tamper(*state, "CREATE TABLE old AS SELECT * FROM record; DELETE FROM record WHERE seq = 5");
	expect_fault(*state, "record 5 is missing");
	tamper(*state, "UPDATE record SET seq = seq - 1 WHERE seq > 5");
	expect_fault(*state, "record 5 was changed");
	tamper(*state, "DELETE FROM record; INSERT INTO record SELECT * FROM old");
	tamper(*state, "UPDATE record SET seq = 99 WHERE seq = 4; UPDATE record SET seq = 4 WHERE seq = 7; UPDATE "
		       "record SET seq = 7 WHERE seq = 99");
	expect_fault(*state, "record 4 was changed, or is not at its place");
	tamper(*state, "DELETE FROM record; INSERT INTO record SELECT * FROM old");
	tamper(*state, "INSERT INTO record SELECT 11, time, kind, pid, uid, result, operation, program, path, "
		       "new_path, verdict, rule, detail, hash "
		       "FROM record WHERE seq = 2");
	expect_fault(*state, "record 11 was changed");
	tamper(*state, "DELETE FROM record WHERE seq = 11");
	expect_sound(*state, 10);
}

static void test_cut_ends_are_found(void **state)
{
	fill(*state, 10);
	tamper(*state, "CREATE TABLE old AS SELECT * FROM record; DELETE FROM record WHERE seq > 8");
	expect_fault(*state, "the end is missing: record 10 should be the last, 8 is");
	tamper(*state, "DELETE FROM record");
	expect_fault(*state, "the end is missing");
	tamper(*state, "INSERT INTO record SELECT * FROM old; DELETE FROM record WHERE seq = 1");
	expect_fault(*state, "record 1 is missing");
	tamper(*state,
	       "DELETE FROM record; INSERT INTO record SELECT * FROM old; UPDATE checkpoint SET head = zeroblob(32)");
	expect_fault(*state, "not the one that the checkpoint names");
	tamper(*state, "DELETE FROM checkpoint");
	expect_fault(*state, "the checkpoint is missing");
}

static void test_a_flipped_byte_of_the_file_is_found(void **state)
{
	g_autofree char *path = g_build_filename(*state, "audit.db", NULL), *data = NULL;
	char *at;
	gsize size;

	fill(*state, 10); /* closing moves all into the file itself */
	assert_true(g_file_get_contents(path, &data, &size, NULL));
	at = memmem(data, size, "p.ini:3", 7);
	assert_non_null(at);
	at[2] ^= 1;
	assert_true(g_file_set_contents(path, data, size, NULL));
	expect_fault(*state, "was changed");
}

/* The spool */

/* A process that dies as by kill -9, after @n changes, a read and a change that it only announced. */
static void die_after(const char *dir, int n, bool flush)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct audit_writer *w = audit_writer_open(dir, NULL);
		struct audit_record reading = { .kind = AUDIT_READ, .operation = "read", .path = "r" };
		struct audit_record open = change("write", "announced");

		for (int i = 1; w && i <= n; i++) {
			g_autofree char *path = g_strdup_printf("k%d", i);
			struct audit_record r = change("write", path);

			if (audit_writer_prepare(w, &r, false) < 0)
				_exit(2);
			audit_writer_settle(w, 0);
			if (flush && i == n / 2)
				audit_writer_flush(w);
		}
		audit_writer_note(w, &reading);
		if (audit_writer_prepare(w, &open, false) < 0)
			_exit(2);
		kill(getpid(), SIGKILL);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (const char *p = text; (p = strstr(p, what)); p++)
		n++;
	return n;
}

static void test_a_killed_process_loses_no_change(void **state)
{
	for (int flush = 0; flush <= 1; flush++) {
		g_autofree char *before = NULL, *after = NULL;

		die_after(*state, 500, flush);
		/* Readable right away, without anybody who writes... */
		before = listed(*state, &(struct audit_filter){ 0 });
		assert_int_equal(count(before, "write k"), 500 * (flush + 1));
		/* ...and in the chain once there is somebody: each record once. */
		fill(*state, 1);
		after = listed(*state, &(struct audit_filter){ 0 });
		assert_null(strchr(after, '~'));
		assert_int_equal(count(after, "write k"), 500 * (flush + 1));
		assert_int_equal(count(after, "write announced"), flush + 1);
		assert_int_equal(count(after, "recover -"), flush + 1);
	}
	expect_sound(*state, 2 * (500 + 1 + 1 + 1));
}

static void test_a_torn_record_is_cut_off(void **state)
{
	g_autofree char *path = g_build_filename(*state, "audit.spool", NULL);
	g_autofree char *all = NULL;
	struct stat st;

	die_after(*state, 10, false);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 3), 0);
	fill(*state, 1);
	all = listed(*state, &(struct audit_filter){ 0 });
	assert_int_equal(count(all, "announced"), 0);
	assert_int_equal(count(all, "write k"), 10);
	expect_sound(*state, 10 + 1 + 1);
}

static void test_a_spool_that_is_none_disturbs_nothing(void **state)
{
	g_autofree char *path = g_build_filename(*state, "audit.spool", NULL);

	fill(*state, 3);
	assert_true(g_file_set_contents(path, "rubbish", -1, NULL));
	fill(*state, 1);
	assert_int_equal(g_unlink(path), 0);
	fill(*state, 1);
	expect(*state, NULL, "write f1|write f2|write f3|write f1|write f1|");
	/* The new spool's records are told from those that the chain has. */
	die_after(*state, 5, false);
	fill(*state, 1);
	expect_sound(*state, 5 + 5 + 1 + 1 + 1);
}

static void test_there_is_one_writer(void **state)
{
	struct audit_writer *w = open_writer(*state);
	g_autoptr(GError) error = NULL;

	assert_null(audit_writer_open(*state, &error));
	assert_true(g_error_matches(error, AUDIT_ERROR, AUDIT_ERROR_BUSY));
	audit_writer_close(w);
}

static void test_a_newer_version_is_refused(void **state)
{
	g_autoptr(GError) error = NULL;

	fill(*state, 1);
	tamper(*state, "PRAGMA user_version = 99");
	assert_null(audit_writer_open(*state, &error));
	assert_true(g_error_matches(error, AUDIT_ERROR, AUDIT_ERROR_VERSION));
}

static void test_the_spool_starts_again(void **state)
{
	g_autofree char *path = g_build_filename(*state, "audit.spool", NULL);
	g_autofree char *detail = g_strnfill(60000, 'x');
	struct audit_writer *w = open_writer(*state);
	struct stat st;

	for (int i = 0; i < 200; i++) {
		struct audit_record r = change("write", "f");

		r.detail = detail;
		put(w, r);
	}
	assert_int_equal(audit_writer_flush(w), 0);
	put(w, change("write", "last"));
	audit_writer_close(w);
	assert_int_equal(stat(path, &st), 0);
	/* 12 MB went through; up to 4 MiB may wait for the next start. */
	assert_true(st.st_size < 5 * 1024 * 1024);
	expect_sound(*state, 201);
	die_after(*state, 5, true);
	fill(*state, 1);
	expect_sound(*state, 201 + 5 + 1 + 1 + 1);
}

/* A database that can't be written */

static void test_no_change_without_a_record(void **state)
{
	struct audit_writer *w = open_writer(*state);
	struct audit_record r = change("write", "refused"), frees = change("unlink", "freed"),
			    denial = change("lookup", "d");
	int e = 0;

	put(w, change("write", "f"));
	assert_int_equal(audit_writer_flush(w), 0);
	tamper(*state, "ALTER TABLE record RENAME TO away");
	put(w, change("write", "g"));
	assert_true(audit_writer_flush(w) < 0);
	e = audit_writer_prepare(w, &r, false);
	assert_true(e < 0);
	/* What makes room is possible, and a denial is a denial. */
	assert_int_equal(audit_writer_prepare(w, &frees, true), 0);
	audit_writer_settle(w, 0);
	assert_int_equal(audit_writer_append(w, &denial), 0);
	tamper(*state, "ALTER TABLE away RENAME TO record");
	while (audit_writer_flush(w) < 0)
		;
	put(w, change("write", "h"));
	audit_writer_close(w);
	expect(*state, NULL, "write f|write g|unlink freed|lookup d|write h|");
	expect_sound(*state, 5);
}

/* Retention */

static void test_retention_by_age(void **state)
{
	struct audit_writer *w;
	int64_t middle;

	fill(*state, 5);
	middle = nsec_now();
	fill(*state, 4);
	w = open_writer(*state);
	assert_int_equal(audit_writer_retain(w, middle, 0), 0);
	audit_writer_close(w);
	expect(*state, NULL, "write f1|write f2|write f3|write f4|retain -|");
	expect_sound(*state, 5);
	tamper(*state, "DELETE FROM record WHERE seq = 6");
	expect_fault(*state, "record 6 is missing");
}

static void test_retention_of_all_and_of_nothing(void **state)
{
	struct audit_writer *w;

	fill(*state, 5);
	w = open_writer(*state);
	assert_int_equal(audit_writer_retain(w, 1, 0), 0);
	audit_writer_close(w);
	expect_sound(*state, 5);
	w = open_writer(*state);
	assert_int_equal(audit_writer_retain(w, INT64_MAX, 0), 0);
	audit_writer_close(w);
	expect(*state, NULL, "retain -|");
	expect_sound(*state, 1);
	fill(*state, 2);
	expect_sound(*state, 3);
}

static void test_retention_by_size(void **state)
{
	g_autofree char *detail = g_strnfill(1000, 'x');
	struct audit_writer *w = open_writer(*state);
	uint64_t left;
	g_autofree char *fault = NULL;

	for (int i = 0; i < 1000; i++) {
		struct audit_record r = change("write", "f");

		r.detail = detail;
		put(w, r);
	}
	assert_int_equal(audit_writer_flush(w), 0);
	assert_int_equal(audit_writer_retain(w, 0, 400 * 1024), 0);
	audit_writer_close(w);
	fault = fault_of(*state, &left);
	assert_string_equal(fault, "");
	assert_in_range(left, 200, 400);
}

/* Sinks */

static void test_sink_is_a_copy(void **state)
{
	g_autofree char *path = g_build_filename(*state, "sink", NULL), *text = NULL;
	struct audit_writer *w = open_writer(*state);

	put(w, change("write", "before"));
	assert_int_equal(audit_writer_flush(w), 0);
	audit_writer_close(w);
	w = open_writer(*state);
	assert_true(audit_writer_sink(w, AUDIT_SINK_FILE, path, NULL));
	put(w, change("write", "a\nb"));
	put(w, change("write", "after"));
	audit_writer_close(w);
	assert_true(g_file_get_contents(path, &text, NULL, NULL));
	assert_int_equal(count(text, "\n"), 2);
	assert_null(strstr(text, "before"));
	assert_non_null(strstr(text, "\"path\":\"a\\nb\""));
	assert_non_null(strstr(text, "\"seq\":3"));
	assert_non_null(strstr(text, "\"hash\":\""));
}

static void test_a_sink_that_fails_is_left(void **state)
{
	struct audit_writer *w = open_writer(*state);

	if (!audit_writer_sink(w, AUDIT_SINK_FILE, "/dev/full", NULL))
		skip();
	put(w, change("write", "f"));
	audit_writer_close(w);
	expect(*state, NULL, "write f|sink - !5|");
}

/* A reader that does not read keeps nobody waiting, but for the patience at the end; what it misses is told. */
static void test_a_stuck_sink_holds_nothing_up(void **state)
{
	struct audit_writer *w = open_writer(*state);
	int64_t start = g_get_monotonic_time();

	assert_true(audit_writer_sink(w, AUDIT_SINK_COMMAND, "sleep 60", NULL));
	for (int i = 0; i < 3000; i++)
		put(w, change("write", "f"));
	assert_int_equal(audit_writer_flush(w), 0);
	assert_true(g_get_monotonic_time() - start < 30 * G_TIME_SPAN_SECOND);
	audit_writer_close(w);
	w = open_writer(*state);
	audit_writer_close(w);
	expect_among(*state, "|sink - !5|");
}

/* All that is recorded arrives, in order, at a command; one that ends is given up. */
static void test_a_command_as_sink(void **state)
{
	g_autofree char *path = g_build_filename(*state, "sink", NULL), *text = NULL;
	g_autofree char *command = g_strdup_printf("sh -c 'cat >\"%s\"; echo \"$SBXFS_SANDBOX\" >>\"%s\"'", path, path);
	g_autofree char *name = g_path_get_basename(*state), *end = g_strconcat(name, "\n", NULL);
	struct audit_writer *w = open_writer(*state);
	g_autoptr(GError) error = NULL;

	assert_false(audit_writer_sink(w, AUDIT_SINK_COMMAND, "/no/such/program", &error));
	assert_non_null(error);
	assert_true(audit_writer_sink(w, AUDIT_SINK_COMMAND, command, NULL));
	for (int i = 0; i < 1000; i++)
		put(w, change("write", "f"));
	audit_writer_close(w);
	/* It ends by itself after us. */
	for (int i = 0; i < 1000 && (!text || !g_str_has_suffix(text, end)); i++) {
		g_usleep(10000);
		g_clear_pointer(&text, g_free);
		g_file_get_contents(path, &text, NULL, NULL);
	}
	assert_int_equal(count(text, "\n"), 1001);
	for (int i = 1; i <= 1000; i++) {
		g_autofree char *seq = g_strdup_printf("\"seq\":%d,", i);

		assert_non_null(strstr(text, seq));
	}
	w = open_writer(*state);
	assert_true(audit_writer_sink(w, AUDIT_SINK_COMMAND, "true", NULL));
	g_usleep(200000);
	for (int i = 0; i < 3; i++) {
		put(w, change("write", "g"));
		assert_int_equal(audit_writer_flush(w), 0);
		g_usleep(100000);
	}
	audit_writer_close(w);
	expect_among(*state, "|sink - !5|");
}

static void test_the_system_log_as_sink(void **state)
{
	g_autofree char *path = g_build_filename(*state, "sink", NULL);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	g_autofree char *long_path = g_strnfill(20000, 'x');
	struct audit_writer *w = open_writer(*state);
	g_autoptr(GError) error = NULL;
	char text[16384];
	ssize_t n;

	g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
	assert_false(audit_writer_sink(w, AUDIT_SINK_SYSLOG, path, &error));
	assert_non_null(error);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(audit_writer_sink(w, AUDIT_SINK_SYSLOG, path, NULL));
	put(w, change("write", "f"));
	put(w, change("write", long_path));
	n = recv(fd, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = 0;
	assert_int_equal(strncmp(text, "<14>", 4), 0);
	assert_non_null(strstr(text, " sbxfs-"));
	assert_non_null(strstr(text, "]: {\"schema\":\"sbxfs.audit/1\",\"seq\":1,"));
	n = recv(fd, text, sizeof(text), 0);
	assert_true(n >= AUDIT_SINK_LOG_MAX && n < AUDIT_SINK_LOG_MAX + 200);
	audit_writer_close(w);
	close(fd);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(encoding_round_trip),
		T(decoding_refuses_what_is_cut_or_changed),
		T(records_are_chained_in_order),
		T(a_failed_change_says_so),
		T(hostile_paths),
		T(json_is_one_line_and_keeps_the_bytes),
		T(any_changed_column_is_found),
		T(removed_and_moved_rows_are_found),
		T(cut_ends_are_found),
		T(a_flipped_byte_of_the_file_is_found),
		T(a_killed_process_loses_no_change),
		T(a_torn_record_is_cut_off),
		T(a_spool_that_is_none_disturbs_nothing),
		T(there_is_one_writer),
		T(a_newer_version_is_refused),
		T(the_spool_starts_again),
		T(no_change_without_a_record),
		T(retention_by_age),
		T(retention_of_all_and_of_nothing),
		T(retention_by_size),
		T(sink_is_a_copy),
		T(a_sink_that_fails_is_left),
		T(a_stuck_sink_holds_nothing_up),
		T(a_command_as_sink),
		T(the_system_log_as_sink),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
