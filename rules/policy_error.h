/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * policy_error - the errors of everything in rules/
 *
 * A message is one line for a person: where (file:line when there is one), what is wrong with which thing, and what to do about it.
 * Whoever loads a policy and gets one of these does not mount: there is no such thing as half a policy.
 */

#include <glib.h>

#define POLICY_ERROR (policy_error_quark())
GQuark policy_error_quark(void);

enum policy_error {
	POLICY_ERROR_SYNTAX,     /* not an INI file as we read them: lines, sections, lengths */
	POLICY_ERROR_INVALID,    /* an unknown section or key, a bad value, two of what may be there once */
	POLICY_ERROR_PATTERN,    /* a glob or regular expression that does not compile */
	POLICY_ERROR_NOT_FOUND,  /* no such profile or file */
	POLICY_ERROR_UNREADABLE, /* a file or directory that is there and cannot be read */
};
