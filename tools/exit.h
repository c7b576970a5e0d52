/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * exit - the exit codes of every command, and which error gives which
 *
 * A command returns its exit code, or sets a GError and leaves the code to exit_code_of(). Errors that the tools
 * themselves raise are TOOL_ERROR, whose code is the exit code; those of the other folders keep their domains and are
 * mapped here.
 */

#include <glib.h>
#include <stdbool.h>

enum exit_code {
	EXIT_DONE = 0,
	EXIT_DIFFERENCES = 1,
	EXIT_USAGE = 2,
	EXIT_POLICY = 3,
	EXIT_REVIEW = 4,
	EXIT_CONFLICT = 5,
	EXIT_DIGEST = 6,
	EXIT_NOT_FOUND = 7,
	EXIT_BUSY = 8,
	EXIT_NO_SPACE = 9,
	EXIT_PLATFORM = 10,
	EXIT_INTERNAL = 70,
};

struct exit_meaning {
	enum exit_code code;
	const char *name;    /* the "code" of a JSON error */
	const char *meaning; /* for --help and the manual page */
};

/* exit_meanings() - all of them by number, ended by one whose name is NULL. */
const struct exit_meaning *exit_meanings(void);

#define TOOL_ERROR (tool_error_quark())
GQuark tool_error_quark(void);

/* tool_error() - sets @error to a message for a person; @path is the thing it is about, or NULL. */
void tool_error(GError **error, enum exit_code code, const char *path, const char *format, ...) G_GNUC_PRINTF(4, 5);
/*
 * tool_error_errno() - the same for a negative errno: the exit code follows from it (-ENOSPC, -ENOENT, ...), its text
 * is added.
 */
void tool_error_errno(GError **error, int negative_errno, const char *path, const char *format, ...)
	G_GNUC_PRINTF(4, 5);

enum exit_code exit_code_of(const GError *error);

/*
 * exit_report() - prints @error on standard error, as a line of @program or as a JSON object, and gives its exit
 * code.
 */
enum exit_code exit_report(const GError *error, const char *program, bool as_json);
