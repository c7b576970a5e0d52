/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * control_files - which paths steer something outside of the program itself
 *
 * Names are compared without regard to case, because some file systems do so. A directory's name counts for all below it.
 */

#include <stdbool.h>

enum control_kind {
	CONTROL_NONE,
	CONTROL_GIT_CODE, /* git runs it or is told by it what to run */
	CONTROL_GIT,
	CONTROL_AGENT,    /* what coding agents and editors obey */
	CONTROL_CI,
	CONTROL_DEPLOY,
	CONTROL_PERMISSION,
	CONTROL_NETWORK,
	CONTROL_BILLING,
	CONTROL_SHELL,    /* shells and tools run it or read keys from it */
	CONTROL_POLICY,   /* sbxfs itself */
};

/* control_kind_of() - of a path relative to the workspace. */
enum control_kind control_kind_of(const char *path);
/* control_kind_rule() - "ci", for a finding's rule; control_kind_text() - the sentence. */
const char *control_kind_rule(enum control_kind kind);
const char *control_kind_text(enum control_kind kind);
