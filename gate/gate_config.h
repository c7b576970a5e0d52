/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * gate_config - the [gate] section of the policy, understood
 *
 *   checks        all (default), none, or names; "personal" is no part of "all": it has to be named ("all, personal")
 *   allow         patterns: a change elsewhere is refused
 *   review        patterns: a change there wants a review
 *   test          the test command, for sh -c, in the view
 *   test_time     how long it may take: 90, 15m (default), 2h
 *   max_files, max_lines, max_deleted, max_size, max_share
 *                 changed files (400), added and removed lines (20000), deleted files (50), bytes of one file (16M), percent of the
 *                 workspace's files that are modified or deleted (50, counted from 20 files on); more wants a review
 *   secret_paths  patterns: no secrets are looked for there
 *   secret_words  a found value that contains one of these is none
 *   baseline      absolute path of a file outside of the workspace with fingerprints of known findings, one a line; "#" comments
 *
 * Trust. The workspace's own layer (.sbxfs.ini) can be written by the agent's earlier work, so of it only checks and review count, which
 * tighten. Of a managed layer the user's can't loosen anything: checks and review add up, allow must be true in both, the smaller
 * limit holds, its test command wins, and where the managed layer wants secrets to be looked for, only it can excuse some.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "gate/gate.h"

struct policy;

struct gate_limits {
	uint64_t files;
	uint64_t lines;
	uint64_t deleted;
	uint64_t size;
	uint64_t share; /* percent */
};

struct gate_config {
	unsigned checks;         /* bits 1 << GATE_... */
	bool tests_named;        /* "tests" was asked for by name: not having any is worth a review */
	GPtrArray *allow[2];     /* struct pattern, of the managed and the user layer; NULL = everything */
	GPtrArray *review;       /* struct pattern */
	GPtrArray *secret_paths; /* struct pattern */
	GPtrArray *secret_words; /* strings, lower case */
	GHashTable *baseline;    /* fingerprints; NULL = none */
	char *test;              /* or NULL */
	unsigned test_seconds;
	struct gate_limits limits;
};

/* gate_config_new() - @workspace: a baseline file may not lie in it. NULL with POLICY_ERROR. */
struct gate_config *gate_config_new(const struct policy *p, const char *workspace, GError **error);
void gate_config_free(struct gate_config *c);
typedef struct gate_config gate_config_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(gate_config_t, gate_config_free)

/* gate_config_set_checks() - as the command line says it; @list as in the policy. False with POLICY_ERROR. */
bool gate_config_set_checks(struct gate_config *c, const char *list, GError **error);

/*
 * gate_patterns_match() - one of @patterns (struct pattern) matches the path or a directory above it. What the engine can't decide
 * counts as @unsure.
 */
bool gate_patterns_match(GPtrArray *patterns, const char *path, bool is_dir, bool unsure);
