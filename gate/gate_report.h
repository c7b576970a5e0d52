/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * gate_report - a result as text, as the JSON object "sbxfs.gate/1", and as SARIF 2.1.0
 *
 * JSON: {"schema", "sandbox", "workspace", "digest", "verdict", "checks": [...], "findings": [...], "unlisted", "test"}; a finding has "check",
 * "level", "path", "line", "rule", "message", "excerpt", "fingerprint". What does not apply is null; a path that is not UTF-8
 * also comes as base64 in "path_b64". "unlisted" counts findings beyond what one check lists of a level.
 *
 * SARIF is the OASIS standard's: refuse is an error, review a warning, pass is informational.
 */

#include "gate/gate.h"

typedef void (*gate_write)(const char *data, size_t size, void *user);

struct gate_report_names {
	const char *sandbox;
	const char *workspace; /* absolute */
	const char *digest;    /* of the change list */
};

/* gate_report_text() - a line for each finding; that of GATE_PASS only when @all. */
void gate_report_text(const struct gate_result *r, bool all, gate_write write, void *user);
/* gate_report_json() - one line. */
void gate_report_json(const struct gate_result *r, const struct gate_report_names *names, gate_write write, void *user);
void gate_report_sarif(const struct gate_result *r, const struct gate_report_names *names, gate_write write, void *user);
/* gate_report_counts() - "2 refused, 1 to review"; "nothing found". Caller frees. */
char *gate_report_counts(const struct gate_result *r);
