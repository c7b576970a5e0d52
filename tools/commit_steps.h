/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * commit_steps - what a commit into the workspace does once it is known what to commit, for `sbxfs commit` and `sbxfs review`
 *
 * In this order: commit_steps_gate(), commit_steps_check(), a human's yes, commit_steps_write(). The lock of commits is held all the while
 * (attached_lock_commits()), and @to is a pinned state, so what was gated is what is written.
 */

#include <glib.h>
#include <stdbool.h>

#include "gate/gate.h"
#include "snapshot/apply.h"

struct attached;

struct commit_steps {
	/* Borrowed */
	struct attached *attached;
	struct tree *from, *to;
	int64_t epoch; /* of @to */
	GPtrArray *changes;
	enum text_merge merge;
	const char *reason; /* for missing or failing tests, or NULL */
	/* Results */
	struct gate_result *gate;
	GPtrArray *conflicts; /* struct conflict; NULL = none */
	struct apply_result result;
};
/* commit_steps_clear() - the results. */
void commit_steps_clear(struct commit_steps *c);

/* commit_steps_gate() - its verdict is for the caller: gating_check(). */
bool commit_steps_gate(struct commit_steps *c, GError **error);
/* commit_steps_check() - false with EXIT_CONFLICT and ->conflicts when the workspace changed. */
bool commit_steps_check(struct commit_steps *c, GError **error);
/* commit_steps_write() - all or nothing, and the view is told; false as above, too. */
bool commit_steps_write(struct commit_steps *c, GError **error);
/* commit_steps_print() - the notes, and the line that says what was written. */
void commit_steps_print(const struct commit_steps *c);
