/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * profile - the profiles of one policy file as written, before "extends" is followed
 *
 * Everything that can be wrong with a file by itself is found here: unknown sections and keys, bad values, patterns that do not
 * compile, in profiles that nobody asked for as well. After that a profile does not change; it lives as long as its file.
 */

#include <glib.h>
#include <stdbool.h>

#include "rules/rule_list.h"

struct profile_file {
	char *path;          /* for messages */
	GPtrArray *profiles; /* struct profile, in the order of the file; at least one */
};

/* A key of [network], [limits], [run], [audit] or [gate], kept as text. */
struct profile_setting {
	const char *section; /* static */
	char *key;
	char *value;
	unsigned line;
};

struct profile {
	const struct profile_file *file;
	char *name;
	unsigned line;
	char *description; /* or NULL */
	char **extends;    /* names, in order; NULL for none */
	unsigned extends_line;
	bool nocase;
	GArray *rules;     /* struct rule; their @file and @profile are borrowed from here */
	GArray *settings;  /* struct profile_setting */
};

struct profile_file *profile_file_parse(const char *text, size_t len, const char *path, GError **error);
void profile_file_free(void *file);

/* profile_file_find() - by name; NULL when there is none. */
struct profile *profile_file_find(const struct profile_file *f, const char *name);

/* profile_file_leaf() - the one to use when only the file was named: the last that no other in it extends, else the last. */
struct profile *profile_file_leaf(const struct profile_file *f);

/* profile_extends() - does @p name @name in its "extends"? */
bool profile_extends(const struct profile *p, const char *name);

/* profile_setting_known() - the static name of @section, when it has settings and @key is one of them; else NULL. */
const char *profile_setting_known(const char *section, const char *key);
