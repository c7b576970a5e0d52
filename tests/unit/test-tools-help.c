/* SPDX-License-Identifier: MIT */

/*
 * The table of commands, the --help texts and the manual page say the same. Called with the program and the page.
 */

#include <glib.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/command.h"
#include "tools/exit.h"

static const char *program;
static char *page; /* without the formatting */

/* Dashes as such, fonts and macros away: enough to look for words in it. */
static char *plain_page(const char *path)
{
	g_autofree char *text = NULL;
	g_autoptr(GRegex) markup =
		g_regex_new("\\\\f[A-Z]|^\\.(?!SS |SH |B |I )[A-Z]+ |\" \", \" ", G_REGEX_MULTILINE, 0, NULL);
	GString *s;

	g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
	s = g_string_new(text);
	g_string_replace(s, "\\-", "-", 0);
	text = g_regex_replace_literal(markup, (g_free(text), s->str), -1, 0, "", 0, NULL);
	g_string_free(s, TRUE);
	return g_steal_pointer(&text);
}

static char *run(int expected, const char *const *arguments)
{
	g_autoptr(GPtrArray) argv = g_ptr_array_new();
	g_autofree char *err = NULL;
	g_autoptr(GError) error = NULL;
	char *out = NULL;
	int status;

	g_ptr_array_add(argv, (char *)program);
	for (const char *const *a = arguments; *a; a++)
		g_ptr_array_add(argv, (char *)*a);
	g_ptr_array_add(argv, NULL);
	g_spawn_sync(NULL, (char **)argv->pdata, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out, &err, &status, &error);
	g_assert_no_error(error);
	g_assert_true(WIFEXITED(status));
	g_assert_cmpint(WEXITSTATUS(status), ==, expected);
	return out;
}

static char *help_of(const char *command)
{
	return run(EXIT_DONE, (const char *[]){ command, "--help", NULL });
}

static void test_overview_lists_the_table(void)
{
	g_autofree char *overview = run(EXIT_DONE, (const char *[]){ "--help", NULL });

	for (const struct command *c = commands(); c->name; c++) {
		g_autofree char *line = g_strdup_printf("  %-10s %s\n", c->name, c->summary);

		g_assert_nonnull(strstr(overview, line));
	}
	for (const struct exit_meaning *m = exit_meanings(); m->name; m++) {
		g_autofree char *line = g_strdup_printf("  %2d  %s\n", m->code, m->meaning);

		g_assert_nonnull(strstr(overview, line));
	}
}

static char *page_section(const char *command)
{
	g_autofree char *title = g_strdup_printf(".SS %s\n", command);
	const char *start = strstr(page, title);
	const char *end;

	g_assert_nonnull(start);
	start += strlen(title);
	for (end = start; (end = strchr(end, '\n')); end++)
		if (g_str_has_prefix(end, "\n.SS ") || g_str_has_prefix(end, "\n.SH "))
			break;
	return end ? g_strndup(start, end - start) : g_strdup(start);
}

/* Options that a text mentions, as "--name". */
static GPtrArray *options_in(const char *text)
{
	g_autoptr(GRegex) option = g_regex_new("--[a-z][a-z-]*", 0, 0, NULL);
	g_autoptr(GMatchInfo) match = NULL;
	GPtrArray *all = g_ptr_array_new_with_free_func(g_free);

	for (g_regex_match(option, text, 0, &match); g_match_info_matches(match); g_match_info_next(match, NULL))
		g_ptr_array_add(all, g_match_info_fetch(match, 0));
	return all;
}

/* Only the lines that begin with an option: a description may name another command's. */
static char *option_lines(const char *help)
{
	g_autoptr(GRegex) line = g_regex_new("^  (-[a-zA-Z], )?--.*$", G_REGEX_MULTILINE, 0, NULL);
	g_autoptr(GMatchInfo) match = NULL;
	GString *lines = g_string_new(NULL);

	for (g_regex_match(line, help, 0, &match); g_match_info_matches(match); g_match_info_next(match, NULL)) {
		g_autofree char *text = g_match_info_fetch(match, 0);
		g_auto(GStrv) words = g_strsplit(g_strchug(text), " ", 3);

		for (unsigned i = 0; words[i] && i < 2; i++)
			g_string_append_printf(lines, "%s ", words[i]);
	}
	return g_string_free(lines, FALSE);
}

static void test_page_has_every_option(void)
{
	g_autofree char *common = NULL;
	const char *options = strstr(page, ".SH OPTIONS");

	g_assert_nonnull(options);
	common = g_strdup(options);
	for (const struct command *c = commands(); c->name; c++) {
		g_autofree char *help = help_of(c->name);
		g_autofree char *lines = option_lines(help);
		g_autofree char *section = page_section(c->name);
		g_autoptr(GPtrArray) found = options_in(lines);

		g_assert_cmpuint(found->len, >=, 4);
		for (unsigned i = 0; i < found->len; i++) {
			if (!strstr(section, found->pdata[i]) && !strstr(common, found->pdata[i]))
				g_error("sbxfs(1) does not tell of %s %s", c->name, (char *)found->pdata[i]);
		}
	}
}

static void test_help_has_every_option_of_the_page(void)
{
	for (const struct command *c = commands(); c->name; c++) {
		g_autofree char *help = help_of(c->name);
		g_autofree char *section = page_section(c->name);
		g_autoptr(GPtrArray) found = options_in(section);

		for (unsigned i = 0; i < found->len; i++)
			if (!strstr(help, found->pdata[i]))
				g_error("%s has no option %s, which sbxfs(1) tells of", c->name,
					(char *)found->pdata[i]);
	}
}

static void test_page_has_no_other_command(void)
{
	g_autoptr(GRegex) synopsis = g_regex_new("^\\.B \"?sbxfs ([a-z]+)", G_REGEX_MULTILINE, 0, NULL);
	g_autoptr(GMatchInfo) match = NULL;

	for (g_regex_match(synopsis, page, 0, &match); g_match_info_matches(match); g_match_info_next(match, NULL)) {
		g_autofree char *name = g_match_info_fetch(match, 1);
		const struct command *c = commands();

		while (c->name && !g_str_equal(c->name, name))
			c++;
		g_assert_nonnull(c->name);
	}
}

static void test_page_has_the_exit_codes(void)
{
	for (const struct exit_meaning *m = exit_meanings(); m->name; m++) {
		g_autofree char *entry = g_strdup_printf(".B %d\n%s\n", m->code, m->meaning);

		g_assert_nonnull(strstr(page, entry));
	}
}

static void test_wrong_usage(void)
{
	g_autofree char *none = run(EXIT_USAGE, (const char *[]){ NULL });
	g_autofree char *unknown = run(EXIT_USAGE, (const char *[]){ "frobnicate", NULL });
	g_autofree char *version = run(EXIT_DONE, (const char *[]){ "--version", NULL });

	for (const struct command *c = commands(); c->name; c++) {
		g_autofree char *bad = run(EXIT_USAGE, (const char *[]){ c->name, "--no-such-option", NULL });
		g_autofree char *many = run(EXIT_USAGE, (const char *[]){ c->name, "a", "b", "c", "d", "e", NULL });
	}
	g_assert_true(g_str_has_prefix(version, "sbxfs "));
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_assert_cmpint(argc, ==, 3);
	program = argv[1];
	page = plain_page(argv[2]);
	g_test_add_func("/tools/help/overview_lists_the_table", test_overview_lists_the_table);
	g_test_add_func("/tools/help/page_has_every_option", test_page_has_every_option);
	g_test_add_func("/tools/help/help_has_every_option_of_the_page", test_help_has_every_option_of_the_page);
	g_test_add_func("/tools/help/page_has_no_other_command", test_page_has_no_other_command);
	g_test_add_func("/tools/help/page_has_the_exit_codes", test_page_has_the_exit_codes);
	g_test_add_func("/tools/help/wrong_usage", test_wrong_usage);
	int failed = g_test_run();

	g_free(page);
	return failed;
}
