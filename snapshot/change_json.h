/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * change_json - a change list as the JSON object "sbxfs.diff/1"
 *
 *   {"schema", "sandbox", "workspace", "from", "to", "digest", "changes": [...], "summary": {...}}
 *
 * A change has "path", "status" (A M D R T P X), "old" and "new" (absent when that side is), "binary", "added" and
 * "removed" (lines), and for a rename "from_path" and "similarity". A side has "type", "mode" (octal, type included),
 * "uid", "gid", "size", "sha256" of a file, "target" of a symlink, and "xattrs" (name -> base64) when they differ. The
 * root is ".". What is not UTF-8 is shown with replacement characters and also given as base64 of its bytes:
 * "path_b64", "from_path_b64", "target_b64".
 *
 * The object is written change by change, so a list of any length takes little memory.
 */

#include "snapshot/diff.h"

/* What is said of the whole list. */
struct change_json_names {
	const char *sandbox;
	const char *workspace;
	const char *from;
	const char *to;
	const char *digest; /* changes_digest() of the plain list, see snapshot/similar.h */
};

/* change_json_write() - one line. The list has its hashes (no change_options.no_hash), else "sha256" is left out. */
int change_json_write(GPtrArray *changes, struct tree *from, struct tree *to, const struct change_json_names *names,
		      diff_write write, void *user, GError **error);
