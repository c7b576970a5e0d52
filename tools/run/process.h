/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * process - what can be read of another process: from /proc, and from its memory
 *
 * All of it may be gone or have changed in the next moment, and what lies in its memory the process says of itself: fit for a
 * log, not for a decision.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_TEXT_SIZE 4096

/* process_read_text() - the start of /proc/PID/@name, ended by a NUL; false when the process is gone. */
bool process_read_text(pid_t pid, const char *name, char text[static PROCESS_TEXT_SIZE]);

struct process_identity {
	pid_t pid;    /* of the process that the thread belongs to */
	pid_t parent; /* all pids are those of the reader's namespace; 0 = outside of it */
	uid_t uid;
	char name[16];
};

/* process_identify() - of a process or any of its threads. */
bool process_identify(pid_t tid, struct process_identity *ret);

/* process_cwd() - its directory as it sees it; NULL when that cannot be read. Caller frees. */
char *process_cwd(pid_t pid);

/* process_descriptor() - what its descriptor @fd leads to, as /proc names it; NULL when that cannot be read. Caller frees. */
char *process_descriptor(pid_t pid, int fd);

/* process_root() - a descriptor of its root directory; -errno. */
int process_root(pid_t pid);

/* process_string() - at @address, at most @max bytes of it; NULL when it cannot be read. Caller frees. */
char *process_string(pid_t pid, uint64_t address, size_t max);

/*
 * process_strings() - a list of pointers to strings, as execve(2) takes it, ended by NULL. @until: what ends each string beside the
 * NUL ('=' for the names of the environment), 0 = nothing. At most @max bytes of them; @ret_cut tells whether that was not all. NULL when the
 * list cannot be read.
 */
GPtrArray *process_strings(pid_t pid, uint64_t address, char until, size_t max, bool *ret_cut);
