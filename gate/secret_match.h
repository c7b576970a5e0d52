/* SPDX-License-Identifier: MIT */
#pragma once

/* secret_match - secrets that have a form but no provider: private keys, signed tokens, passwords in URLs and headers */

#include "gate/scan.h"

struct secret_match {
	const char *rule;
	const char *what;
	size_t start, end;       /* the secret */
	size_t shown, shown_end; /* what an excerpt may show of the text */
	const char *joint;       /* between that and the stars, or NULL */
	bool assigned;           /* found by its name */
};

/* A literal, and what to ask where it stands. */
struct secret_anchor {
	const char *literal;
	bool nocase;
	bool (*match)(const struct scan_view *v, size_t at, struct secret_match *ret);
};

/* secret_match_anchors() - ended by a NULL literal. */
const struct secret_anchor *secret_match_anchors(void);
