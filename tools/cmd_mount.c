/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tools/command.h"
#include "tools/exit.h"
#include "tools/mounting.h"
#include "tools/output.h"

/* What mount(8) and fstab add for their own use, or what is so anyway. */
static bool is_for_others(const char *option)
{
	static const char *const known[] = { "rw",	 "auto",   "noauto", "nofail", "user",
					     "users",	 "nouser", "owner",  "group",  "_netdev",
					     "defaults", "exec",   "nosuid", "nodev",  "async" };

	for (unsigned i = 0; i < G_N_ELEMENTS(known); i++)
		if (g_str_equal(option, known[i]))
			return true;
	return g_str_has_prefix(option, "x-") || g_str_has_prefix(option, "comment=");
}

struct options {
	char *name, *profile;
	char **given; /* each -o */
	GString *extra;
};
typedef struct options options_t; /* for g_auto() only */

static void options_clear(struct options *o)
{
	g_free(o->name);
	g_free(o->profile);
	g_strfreev(o->given);
	if (o->extra)
		g_string_free(o->extra, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(options_t, options_clear)

static void take_option(struct options *o, const char *option, bool helper)
{
	if (g_str_has_prefix(option, "name=")) {
		g_free(o->name);
		o->name = g_strdup(option + strlen("name="));
	} else if (g_str_has_prefix(option, "profile=")) {
		g_free(o->profile);
		o->profile = g_strdup(option + strlen("profile="));
	} else if (*option && !(helper && is_for_others(option))) {
		g_string_append_printf(o->extra, "%s%s", o->extra->len ? "," : "", option);
	}
}

/* Commas separate options; a backslash keeps one in a value. */
static void take_options(struct options *o, bool helper)
{
	g_autoptr(GString) option = g_string_new(NULL);

	o->extra = g_string_new(NULL);
	for (char **list = o->given; list && *list; list++) {
		for (const char *c = *list; *c; c++) {
			if (*c == ',') {
				take_option(o, option->str, helper);
				g_string_truncate(option, 0);
				continue;
			}
			if (*c == '\\' && c[1])
				c++;
			g_string_append_c(option, *c);
		}
		take_option(o, option->str, helper);
		g_string_truncate(option, 0);
	}
}

static void announce(const struct mounted *m, void *user)
{
	const bool *json = user;
	GVariantBuilder b;

	if (!*json) {
		output_detail("%s sandbox %s for %s", m->resumed ? "resumed" : "new", m->name, m->workspace);
		printf("name: %s\nmountpoint: %s\n", m->name, m->mountpoint);
		fflush(stdout);
		return;
	}
	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.mount/1");
	json_add_string(&b, "sandbox", m->name);
	json_add_path(&b, "workspace", m->workspace);
	json_add_path(&b, "mountpoint", m->mountpoint);
	json_add_path(&b, "store", m->store);
	json_add_bool(&b, "resumed", m->resumed);
	json_print(stdout, g_variant_builder_end(&b));
	fflush(stdout);
}

int cmd_mount(struct invocation *inv, GError **error)
{
	g_auto(options_t) o = { 0 };
	gboolean fresh = FALSE, foreground = FALSE, debug = FALSE;
	struct mount_request request = { 0 };
	const GOptionEntry entries[] = {
		{ "name", 'n', 0, G_OPTION_ARG_FILENAME, &o.name, "The sandbox's name (default: from the workspace's)",
		  "NAME" },
		{ "profile", 'p', 0, G_OPTION_ARG_FILENAME, &o.profile, "The policy: a profile's name, or a file",
		  "PROFILE|FILE" },
		{ "new", 0, 0, G_OPTION_ARG_NONE, &fresh, "Make a new sandbox; never resume one", NULL },
		{ "foreground", 'f', 0, G_OPTION_ARG_NONE, &foreground, "Serve the view in this process", NULL },
		{ "debug", 'd', 0, G_OPTION_ARG_NONE, &debug, "The same, and print every request", NULL },
		{ "options", 'o', 0, G_OPTION_ARG_FILENAME_ARRAY, &o.given,
		  "Mount options: allow_other, ro, name=..., profile=...", "OPTS" },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "WORKSPACE [MOUNTPOINT]",
		.description = "Makes or resumes a sandbox for WORKSPACE and mounts its view at MOUNTPOINT, which "
			       "may be the workspace itself; left out: $XDG_RUNTIME_DIR/sbxfs/NAME/mnt. Prints the "
			       "sandbox's name and the mountpoint when the view answers. A resumed sandbox keeps its "
			       "policy unless -p gives another; the managed profile and the workspace's .sbxfs.ini "
			       "are read at each mount.",
		.options = entries,
		.min_args = 1,
		.max_args = 2,
		.json = true,
	};

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	take_options(&o, false);
	request.workspace = command_arg(inv, 0);
	request.mountpoint = command_arg(inv, 1);
	request.name = o.name;
	request.profile = o.profile;
	request.extra = o.extra->len ? o.extra->str : NULL;
	request.fresh = fresh;
	request.foreground = foreground;
	request.debug = debug;
	mounting_run(&request, announce, &inv->json, error);
	return EXIT_DONE;
}

static void announce_nothing(const struct mounted *m, void *user)
{
	(void)user;
	output_detail("sandbox %s at %s", m->name, m->mountpoint);
}

int cmd_mount_helper(struct invocation *inv, GError **error)
{
	g_auto(options_t) o = { 0 };
	gboolean fake = FALSE, sloppy = FALSE, no_table = FALSE;
	g_autofree char *type = NULL;
	g_autofree char *space = NULL;
	struct mount_request request = { 0 };
	const GOptionEntry entries[] = {
		{ "options", 'o', 0, G_OPTION_ARG_FILENAME_ARRAY, &o.given,
		  "name=NAME, profile=PROFILE, allow_other, ro, ...", "OPTS" },
		{ "fake", 'f', 0, G_OPTION_ARG_NONE, &fake, "Do nothing", NULL },
		{ "sloppy", 's', 0, G_OPTION_ARG_NONE, &sloppy, "Accepted and ignored", NULL },
		{ "no-mtab", 'n', 0, G_OPTION_ARG_NONE, &no_table, "Accepted and ignored", NULL },
		{ "types", 't', 0, G_OPTION_ARG_FILENAME, &type, "Accepted and ignored", "TYPE" },
		{ "namespace", 'N', 0, G_OPTION_ARG_FILENAME, &space, "Accepted and ignored", "NS" },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "WORKSPACE MOUNTPOINT",
		.description = "Called by mount(8) for `mount -t fuse.sbxfs WORKSPACE MOUNTPOINT -o "
			       "name=NAME,profile=PROFILE`.",
		.options = entries,
		.min_args = 2,
		.max_args = 2,
	};

	if (!command_parse(inv, &syntax, error) || fake)
		return EXIT_DONE;
	take_options(&o, true);
	request.workspace = command_arg(inv, 0);
	request.mountpoint = command_arg(inv, 1);
	request.name = o.name;
	request.profile = o.profile;
	request.extra = o.extra->len ? o.extra->str : NULL;
	mounting_run(&request, announce_nothing, NULL, error);
	return EXIT_DONE;
}
