/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * diff - a change list as git's patch format, as a table of statistics, or as names
 *
 * The patch applies with `git apply` to the tree it was made from: modes, type changes, symlinks, renames, binary
 * contents (base85), quoted names, files without a final newline. What git's format can't carry (empty directories,
 * owners, xattrs, special files) and paths that git refuses (such as .git/config) have no part in the patch: except for
 * directories a comment line, "# sbxfs: ...", which git apply skips, says so, also in front of a part that shows the
 * content, and the other formats show it. Contents of more than 32 MiB or a million lines, and edits of more than
 * 64 Ki lines, are treated as binary (snapshot/blob.h), so memory and time stay bounded.
 */

#include "snapshot/blob.h"
#include "snapshot/change.h"

struct lines_visitor;

typedef void (*diff_write)(const char *data, size_t size, void *user);

int diff_patch(GPtrArray *changes, struct tree *from, struct tree *to, diff_write write, void *user, GError **error);
int diff_stat(GPtrArray *changes, struct tree *from, struct tree *to, diff_write write, void *user, GError **error);
/* diff_name_status() - @nul: paths verbatim and NUL-terminated, as git's -z; else quoted as git quotes. */
int diff_name_status(GPtrArray *changes, bool nul, diff_write write, void *user, GError **error);
/* Both sides of a change as the patch shows them. Nothing at all when the content did not change. */
struct diff_content {
	struct blob before, after;
	bool text;  /* to be shown in lines */
	bool apart; /* of another type, or one side only: all of the old, then all of the new */
};

/* diff_content_open() - clear it also after a failure. */
int diff_content_open(const struct change *c, struct tree *from, struct tree *to, struct diff_content *ret, GError **error);
void diff_content_clear(struct diff_content *content);
/* diff_content_lines() - the hunks of a text (snapshot/lines.h); what the visitor gets points into @content. */
int diff_content_lines(const struct diff_content *content, const struct lines_visitor *visitor, void *user, GError **error);
/* diff_count_lines() - added and removed lines of one change; @ret_binary when it has none to count. */
int diff_count_lines(const struct change *c, struct tree *from, struct tree *to, uint64_t *ret_added,
		     uint64_t *ret_removed, bool *ret_binary, GError **error);
/* diff_quote_path() - as git quotes with core.quotePath, "." for the root; caller frees. */
char *diff_quote_path(const char *path);
/*
 * diff_describe() - what lines of text do not tell: "directory", "fifo", "mode 0644 -> 0600", "owner 0:0 -> 5:5",
 * "xattrs"...; NULL when there is nothing more. Caller frees.
 */
char *diff_describe(const struct change *c);
