/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * command - the table of commands and what they share: options, arguments, help
 *
 * Each cmd_NAME.c describes its own options in a GOption table; command_parse() adds the common ones (-h, --version,
 * -q, -v and, where it makes sense, --json), so parsing and --help cannot disagree. Options may stand before and
 * after the arguments; what follows "--" is never an option.
 */

#include <glib.h>
#include <stdbool.h>

struct invocation {
	const char *program; /* as it was called, for messages: "sbxfs diff" or "sbxfs-diff" */
	int argc;	     /* with argv[0], which is not looked at */
	char **argv;	     /* array owned by the invocation, strings borrowed */
	/* Set by command_parse() */
	GPtrArray *args;  /* the arguments before "--" */
	GPtrArray *paths; /* the ones after it; NULL = there was no "--" */
	bool json;
};

/* A command returns its exit code, or sets @error and returns anything. */
typedef int (*command_run)(struct invocation *inv, GError **error);

struct command {
	const char *name;
	command_run run;
	const char *summary;
};

/* commands() - the table, ended by a NULL name. */
const struct command *commands(void);

struct command_syntax {
	const char *arguments;	     /* "[TARGET] [-- PATH...]" */
	const char *description;     /* what it does, a paragraph or two */
	const GOptionEntry *options; /* own ones; NULL = none */
	unsigned min_args, max_args;
	bool paths; /* takes "-- PATH..." */
	bool json;  /* takes --json */
};

/*
 * command_parse() - false when the command is over: @error is set, or (without) help or the version was printed.
 * Strings in args and paths are borrowed from argv.
 */
bool command_parse(struct invocation *inv, const struct command_syntax *syntax, GError **error);
/* command_arg() - argument @i or NULL; borrowed. */
const char *command_arg(const struct invocation *inv, unsigned i);
/* command_requests_json() - does the command line ask for JSON? Also true when it could not be parsed. */
bool command_requests_json(const struct invocation *inv);

/* The commands, each in its own cmd_NAME.c */
int cmd_mount(struct invocation *inv, GError **error);
int cmd_umount(struct invocation *inv, GError **error);
int cmd_list(struct invocation *inv, GError **error);
int cmd_log(struct invocation *inv, GError **error);
int cmd_status(struct invocation *inv, GError **error);
int cmd_ask(struct invocation *inv, GError **error);
int cmd_snapshot(struct invocation *inv, GError **error);
int cmd_diff(struct invocation *inv, GError **error);
int cmd_gate(struct invocation *inv, GError **error);
int cmd_commit(struct invocation *inv, GError **error);
int cmd_review(struct invocation *inv, GError **error);
int cmd_rollback(struct invocation *inv, GError **error);
int cmd_run(struct invocation *inv, GError **error);
int cmd_why(struct invocation *inv, GError **error);
int cmd_mcp(struct invocation *inv, GError **error);
int cmd_profile(struct invocation *inv, GError **error);
int cmd_doctor(struct invocation *inv, GError **error);
int cmd_fsck(struct invocation *inv, GError **error);
int cmd_destroy(struct invocation *inv, GError **error);
int cmd_gc(struct invocation *inv, GError **error);
/* cmd_mount_helper() - as mount(8) calls mount.fuse.sbxfs; not in the table. */
int cmd_mount_helper(struct invocation *inv, GError **error);
