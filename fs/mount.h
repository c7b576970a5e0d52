/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * mount - one view, from the mount(2) to the last request
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct audit_options;
struct policy;

struct mount_options {
	const char *name;       /* of the sandbox */
	const char *store;      /* its directory; must exist (store_create()) */
	const char *workspace;  /* absolute */
	const char *mountpoint; /* absolute; may be the workspace itself */
	const char *socket;     /* path of the control socket */
	const char *extra;      /* -o: comma list; allow_other, ro, ... ; NULL */
	const struct audit_options *audit; /* NULL: all records are kept, and copied nowhere */
	uint64_t disk_limit;    /* bytes that the store may take; 0 = any */
	bool foreground;
	bool debug;
	void (*ready)(void *user); /* in the foreground: once, when the view answers, from another thread; NULL */
	void *ready_user;
};

#define MOUNT_ERROR (mount_error_quark())
GQuark mount_error_quark(void);
enum mount_error {
	MOUNT_ERROR_FAILED,
	MOUNT_ERROR_BUSY,       /* served by another process, or the mountpoint is taken */
	MOUNT_ERROR_PLATFORM,   /* no /dev/fuse, no fusermount3, ... */
	MOUNT_ERROR_MOUNTPOINT, /* missing, not a directory, not empty, inside the workspace or the store */
	MOUNT_ERROR_STORE,      /* see the message; schema, damage */
	MOUNT_ERROR_OPTION,
	MOUNT_ERROR_POLICY, /* what it asks for cannot be had */
};

/*
 * mount_run() - serves a view. Takes @policy. With options->foreground it returns when the view was unmounted; else the view is served by a
 * background process and the call returns when it answers. A stale mount of a killed process on the mountpoint is cleared first.
 */
bool mount_run(const struct mount_options *options, struct policy *policy, GError **error);

/* mount_unmount() - lazily detaches nothing: fails with MOUNT_ERROR_BUSY while files are in use. Works for a stale mount too. */
bool mount_unmount(const char *mountpoint, GError **error);
/* mount_is_stale() - a FUSE mount whose process is gone. Never blocks on a hung one. */
bool mount_is_stale(const char *mountpoint);
