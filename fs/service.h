/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * service - one process that serves a view: from the store and the mount(2), or from what another process has left, to the last request
 */

#include <glib.h>
#include <stdbool.h>

struct heritage;
struct keeper_held;
struct mount_options;
struct policy;

struct service_start {
	const struct mount_options *options;
	struct policy *policy;     /* taken */
	int ready_fd;              /* who waits for the view reads there "ready", or a code and why there is none; taken; -1 = nobody */
	struct keeper_held *held;  /* of a process that may be replaced; NULL: none comes after it */
	struct heritage *heritage; /* the same */
};

/* service_run() - returns when the view was unmounted: true; or when it could not be served. */
bool service_run(const struct service_start *start, GError **error);
