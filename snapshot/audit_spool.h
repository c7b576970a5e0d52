/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * audit_spool - records on their way into the audit's database, safe from the moment the call returns
 *
 * An append-only file, `audit.spool` in the store: one write(2) a record, no sync, so a record survives kill -9 of
 * the process (not a power cut). Room for SPOOL_RESERVE bytes is taken from the disk ahead, for the records of
 * deletions on a full one.
 *
 * Format, host order: a header (magic, generation), then for each record its size, its result, a checksum and the
 * encoding of audit_record.h. The result stands outside because it is written over when the change it announced
 * failed. A *generation* is one filling of the file: audit.db keeps (generation, offset) of what it has taken over,
 * in the transaction that does it.
 *
 * Whoever has it open for writing holds a lock on it: there is one writer of an audit. Not thread-safe. Errors are 0
 * or -errno.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "snapshot/audit_record.h"

struct audit_spool;

#define SPOOL_RESERVE (256 * 1024)
#define SPOOL_START 24 /* the offset of the first record */

/* audit_spool_open() - for writing; -EBUSY. A torn record at the end (power cut) is cut off. */
int audit_spool_open(const char *dir, struct audit_spool **ret);
void audit_spool_close(struct audit_spool *s);
uint64_t audit_spool_generation(const struct audit_spool *s);
uint64_t audit_spool_size(const struct audit_spool *s);

/*
 * audit_spool_append() - @payload: an encoding. @ret_offset: where the record begins. On failure the file is as
 * before.
 */
int audit_spool_append(struct audit_spool *s, int32_t result, const GByteArray *payload, uint64_t *ret_offset);
/* audit_spool_set_result() - of the record at @offset. */
int audit_spool_set_result(struct audit_spool *s, uint64_t offset, int32_t result);
/* audit_spool_restart() - empties it, in the next generation after @generation and its own. */
int audit_spool_restart(struct audit_spool *s, uint64_t generation);

/*
 * audit_spool_read() - the records that are not in what (@generation, @offset) says was taken over, by any reader.
 * @fn returns false to stop. What is no record ends it. No spool is no error. @ret_generation: the one read, 0 =
 * none.
 */
typedef bool (*audit_spool_fn)(const struct audit_record *r, uint64_t end, void *user);
int audit_spool_read(const char *dir, uint64_t generation, uint64_t offset, audit_spool_fn fn, void *user,
		     uint64_t *ret_generation);
