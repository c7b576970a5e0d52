/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * json_strings - the strings of a JSON text, each with the keys that lead to it
 *
 * For hostile text: not recursive, nesting up to JSON_STRINGS_DEPTH, no tree is built. It is strict where programs differ in what they
 * would read (text that is no JSON is refused) and takes escapes apart, so no key can be written in a way that hides it. Numbers and
 * literals are passed over.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_STRINGS_DEPTH 64

/* @keys of the objects around, outermost first, "" for an array; false ends the walk. */
typedef bool (*json_string_fn)(const char *const *keys, unsigned depth, const char *value, uint64_t line, void *user);

/* json_strings() - false when the text is no JSON, or @fn ended it. */
bool json_strings(const char *text, size_t size, json_string_fn fn, void *user);
