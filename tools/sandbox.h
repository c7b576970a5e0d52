/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * sandbox - one named sandbox as the tools see it: which store, which workspace, mounted where
 *
 * Everything is read from the store directory. A sandbox is *live* while a process serves its view: that process
 * answers on the control socket and holds the store's lock. Where it was mounted last is a setting of the store
 * ("mountpoint", "socket", "profile", "policy-path"), so it is also found from a session with another
 * $XDG_RUNTIME_DIR.
 *
 * Names are 1 to 64 characters of A-Z a-z 0-9 . _ + - and begin with a letter, a digit or _.
 */

#include <glib.h>
#include <stdbool.h>

struct control;
struct lower;

struct sandbox {
	char *name;
	char *dir;	   /* the store */
	char *workspace;   /* absolute, without symlinks; NULL when the store cannot be read */
	char *mountpoint;  /* where it is or was mounted last; NULL = never */
	char *socket;	   /* of the last mount; NULL = never */
	char *profile;	   /* the policy in force, by name */
	char *policy_path; /* and where it came from */
	char *problem;	   /* why the store cannot be read; NULL */
	bool live;	   /* a process serves it */
	bool mounted;	   /* the kernel has a mount of ours there: with a dead process it is stale */
};

void sandbox_free(struct sandbox *s);
typedef struct sandbox sandbox_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(sandbox_t, sandbox_free)

/*
 * sandbox_is_out_of_reach() - after something failed: is that because this process is in a confined run, where there are no sandboxes and none can be
 * made? Then @error says so.
 */
bool sandbox_is_out_of_reach(GError **error);

#define SANDBOX_NAME_MAX 64
bool sandbox_name_is_valid(const char *name);
/* sandbox_name_from() - the default name for a workspace: its last component, made valid. Caller frees. */
char *sandbox_name_from(const char *workspace);

/* sandbox_load() - EXIT_NOT_FOUND for a name without a store; one that cannot be read has ->problem set. */
struct sandbox *sandbox_load(const char *name, GError **error);
/* sandbox_list() - all of them by name; array of struct sandbox, frees itself. */
GPtrArray *sandbox_list(GError **error);
/* sandbox_view_at() - the name of the sandbox whose view is on top at @mountpoint, NULL = none. Caller frees. */
char *sandbox_view_at(const char *mountpoint);
/* sandbox_is_mounted() - asks the kernel again. Never looks into the mount, so a hung one does no harm. */
bool sandbox_is_mounted(const struct sandbox *s);
/* sandbox_state() - "mounted", "stale" (its process was killed), "unmounted" or "damaged". */
const char *sandbox_state(const struct sandbox *s);
/* sandbox_connect() - to the process that serves it; EXIT_NOT_FOUND when there is none. */
struct control *sandbox_connect(const struct sandbox *s, GError **error);
/* sandbox_open_workspace() - as the file system shows it: not for a view that lies on top of it. */
bool sandbox_open_workspace(const struct sandbox *s, struct lower **ret, GError **error);
/* sandbox_is_locked() - some process holds the store for writing: the one that serves the view, or another command. */
bool sandbox_is_locked(const char *dir);
/*
 * sandbox_lock() - holds off every mount and every other command, also of a store that cannot be read, until the descriptor is closed.
 * -1 with EXIT_BUSY when somebody has it; waits a little for that one, but without @error.
 */
int sandbox_lock(const struct sandbox *s, GError **error);

/*
 * sandbox_resolve() - the sandbox that @target names: a name, a path in a mounted view, or a path in a workspace that
 * only one sandbox has. NULL stands for the current directory, else the only live sandbox. What cannot be decided is
 * an error that lists the candidates.
 */
struct sandbox *sandbox_resolve(const char *target, GError **error);
/*
 * sandbox_choose() - the same among @all (of struct sandbox) from the directory @cwd: the part without a file system.
 * Borrowed from @all.
 */
struct sandbox *sandbox_choose(GPtrArray *all, const char *target, const char *cwd, GError **error);
