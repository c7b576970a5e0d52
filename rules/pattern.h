/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * pattern - one compiled pattern of a rule, and the one home of PCRE2
 *
 * A text that begins with "re:" is a Perl-compatible regular expression, searched (not tied to an end) in the whole path relative to
 * the workspace; any other text is a glob (rules/glob.h). Both run over characters: paths are bytes, so before a regular
 * expression runs, each byte that belongs to no UTF-8 character is replaced by a private character of its own (U+10FF00 + byte),
 * in the path and in the pattern alike. So "?" and "." match an accented letter as one character, match a stray byte as well, and
 * no name can be made that slips through because it is not UTF-8. "." and [^x] match a newline, "$" is the end of the path only,
 * \w \d [:alpha:] mean Unicode. With nocase, letters compare by Unicode's simple case folding ("ß" is not "ss").
 *
 * A pattern does not change after it was made, so any number of threads may match with it; scratch memory is kept per thread.
 *
 * Matching a regular expression can fail (the match limit, memory). That is an answer of its own, never "no": see PATTERN_UNSURE.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#define PATTERN_MAX 16384 /* bytes of one pattern */

enum pattern_result {
	PATTERN_NO,
	PATTERN_YES,
	PATTERN_UNSURE, /* the engine gave up: count it as a match where that closes, as none where a match would open */
};

/* A path made ready, so that many patterns can be tried on it. A plain value on the caller's stack; one thread at a time. */
struct pattern_subject {
	const char *path; /* borrowed, not necessarily terminated */
	size_t len;
	const char *name; /* the last component, in @path */
	bool is_dir;
	bool is_ascii;
	char *text; /* @path with stray bytes replaced; NULL until needed, @path where nothing is to replace */
	size_t text_len;
};

struct pattern;

void pattern_subject_init(struct pattern_subject *s, const char *path, size_t len, bool is_dir);
void pattern_subject_clear(struct pattern_subject *s);

/* pattern_new() - compiles @text. NULL and POLICY_ERROR_PATTERN that quotes @text; the caller puts file and line before it. */
struct pattern *pattern_new(const char *text, bool nocase, GError **error);
struct pattern *pattern_ref(struct pattern *p);
void pattern_unref(struct pattern *p);

/* pattern_text() - as it was written. */
const char *pattern_text(const struct pattern *p);
bool pattern_is_nocase(const struct pattern *p);

enum pattern_result pattern_match(const struct pattern *p, struct pattern_subject *s);

/* pattern_match_below() - can some path below the directory @path match? See glob_match_below(); an expression always may. */
enum pattern_below {
	PATTERN_BELOW_NEVER,
	PATTERN_BELOW_MAYBE,
	PATTERN_BELOW_NAMED,
};
enum pattern_below pattern_match_below(const struct pattern *p, const char *path, size_t len);

/*
 * pattern_literal() - text that every path which matches contains, ASCII letters compared without case; "" when none is known.
 * @ret_in_name: it is contained in the last component.
 */
const char *pattern_literal(const struct pattern *p, bool *ret_in_name);
