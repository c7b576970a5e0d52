/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * mounting - from a workspace and a few wishes to a mounted view
 *
 * The order is: everything that can be refused is looked at first (workspace, name, mountpoint, policy, /dev/fuse);
 * then the store is made or opened and told the policy and the mountpoint; then the view is mounted. When that fails
 * a new sandbox is taken away again, and a resumed one gets its old policy back.
 */

#include <glib.h>
#include <stdbool.h>

struct mount_request {
	const char *workspace;
	const char *mountpoint; /* NULL = the default one */
	const char *name;	/* NULL = from the workspace's name */
	const char *profile;	/* a profile's name or a file; NULL = the default one, or what is in force already */
	const char *extra;	/* mount options, NULL = none */
	bool fresh;		/* never resume */
	bool foreground;
	bool debug;
};

struct mounted {
	char *name;
	char *workspace;
	char *mountpoint;
	char *store;
	bool resumed;
};
void mounted_clear(struct mounted *m);
typedef struct mounted mounted_t; /* for g_auto() only */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(mounted_t, mounted_clear)

/*
 * mounting_run() - holds view_change_begin() of the sandbox from the first look to the view's first answer; returns when the view answers; with ->foreground when it was unmounted. @announce is called with
 * what is to be mounted as soon as that is sure: in the foreground just before, else after the mount.
 */
typedef void (*mounting_announce)(const struct mounted *m, void *user);
bool mounting_run(const struct mount_request *request, mounting_announce announce, void *user, GError **error);

/*
 * mounting_name() - the name of the sandbox that mounting_run() would make or resume. NULL also when the store or the socket would lie in the
 * workspace, so what is made there after it does no harm. Caller frees.
 */
char *mounting_name(const struct mount_request *request, GError **error);

/* mounting_check_device() - /dev/fuse can be opened; else EXIT_PLATFORM with the remedy. */
bool mounting_check_device(GError **error);
