/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * audit_record - one thing that happened in a sandbox, and its bytes
 *
 * A plain value; the strings are bytes (file names need not be UTF-8 and may hold newlines), all but the operation
 * may be NULL.
 *
 * Its encoding is what is spooled and what the chain's hashes are taken of: little-endian time (8 bytes), kind, pid,
 * uid, result (4 each), then the strings in the order of the struct, each as a 4-byte size that counts a final NUL (0
 * = NULL) and so many bytes.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* The numbers are on disk. Those from 16 to 31 are for what a human is asked and answers. */
enum audit_kind {
	AUDIT_CHANGE = 1, /* in the view */
	AUDIT_DENIAL = 2, /* a rule refused it */
	AUDIT_READ = 3,	  /* the first of a file since it changed */
	AUDIT_MOUNT = 4,  /* and unmount */
	AUDIT_SNAPSHOT = 5,
	AUDIT_ROLLBACK = 6,
	AUDIT_COMMIT = 7,
	AUDIT_LOG = 8, /* about the audit itself: records dropped or taken over */
	AUDIT_QUESTION = 16, /* a human is asked; pid, uid and program are whose call waits */
	AUDIT_ANSWER = 17,   /* and answered, or not; the operation is the answer, pid, uid and program are who gave it */
	AUDIT_RUN = 32,	    /* of `sbxfs run`: its start, its end and why it ended */
	AUDIT_COMMAND = 33, /* a process inside a run */
	AUDIT_NETWORK = 34, /* a request that left a run, or was refused */
	AUDIT_REVIEW = 36,  /* what a human decided about a path, and noted, in `sbxfs review` */
};

struct audit_record {
	int64_t seq;  /* place in the chain, from 1; 0 = not chained yet */
	int64_t time; /* wall clock, ns */
	enum audit_kind kind;
	int32_t pid; /* 0 = the kernel, on nobody's behalf */
	uint32_t uid;
	int32_t result; /* 0, or the errno that the caller got */
	const char *operation;
	const char *
		program; /* the name that /proc/PID/comm had at that time: a hint, a program may call itself anything */
	const char *path;
	const char *new_path; /* of a rename or a link */
	const char *verdict;  /* what the rules say of the path */
	const char *rule;     /* which rule says so, with file and line */
	const char *detail;
};

#define AUDIT_STRINGS 7

/* audit_kind_name() - for people and JSON; "?" for one of a newer version. */
const char *audit_kind_name(enum audit_kind kind);

/* audit_record_strings() - the addresses of the strings, in the encoding's order. */
void audit_record_strings(struct audit_record *r, const char **ret[AUDIT_STRINGS]);

/* audit_record_encode() - appends to @out. Not @seq. */
void audit_record_encode(const struct audit_record *r, GByteArray *out);
/* audit_record_decode() - the strings are borrowed from @data. False when it is no encoding. */
bool audit_record_decode(const void *data, size_t size, struct audit_record *ret);
