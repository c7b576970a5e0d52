/* SPDX-License-Identifier: MIT */
#include "tools/run/environment.h"

#include <stdbool.h>
#include <string.h>

#include "rules/policy.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Names that end in a star stand for all that begin so. */
static const char *const allowed[] = {
	"PATH",
	"USER",
	"LOGNAME",
	"SHELL",
	"TERM",
	"COLORTERM",
	"LANG",
	"LANGUAGE",
	"LC_*",
	"TZ",
	"LINES",
	"COLUMNS",
	"EDITOR",
	"VISUAL",
	"PAGER",
	"LESS",
	"NO_COLOR",
	"FORCE_COLOR",
	"CLICOLOR",
	"CLICOLOR_FORCE",
	"LS_COLORS",
	"TERM_PROGRAM",
	"TERM_PROGRAM_VERSION",
	"CI",
	"SOURCE_DATE_EPOCH",
};

static bool matches(const char *pattern, const char *name)
{
	size_t n = strlen(pattern);

	return n > 0 && pattern[n - 1] == '*' ? strncmp(pattern, name, n - 1) == 0 : g_str_equal(pattern, name);
}

static void let_through(char ***env, char **names, const char *const *patterns, size_t count)
{
	for (char **name = names; *name; name++)
		for (size_t i = 0; i < count; i++)
			if (matches(patterns[i], *name))
				*env = g_environ_setenv(*env, *name, g_getenv(*name), TRUE);
}

static void let_through_setting(char ***env, char **names, const struct policy_setting *s)
{
	g_auto(GStrv) patterns = g_strsplit(s->value, ",", -1);

	if (s->layer != POLICY_USER || !g_str_equal(s->section, "run") || !g_str_equal(s->key, "environment"))
		return;
	for (char **pattern = patterns; *pattern; pattern++)
		g_strstrip(*pattern);
	let_through(env, names, (const char *const *)patterns, g_strv_length(patterns));
}

char **environment_new(const struct policy *policy, const char *sandbox, const char *home)
{
	g_auto(GStrv) names = g_listenv();
	char **env = g_new0(char *, 1);
	unsigned count;
	const struct policy_setting *settings = policy_settings(policy, &count);

	env = g_environ_setenv(env, "PATH", DEFAULT_PATH, TRUE);
	let_through(&env, names, allowed, G_N_ELEMENTS(allowed));
	for (unsigned i = 0; i < count; i++)
		let_through_setting(&env, names, &settings[i]);
	env = g_environ_setenv(env, "HOME", home, TRUE);
	env = g_environ_setenv(env, "TMPDIR", "/tmp", TRUE);
	env = g_environ_setenv(env, "SBXFS", "1", TRUE);
	return g_environ_setenv(env, "SBXFS_SANDBOX", sandbox, TRUE);
}
