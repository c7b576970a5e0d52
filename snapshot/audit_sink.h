/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * audit_sink - a copy of the audit elsewhere, as lines of JSON (snapshot/audit_json.h): a file, the system's log, a command
 *
 * A sink reads the chain by itself, in a thread and with a connection of its own, from the record on that came last when it was opened.
 * So whatever it waits for, the audit does not: what it has not taken yet stays in audit.db, not in memory. When
 * it is closed it has AUDIT_SINK_PATIENCE_MS to catch up. One that can't be written is left: later lines would hide that
 * some are missing.
 *
 *   file     appended to; made with mode 0600, of a symlink nothing is written
 *   syslog   datagrams to a socket as syslog(3) writes them, which journald reads too; what is longer than
 *            AUDIT_SINK_LOG_MAX bytes is cut
 *   command  on its standard input; it is started once, ends when that ends, and is not started again
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct audit_sink;

#define AUDIT_SINK_PATIENCE_MS 2000
#define AUDIT_SINK_LOG_MAX 8000

enum audit_sink_kind { AUDIT_SINK_FILE, AUDIT_SINK_SYSLOG, AUDIT_SINK_COMMAND };

/* audit_sink_kind_name() - "file", ... */
const char *audit_sink_kind_name(enum audit_sink_kind kind);

/* Called once, from the sink's thread, when it leaves. @why: for people. */
typedef void (*audit_sink_left_fn)(enum audit_sink_kind kind, const char *why, void *user);

/*
 * audit_sink_open() - of the audit in the store @dir, for the records after @after. @target: the file, the socket, or the command as a shell
 * splits it (nothing is expanded). The error says what cannot be opened.
 */
struct audit_sink *audit_sink_open(const char *dir, enum audit_sink_kind kind, const char *target, int64_t after, audit_sink_left_fn left,
				   void *user, GError **error);
/* audit_sink_wake() - there are new records. Never waits. */
void audit_sink_wake(struct audit_sink *s);
/* audit_sink_close() - after the last record. True when the sink has all of them, or has left before. */
bool audit_sink_close(struct audit_sink *s);
