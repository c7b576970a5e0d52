/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * out_file - a file that an option of the user's names, written by a command
 *
 * A regular file appears whole or stays what it was: the bytes go to a temporary file beside it, which takes its name at the end. "-" is
 * standard output; pipes, terminals and devices are written as they are; a symlink's target is what is replaced.
 *
 * A file in the sandbox's own view is refused: it would be one more change of the sandbox, which nobody has looked at.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

struct sandbox;

struct out_file {
	FILE *stream;
	char *path;      /* as the user gave it, for messages */
	char *target;    /* what is replaced; NULL = nothing is */
	char *temporary;
};

/* out_file_open() - EXIT_USAGE for a place in the view of @s. Ends with out_file_close(). */
bool out_file_open(struct out_file *f, const char *path, const struct sandbox *s, GError **error);
/* out_file_write() - a diff_write for an open one; a failure is remembered and told at the end. */
void out_file_write(const char *data, size_t size, void *user);
/* out_file_close() - with @keep the file takes its place, else what was written is dropped (of a stream it is gone). */
bool out_file_close(struct out_file *f, bool keep, GError **error);
