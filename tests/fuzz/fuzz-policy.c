/* SPDX-License-Identifier: MIT */
/*
 * fuzz-policy - any bytes as a policy, and as patterns and paths
 *
 * What must hold: a text that loads gives a merged text that loads again to the same decisions; a path that a pattern matches contains the
 * pattern's literal (else the index would lose it).
 */

#include <string.h>

#include "rules/pattern.h"
#include "rules/policy.h"
#include "tests/fuzz/replay.h"

#define LINES_MAX 24

static void compare(const struct policy *p, const struct policy *q, const char *path)
{
	struct policy_match m = policy_match_path(p, path, false), n = policy_match_path(q, path, false);
	struct policy_reason x, y;

	g_assert_cmpmem(&m, sizeof(m), &n, sizeof(n));
	g_assert_cmpint(policy_action(p, m), ==, policy_action(q, n));
	g_assert_true(policy_explain(p, m, &x) == policy_explain(q, n, &y));
	g_assert_cmpstr(x.pattern, ==, y.pattern);
	g_assert_cmpuint(x.line, ==, y.line);
	if (policy_action(p, m) != ACTION_WRITE)
		policy_may_open_below(p, m, path);
}

static void try_policy(const char *text, char **paths)
{
	struct policy *p = policy_load_text(text, "fuzz", NULL), *q;
	g_autoptr(GError) error = NULL;
	g_autofree char *merged = NULL;

	if (!p)
		return;
	merged = policy_to_ini(p);
	q = policy_load_text(merged, "merged", &error);
	g_assert_no_error(error);
	for (int i = 0; paths[i]; i++)
		compare(p, q, paths[i]);
	policy_free(p);
	policy_free(q);
}

static void try_pattern(const struct pattern *p, const char *path, bool is_dir)
{
	struct pattern_subject s;
	bool in_name;
	const char *literal = pattern_literal(p, &in_name);

	pattern_subject_init(&s, path, strlen(path), is_dir);
	if (pattern_match(p, &s) == PATTERN_YES) {
		g_autofree char *lower = g_ascii_strdown(in_name ? s.name : path, -1), *need = g_ascii_strdown(literal, -1);

		g_assert_nonnull(strstr(lower, need));
	}
	pattern_match_below(p, path, strlen(path));
	pattern_subject_clear(&s);
}

static void try_patterns(char **lines)
{
	for (int i = 0; lines[i]; i++) {
		struct pattern *p = pattern_new(lines[i], i % 2, NULL);

		for (int j = 0; p && lines[j]; j++)
			try_pattern(p, lines[j], j % 2);
		pattern_unref(p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree char *text = g_strndup((const char *)data, size);
	g_auto(GStrv) lines = g_strsplit(text, "\n", LINES_MAX);

	try_policy(text, lines);
	try_patterns(lines);
	return 0;
}
