/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * audit_writer - the one process that adds to a sandbox's audit
 *
 * A change is announced before it is committed (audit_writer_prepare(), then audit_writer_settle()), so there is no
 * change without a record; a denial or an event is one call. Both are in the spool when the call returns. What was
 * read is kept in memory only. A thread of its own moves all of it, in the order of the calls, into the chain of
 * audit.db within AUDIT_BATCH_DELAY_MS and what the disk takes, so that no request waits for SQLite. kill -9 therefore loses
 * the read records of that time and nothing else; the next writer takes over what the spool holds.
 *
 * When the audit can't be written (spool or database: full disk, errors) prepare fails, and so does the change:
 * -ENOSPC or what it was. A change that @frees space needs the spool only, which has room for some thousand of them.
 * Denials stay denials; reads go on. Records of these that found no place are counted, and the count is recorded when
 * it works again.
 *
 * Thread-safe; between prepare and settle the caller must not come in again (the overlay's lock sees to it).
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "snapshot/audit_record.h"
#include "snapshot/audit_sink.h"

struct audit_writer;

/* Moved together; of the 100 ms that a crash may cost in read records. */
#define AUDIT_BATCH_DELAY_MS 25

#define AUDIT_ERROR (audit_error_quark())
GQuark audit_error_quark(void);
enum audit_error {
	AUDIT_ERROR_FAILED,
	AUDIT_ERROR_BUSY,    /* another process writes it */
	AUDIT_ERROR_VERSION, /* of a newer sbxfs */
	AUDIT_ERROR_NO_SPACE,
	AUDIT_ERROR_SINK, /* a copy cannot be made */
};

/* What is done with an audit, beside keeping it. */
struct audit_options {
	int64_t keep_time;   /* ns; older records are dropped at the opening; 0 = none for their age */
	uint64_t keep_bytes; /* and the oldest beyond so many; 0 = none for their size */
	GArray *sinks;	     /* struct audit_sink_target; NULL = none */
};
struct audit_sink_target {
	enum audit_sink_kind kind;
	char *target;
};

/*
 * audit_writer_open() - in the store @dir; takes over what a killed process has left. Starts the thread: call it
 * after fork(2).
 */
struct audit_writer *audit_writer_open(const char *dir, GError **error);
/* audit_writer_close() - all records are in the chain when it returns, or at least in the spool. */
void audit_writer_close(struct audit_writer *w);

/*
 * audit_writer_sink() - from now on each record that enters the chain is also copied there, see snapshot/audit_sink.h, those included that
 * were taken over from a killed process. That a sink left, or could not keep up until the end, has a record.
 */
bool audit_writer_sink(struct audit_writer *w, enum audit_sink_kind kind, const char *target, GError **error);
/* audit_writer_retain() - as audit_retain(); records that it was done. */
int audit_writer_retain(struct audit_writer *w, int64_t before, uint64_t max_bytes);

/* Records. The time is set here; seq and result are ignored where a call has its own. */

int audit_writer_prepare(struct audit_writer *w, struct audit_record *r, bool frees);
/* audit_writer_settle() - of the prepared change: 0, or the errno with which it failed after all. */
void audit_writer_settle(struct audit_writer *w, int32_t result);
/* audit_writer_append() - something that has happened. */
int audit_writer_append(struct audit_writer *w, struct audit_record *r);
/* audit_writer_note() - a read. */
void audit_writer_note(struct audit_writer *w, struct audit_record *r);
/* audit_writer_flush() - waits until all records so far are in the chain; 0, or why they are not. */
int audit_writer_flush(struct audit_writer *w);
