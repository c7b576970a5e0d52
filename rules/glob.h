/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * glob - the gitignore-like patterns of a policy, taken apart
 *
 * A glob is read once into components and elements; from these come
 *   - a regular expression (text only: compiling it is the business of pattern.c) that never backtracks from one star into
 *     another, so that no name, however made, takes more than about its length times the number of stars,
 *   - a shape, when plain string comparison gives the same answer (nearly all globs that people write),
 *   - a literal that every matching path contains, so that an index can pass over the rule.
 *
 * The language, on paths relative to the workspace:
 *   *  any characters but /        ?  one character but /       [a-z] [!a] [^a] [[:digit:]]  one character of a class, never /
 *   ** as a whole component: any number of directories, none too; at the end: everything below, not the directory itself
 *   \x the character x itself      / at the end: directories only
 *   / at the beginning or in the middle: the pattern starts at the workspace's root; else it matches a name at any depth
 * "/", "." and what matches every name ("**", "*", a star after a slash) match the root too, so they cover everything.
 * A character is a UTF-8 character, or one byte that is not part of any.
 *
 * Refused, because they would silently match nothing or not what was meant: an empty pattern, components "." and ".." and "//",
 * a leading "!" or "~/", an unclosed class, unbalanced braces (the list "*.{a,b}" is cut at its comma), a final lone backslash.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

enum glob_shape {
	GLOB_REGEX,    /* none of the below */
	GLOB_ALL,      /* every path, and the root */
	GLOB_NAME,     /* the last component is @first */
	GLOB_AFFIX,    /* the last component begins with @first and ends with @second, which do not overlap */
	GLOB_CONTAINS, /* the last component contains @first */
	GLOB_PATH,     /* the path is @first */
	GLOB_BELOW,    /* the path begins with @first (which ends in a slash) */
};

struct glob {
	enum glob_shape shape;
	bool dir_only;     /* matches directories only */
	bool any_depth;    /* not tied to the root */
	bool in_name;      /* decided by the last component alone; @literal is in that, then */
	char *first;       /* of the shape, or NULL */
	char *second;
	char *regex;       /* for the whole path, or for the last component (@in_name); "" for GLOB_ALL */
	char *literal;     /* contained in each path that matches; "" = none known */
	GPtrArray *prefix; /* of a tied pattern: each component's plain text, or "" for one with wildcards, up to the first "**" */
	bool prefix_open;  /* a "**" follows the prefix */
};

/* glob_new() - takes @text apart. NULL and POLICY_ERROR_PATTERN without a place (the caller knows the file and line). */
struct glob *glob_new(const char *text, GError **error);
void glob_free(struct glob *g);

/* glob_shape_matches() - compares by the shape, byte by byte; not for GLOB_REGEX. @dir_only is the caller's to check. */
bool glob_shape_matches(const struct glob *g, const char *path, size_t len, const char *name, bool nocase_ascii);

enum glob_below {
	GLOB_BELOW_NEVER,
	GLOB_BELOW_MAYBE,
	GLOB_BELOW_NAMED, /* it names @path, without wildcards, on its way to something below */
};

/*
 * glob_match_below() - can it match some path below the directory @path? GLOB_BELOW_NEVER is certain. A glob that matches @path
 * itself or something above it is no reason: that is decided already.
 */
enum glob_below glob_match_below(const struct glob *g, const char *path, size_t len, bool nocase);
