/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * token_pattern - the shape of a token, such as "ghp_[A-Za-z0-9]{36,255}"
 *
 * A small part of regular expressions: characters that stand for themselves (the dot too), [classes] with ranges and ^, \ before a
 * character, and behind either of them {n}, {n,m}, {n,} or ?. Each element takes as much as it can and gives nothing back, so
 * a match takes one step per byte whatever the text is. "{n,}" ends at TOKEN_PATTERN_MAX bytes of its element.
 *
 * Patterns are the program's own: a wrong one is a bug and aborts.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_PATTERN_MAX 4096

struct token_pattern;

struct token_pattern *token_pattern_new(const char *text);
void token_pattern_free(struct token_pattern *p);

/* token_pattern_literal() - the characters that every match begins with. */
const char *token_pattern_literal(const struct token_pattern *p);

/* token_pattern_match() - the bytes at the beginning of @data that match, 0 for none. */
size_t token_pattern_match(const struct token_pattern *p, const uint8_t *data, size_t size);

/* token_pattern_match_back() - the same for the bytes in front of @end, element by element from the last. */
size_t token_pattern_match_back(const struct token_pattern *p, const uint8_t *data, size_t end);

/* token_pattern_goes_on() - could the last element of a match take @byte too, had it not enough? */
bool token_pattern_goes_on(const struct token_pattern *p, uint8_t byte);
