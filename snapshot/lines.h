/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * lines - what differs between two byte strings; with git_commit.c the home of libgit2
 *
 * Bytes are bytes: no repository, attribute, filter or configuration is asked. NULL is an absent side.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef void (*lines_write)(const char *data, size_t size, void *user);

/* lines_hunks() - unified hunks with three lines of context, as in a patch after its +++ line. */
int lines_hunks(GBytes *before, GBytes *after, lines_write write, void *user, GError **error);

struct lines_hunk {
	uint64_t old_start, old_lines, new_start, new_lines;
	const char *heading; /* the line above it that git would show, such as a function's first; not terminated */
	size_t heading_size;
};

struct lines_line {
	char origin;		    /* ' ', '-' or '+' */
	uint64_t old_line, new_line; /* from 1; 0 = it is not on that side */
	const char *text;	    /* points into the bytes it is from; the line break belongs to it */
	size_t size;
};

struct lines_visitor {
	void (*hunk)(const struct lines_hunk *hunk, void *user);
	void (*line)(const struct lines_line *line, void *user);
};

/* lines_each() - the same hunks for who shows them in another form. */
int lines_each(GBytes *before, GBytes *after, const struct lines_visitor *visitor, void *user, GError **error);
int lines_count(GBytes *before, GBytes *after, uint64_t *ret_added, uint64_t *ret_removed, GError **error);

/* Lines @old_at.. give way to lines @new_at.., from 0. Either count may be 0: lines are only added, or only removed. */
struct lines_edit {
	guint old_at, old_count;
	guint new_at, new_count;
};
/* lines_edits() - what the hunks above are about, without context: in order, with equal lines between any two; array of struct lines_edit. */
int lines_edits(GBytes *before, GBytes *after, GArray **ret, GError **error);

/*
 * lines_merge() - three texts as one. Where both sides changed the same lines, @ret_clean is false and both versions are there, between
 * markers with @our_name and @their_name. 0, or -EIO.
 */
int lines_merge(GBytes *base, GBytes *ours, GBytes *theirs, const char *our_name, const char *their_name, bool *ret_clean, GBytes **ret);

/* One direction of a binary difference: what git names "literal" or "delta", compressed by zlib. */
struct lines_binary {
	bool delta;
	const void *data; /* deflated; borrowed for the call */
	size_t size;
	size_t inflated_size;
};

/* lines_binary() - @fn gets the way from @before to @after, then the way back. */
typedef void (*lines_binary_fn)(const struct lines_binary *half, void *user);
int lines_binary(GBytes *before, GBytes *after, lines_binary_fn fn, void *user, GError **error);
