/* SPDX-License-Identifier: MIT */
#include "snapshot/redo.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/checksum.h"
#include "snapshot/pread_all.h"

#define FILE_SIZE (512 * 1024)
/* A change touches some eight pages of the index. */
#define ROOM ((off_t)REDO_BATCH_MAX * 8 * 4096)

struct record_header {
	uint64_t sum; /* of all that follows, statements included */
	uint64_t salt;
	int64_t batch;
	uint64_t size; /* of the statements */
};
G_STATIC_ASSERT(sizeof(struct record_header) == 32);

struct redo {
	int fd;
	int has_room; /* atomic */
	int needed;   /* the same */
	int64_t batch;
	uint64_t salt;
	unsigned count;
	uint64_t size;	    /* of the promised records */
	GByteArray *change; /* the record that is being made */
	GPtrArray *texts;   /* by number; borrowed */
	unsigned known;	    /* so many of them are in promised records */
};

int redo_open(const char *dir, bool writable, struct redo **ret)
{
	g_autofree char *path = g_build_filename(dir, "redo", NULL);
	struct redo *r;
	int fd = open(path, (writable ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	r = g_new0(struct redo, 1);
	r->fd = fd;
	if (writable)
		redo_take_room(r);
	r->change = g_byte_array_sized_new(REDO_CHANGE_MAX);
	r->texts = g_ptr_array_new();
	*ret = r;
	return 0;
}

void redo_close(struct redo *r)
{
	if (!r)
		return;
	close(r->fd);
	g_byte_array_unref(r->change);
	g_ptr_array_unref(r->texts);
	g_free(r);
}

void redo_take_room(struct redo *r)
{
	if (redo_has_room(r))
		return;
	if (posix_fallocate(r->fd, 0, FILE_SIZE + ROOM) == 0)
		__atomic_store_n(&r->has_room, 1, __ATOMIC_RELEASE);
	else if (ftruncate(r->fd, FILE_SIZE) < 0)
		g_debug("the room of a batch can't be given back");
}

bool redo_free_room(struct redo *r)
{
	return __atomic_exchange_n(&r->has_room, 0, __ATOMIC_ACQ_REL) && ftruncate(r->fd, FILE_SIZE) == 0;
}

bool redo_has_room(const struct redo *r)
{
	return __atomic_load_n(&r->has_room, __ATOMIC_ACQUIRE);
}

/* Writing */

void redo_begin_batch(struct redo *r, int64_t batch)
{
	r->batch = batch;
	r->salt = (uint64_t)g_random_int() << 32 | g_random_int();
	r->count = r->known = 0;
	__atomic_store_n(&r->needed, 0, __ATOMIC_RELAXED);
	r->size = 0;
	redo_begin_change(r);
}

void redo_begin_change(struct redo *r)
{
	g_byte_array_set_size(r->change, sizeof(struct record_header));
	g_ptr_array_set_size(r->texts, (int)r->known);
}

static void put(struct redo *r, const void *data, size_t size)
{
	/* One that is too long already is not going to be promised. */
	if (r->change->len <= REDO_CHANGE_MAX)
		g_byte_array_append(r->change, data, size);
}

static void put_bytes(struct redo *r, const void *data, size_t size)
{
	uint32_t n = (uint32_t)MIN(size, UINT32_MAX);

	put(r, &n, sizeof(n));
	put(r, data, n);
}

static void put_text(struct redo *r, const char *sql)
{
	guint at;
	uint16_t number;

	if (g_ptr_array_find(r->texts, sql, &at)) {
		number = (uint16_t)at;
		put(r, &number, sizeof(number));
		return;
	}
	number = (uint16_t)r->texts->len;
	g_ptr_array_add(r->texts, (gpointer)sql);
	put(r, &number, sizeof(number));
	put_bytes(r, sql, strlen(sql));
}

void redo_note(const char *sql, const struct db_value *values, int count, int64_t last_id, void *redo)
{
	struct redo *r = redo;
	uint16_t n = (uint16_t)count;

	if (count < 0) {
		g_byte_array_set_size(r->change, REDO_CHANGE_MAX + 1);
		return;
	}
	put_text(r, sql);
	put(r, &last_id, sizeof(last_id));
	put(r, &n, sizeof(n));
	for (int i = 0; i < count; i++) {
		uint8_t type = values[i].type;

		put(r, &type, sizeof(type));
		if (type == DB_INT)
			put(r, &values[i].number, sizeof(values[i].number));
		else if (type != DB_NULL)
			put_bytes(r, values[i].data, values[i].size);
	}
}

static uint64_t record_sum(const void *record, size_t size)
{
	const size_t skip = sizeof(uint64_t);

	return checksum_add(CHECKSUM_START, (const char *)record + skip, size - skip);
}

int redo_promise(struct redo *r)
{
	struct record_header *h = (void *)r->change->data;
	ssize_t n;

	if (r->change->len > REDO_CHANGE_MAX)
		return -E2BIG;
	if (!redo_has_room(r) || r->size + r->change->len > FILE_SIZE)
		return -ENOSPC;
	*h = (struct record_header){ .salt = r->salt, .batch = r->batch, .size = r->change->len - sizeof(*h) };
	h->sum = record_sum(h, r->change->len);
	do {
		n = pwrite(r->fd, r->change->data, r->change->len, r->size);
	} while (n < 0 && errno == EINTR);
	/* Half of one is none, and the next is written over it. */
	if (n != (ssize_t)r->change->len)
		return n < 0 ? -errno : -ENOSPC;
	r->size += r->change->len;
	r->count++;
	r->known = r->texts->len;
	return 0;
}

void redo_needs_sync(struct redo *r)
{
	__atomic_store_n(&r->needed, 1, __ATOMIC_RELAXED);
}

bool redo_is_needed(const struct redo *r)
{
	return __atomic_load_n(&r->needed, __ATOMIC_RELAXED);
}

int redo_sync(struct redo *r)
{
	return fdatasync(r->fd) < 0 ? -errno : 0;
}

unsigned redo_count(const struct redo *r)
{
	return r->count;
}

/* Reading */

/* A record's statements, and how far they were read. */
struct reader {
	const uint8_t *data;
	size_t left;
	GPtrArray *texts; /* of the batch so far; for ever */
};

static bool take(struct reader *in, void *ret, size_t size)
{
	if (in->left < size)
		return false;
	memcpy(ret, in->data, size);
	in->data += size;
	in->left -= size;
	return true;
}

/* Borrowed from the record. */
static bool take_bytes(struct reader *in, const void **ret, size_t *ret_size)
{
	uint32_t size;

	if (!take(in, &size, sizeof(size)) || in->left < size)
		return false;
	*ret = in->data;
	*ret_size = size;
	in->data += size;
	in->left -= size;
	return true;
}

static bool take_text(struct reader *in, const char **ret)
{
	const void *bytes;
	uint16_t number;
	size_t size;

	if (!take(in, &number, sizeof(number)) || number > in->texts->len)
		return false;
	if (number == in->texts->len) {
		g_autofree char *text = NULL;

		if (!take_bytes(in, &bytes, &size))
			return false;
		text = g_strndup(bytes, size);
		g_ptr_array_add(in->texts, (gpointer)g_intern_string(text));
	}
	*ret = g_ptr_array_index(in->texts, number);
	return true;
}

static bool take_value(struct reader *in, struct db_value *ret)
{
	uint8_t type;

	*ret = (struct db_value){ 0 };
	if (!take(in, &type, sizeof(type)) || type > DB_BLOB)
		return false;
	ret->type = type;
	if (type == DB_INT)
		return take(in, &ret->number, sizeof(ret->number));
	return type == DB_NULL || take_bytes(in, &ret->data, &ret->size);
}

static int run_statement(struct reader *in, struct db *db)
{
	struct db_value values[DB_VALUES_MAX];
	const char *sql;
	int64_t last_id;
	uint16_t count;
	int r;

	if (!take_text(in, &sql) || !take(in, &last_id, sizeof(last_id)) || !take(in, &count, sizeof(count)) || count > DB_VALUES_MAX)
		return -EUCLEAN;
	for (int i = 0; i < count; i++)
		if (!take_value(in, &values[i]))
			return -EUCLEAN;
	r = db_write(db, sql, values, count);
	return r == 0 && db_last_id(db) != last_id ? -EUCLEAN : r;
}

/* The record at @offset, if it is of that batch and the next after @before (NULL: the first); its statements are behind the header. */
static bool read_record(struct redo *r, uint64_t offset, int64_t batch, const struct record_header *before, GByteArray *record)
{
	struct record_header h;

	if (pread_all(r->fd, &h, sizeof(h), offset) < 0 || h.batch != batch || (before && h.salt != before->salt) ||
	    h.size > REDO_CHANGE_MAX)
		return false;
	g_byte_array_set_size(record, sizeof(h) + h.size);
	return pread_all(r->fd, record->data, record->len, offset) == 0 && memcmp(record->data, &h, sizeof(h)) == 0 &&
	       record_sum(record->data, record->len) == h.sum;
}

bool redo_has(struct redo *r, int64_t batch)
{
	g_autoptr(GByteArray) record = g_byte_array_new();

	return read_record(r, 0, batch, NULL, record);
}

int redo_run(struct redo *r, struct db *db, int64_t batch, unsigned *ret_count)
{
	g_autoptr(GByteArray) record = g_byte_array_new();
	g_autoptr(GPtrArray) texts = g_ptr_array_new();
	struct record_header h, *before = NULL;
	uint64_t offset = 0;
	int e = 0;

	*ret_count = 0;
	while (e == 0 && read_record(r, offset, batch, before, record)) {
		struct reader in = { record->data + sizeof(h), record->len - sizeof(h), texts };

		while (e == 0 && in.left > 0)
			e = run_statement(&in, db);
		memcpy(&h, record->data, sizeof(h));
		before = &h;
		offset += record->len;
		*ret_count += e == 0;
	}
	return e;
}
