/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * audit - the record of what happened in a sandbox: `audit.db` in its store
 *
 * A database of its own, so that no rollback touches it. Records form a chain: each row's hash is the SHA-256 of the
 * hash before it, the row's number (8 bytes, little-endian) and the record's encoding (snapshot/audit_record.h). The
 * table `checkpoint` says outside the chain where it begins and ends; it is written in the transaction that appends.
 * So an edited byte, a missing, added or moved row and a cut end are found by audit_verify(). Whoever may write the
 * store can also make a new chain that is sound; against that keep the head that `sbxfs log --verify` prints, or the
 * JSON lines, elsewhere.
 *
 * Written through snapshot/audit_writer.h, by one process; read by anybody at any time. Not thread-safe. 0 or -errno.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "snapshot/audit_record.h"

#define AUDIT_VERSION 1

struct audit;

/* What the chain holds: records @first to @last (none when last < first), and how far the spool has been taken over. */
struct audit_checkpoint {
	int64_t first;
	int64_t last;
	uint8_t anchor[32]; /* the hash before @first */
	uint8_t head[32];   /* the hash of @last */
	uint64_t spool_generation;
	uint64_t spool_offset;
};

/* audit_open() - in the store @dir. @write: makes or upgrades it. -EPROTO: of a newer version. -ENOENT. */
int audit_open(const char *dir, bool write, struct audit **ret);
void audit_close(struct audit *a);
typedef struct audit audit_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(audit_t, audit_close)
const char *audit_message(struct audit *a);

int audit_checkpoint(struct audit *a, struct audit_checkpoint *ret);
/*
 * audit_append() - encodings (GByteArray) become the next records, all or none, in one transaction with the position
 * in the spool. @results: of each, in place of the encoded one.
 */
int audit_append(struct audit *a, GPtrArray *encodings, const int32_t *results, uint64_t spool_generation,
		 uint64_t spool_offset);
/* audit_sync() - what was appended survives a power cut. */
int audit_sync(struct audit *a);

/* Reading */

struct audit_filter {
	int64_t after;	       /* only records with a higher number */
	int64_t since;	       /* wall clock, ns; 0 = all */
	const char *path;      /* it, or below it; either path of the record; NULL = all */
	const char *operation; /* NULL = all */
	bool denied;	       /* denials and refused requests to the network only */
};

bool audit_filter_matches(const struct audit_filter *f, const struct audit_record *r);
/*
 * audit_list() - in order: the chain, then (@spooled) what a process that was killed has left in the spool of @dir
 * and what a living one is about to take over from there, with seq 0 and no hash. @fn returns false to stop; the
 * record is borrowed. @hash: 32 bytes or NULL. @a may be NULL: only the spool.
 */
typedef bool (*audit_fn)(const struct audit_record *r, const uint8_t *hash, void *user);
int audit_list(struct audit *a, const char *dir, bool spooled, const struct audit_filter *f, audit_fn fn, void *user);

struct audit_verification {
	struct audit_checkpoint checkpoint;
	uint64_t records;
	char *fault; /* what is wrong, for people; NULL = nothing */
	int64_t seq; /* where */
};
/* audit_verify() - walks the whole chain. 0 also when there is a fault; audit_verification_clear(). */
int audit_verify(struct audit *a, struct audit_verification *ret);
void audit_verification_clear(struct audit_verification *v);

/*
 * audit_retain() - drops the oldest records: those from before @before (ns; 0 = none), and as many as it takes to
 * have the records fill at most @max_bytes of the database (0 = any size). What remains verifies. @ret_dropped: how
 * many; the caller records it.
 */
int audit_retain(struct audit *a, int64_t before, uint64_t max_bytes, uint64_t *ret_dropped);
