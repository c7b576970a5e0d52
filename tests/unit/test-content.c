/* SPDX-License-Identifier: MIT */

/*
 * Contents against a plain array of bytes: every home, every kind of base, over epochs, reopening and aborts.
 * SBXFS_TEST_DIR puts the store elsewhere (another file system); SBXFS_TEST_SEED and SBXFS_TEST_ROUNDS change the
 * random runs.
 */

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "snapshot/content_private.h"
#include "snapshot/store_private.h"

struct env {
	char *dir, *workspace, *store_dir;
	struct store *store;
	struct lower *lower;
	unsigned snapshots;
};

static const struct content_limits small_limits = {
	.inline_max = 6000, .rewrite_max = 100000, .copy_max = 20000,
	.depth_max = 3, .depth_full = 6, .merge_max = 40000,
};
static struct content_limits default_limits;

static void remove_tree(const char *path)
{
	g_autofree char *command = g_strdup_printf("rm -rf '%s'", path);

	assert_int_equal(system(command), 0);
}

static void env_open(struct env *e, const char *dir)
{
	g_autoptr(GError) error = NULL;

	e->dir = g_strdup(dir);
	e->workspace = g_build_filename(dir, "workspace", NULL);
	e->store_dir = g_build_filename(dir, "store", NULL);
	assert_int_equal(g_mkdir(e->workspace, 0700), 0);
	assert_int_equal(lower_open(e->workspace, &e->lower), 0);
	e->store = store_create(e->store_dir, e->workspace, &error);
	assert_null(error);
}

static void env_close(struct env *e)
{
	store_close(e->store);
	lower_close(e->lower);
	g_free(e->dir);
	g_free(e->workspace);
	g_free(e->store_dir);
	*e = (struct env){ 0 };
}

static char *make_dir(void)
{
	const char *parent = g_getenv("SBXFS_TEST_DIR");
	char *dir = g_build_filename(parent ? parent : g_get_tmp_dir(), "content-XXXXXX", NULL);

	assert_non_null(g_mkdtemp(dir));
	return dir;
}

static int setup(void **state)
{
	struct env *e = g_new0(struct env, 1);
	g_autofree char *dir = make_dir();

	default_limits = content_limits;
	env_open(e, dir);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;
	g_autofree char *dir = g_strdup(e->dir);

	content_limits = default_limits;
	env_close(e);
	remove_tree(dir);
	g_free(e);
	return 0;
}

static void begin(struct env *e)
{
	assert_int_equal(store_begin(e->store), 0);
}

static void commit(struct env *e)
{
	assert_int_equal(store_commit(e->store), 0);
}

static void step_epoch(struct env *e)
{
	g_autofree char *name = g_strdup_printf("s%u", e->snapshots++);
	int64_t epoch;

	begin(e);
	assert_int_equal(store_snapshot_create(e->store, name, &epoch), 0);
	commit(e);
}

static void fill_random(GRand *rand, uint8_t *buf, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf[i] = 1 + g_rand_int(rand) % 255; /* never zero, so that zeros show */
}

static void write_file(struct env *e, const char *name, const void *data, size_t size)
{
	g_autofree char *path = g_build_filename(e->workspace, name, NULL);

	assert_true(g_file_set_contents(path, data, size, NULL));
}

static void get_origin(struct env *e, const char *name, struct origin *ret)
{
	*ret = (struct origin){ .path = g_strdup(name), .seen = nsec_now() };
	assert_int_equal(lower_stat(e->lower, name, &ret->print), 0);
}

static struct content *from_lower(struct env *e, const char *name, uint64_t keep)
{
	struct content *c = NULL;
	struct origin o;

	get_origin(e, name, &o);
	begin(e);
	assert_int_equal(content_from_lower(e->store, e->lower, &o, keep, &c), 0);
	commit(e);
	origin_clear(&o);
	return c;
}

static struct content *fork_content(struct env *e, struct content *from, uint64_t keep)
{
	struct content *c = NULL;

	begin(e);
	assert_int_equal(content_fork(from, keep, &c), 0);
	commit(e);
	return c;
}

static struct content *new_content(struct env *e)
{
	struct content *c = NULL;

	begin(e);
	assert_int_equal(content_new(e->store, e->lower, &c), 0);
	commit(e);
	return c;
}

static struct content *reopen(struct env *e, struct content *c)
{
	int64_t id = content_id(c);

	content_close(c);
	assert_int_equal(content_open(e->store, e->lower, id, &c), 0);
	return c;
}

static void write_at(struct env *e, struct content *c, const void *buf, size_t size, uint64_t offset)
{
	begin(e);
	assert_int_equal(content_write(c, buf, size, offset), 0);
	commit(e);
}

static void truncate_to(struct env *e, struct content *c, uint64_t size)
{
	begin(e);
	assert_int_equal(content_truncate(c, size), 0);
	commit(e);
}

/*
 * Whether the store's file system allocates and tells data by pages (not with clusters, huge pages, extent size hints).
 */
static bool by_pages(struct env *e)
{
	int fd = openat(store_objects_fd(e->store), "probe", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;
	bool fine;

	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(pwrite(fd, "x", 1, 500000), 1);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	fine = st.st_blocks <= 24 && lseek(fd, 0, SEEK_DATA) > 490000;
	close(fd);
	assert_int_equal(unlinkat(store_objects_fd(e->store), "probe", 0), 0);
	return fine;
}

/* The model */

static void model_resize(GByteArray *m, size_t size)
{
	size_t old = m->len;

	g_byte_array_set_size(m, size);
	if (size > old)
		memset(m->data + old, 0, size - old);
}

static GByteArray *model_copy(const GByteArray *m, size_t keep)
{
	GByteArray *copy = g_byte_array_new();

	if (m->len > 0)
		g_byte_array_append(copy, m->data, MIN(m->len, keep));
	return copy;
}

static void check_holes(struct content *c, const GByteArray *m)
{
	int64_t at = 0;

	while ((uint64_t)at < m->len) {
		int64_t data = content_seek(c, at, SEEK_DATA), end = data == -ENXIO ? (int64_t)m->len : data;

		assert_true(end >= at);
		for (int64_t i = at; i < end; i++)
			assert_int_equal(m->data[i], 0);
		if (end == (int64_t)m->len)
			break;
		at = content_seek(c, end, SEEK_HOLE);
		assert_true(at > end && at <= (int64_t)m->len);
	}
	assert_int_equal(content_seek(c, m->len, SEEK_DATA), -ENXIO);
	assert_int_equal(content_seek(c, m->len, SEEK_HOLE), -ENXIO);
}

static void check(struct content *c, const GByteArray *m)
{
	g_autofree uint8_t *buf = g_malloc(m->len + 10);

	assert_int_equal(content_size(c), m->len);
	assert_int_equal(content_read(c, buf, m->len + 10, 0), m->len);
	for (size_t i = 0; i < m->len; i++) {
		if (buf[i] != m->data[i])
			fail_msg("byte %zu of %u: %u, not %u", i, m->len, buf[i], m->data[i]);
	}
	check_holes(c, m);
	if (m->len > 0) {
		assert_true(content_blocks(c) > 0 || content_seek(c, 0, SEEK_DATA) == -ENXIO);
		assert_int_equal(content_read(c, buf, 3, m->len - 1), 1);
	}
}

/* Offsets and lengths near the borders where mistakes live. */
static uint64_t pick(GRand *rand, uint64_t max)
{
	static const int borders[] = { 0, 1, -1, 100, -100 };
	uint64_t at;

	switch (g_rand_int(rand) % 4) {
	case 0:
		at = PAGE_BYTES * (g_rand_int(rand) % (max / PAGE_BYTES + 1));
		break;
	case 1:
		at = UINT64_C(1) << g_rand_int(rand) % 17;
		break;
	default:
		at = g_rand_int(rand) % (max + 1);
	}
	at += borders[g_rand_int(rand) % G_N_ELEMENTS(borders)];
	return at > max ? max : at;
}

static void random_write(struct env *e, GRand *rand, struct content *c, GByteArray *m)
{
	uint64_t offset = pick(rand, m->len + 9000), size = 1 + pick(rand, g_rand_int(rand) % 5 ? 5000 : 30000);
	g_autofree uint8_t *buf = g_malloc(size);

	if (offset + size > 120000)
		offset = 0;
	fill_random(rand, buf, size);
	write_at(e, c, buf, size, offset);
	if (offset + size > m->len)
		model_resize(m, offset + size);
	memcpy(m->data + offset, buf, size);
}

static void random_truncate(struct env *e, GRand *rand, struct content *c, GByteArray *m)
{
	uint64_t size = pick(rand, g_rand_int(rand) % 3 ? m->len : m->len + 20000);

	size = MIN(size, 120000);
	if (g_rand_int(rand) % 3 == 0) {
		/* An aborted one leaves everything as it was. */
		begin(e);
		assert_int_equal(content_truncate(c, size), 0);
		store_abort(e->store);
		assert_int_equal(content_revert(c), 0);
		check(c, m);
		return;
	}
	truncate_to(e, c, size);
	model_resize(m, size);
	if (g_rand_int(rand) % 3 == 0)
		assert_int_equal(content_trim(c), 0);
}

static void random_allocate(struct env *e, GRand *rand, struct content *c, GByteArray *m)
{
	static const int modes[] = { 0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
				     FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE };
	int mode = modes[g_rand_int(rand) % G_N_ELEMENTS(modes)], r;
	uint64_t offset = pick(rand, m->len + 5000), end = MIN(offset + 1 + pick(rand, 20000), 120000);
	uint64_t old = m->len;

	if (end <= offset)
		return;
	begin(e);
	r = content_allocate(c, mode, offset, end - offset);
	if (r == -EOPNOTSUPP) {
		store_abort(e->store);
		assert_int_equal(content_revert(c), 0);
		return;
	}
	assert_int_equal(r, 0);
	commit(e);
	if (!(mode & FALLOC_FL_KEEP_SIZE) && end > m->len)
		model_resize(m, end);
	if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) && offset < old)
		memset(m->data + offset, 0, MIN(end, old) - offset);
}

/*
 * A write that is aborted: the size and what came from a base or the index is as before; bytes of the object may be
 * either.
 */
static void random_abort(struct env *e, GRand *rand, struct content *c, GByteArray *m)
{
	uint64_t offset = pick(rand, m->len + 9000), size = 1 + pick(rand, 9000);
	g_autofree uint8_t *buf = g_malloc(size), *now = g_malloc(m->len + 1);

	fill_random(rand, buf, size);
	begin(e);
	assert_int_equal(content_write(c, buf, size, offset), 0);
	store_abort(e->store);
	assert_int_equal(content_revert(c), 0);
	assert_int_equal(content_size(c), m->len);
	assert_int_equal(content_read(c, now, m->len, 0), m->len);
	for (uint64_t i = 0; i < m->len; i++) {
		if (now[i] == m->data[i])
			continue;
		assert_true(i >= offset && i < offset + size);
		assert_int_equal(now[i], buf[i - offset]);
		assert_true(!c->data && (i >= c->base_size || page_map_has(c->pages, page_of(i))));
		m->data[i] = now[i];
	}
}

struct past {
	int64_t id;
	GByteArray *bytes;
};

static void past_free(gpointer data)
{
	struct past *p = data;

	g_byte_array_unref(p->bytes);
	g_free(p);
}

static void check_past(struct env *e, GPtrArray *pasts)
{
	for (unsigned i = 0; i < pasts->len; i++) {
		struct past *p = pasts->pdata[i];
		g_autoptr(content_t) c = NULL;

		assert_int_equal(content_open(e->store, e->lower, p->id, &c), 0);
		assert_false(content_is_writable(c));
		check(c, p->bytes);
		assert_int_equal(content_write(c, "x", 1, 0), -EROFS);
		assert_int_equal(content_truncate(c, 0), -EROFS);
		assert_int_equal(content_allocate(c, 0, 0, 1), -EROFS);
		if (c->object)
			assert_int_equal(pwrite(c->object->fd, "x", 1, 0), -1); /* not even by mistake */
	}
}

static struct content *random_fork(struct env *e, GRand *rand, struct content *c, GByteArray **m, GPtrArray *pasts)
{
	uint64_t keep = g_rand_int(rand) % 2 ? UINT64_MAX : pick(rand, (*m)->len);
	struct past *p = g_new0(struct past, 1);
	struct content *next;

	*p = (struct past){ content_id(c), *m };
	g_ptr_array_add(pasts, p);
	step_epoch(e);
	next = fork_content(e, c, keep);
	content_close(c);
	*m = model_copy(*m, keep);
	return next;
}

static void random_run(struct env *e, guint32 seed, struct content *c, GByteArray *m, unsigned rounds)
{
	g_autoptr(GPtrArray) pasts = g_ptr_array_new_with_free_func(past_free);
	GRand *rand = g_rand_new_with_seed(seed);

	check(c, m);
	for (unsigned i = 0; i < rounds; i++) {
		unsigned dice = g_rand_int(rand) % 16;

		if (dice < 8)
			random_write(e, rand, c, m);
		else if (dice < 10)
			random_truncate(e, rand, c, m);
		else if (dice < 12)
			random_allocate(e, rand, c, m);
		else if (dice < 13)
			random_abort(e, rand, c, m);
		else if (dice < 15)
			c = reopen(e, c);
		else if (pasts->len < 40)
			c = random_fork(e, rand, c, &m, pasts);
		check(c, m);
	}
	assert_int_equal(content_sync(c), 0);
	step_epoch(e); /* so that @c is old as well */
	check_past(e, pasts);
	content_close(c);
	g_byte_array_unref(m);
	g_rand_free(rand);
}

static void test_random(void **state)
{
	static const size_t sizes[] = { 0, 1, 5999, 6001, 15000, 19999, 20480, 60000, 65536, 100001 };
	const char *rounds = g_getenv("SBXFS_TEST_ROUNDS"), *seed = g_getenv("SBXFS_TEST_SEED");
	guint32 first = seed ? atoi(seed) : 1;
	struct env *e = *state;

	content_limits = small_limits;
	for (unsigned i = 0; i < 2 * G_N_ELEMENTS(sizes); i++) {
		size_t size = sizes[i / 2];
		g_autofree char *name = g_strdup_printf("f%u", i);
		GByteArray *m = g_byte_array_new();
		GRand *rand = g_rand_new_with_seed(first + i);
		struct content *c;

		content_limits.reflink = i % 4 == 3; /* both ways where it works, for the larger files */

		model_resize(m, size);
		fill_random(rand, m->data, size);
		if (size > 50000) /* a hole in the workspace file */
			memset(m->data + 16384, 0, 12288);
		write_file(e, name, m->data, size);
		if (i % 2) {
			c = from_lower(e, name, UINT64_MAX);
		} else {
			size = pick(rand, size);
			c = from_lower(e, name, size);
			model_resize(m, size);
		}
		g_rand_free(rand);
		random_run(e, first + i, c, m, rounds ? atoi(rounds) : 300);
	}
	assert_int_equal(content_purge_all(e->store), 0);
}

static void test_random_new(void **state)
{
	const char *seed = g_getenv("SBXFS_TEST_SEED");
	struct env *e = *state;

	content_limits = small_limits;
	for (unsigned i = 0; i < 4; i++)
		random_run(e, (seed ? atoi(seed) : 1) + 1000 + i, new_content(e), g_byte_array_new(), 300);
}

/* Homes and limits */

static void test_homes(void **state)
{
	g_autofree char *big = g_malloc(3 * CONTENT_INLINE_MAX);
	struct env *e = *state;
	g_autoptr(content_t) c = new_content(e);
	char back[10];

	memset(big, 'x', 3 * CONTENT_INLINE_MAX);
	assert_int_equal(content_size(c), 0);
	assert_int_equal(content_read(c, back, 10, 0), 0);
	write_at(e, c, big, CONTENT_INLINE_MAX, 0);
	assert_non_null(c->data);
	write_at(e, c, "y", 1, CONTENT_INLINE_MAX);
	assert_null(c->data);
	assert_int_equal(content_read(c, back, 10, CONTENT_INLINE_MAX - 1), 2);
	assert_memory_equal(back, "xy", 2);
	assert_int_equal(content_read(c, back, 10, CONTENT_INLINE_MAX + 1), 0);
	c = reopen(e, c);
	assert_int_equal(content_size(c), CONTENT_INLINE_MAX + 1);
	content_close(content_ref(c)); /* as around a sync without the lock */
	assert_int_equal(content_sync(c), 0);
	assert_int_equal(content_write(c, "x", 1, INT64_MAX), -EFBIG);
	assert_int_equal(content_write(c, "x", 1, UINT64_MAX), -EFBIG);
	assert_int_equal(content_truncate(c, UINT64_MAX), -EFBIG);
	assert_int_equal(content_size(c), CONTENT_INLINE_MAX + 1);
}

static void test_allocate_modes(void **state)
{
	struct env *e = *state;
	g_autoptr(content_t) c = new_content(e);
	int r;

	begin(e);
	assert_int_equal(content_allocate(c, FALLOC_FL_COLLAPSE_RANGE, 0, 4096), -EOPNOTSUPP);
	assert_int_equal(content_allocate(c, FALLOC_FL_INSERT_RANGE, 0, 4096), -EOPNOTSUPP);
	assert_int_equal(content_allocate(c, FALLOC_FL_PUNCH_HOLE, 0, 4096), -EOPNOTSUPP);
	assert_int_equal(content_allocate(c, 0, 0, 0), -EINVAL);
	assert_int_equal(content_allocate(c, 0, INT64_MAX, 1), -EFBIG);
	r = content_allocate(c, FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
	if (r == -EOPNOTSUPP) {
		store_abort(e->store);
		return; /* as the file system says */
	}
	assert_int_equal(r, 0);
	assert_int_equal(content_size(c), 0);
	assert_true(content_blocks(c) >= 2048);
	assert_int_equal(content_allocate(c, 0, 10, 1 << 20), 0);
	assert_int_equal(content_size(c), (1 << 20) + 10);
	assert_int_equal(content_allocate(c, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20), 0);
	assert_true(content_blocks(c) < 100 || !by_pages(e));
	commit(e);
}

static void test_sparse_beyond_4g(void **state)
{
	struct env *e = *state;
	struct content *c = new_content(e), *old;
	const uint64_t far = UINT64_C(5) << 30;
	bool fine = by_pages(e);
	char back[8] = "";

	write_at(e, c, "near", 4, 0);
	write_at(e, c, "far", 3, far);
	assert_int_equal(content_size(c), far + 3);
	c = reopen(e, c);
	assert_int_equal(content_read(c, back, 8, far), 3);
	assert_memory_equal(back, "far", 3);
	assert_int_equal(content_read(c, back, 8, far / 2), 8);
	assert_memory_equal(back, "\0\0\0\0\0\0\0\0", 8);
	if (fine)
		assert_in_range(content_seek(c, 100000, SEEK_DATA), far - PAGE_BYTES, far);
	assert_true(content_blocks(c) < 1024 || !fine);
	step_epoch(e);
	old = c;
	c = fork_content(e, old, UINT64_MAX);
	content_close(old);
	write_at(e, c, "FAR", 3, far - 1);
	assert_int_equal(content_read(c, back, 8, far - 2), 5);
	assert_memory_equal(back, "\0FARr", 5);
	if (fine)
		assert_int_equal(content_seek(c, 100000, SEEK_DATA), far - PAGE_BYTES);
	content_close(c);
}

/* Growing by little must not cost its square. */
static void test_small_appends(void **state)
{
	struct env *e = *state;
	g_autoptr(content_t) c = new_content(e);
	GByteArray *m = g_byte_array_new();

	for (unsigned i = 0; i < 3000; i++) {
		char line[17];

		snprintf(line, sizeof(line), "line %10u\n", i);
		write_at(e, c, line, 16, i * 16);
		g_byte_array_append(m, (uint8_t *)line, 16);
	}
	assert_null(c->data); /* 48,000 bytes, but written in 3,000 pieces */
	check(c, m);
	g_byte_array_unref(m);
}

/* A workspace file that was only read whole when small. */
static void test_from_lower(void **state)
{
	g_autofree uint8_t *big = g_malloc(2 << 20);
	g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
	struct env *e = *state;
	uint8_t digest[32];
	gsize n = sizeof(digest);
	GRand *rand = g_rand_new_with_seed(1);

	fill_random(rand, big, 2 << 20);
	g_rand_free(rand);
	write_file(e, "a", big, 100000);
	write_file(e, "b", big, 2 << 20);
	g_checksum_update(sum, big, 100000);
	g_checksum_get_digest(sum, digest, &n);
	for (unsigned i = 0; i < 4; i++) {
		g_autoptr(content_t) c = NULL;
		struct origin o, again;
		uint8_t back[16];

		get_origin(e, i % 2 ? "b" : "a", &o);
		begin(e);
		assert_int_equal(content_from_lower(e->store, e->lower, &o, i < 2 ? UINT64_MAX : 70000, &c), 0);
		commit(e);
		assert_int_equal(content_size(c), i >= 2 ? 70000 : i ? 2 << 20 : 100000);
		assert_int_equal(content_read(c, back, 16, 69990), i >= 2 ? 10 : 16);
		assert_memory_equal(back, big + 69990, i >= 2 ? 10 : 16);
		assert_int_equal(o.has_sha256, i == 0);
		assert_int_equal(store_origin_get(e->store, o.id, &again), 0);
		assert_int_equal(again.has_sha256, i == 0);
		if (i == 0)
			assert_memory_equal(again.sha256, digest, 32);
		origin_clear(&o);
		origin_clear(&again);
	}
}

/* Only the pages that a write touches are taken. */
static void test_based_write_is_small(void **state)
{
	g_autofree uint8_t *bytes = g_malloc(8 << 20);
	struct env *e = *state;
	g_autoptr(content_t) c = NULL;
	struct stat st;
	uint8_t back[3];

	content_limits.reflink = false;
	memset(bytes, 'b', 8 << 20);
	write_file(e, "big", bytes, 8 << 20);
	c = from_lower(e, "big", UINT64_MAX);
	write_at(e, c, "x", 1, (4 << 20) + 5);
	assert_int_equal(fstat(c->object->fd, &st), 0);
	assert_true(st.st_blocks <= 64 || !by_pages(e));
	assert_true(content_blocks(c) >= (8 << 20) / 512 - 64);
	c = reopen(e, c);
	assert_int_equal(content_read(c, back, 3, (4 << 20) + 4), 3);
	assert_memory_equal(back, "bxb", 3);
}

/* A base that is no longer what it was: an error, never a mixture. */
static void test_base_changed(void **state)
{
	g_autofree uint8_t *bytes = g_malloc(60000);
	struct env *e = *state;
	g_autofree char *path = g_build_filename(e->workspace, "f", NULL);
	g_autoptr(content_t) c = NULL;
	struct origin o;
	char back[10];
	int fd;

	content_limits = small_limits;
	memset(bytes, 'b', 60000);
	write_file(e, "f", bytes, 60000);
	get_origin(e, "f", &o);
	c = from_lower(e, "f", UINT64_MAX);
	write_at(e, c, "own", 3, 8192);
	assert_int_equal(content_read(c, back, 10, 30000), 10);

	g_usleep(20000); /* beyond the granularity of the clock of older kernels */
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, "NEW", 3, 40000), 3);
	assert_int_equal(content_read(c, back, 10, 30000), -ESTALE);
	assert_int_equal(content_read(c, back, 10, 8190), -ESTALE);
	assert_int_equal(content_read(c, back, 3, 8192), 3); /* our own page */
	assert_memory_equal(back, "own", 3);
	begin(e);
	assert_int_equal(content_write(c, "x", 1, 30000), -ESTALE);
	store_abort(e->store);
	assert_int_equal(content_revert(c), 0);
	assert_int_equal(content_seek(c, 30000, SEEK_DATA), -ESTALE);
	c = reopen(e, c);
	assert_int_equal(content_read(c, back, 10, 30000), -ESTALE);
	assert_int_equal(content_read(c, back, 3, 8192), 3);
	close(fd);

	begin(e);
	assert_int_equal(content_from_lower(e->store, e->lower, &o, UINT64_MAX, &(struct content *){ NULL }), -ESTALE);
	store_abort(e->store);

	/* Another file under the same name, and none. */
	assert_int_equal(unlink(path), 0);
	c = reopen(e, c);
	assert_int_equal(content_read(c, back, 10, 30000), -ESTALE);
	write_file(e, "f", bytes, 60000);
	assert_int_equal(content_read(c, back, 10, 30000), -ESTALE);
	/* A truncation that leaves nothing of it makes the file whole again. */
	truncate_to(e, c, 0);
	truncate_to(e, c, 60000);
	assert_int_equal(content_read(c, back, 10, 30000), 10);
	assert_memory_equal(back, "\0\0\0\0\0\0\0\0\0\0", 10);
	origin_clear(&o);
}

/* What was copied whole needs the workspace no more. */
static void test_copied_whole(void **state)
{
	g_autofree uint8_t *bytes = g_malloc0(CONTENT_INLINE_MAX + 1);
	GByteArray *m = g_byte_array_new();
	struct env *e = *state;
	g_autofree char *path = g_build_filename(e->workspace, "f", NULL);
	g_autoptr(content_t) c = NULL;

	memset(bytes, 'b', 10000); /* and zeros, that are no holes */
	g_byte_array_append(m, bytes, CONTENT_INLINE_MAX + 1);
	write_file(e, "f", bytes, CONTENT_INLINE_MAX + 1);
	c = from_lower(e, "f", UINT64_MAX);
	assert_null(c->data);
	assert_int_equal(unlink(path), 0);
	check(c, m);
	write_at(e, c, "own", 3, 20000);
	memcpy(m->data + 20000, "own", 3);
	c = reopen(e, c);
	check(c, m);
	g_byte_array_unref(m);
}

/* kill -9 between the bytes and the commit: the index as it was before, the object as it is now. */
static void test_killed_before_commit(void **state)
{
	g_autofree uint8_t *bytes = g_malloc(60000);
	GByteArray *m = g_byte_array_new();
	struct env *e = *state;
	g_autoptr(content_t) c = NULL;
	int64_t id;

	content_limits = small_limits;
	memset(bytes, 'b', 60000);
	write_file(e, "f", bytes, 60000);
	g_byte_array_append(m, bytes, 60000);
	c = from_lower(e, "f", UINT64_MAX);
	id = content_id(c);
	memset(bytes, 'n', 60000);
	begin(e);
	assert_int_equal(content_write(c, bytes, 60000, 100), 0);
	assert_int_equal(content_truncate(c, 30000), 0);
	assert_int_equal(content_write(c, "end", 3, 59000), 0);
	content_close(g_steal_pointer(&c));
	store_abort(e->store);
	assert_int_equal(content_open(e->store, e->lower, id, &c), 0);
	check(c, m);
	/* What lies beyond the end in the object must not come back either. */
	truncate_to(e, c, 70000);
	model_resize(m, 70000);
	check(c, m);
	g_byte_array_unref(m);
}

/* The last page of a base, of which a killed write left bytes in the object that no transaction speaks of. */
static void test_killed_in_last_page(void **state)
{
	static const uint64_t offsets[] = { 8192, 10000, 10001, 11000 };
	g_autofree uint8_t *bytes = g_malloc(60000);
	struct env *e = *state;

	content_limits = small_limits;
	content_limits.copy_max = 0;
	content_limits.reflink = false;
	memset(bytes, 'b', 60000);
	write_file(e, "f", bytes, 60000);
	for (unsigned i = 0; i < G_N_ELEMENTS(offsets); i++) {
		struct content *c = from_lower(e, "f", 10001);
		GByteArray *m = g_byte_array_new();

		g_byte_array_append(m, bytes, 10001);
		truncate_to(e, c, 40000);
		model_resize(m, 40000);
		begin(e);
		assert_int_equal(content_write(c, bytes, 5000, offsets[i]), 0);
		store_abort(e->store);
		c = reopen(e, c);
		for (size_t at = 8192; at < 12288; at += 64) {
			char back[64];

			assert_int_equal(content_read(c, back, 64, at), 64);
			assert_memory_equal(back, m->data + at, 64);
		}
		write_at(e, c, "own", 3, 9000);
		memcpy(m->data + 9000, "own", 3);
		if (offsets[i] + 5000 > 12288) /* pages beyond the base are the object's own */
			memset(m->data + 12288, 'b', offsets[i] + 5000 - 12288);
		check(c, m);
		content_close(c);
		g_byte_array_unref(m);
	}
}

/*
 * Committed truncations leave bytes behind in the object; growing again must not bring them back, nor those of the
 * base.
 */
static void test_truncate_down_and_up(void **state)
{
	g_autofree uint8_t *bytes = g_malloc(60000);
	struct env *e = *state;

	content_limits = small_limits;
	memset(bytes, 'b', 60000);
	write_file(e, "f", bytes, 60000);
	for (unsigned way = 0; way < 6; way++) {
		g_autoptr(content_t) c = from_lower(e, "f", UINT64_MAX);
		GByteArray *m = g_byte_array_new();

		g_byte_array_append(m, bytes, 60000);
		write_at(e, c, "own", 3, 50000);
		write_at(e, c, "own", 3, 10000);
		truncate_to(e, c, 10001);
		model_resize(m, 10001);
		m->data[10000] = 'o';
		check(c, m);
		if (way & 1)
			c = reopen(e, c);
		if (way & 2) {
			struct content *old = g_steal_pointer(&c);

			step_epoch(e);
			c = fork_content(e, old, UINT64_MAX);
			content_close(old);
		}
		if (way & 4)
			assert_int_equal(content_trim(c), 0);
		truncate_to(e, c, 60000);
		model_resize(m, 60000);
		check(c, m);
		write_at(e, c, "own", 3, 55000);
		memcpy(m->data + 55000, "own", 3);
		check(c, m);
		c = reopen(e, c);
		check(c, m);
		g_byte_array_unref(m);
	}
}

/* A page whose bytes a power cut took comes from the base again; one that only reads as data does not become ours. */
static void test_lost_and_preallocated_pages(void **state)
{
	g_autofree uint8_t *bytes = g_malloc(60000);
	struct env *e = *state;
	g_autoptr(content_t) c = NULL;
	char back[3];

	content_limits = small_limits;
	memset(bytes, 'b', 60000);
	write_file(e, "f", bytes, 60000);
	c = from_lower(e, "f", UINT64_MAX);
	write_at(e, c, "own", 3, 8192);
	write_at(e, c, "own", 3, 20480);
	assert_int_equal(fallocate(c->object->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 4096), 0);
	assert_int_equal(pwrite(c->object->fd, "\0", 1, 30000), 1);
	c = reopen(e, c);
	assert_int_equal(content_read(c, back, 3, 8192), 3);
	if (by_pages(e))
		assert_memory_equal(back, "bbb", 3);
	assert_int_equal(content_read(c, back, 3, 20480), 3);
	assert_memory_equal(back, "own", 3);
	assert_int_equal(content_read(c, back, 3, 30000), 3);
	assert_memory_equal(back, "bbb", 3);
	write_at(e, c, "own", 3, 8193);
	assert_int_equal(content_read(c, back, 3, 8193), 3);
	assert_memory_equal(back, "own", 3);
}

/* Chains are flattened before they get long, at the cost of what was written. */
static void test_fork_chain(void **state)
{
	g_autofree uint8_t *bytes = g_malloc(8 << 20);
	GByteArray *m = g_byte_array_new();
	struct env *e = *state;
	struct content *c;
	struct stat st;
	unsigned depth, deepest = 0;
	bool fine = by_pages(e);

	content_limits.reflink = false;
	memset(bytes, 'b', 8 << 20);
	write_file(e, "f", bytes, 8 << 20);
	g_byte_array_append(m, bytes, 8 << 20);
	c = from_lower(e, "f", UINT64_MAX);
	for (unsigned i = 0; i < 20; i++) {
		struct content *old = c;

		write_at(e, c, "own", 3, i * 300000);
		memcpy(m->data + i * 300000, "own", 3);
		step_epoch(e);
		c = fork_content(e, old, i == 11 ? 7 << 20 : UINT64_MAX);
		model_resize(m, i >= 11 ? 7 << 20 : 8 << 20);
		content_close(old);
		depth = 0;
		for (const struct content *b = c; b; b = b->base)
			depth++;
		deepest = MAX(deepest, depth);
		assert_int_equal(fstat(c->object->fd, &st), 0);
		assert_true(st.st_blocks < 1024 || !fine);
	}
	assert_int_equal(deepest, content_limits.depth_max);
	check(c, m);
	c = reopen(e, c);
	check(c, m);
	assert_int_equal(content_fork(c, 1, &(struct content *){ NULL }), -EINVAL);
	content_close(c);
	g_byte_array_unref(m);
}

/* kill -9 at any moment: what returned is there, and of the change under way each byte is as before or as after. */

#define KILL_MAX 120000

struct killed {
	volatile unsigned returned;        /* changes that did */
	volatile bool cut;                 /* the one under way is a truncation */
	volatile uint64_t size[2];         /* before and after the one under way */
	uint8_t bytes[2][KILL_MAX];
};

static void kill_child(struct env *e, int64_t id, struct killed *k, guint32 seed)
{
	g_autoptr(content_t) c = NULL;
	GRand *rand = g_rand_new_with_seed(seed);
	uint8_t buf[30000];

	store_close(e->store);
	e->store = store_open(e->store_dir, STORE_WRITE, NULL);
	if (!e->store || content_open(e->store, e->lower, id, &c) < 0)
		_exit(2);
	for (;;) {
		uint64_t offset = pick(rand, k->size[0] + 5000), size = 1 + pick(rand, sizeof(buf) - 2), end;
		bool cut = g_rand_int(rand) % 4 == 0;

		if (offset + size > KILL_MAX)
			offset = g_rand_int(rand) % 50000;
		end = cut ? offset : MAX(k->size[0], offset + size);
		fill_random(rand, buf, size);
		memcpy(k->bytes[1], k->bytes[0], KILL_MAX);
		if (cut)
			memset(k->bytes[1] + offset, 0, KILL_MAX - offset);
		else
			memcpy(k->bytes[1] + offset, buf, size);
		k->size[1] = end;
		k->cut = cut;
		if (store_begin(e->store) < 0)
			_exit(3);
		if ((cut ? content_truncate(c, offset) : content_write(c, buf, size, offset)) < 0)
			_exit(4);
		if (store_commit(e->store) < 0)
			_exit(5);
		k->returned++;
		memcpy(k->bytes[0], k->bytes[1], KILL_MAX);
		k->size[0] = end;
	}
}

static void kill_check(struct env *e, int64_t id, struct killed *k)
{
	g_autofree uint8_t *now = g_malloc(KILL_MAX);
	g_autoptr(content_t) c = NULL;
	uint64_t size;
	bool undone;

	assert_int_equal(content_open(e->store, e->lower, id, &c), 0);
	size = content_size(c);
	assert_true(size == k->size[0] || size == k->size[1]);
	undone = k->cut && size == k->size[0]; /* then it must not have taken anything */
	assert_int_equal(content_read(c, now, KILL_MAX, 0), size);
	for (uint64_t i = 0; i < size; i++) {
		if (now[i] != k->bytes[0][i] && (undone || now[i] != k->bytes[1][i]))
			fail_msg("byte %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT ": %u, not %u or %u",
				 i, size, now[i], k->bytes[0][i], k->bytes[1][i]);
	}
	memset(now + size, 0, KILL_MAX - size);
	memcpy(k->bytes[0], now, KILL_MAX);
	k->size[0] = size;
}

static void test_kill(void **state)
{
	const char *rounds = g_getenv("SBXFS_TEST_KILLS");
	g_autofree uint8_t *bytes = g_malloc(60000);
	struct env *e = *state;
	struct killed *k = mmap(NULL, sizeof(*k), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct content *c, *next;
	unsigned before = 0;
	int64_t id = 0;

	assert_true(k != MAP_FAILED);
	content_limits = small_limits;
	content_limits.reflink = false;
	memset(bytes, 'b', 60000);
	write_file(e, "f", bytes, 60000);
	for (int i = 0; i < (rounds ? atoi(rounds) : 60); i++) {
		pid_t pid;
		int status;

		if (i % 10 == 0) {
			c = from_lower(e, "f", i % 20 ? 5000 : 60000);
			id = content_id(c);
			k->size[0] = content_size(c);
			memset(k->bytes[0], 0, KILL_MAX);
			memset(k->bytes[0], 'b', k->size[0]);
			content_close(c);
		} else if (i % 5 == 0) {
			step_epoch(e);
			assert_int_equal(content_open(e->store, e->lower, id, &c), 0);
			next = fork_content(e, c, UINT64_MAX);
			id = content_id(next);
			content_close(next);
			content_close(c);
		}
		store_close(e->store);
		e->store = NULL;
		pid = fork();
		if (pid == 0)
			kill_child(e, id, k, i);
		while (k->returned == before && waitpid(pid, &status, WNOHANG) == 0)
			g_usleep(100);
		g_usleep(g_random_int_range(0, 20000));
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		assert_true(WIFSIGNALED(status));
		before = k->returned;
		e->store = store_open(e->store_dir, STORE_WRITE, NULL);
		assert_non_null(e->store);
		kill_check(e, id, k);
	}
	munmap(k, sizeof(*k));
}

/* Leftovers */

static unsigned count_objects(struct env *e)
{
	g_autofree char *path = g_build_filename(e->store_dir, "objects", NULL);
	GDir *dir = g_dir_open(path, 0, NULL);
	unsigned count = 0;

	while (g_dir_read_name(dir))
		count++;
	g_dir_close(dir);
	return count;
}

static void test_drop_and_purge(void **state)
{
	g_autofree char *big = g_malloc0(100000);
	struct env *e = *state;
	struct content *a = new_content(e), *b;
	int64_t id = content_id(a);

	write_at(e, a, big, 100000, 0);
	content_close(a);
	assert_int_equal(count_objects(e), 1);
	/* Not gone before the commit, nor when it is aborted. */
	begin(e);
	assert_int_equal(content_drop(e->store, id), 1);
	store_abort(e->store);
	assert_int_equal(content_purge(e->store, id), 0);
	assert_int_equal(content_purge_all(e->store), 0);
	assert_int_equal(content_open(e->store, e->lower, id, &a), 0);
	assert_int_equal(content_read(a, big, 100000, 0), 100000);
	content_close(a);
	begin(e);
	assert_int_equal(content_drop(e->store, id), 1);
	commit(e);
	assert_int_equal(count_objects(e), 1);
	/* The id is used again while the old file is still there. */
	b = new_content(e);
	assert_int_equal(content_id(b), id);
	assert_int_equal(content_purge_all(e->store), 0);
	assert_int_equal(count_objects(e), 0);
	write_at(e, b, "x", 1, 100000);
	assert_int_equal(content_purge(e->store, id), 0);
	assert_int_equal(count_objects(e), 1);
	/* One of an older epoch stays. */
	step_epoch(e);
	begin(e);
	assert_int_equal(content_drop(e->store, id), 0);
	commit(e);
	content_close(b);
	assert_int_equal(content_open(e->store, e->lower, id, &b), 0);
	content_close(b);
	/* One in the index leaves no file. */
	b = new_content(e);
	begin(e);
	assert_int_equal(content_drop(e->store, content_id(b)), 0);
	commit(e);
	content_close(b);
	assert_int_equal(content_open(e->store, e->lower, 4711, &b), -ENOENT);
}

static void test_leftover_file_is_not_read(void **state)
{
	struct env *e = *state;
	g_autoptr(content_t) c = new_content(e);
	g_autofree char *path = g_strdup_printf("%s/objects/%016" G_GINT64_MODIFIER "x", e->store_dir, content_id(c));
	char back[4];

	assert_true(g_file_set_contents(path, "garbage garbage garbage", -1, NULL));
	truncate_to(e, c, 100000);
	assert_int_equal(content_read(c, back, 4, 4), 4);
	assert_memory_equal(back, "\0\0\0\0", 4);
}

static void test_missing_object(void **state)
{
	g_autofree char *big = g_malloc0(100000);
	struct env *e = *state;
	g_autoptr(content_t) c = new_content(e);
	char back[4];

	write_at(e, c, big, 100000, 0);
	assert_int_equal(object_remove(store_objects(e->store), content_id(c)), 0);
	c = reopen(e, c);
	assert_int_equal(content_read(c, back, 4, 4), -EUCLEAN);
}

/* A full disk */

static int write_until_full(struct env *e, struct content *c, GByteArray *m, size_t step)
{
	g_autofree uint8_t *buf = g_malloc(step);
	struct stat st;

	memset(buf, 'f', step);
	for (;;) {
		int r = store_begin(e->store);

		if (r < 0)
			return r;
		r = content_write(c, buf, step, m->len);
		if (r == 0) {
			r = store_commit(e->store);
		} else {
			if (c->object) /* what was written of it does not stay on the full disk */
				assert_int_equal(fstat(c->object->fd, &st), 0);
			assert_true(!c->object || (uint64_t)st.st_size == m->len);
			store_abort(e->store);
		}
		if (r < 0) {
			assert_int_equal(content_revert(c), 0);
			return r;
		}
		g_byte_array_append(m, buf, step);
	}
}

static void test_full_disk(void **state)
{
	g_autofree char *dir = make_dir();
	g_autofree uint8_t *bytes = g_malloc(2 << 20);
	struct env *outer = *state, e = { 0 };
	g_autofree char *on_disk = g_build_filename(dir, "full", NULL);
	GByteArray *grown = g_byte_array_new(), *based = g_byte_array_new();
	struct content *c, *b;
	struct origin o;

	(void)outer;
	assert_int_equal(g_mkdir(on_disk, 0700), 0);
	if (mount("tmpfs", on_disk, "tmpfs", 0, "size=8m") < 0) {
		print_message("mounting a small tmpfs needs root: %s\n", g_strerror(errno));
		remove_tree(dir);
		g_byte_array_unref(grown);
		g_byte_array_unref(based);
		/* skip() jumps over what would free these. */
		g_clear_pointer(&bytes, g_free);
		g_clear_pointer(&on_disk, g_free);
		g_clear_pointer(&dir, g_free);
		skip();
	}
	env_open(&e, on_disk);
	/* The workspace of this one lies outside of the full disk. */
	lower_close(e.lower);
	assert_int_equal(lower_open(dir, &e.lower), 0);
	g_free(e.workspace);
	e.workspace = g_strdup(dir);
	memset(bytes, 'b', 2 << 20);
	write_file(&e, "f", bytes, 2 << 20);
	g_byte_array_append(based, bytes, 2 << 20);
	get_origin(&e, "f", &o);
	b = from_lower(&e, "f", UINT64_MAX);
	c = new_content(&e);

	assert_int_equal(write_until_full(&e, c, grown, 100000), -ENOSPC);
	assert_true(grown->len > 1000000);
	check(c, grown);
	check(b, based);
	/* Into a page that the base still shows: refused, and it goes on showing. */
	while (store_begin(e.store) == 0) {
		int r = content_write(b, "own", 3, 1000000);

		if (r == 0)
			r = store_commit(e.store);
		else
			store_abort(e.store);
		if (r < 0) {
			assert_int_equal(r, -ENOSPC);
			break;
		}
		memcpy(based->data + 1000000, "own", 3);
		assert_int_equal(write_until_full(&e, c, grown, 4096), -ENOSPC);
		break;
	}
	assert_int_equal(content_revert(b), 0);
	check(b, based);
	c = reopen(&e, c);
	b = reopen(&e, b);
	check(c, grown);
	check(b, based);
	/* Large allocations are refused whole. */
	if (store_begin(e.store) == 0) {
		assert_int_equal(content_allocate(c, 0, grown->len, 10 << 20), -ENOSPC);
		store_abort(e.store);
		assert_int_equal(content_revert(c), 0);
		check(c, grown);
	}
	content_close(c);
	content_close(b);
	origin_clear(&o);
	env_close(&e);
	assert_int_equal(umount2(on_disk, MNT_DETACH), 0);
	remove_tree(dir);
	g_byte_array_unref(grown);
	g_byte_array_unref(based);
}

/* The map of pages */

static void test_page_map(void **state)
{
	g_autoptr(page_map_t) m = page_map_new(), other = page_map_new();
	uint8_t bits[CHUNK_BYTES];
	bool has;

	(void)state;
	assert_int_equal(page_map_run(m, 5, 1 << 20, &has), (1 << 20) - 5);
	assert_false(has);
	page_map_set(m, 3, 20);
	page_map_set(m, 4095, 4100);
	page_map_set(m, UINT64_C(1) << 40, (UINT64_C(1) << 40) + 1);
	assert_int_equal(page_map_run(m, 0, 100, &has), 3);
	assert_false(has);
	assert_int_equal(page_map_run(m, 3, 100, &has), 17);
	assert_true(has);
	assert_int_equal(page_map_run(m, 3, 10, &has), 7);
	assert_int_equal(page_map_run(m, 20, UINT64_MAX, &has), 4075);
	assert_int_equal(page_map_run(m, 4095, UINT64_MAX, &has), 5);
	assert_int_equal(page_map_run(m, 4100, UINT64_MAX, &has), (UINT64_C(1) << 40) - 4100);
	assert_int_equal(page_map_count(m, UINT64_MAX), 17 + 5 + 1);
	assert_int_equal(page_map_count(m, 4097), 17 + 2);
	assert_int_equal(page_map_count(m, 0), 0);
	assert_false(page_map_chunk_with(m, 0, 3, 20, bits));
	assert_true(page_map_chunk_with(m, 0, 3, 21, bits));
	assert_false(page_map_has(m, 20));
	page_map_put_chunk(m, 0, bits, 3, true);
	assert_true(page_map_has(m, 20));
	assert_false(page_map_has(m, 4095));
	assert_true(page_map_is_raw(m, 0) && !page_map_is_raw(m, 1) && !page_map_is_raw(m, 2));
	page_map_set(other, 10, 4097);
	page_map_settle(m, 0, other);
	assert_false(page_map_is_raw(m, 0));
	assert_int_equal(page_map_count(m, UINT64_MAX), 11 + 4 + 1);
	page_map_settle(m, 1, NULL);
	assert_int_equal(page_map_count(m, UINT64_MAX), 11 + 4 + 1);
	page_map_add(other, m);
	assert_int_equal(page_map_count(other, UINT64_MAX), 4096 - 10 + 4 + 1);
	assert_int_equal(page_end_of(UINT64_MAX), UINT64_C(1) << 52);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page_map),
		cmocka_unit_test_setup_teardown(test_homes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_small_appends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_from_lower, setup, teardown),
		cmocka_unit_test_setup_teardown(test_based_write_is_small, setup, teardown),
		cmocka_unit_test_setup_teardown(test_base_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copied_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed_before_commit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed_in_last_page, setup, teardown),
		cmocka_unit_test_setup_teardown(test_truncate_down_and_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_and_preallocated_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_allocate_modes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sparse_beyond_4g, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drop_and_purge, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leftover_file_is_not_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing_object, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kill, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random_new, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
	};

	return cmocka_run_group_tests_name("content", tests, NULL, NULL);
}
