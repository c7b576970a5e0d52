/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * excerpt - the beginning and the end of a stream of bytes, in bounded memory
 */

#include <glib.h>
#include <stddef.h>

struct excerpt;

/* excerpt_new() - that keeps @size bytes: a half for the beginning, a half for the end. */
struct excerpt *excerpt_new(size_t size);
void excerpt_add(struct excerpt *e, const char *data, size_t size);
/* excerpt_text() - valid UTF-8, with a line that says how much was left out. Caller frees. */
char *excerpt_text(const struct excerpt *e);
void excerpt_free(struct excerpt *e);
