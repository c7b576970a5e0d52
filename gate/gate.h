/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * gate - what a change list would bring into the workspace that a human has to look at, or that must not get there
 *
 * Each check goes over the changes and leaves findings; the verdict is the highest level among them. Only the configuration
 * (gate/gate_config.h), which comes from the trusted policy, can switch a check off or excuse something: nothing that lies in the
 * trees is asked for its opinion, no comment, ignore file, attribute or configuration. What is in the trees is hostile input: every
 * reader has a bound on memory and takes time in proportion to the bytes it reads, and what can't be read is an error, never a pass.
 *
 * The gate reads the two trees and, for the check "tests", runs a command. It does not print.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "snapshot/change.h"

struct gate_config;

enum gate_level {
	GATE_PASS,   /* for the record */
	GATE_REVIEW, /* a human has to say yes */
	GATE_REFUSE,
};
#define GATE_LEVELS 3

enum gate_check {
	GATE_SCOPE,     /* outside of the allowed paths; paths that always want a review */
	GATE_SECRETS,   /* keys and passwords in added lines, names, link targets and xattrs */
	GATE_PERSONAL,  /* addresses, phone and card numbers in added lines */
	GATE_MANIFESTS, /* dependencies and install scripts of packages, lock files */
	GATE_CONTROL,   /* files that steer CI, deployment, permissions, network, billing, agents and git */
	GATE_MODES,     /* setuid, new executables, devices, links that leave the workspace */
	GATE_SIZE,      /* files, lines, deletions, share of the workspace */
	GATE_TESTS,     /* the test command's result */
};
#define GATE_CHECKS 8

struct gate_finding {
	enum gate_check check;
	enum gate_level level;
	char *path;        /* in the new tree, or of what was deleted; NULL = the change list as a whole */
	uint64_t line;     /* from 1; 0 = none */
	char *rule;        /* "secrets/aws-access-key": stable, for programs */
	char *message;     /* a sentence, valid UTF-8 */
	char *excerpt;     /* with secrets blotted out, valid UTF-8; NULL = none */
	char *fingerprint; /* names the finding in a baseline file; NULL = it can't stand there */
};

/* The test command's run. */
struct gate_test {
	char *command;    /* NULL = there was none */
	bool ran;         /* it could be started and came to an end */
	int status;       /* exit status, 128+N for a signal */
	int64_t duration; /* ns */
	char *reason;     /* the human's, or NULL */
};

struct gate_result {
	enum gate_level verdict;
	unsigned checks;     /* those that ran: bits 1 << GATE_... */
	GPtrArray *findings; /* struct gate_finding: refusals first, then by path and line */
	uint64_t unlisted;   /* findings beyond the limits, which count for the verdict all the same */
	struct gate_test test;
};

struct gate_job {
	struct tree *from, *to;
	GPtrArray *changes;  /* from @from to @to */
	const struct gate_config *config;
	const char *view;    /* where @to can be seen, for the test command; NULL = nowhere */
	const char *reason;  /* for missing or failing tests; NULL = none was given */
};

/* gate_run() - all configured checks. The caller frees @ret with gate_result_free(). */
bool gate_run(const struct gate_job *job, struct gate_result **ret, GError **error);
void gate_result_free(struct gate_result *r);
typedef struct gate_result gate_result_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(gate_result_t, gate_result_free)

const char *gate_level_name(enum gate_level level);
const char *gate_check_name(enum gate_check check);
/* gate_check_from_name() - false for an unknown name. */
bool gate_check_from_name(const char *name, enum gate_check *ret);
