/* SPDX-License-Identifier: MIT */
/*
 * test-pattern - single patterns: the glob language against a table and against a slow matcher written from its description, regular
 * expressions, characters and stray bytes, letters without case, and the engine giving up
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "rules/pattern.h"
#include "rules/policy_error.h"
#include "rules/regex_literal.h"

static enum pattern_result try_pattern(const char *text, bool nocase, const char *path, bool is_dir)
{
	g_autoptr(GError) error = NULL;
	struct pattern *p = pattern_new(text, nocase, &error);
	struct pattern_subject s;
	enum pattern_result r;
	const char *literal;
	bool in_name;

	if (!p)
		fail_msg("%s", error->message);
	pattern_subject_init(&s, path, strlen(path), is_dir);
	r = pattern_match(p, &s);
	if (r == PATTERN_YES) {
		g_autofree char *lower = NULL, *need = NULL;

		literal = pattern_literal(p, &in_name);
		need = g_ascii_strdown(literal, -1);
		lower = g_ascii_strdown(in_name ? s.name : path, -1);
		if (!strstr(lower, need))
			fail_msg("\"%s\" matches \"%s\", but the literal \"%s\" is not there", text, path, literal);
	}
	pattern_subject_clear(&s);
	pattern_unref(p);
	return r;
}

struct match_case {
	const char *pattern;
	const char *path; /* a trailing slash makes it a directory */
	enum pattern_result want;
	bool nocase;
};

static void check_cases(const struct match_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(cases[i].path);
		bool is_dir = len == 0 || cases[i].path[len - 1] == '/';
		g_autofree char *path = g_strndup(cases[i].path, len && is_dir ? len - 1 : len);
		enum pattern_result got = try_pattern(cases[i].pattern, cases[i].nocase, path, is_dir);

		if (got != cases[i].want)
			fail_msg("\"%s\"%s on \"%s\": got %d, want %d", cases[i].pattern, cases[i].nocase ? " (nocase)" : "", cases[i].path,
				 got, cases[i].want);
	}
}

#define Y PATTERN_YES
#define N PATTERN_NO

static void test_globs(void **state)
{
	static const struct match_case cases[] = {
		/* A name at any depth. */
		{ ".env", ".env", Y }, { ".env", "a/b/.env", Y }, { ".env", ".envx", N }, { ".env", "x.env", N }, { ".env", "a/.env/b", N },
		{ "**/.env", ".env", Y }, { "**/.env", "a/b/.env", Y }, { "**/.env", "a.env", N },
		{ "*.pem", "x.pem", Y }, { "*.pem", ".pem", Y }, { "*.pem", "a/x.pem", Y }, { "*.pem", "x.pem.txt", N }, { "*.pem", "x.pem/y", N },
		{ "id_*", "id_rsa", Y }, { "id_*", "a/id_", Y }, { "id_*", "xid_rsa", N }, { "id_*", "id_a/x", N },
		{ "*secret*", "secret", Y }, { "*secret*", "a/my-secrets.txt", Y }, { "*secret*", "secret/x", N }, { "*secret*", "secre", N },
		{ "a*b", "ab", Y }, { "a*b", "axxb", Y }, { "a*b", "a", N }, { "a*b", "aba", N }, { "aa*aa", "aaa", N }, { "aa*aa", "aaaa", Y },
		{ "a?c", "abc", Y }, { "a?c", "ac", N }, { "a?c", "x/abc", Y }, { "a?b", "a/b", N },
		{ "a**b", "axb", Y }, { "a**b", "a/b", N }, { "a**b", "x/axxb", Y },
		/* Tied to the root. */
		{ "/a", "a", Y }, { "/a", "b/a", N }, { "./a", "a", Y }, { "./a", "b/a", N },
		{ "a/b", "a/b", Y }, { "a/b", "x/a/b", N }, { "a/b", "a/bb", N }, { "a/b", "a/b/c", N },
		{ "src/*.c", "src/x.c", Y }, { "src/*.c", "src/a/x.c", N }, { "src/*.c", "b/src/x.c", N },
		{ "/*/x", "a/x", Y }, { "/*/x", "x", N }, { "/*/x", "a/b/x", N },
		/* Double stars. */
		{ "a/**/b", "a/b", Y }, { "a/**/b", "a/x/b", Y }, { "a/**/b", "a/x/y/b", Y }, { "a/**/b", "a/xb", N }, { "a/**/b", "x/a/b", N },
		{ "a/**/b", "ab", N }, { "a/**/**/b", "a/b", Y }, { "a/**/*.c", "a/x.c", Y }, { "a/**/*.c", "a/b/c/x.c", Y },
		{ "**/a/**/b/**/c", "a/b/c", Y }, { "**/a/**/b/**/c", "x/a/y/b/z/z/c", Y }, { "**/a/**/b/**/c", "x/b/a/c", N },
		{ "**/a/b", "a/a/b", Y }, { "**/a/b", "x/a/c/b", N }, { "**/a*/b*/c", "aa/ab/bb/c", Y },
		{ "top/**", "top/", N }, { "top/**", "top/a", Y }, { "top/**", "top/a/b", Y }, { "top/**", "topx/a", N }, { "top/**", "x/top/a", N },
		{ "**/top/**", "top/", N }, { "**/top/**", "x/top/a", Y }, { "**/top/**", "x/top/", N },
		{ "t*/**", "top/a", Y }, { "t*/**", "top/", N }, { "t*/**", "x/a", N },
		/* Everything, and the root. */
		{ "**", "", Y }, { "**", "a", Y }, { "**", "a/b", Y }, { "*", "", Y }, { "*", "a/b", Y }, { "/*", "", Y }, { "/*", "a/", Y },
		{ "/**", "", Y }, { "**/*", "", Y }, { "/", "", Y }, { ".", "", Y }, { ".", "a/b", Y }, { "./", "a", Y },
		{ "*/**", "a/", N }, { "*/**", "a/b", Y }, { "*/**", "", N }, { "*a", "", N }, { "a", "", N }, { "?", "", N },
		/* Directories only. */
		{ "d/", "d/", Y }, { "d/", "d", N }, { "d/", "a/d/", Y }, { "d/", "a/d", N }, { "/d/", "a/d/", N }, { "a/d/", "a/d/", Y },
		{ "a/d/", "a/d", N }, { "*/", "a/", Y }, { "*/", "a", N }, { "*/", "", N }, { "**/", "x/a/", Y }, { "**/", "x/a", N }, { "**/", "", N },
		/* Classes. */
		{ "[ab]", "a", Y }, { "[ab]", "c", N }, { "[a-c]x", "bx", Y }, { "[a-c]x", "dx", N }, { "[!a]", "b", Y }, { "[!a]", "a", N },
		{ "[^a]", "b", Y }, { "[^a]", "a", N }, { "[]a]", "]", Y }, { "[!]a]", "]", N }, { "[!]a]", "b", Y }, { "[a-]", "-", Y },
		{ "[-a]", "-", Y }, { "[[:digit:]]", "7", Y }, { "[[:digit:]]", "x", N }, { "[![:digit:]]", "x", Y }, { "[[:alpha:]_]", "_", Y },
		{ "[\\]]", "]", Y }, { "[\\]]", "\\", N }, { "x[!a]y", "x/y", N }, { "[a\\-z]", "-", Y }, { "[a\\-z]", "b", N }, { "[\\\\]", "\\", Y },
		{ "[[]", "[", Y }, { "*.[oa]", "x/lib.a", Y }, { "*.[oa]", "lib.c", N }, { "[.]env", ".env", Y },
		/* Quoting. */
		{ "/c/br\\[1\\]/key", "c/br[1]/key", Y }, { "/c/br\\[1\\]/key", "c/br1/key", N }, { "\\*", "*", Y }, { "\\*", "a", N },
		{ "a\\?", "a?", Y }, { "a\\?", "ab", N }, { "\\!x", "!x", Y }, { "\\~", "~", Y }, { "\\re:x", "re:x", Y }, { "a\\,b", "a,b", Y },
		{ "{{x}}", "a/{{x}}", Y }, { "\\{a", "{a", Y }, { "a.b", "axb", N }, { "a+(b)|^$", "a+(b)|^$", Y }, { "*+(b)|^$", "a+(b)|^$", Y },
		{ "x#y z", "x#y z", Y },
	};

	(void)state;
	check_cases(cases, G_N_ELEMENTS(cases));
}

static void test_regexes(void **state)
{
	static const struct match_case cases[] = {
		{ "re:(^|/)id_(rsa|ed25519)$", "id_rsa", Y }, { "re:(^|/)id_(rsa|ed25519)$", "a/b/id_ed25519", Y },
		{ "re:(^|/)id_(rsa|ed25519)$", "id_rsa.pub", N }, { "re:(^|/)id_(rsa|ed25519)$", "xid_rsa", N },
		{ "re:b", "abc", Y }, { "re:a/b", "x/a/b/c", Y }, { "re:^$", "", Y }, { "re:.", "", N }, { "re:x*", "", Y },
		/* A newline in a name fools neither the dot nor the dollar nor the caret. */
		{ "re:^a.b$", "a\nb", Y }, { "re:a$", "a\n", N }, { "re:^b", "a\nb", N }, { "re:secret.*key$", "secret\nkey", Y },
		{ "a?b", "a\nb", Y }, { "a*b", "a\n\nb", Y }, { "[!x]*[!x]", "\nab\n", Y }, { "*.pem", "x.pem\n", N }, { ".env", ".env\n", N },
		{ "re:a|b;c", "b;c", Y }, { "re:a,b", "a,b", Y }, { "re:a # ; b", "a # ; b", Y },
	};

	(void)state;
	check_cases(cases, G_N_ELEMENTS(cases));
}

static void test_characters_and_stray_bytes(void **state)
{
	static const struct match_case cases[] = {
		/* One character, however many bytes; one stray byte. */
		{ "a?b", "a\xc3\xa9" "b", Y }, { "a??b", "a\xc3\xa9" "b", N }, { "a?b", "a\xff" "b", Y }, { "a??b", "a\xff\xfe" "b", Y },
		{ "[\xc3\xa9]", "\xc3\xa9", Y }, { "[\xc3\xa9]", "\xc3\xa8", N }, { "[!\xc3\xa9]", "\xff", Y }, { "re:^.$", "\xc3\xa9", Y },
		{ "re:^.$", "\xff", Y }, { "re:^\\w+$", "\xc3\xa9t\xc3\xa9", Y },
		/* No stray byte in the name hides it. */
		{ "*.pem", "\xff.pem", Y }, { "*.pem", "d\xff/\x80x.pem", Y }, { "x*.pem", "x\xff\xc3.pem", Y }, { "*a*b*", "\xff" "a\xff" "b\xff", Y },
		{ "re:\\.pem$", "\xff.pem", Y }, { "re:^x[^/]*\\.pem$", "x\xff\xc3.pem", Y }, { "re:^.*\\.pem$", "\xff.pem", Y },
		{ "*.pem", "\xff.pem", Y, true }, { "*.PEM", "d\xff/\x80x.pem", Y, true }, { "re:^x.*PEM$", "x\xc3.pem", Y, true },
		{ "\xc3\x89t\xc3\xa9.key", "\xff/\xc3\xa9T\xc3\x89.KEY", Y, true },
		/* Stray bytes in the pattern match themselves only, and are no piece of a character. */
		{ "\xff.x", "\xff.x", Y }, { "\xff.x", "\xfe.x", N }, { "*\xff", "a\xff", Y }, { "*\xa9", "\xc3\xa9", N }, { "\xc3*", "\xc3\xa9", N },
		{ "\xc3*", "\xc3", Y }, { "re:\xff", "a\xff", Y }, { "re:\xff", "a\xfe", N }, { "re:\xa9", "\xc3\xa9", N },
		{ "\xff.X", "\xff.x", Y, true }, { "\xff.X", "\xfe.x", N, true },
		/* Not UTF-8 by its length or value: surrogates, overlong forms. */
		{ "a???b", "a\xed\xa0\x80" "b", Y }, { "a??b", "a\xc0\xae" "b", Y },
	};

	(void)state;
	check_cases(cases, G_N_ELEMENTS(cases));
}

static void test_nocase(void **state)
{
	static const struct match_case cases[] = {
		{ ".env", ".ENV", N }, { ".env", "a/.ENV", Y, true }, { "*.pem", "X.PeM", Y, true }, { "ID_*", "id_rsa", Y, true },
		{ "*Secret*", "a/MYSECRETS", Y, true }, { "/A/b", "a/B", Y, true }, { "/A/**", "a/x", Y, true }, { "/A/**", "a", N, true },
		{ "a*B*c", "AxbxC", Y, true }, { "[a-c]", "B", Y, true }, { "re:^abc$", "ABC", Y, true }, { "re:^abc$", "ABC", N },
		/* Letters outside ASCII: e acute, Greek, Cyrillic; the Kelvin sign is a k, the long s an s. */
		{ "\xc3\xa9.key", "\xc3\x89.KEY", Y, true }, { "*\xce\xbb*", "x\xce\x9by", Y, true }, { "\xd0\x96", "\xd0\xb6", Y, true },
		{ "*.key", "x.\xe2\x84\xaa" "ey", Y, true }, { "*secret*", "my\xc5\xbf" "ecret", Y, true }, { "*secret*", "my\xc5\xbf" "ecret", N },
		{ "k", "\xe2\x84\xaa", Y, true }, { "re:kind", "\xe2\x84\xaa" "IND", Y, true }, { "\xe2\x84\xaa", "K", Y, true },
		/* Simple folding only. */
		{ "stra\xc3\x9f" "e", "STRASSE", N, true },
	};

	(void)state;
	check_cases(cases, G_N_ELEMENTS(cases));
}

static void test_bad_patterns(void **state)
{
	static const struct {
		const char *text;
		const char *words;
	} cases[] = {
		{ "", "empty" }, { "re:", "empty" }, { "re:(", "parenthes" }, { "re:a(?<x", "name" }, { "re:[a", "terminating ]" }, { "re:*", "quantifier" },
		{ "re:\\C", "\\C" }, { "[a", "no \"]\"" }, { "a[", "no \"]\"" }, { "x/[!a", "no \"]\"" }, { "[b-a]", "range out of order" },
		{ "[[:foo:]]", "unknown [:name:]" }, { "[[=a=]]", "[:name:]" }, { "a\\", "backslash" }, { "a\\/b", "backslash" },
		{ "[a/b]", "slash" }, { "a//b", "//" }, { "//", "//" }, { "a/../b", ".." }, { "../a", ".." }, { "a/./b", "\".\"" }, { "!a", "exception" },
		{ "~/x", "home" }, { "~", "home" }, { "*.{pem", "braces" }, { "key}", "braces" }, { "a/{b", "braces" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GError) error = NULL;
		struct pattern *p = pattern_new(cases[i].text, i % 2, &error);

		if (p)
			fail_msg("\"%s\" was taken", cases[i].text);
		assert_true(g_error_matches(error, POLICY_ERROR, POLICY_ERROR_PATTERN));
		if (!strstr(error->message, cases[i].words) || !strstr(error->message, cases[i].text))
			fail_msg("\"%s\": the message is: %s", cases[i].text, error->message);
	}
}

static void test_long_pattern(void **state)
{
	g_autofree char *longest = g_strnfill(PATTERN_MAX, 'a'), *longer = g_strnfill(PATTERN_MAX + 1, 'a');
	g_autoptr(GError) error = NULL;
	struct pattern *p;

	(void)state;
	p = pattern_new(longest, false, &error);
	assert_non_null(p);
	pattern_unref(p);
	assert_null(pattern_new(longer, false, &error));
	assert_true(g_error_matches(error, POLICY_ERROR, POLICY_ERROR_PATTERN));
}

/* A second opinion, straight from the description: components by recursion, characters by recursion. ASCII, no posix classes. */

static bool ref_class(const char **pattern, char c)
{
	const char *p = *pattern + 1;
	bool negated = *p == '!', found = false;

	if (negated)
		p++;
	do {
		found = found || *p == c;
		p++;
	} while (*p != ']');
	*pattern = p + 1;
	return found != negated;
}

static bool ref_name(const char *p, const char *s)
{
	if (!*p)
		return !*s;
	if (*p == '*')
		return ref_name(p + 1, s) || (*s && ref_name(p, s + 1));
	if (!*s)
		return false;
	if (*p == '[')
		return ref_class(&p, *s) && ref_name(p, s + 1);
	return (*p == '?' || *p == *s) && ref_name(p + 1, s + 1);
}

static bool ref_path(char **p, char **s)
{
	if (!*p)
		return !*s;
	if (strcmp(*p, "**") == 0) {
		if (!p[1])
			return *s != NULL;
		return ref_path(p + 1, s) || (*s && ref_path(p, s + 1));
	}
	return *s && ref_name(*p, *s) && ref_path(p + 1, s + 1);
}

static bool ref_match(const char *pattern, const char *path, bool is_dir)
{
	g_autofree char *body = g_strdup(pattern);
	g_auto(GStrv) parts = NULL, names = g_strsplit(path, "/", -1);
	char *start = body;

	if (strcmp(pattern, "/*") == 0)
		return true; /* what it matches covers the rest */
	if (g_str_has_suffix(body, "/")) {
		if (!is_dir)
			return false;
		body[strlen(body) - 1] = '\0';
	}
	if (!strchr(body, '/') && strcmp(body, "**") != 0)
		return ref_name(body, names[g_strv_length(names) - 1]);
	if (*start == '/')
		start++;
	parts = g_strsplit(start, "/", -1);
	return ref_path(parts, names);
}

static char *random_text(GRand *r, const char *const *pieces, int n, int max)
{
	GString *s = g_string_new(NULL);

	for (int i = g_rand_int_range(r, 1, max + 1); i > 0; i--)
		g_string_append(s, pieces[g_rand_int_range(r, 0, n)]);
	return g_string_free(s, FALSE);
}

static char *random_glob(GRand *r)
{
	static const char *const pieces[] = { "a", "b", "ab", "*", "*", "?", "[ab]", "[!a]", ".a" };
	GString *s = g_string_new(g_rand_int_range(r, 0, 4) == 0 ? "/" : "");

	for (int i = g_rand_int_range(r, 1, 5); i > 0; i--) {
		g_autofree char *part = random_text(r, pieces, G_N_ELEMENTS(pieces), 5);

		g_string_append(s, g_rand_int_range(r, 0, 4) == 0 ? "**" : part);
		if (i > 1 || g_rand_int_range(r, 0, 6) == 0)
			g_string_append_c(s, '/');
	}
	return g_string_free(s, FALSE);
}

static char *random_path(GRand *r)
{
	static const char *const pieces[] = { "a", "b", "c", "ab", ".a" };
	GString *s = g_string_new(NULL);

	for (int i = g_rand_int_range(r, 1, 6); i > 0; i--) {
		g_autofree char *part = random_text(r, pieces, G_N_ELEMENTS(pieces), 4);

		g_string_append_printf(s, "%s%s", part, i > 1 ? "/" : "");
	}
	return g_string_free(s, FALSE);
}

static void test_globs_against_reference(void **state)
{
	g_autoptr(GRand) r = g_rand_new_with_seed(20);
	unsigned matches = 0;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		g_autofree char *glob = random_glob(r);
		bool nocase = g_rand_boolean(r);
		struct pattern *p = pattern_new(glob, nocase, NULL);

		assert_non_null(p);
		for (int j = 0; j < 40; j++) {
			g_autofree char *path = random_path(r);
			bool is_dir = g_rand_boolean(r), want = ref_match(glob, path, is_dir);
			struct pattern_subject s;
			enum pattern_result got;

			pattern_subject_init(&s, path, strlen(path), is_dir);
			got = pattern_match(p, &s);
			pattern_subject_clear(&s);
			if (got != (want ? Y : N))
				fail_msg("\"%s\"%s on \"%s\"%s: got %d", glob, nocase ? " (nocase)" : "", path, is_dir ? " (directory)" : "", got);
			matches += want;
		}
		pattern_unref(p);
	}
	assert_in_range(matches, 4000, 76000);
}

/* What it says about paths below must never be a false "no". */
static void test_match_below_is_conservative(void **state)
{
	g_autoptr(GRand) r = g_rand_new_with_seed(7);
	unsigned refused = 0;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		g_autofree char *glob = random_glob(r);
		struct pattern *p = pattern_new(glob, false, NULL);

		for (int j = 0; j < 20; j++) {
			g_autofree char *dir = random_path(r), *rest = random_path(r), *path = g_strconcat(dir, "/", rest, NULL);
			bool covered = false;

			/* What matches the directory or something above it is no news below. */
			for (size_t k = 0; k <= strlen(dir); k++) {
				g_autofree char *part = g_strndup(dir, k);

				covered = covered || (k > 0 && (dir[k] == '/' || !dir[k]) && ref_match(glob, part, true));
			}
			if (pattern_match_below(p, dir, strlen(dir)) != PATTERN_BELOW_NEVER)
				continue;
			refused++;
			if (!covered && ref_match(glob, path, true))
				fail_msg("\"%s\" may not match below \"%s\", but matches \"%s\"", glob, dir, path);
		}
		pattern_unref(p);
	}
	assert_in_range(refused, 4000, 40000);
}

static void test_match_below(void **state)
{
	static const struct {
		const char *pattern;
		const char *dir;
		enum pattern_below want;
		bool nocase;
	} cases[] = {
		{ "x", "a", PATTERN_BELOW_MAYBE }, { "**/x", "a/b", PATTERN_BELOW_MAYBE }, { "/x", "a", PATTERN_BELOW_NEVER },
		{ "/a/x", "a", PATTERN_BELOW_NAMED }, { "/a/x", "b", PATTERN_BELOW_NEVER }, { "/a/b/c", "a/b", PATTERN_BELOW_NAMED },
		{ "/a/b", "a/b", PATTERN_BELOW_NEVER }, { "/a/b", "a/b/c", PATTERN_BELOW_NEVER }, { "/a/**", "a", PATTERN_BELOW_NAMED },
		{ "/a/**", "a/q", PATTERN_BELOW_MAYBE }, { "/a/**/x", "a/q/r", PATTERN_BELOW_MAYBE }, { "/a/**/x", "a", PATTERN_BELOW_NAMED },
		{ "/a/*/x", "a/q", PATTERN_BELOW_MAYBE }, { "/a/*/x", "b/q", PATTERN_BELOW_NEVER }, { "/a/*/x", "a", PATTERN_BELOW_NAMED },
		{ "/A/x", "a", PATTERN_BELOW_NEVER }, { "/A/x", "a", PATTERN_BELOW_NAMED, true },
		{ "/a\xc3\xa9/x", "a\xc3\x89", PATTERN_BELOW_MAYBE, true }, { "/k/x", "\xe2\x84\xaa", PATTERN_BELOW_MAYBE, true },
		{ "re:^b/", "a", PATTERN_BELOW_MAYBE }, { "**", "a", PATTERN_BELOW_NEVER }, { "/a/x", "", PATTERN_BELOW_NAMED },
		{ "a/x", "ab", PATTERN_BELOW_NEVER },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct pattern *p = pattern_new(cases[i].pattern, cases[i].nocase, NULL);
		enum pattern_below got = pattern_match_below(p, cases[i].dir, strlen(cases[i].dir));

		if (got != cases[i].want)
			fail_msg("\"%s\" below \"%s\": got %d", cases[i].pattern, cases[i].dir, got);
		pattern_unref(p);
	}
}

/* An expression that backtracks without end is cut off, in time, and says so. */
static void test_catastrophic_regex_is_unsure(void **state)
{
	g_autofree char *path = g_strnfill(200, 'a');
	gint64 start = g_get_monotonic_time();

	(void)state;
	assert_int_equal(try_pattern("re:^(a+)+$", false, path, false), Y);
	path[199] = 'b';
	assert_int_equal(try_pattern("re:^(a+)+$", false, path, false), PATTERN_UNSURE);
	assert_int_equal(try_pattern("re:^(a|aa)+$", true, path, false), PATTERN_UNSURE);
	assert_in_range(g_get_monotonic_time() - start, 0, 2000000);
}

/* A glob never gets there, whatever its stars and the name. The b in front is for an engine that looks for a needed character first. */
static void test_globs_do_not_backtrack(void **state)
{
	g_autofree char *name = g_strnfill(255, 'a');
	g_autoptr(GString) path = g_string_new("b");

	(void)state;
	name[0] = 'b';
	assert_int_equal(try_pattern("*a*a*a*a*a*a*a*a*a*a*a*b", false, name, false), N);
	assert_int_equal(try_pattern("*a*a*a*a*a*a*a*a*a*a*a*b", true, name, false), N);
	for (int i = 0; i < 1000; i++)
		g_string_append(path, "/a/a");
	assert_int_equal(try_pattern("**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b", false, path->str, false), N);
	assert_int_equal(try_pattern("**/*a*/**/*a*/**/b*b/**/*b", false, path->str, false), N);
}

static void test_regex_literals(void **state)
{
	static const struct {
		const char *regex;
		const char *literal;
	} cases[] = {
		{ "(^|/)id_(rsa|ed25519)$", "id_" }, { "secret", "secret" }, { "^a\\.b$", "a.b" }, { "abc?", "ab" }, { "abc*d", "ab" }, { "abc+d", "abc" },
		{ "abc{0,3}d", "ab" }, { "a|b", "" }, { "(a|b)cd", "cd" }, { "[abc]de", "de" }, { "[]x]yz", "yz" }, { "[^]x]yz", "yz" },
		{ "[[:alpha:]]yz", "yz" }, { "(?i)abc", "" }, { "(?:x)abc", "abc" }, { "(?!x)abc", "abc" }, { "(?<=x)abc", "abc" }, { "(?<n>x)abc", "" },
		{ "(?:(?i)x)abc", "" }, { "\\Qa|b\\E", "" }, { "\\dabc", "abc" }, { "\\x41bc", "" }, { "(x)\\1abc", "" }, { "a{x|y}bc", "" }, { "a{[bc]de", "" }, { "(*COMMIT)abc", "" },
		{ "[[:]a|b:]c]", "" }, { "[\\c]]abc", "" }, { "(\\c))abc", "" }, { "\xc3\xa9*abc", "abc" }, { "x\xc3\xa9?", "x" }, { "ab\\", "" }, { "abc??", "ab" },
		{ "", "" }, { "^(?!(.*/)?\\.git/)(.*/)?[^/]*secret[^/]*$", "secret" }, { "(^|/)\\.env(\\.(?!(example)$)[^/]*)?$", ".env" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *got = regex_literal(cases[i].regex);

		if (strcmp(got, cases[i].literal) != 0)
			fail_msg("\"%s\": got \"%s\", want \"%s\"", cases[i].regex, got, cases[i].literal);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_globs),
		cmocka_unit_test(test_regexes),
		cmocka_unit_test(test_characters_and_stray_bytes),
		cmocka_unit_test(test_nocase),
		cmocka_unit_test(test_bad_patterns),
		cmocka_unit_test(test_long_pattern),
		cmocka_unit_test(test_globs_against_reference),
		cmocka_unit_test(test_match_below),
		cmocka_unit_test(test_match_below_is_conservative),
		cmocka_unit_test(test_catastrophic_regex_is_unsure),
		cmocka_unit_test(test_globs_do_not_backtrack),
		cmocka_unit_test(test_regex_literals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
