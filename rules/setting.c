/* SPDX-License-Identifier: MIT */
#include "rules/setting.h"

#include <glib.h>

bool setting_seconds(const char *text, uint64_t *ret)
{
	static const struct {
		char unit;
		uint64_t seconds;
	} units[] = { { '\0', 1 }, { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 24 * 3600 } };
	char *end;
	uint64_t n = g_ascii_strtoull(text, &end, 10);

	if (!g_ascii_isdigit(*text) || n == 0 || n > SETTING_SECONDS_MAX)
		return false;
	for (unsigned i = 0; i < G_N_ELEMENTS(units); i++) {
		if (*end != units[i].unit || (*end && end[1]) || n * units[i].seconds > SETTING_SECONDS_MAX)
			continue;
		*ret = n * units[i].seconds;
		return true;
	}
	return false;
}

bool setting_count(const char *text, uint64_t *ret)
{
	guint64 n;

	if (!g_ascii_string_to_unsigned(text, 10, 1, SETTING_COUNT_MAX, &n, NULL))
		return false;
	*ret = n;
	return true;
}
