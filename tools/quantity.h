/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * quantity - amounts as people write them: 512, 512M, 4G (of 1024), 90s, 30m, 2h, 7d
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum quantity { QUANTITY_BYTES, QUANTITY_NUMBER, QUANTITY_TIME };

/* quantity_parse() - bytes, a number or milliseconds (seconds without a unit). False for what is no amount, 0 among it. */
bool quantity_parse(enum quantity kind, const char *text, uint64_t *ret);
/* quantity_text() - the shortest way to write it that is exact. Caller frees. */
char *quantity_text(enum quantity kind, uint64_t value);
