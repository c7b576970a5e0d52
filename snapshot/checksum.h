/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * checksum - FNV-1a, 64 bits, as its authors published it: tells torn and stale records, not forged ones
 */

#include <stddef.h>
#include <stdint.h>

#define CHECKSUM_START UINT64_C(0xcbf29ce484222325)

/* checksum_add() - @sum, or CHECKSUM_START, and @size bytes more. */
static inline uint64_t checksum_add(uint64_t sum, const void *data, size_t size)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ p[i]) * UINT64_C(0x100000001b3);
	return sum;
}
