/* SPDX-License-Identifier: MIT */
#include "rules/host_name.h"

#include <stdbool.h>
#include <string.h>

#define LABEL_MAX 63

static bool is_label(const char *label, size_t len)
{
	if (len == 0 || len > LABEL_MAX || label[0] == '-' || label[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!g_ascii_islower(label[i]) && !g_ascii_isdigit(label[i]) && label[i] != '-' && label[i] != '_')
			return false;
	return true;
}

/* As inet_aton(3) and the URL standard see it: digits, or 0x and hexadecimal digits. */
static bool is_number(const char *label)
{
	if (g_str_has_prefix(label, "0x"))
		return strspn(label + 2, "0123456789abcdef") == strlen(label + 2);
	return strspn(label, "0123456789") == strlen(label);
}

static bool is_valid(const char *name)
{
	const char *last = name;

	for (const char *label = name, *end;; label = end + 1) {
		end = strchrnul(label, '.');
		if (!is_label(label, (size_t)(end - label)))
			return false;
		last = label;
		if (!*end)
			break;
	}
	return !is_number(last);
}

char *host_name_new(const char *text)
{
	g_autofree char *ascii = NULL;
	g_autofree char *name = NULL;
	size_t len;

	if (!*text || strlen(text) > 4 * HOST_NAME_BYTES || !g_utf8_validate(text, -1, NULL))
		return NULL;
	ascii = g_hostname_to_ascii(text);
	if (!ascii)
		return NULL;
	name = g_ascii_strdown(ascii, -1);
	len = strlen(name);
	if (len > 1 && name[len - 1] == '.')
		name[--len] = '\0';
	return len <= HOST_NAME_BYTES && is_valid(name) ? g_steal_pointer(&name) : NULL;
}
