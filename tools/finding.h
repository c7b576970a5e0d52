/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * finding - what an examination found: good, worth knowing, lacking or damaged, and what to do about it
 */

#include <glib.h>
#include <stdbool.h>

enum finding_level { FINDING_OK, FINDING_NOTE, FINDING_LACKING, FINDING_DAMAGED };

struct finding {
	enum finding_level level;
	char *check;   /* what was looked at: "fuse", "hard-links", ... */
	char *sandbox; /* NULL = the system */
	char *message;
	char *remedy; /* or NULL */
};

/* findings_new() - an array of struct finding that frees itself. */
GPtrArray *findings_new(void);
/* finding_add() - strings are copied; @message is formatted. */
void finding_add(GPtrArray *all, enum finding_level level, const char *check, const char *sandbox, const char *remedy,
		 const char *format, ...) G_GNUC_PRINTF(6, 7);
/* findings_are_bad() - one is lacking or damaged. */
bool findings_are_bad(const GPtrArray *all);
void findings_print(const GPtrArray *all);
/* findings_json() - aa{sv}, floating. */
GVariant *findings_json(const GPtrArray *all);
