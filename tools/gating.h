/* SPDX-License-Identifier: MIT */
#pragma once

/* gating - the gate as the commands call it: configured by the policy in force, its findings for a person */

#include <glib.h>
#include <stdbool.h>

#include "gate/gate.h"

struct attached;

struct gating {
	const char *checks; /* instead of the policy's; NULL */
	const char *test;   /* the same */
	const char *reason; /* for missing or failing tests, or NULL */
	bool only_read;     /* without the check that runs a command */
};

/* gating_run() - @ret is freed with gate_result_free(). */
bool gating_run(struct attached *a, struct tree *from, struct tree *to, GPtrArray *changes, const struct gating *gating,
		struct gate_result **ret, GError **error);

/*
 * gating_check() - does a commit have to stop? Prints findings on standard error. False with EXIT_DIFFERENCES for a refusal, and
 * with EXIT_REVIEW for what wants a review unless @reviewed.
 */
bool gating_check(const struct gate_result *r, bool reviewed, GError **error);
