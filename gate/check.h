/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * check - what the checks share: one run of the gate, and how to report a finding
 *
 * For each change the checks are asked one after the other, so that what one has read (the added lines) the next need not read again;
 * after the last change each may sum up. A check keeps what it must remember between changes in ->state[].
 */

#include "gate/added.h"
#include "gate/gate.h"
#include "gate/gate_config.h"

struct gate {
	const struct gate_job *job;
	const struct gate_config *config;
	struct gate_result *result;
	const struct change *change; /* in hand */
	struct added *added;         /* of ->change, see gate_added() */
	void *state[GATE_CHECKS];
	unsigned listed[GATE_CHECKS][GATE_LEVELS]; /* findings in the result */
};

struct check {
	const char *name;
	/* Each may be NULL. 0 or negative with @error. */
	int (*change)(struct gate *g, const struct change *c, GError **error);
	int (*finish)(struct gate *g, GError **error);
	void (*clear)(struct gate *g);
};

extern const struct check check_scope, check_secrets, check_personal, check_manifests, check_control, check_modes, check_size,
	check_tests;

/* gate_added() - the lines of the change in hand that are new; borrowed. NULL with @error. */
const struct added *gate_added(struct gate *g, GError **error);

/* gate_report() - @path "" is the root, NULL the list as a whole; @format gives the message. */
void gate_report(struct gate *g, enum gate_check check, enum gate_level level, const char *path, uint64_t line, const char *rule,
		 const char *format, ...) G_GNUC_PRINTF(7, 8);
/* gate_report_finding() - takes @f, whose strings need not be UTF-8. */
void gate_report_finding(struct gate *g, struct gate_finding *f);
void gate_finding_free(void *finding);

/* gate_is_file() - a regular file that the change leaves there. */
bool gate_is_file(const struct change *c);

struct scan;
/* gate_scan_file() - feeds a regular file to @scan, from its beginning to its end or until @scan has had enough. */
int gate_scan_file(struct scan *scan, struct tree *t, const struct entry *e);
