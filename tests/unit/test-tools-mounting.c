/* SPDX-License-Identifier: MIT */

/*
 * What `sbxfs mount` refuses, and that a refusal leaves nothing behind. Nothing is mounted here.
 */

#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/store.h"
#include "tools/exit.h"
#include "tools/mounting.h"
#include "tools/sandbox.h"
#include "tools/store_dir.h"

static char *top; /* everything of one test lies in here */

static char *at(const char *path)
{
	return g_build_filename(top, path, NULL);
}

static void make_dir(const char *path)
{
	g_autofree char *whole = at(path);

	g_assert_cmpint(g_mkdir_with_parents(whole, 0700), ==, 0);
}

static void make_file(const char *path, const char *text)
{
	g_autofree char *whole = at(path);

	g_assert_true(g_file_set_contents(whole, text, -1, NULL));
}

/* A sandbox as an earlier mount left it. */
static void make_sandbox(const char *name, const char *workspace)
{
	g_autofree char *dir = g_build_filename(top, "state", "sbxfs", name, NULL);
	g_autofree char *whole = at(workspace);
	struct store *s = store_create(dir, whole, NULL);

	g_assert_nonnull(s);
	store_close(s);
}

static void set_up(void)
{
	static const char *const variables[][2] = {
		{ "XDG_STATE_HOME", "state" },
		{ "XDG_RUNTIME_DIR", "run" },
		{ "XDG_CONFIG_HOME", "config" },
		{ "HOME", "home" },
	};

	top = g_dir_make_tmp("sbxfs-test.XXXXXX", NULL);
	for (unsigned i = 0; i < G_N_ELEMENTS(variables); i++) {
		g_autofree char *value = at(variables[i][1]);

		g_setenv(variables[i][0], value, TRUE);
	}
	make_dir("run");
	make_dir("work/sub");
	make_dir("other");
	make_dir("empty");
	make_file("work/file", "x");
	make_file("good.ini", "[profile p]\n[files p]\nwrite = **\n");
	make_file("unknown.ini", "[profile p]\nspeed = 9\n");
	make_file("regex.ini", "[profile p]\n[files p]\ndeny = re:(\n");
}

static void announce(const struct mounted *m, void *user)
{
	(void)user;
	g_error("%s was mounted", m->name);
}

/* Each test runs in a process of its own: GLib reads the environment once. */
static void refuse(const struct mount_request *given, enum exit_code code, const char *mentions)
{
	g_autofree char *workspace = at(given->workspace);
	g_autofree char *mountpoint = given->mountpoint ? at(given->mountpoint) : NULL;
	g_autofree char *profile = at(given->profile ? given->profile : "good.ini");
	g_autoptr(GError) error = NULL;
	struct mount_request request = *given;

	request.workspace = workspace;
	request.mountpoint = mountpoint;
	request.profile = profile;
	g_assert_false(mounting_run(&request, announce, NULL, &error));
	g_assert_nonnull(error);
	g_assert_cmpstr(error->message, !=, "");
	if (exit_code_of(error) != code || !strstr(error->message, mentions))
		g_error("expected exit code %d and '%s', got %d: %s", code, mentions, exit_code_of(error),
			error->message);
}

static void nothing_was_made(void)
{
	g_autofree char *stores = at("state/sbxfs");
	g_autofree char *mountpoints = at("run/sbxfs/work");

	g_assert_false(g_file_test(stores, G_FILE_TEST_EXISTS));
	g_assert_false(g_file_test(mountpoints, G_FILE_TEST_EXISTS));
}

static void in_subprocess(void (*test)(void))
{
	if (!g_test_subprocess()) {
		g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
		g_test_trap_assert_passed();
		return;
	}
	set_up();
	test();
	g_autofree char *remove = g_strdup_printf("rm -rf '%s'", top);

	g_assert_cmpint(system(remove), ==, 0);
	g_free(top);
}

static void workspaces(void)
{
	refuse(&(struct mount_request){ .workspace = "nowhere" }, EXIT_NOT_FOUND, "nowhere");
	refuse(&(struct mount_request){ .workspace = "work/file" }, EXIT_USAGE, "not a directory");
	refuse(&(struct mount_request){ .workspace = "." }, EXIT_USAGE, "XDG_STATE_HOME");
	nothing_was_made();
	make_dir("state/sbxfs/inner");
	refuse(&(struct mount_request){ .workspace = "state/sbxfs/inner" }, EXIT_USAGE, "beside the store");
}

static void mountpoints(void)
{
	refuse(&(struct mount_request){ .workspace = "work", .mountpoint = "missing" }, EXIT_USAGE, "mkdir");
	refuse(&(struct mount_request){ .workspace = "work", .mountpoint = "good.ini" }, EXIT_USAGE, "not a directory");
	refuse(&(struct mount_request){ .workspace = "other", .mountpoint = "work" }, EXIT_USAGE, "not empty");
	refuse(&(struct mount_request){ .workspace = "work", .mountpoint = "work/sub" }, EXIT_USAGE,
	       "inside the workspace");
	refuse(&(struct mount_request){ .workspace = "work/sub", .mountpoint = "work" }, EXIT_USAGE, "not empty");
	nothing_was_made();
	make_dir("state/sbxfs/inner");
	refuse(&(struct mount_request){ .workspace = "work", .mountpoint = "state/sbxfs/inner" }, EXIT_USAGE,
	       "among the stores");
}

static void policies(void)
{
	refuse(&(struct mount_request){ .workspace = "work", .mountpoint = "empty", .profile = "unknown.ini" },
	       EXIT_POLICY, "unknown.ini:2");
	refuse(&(struct mount_request){ .workspace = "work", .mountpoint = "empty", .profile = "regex.ini" },
	       EXIT_POLICY, "regex.ini:3");
	refuse(&(struct mount_request){ .workspace = "work", .profile = "missing.ini" }, EXIT_POLICY, "missing.ini");
	make_file("work/.sbxfs.ini", "[profile w]\nnonsense\n");
	refuse(&(struct mount_request){ .workspace = "work" }, EXIT_POLICY, ".sbxfs.ini:2");
	nothing_was_made();
}

static void names(void)
{
	refuse(&(struct mount_request){ .workspace = "work", .name = "a/b" }, EXIT_USAGE, "a/b");
	nothing_was_made();
	make_sandbox("taken", "other");
	refuse(&(struct mount_request){ .workspace = "work", .name = "taken" }, EXIT_USAGE, "-n");
	refuse(&(struct mount_request){ .workspace = "other", .name = "taken", .fresh = true }, EXIT_USAGE, "--new");
}

static void busy_store(void)
{
	g_autofree char *dir = at("state/sbxfs/taken");
	struct store *holder;

	make_sandbox("taken", "other");
	holder = store_open(dir, STORE_WRITE, NULL);
	g_assert_nonnull(holder);
	g_assert_true(sandbox_is_locked(dir));
	if (access("/dev/fuse", R_OK | W_OK) == 0)
		refuse(&(struct mount_request){ .workspace = "other", .name = "taken" }, EXIT_BUSY, "in use");
	store_close(holder);
	g_assert_false(sandbox_is_locked(dir));
}

static void removal(void)
{
	g_autofree char *dir = at("state/sbxfs/gone");
	g_autofree char *outside = at("work/file");
	g_autofree char *link = at("state/sbxfs/gone/objects/link");
	g_autofree char *sealed = at("state/sbxfs/gone/commit/1");
	g_autofree char *other = at("other");
	g_autoptr(GError) error = NULL;

	make_sandbox("gone", "work");
	make_dir("state/sbxfs/gone/commit/1/x");
	g_assert_cmpint(chmod(sealed, 0), ==, 0);
	g_assert_cmpint(symlink(top, link), ==, 0);
	g_assert_true(store_dir_remove(dir, NULL));
	g_assert_false(g_file_test(dir, G_FILE_TEST_EXISTS));
	g_assert_true(g_file_test(outside, G_FILE_TEST_EXISTS));
	/* Not a store. */
	g_assert_false(store_dir_remove(other, &error));
	g_assert_cmpint(exit_code_of(error), ==, EXIT_NOT_FOUND);
	g_assert_true(g_file_test(other, G_FILE_TEST_IS_DIR));
}

/* What another command is making at the moment stays. */
static void leftovers(void)
{
	g_autofree char *state = at("state/sbxfs");
	g_autofree char *dead = at("state/sbxfs/.a.999999999.new");
	g_autofree char *gone = at("state/sbxfs/.a.b.999999999.removed");
	g_autofree char *own = g_strdup_printf("%s/.a.%d.new", state, (int)getpid());
	g_autofree char *other = at("state/sbxfs/.a.999999999");
	g_autofree char *store = at("state/sbxfs/taken");
	g_autofree char *made = store_dir_making(store);
	g_autoptr(GError) error = NULL;

	make_dir("state/sbxfs/.a.999999999.new/objects");
	make_dir("state/sbxfs/.a.b.999999999.removed/objects");
	make_dir("state/sbxfs/.a.999999999");
	g_assert_cmpint(g_mkdir(own, 0700), ==, 0);
	store_dir_sweep(state);
	g_assert_false(g_file_test(dead, G_FILE_TEST_EXISTS) || g_file_test(gone, G_FILE_TEST_EXISTS));
	g_assert_true(g_file_test(own, G_FILE_TEST_IS_DIR) && g_file_test(other, G_FILE_TEST_IS_DIR));
	/* A store that is there is not replaced. */
	make_sandbox("taken", "other");
	g_assert_cmpint(g_mkdir(made, 0700), ==, 0);
	g_assert_false(store_dir_place(made, store, &error));
	g_assert_cmpint(exit_code_of(error), ==, EXIT_BUSY);
	store_close(store_open(store, STORE_READ, NULL));
	store_dir_drop(made);
	g_assert_false(g_file_test(made, G_FILE_TEST_EXISTS));
}

static void test_workspaces(void)
{
	in_subprocess(workspaces);
}

static void test_mountpoints(void)
{
	in_subprocess(mountpoints);
}

static void test_policies(void)
{
	in_subprocess(policies);
}

static void test_names(void)
{
	in_subprocess(names);
}

static void test_busy_store(void)
{
	in_subprocess(busy_store);
}

static void test_removal(void)
{
	in_subprocess(removal);
}

static void test_leftovers(void)
{
	in_subprocess(leftovers);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/tools/mounting/refused_workspaces", test_workspaces);
	g_test_add_func("/tools/mounting/refused_mountpoints", test_mountpoints);
	g_test_add_func("/tools/mounting/refused_policies", test_policies);
	g_test_add_func("/tools/mounting/refused_names", test_names);
	g_test_add_func("/tools/mounting/busy_store", test_busy_store);
	g_test_add_func("/tools/store_dir/remove", test_removal);
	g_test_add_func("/tools/store_dir/leftovers", test_leftovers);
	return g_test_run();
}
