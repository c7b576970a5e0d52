/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * regex_literal - text that a regular expression cannot match without
 *
 * Reads an expression that PCRE2 has accepted (without PCRE2_EXTENDED) just well enough to find the longest run of plain characters
 * outside of groups, classes and quantifiers, and gives up (with "") on whatever it does not know: alternatives at the top,
 * inline options, verbs, escapes with arguments. Giving up costs speed only: the expression is then tried on every path.
 */

/* Caller frees. Valid UTF-8 or "". */
char *regex_literal(const char *regex);
