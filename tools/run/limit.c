/* SPDX-License-Identifier: MIT */
#include "tools/run/limit.h"

#include <string.h>

#include "rules/policy.h"
#include "tools/exit.h"
#include "tools/quantity.h"

static const struct {
	const char *name;
	enum quantity kind;
	const char *example;
} kinds[LIMIT_COUNT] = {
	[LIMIT_MEMORY] = { "memory", QUANTITY_BYTES, "4G" },  [LIMIT_PROCESSES] = { "processes", QUANTITY_NUMBER, "512" },
	[LIMIT_CPU] = { "cpu", QUANTITY_TIME, "10m" },	  [LIMIT_TIME] = { "time", QUANTITY_TIME, "2h" },
	[LIMIT_FILES] = { "files", QUANTITY_NUMBER, "1024" }, [LIMIT_OUTPUT] = { "output", QUANTITY_BYTES, "100M" },
	[LIMIT_DISK] = { "disk", QUANTITY_BYTES, "2G" },
};

const char *limit_name(enum limit which)
{
	return kinds[which].name;
}

static int find_kind(const char *name)
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (g_str_equal(kinds[i].name, name))
			return i;
	return -1;
}

/* bwrap makes the run under the limit of files, too. */
#define FILES_LEAST 16

static bool parse(int which, const char *text, uint64_t *ret)
{
	uint64_t value;

	if (!quantity_parse(kinds[which].kind, text, &value) || (which == LIMIT_FILES && value < FILES_LEAST))
		return false;
	*ret = value;
	return true;
}

static const char *least_text(int which)
{
	return which == LIMIT_FILES ? ", and at least " G_STRINGIFY(FILES_LEAST) : "";
}

static void tighten(uint64_t *limit, uint64_t value)
{
	if (value && (!*limit || value < *limit))
		*limit = value;
}

/* Of one layer; in it the last profile that has a key decides. */
static bool read_layer(const struct policy *policy, enum policy_layer layer, struct limits *ret, GError **error)
{
	unsigned count;
	const struct policy_setting *all = policy_settings(policy, &count);

	for (unsigned i = 0; i < count; i++) {
		const struct policy_setting *s = &all[i];
		int which = find_kind(s->key);

		if (s->layer != layer || !g_str_equal(s->section, "limits") || which < 0)
			continue;
		if (!parse(which, s->value, &ret->value[which])) {
			tool_error(error, EXIT_POLICY, s->file,
				   "%s:%u: %s = \"%s\" is no such limit; it looks like %s%s", s->file, s->line, s->key,
				   s->value, kinds[which].example, least_text(which));
			return false;
		}
	}
	return true;
}

static bool read_given(const char *list, struct limits *ret, GError **error)
{
	g_auto(GStrv) items = g_strsplit(list, ",", -1);

	for (char **item = items; *item; item++) {
		g_auto(GStrv) pair = g_strsplit(g_strstrip(*item), "=", 2);
		int which = pair[0] ? find_kind(pair[0]) : -1;

		if (which < 0) {
			tool_error(error, EXIT_USAGE, NULL,
				   "--limit %s: there is no such limit; known are memory, processes, cpu, time, files, "
				   "output and disk, as in memory=4G,time=30m",
				   *item);
			return false;
		}
		if (!pair[1] || !parse(which, pair[1], &ret->value[which])) {
			tool_error(error, EXIT_USAGE, NULL, "--limit %s: write it like %s=%s%s", *item, kinds[which].name,
				   kinds[which].example, least_text(which));
			return false;
		}
	}
	return true;
}

bool limits_read(const struct policy *policy, char *const *given, struct limits *ret, GError **error)
{
	struct limits layers[POLICY_LAYERS] = { 0 };

	for (int i = 0; i < POLICY_LAYERS; i++)
		if (!read_layer(policy, (enum policy_layer)i, &layers[i], error))
			return false;
	for (; given && *given; given++)
		if (!read_given(*given, &layers[POLICY_USER], error))
			return false;
	*ret = layers[POLICY_USER];
	for (int i = 0; i < LIMIT_COUNT; i++) {
		tighten(&ret->value[i], layers[POLICY_MANAGED].value[i]);
		tighten(&ret->value[i], layers[POLICY_WORKSPACE].value[i]);
	}
	return true;
}

char *limit_text(const struct limits *l, enum limit which)
{
	g_autofree char *value = quantity_text(kinds[which].kind, l->value[which]);

	return g_strconcat(kinds[which].name, "=", value, NULL);
}
