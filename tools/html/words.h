/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * words - which words differ between the old and the new version of a line
 *
 * A word is a run of letters, digits, "_" and bytes of other scripts, a run of blanks, or one other character. What differs is
 * asked of the matcher for lines (snapshot/lines.h), with one word a line.
 */

#include <glib.h>

/* Bytes from @start to before @end. */
struct word_span {
	size_t start, end;
};

/*
 * words_compare() - sets both arrays (of struct word_span) to what differs, in order, no two touching. Both stay empty when the lines
 * have so little in common that everything would be marked.
 */
void words_compare(const char *before, size_t before_size, const char *after, size_t after_size, GArray *ret_before, GArray *ret_after);

/* words_likeness() - are they versions of one line? Percent of the longer one that both begin or end with, indentation aside. */
unsigned words_likeness(const char *before, size_t before_size, const char *after, size_t after_size);
