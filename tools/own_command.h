/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * own_command - a command of this program in a process of its own, and what it says
 *
 * For a server that lives long: it holds no store, lock or socket between two commands, and outlives one that
 * crashes or hangs. The command ends when we do.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct own_command {
	const char *const *arguments; /* NULL-terminated, without the program: "diff", "--stat", ... */
	/* Of standard output: only @limit bytes from @offset on are kept, however long it is. */
	uint64_t offset;
	size_t limit;
};

struct own_result {
	int code;      /* the exit code; 128 + N when signal N ended it */
	GString *out;  /* the kept part */
	uint64_t size; /* of all of it */
	GString *err;  /* standard error, as far as anybody would read it */
};

/* own_command_run() - @error only when it could not be started or took too long; not for an exit code. */
bool own_command_run(const struct own_command *c, struct own_result *ret, GError **error);
void own_result_clear(struct own_result *r);
typedef struct own_result own_result_t; /* for g_auto() only */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(own_result_t, own_result_clear)
