/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * setting - the values that several settings of a policy are made of
 */

#include <stdbool.h>
#include <stdint.h>

/* The longest time and the highest number that make sense to anybody: a year of seconds, and what fits in 32 bits. */
#define SETTING_SECONDS_MAX (366 * 24 * 3600)
#define SETTING_COUNT_MAX UINT32_MAX

/* setting_seconds() - "90", "90s", "15m", "2h", "1d": from one second on. */
bool setting_seconds(const char *text, uint64_t *ret);
/* setting_count() - a number from 1 on. */
bool setting_count(const char *text, uint64_t *ret);
