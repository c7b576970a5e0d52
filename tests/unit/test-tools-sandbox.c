/* SPDX-License-Identifier: MIT */

/*
 * How the commands find a sandbox and understand paths, without a mount.
 */

#include <glib.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/path_args.h"
#include "tools/paths.h"
#include "tools/sandbox.h"

/* Names */

static void test_name_is_valid(void)
{
	static const char *const good[] = { "a", "project", "Project-2", "a.b_c+d", "_x", "9" };
	static const char *const bad[] = { "", ".", "..", ".hidden", "-n", "a/b", "a b", "ä", "a\n", "+a", "a\\b" };
	g_autofree char *longest = g_strnfill(SANDBOX_NAME_MAX, 'x');
	g_autofree char *too_long = g_strnfill(SANDBOX_NAME_MAX + 1, 'x');

	for (unsigned i = 0; i < G_N_ELEMENTS(good); i++)
		g_assert_true(sandbox_name_is_valid(good[i]));
	for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++)
		g_assert_false(sandbox_name_is_valid(bad[i]));
	g_assert_true(sandbox_name_is_valid(longest));
	g_assert_false(sandbox_name_is_valid(too_long));
}

static void test_name_from_workspace(void)
{
	static const char *const cases[][2] = {
		{ "/home/u/project", "project" },
		{ "/home/u/My Project", "My_Project" },
		{ "/srv/.dotfiles", "dotfiles" },
		{ "/srv/--x", "x" },
		{ "/", "root" },
		{ "/srv/...", "root" },
	};
	g_autofree char *component = g_strnfill(250, 'n');
	g_autofree char *path = g_strconcat("/srv/", component, NULL);
	g_autofree char *shortened = sandbox_name_from(path);
	g_autofree char *bytes = sandbox_name_from("/srv/\xff\xfe");

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *name = sandbox_name_from(cases[i][0]);

		g_assert_cmpstr(name, ==, cases[i][1]);
	}
	g_assert_true(sandbox_name_is_valid(shortened));
	g_assert_true(sandbox_name_is_valid(bytes));
}

/* Paths */

static void test_below(void)
{
	g_assert_cmpstr(paths_below("/a/b/c", "/a/b"), ==, "c");
	g_assert_cmpstr(paths_below("/a/b", "/a/b"), ==, "");
	g_assert_cmpstr(paths_below("/a/b", "/"), ==, "a/b");
	g_assert_null(paths_below("/a/bc", "/a/b"));
	g_assert_null(paths_below("/a", "/a/b"));
}

static void test_private_dir(void)
{
	g_autofree char *top = g_dir_make_tmp("sbxfs-test.XXXXXX", NULL);
	g_autofree char *dir = g_build_filename(top, "x", "y", NULL);
	g_autofree char *link = g_build_filename(top, "link", NULL);
	g_autofree char *middle = g_build_filename(top, "x", NULL);
	g_autoptr(GError) error = NULL;
	struct stat st;

	g_assert_true(paths_make_private_dir(dir, NULL));
	g_assert_cmpint(stat(dir, &st), ==, 0);
	g_assert_cmpint(st.st_mode & 0777, ==, 0700);
	g_assert_true(paths_make_private_dir(dir, NULL));

	/* Somebody else might have made it to look at what we put there. */
	g_assert_cmpint(chmod(dir, 0750), ==, 0);
	g_assert_false(paths_make_private_dir(dir, &error));
	g_assert_cmpint(exit_code_of(error), ==, EXIT_POLICY);
	g_assert_cmpint(chmod(dir, 0700), ==, 0);
	g_assert_cmpint(symlink(dir, link), ==, 0);
	g_assert_false(paths_make_private_dir(link, NULL));

	g_unlink(link);
	g_rmdir(dir);
	g_rmdir(middle);
	g_rmdir(top);
}

static void test_runtime_dir_of_others(void)
{
	g_autofree char *top = g_dir_make_tmp("sbxfs-test.XXXXXX", NULL);
	g_autofree char *own = NULL;
	g_autofree char *expected = g_build_filename(top, "sbxfs", NULL);
	g_autofree char *other = NULL;

	g_setenv("XDG_RUNTIME_DIR", top, TRUE);
	own = paths_runtime_dir(NULL);
	g_assert_cmpstr(own, ==, expected);

	g_assert_cmpint(chmod(top, 0777), ==, 0);
	other = paths_runtime_dir(NULL);
	g_assert_cmpstr(other, !=, expected);

	g_rmdir(expected);
	g_rmdir(top);
}

static void test_path_args(void)
{
	static const struct {
		const char *cwd, *path, *result;
	} cases[] = {
		{ "/elsewhere", "src/a.c", "src/a.c" },
		{ "/elsewhere", ".", "" },
		{ "/elsewhere", "/view/src/", "src" },
		{ "/elsewhere", "/no-work/src/../b", "b" },
		{ "/view/src", "a.c", "src/a.c" },
		{ "/view/src", "..", "" },
		{ "/no-work/src", "deep/x", "src/deep/x" },
		{ "/view", "*.c", "*.c" },
		{ "/elsewhere", "\xff", "\xff" },
		{ "/elsewhere", "../x", NULL },
		{ "/elsewhere", "/viewer/x", NULL },
		{ "/view/src", "../../x", NULL },
		{ "/view", "", NULL },
	};
	struct sandbox s = { .name = (char *)"s", .workspace = (char *)"/no-work", .mountpoint = (char *)"/view" };

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GError) error = NULL;
		g_autofree char *result = path_args_one(&s, cases[i].cwd, cases[i].path, &error);

		g_assert_cmpstr(result, ==, cases[i].result);
		if (!cases[i].result)
			g_assert_cmpint(exit_code_of(error), ==, EXIT_USAGE);
	}
}

static void test_path_args_everything(void)
{
	struct sandbox s = { .name = (char *)"s", .workspace = (char *)"/no-work" };
	g_autoptr(GPtrArray) paths = g_ptr_array_new();
	g_auto(GStrv) some = NULL;
	char **all = NULL;

	g_assert_true(path_args_new(&s, NULL, &all, NULL));
	g_assert_null(all);
	g_ptr_array_add(paths, (char *)"a");
	g_assert_true(path_args_new(&s, paths, &some, NULL));
	g_assert_cmpstr(some[0], ==, "a");
	g_assert_null(some[1]);
	g_ptr_array_add(paths, (char *)".");
	g_assert_true(path_args_new(&s, paths, &all, NULL));
	g_assert_null(all);
}

/* Targets */

static void add(GPtrArray *all, const char *name, const char *workspace, const char *mountpoint, bool mounted)
{
	struct sandbox *s = g_new0(struct sandbox, 1);

	s->name = g_strdup(name);
	s->workspace = g_strdup(workspace);
	s->mountpoint = g_strdup(mountpoint);
	s->live = s->mounted = mounted;
	g_ptr_array_add(all, s);
}

static GPtrArray *some_sandboxes(void)
{
	GPtrArray *all = g_ptr_array_new_with_free_func((GDestroyNotify)sandbox_free);

	add(all, "alpha", "/no-work/alpha", "/view/alpha", true);
	add(all, "alpha-2", "/no-work/alpha", NULL, false);
	add(all, "beta", "/no-work/beta", "/view/beta", false);
	add(all, "nested", "/no-work/beta/sub", "/view/alpha/deep", true);
	add(all, "place", "/no-work/place", "/no-work/place", true);
	return all;
}

static void check_choice(GPtrArray *all, const char *target, const char *cwd, const char *name)
{
	g_autoptr(GError) error = NULL;
	struct sandbox *s = sandbox_choose(all, target, cwd, &error);

	g_assert_no_error(error);
	g_assert_cmpstr(s->name, ==, name);
}

static void check_no_choice(GPtrArray *all, const char *target, const char *cwd, enum exit_code code,
			    const char *mentions)
{
	g_autoptr(GError) error = NULL;

	g_assert_null(sandbox_choose(all, target, cwd, &error));
	g_assert_cmpint(exit_code_of(error), ==, code);
	if (mentions)
		g_assert_nonnull(strstr(error->message, mentions));
}

static void test_target_given(void)
{
	g_autoptr(GPtrArray) all = some_sandboxes();

	check_choice(all, "alpha", "/", "alpha");
	check_choice(all, "alpha", "/no-work/beta", "alpha");
	check_choice(all, "/view/alpha", "/", "alpha");
	check_choice(all, "/view/alpha/src/x", "/", "alpha");
	check_choice(all, "/view/alpha/deep/x", "/", "nested");
	check_choice(all, "src/x", "/view/alpha", "alpha");
	check_choice(all, ".", "/no-work/beta", "beta");
	check_choice(all, "/no-work/beta/sub/x", "/", "nested");
	check_choice(all, "/view/beta", "/", "beta");
	check_choice(all, "/no-work/place/a", "/", "place");
	check_no_choice(all, "/no-work/alpha", "/", EXIT_USAGE, "alpha, alpha-2");
	check_no_choice(all, "gamma", "/", EXIT_NOT_FOUND, "gamma");
	check_no_choice(all, "/view/alphabet", "/", EXIT_NOT_FOUND, NULL);
}

static void test_target_left_out(void)
{
	g_autoptr(GPtrArray) all = some_sandboxes();
	g_autoptr(GPtrArray) none = g_ptr_array_new();
	g_autoptr(GPtrArray) one = g_ptr_array_new_with_free_func((GDestroyNotify)sandbox_free);

	check_choice(all, NULL, "/view/alpha/src", "alpha");
	check_choice(all, NULL, "/no-work/beta", "beta");
	/* Two have this workspace, but only one of them is in use. */
	check_choice(all, NULL, "/no-work/alpha", "alpha");
	check_no_choice(all, NULL, "/tmp", EXIT_USAGE, "alpha, alpha-2, beta, nested, place");
	check_no_choice(none, NULL, "/tmp", EXIT_NOT_FOUND, "mount");
	add(one, "idle", "/no-work/idle", NULL, false);
	check_no_choice(one, NULL, "/tmp", EXIT_USAGE, "idle");
	add(one, "live", "/no-work/live", "/view/live", true);
	check_choice(one, NULL, "/tmp", "live");
}

/* A view that lost its process is still found by its place: that is how one gets rid of it. */
static void test_target_stale(void)
{
	g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func((GDestroyNotify)sandbox_free);

	add(all, "outer", "/no-work", NULL, false);
	add(all, "stale", "/srv/x", "/no-work/mnt", true);
	((struct sandbox *)all->pdata[1])->live = false;
	check_choice(all, "/no-work/mnt", "/", "stale");
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/tools/sandbox/name_is_valid", test_name_is_valid);
	g_test_add_func("/tools/sandbox/name_from_workspace", test_name_from_workspace);
	g_test_add_func("/tools/sandbox/target_given", test_target_given);
	g_test_add_func("/tools/sandbox/target_left_out", test_target_left_out);
	g_test_add_func("/tools/sandbox/target_stale", test_target_stale);
	g_test_add_func("/tools/paths/below", test_below);
	g_test_add_func("/tools/paths/private_dir", test_private_dir);
	g_test_add_func("/tools/paths/runtime_dir_of_others", test_runtime_dir_of_others);
	g_test_add_func("/tools/path_args/one", test_path_args);
	g_test_add_func("/tools/path_args/everything", test_path_args_everything);
	return g_test_run();
}
