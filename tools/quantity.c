/* SPDX-License-Identifier: MIT */
#include "tools/quantity.h"

#include <inttypes.h>

/* Of each kind the smallest first. */
static const struct {
	enum quantity kind;
	char suffix;
	uint64_t factor;
} suffixes[] = {
	{ QUANTITY_BYTES, '\0', 1 },
	{ QUANTITY_BYTES, 'K', UINT64_C(1) << 10 },
	{ QUANTITY_BYTES, 'M', UINT64_C(1) << 20 },
	{ QUANTITY_BYTES, 'G', UINT64_C(1) << 30 },
	{ QUANTITY_BYTES, 'T', UINT64_C(1) << 40 },
	{ QUANTITY_NUMBER, '\0', 1 },
	{ QUANTITY_TIME, '\0', 1000 },
	{ QUANTITY_TIME, 's', 1000 },
	{ QUANTITY_TIME, 'm', 60 * 1000 },
	{ QUANTITY_TIME, 'h', 60 * 60 * 1000 },
	{ QUANTITY_TIME, 'd', 24 * 60 * 60 * 1000 },
};

bool quantity_parse(enum quantity kind, const char *text, uint64_t *ret)
{
	char *end;
	uint64_t n;

	if (!g_ascii_isdigit(*text))
		return false;
	n = g_ascii_strtoull(text, &end, 10);
	for (unsigned i = 0; i < G_N_ELEMENTS(suffixes); i++) {
		if (suffixes[i].kind != kind || *end != suffixes[i].suffix || (*end && end[1]))
			continue;
		if (n == 0 || n > (uint64_t)INT64_MAX / suffixes[i].factor)
			return false;
		*ret = n * suffixes[i].factor;
		return true;
	}
	return false;
}

char *quantity_text(enum quantity kind, uint64_t value)
{
	uint64_t n = value;
	char suffix = '\0';

	for (unsigned i = 0; i < G_N_ELEMENTS(suffixes); i++) {
		if (suffixes[i].kind != kind || value % suffixes[i].factor)
			continue;
		n = value / suffixes[i].factor;
		suffix = suffixes[i].suffix;
	}
	return g_strdup_printf("%" PRIu64 "%.1s", n, suffix ? (char[]){ suffix, '\0' } : "");
}
