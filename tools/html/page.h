/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * page - a change list with the gate's findings as one web page, for a human who has to decide
 *
 * One file that needs nothing else: style and script (page.css, page.js) are in it, and its content security policy lets no other style or
 * script run and nothing be loaded. Without the script everything is there to read; the script adds the keyboard, the filter
 * and the marks of what was read. The same changes give the same page.
 *
 * The page is written as it comes, file by file, so a list of any length takes no more memory than its largest content; the list itself
 * is never cut, deletions come first. Contents come by the same way as those of a patch (snapshot/diff.h).
 */

#include "gate/gate.h"
#include "snapshot/diff.h"

struct html_page {
	const char *sandbox;
	const char *workspace;
	const char *from; /* as a person calls it */
	const char *to;
	const char *digest;
	GPtrArray *changes;
	struct tree *from_tree, *to_tree;
	const struct gate_result *gate;
};

int html_page_write(const struct html_page *page, diff_write write, void *user, GError **error);
