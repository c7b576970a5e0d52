/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * secret_rules - the key formats of providers, as a table
 *
 * Each row's pattern begins with two or more literal characters, which is what the scanner looks for. What stands there was taken from
 * the providers' own descriptions of their keys. To add one: a row, and a generated example in test-gate-secrets.c.
 */

#include <stddef.h>

#define SECRET_ANYWHERE 1 /* the prefix says enough: a letter or digit may stand in front of it */
#define SECRET_NOT_IN_BLOB 2 /* the prefix is made of base64 digits: none inside of a long run of them */

struct secret_rule {
	const char *id;
	const char *what;    /* "a GitHub token" */
	const char *pattern; /* a token_pattern */
	const char *back;    /* one that has to match in front of it, or NULL */
	double entropy;      /* bits per character that the part behind the prefix has at least; 0 = the default */
	unsigned flags;
};

/* secret_rules() - ended by a NULL id. */
const struct secret_rule *secret_rules(void);
