/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * policy_file - reading INI files, and the one home of inih
 *
 * The format: "[section]" lines, "key = value" lines, and comments in lines that begin with ; or #. White space around section,
 * key and value is dropped. A value reaches to the end of its line, whatever it holds (no comments behind values, they would cut
 * regular expressions; no quotes). A line is never continued by the next one, indented or not: a forgotten "=" must not turn a rule
 * into one more pattern of the rule above it. Repeat the key instead.
 *
 * inih alone would cut long lines and names without a word, take text behind "]", and not tell of sections without keys. So each
 * line is looked at before inih sees it, and whatever inih would not take over whole is an error.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#define POLICY_FILE_MAX (1024 * 1024) /* bytes of a file */
#define POLICY_LINE_MAX 65532         /* bytes of a line */
#define POLICY_VALUE_MAX 32768        /* bytes of a value */
#define POLICY_NAME_MAX 49            /* bytes of a section or key: what inih keeps */

struct policy_file_item {
	const char *section;
	const char *key;   /* NULL: the section begins here */
	const char *value; /* NULL with @key */
	const char *note;  /* the text of a ";@" comment in the line just above, or NULL */
	unsigned line;
};

/* Called for each section line and each key, in order. False with @error set ends the reading, and is what it ends with. */
typedef bool (*policy_file_func)(const struct policy_file_item *item, void *user, GError **error);

/*
 * policy_file_read() - the whole of a regular file
 *
 * @follow: whether @path may be a symbolic link itself. Caller frees. POLICY_ERROR_NOT_FOUND when it does not exist,
 * POLICY_ERROR_UNREADABLE for the rest: permissions, a directory, a fifo, more than POLICY_FILE_MAX.
 */
char *policy_file_read(const char *path, bool follow, size_t *ret_len, GError **error);

/* policy_file_parse() - @name is for the messages ("name:line: ..."). */
bool policy_file_parse(const char *text, size_t len, const char *name, policy_file_func func, void *user, GError **error);
