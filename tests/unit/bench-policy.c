/* SPDX-License-Identifier: MIT */
/*
 * bench-policy - what one decision costs with few and many rules; run by hand
 *
 * Walks a made-up tree of 5,000 files in 500 directories the way a view meets it: each path once, with its parent's match. The rules are a
 * mixture of the forms that people write, and match next to nothing there, which is the dear case.
 */

#include <stdio.h>
#include <string.h>

#include "rules/policy.h"

#define DIRS 500
#define FILES 10
#define ROUNDS 40

static void add_rule(GString *s, int i)
{
	static const char *const forms[] = {
		"deny = **/.env.%d\n", "deny = *.pem%d\n", "deny = id_%d*\n", "deny = *secret%d*\n", "read = /conf/part%d/**\n",
		"hide = src/*/gen%d/*.c\n", "scratch = node_modules%d/\n", "deny = re:(^|/)id_(rsa|ed%d)$\n", "deny = **/k%d/*.key\n",
		"mask = re:\\.conf%d\\.[a-z]+$\n",
	};
	g_autofree char *number = g_strdup_printf("%d", i);
	GString *line = g_string_new(forms[i % (int)G_N_ELEMENTS(forms)]);

	g_string_replace(line, "%d", number, 0);
	g_string_append_len(s, line->str, (gssize)line->len);
	g_string_free(line, TRUE);
}

static double measure(const struct policy *p, char **dirs, char **files)
{
	struct policy_match root = policy_match_child(p, POLICY_MATCH_NONE, "", true);
	unsigned sum = 0;
	gint64 start, best = G_MAXINT64;

	for (int round = 0; round < ROUNDS; round++) {
		start = g_get_monotonic_time();
		for (int i = 0; i < DIRS; i++) {
			struct policy_match dir = policy_match_child(p, root, dirs[i], true);

			for (int j = 0; j < FILES; j++)
				sum += policy_action(p, policy_match_child(p, dir, files[i * FILES + j], false));
		}
		best = MIN(best, g_get_monotonic_time() - start);
	}
	if (sum == 1)
		puts("");
	return (double)best * 1000 / (DIRS * (FILES + 1));
}

int main(void)
{
	static const int counts[] = { 0, 10, 100, 1000, 10000, 32000 };
	char *dirs[DIRS], *files[DIRS * FILES];

	for (int i = 0; i < DIRS; i++) {
		dirs[i] = g_strdup_printf("packages/module-%d/src/component%d", i / 20, i);
		for (int j = 0; j < FILES; j++)
			files[i * FILES + j] = g_strdup_printf("%s/some-source-file-%d.%s", dirs[i], j, j % 2 ? "test.js" : "conf.yaml");
	}
	for (int nocase = 0; nocase < 2; nocase++) {
		for (size_t c = 0; c < G_N_ELEMENTS(counts); c++) {
			g_autoptr(GString) text = g_string_new(nocase ? "[profile p]\nnocase = yes\n[files p]\n" : "[profile p]\n[files p]\n");
			gint64 start = g_get_monotonic_time();
			struct policy *p;
			double load;

			if (counts[c])
				g_string_append(text, "write = **\n");
			for (int i = 1; i < counts[c]; i++)
				add_rule(text, i);
			p = policy_load_text(text->str, "bench", NULL);
			load = (double)(g_get_monotonic_time() - start) / 1000;
			printf("%s %5d rules: %7.1f ns per decision (loaded in %.1f ms)\n", nocase ? "nocase" : "case  ", counts[c],
			       measure(p, dirs, files), load);
			policy_free(p);
		}
	}
	return 0;
}
