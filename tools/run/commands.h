/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * commands - the log of what is executed in a run: each execve(2) and execveat(2), and how the processes end
 *
 * A program starts when its record is in the audit, and not otherwise: the call waits for it, and is refused (with EIO, or ENOSPC on
 * a full disk) when the record cannot be written. The ends are recorded a moment later. Records have the kind AUDIT_COMMAND;
 * the detail is a JSON object:
 *
 *   operation "exec"  {"path", "argv": [...], "cwd", "environment": [names], "parent": pid}; where it applies also
 *                     "argv_cut" or "environment_cut": true (longer than COMMANDS_TEXT_MAX), "unread": true (the
 *                     memory of the caller could not be read), "end_unwatched": true (more processes than can be watched)
 *   operation "exit"  {"path": of the last program, "exit": status | "signal": number | neither when the kernel does not tell,
 *                     "duration_ms", "commands": how many programs the process was}
 *   operation "stdout", "stderr"  the detail is what the run's own command wrote, as text: see excerpt.h
 *
 * An exec is what was attempted, and may fail. Only the search along PATH is kept out: where an absolute path names nothing
 * the call is answered with ENOENT here, which is true whatever happens to the path meanwhile. The arguments are read from the memory of the caller, whose other threads can change it between our look and the kernel's: this is a log, and nothing is
 * decided by it. A process that only forks executes nothing; it shows as the parent of what its children execute.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

struct commands;
struct policy;
struct sandbox;

#define COMMANDS_TEXT_MAX 8192 /* bytes of arguments, and as many of names of variables */
#define COMMANDS_KEEP 65536
#define COMMANDS_WATCHED_MAX 8192 /* processes at the same time */

/*
 * commands_wanted() - "command_log" of [run]: yes, unless the user's or the managed profile says no and no layer says yes.
 * @ret_keep: "output_log", how many bytes of each output are kept; 0 with no, COMMANDS_KEEP when nothing is said.
 */
bool commands_wanted(const struct policy *policy, bool *ret_wanted, size_t *ret_keep, GError **error);

/* commands_new() - for one run in @s, before fork(2). */
struct commands *commands_new(const struct sandbox *s, GError **error);
/* commands_enter() - in the child, before its exec; async-signal-safe. */
bool commands_enter(const struct commands *c);
/* commands_start() - in the parent, after the fork; starts the thread that attends. */
bool commands_start(struct commands *c, GError **error);
/* commands_finish() - after everything in the run has ended: waits for the last records. */
void commands_finish(struct commands *c);
/* commands_output() - what the run's command wrote; after commands_finish(). */
void commands_output(struct commands *c, const char *stream, const char *text);
void commands_free(struct commands *c);
