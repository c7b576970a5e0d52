/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * cycle - what comes before and after a run: a snapshot to go back to, what changed, and what happens with it
 *
 * The snapshots are run-1, run-2, ...; of several runs at once in one sandbox each has its own, and "what changed" is
 * what all of them did.
 */

#include <glib.h>
#include <stdbool.h>

struct attached;
struct cycle;

enum on_exit { ON_EXIT_KEEP, ON_EXIT_ASK, ON_EXIT_COMMIT, ON_EXIT_ROLLBACK };

/* cycle_parse() - NULL stands for keep. */
bool cycle_parse(const char *name, enum on_exit *ret);

/*
 * cycle_begin() - makes the snapshot, records @command and takes the time. @a was opened with ATTACH_CONTROL. @shared: other runs are in the
 * sandbox already; those that come later are known by their snapshots.
 */
struct cycle *cycle_begin(struct attached *a, char *const *command, bool shared, GError **error);
/* cycle_stopped() - @limit ends the run: in the audit. */
void cycle_stopped(struct cycle *c, struct attached *a, const char *limit);
/* cycle_summarise() - in the audit and on standard error. */
void cycle_summarise(struct cycle *c, struct attached *a, int status);
/*
 * cycle_end() - commits, rolls back or asks, with the commands of those names: nothing gets by their checks. @status
 * is the program's; one of 0 becomes that of a commit or rollback that was refused. What they print goes to standard
 * error, standard output is the program's. Unasked, what a program left that failed or was stopped is not committed, and nothing is rolled
 * back that other runs did meanwhile: it is kept, and said.
 */
bool cycle_end(struct cycle *c, enum on_exit what, int *status, GError **error);
void cycle_free(struct cycle *c);
