/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "fs/mount.h"
#include "tools/attach.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/sandbox.h"
#include "tools/store_dir.h"
#include "tools/view_lock.h"

static bool check_unmounted(const struct sandbox *s, GError **error)
{
	if (s->live) {
		tool_error(error, EXIT_BUSY, s->name, "sandbox %s is mounted at %s; `sbxfs umount %s` first", s->name,
			   s->mountpoint, s->name);
		return false;
	}
	return !s->mounted || mount_unmount(s->mountpoint, error);
}

static unsigned count_own_snapshots(struct store *s)
{
	g_autoptr(GPtrArray) all = NULL;
	unsigned n = 0;

	if (store_snapshot_list(s, &all) < 0)
		return 0;
	for (unsigned i = 0; i < all->len; i++)
		n += *((const struct snapshot *)all->pdata[i])->name != '@';
	return n;
}

/*
 * What would be lost; without --force nothing may be. The states that rollbacks left behind were dropped once
 * already.
 */
static bool check_contents(const struct sandbox *s, GError **error)
{
	g_autoptr(GError) failure = NULL;
	g_autoptr(attached_t) a = attached_open(s->name, ATTACH_READ, &failure);
	uint64_t changes;
	unsigned snapshots;

	if (!a || !attached_count_changes(a, &changes, &failure)) {
		tool_error(error, EXIT_BUSY, s->name,
			   "cannot tell whether sandbox %s holds changes: %s; --force deletes it all the same", s->name,
			   failure->message);
		return false;
	}
	snapshots = count_own_snapshots(a->store);
	if (changes == 0 && snapshots == 0)
		return true;
	tool_error(error, EXIT_BUSY, s->name,
		   "sandbox %s holds %" PRIu64
		   " changed paths and %u snapshots that are nowhere else; commit them, or add --force",
		   s->name, changes, snapshots);
	return false;
}

static bool destroy(const struct sandbox *s, bool force, GError **error)
{
	bool ok;
	int lock;

	if (!check_unmounted(s, error))
		return false;
	lock = sandbox_lock(s, error);
	if (lock < 0)
		return false;
	ok = (force || check_contents(s, error)) && store_dir_remove(s->dir, error);
	close(lock);
	if (ok && s->socket)
		unlink(s->socket);
	return ok;
}

/* Nobody mounts it meanwhile, and a view that a run has left is gone first. */
static bool destroy_alone(const char *name, bool force, GError **error)
{
	g_autoptr(sandbox_t) s = NULL;
	bool ok;

	if (!view_change_begin(name, error))
		return false;
	s = sandbox_load(name, error);
	ok = s && destroy(s, force, error);
	view_change_end(name);
	return ok;
}

int cmd_destroy(struct invocation *inv, GError **error)
{
	gboolean force = FALSE;
	const GOptionEntry options[] = {
		{ "force", 0, 0, G_OPTION_ARG_NONE, &force, "Also drop changes and snapshots that are nowhere else",
		  NULL },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "TARGET",
		.description = "Deletes an unmounted sandbox: its store with all changes and snapshots. The "
			       "workspace is not touched. Without --force a sandbox that holds changes or snapshots "
			       "is left alone (exit code 8).",
		.options = options,
		.min_args = 1,
		.max_args = 1,
		.json = true,
	};
	g_autoptr(sandbox_t) s = NULL;
	g_autofree char *name = NULL;

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	s = sandbox_resolve(command_arg(inv, 0), error);
	name = s ? g_strdup(s->name) : NULL;
	if (!name || !destroy_alone(name, force, error))
		return EXIT_INTERNAL;
	if (inv->json)
		json_print(stdout, g_variant_new_parsed("{'schema': <'sbxfs.destroy/1'>, 'sandbox': <%s>}", name));
	else
		printf("%s: destroyed\n", name);
	return EXIT_DONE;
}
