/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * audit_note - what is recorded of the operations of a view, and when
 *
 * An operation says at its start what it is about (audit_begin()) and at its end how it went (audit_end()). In
 * between
 *  - overlay_end() announces the change to the audit before it commits it: no record, no change;
 *  - audit_end() records a refusal by the rules: an errno that a verdict on the way explains. Other errors are none
 *    of ours;
 *  - audit_read() records the first read of a file's present version. So each change has one record, which is in the
 *    audit's spool when the reply goes out.
 *
 * What the kernel answers by itself leaves no record, for it reaches nobody: reads from its page cache, and an
 * open(2) for writing that the missing w bits of a read-only file forbid. That a denied file was reached for shows as
 * a denial of "lookup": its mode 0000 refuses the open(2) that follows.
 *
 * All but audit_caller() under overlay->lock; nothing happens while overlay->audit is NULL.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "snapshot/audit_record.h"

struct audit_note;
struct audit_writer;
struct node;
struct overlay;
struct question_asker;
struct verdict;

/* An operation. Everything is borrowed until audit_end(). */
struct audit_about {
	enum audit_kind kind; /* of the record when it succeeds; 0 = AUDIT_CHANGE */
	const char *operation;
	uint64_t ino; /* what it is done to; with @name: the directory. 0 = neither */
	const char *name;
	uint64_t new_ino; /* of a rename or a link: the new directory */
	const char *new_name;
	const struct verdict *verdict; /* of a name that is not there yet */
	const char *path;	       /* in place of @ino and @name */
	const char *limit;	       /* what it is beyond, and refused or asked for because of; see audit_limit() */
	const char *detail;
	bool frees; /* must work on a full disk */
};

/* audit_note_new() - takes @w. */
struct audit_note *audit_note_new(struct audit_writer *w);
void audit_note_free(struct audit_note *n);

/* audit_caller() - on whose behalf this thread works from now on; this process, if nothing was said. */
void audit_caller(int32_t pid, uint32_t uid);

void audit_begin(struct overlay *o, const struct audit_about *about);
/* audit_verdict() - of the name that the operation makes, once it is known. */
void audit_verdict(struct overlay *o, const struct verdict *v);
/* audit_limit() - the operation is beyond a limit; @text is borrowed until audit_end(). */
void audit_limit(struct overlay *o, const char *text);
/* audit_end() - returns @r. */
int audit_end(struct overlay *o, int r);

/* audit_announce(), audit_settle() - around the commit of what audit_begin() spoke of; for overlay_end(). */
int audit_announce(struct overlay *o);
void audit_settle(struct overlay *o, int r);

/* audit_closed() - a name was looked up whose node is shown with a mode that nobody can open. */
void audit_closed(struct overlay *o, const struct node *n);
/* audit_hidden() - a hidden name was asked for. */
void audit_hidden(struct overlay *o);
void audit_read(struct overlay *o, struct node *n);
/* audit_paths() - a record for each of @paths (NULL = none) of what has its own record as a whole. */
void audit_paths(struct overlay *o, enum audit_kind kind, const char *operation, const char *const *paths);
/* audit_about() - the operation under way. audit_child() - the number of what is under @name in the directory @ino; @ino without a name; 0. */
const struct audit_about *audit_about(struct overlay *o);
uint64_t audit_child(struct overlay *o, uint64_t ino, const char *name);
/*
 * audit_explain() - the operation under way as a record: who does what to which path, and the most closed verdict on the way. The paths are the
 * caller's, the other strings borrowed until the lock is let go. False when neither rule nor limit speaks against it.
 */
bool audit_explain(struct overlay *o, struct audit_record *ret, char **ret_path, char **ret_new_path);
/* audit_asker() - the process on whose behalf this thread works. */
void audit_asker(struct question_asker *ret);
/* audit_who() - pid, uid and program of @r: on whose behalf this thread works. */
void audit_who(struct overlay *o, struct audit_record *r);
/* audit_event() - something that is no operation on a node. */
int audit_event(struct overlay *o, const struct audit_about *about);
/* audit_add() - a record that is complete. */
int audit_add(struct overlay *o, struct audit_record *r);
