/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * rows - a changed content as rows of the page: the old lines on the left, the new ones on the right
 *
 * Lines that were deleted and added at one place are put beside each other where they are versions of one line, and then the words that
 * differ are marked (tools/html/words.h). On a narrow screen the stylesheet puts the same elements below each other. A finding of the
 * gate comes below its line, or where its line would be.
 *
 * Everything is shown, but only so many lines of a file and of a page get elements of their own (ROWS_...): the others are plain text
 * with "+" and "-" in front, which costs the browser next to nothing. Ids: fN for a file, gN for a finding, both from 1.
 */

#include <glib.h>
#include <stdbool.h>

#include "gate/gate.h"
#include "snapshot/diff.h"

#define ROWS_FILE_MAX 3000
#define ROWS_PAGE_MAX 60000

struct rows {
	diff_write write; /* where the page goes */
	void *user;
	GString *out; /* the page's next bytes, not written yet */
	uint64_t used; /* rows of the page so far */
};

/* A finding with its number on the page. */
struct rows_finding {
	const struct gate_finding *finding;
	guint number;
};

/* rows_flush() - hands on what has gathered in ->out. */
void rows_flush(struct rows *r);
/* rows_content() - @findings: of this file by line (struct rows_finding), those without a line first. */
int rows_content(struct rows *r, const struct diff_content *content, GArray *findings, GError **error);
/* rows_finding() - one finding; with @place false without path and line: they are at hand. */
void rows_finding(struct rows *r, const struct rows_finding *f, bool place);
