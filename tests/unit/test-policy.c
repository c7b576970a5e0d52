/* SPDX-License-Identifier: MIT */
/*
 * test-policy - whole policies: reading and refusing files, where profiles are found, which rule decides, layers, the merged text, the
 * shipped profiles
 *
 * The argument is the directory of the shipped profiles.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rules/policy.h"
#include "rules/policy_file.h"
#include "rules/rule_list.h"

static const char *shipped_dir = "contrib/profiles";

/* Helpers */

static struct policy *load_text(const char *text)
{
	g_autoptr(GError) error = NULL;
	struct policy *p = policy_load_text(text, "t.ini", &error);

	if (!p)
		fail_msg("%s", error->message);
	return p;
}

/* The rules of a profile that has nothing else. */
static struct policy *load_rules(const char *rules)
{
	g_autofree char *text = g_strdup_printf("[profile t]\n[files t]\n%s\n", rules);

	return load_text(text);
}

static enum action action_of(const struct policy *p, const char *path)
{
	size_t len = strlen(path);
	bool is_dir = len == 0 || path[len - 1] == '/';
	g_autofree char *plain = g_strndup(path, len && is_dir ? len - 1 : len);

	return policy_action(p, policy_match_path(p, plain, is_dir));
}

static void check_action(const struct policy *p, const char *path, enum action want)
{
	enum action got = action_of(p, path);

	if (got != want)
		fail_msg("\"%s\": got %s, want %s", path, action_name(got), action_name(want));
}

struct path_case {
	const char *path;
	enum action want;
};

static void check_actions(const struct policy *p, const struct path_case *cases)
{
	for (; cases->path; cases++)
		check_action(p, cases->path, cases->want);
}

static void check_error(GError *error, enum policy_error code, const char *words)
{
	assert_non_null(error);
	if (!g_error_matches(error, POLICY_ERROR, (gint)code) || !strstr(error->message, words))
		fail_msg("error %d \"%s\", want %d \"%s\"", error->code, error->message, code, words);
}

/* A directory of its own for each test that needs one, in *state. */

static int setup_dir(void **state)
{
	*state = g_dir_make_tmp("sbxfs-policy-XXXXXX", NULL);
	return *state ? 0 : -1;
}

static int teardown_dir(void **state)
{
	g_autofree char *command = g_strdup_printf("rm -rf '%s'", (char *)*state);

	g_free(*state);
	return system(command);
}

static void put(const char *dir, const char *name, const char *text)
{
	g_autofree char *path = g_build_filename(dir, name, NULL), *parent = g_path_get_dirname(path);

	assert_int_equal(g_mkdir_with_parents(parent, 0700), 0);
	assert_true(g_file_set_contents(path, text, -1, NULL));
}

/* All places in @dir: config, user, managed, shipped, work. Only those that exist matter. */
static void use_dir(struct policy_sources *s, const char *dir, const char *profile)
{
	g_autofree char *config = g_build_filename(dir, "config", NULL);

	*s = (struct policy_sources){
		.profile = g_strdup(profile),
		.workspace = g_build_filename(dir, "work", NULL),
		.config = g_file_test(config, G_FILE_TEST_EXISTS) ? g_strdup(config) : NULL,
		.user_dir = g_build_filename(dir, "user", NULL),
		.managed_dir = g_build_filename(dir, "managed", NULL),
		.shipped_dir = g_build_filename(dir, "shipped", NULL),
	};
}

static struct policy *load_dir(const char *dir, const char *profile, GError **error)
{
	struct policy_sources s;
	struct policy *p;

	use_dir(&s, dir, profile);
	p = policy_load(&s, error);
	policy_sources_clear(&s);
	return p;
}

static struct policy *must_load_dir(const char *dir, const char *profile)
{
	g_autoptr(GError) error = NULL;
	struct policy *p = load_dir(dir, profile, &error);

	if (!p)
		fail_msg("%s", error->message);
	return p;
}

static void must_not_load_dir(const char *dir, const char *profile, enum policy_error code, const char *words)
{
	g_autoptr(GError) error = NULL;

	if (load_dir(dir, profile, &error))
		fail_msg("it loaded, want \"%s\"", words);
	check_error(error, code, words);
}

/* Refusing */

static void test_bad_files_name_the_line(void **state)
{
	static const struct {
		const char *text;
		enum policy_error code;
		const char *words;
	} cases[] = {
		{ "", POLICY_ERROR_INVALID, "t.ini: no profile" },
		{ "; only a comment\n", POLICY_ERROR_INVALID, "t.ini: no profile" },
		{ "deny = x\n", POLICY_ERROR_INVALID, "t.ini:1: \"deny\" stands in front" },
		{ "[profile a]\n[fils a]\n", POLICY_ERROR_INVALID, "t.ini:2: unknown section [fils a]" },
		{ "[profile a]\n[fils a]\nx = y\n", POLICY_ERROR_INVALID, "t.ini:2: unknown section [fils a]" },
		{ "[profile]\n", POLICY_ERROR_INVALID, "t.ini:1: [profile] needs a profile's name" },
		{ "[profile a b]\n", POLICY_ERROR_INVALID, "t.ini:1: [profile a b] needs a profile's name" },
		{ "[profile ../a]\n", POLICY_ERROR_INVALID, "t.ini:1: [profile ../a] needs" },
		{ "[profile a]\n[profile a]\n", POLICY_ERROR_INVALID, "t.ini:2: a second [profile a], the first is in line 1" },
		{ "[profile a]\n[files a]\n[files a]\n", POLICY_ERROR_INVALID, "t.ini:3: a second [files a], the first is in line 2" },
		{ "[profile a]\n[files b]\n", POLICY_ERROR_INVALID, "t.ini:2: this section speaks of \"b\"" },
		{ "[profile a]\n[files b]\ndeny = x\n", POLICY_ERROR_INVALID, "t.ini:3: [files b] has no [profile b] above it" },
		{ "[profile a]\nextend = b\n", POLICY_ERROR_INVALID, "t.ini:2: unknown key \"extend\"" },
		{ "[profile a]\nnocase = true\n", POLICY_ERROR_INVALID, "t.ini:2: nocase = \"true\" must be yes or no" },
		{ "[profile a]\nnocase =\n", POLICY_ERROR_INVALID, "t.ini:2: nocase = \"\" must be" },
		{ "[profile a]\nnocase = yes\nnocase = no\n", POLICY_ERROR_INVALID, "t.ini:3: a second \"nocase\" in [profile a], the first is in line 2" },
		{ "[profile a]\nextends =\n", POLICY_ERROR_INVALID, "t.ini:2: extends = \"\" must be" },
		{ "[profile a]\nextends = b,,c\n", POLICY_ERROR_INVALID, "t.ini:2: extends = \"b,,c\" must be" },
		{ "[profile a]\nextends = b\n", POLICY_ERROR_NOT_FOUND, "t.ini:2: extends: no profile \"b\"" },
		{ "[profile a]\nextends = a\n", POLICY_ERROR_NOT_FOUND, "t.ini:2: extends: no profile \"a\"" },
		{ "[profile a]\nextends = b\n[profile b]\nextends = a\n", POLICY_ERROR_INVALID, "runs in a circle: b -> a -> b" },
		{ "[profile a]\n[files a]\nallow = x\n", POLICY_ERROR_INVALID, "t.ini:3: unknown action \"allow\"" },
		{ "[profile a]\n[files a]\nDeny = x\n", POLICY_ERROR_INVALID, "t.ini:3: unknown action \"Deny\"" },
		{ "[profile a]\n[files a]\ndeny =\n", POLICY_ERROR_PATTERN, "t.ini:3: bad pattern \"\": an empty pattern" },
		{ "[profile a]\n[files a]\ndeny = a,,b\n", POLICY_ERROR_PATTERN, "t.ini:3: bad pattern \"\"" },
		{ "[profile a]\n[files a]\ndeny = a,\n", POLICY_ERROR_PATTERN, "t.ini:3: bad pattern \"\"" },
		{ "[profile a]\n[files a]\n\n\ndeny = x, re:y\n", POLICY_ERROR_INVALID, "t.ini:5: \"re:y\" in a list" },
		{ "[profile a]\n[files a]\ndeny = re:(\n", POLICY_ERROR_PATTERN, "t.ini:3: bad pattern \"re:(\": missing closing parenthesis" },
		{ "[profile a]\n[files a]\ndeny = *.{pem,key}\n", POLICY_ERROR_PATTERN, "t.ini:3: bad pattern \"*.{pem\": braces" },
		{ "[profile a]\n[files a]\nwrite = **, !x\n", POLICY_ERROR_PATTERN, "t.ini:3: bad pattern \"!x\"" },
		{ "[profile a]\n[files a]\ndeny = x\n[profile b]\n[files b]\ndeny = [\n", POLICY_ERROR_PATTERN, "t.ini:6: bad pattern \"[\"" },
		{ "[profile b]\n[files b]\ndeny = [\n[profile a]\n", POLICY_ERROR_PATTERN, "t.ini:3: bad pattern \"[\"" },
		{ "[profile a]\n[network a]\nallows = x\n", POLICY_ERROR_INVALID, "t.ini:3: unknown key \"allows\"" },
		{ "[profile a]\n[network a]\ndefault = on\n", POLICY_ERROR_INVALID, "t.ini:3: default = \"on\" must be" },
		{ "[profile a]\n[limits a]\nmemory =\n", POLICY_ERROR_INVALID, "t.ini:3: \"memory\" in [limits a] has no value" },
		{ "[profile a]\n[limits a]\ntime = 1h\ntime = 2h\n", POLICY_ERROR_INVALID, "t.ini:4: a second \"time\"" },
		{ "[profile a]\n[run a]\nhome = x\n", POLICY_ERROR_INVALID, "t.ini:3: unknown key \"home\"" },
		{ "[profile a]\n[limits a]\nhome.read = x\n", POLICY_ERROR_INVALID, "t.ini:3: unknown key \"home.read\"" },
		{ "[profile a]\n[run a]\nhome.write =\n", POLICY_ERROR_INVALID, "t.ini:3: \"home.write\" in [run a] has no value" },
		{ "[profile a]\n[limits a]\ncpu = 1m\ncpu = 2m\n", POLICY_ERROR_INVALID, "t.ini:4: a second \"cpu\"" },
		{ "[profile a]\n[gate a]\ncheck = all\n", POLICY_ERROR_INVALID, "t.ini:3: unknown key \"check\"" },
		/* Lines */
		{ "[profile a\n", POLICY_ERROR_SYNTAX, "t.ini:1: a section has no \"]\"" },
		{ "[profile a] ; comment\n", POLICY_ERROR_SYNTAX, "t.ini:1: text behind" },
		{ "[profile a]\n[files a]\ndeny = a\n  b, c\n", POLICY_ERROR_SYNTAX, "t.ini:4: a line without \"=\": \"b, c\"" },
		{ "[profile a]\n[files a]\nwrite = **\n  deny = x\n  [files a]\n", POLICY_ERROR_INVALID, "t.ini:5: a second [files a]" },
		{ "[profile a]\nnonsense\n", POLICY_ERROR_SYNTAX, "t.ini:2: a line without \"=\"" },
		{ "[profile a]\n= x\n", POLICY_ERROR_SYNTAX, "t.ini:2: a line without a key" },
		{ "[profile aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n", POLICY_ERROR_SYNTAX, "t.ini:1: a section of 51 bytes is too long" },
		{ "[profile a]\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa = b\n", POLICY_ERROR_SYNTAX, "t.ini:2: a key of 50 bytes" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GError) error = NULL;

		if (policy_load_text(cases[i].text, "t.ini", &error))
			fail_msg("this loaded: %s", cases[i].text);
		check_error(error, cases[i].code, cases[i].words);
	}
}

static struct policy *load_value(const char *key, size_t len, char fill, GError **error)
{
	g_autofree char *value = g_strnfill(len, fill), *text = g_strdup_printf("[profile a]\n[gate a]\n%s = %s\n", key, value);

	return policy_load_text(text, "t.ini", error);
}

static void test_lengths(void **state)
{
	g_autofree char *name = g_strnfill(41, 'n'), *text = NULL, *spaces = g_strnfill(POLICY_LINE_MAX, ' ');
	g_autoptr(GError) error = NULL;
	struct policy *p;

	(void)state;
	/* What inih would have cut at 200 bytes, and the longest value. */
	p = load_value("test", POLICY_VALUE_MAX - 2, 'x', NULL);
	assert_non_null(p);
	assert_int_equal(strlen(policy_setting(p, "gate", "test")->value), POLICY_VALUE_MAX - 2);
	policy_free(p);
	assert_null(load_value("test", POLICY_VALUE_MAX + 1, 'x', &error));
	check_error(error, POLICY_ERROR_SYNTAX, "t.ini:3: a value of more than");
	g_clear_error(&error);
	assert_null(load_value("test", POLICY_LINE_MAX, 'x', &error));
	check_error(error, POLICY_ERROR_SYNTAX, "t.ini:3: a line of 65539 bytes is too long");
	g_clear_error(&error);
	/* The longest line and section. */
	text = g_strdup_printf("%s\n[profile %s]\n[files %s]\ndeny = x\n", spaces, name, name);
	p = load_text(text);
	assert_string_equal(policy_name(p), name);
	check_action(p, "x", ACTION_DENY);
	policy_free(p);
}

static bool no_item(const struct policy_file_item *item, void *user, GError **error)
{
	(void)item, (void)user, (void)error;
	return true;
}

static void test_nul_byte(void **state)
{
	static const char text[] = "[profile a]\nx = y\0z\n";
	g_autoptr(GError) error = NULL;

	(void)state;
	assert_false(policy_file_parse(text, sizeof(text) - 1, "t.ini", no_item, NULL, &error));
	check_error(error, POLICY_ERROR_SYNTAX, "t.ini:2: a NUL byte");
}

static void test_values_are_not_cut(void **state)
{
	struct policy *p = load_text("\xef\xbb\xbf[profile t]\r\n# a comment\r\n  ; another\r\n\r\n[files t]\r\ndeny=a ; b , c\n"
				     "deny = re:x ; y # z = \\[\r\n  write : d:e\ndeny = a\\,b,\tq = r  ");
	static const struct path_case cases[] = {
		{ "a ; b", ACTION_DENY }, { "a", ACTION_READ }, { "c", ACTION_DENY }, { "x ; y # z = [", ACTION_DENY }, { "x", ACTION_READ },
		{ "d:e", ACTION_WRITE }, { "a,b", ACTION_DENY }, { "b", ACTION_READ }, { "q = r", ACTION_DENY }, { NULL, 0 },
	};

	(void)state;
	check_actions(p, cases);
	policy_free(p);
}

/* Deciding */

static void test_no_rule_is_read(void **state)
{
	struct policy *p = load_text("[profile a]\n");
	struct policy_reason reason;

	(void)state;
	check_action(p, "", ACTION_READ);
	check_action(p, "x/y", ACTION_READ);
	assert_false(policy_explain(p, policy_match_path(p, "x", false), &reason));
	assert_int_equal(reason.action, ACTION_READ);
	assert_null(reason.pattern);
	policy_free(p);
}

static void test_all_actions(void **state)
{
	struct policy *p = load_rules("write = w\nscratch = s\nask-change = c\nread = r\nask = a\nmask = m\ndeny = d\nhide = h");
	static const struct path_case cases[] = {
		{ "w", ACTION_WRITE }, { "s", ACTION_SCRATCH }, { "c", ACTION_ASK_CHANGE }, { "r", ACTION_READ }, { "a", ACTION_ASK }, { "x/m", ACTION_MASK },
		{ "x/y/d", ACTION_DENY }, { "h/below", ACTION_HIDE }, { NULL, 0 },
	};

	(void)state;
	check_actions(p, cases);
	assert_true(ACTION_WRITE < ACTION_SCRATCH && ACTION_SCRATCH < ACTION_ASK_CHANGE && ACTION_ASK_CHANGE < ACTION_READ && ACTION_READ < ACTION_ASK && ACTION_ASK < ACTION_MASK &&
		    ACTION_MASK < ACTION_DENY && ACTION_DENY < ACTION_HIDE);
	policy_free(p);
}

static void test_last_match_wins(void **state)
{
	struct policy *p = load_rules("write = **\ndeny = **/.env, **/.env.*\nwrite = **/.env.example\ndeny = **/secrets\ndeny = *.pem\n"
				      "deny = re:(^|/)id_(rsa|ed25519)$\ndeny = /c/top/**\nhide = **/vault\nread = **/.git/config, **/locked\n"
				      "write = /secrets/pub/ok, **/deep/down/ok.pem\ndeny = /src/gen/x/\nwrite = /src/gen/x/y/\ndeny = /src/gen/x/y/z");
	static const struct path_case cases[] = {
		{ "", ACTION_WRITE }, { "a", ACTION_WRITE }, { ".env", ACTION_DENY }, { "a/b/.env", ACTION_DENY }, { "a/.env.local", ACTION_DENY },
		{ ".env.example", ACTION_WRITE }, { "a/b/.env.example", ACTION_WRITE }, { ".env.example2", ACTION_DENY }, { ".env.examples/x", ACTION_DENY },
		{ ".env.d/.env.example", ACTION_WRITE }, { "secrets/", ACTION_DENY }, { "secrets/k", ACTION_DENY }, { "p/q/secrets/r/s", ACTION_DENY },
		{ "secrets/.env.example", ACTION_DENY }, { "x/a.pem", ACTION_DENY }, { "id_rsa", ACTION_DENY }, { "x/id_ed25519", ACTION_DENY },
		{ "id_rsa.c", ACTION_WRITE }, { "id_rsa/sub/x", ACTION_DENY }, { "c/top/", ACTION_WRITE }, { "c/top/k", ACTION_DENY },
		{ "c/top/a/k", ACTION_DENY }, { "x/c/top/k", ACTION_WRITE }, { "vault/", ACTION_HIDE }, { "a/vault/b/.env.example", ACTION_HIDE },
		{ "r/.git/config", ACTION_READ }, { "locked/sub/f", ACTION_READ }, { "locked/x.pem", ACTION_READ },
		/* Openings in what is denied, and closings in those, at any depth. */
		{ "secrets/pub/", ACTION_DENY }, { "secrets/pub/ok", ACTION_WRITE }, { "secrets/pub/ok/x/y", ACTION_WRITE }, { "secrets/pub/no", ACTION_DENY },
		{ "secrets/a/deep/down/ok.pem", ACTION_WRITE }, { "src/gen/x/", ACTION_DENY }, { "src/gen/x", ACTION_WRITE },
		{ "src/gen/x/y/", ACTION_WRITE }, { "src/gen/x/y/a", ACTION_WRITE }, { "src/gen/x/y/z", ACTION_DENY }, { "src/gen/x/y/z/q", ACTION_DENY },
		{ "src/gen/x/w", ACTION_DENY }, { NULL, 0 },
	};

	(void)state;
	check_actions(p, cases);
	policy_free(p);
}

static void test_awkward_names(void **state)
{
	struct policy *p = load_rules("write = **\ndeny = *.pem\ndeny = re:(^|/)\\.env$\nwrite = /ok\ndeny = re:^a.b");
	static const struct path_case cases[] = {
		{ "\n.pem", ACTION_DENY }, { "x\n/y.pem", ACTION_DENY }, { "\xff\xfe.pem", ACTION_DENY }, { "\xff/.env", ACTION_DENY },
		{ ".env\n", ACTION_WRITE }, { "x\n.env", ACTION_WRITE }, { "x\n/.env", ACTION_DENY }, { "a\nb", ACTION_DENY }, { "a\xff" "b", ACTION_DENY },
		{ "a\xc3\xa9" "b", ACTION_DENY }, { "\xed\xa0\x80/.env", ACTION_DENY }, { " .pem", ACTION_DENY }, { ".pem ", ACTION_WRITE }, { NULL, 0 },
	};

	(void)state;
	check_actions(p, cases);
	policy_free(p);
}

static void test_nocase_is_per_profile(void **state)
{
	struct policy *p = load_text("[profile a]\nnocase = yes\n[files a]\ndeny = .env, *.\xc3\xa9t\xc3\xa9, *secret*, *.key\n"
				     "[profile b]\nextends = a\n[files b]\ndeny = /Exact\n");
	static const struct path_case cases[] = {
		{ ".ENV", ACTION_DENY }, { "x/.Env", ACTION_DENY }, { "x.\xc3\x89T\xc3\x89", ACTION_DENY }, { "\xff.\xc3\x89T\xc3\x89", ACTION_DENY },
		{ "My\xc5\xbf" "ECRETs", ACTION_DENY }, { "x.\xe2\x84\xaa" "EY", ACTION_DENY }, { "A/SECRET/x", ACTION_DENY }, { "Exact", ACTION_DENY },
		{ "exact", ACTION_READ }, { "\xff" "exact", ACTION_READ }, { NULL, 0 },
	};

	(void)state;
	check_actions(p, cases);
	policy_free(p);
}

static void test_child_follows_from_parent(void **state)
{
	struct policy *p = load_rules("write = **\ndeny = a\nwrite = /a/b\nhide = c/");
	struct policy_match root = policy_match_child(p, POLICY_MATCH_NONE, "", true), a, b;

	(void)state;
	assert_int_equal(root.rule[POLICY_USER], 0);
	assert_int_equal(root.rule[POLICY_MANAGED], -1);
	a = policy_match_child(p, root, "a", true);
	assert_int_equal(a.rule[POLICY_USER], 1);
	b = policy_match_child(p, a, "a/b", true);
	assert_int_equal(b.rule[POLICY_USER], 2);
	assert_int_equal(policy_match_child(p, b, "a/b/a", false).rule[POLICY_USER], 2);
	/* A verdict that came with the parent stays, whatever the path: that is how a moved node keeps it. */
	assert_int_equal(policy_match_child(p, policy_match_child(p, root, "c", true), "elsewhere/x", false).rule[POLICY_USER], 3);
	policy_free(p);
}

static void test_may_open_below(void **state)
{
	static const struct {
		const char *rules;
		const char *dir;
		bool want;
		bool named;
	} cases[] = {
		{ "write = **\ndeny = d", "d", false },
		{ "write = **\ndeny = d\nwrite = /d/a/b", "d", true, true },
		{ "write = **\ndeny = d\nwrite = /d/a/b", "d/a", true, true },
		{ "write = **\ndeny = d\nwrite = /d/a/b", "d/c", false },
		{ "write = **\ndeny = d\nwrite = /e/a", "d", false },
		{ "write = **\ndeny = d\nwrite = *.example", "d", true },
		{ "write = **\ndeny = d\nhide = /d/x", "d", false },
		{ "write = **\nwrite = /d/x\ndeny = d", "d", false },
		{ "write = **\ndeny = d\nread = /d/x", "d", true, true },
		{ "write = **\nhide = d\ndeny = /d/x", "d", true, true },
		{ "write = **", "d", false },
		{ "deny = /d\nwrite = re:^d/x", "d", true },
		{ "write = /d/x", "d", true, true },
		{ "", "d", false },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct policy *p = load_rules(cases[i].rules);

		if (policy_may_open_below(p, policy_match_path(p, cases[i].dir, true), cases[i].dir) != cases[i].want)
			fail_msg("\"%s\" with: %s", cases[i].dir, cases[i].rules);
		if (policy_names_open_below(p, policy_match_path(p, cases[i].dir, true), cases[i].dir) != cases[i].named)
			fail_msg("named: \"%s\" with: %s", cases[i].dir, cases[i].rules);
		policy_free(p);
	}
}

static void test_names_closed_below(void **state)
{
	static const struct {
		const char *rules;
		const char *path;
		bool want;
	} cases[] = {
		{ "write = **\nread = /d/a/b", "d", true },
		{ "write = **\nread = /d/a/b", "d/a", true },
		{ "write = **\nread = /d/a/b", "d/a/b", false }, /* that is its own verdict */
		{ "write = **\nread = /d/a/b", "e", false },
		{ "write = **\ndeny = /d/**", "d", true },
		{ "write = **\nhide = d/", "d", false },
		{ "write = **\nscratch = /d/x", "d", false }, /* closes nothing */
		{ "read = /d/x\nwrite = **", "d", false },   /* does not hold */
		{ "write = **\ndeny = **/d/x", "d", false },  /* names no place */
		{ "write = **\ndeny = re:^d/x", "d", false },
		{ "write = **\nread = d\ndeny = /d/x", "d", true },
		{ "write = **\ndeny = d\nread = /d/x", "d", false },
		{ "", "d", false },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct policy *p = load_rules(cases[i].rules);

		if (policy_names_closed_below(p, policy_match_path(p, cases[i].path, false), cases[i].path) != cases[i].want)
			fail_msg("\"%s\" with: %s", cases[i].path, cases[i].rules);
		policy_free(p);
	}
}

/* "^(a+)+$" gives up on this path. It may close, and may not open. */
static void test_giving_up_fails_closed(void **state)
{
	static const struct {
		const char *rules;
		enum action want;
		int rule;
	} cases[] = {
		{ "write = **\ndeny = re:^(a+)+$", ACTION_DENY, 1 },
		{ "deny = **\nwrite = re:^(a+)+$", ACTION_DENY, 0 },
		{ "write = re:^(a+)+$", ACTION_READ, -1 },
		{ "deny = re:^(a+)+$\nwrite = *a*", ACTION_WRITE, 1 },
		{ "deny = re:^(a+)+$\nwrite = re:^(a|aa)+$", ACTION_DENY, 0 },
		{ "write = re:^(a+)+$\ndeny = re:^(a|aa)+$", ACTION_DENY, 1 },
		{ "hide = re:^(a+)+$\ndeny = re:^(a|aa)+$", ACTION_HIDE, 0 },
		{ "read = *a*\nscratch = re:^(a+)+$", ACTION_READ, 0 },
	};
	g_autofree char *path = g_strnfill(100, 'a');

	(void)state;
	path[99] = 'b';
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct policy *p = load_rules(cases[i].rules);
		struct policy_match m = policy_match_path(p, path, false);

		if (policy_action(p, m) != cases[i].want || m.rule[POLICY_USER] != cases[i].rule)
			fail_msg("got rule %d (%s) with: %s", m.rule[POLICY_USER], action_name(policy_action(p, m)), cases[i].rules);
		policy_free(p);
	}
}

/* Many rules */

static char *random_name(GRand *r)
{
	static const char *const pieces[] = { "a", "b", "env", ".", "_", "K", "s", "\xc3\xa9", "\xff", "main", "test" };
	GString *s = g_string_new(NULL);

	for (int i = g_rand_int_range(r, 1, 5); i > 0; i--)
		g_string_append(s, pieces[g_rand_int_range(r, 0, G_N_ELEMENTS(pieces))]);
	if (strspn(s->str, ".") == s->len)
		g_string_append_c(s, 'x');
	return g_string_free(s, FALSE);
}

static char *random_pattern(GRand *r)
{
	static const char *const forms[] = { "%s", "*%s", "%s*", "*%s*", "/%s", "/%s/**", "%s/*", "**/%s/?", "%s?*", "re:%s", "re:^%s", "re:(x|%s)$",
					     "re:%s?/", "%s/", "[ab]*%s" };
	g_autofree char *name = random_name(r);
	GString *s = g_string_new(NULL);

	g_string_append(s, forms[g_rand_int_range(r, 0, G_N_ELEMENTS(forms))]);
	g_string_replace(s, "%s", name, 0);
	return g_string_free(s, FALSE);
}

/* The index never loses a rule. */
static void test_index_against_slow_search(void **state)
{
	g_autoptr(GRand) r = g_rand_new_with_seed(3);
	unsigned hits = 0;

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct rule_list *l = rule_list_new();

		for (int j = g_rand_int_range(r, 0, 60); j > 0; j--) {
			g_autofree char *text = random_pattern(r);
			struct rule rule = { .action = (enum action)g_rand_int_range(r, 0, ACTION_COUNT) };

			rule.pattern = pattern_new(text, g_rand_boolean(r), NULL);
			if (rule.pattern)
				rule_list_add(l, rule);
		}
		rule_list_seal(l);
		for (int j = 0; j < 200; j++) {
			g_autofree char *a = random_name(r), *b = random_name(r), *path = g_strconcat(a, "/", b, NULL);
			int floor = g_rand_int_range(r, -1, MAX(rule_list_count(l), 1)), fast, slow;
			struct pattern_subject s;

			pattern_subject_init(&s, path, strlen(path), g_rand_boolean(r));
			fast = rule_list_last_match(l, floor, ACTION_READ, &s);
			slow = rule_list_last_match_slowly(l, floor, ACTION_READ, &s);
			if (fast != slow)
				fail_msg("\"%s\": rule %d by index, %d one by one (%s)", path, fast, slow,
					 pattern_text(rule_list_get(l, MAX(fast, slow))->pattern));
			hits += slow > floor;
			pattern_subject_clear(&s);
		}
		rule_list_free(l);
	}
	assert_in_range(hits, 2000, 8000);
}

static void test_ten_thousand_rules(void **state)
{
	g_autoptr(GString) rules = g_string_new("write = **\n");
	struct policy *p;

	(void)state;
	for (int i = 0; i < 10000; i++)
		g_string_append_printf(rules, i % 4 == 0 ? "deny = **/n%d.key\n" : i % 4 == 1 ? "hide = /d%d/**\n" : i % 4 == 2 ? "read = *.x%d\n" :
				       "deny = re:(^|/)r%d(a|b)$\n", i);
	p = load_rules(rules->str);
	check_action(p, "a/b/n8000.key", ACTION_DENY);
	check_action(p, "d8001/x/y", ACTION_HIDE);
	check_action(p, "q/y.x9998", ACTION_READ);
	check_action(p, "q/r9999b", ACTION_DENY);
	check_action(p, "q/r9999c", ACTION_WRITE);
	check_action(p, "q/n8001.key", ACTION_WRITE);
	policy_free(p);
}

static void test_too_many_rules(void **state)
{
	g_autoptr(GString) text = g_string_new("[profile a]\n[files a]\n");
	g_autoptr(GError) error = NULL;
	struct policy *p;

	(void)state;
	for (int i = 0; i < RULE_LIST_MAX; i++)
		g_string_append_printf(text, "deny = f%d\n", i);
	p = load_text(text->str);
	assert_int_equal(policy_match_path(p, "f32766", false).rule[POLICY_USER], 32766);
	policy_free(p);
	g_string_append(text, "deny = last\n");
	assert_null(policy_load_text(text->str, "t.ini", &error));
	check_error(error, POLICY_ERROR_INVALID, "t.ini:32770: more than 32767 rules");
}

static void *match_many(void *data)
{
	const struct policy *p = data;
	uintptr_t wrong = 0;

	for (int i = 0; i < 3000; i++) {
		g_autofree char *path = g_strdup_printf("\xc3\xa9/%d/n%d.KEY", i, i % 7);

		wrong += policy_action(p, policy_match_path(p, path, false)) != (i % 7 == 3 ? ACTION_HIDE : ACTION_DENY);
	}
	return (void *)wrong;
}

static void test_threads(void **state)
{
	struct policy *p = load_text("[profile a]\nnocase = yes\n[files a]\ndeny = re:\xc3\x89/.*\\.key$\nhide = */n3.k*y\nhide = n3.k*[y]");
	GThread *threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		threads[i] = g_thread_new(NULL, match_many, p);
	for (int i = 0; i < 4; i++)
		assert_null(g_thread_join(threads[i]));
	policy_free(p);
}

/* Profiles and places */

static void test_extends(void **state)
{
	/* Parents first, in order, each once, though both b and c extend a. */
	struct policy *p = load_text("[profile a]\n[files a]\nwrite = x\ndeny = y\n[profile b]\nextends = a\n[files b]\nhide = x\n"
				     "[profile c]\nextends = a\n[files c]\nread = y\n[profile d]\ndescription = all of it\nextends = b , c\n"
				     "[files d]\nmask = z\n");
	struct policy_reason why;

	(void)state;
	assert_string_equal(policy_name(p), "d");
	assert_string_equal(policy_description(p), "all of it");
	check_action(p, "x", ACTION_HIDE);
	check_action(p, "y", ACTION_READ);
	check_action(p, "z", ACTION_MASK);
	assert_true(policy_explain(p, policy_match_path(p, "x", false), &why));
	assert_string_equal(why.profile, "b");
	assert_int_equal(why.line, 8);
	policy_free(p);
	/* The last one that no other extends. */
	p = load_text("[profile a]\nextends = b\n[files a]\nhide = x\n[profile b]\n");
	assert_string_equal(policy_name(p), "a");
	policy_free(p);
}

static void test_extends_too_deep(void **state)
{
	g_autoptr(GString) text = g_string_new("[profile p0]\n");
	g_autoptr(GError) error = NULL;

	(void)state;
	for (int i = 1; i < 100; i++)
		g_string_append_printf(text, "[profile p%d]\nextends = p%d\n", i, i - 1);
	assert_null(policy_load_text(text->str, "t.ini", &error));
	check_error(error, POLICY_ERROR_INVALID, "deeper than 64");
}

/* The managed layer of another day, and the user's as it was. */
static void test_managed_layer_is_replaced(void **state)
{
	const char *dir = *state;
	struct policy *then, *now, *both;
	g_autofree char *text = NULL, *without = NULL, *plain = NULL;

	put(dir, "user/u.ini", "[profile u]\n[files u]\nwrite = **\nread = own\n[limits u]\ntime = 1h\n");
	put(dir, "shipped/d.ini", "[profile workspace-edit-no-net]\n[files workspace-edit-no-net]\nhide = **\n");
	then = must_load_dir(dir, "u");
	put(dir, "managed/m.ini", "[profile m]\n[files m]\nwrite = **\ndeny = shut\n");
	now = must_load_dir(dir, NULL);
	text = policy_to_ini_renewed(then, now);
	both = policy_load_text(text, "t.ini", NULL);
	assert_non_null(both);
	assert_int_equal(policy_action(both, policy_match_path(both, "shut", false)), ACTION_DENY);
	assert_int_equal(policy_action(both, policy_match_path(both, "own", false)), ACTION_READ);
	assert_int_equal(policy_action(both, policy_match_path(both, "x", false)), ACTION_WRITE);
	/* And taken away again. */
	without = policy_to_ini_renewed(both, then);
	plain = policy_to_ini(then);
	assert_string_equal(without, plain);
	policy_free(then);
	policy_free(now);
	policy_free(both);
}

/* The same of the workspace's own file. */
static void test_workspace_layer_is_replaced(void **state)
{
	const char *dir = *state;
	struct policy *then, *now, *both;
	g_autofree char *text = NULL, *rules = NULL, *none = NULL;

	put(dir, "user/u.ini", "[profile u]\n[files u]\nwrite = **\nread = own\n");
	put(dir, "shipped/d.ini", "[profile workspace-edit-no-net]\n[files workspace-edit-no-net]\nhide = **\n");
	put(dir, "work/.sbxfs.ini", "[profile w]\n[files w]\nread = before\n");
	then = must_load_dir(dir, "u");
	put(dir, "work/.sbxfs.ini", "[profile w]\nnocase = yes\n[files w]\nwrite = own\ndeny = shut, x=y\n[limits w]\ntime = 1h\n");
	now = must_load_dir(dir, NULL);
	text = policy_to_ini_renewed(then, now);
	both = policy_load_text(text, "t.ini", NULL);
	assert_non_null(both);
	assert_int_equal(policy_action(both, policy_match_path(both, "Shut", false)), ACTION_DENY);
	assert_int_equal(policy_action(both, policy_match_path(both, "own", false)), ACTION_READ);
	assert_int_equal(policy_action(both, policy_match_path(both, "before", false)), ACTION_WRITE);
	/* What it says, for people. */
	rules = policy_layer_text(both, POLICY_WORKSPACE);
	assert_string_equal(rules, "\n[files workspace]\nnocase = yes\nwrite = own\ndeny = shut\ndeny = x=y\n\n[limits workspace]\ntime = 1h\n");
	none = policy_layer_text(both, POLICY_MANAGED);
	assert_string_equal(none, "");
	policy_free(then);
	policy_free(now);
	policy_free(both);
}

static void test_search_order(void **state)
{
	const char *dir = *state;
	struct policy *p;

	put(dir, "shipped/a.ini", "[profile a]\ndescription = shipped\n[profile base]\n[files base]\ndeny = s\n");
	put(dir, "shipped/z.ini", "[profile z]\nextends = base\n[files z]\nread = q\n");
	p = must_load_dir(dir, "a");
	assert_string_equal(policy_description(p), "shipped");
	policy_free(p);
	put(dir, "managed/m.ini", "[profile a]\ndescription = managed\n");
	p = must_load_dir(dir, "a");
	assert_string_equal(policy_description(p), "managed");
	policy_free(p);
	put(dir, "user/u.ini", "[profile a]\ndescription = user\n[profile base]\nextends = base\n[files base]\nhide = u\n");
	p = must_load_dir(dir, "a");
	assert_string_equal(policy_description(p), "user");
	policy_free(p);
	/* A profile of the same name further on can be extended, and what is shipped extends what is shipped. */
	p = must_load_dir(dir, "base");
	check_action(p, "u", ACTION_HIDE);
	check_action(p, "s", ACTION_DENY);
	policy_free(p);
	p = must_load_dir(dir, "z");
	check_action(p, "u", ACTION_READ);
	check_action(p, "s", ACTION_DENY);
	policy_free(p);
	put(dir, "config", "[profile a]\ndescription = config\n");
	p = must_load_dir(dir, "a");
	assert_string_equal(policy_description(p), "config");
	policy_free(p);
	must_not_load_dir(dir, "b", POLICY_ERROR_NOT_FOUND, "no profile \"b\"; there are: a, a, base, a, a, base, z");
}

static void test_config_may_be_a_directory(void **state)
{
	struct policy *p;

	put(*state, "config/one.ini", "[profile a]\n[files a]\ndeny = x\n");
	put(*state, "config/not-a-policy.txt", "[[[");
	put(*state, "config/.hidden.ini", "[[[");
	p = must_load_dir(*state, "a");
	check_action(p, "x", ACTION_DENY);
	policy_free(p);
}

static void test_profile_as_a_file(void **state)
{
	g_autofree char *cwd = g_get_current_dir(), *path = g_build_filename(*state, "my.ini", NULL), *none = g_build_filename(*state, "none.ini", NULL);
	struct policy_reason why;
	struct policy *p;

	put(*state, "shipped/base.ini", "[profile base]\n[files base]\ndeny = s\n");
	put(*state, "my.ini", "[profile one]\n[profile two]\nextends = one, base\n[files two]\nwrite = w\n");
	p = must_load_dir(*state, path);
	assert_string_equal(policy_name(p), "two");
	check_action(p, "s", ACTION_DENY);
	assert_true(policy_explain(p, policy_match_path(p, "w", false), &why));
	assert_string_equal(why.file, path);
	assert_string_equal(why.pattern, "w");
	assert_int_equal(why.line, 5);
	policy_free(p);
	must_not_load_dir(*state, none, POLICY_ERROR_NOT_FOUND, "none.ini: cannot be read");
	/* By a relative name: the origin is absolute. */
	assert_int_equal(chdir(*state), 0);
	p = must_load_dir(*state, "my.ini");
	assert_int_equal(chdir(cwd), 0);
	assert_true(policy_explain(p, policy_match_path(p, "w", false), &why));
	assert_string_equal(why.file, path);
	policy_free(p);
}

static void test_unreadable_files(void **state)
{
	const char *dir = *state;
	g_autofree char *fifo = g_build_filename(dir, "fifo.ini", NULL), *big = g_strnfill(POLICY_FILE_MAX + 1, '\n');
	g_autofree char *user = g_build_filename(dir, "user", NULL), *path = g_build_filename(dir, "big.ini", NULL), *sub = NULL;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	must_not_load_dir(dir, fifo, POLICY_ERROR_UNREADABLE, "not a regular file");
	must_not_load_dir(dir, dir, POLICY_ERROR_UNREADABLE, "not a regular file");
	put(dir, "big.ini", big);
	must_not_load_dir(dir, path, POLICY_ERROR_UNREADABLE, "larger than 1 MiB");
	put(dir, "shipped/a.ini", "[profile a]\n");
	/* Another file in the way of the search. */
	put(dir, "user/broken.ini", "[profile b]\nx = y\n");
	must_not_load_dir(dir, "a", POLICY_ERROR_INVALID, "user/broken.ini:2: unknown key \"x\"");
	sub = g_build_filename(user, "broken.ini", NULL);
	assert_int_equal(g_unlink(sub), 0);
	assert_int_equal(symlink("nowhere", sub), 0);
	must_not_load_dir(dir, "a", POLICY_ERROR_NOT_FOUND, "user/broken.ini: cannot be read");
	assert_int_equal(g_unlink(sub), 0);
	if (geteuid() != 0) {
		assert_int_equal(chmod(user, 0), 0);
		must_not_load_dir(dir, "a", POLICY_ERROR_UNREADABLE, "user: cannot be read");
		assert_int_equal(chmod(user, 0700), 0);
	}
	assert_int_equal(g_rmdir(user), 0);
	put(dir, "user", "a file");
	must_not_load_dir(dir, "a", POLICY_ERROR_UNREADABLE, "user: cannot be read");
}

static void test_missing_config_is_an_error(void **state)
{
	struct policy_sources s;
	g_autoptr(GError) error = NULL;

	put(*state, "shipped/a.ini", "[profile a]\n");
	use_dir(&s, *state, "a");
	s.config = g_build_filename(*state, "nowhere", NULL);
	assert_null(policy_load(&s, &error));
	check_error(error, POLICY_ERROR_NOT_FOUND, "nowhere: cannot be read");
	policy_sources_clear(&s);
}

static void test_two_profiles_of_one_name(void **state)
{
	put(*state, "shipped/a.ini", "[profile a]\n");
	put(*state, "shipped/b.ini", "[profile b]\n\n[profile a]\n");
	must_not_load_dir(*state, "a", POLICY_ERROR_INVALID, "shipped/b.ini:3: profile \"a\" is also in");
	policy_free(must_load_dir(*state, "b"));
}

static void test_circle_over_files(void **state)
{
	put(*state, "shipped/a.ini", "[profile a]\nextends = b\n");
	put(*state, "shipped/b.ini", "[profile b]\nextends = c\n[profile c]\nextends = b\n");
	must_not_load_dir(*state, "a", POLICY_ERROR_INVALID, "shipped/b.ini:4: \"extends\" runs in a circle: b -> c -> b");
}

static void test_init_reads_the_environment(void **state)
{
	struct policy_sources s;

	(void)state;
	g_setenv("SBXFS_CONFIG", "/some/where", TRUE);
	policy_sources_init(&s, "p", NULL);
	assert_string_equal(s.profile, "p");
	assert_null(s.workspace);
	assert_string_equal(s.config, "/some/where");
	assert_string_equal(s.managed_dir, "/etc/sbxfs");
	assert_true(g_str_has_suffix(s.user_dir, "/sbxfs"));
	assert_non_null(s.shipped_dir);
	policy_sources_clear(&s);
	g_unsetenv("SBXFS_CONFIG");
}

/* Layers */

static void test_layers_can_only_close(void **state)
{
	const char *dir = *state;
	struct policy_reason why;
	struct policy *p;

	put(dir, "shipped/u.ini", "[profile u]\n[files u]\nwrite = **\ndeny = *.key\nread = r\n");
	put(dir, "managed/m.ini", "[profile common]\n[files common]\nhide = /m/deep\n[profile org]\nextends = common\n[files org]\n"
				  "deny = /m\nwrite = /m/open, *.key\nhide = both\n");
	put(dir, "work/.sbxfs.ini", "[profile w]\n[files w]\nwrite = **\nscratch = build/\nmask = *.csv\ndeny = both, r\n");
	p = must_load_dir(dir, "u");
	check_actions(p, (const struct path_case[]){
		{ "", ACTION_WRITE }, { "x", ACTION_WRITE }, { "a.key", ACTION_DENY }, { "m/", ACTION_DENY }, { "m/x", ACTION_DENY },
		{ "m/open", ACTION_WRITE }, { "m/open/a.key", ACTION_DENY }, { "m/deep", ACTION_DENY }, { "a.csv", ACTION_MASK },
		{ "both", ACTION_HIDE }, { "r", ACTION_DENY }, { "build/x", ACTION_SCRATCH }, { NULL, 0 },
	});
	assert_string_equal(policy_layer_profile(p, POLICY_MANAGED), "org");
	assert_string_equal(policy_layer_profile(p, POLICY_WORKSPACE), "w");
	assert_true(policy_explain(p, policy_match_path(p, "both", false), &why));
	assert_int_equal(why.layer, POLICY_MANAGED);
	assert_string_equal(why.profile, "org");
	assert_int_equal(why.line, 9);
	assert_true(policy_explain(p, policy_match_path(p, "r", false), &why));
	assert_int_equal(why.layer, POLICY_WORKSPACE);
	assert_true(g_str_has_suffix(why.file, "work/.sbxfs.ini"));
	/* /m/open opens in the one layer that closed /m; a layer that stays closed keeps all closed. */
	assert_true(policy_may_open_below(p, policy_match_path(p, "m", true), "m"));
	assert_false(policy_may_open_below(p, policy_match_path(p, "r", true), "r"));
	policy_free(p);
}

/* A yes takes away what asks, and nothing else. */
static void test_what_a_yes_opens(void **state)
{
	const char *dir = *state;
	struct policy *p;

	put(dir, "shipped/u.ini", "[profile u]\n[files u]\nask-change = **\nask = s, m, w, d\nscratch = t\n");
	put(dir, "managed/m.ini", "[profile org]\n[files org]\nread = s\nask = r\nmask = m\n");
	put(dir, "work/.sbxfs.ini", "[profile w]\n[files w]\nask = t\nhide = d\n");
	p = must_load_dir(dir, "u");
	for (size_t i = 0; i < 7; i++) {
		static const struct {
			const char *path;
			enum action action, granted;
		} cases[] = {
			{ "x", ACTION_ASK_CHANGE, ACTION_WRITE }, { "s", ACTION_ASK, ACTION_READ },     { "r", ACTION_ASK, ACTION_WRITE },
			{ "m", ACTION_MASK, ACTION_MASK },        { "w", ACTION_ASK, ACTION_WRITE },    { "t", ACTION_ASK, ACTION_SCRATCH },
			{ "d", ACTION_HIDE, ACTION_HIDE },
		};
		struct policy_match m = policy_match_path(p, cases[i].path, false);

		assert_int_equal(policy_action(p, m), cases[i].action);
		assert_int_equal(policy_action_granted(p, m), cases[i].granted);
	}
	policy_free(p);
}

static void test_ask_settings(void **state)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
		{ "[ask u]\ntimeout = 0\n", "timeout" },        { "[ask u]\ntimeout = 5 m\n", "timeout" },
		{ "[ask u]\ntimeout = 1w\n", "timeout" },       { "[ask u]\ntimeout = 367d\n", "timeout" },
		{ "[ask u]\non_ask = say 'it\n", "on_ask" },    { "[ask u]\nwhen = now\n", "unknown key" },
		{ "[limits u]\ndeletions = 0\n", "deletions" }, { "[limits u]\ndeletions_per_minute = 3/m\n", "deletions_per_minute" },
	};
	const char *dir = *state;
	struct policy *p;

	put(dir, "managed/m.ini", "[profile org]\n[ask org]\ntimeout = 90s\n[limits org]\ndeletions = 5\n");
	put(dir, "shipped/u.ini", "[profile u]\n[ask u]\ntimeout = 5m\non_ask = say 'a, b' --now\n[limits u]\ndeletions = 7\n");
	p = must_load_dir(dir, "u");
	assert_string_equal(policy_layer_setting(p, POLICY_MANAGED, "ask", "timeout")->value, "90s");
	assert_string_equal(policy_setting(p, "ask", "on_ask")->value, "say 'a, b' --now");
	assert_null(policy_layer_setting(p, POLICY_WORKSPACE, "limits", "deletions"));
	{
		g_autofree char *text = policy_to_ini(p);
		g_autoptr(GError) error = NULL;
		struct policy *again = policy_load_text(text, "merged", &error);

		assert_null(error);
		assert_string_equal(policy_setting(again, "ask", "timeout")->value, "5m");
		policy_free(again);
	}
	policy_free(p);
	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
		g_autofree char *text = g_strconcat("[profile u]\n", bad[i].text, NULL);

		put(dir, "shipped/u.ini", text);
		must_not_load_dir(dir, "u", POLICY_ERROR_INVALID, bad[i].message);
	}
	/* The workspace may lower a limit, and has no say in who answers. */
	put(dir, "shipped/u.ini", "[profile u]\n[files u]\nwrite = **\n");
	put(dir, "work/.sbxfs.ini", "[profile w]\n[limits w]\ndeletions = 1\n");
	p = must_load_dir(dir, "u");
	assert_string_equal(policy_layer_setting(p, POLICY_WORKSPACE, "limits", "deletions")->value, "1");
	policy_free(p);
	put(dir, "work/.sbxfs.ini", "[profile w]\n[ask w]\non_ask = sh -c 'echo allow always'\n");
	must_not_load_dir(dir, "u", POLICY_ERROR_INVALID, ".sbxfs.ini:3: [ask]");
	put(dir, "work/.sbxfs.ini", "[profile v]\n[ask v]\ntimeout = 1\n[profile w]\nextends = v\n");
	must_not_load_dir(dir, "u", POLICY_ERROR_INVALID, ".sbxfs.ini:3: [ask]");
}

static void test_second_layer_keeps_closed(void **state)
{
	struct policy *p;

	put(*state, "shipped/u.ini", "[profile u]\n[files u]\nwrite = **\ndeny = d\nwrite = /d/x\n");
	put(*state, "work/.sbxfs.ini", "[profile w]\n[files w]\ndeny = d\n");
	p = must_load_dir(*state, "u");
	assert_false(policy_may_open_below(p, policy_match_path(p, "d", true), "d"));
	check_action(p, "d/x", ACTION_DENY);
	policy_free(p);
}

static void test_bad_layers(void **state)
{
	const char *dir = *state;
	g_autofree char *file = g_build_filename(dir, "work", ".sbxfs.ini", NULL), *elsewhere = g_build_filename(dir, "elsewhere", NULL);

	put(dir, "shipped/u.ini", "[profile u]\n[profile mine]\n");
	put(dir, "user/x.ini", "[profile of-the-user]\n");
	put(dir, "work/.sbxfs.ini", "[profile w]\n[files w]\nopen = x\n");
	must_not_load_dir(dir, "u", POLICY_ERROR_INVALID, "work/.sbxfs.ini:3: unknown action \"open\"");
	put(dir, "work/.sbxfs.ini", "");
	must_not_load_dir(dir, "u", POLICY_ERROR_INVALID, "work/.sbxfs.ini: no profile");
	put(dir, "work/.sbxfs.ini", "[profile w]\nextends = of-the-user\n");
	must_not_load_dir(dir, "u", POLICY_ERROR_NOT_FOUND, "work/.sbxfs.ini:2: extends: no profile \"of-the-user\"");
	put(dir, "elsewhere", "[profile w]\n");
	assert_int_equal(g_unlink(file), 0);
	assert_int_equal(symlink(elsewhere, file), 0);
	must_not_load_dir(dir, "u", POLICY_ERROR_UNREADABLE, "work/.sbxfs.ini: cannot be read: it is a symbolic link");
	assert_int_equal(g_unlink(file), 0);
	policy_free(must_load_dir(dir, "u"));
	put(dir, "managed/b.ini", "[profile m1]\n[profile m2]\n");
	must_not_load_dir(dir, "u", POLICY_ERROR_INVALID, "managed/b.ini:2: a second managed profile \"m2\", the first is \"m1\"");
	put(dir, "managed/b.ini", "[profile m1]\nextends = m2\n[profile m2]\nextends = m1\n");
	must_not_load_dir(dir, "u", POLICY_ERROR_INVALID, "runs in a circle");
	put(dir, "managed/b.ini", "[profile m1]\nextends = of-the-user\n");
	must_not_load_dir(dir, "u", POLICY_ERROR_NOT_FOUND, "managed/b.ini:2: extends: no profile \"of-the-user\"");
	put(dir, "managed/b.ini", "");
	must_not_load_dir(dir, "u", POLICY_ERROR_INVALID, "managed/b.ini: no profile");
}

/* Settings */

static void test_settings(void **state)
{
	struct policy *p = load_text("[profile a]\n[network a]\ndefault = deny\nallow = x.org, *.y.org\nallow = z.org\n[limits a]\nmemory = 4G\n"
				     "[profile b]\nextends = a\n[network b]\ndefault = ask\n[gate b]\ntest = make check ; true\n");
	const struct policy_setting *s = policy_setting(p, "network", "default");
	unsigned n;

	(void)state;
	assert_string_equal(s->value, "ask");
	assert_string_equal(s->profile, "b");
	assert_string_equal(s->file, "t.ini");
	assert_int_equal(s->line, 11);
	assert_string_equal(policy_setting(p, "limits", "memory")->value, "4G");
	assert_string_equal(policy_setting(p, "gate", "test")->value, "make check ; true");
	assert_null(policy_setting(p, "gate", "checks"));
	s = policy_settings(p, &n);
	assert_int_equal(n, 6);
	assert_string_equal(s[3].value, "x.org, *.y.org");
	assert_string_equal(s[4].value, "z.org");
	policy_free(p);
}

static void test_settings_of_a_run(void **state)
{
	struct policy *p = load_text("[profile a]\n[limits a]\ncpu = 1m\nfiles = 100\noutput = 1M\n[run a]\nhome.read = .cargo/bin\n"
				     "home.read = .nvm, .rustup\nhome.write = .cache/pip\nenvironment = API_KEY\n");
	g_autofree char *text = policy_to_ini(p);
	struct policy *again = policy_load_text(text, "merged", NULL);
	const struct policy_setting *s;
	unsigned n;

	(void)state;
	assert_non_null(again);
	s = policy_settings(again, &n);
	assert_int_equal(n, 7);
	assert_string_equal(s[3].section, "run");
	assert_string_equal(s[3].value, ".cargo/bin");
	assert_string_equal(s[4].value, ".nvm, .rustup");
	assert_string_equal(s[5].key, "home.write");
	assert_string_equal(policy_setting(again, "limits", "output")->value, "1M");
	policy_free(again);
	policy_free(p);
}

/* The merged text */

static void check_same_reason(const struct policy *a, const struct policy *b, const char *path)
{
	struct policy_match m = policy_match_path(a, path, true), n = policy_match_path(b, path, true);
	struct policy_reason x, y;

	assert_memory_equal(&m, &n, sizeof(m));
	assert_int_equal(policy_action(a, m), policy_action(b, n));
	if (policy_explain(a, m, &x) != policy_explain(b, n, &y))
		fail_msg("\"%s\" lost its rule", path);
	assert_int_equal(x.layer, y.layer);
	assert_int_equal(x.line, y.line);
	if (g_strcmp0(x.pattern, y.pattern) || g_strcmp0(x.profile, y.profile) || g_strcmp0(x.file, y.file))
		fail_msg("\"%s\": %s %s %s became %s %s %s", path, x.pattern, x.profile, x.file, y.pattern, y.profile, y.file);
}

static void check_round_trip(const struct policy *p, const char *const *paths)
{
	g_autofree char *text = policy_to_ini(p), *again = NULL;
	g_autoptr(GError) error = NULL;
	struct policy *q = policy_load_text(text, "/store/policy.ini", &error);
	const struct policy_setting *s, *t;
	unsigned n, m;

	if (!q)
		fail_msg("%s\n%s", error->message, text);
	again = policy_to_ini(q);
	assert_string_equal(text, again);
	for (; *paths; paths++)
		check_same_reason(p, q, *paths);
	assert_string_equal(policy_name(p), policy_name(q));
	assert_int_equal(g_strcmp0(policy_description(p), policy_description(q)), 0);
	s = policy_settings(p, &n);
	t = policy_settings(q, &m);
	assert_int_equal(n, m);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(s[i].layer, t[i].layer);
		assert_string_equal(s[i].section, t[i].section);
		assert_string_equal(s[i].key, t[i].key);
		assert_string_equal(s[i].value, t[i].value);
		assert_string_equal(s[i].profile, t[i].profile);
		assert_string_equal(s[i].file, t[i].file);
		assert_int_equal(s[i].line, t[i].line);
	}
	policy_free(q);
}

static void test_round_trip(void **state)
{
	static const char *const paths[] = { "", "x", "a.KEY", "a.key", "m", "m/open/z", "a,b", "q = r", "re:x", "B", "b", "\xff", "h\xc3\x89", "A;b", NULL };
	const char *dir = *state;
	g_autofree char *odd = g_build_filename(dir, "odd: \xff na\\me\n 7.ini", NULL);
	struct policy *p;

	put(dir, "shipped/base.ini", "[profile base]\nnocase = yes\n[files base]\ndeny = *.key, h\xc3\xa9\n[limits base]\ndisk = 2G\n");
	put(dir, "managed/m.ini", "[profile org]\n[files org]\ndeny = /m\nwrite = /m/open\n[network org]\ndeny = evil.org\n");
	put(dir, "work/.sbxfs.ini", "[profile w]\nnocase = yes\n[files w]\nmask = b\n");
	put(dir, "odd: \xff na\\me\n 7.ini", "[profile user]\ndescription = a ; b # c\nextends = base\n[files user]\n"
	    "write = **\ndeny = a\\,b, q = r, \\re:x, \xff\ndeny = re:^A;b$\n[network user]\ndefault = deny\nallow = a, b\nallow = c\n");
	p = must_load_dir(dir, odd);
	check_round_trip(p, paths);
	policy_free(p);
	/* Merged text is no profile: the layers it speaks of would not be from where they say. */
	p = must_load_dir(dir, odd);
	{
		g_autofree char *text = policy_to_ini(p), *path = g_build_filename(dir, "merged.ini", NULL);

		put(dir, "merged.ini", text);
		must_not_load_dir(dir, path, POLICY_ERROR_INVALID, "merged.ini:");
	}
	policy_free(p);
}

static void test_damaged_merged_text(void **state)
{
	struct policy *p = load_rules("write = **\ndeny = *.key\nhide = h");
	g_autofree char *text = policy_to_ini(p);
	g_autoptr(GError) error = NULL;
	size_t len = strlen(text);
	static const struct {
		const char *from, *to, *words;
	} cases[] = {
		{ "deny = ", "dney = ", "unknown action" }, { "*.key", "*.{key", "braces" }, { "[files user]", "[files usr]", "unknown section" },
		{ "[profile user]", "[profile workspace]", "[files user] without a name" }, { "name = t", "name =", "unknown or repeated key" },
		{ ";@ t.ini:4 t", ";@ t.ini t", "bad origin" }, { "write = **", "nocase = maybe", "bad \"nocase\"" },
		{ "[files user]", "[network user]", "unknown section or key" }, { "[files user]", "[else user]", "unknown section" },
	};

	(void)state;
	assert_null(policy_load_text("; sbxfs merged policy 1\n[profile workspace]\nname = w\n\n; end of policy\n", "p", &error));
	check_error(error, POLICY_ERROR_INVALID, "no [profile user]");
	/* Cut anywhere: never a policy with fewer rules. */
	for (size_t i = strlen("; sbxfs merged policy 1\n"); i < len; i++) {
		g_autofree char *cut = g_strndup(text, i);
		struct policy *q = policy_load_text(cut, "p", NULL);

		if (q)
			fail_msg("it loads when cut to %zu of %zu bytes", i, len);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GString) s = g_string_new(text);

		g_clear_error(&error);
		assert_int_equal(g_string_replace(s, cases[i].from, cases[i].to, 1), 1);
		assert_null(policy_load_text(s->str, "p", &error));
		if (!strstr(error->message, cases[i].words) || !g_str_has_prefix(error->message, "p:"))
			fail_msg("want \"%s\", got: %s", cases[i].words, error->message);
	}
	policy_free(p);
}

/* The shipped profiles */

static struct policy *load_shipped(const char *name)
{
	struct policy_sources s = { .profile = g_strdup(name), .shipped_dir = g_strdup(shipped_dir) };
	g_autoptr(GError) error = NULL;
	struct policy *p = policy_load(&s, &error);

	policy_sources_clear(&s);
	if (!p)
		fail_msg("%s", error->message);
	return p;
}

/* O: what is open in the profile at hand; D: denied; R: read. */
static const char *const shipped_open[] = {
	"", "a", "src/main.c", "src/environment.c", "a/.environment", ".env.example", "a/b/.env.sample", ".env.template", "example.env",
	"id_token.py", "src/id_map.c", "README.md", "keys/x", "src/monkey.c", "x/docker/config.json", ".gitignore", ".gitattributes", "x/.npmignore",
	"sub/.sbxfs.ini", NULL
};
static const char *const shipped_denied[] = {
	".env", "a/b/.env", ".env.local", "x/.env.production", ".env.example.local", ".env.example2", ".env.d/x", ".ENV", "prod.env", ".envrc",
	"a.pem", "x/server.KEY", "id_rsa", "x/id_ed25519", "id_rsa.pub", "id_work", "a.p12", "a.keystore", "my-secret.txt", "secrets/x", "x/secret/y/z",
	"credentials", "x/.git-credentials", "gcloud-credential.json", ".netrc", ".npmrc", ".pypirc", ".aws/credentials", "x/.kube/config", ".azure/x",
	".config/gcloud/x", ".docker/config.json", "x/.docker/config.json", ".ssh/known_hosts", "service-account-7.json", "terraform.tfstate",
	"\xff.pem", "a\n/.env", ".github/secret.yml", ".vscode/.env", ".claude/x.pem", "secrets/.git/config", NULL
};
static const char *const shipped_control[] = {
	".git/", ".git", "x/.git/config", ".git/refs/heads/fix-secret-leak", ".git/refs/heads/my-credential-x", ".devcontainer/x", ".codex/x",
	".claude/settings.json", ".vscode/tasks.json", ".github/workflows/x.yml", "sub/.github/x", ".sbxfs.ini", NULL
};

static void test_shipped_profiles(void **state)
{
	static const struct {
		const char *name;
		enum action open;
		const char *network;
	} cases[] = {
		{ "workspace-edit-no-net", ACTION_WRITE, "deny" },
		{ "workspace-edit-net-allowlist", ACTION_WRITE, "deny" },
		{ "read-only", ACTION_READ, "deny" },
		{ "privileged-manual", ACTION_ASK_CHANGE, "ask" },
		{ NULL, ACTION_WRITE, "deny" }, /* the default */
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct policy *p = load_shipped(cases[i].name);

		for (const char *const *s = shipped_open; *s; s++)
			check_action(p, *s, cases[i].open);
		for (const char *const *s = shipped_denied; *s; s++)
			check_action(p, *s, ACTION_DENY);
		for (const char *const *s = shipped_control; *s; s++)
			check_action(p, *s, ACTION_READ);
		assert_string_equal(policy_setting(p, "network", "default")->value, cases[i].network);
		assert_non_null(policy_description(p));
		/* Nothing opens in what is denied, so it need not be walked. */
		assert_false(policy_may_open_below(p, policy_match_path(p, "secrets", true), "secrets"));
		check_round_trip(p, shipped_denied);
		check_round_trip(p, shipped_control);
		policy_free(p);
	}
}

static void test_list_profiles(void **state)
{
	struct policy_sources s;
	g_autoptr(GError) error = NULL;
	g_autoptr(GPtrArray) list = NULL;
	struct policy_profile *first;

	put(*state, "user/b.ini", "[profile b1]\ndescription = of the user\n[profile b2]\n");
	put(*state, "user/a.ini", "[profile a]\n");
	put(*state, "shipped/s.ini", "[profile s]\n");
	use_dir(&s, *state, NULL);
	list = policy_list_profiles(&s, &error);
	assert_null(error);
	assert_int_equal(list->len, 4);
	first = list->pdata[1];
	assert_string_equal(first->name, "b1");
	assert_string_equal(first->description, "of the user");
	assert_int_equal(first->line, 1);
	policy_sources_clear(&s);
}

#define test_in_dir(f) cmocka_unit_test_setup_teardown(f, setup_dir, teardown_dir)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_files_name_the_line),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_nul_byte),
		cmocka_unit_test(test_values_are_not_cut),
		cmocka_unit_test(test_no_rule_is_read),
		cmocka_unit_test(test_all_actions),
		cmocka_unit_test(test_last_match_wins),
		cmocka_unit_test(test_awkward_names),
		cmocka_unit_test(test_nocase_is_per_profile),
		cmocka_unit_test(test_child_follows_from_parent),
		cmocka_unit_test(test_may_open_below),
		cmocka_unit_test(test_names_closed_below),
		cmocka_unit_test(test_giving_up_fails_closed),
		cmocka_unit_test(test_index_against_slow_search),
		cmocka_unit_test(test_ten_thousand_rules),
		cmocka_unit_test(test_too_many_rules),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_extends),
		cmocka_unit_test(test_extends_too_deep),
		test_in_dir(test_search_order),
		test_in_dir(test_managed_layer_is_replaced),
		test_in_dir(test_workspace_layer_is_replaced),
		test_in_dir(test_config_may_be_a_directory),
		test_in_dir(test_profile_as_a_file),
		test_in_dir(test_unreadable_files),
		test_in_dir(test_missing_config_is_an_error),
		test_in_dir(test_two_profiles_of_one_name),
		test_in_dir(test_circle_over_files),
		cmocka_unit_test(test_init_reads_the_environment),
		test_in_dir(test_layers_can_only_close),
		test_in_dir(test_what_a_yes_opens),
		test_in_dir(test_ask_settings),
		test_in_dir(test_second_layer_keeps_closed),
		test_in_dir(test_bad_layers),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_settings_of_a_run),
		test_in_dir(test_round_trip),
		cmocka_unit_test(test_damaged_merged_text),
		cmocka_unit_test(test_shipped_profiles),
		test_in_dir(test_list_profiles),
	};

	if (argc > 1)
		shipped_dir = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
