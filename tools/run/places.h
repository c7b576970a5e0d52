/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * places - which directories a confined program has, as arguments of bwrap
 *
 * The root is an empty, read-only tmpfs. On it lie:
 *   /usr /bin /sbin /lib* /etc  the host's, read-only; of /etc without what not everybody may read, and without the
 *                               known secrets
 *   /proc /dev                  of its own; /sys and /run are not there, and so no socket of a daemon
 *   /tmp /var/tmp /dev/shm      empty, in memory
 *   home                        empty, in memory, but for home.read and home.write of [run] in the profile
 *   the git directory           read-only, when the workspace's .git is a file that points outside
 *   the view                    at the path of the workspace
 *
 * What the host has of it is looked up once, at the start.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct policy;
struct sandbox;

struct places {
	const struct sandbox *sandbox; /* live */
	const struct policy *policy;   /* the one in force */
	int workspace_fd;	       /* its real root, also under a view that lies on top of it */
	const char *home;	       /* from places_home() */
	const char *directory;	       /* where the program starts: absolute, as it sees it */
	uint64_t memory;	       /* the size of each tmpfs, in bytes */
};

/* places_home() - the home directory as a confined program sees it. Caller frees. */
char *places_home(void);

/* places_check_home() - are the entries of home.read and home.write such paths, whether anything is there or not? */
bool places_check_home(const struct policy *policy, GError **error);

/*
 * places_add() - appends to @argv (its strings are freed by it). An error for a workspace that cannot be shown, and
 * for places that would bring the store, the control socket or the workspace itself into sight.
 */
bool places_add(GPtrArray *argv, const struct places *p, GError **error);
