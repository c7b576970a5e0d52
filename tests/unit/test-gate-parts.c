/* SPDX-License-Identifier: MIT */

/*
 * The parts that the gate is made of, each at its edges: configuration, strings of JSON, new lines, the window of a scan, the shapes of tokens, and
 * what is personal
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/added.h"
#include "gate/gate_config.h"
#include "gate/json_strings.h"
#include "gate/scan.h"
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

/* Configuration */

static void test_default_numbers(void **state)
{
	g_autoptr(gate_config_t) c = config_of("checks = all");

	(void)state;
	assert_int_equal(c->test_seconds, 15 * 60);
	assert_int_equal(c->limits.files, 400);
	assert_int_equal(c->limits.lines, 20000);
	assert_int_equal(c->limits.deleted, 50);
	assert_int_equal(c->limits.size, 16 << 20);
	assert_int_equal(c->limits.share, 50);
}

/* NULL = it is taken. */
static void check_setting(const char *settings, const char *workspace, const char *want)
{
	struct policy *p = policy_of(settings);
	g_autoptr(GError) error = NULL;
	g_autoptr(gate_config_t) c = gate_config_new(p, workspace, &error);

	policy_free(p);
	if (!want != (c != NULL) || (want && !strstr(error->message, want)))
		fail_msg("\"%s\" says \"%s\", not \"%s\"", settings, error ? error->message : "nothing", want ? want : "nothing");
}

static void test_edges_of_settings(void **state)
{
	(void)state;
	check_setting("secret_words = abcd", NULL, NULL);
	check_setting("secret_words = abc", NULL, "would excuse too much");
	check_setting("checks = none", NULL, NULL);
	check_setting("checks = none, none", NULL, "stands alone");
	check_setting("test_time = 604800", NULL, NULL);
	check_setting("test_time = 604801", NULL, "must be a time");
	check_setting("test_time = 169h", NULL, "must be a time");
	check_setting("test_time = 0", NULL, "must be a time");
	check_setting("max_files = 0", NULL, NULL);
}

static char *put_baseline(const struct layered *l, const char *name, const char *text, mode_t mode)
{
	g_autofree char *path = g_build_filename(l->dir, name, NULL);

	g_assert_true(g_file_set_contents(path, text, -1, NULL));
	g_chmod(path, mode);
	return g_strdup_printf("checks = secrets\nbaseline = %s", path);
}

static void test_whose_baseline(void **state)
{
	struct layered *l = *state;
	g_autofree char *own = put_baseline(l, "own", "", 0644), *group = put_baseline(l, "group", "", 0664), *others = put_baseline(l, "others", "", 0646);
	g_autofree char *large = put_baseline(l, "large", "", 0600), *file = g_build_filename(l->dir, "large", NULL);
	g_autofree char *beside = g_strconcat(l->workspace, "-beside", NULL), *by_beside = g_strdup_printf("baseline = %s", beside);
	g_autofree char *inside = g_build_filename(l->workspace, "inside", NULL), *link = g_build_filename(l->dir, "link", NULL);
	g_autofree char *by_link = g_strdup_printf("baseline = %s", link), *by_workspace = g_strdup_printf("baseline = %s", l->workspace);

	check_setting(own, l->workspace, NULL);
	check_setting(group, l->workspace, "only its owner");
	check_setting(others, l->workspace, "only its owner");
	assert_int_equal(truncate(file, 16 << 20), 0);
	check_setting(large, l->workspace, NULL);
	assert_int_equal(truncate(file, (16 << 20) + 1), 0);
	check_setting(large, l->workspace, "at most 16 MiB");
	check_setting(by_workspace, NULL, "must be a file");
	/* Its name only begins as the workspace's does. */
	g_assert_true(g_file_set_contents(beside, "", 0, NULL));
	g_chmod(beside, 0600);
	check_setting(by_beside, l->workspace, NULL);
	unlink(beside);
	host_text(l, "inside", "");
	assert_int_equal(symlink(inside, link), 0);
	check_setting(by_link, l->workspace, "lies in the workspace");
	if (geteuid() != 0)
		return;
	g_free(g_steal_pointer(&own));
	own = put_baseline(l, "own", "", 0644);
	g_free(g_steal_pointer(&file));
	file = g_build_filename(l->dir, "own", NULL);
	assert_int_equal(chown(file, 4711, 0), 0);
	check_setting(own, l->workspace, "must belong to you");
}

/* A remark may follow at once. */
static void test_lines_of_a_baseline(void **state)
{
	struct layered *l = *state;
	g_autofree char *key = fake_key(5), *text = g_strdup_printf("key=%s\n", key), *lines = NULL, *settings = NULL;
	g_autoptr(gate_result_t) r = NULL;

	view_text(l, "a", text);
	r = run_with(l, "checks = secrets", NULL, NULL);
	lines = g_strdup_printf("\n  \n%s#revoked\r\n", ((struct gate_finding *)r->findings->pdata[0])->fingerprint);
	settings = put_baseline(l, "baseline", lines, 0600);
	expect(l, settings, "");
	/* What was found as something else has another mark. */
	view_text(l, "b", "url = https://u:aZ3#kV9!xQ@h/\npassword = \"aZ3#kV9!xQ\"\n");
	g_clear_pointer(&r, gate_result_free);
	r = run_with(l, settings, NULL, NULL);
	assert_int_equal(r->findings->len, 2);
	assert_string_not_equal(((struct gate_finding *)r->findings->pdata[0])->fingerprint, ((struct gate_finding *)r->findings->pdata[1])->fingerprint);
}

static void test_managed_and_user(void **state)
{
	g_autoptr(gate_config_t) lower = layered_config("max_files = 500\nmax_lines = 30000\nsecret_paths = a/\nsecret_words = Managed\nreview = x",
							"max_files = 10\nmax_lines = 40000\nsecret_paths = b/\nreview = y", ""),
				 alone = layered_config("max_files = 1000\nchecks = modes", "secret_words = word\nchecks = tests", "review = z");

	(void)state;
	assert_int_equal(lower->limits.files, 10);
	assert_int_equal(lower->limits.lines, 30000);
	assert_int_equal(lower->secret_paths->len, 2);
	assert_int_equal(lower->secret_words->len, 1);
	assert_string_equal(lower->secret_words->pdata[0], "managed");
	assert_int_equal(lower->review->len, 2);
	/* Where the user says no number, the managed one holds, and need not be below the default. */
	assert_int_equal(alone->limits.files, 1000);
	/* Only a managed layer that wants secrets looked for takes the user's excuses. */
	assert_int_equal(alone->secret_words->len, 1);
	assert_int_equal(alone->checks, 1u << GATE_MODES | 1u << GATE_TESTS);
	assert_true(alone->tests_named);
	assert_int_equal(alone->review->len, 1);
}

/* A pattern that takes too long has no answer; who asks says which way is safe. */
static void test_unsure_patterns(void **state)
{
	g_autoptr(gate_config_t) c = config_of("allow = re:^(a+)+$"), d = config_of("allow = src/");
	g_autofree char *many = g_strnfill(4000, 'a'), *path = g_strconcat(many, "b", NULL);

	(void)state;
	assert_true(gate_patterns_match(c->allow[1], "aaa", false, false));
	assert_false(gate_patterns_match(c->allow[1], "aab", false, true));
	assert_false(gate_patterns_match(c->allow[1], path, false, false));
	assert_true(gate_patterns_match(c->allow[1], path, false, true));
	assert_true(gate_patterns_match(d->allow[1], "src/a", false, false));
	assert_true(gate_patterns_match(d->allow[1], "src", true, false));
	assert_false(gate_patterns_match(d->allow[1], "src", false, false));
}

/* JSON */

static bool tell_string(const char *const *keys, unsigned depth, const char *value, uint64_t line, void *user)
{
	for (unsigned i = 0; i < depth; i++)
		g_string_append_printf(user, "%s/", keys[i]);
	g_string_append_printf(user, "%s:%d;", value, (int)line);
	return true;
}

/* In memory of its own size, so that a step too far is seen. */
static bool read_json(const char *text, GString *told)
{
	g_autofree char *exact = g_memdup2(text, strlen(text));

	return json_strings(exact, strlen(text), tell_string, told);
}

static void test_what_json_says(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"a\":\r\n\t{\"b\": \"c\"},\n\"d\":[\"e\",{\"f\":\"g\"}]}", "a/b/c:2;d//e:3;d//f/g:3;" },
		{ "\"\\ud83d\\ude00\\u00e9\"", "\xf0\x9f\x98\x80\xc3\xa9:1;" },
		{ "\"\\ud800\\udc00\\udbff\\udfff\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf:1;" },
		{ "\"a\\u0000b\"", "a\xef\xbf\xbd" "b:1;" },
		{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t:1;" },
		{ "\" \x7f\"", " \x7f:1;" },
	};
	static const char *const bad[] = { "\"\\u123", "\"\\u12", "\"\\udc00\\udc00\"", "\"\\ud83d\\ue000\"", "\"\\ud83dx", "\"\x1f\"", "\"\x0b\"", "\"\t\"",
					   "{\"a\":1,\"b\" 2}", "{\"a\":1,2}", "{\"a\":1 \"b\":2}", "[1}", "\xef\xbb\xbf" };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		GString *told = g_string_new(NULL);

		assert_true(read_json(rows[i][0], told));
		assert_string_equal(told->str, rows[i][1]);
		g_string_free(told, TRUE);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
		GString *told = g_string_new(NULL);

		if (read_json(bad[i], told))
			fail_msg("taken: %s", bad[i]);
		g_string_free(told, TRUE);
	}
}

static void test_depth_of_json(void **state)
{
	g_autofree char *open = g_strnfill(JSON_STRINGS_DEPTH, '['), *close = g_strnfill(JSON_STRINGS_DEPTH, ']');
	g_autofree char *deep = g_strconcat(open, "\"x\"", close, NULL), *deeper = g_strconcat("[", deep, "]", NULL);
	GString *told = g_string_new(NULL);

	(void)state;
	assert_true(read_json(deep, told));
	assert_false(read_json(deeper, told));
	g_string_free(told, TRUE);
}

/* New lines */

static struct added *added_of(struct layered *l, const char *path)
{
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER), to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(GPtrArray) changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	struct added *a = NULL;

	for (guint i = 0; i < changes->len; i++)
		if (g_str_equal(((const struct change *)changes->pdata[i])->path, path))
			assert_int_equal(added_new(changes->pdata[i], from, to, &a), 0);
	assert_non_null(a);
	return a;
}

static void test_edges_of_new_lines(void **state)
{
	struct layered *l = *state;
	g_autoptr(added_t) a = NULL, twice = NULL;

	host_text(l, "f", "a\nb\nc\n");
	view_text(l, "f", "a\nx\nc\n");
	host_text(l, "twice", "a\na\n");
	view_text(l, "twice", "a\nb\na\n");
	a = added_of(l, "f");
	assert_false(added_is_all(a));
	assert_false(added_is_none(a));
	assert_false(added_touches(a, 0, 2));
	assert_true(added_touches(a, 1, 3));
	assert_true(added_touches(a, 2, 4));
	assert_false(added_touches(a, 4, 6));
	twice = added_of(l, "twice");
	assert_int_equal(added_lines(twice), 1);
	assert_false(added_touches(twice, 4, 6));
}

static void test_all_or_nothing_new(void **state)
{
	struct layered *l = *state;
	g_autoptr(added_t) empty = NULL, replaced = NULL, mode = NULL;

	host_text(l, "target", "x\n");
	host_symlink(l, "link", "target");
	host_text(l, "mode", "x\n");
	view_text(l, "empty", "");
	view_remove(l, "link");
	view_text(l, "link", "x\n");
	view_chmod(l, "mode", 0700);
	empty = added_of(l, "empty");
	assert_true(added_is_all(empty));
	assert_false(added_is_none(empty));
	replaced = added_of(l, "link");
	assert_true(added_is_all(replaced));
	mode = added_of(l, "mode");
	assert_true(added_is_none(mode));
	assert_int_equal(added_lines(mode), 0);
}

/* What lies over the border of two pieces that are read at once leaves nothing behind for the lines after it. */
static void test_long_lines(void **state)
{
	struct layered *l = *state;
	g_autofree char *line = g_strnfill(300000, 'x'), *text = g_strconcat("first\n", line, "\nshort\nlast", NULL);
	g_autofree char *edited = g_strconcat("first\n", line, "x\nshort\nlast", NULL);
	g_autoptr(added_t) a = NULL, b = NULL;

	host_text(l, "f", "last\nshort\nfirst\n");
	view_text(l, "f", text);
	host_text(l, "g", text);
	view_text(l, "g", edited);
	a = added_of(l, "f");
	assert_int_equal(added_lines(a), 1);
	assert_true(added_touches(a, 6, 7));
	assert_false(added_touches(a, 300007, 300017));
	b = added_of(l, "g");
	assert_int_equal(added_lines(b), 1);
	assert_true(added_touches(b, 6, 300007));
	assert_false(added_touches(b, 0, 6));
}

/* With more old lines than are told apart, all counts as new; with more runs of new ones, what lies between the last. */
static void test_too_many_lines(void **state)
{
	const unsigned lines = 4u * 1024 * 1024 + 1, spans = 1024 * 1024 + 2;
	struct layered *l = *state;
	GString *old = g_string_sized_new(lines * 9), *runs = g_string_sized_new(spans * 12), *kept = g_string_sized_new(spans * 2);
	g_autoptr(added_t) a = NULL, b = NULL;

	for (unsigned i = 0; i < lines; i++)
		g_string_append_printf(old, "%x\n", i);
	for (unsigned i = 0; i < spans; i++) {
		g_string_append_printf(runs, "n%x\nk\n", i);
		g_string_append(kept, "k\n");
	}
	host_text(l, "many", old->str);
	view_text(l, "many", "0\n");
	host_text(l, "runs", kept->str);
	view_text(l, "runs", runs->str);
	a = added_of(l, "many");
	assert_true(added_is_all(a));
	assert_true(added_touches(a, 0, 1));
	b = added_of(l, "runs");
	assert_false(added_is_all(b));
	assert_int_equal(added_lines(b), spans);
	assert_false(added_touches(b, 3, 5));
	/* In front of the last run, which did not get a place of its own. */
	assert_true(added_touches(b, runs->len - 12, runs->len - 11));
	g_string_free(old, TRUE);
	g_string_free(runs, TRUE);
	g_string_free(kept, TRUE);
}

/* Scans, of a matcher that takes each X and the bytes around it */

#define BEFORE 3
#define AFTER 5

struct seen {
	unsigned looks, found, enough; /* 0 = never */
	uint64_t start, line;	       /* of the last one */
	bool over, finishing;
};

static struct seen seen;

static void look_for_x(struct scan *s, const struct scan_view *v)
{
	assert_false(seen.over);
	seen.looks++;
	/* As much as was promised. */
	if (!v->map && v->base > 0)
		assert_true(v->from >= SCAN_BEHIND);
	if (!v->map && !seen.finishing)
		assert_true(v->size - v->to >= SCAN_AHEAD);
	for (size_t at = v->from; at < v->to; at++)
		if (v->data[at] == 'X' && !scan_report(s, v, at - MIN(at, BEFORE), MIN(v->size, at + AFTER), "x", "an X", "X"))
			return;
}

static bool on_x(const struct scan_match *m, void *user)
{
	(void)user;
	seen.found++;
	seen.start = m->start;
	seen.line = m->line;
	seen.over = seen.found == seen.enough;
	return !seen.over;
}

static bool feed(struct scan *s, const GString *text, size_t step)
{
	bool more = true;

	for (size_t at = 0; at < text->len; at += step)
		more = scan_feed(s, text->str + at, MIN(step, text->len - at));
	seen.finishing = true;
	scan_finish(s);
	return more;
}

/* Where the first and the second window end, as far as they are looked at. */
#define BORDER (SCAN_BEHIND + 256 * 1024)

static void check_border(struct scan *s, size_t place)
{
	GString *text = g_string_new(NULL);

	while (text->len + 2 < place)
		g_string_append_c(text, '.');
	g_string_append(text, "\n.XaXb");
	while (text->len < 900000)
		g_string_append_c(text, '.');
	seen = (struct seen){ 0 };
	feed(s, text, 100000);
	assert_int_equal(seen.found, 1);
	assert_int_equal(seen.start, place - BEFORE);
	assert_int_equal(seen.line, 1);
	g_string_free(text, TRUE);
}

/* Wherever the windows end, one is found once, with its line; and the next text begins anew. */
static void test_windows(void **state)
{
	g_autoptr(scan_t) s = scan_new(look_for_x, on_x, NULL);

	(void)state;
	for (size_t i = 0; i < 20; i++) {
		check_border(s, BORDER - 10 + i);
		check_border(s, 2 * BORDER - SCAN_BEHIND - 10 + i);
	}
}

static void test_enough(void **state)
{
	g_autoptr(scan_t) s = scan_new(look_for_x, on_x, NULL);
	GString *text = g_string_new("X........\nX........\nX........\n"), *next = g_string_new("a\nX");

	(void)state;
	while (text->len < 2000000)
		g_string_append_c(text, '\0');
	seen = (struct seen){ .enough = 2 };
	assert_false(feed(s, text, 500000));
	assert_int_equal(seen.found, 2);
	assert_int_equal(seen.looks, 1);
	assert_int_equal(seen.line, 1); /* of its beginning, in front of the line's end */
	seen = (struct seen){ 0 };
	feed(s, text, 500000);
	assert_int_equal(seen.found, 3);
	seen = (struct seen){ 0 };
	assert_true(feed(s, next, 1));
	assert_int_equal(seen.found, 1);
	assert_int_equal(seen.line, 1);
	assert_int_equal(seen.start, 0);
	g_string_free(text, TRUE);
	g_string_free(next, TRUE);
}

/* Shapes of tokens */

static void test_shapes_backwards(void **state)
{
	static const struct {
		const char *pattern, *text;
		size_t want;
	} rows[] = { { "[0-9]{2,3}", "1234", 3 }, { "[0-9]{2,3}", "x12", 2 }, { "[0-9]{2,3}", "x1", 0 }, { "a[0-9]{2}", "ba12", 3 }, { "a[0-9]{2}", "b12", 0 },
		     { "a?[0-9]", "b1", 1 }, { "[0-9]{2,3}", "", 0 } };
	static const char *const literals[][2] = { { "ab={0,2}c", "ab" }, { "a.b[0-9]c", "a.b" }, { "abc?d", "ab" }, { "a\\{b{2}", "a{" }, { "abc", "abc" } };
	struct token_pattern *p;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		p = token_pattern_new(rows[i].pattern);
		if (token_pattern_match_back(p, (const uint8_t *)rows[i].text, strlen(rows[i].text)) != rows[i].want)
			fail_msg("%s in front of %s", rows[i].pattern, rows[i].text);
		token_pattern_free(p);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(literals); i++) {
		p = token_pattern_new(literals[i][0]);
		assert_string_equal(token_pattern_literal(p), literals[i][1]);
		token_pattern_free(p);
	}
	p = token_pattern_new("a[0-9]{2}");
	assert_true(token_pattern_goes_on(p, '5'));
	assert_false(token_pattern_goes_on(p, 'a'));
	token_pattern_free(p);
	p = token_pattern_new("[a\\]]{2}");
	assert_int_equal(token_pattern_match(p, (const uint8_t *)"a]", 2), 2);
	token_pattern_free(p);
}

/* Secrets that were there, and such that only seem to have been */

static void test_secrets_of_another_file(void **state)
{
	struct layered *l = *state;
	g_autofree char *key = fake_key(1), *old = g_strdup_printf("k=%s\n", key), *edited = g_strdup_printf("x=%s\n", key);
	g_autofree char *more = g_strdup_printf("x\nk=%s\n", key);

	host_text(l, "a", old);
	view_text(l, "a", edited);
	host_text(l, "b", "x\n");
	view_text(l, "b", more);
	expect(l, "checks = secrets", "refuse secrets/github-token b:2\n");
}

/* In the name, it was not there before; nor in a file where a link was. */
static void test_secrets_in_new_places(void **state)
{
	struct layered *l = *state;
	g_autofree char *key = fake_key(2), *text = g_strdup_printf("k=%s\n", key), *name = g_strdup_printf("log-%s", key);
	g_autofree char *attribute = g_strdup_printf("user.%s", key), *want = NULL;

	host_text(l, "a", text);
	view_rename(l, "a", name);
	host_symlink(l, "link", "a");
	view_remove(l, "link");
	view_text(l, "link", text);
	host_text(l, "x", "x\n");
	view_xattr(l, "x", attribute, "v");
	want = g_strdup_printf("refuse secrets/github-token link:1\nrefuse secrets/github-token %s\nrefuse secrets/github-token x\n", name);
	expect(l, "checks = secrets", want);
}

static void test_no_secrets(void **state)
{
	struct layered *l = *state;
	g_autofree char *key = fake_key(3);

	/* The link is what it was, but for its owner; and a directory is no store of keys. */
	host_symlink(l, "link", key);
	view_chown(l, "link", 4711);
	view_mkdir(l, ".env");
	view_text(l, ".env.example", "x\n");
	expect(l, "checks = secrets", "");
}

/* A pattern that has no answer excuses nothing. */
static void test_unsure_excuse(void **state)
{
	struct layered *l = *state;
	g_autofree char *key = fake_key(4), *text = g_strdup_printf("k=%s\n", key), *many = g_strnfill(200, 'a'), *name = g_strconcat(many, "b", NULL);
	g_autofree char *want = g_strdup_printf("refuse secrets/github-token %s:1\n", name);

	view_text(l, name, text);
	view_text(l, "aaa", text);
	expect(l, "checks = secrets\nsecret_paths = re:^(a+)+$", want);
}

/* What is personal */

static void test_personal_edges(void **state)
{
	/* Numbers with a right last digit, of nobody. NULL = no finding. */
	static const char *const rows[][2] = {
		{ "x+jane@corp.io", "x****@corp.io" },
		{ "(jane.doe.long@my-corp.io)", "j****@my-corp.io" },
		{ "mail jane@corp.io. And", "j****@corp.io" },
		{ "mail jane@a-long-name-of-a-company.corp.io", "j****@a-long-name-of-a-company.corp.io" },
		{ "x@foo.example", NULL },
		{ "USER@Corp.IO, jane@Example.COM", NULL },
		{ "@corp.io", NULL },
		{ "jane@corp.x", NULL },
		{ "jane@corp.abcdefghijklmno", NULL },
		{ "jane.doe@corp", NULL },
		{ "jane@2corp.io", NULL },
		{ "git@corp.io", NULL },
		{ "5425233430109903", "**** 9903" },
		{ "5425233430109904", NULL },
		{ "54252334 30109903", NULL },
		{ "5425-2334-3010-9903", "**** 9903" },
		{ "4222222222222", "**** 2222" },
		{ "4000000000000000006", "**** 0006" },
		{ "400000000000006", NULL },
		{ "5625233430109901", NULL },
		{ "5025233430109907", NULL },
		{ "2221000000000009", "**** 0009" },
		{ "2220000000000000", NULL },
		{ "2720990000000007", "**** 0007" },
		{ "2721000000000004", NULL },
		{ "340000000000009", "**** 0009" },
		{ "370000000000002", "**** 0002" },
		{ "360000000000004", NULL },
		{ "6011000000000004", "**** 0004" },
		{ "6500000000000002", "**** 0002" },
		{ "3500000000000009", "**** 0009" },
		{ "4111111111111111", NULL },
		{ "/5425233430109903", NULL },
		{ "x5425233430109903", NULL },
		{ "5425233430109903_", NULL },
		{ "+49 30 12345", "+49****" },
		{ "+49 30 1234", NULL },
		{ "+491234567890123", "+49****" },
		{ "+4912345678901234", NULL },
		{ "+049 30 1234567", NULL },
		{ "++49 30 1234567", NULL },
	};
	struct layered *l = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_autofree char *text = g_strconcat(rows[i][0], "\n", NULL);
		g_autoptr(gate_result_t) r = NULL;
		const struct gate_finding *f;

		view_text(l, "f", text);
		r = run_with(l, "checks = personal", NULL, NULL);
		f = r->findings->len > 0 ? r->findings->pdata[0] : NULL;
		if (r->findings->len > 1 || g_strcmp0(f ? f->excerpt : NULL, rows[i][1]) != 0)
			fail_msg("%s: %u found, %s", rows[i][0], r->findings->len, f ? f->excerpt : "nothing");
	}
}

/* Fifty of one file are enough; the next file has its own. */
static void test_personal_of_one_file(void **state)
{
	struct layered *l = *state;
	GString *text = g_string_new(NULL);
	g_autoptr(gate_result_t) r = NULL;

	for (unsigned i = 0; i < 60; i++)
		g_string_append_printf(text, "jane%u@corp.io\n", i);
	view_text(l, "a", text->str);
	view_text(l, "b", text->str);
	r = run_with(l, "checks = personal", NULL, NULL);
	assert_int_equal(r->findings->len, 100);
	g_string_free(text, TRUE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default_numbers),
		cmocka_unit_test(test_edges_of_settings),
		TEST(test_whose_baseline),
		TEST(test_lines_of_a_baseline),
		cmocka_unit_test(test_managed_and_user),
		cmocka_unit_test(test_unsure_patterns),
		cmocka_unit_test(test_what_json_says),
		cmocka_unit_test(test_depth_of_json),
		TEST(test_edges_of_new_lines),
		TEST(test_all_or_nothing_new),
		TEST(test_long_lines),
		TEST(test_too_many_lines),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_enough),
		cmocka_unit_test(test_shapes_backwards),
		TEST(test_secrets_of_another_file),
		TEST(test_secrets_in_new_places),
		TEST(test_no_secrets),
		TEST(test_unsure_excuse),
		TEST(test_personal_edges),
		TEST(test_personal_of_one_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
