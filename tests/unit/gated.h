/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * gated - a configuration of the gate, and the gate run over the changes of a layered workspace
 *
 * For tests only: every failure aborts the test. Settings are lines of a [gate] section.
 */

#include "gate/gate.h"
#include "gate/gate_config.h"
#include "layered.h"

struct policy;

/* fake_key() - of a GitHub token's form, put together here. Caller frees. */
char *fake_key(unsigned seed);

struct policy *policy_of(const char *settings);
struct gate_config *config_of(const char *settings);
/* layered_config() - of three layers; "" = that one has nothing to say. */
struct gate_config *layered_config(const char *managed, const char *user, const char *workspace);

/* run_with() - the whole sandbox against its workspace. @view and @reason as in struct gate_job. */
struct gate_result *run_with(struct layered *l, const char *settings, const char *view, const char *reason);
/* findings_text() - "refuse secrets/github-token a:3\n..."; caller frees. expect() - that it is @want. */
char *findings_text(const struct gate_result *r);
void expect(struct layered *l, const char *settings, const char *want);
