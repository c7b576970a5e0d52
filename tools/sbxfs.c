/* SPDX-License-Identifier: MIT */

/*
 * sbxfs - one program for all commands
 *
 * Called as `sbxfs NAME`, as `sbxfs-NAME` (a link), or by mount(8) as mount.fuse.sbxfs.
 */

#include <fcntl.h>
#include <glib.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/exit.h"
#include "tools/output.h"

#define MOUNT_HELPER "mount.fuse.sbxfs"

static const struct command *command_find(const char *name)
{
	for (const struct command *c = commands(); c->name; c++)
		if (g_str_equal(c->name, name))
			return c;
	return NULL;
}

static void print_overview(FILE *out)
{
	fputs("Usage:\n  sbxfs COMMAND [OPTION...] [ARGUMENT...]\n\n"
	      "A private, reviewable view of a directory for programs that should not write into it.\n\nCommands:\n",
	      out);
	for (const struct command *c = commands(); c->name; c++)
		fprintf(out, "  %-10s %s\n", c->name, c->summary);
	fputs("\n`sbxfs COMMAND --help` tells more; each command can also be called as sbxfs-COMMAND.\n"
	      "TARGET is a sandbox's name, its mountpoint or a path in it, or its workspace.\n\nExit codes:\n",
	      out);
	for (const struct exit_meaning *m = exit_meanings(); m->name; m++)
		fprintf(out, "  %2d  %s\n", m->code, m->meaning);
}

static int run_command(const char *program, command_run run, int argc, char **argv)
{
	g_autofree char **copy = g_memdup2(argv, sizeof(char *) * (argc + 1));
	struct invocation inv = { .program = program, .argc = argc, .argv = copy };
	bool json = command_requests_json(&inv);
	g_autoptr(GError) error = NULL;
	int code = run(&inv, &error);

	if (error)
		code = exit_report(error, program, json);
	g_clear_error(&error);
	if (!output_finish(&error))
		code = exit_report(error, program, json);
	g_clear_pointer(&inv.args, g_ptr_array_unref);
	g_clear_pointer(&inv.paths, g_ptr_array_unref);
	return code;
}

static int unknown_command(const char *name)
{
	fprintf(stderr, "sbxfs: there is no command '%s'; `sbxfs --help` lists them\n", name);
	return EXIT_USAGE;
}

static int run_by_argument(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *c;
	g_autofree char *program = NULL;

	if (!name) {
		print_overview(stderr);
		return EXIT_USAGE;
	}
	if (g_str_equal(name, "--version")) {
		printf("sbxfs %s\n", SBXFS_VERSION);
		return EXIT_DONE;
	}
	if (g_str_equal(name, "help") && argc > 2) {
		char *help[] = { argv[0], argv[2], (char *)"--help", NULL };

		return run_by_argument(3, help);
	}
	if (g_str_equal(name, "--help") || g_str_equal(name, "-h") || g_str_equal(name, "help")) {
		print_overview(stdout);
		return EXIT_DONE;
	}
	c = command_find(name);
	if (!c)
		return unknown_command(name);
	program = g_strdup_printf("sbxfs %s", name);
	return run_command(program, c->run, argc - 1, argv + 1);
}

/* A database opened as descriptor 1 would get the next line that is printed. */
static void fill_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			_exit(EXIT_INTERNAL);
}

int main(int argc, char **argv)
{
	g_autofree char *self = g_path_get_basename(argc > 0 ? argv[0] : "sbxfs");
	const struct command *c;

	fill_standard_descriptors();
	setlocale(LC_ALL, "");
	/* A reader that goes away ends the output, not a commit that is under way. */
	signal(SIGPIPE, SIG_IGN);
	if (g_str_equal(self, MOUNT_HELPER))
		return run_command(self, cmd_mount_helper, argc, argv);
	if (!g_str_has_prefix(self, "sbxfs-"))
		return run_by_argument(argc, argv);
	c = command_find(self + strlen("sbxfs-"));
	return c ? run_command(self, c->run, argc, argv) : unknown_command(self + strlen("sbxfs-"));
}
