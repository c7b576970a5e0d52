/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/control.h"
#include "tools/attach.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/mounting.h"
#include "tools/output.h"
#include "tools/paths.h"
#include "tools/run/commands.h"
#include "tools/run/confined.h"
#include "tools/run/cycle.h"
#include "tools/run/environment.h"
#include "tools/run/hold.h"
#include "tools/run/net.h"
#include "tools/run/places.h"
#include "tools/sandbox.h"

struct options {
	char *name, *profile, *net, *on_exit;
	char **mount, **limits; /* each -o, each --limit */
	gboolean fresh;
};

struct run {
	struct options options;
	char *const *command;
	char *workspace; /* as given, to be mounted */
	char *name;	 /* of the sandbox */
	struct hold *hold;
	struct attached *attached; /* while the view is there */
	struct cycle *cycle;
	struct commands *commands; /* NULL = no log of them */
	char *home;
	bool net_on;
	int status;
};
typedef struct run run_t; /* for g_auto() only */

static void run_clear(struct run *r)
{
	g_autoptr(GError) failure = NULL;

	g_clear_pointer(&r->commands, commands_free);
	g_clear_pointer(&r->cycle, cycle_free);
	g_clear_pointer(&r->attached, attached_close);
	if (!hold_free(r->hold, &failure))
		output_note("the view is still there: %s", failure->message);
	g_free(r->options.name);
	g_free(r->options.profile);
	g_free(r->options.net);
	g_free(r->options.on_exit);
	g_strfreev(r->options.mount);
	g_strfreev(r->options.limits);
	g_free(r->workspace);
	g_free(r->name);
	g_free(r->home);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(run_t, run_clear)

/* The sandbox */

static struct mount_request request_of(const struct run *r, const char *extra)
{
	return (struct mount_request){
		.workspace = r->workspace,
		.name = r->name ? r->name : r->options.name,
		.profile = r->options.profile,
		.extra = extra,
		.fresh = r->options.fresh,
	};
}

/* A name, a path in a view or in a workspace that one sandbox has; else a workspace that has none or several yet. */
static bool choose_sandbox(struct run *r, const char *given, GError **error)
{
	const char *target = given ? given : ".";
	g_autoptr(sandbox_t) s = NULL;
	struct mount_request request;

	if (!r->options.name && !r->options.fresh)
		s = sandbox_resolve(target, NULL);
	if (s && !s->problem) {
		r->workspace = g_strdup(s->workspace);
		r->name = g_strdup(s->name);
		return true;
	}
	r->workspace = g_strdup(target);
	request = request_of(r, NULL);
	r->name = mounting_name(&request, error);
	return r->name != NULL;
}

static bool check_live(const struct run *r, GError **error)
{
	if (!r->options.profile && !r->options.mount && !r->options.fresh)
		return true;
	tool_error(error, EXIT_BUSY, r->name,
		   "sandbox %s is mounted already, so -p, -o and --new have nothing to say; leave them out, or `sbxfs "
		   "umount "
		   "%s` first",
		   r->name, r->name);
	return false;
}

static void announce(const struct mounted *m, void *user)
{
	(void)user;
	output_detail("%s sandbox %s for %s", m->resumed ? "resumed" : "new", m->name, m->workspace);
}

static bool mount_view(struct run *r, GError **error)
{
	g_autofree char *extra = r->options.mount ? g_strjoinv(",", r->options.mount) : NULL;
	struct mount_request request = request_of(r, extra);

	if (!hold_start_keeper(r->hold, error) || !mounting_run(&request, announce, NULL, error))
		return false;
	hold_mounted(r->hold);
	return true;
}

static bool is_live(const char *name)
{
	g_autoptr(sandbox_t) s = sandbox_load(name, NULL);

	return s && s->live;
}

static bool has_workspace(const struct run *r, const struct sandbox *s)
{
	g_autofree char *wanted = paths_resolve(r->workspace);

	return g_strcmp0(wanted, s->workspace) == 0 || g_strcmp0(r->workspace, s->workspace) == 0;
}

/* While this run waited another one may have given the name to a workspace of its own. Unless the name was given, there are more. */
static bool keep_name(struct run *r, bool *ret_other, GError **error)
{
	g_autoptr(sandbox_t) s = sandbox_load(r->name, NULL);
	struct mount_request request;

	*ret_other = s && !s->problem && !has_workspace(r, s);
	if (!*ret_other)
		return true;
	if (r->options.name) {
		tool_error(error, EXIT_USAGE, r->name, "sandbox %s belongs to the workspace %s; choose another name with -n", s->name,
			   s->workspace);
		return false;
	}
	hold_end_view(r->hold);
	hold_free(r->hold, NULL);
	r->hold = NULL;
	g_clear_pointer(&r->name, g_free);
	request = request_of(r, NULL);
	r->name = mounting_name(&request, error);
	return r->name != NULL;
}

/* Of several that begin at the same moment one mounts, and the others find the view. */
static bool find_or_mount_view(struct run *r, GError **error)
{
	bool ok, other = true;

	while (other) {
		r->hold = hold_new(r->name, error);
		if (!r->hold || !hold_begin_view(r->hold, error) || !keep_name(r, &other, error))
			return false;
	}
	ok = is_live(r->name) ? check_live(r, error) : mount_view(r, error);
	hold_end_view(r->hold);
	return ok;
}

static bool open_view(struct run *r, GError **error)
{
	struct sandbox *s;

	if (!find_or_mount_view(r, error))
		return false;
	s = sandbox_load(r->name, error);
	r->attached = s ? attached_open_sandbox(s, ATTACH_CONTROL, error) : NULL;
	return r->attached != NULL;
}

/* The program */

/* The same place in the view, for a caller who is in the view or in the workspace. */
static char *directory_inside(const struct sandbox *s)
{
	g_autofree char *cwd = g_get_current_dir();
	const char *below = paths_below(cwd, s->mountpoint);
	g_autofree char *seen = NULL;

	if (!below)
		below = paths_below(cwd, s->workspace);
	seen = below && *below ? g_build_filename(s->mountpoint, below, NULL) : NULL;
	return seen && access(seen, X_OK) == 0 ? g_build_filename(s->workspace, below, NULL) : g_strdup(s->workspace);
}

/* A quarter of the machine's memory for each of the directories in memory, or what the limit says. */
static uint64_t tmpfs_size(const struct limits *l)
{
	uint64_t size = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;

	return l->value[LIMIT_MEMORY] ? MIN(size, l->value[LIMIT_MEMORY]) : size;
}

static bool find_places(const struct run *r, const struct limits *limits, GPtrArray *argv, GError **error)
{
	const struct attached *a = r->attached;
	g_autofree char *directory = directory_inside(a->sandbox);
	struct places p = {
		.sandbox = a->sandbox,
		.policy = a->policy,
		.workspace_fd = control_root_fd(a->control, error),
		.home = r->home,
		.directory = directory,
		.memory = tmpfs_size(limits),
	};
	bool ok = p.workspace_fd >= 0 && places_add(argv, &p, error);

	if (p.workspace_fd >= 0)
		close(p.workspace_fd);
	g_ptr_array_add(argv, NULL);
	return ok;
}

static bool open_log(struct run *r, struct confined *c, GError **error)
{
	bool wanted;

	if (!commands_wanted(r->attached->policy, &wanted, &c->keep_output, error))
		return false;
	if (wanted)
		c->commands = r->commands = commands_new(r->attached->sandbox, error);
	else
		c->keep_output = 0;
	return !wanted || r->commands;
}

static void stopped(const char *limit, void *user)
{
	struct run *r = user;

	cycle_stopped(r->cycle, r->attached, limit);
}

static bool run_program(struct run *r, const struct limits *limits, GError **error)
{
	g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
	g_auto(GStrv) environment = NULL;
	g_autoptr(net_t) net = NULL;
	bool ok;
	struct confined c = { .command = r->command, .hostname = r->name, .limits = *limits, .stopped = stopped, .user = r };

	r->home = places_home();
	if (!find_places(r, limits, argv, error))
		return false;
	if (r->net_on && !(net = net_start(r->attached->policy, r->attached->sandbox->socket, error)))
		return false;
	environment = environment_new(r->attached->policy, r->name, r->home);
	if (net)
		environment = net_environment(environment);
	c.places = (char **)argv->pdata;
	c.environment = environment;
	c.net = net;
	ok = open_log(r, &c, error) && confined_run(&c, &r->status, error);
	if (net)
		net_finish(net);
	return ok;
}

static bool check_options(const struct options *o, const struct invocation *inv, enum on_exit *ret_on_exit,
			  GError **error)
{
	bool on;

	if (!inv->paths || inv->paths->len == 0) {
		tool_error(error, EXIT_USAGE, NULL, "which program? %s %s", inv->program,
			   "[WORKSPACE|TARGET] -- COMMAND...");
		return false;
	}
	if (!cycle_parse(o->on_exit, ret_on_exit)) {
		tool_error(error, EXIT_USAGE, NULL, "--on-exit %s: it is ask, keep, commit or rollback", o->on_exit);
		return false;
	}
	return net_mode(o->net, NULL, &on, error);
}

/* The policy's is kept already; --limit may say another. */
static bool limit_disk(const struct attached *a, const struct limits *l, GError **error)
{
	g_autoptr(GVariant) arguments = g_variant_ref_sink(g_variant_new_parsed("{'disk': <%t>}", l->value[LIMIT_DISK]));
	g_autoptr(GVariant) answer = control_call(a->control, "limit", arguments, error);

	return answer != NULL;
}

static bool run(struct run *r, const char *given, enum on_exit on_exit, GError **error)
{
	struct limits limits;

	if (!choose_sandbox(r, given, error) || !open_view(r, error) ||
	    !limits_read(r->attached->policy, r->options.limits, &limits, error) ||
	    !net_mode(r->options.net, r->attached->policy, &r->net_on, error))
		return false;
	if (r->options.limits && !limit_disk(r->attached, &limits, error))
		return false;
	r->cycle = cycle_begin(r->attached, r->command, hold_is_shared(r->hold), error);
	if (!r->cycle || !run_program(r, &limits, error))
		return false;
	cycle_summarise(r->cycle, r->attached, r->status);
	g_clear_pointer(&r->attached, attached_close);
	return cycle_end(r->cycle, on_exit, &r->status, error);
}

int cmd_run(struct invocation *inv, GError **error)
{
	g_auto(run_t) r = { 0 };
	enum on_exit on_exit;
	const GOptionEntry entries[] = {
		{ "name", 'n', 0, G_OPTION_ARG_FILENAME, &r.options.name,
		  "The sandbox's name (default: from the workspace's)", "NAME" },
		{ "profile", 'p', 0, G_OPTION_ARG_FILENAME, &r.options.profile,
		  "The policy: a profile's name, or a file", "PROFILE|FILE" },
		{ "new", 0, 0, G_OPTION_ARG_NONE, &r.options.fresh, "Make a new sandbox; never resume one", NULL },
		{ "options", 'o', 0, G_OPTION_ARG_FILENAME_ARRAY, &r.options.mount, "Mount options", "OPTS" },
		{ "net", 0, 0, G_OPTION_ARG_STRING, &r.options.net,
		  "The network: off, or allowlist (default: as the profile's [network] says)", "MODE" },
		{ "limit", 0, 0, G_OPTION_ARG_STRING_ARRAY, &r.options.limits,
		  "Limits: memory, processes, cpu, time, files, output, disk", "KEY=VALUE,..." },
		{ "on-exit", 0, 0, G_OPTION_ARG_STRING, &r.options.on_exit,
		  "Afterwards: ask, keep (default), commit or rollback", "WHAT" },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "[WORKSPACE|TARGET] -- COMMAND...",
		.description =
			"Runs COMMAND confined to the view: it sees the view at the workspace's own path, the system "
			"read-only and an empty home, and has no other processes, no privileges and no network but "
			"what the profile's [network] lets through. A view that is not mounted yet is mounted for as long as it takes. A snapshot, "
			"run-1, run-2, "
			"..., is made before it. The exit status "
			"is COMMAND's, 128+N when signal N ended it, 124 after the time limit, 137 after another "
			"one, 127 when there is no such command.",
		.options = entries,
		.max_args = 1,
		.paths = true,
	};

	if (!command_parse(inv, &syntax, error) || !check_options(&r.options, inv, &on_exit, error))
		return EXIT_DONE;
	g_ptr_array_add(inv->paths, NULL);
	r.command = (char *const *)inv->paths->pdata;
	if (!run(&r, command_arg(inv, 0), on_exit, error))
		return EXIT_INTERNAL;
	return r.status;
}
