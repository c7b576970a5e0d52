/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * fuse_ops - the operations of the view in libfuse's terms: find the arguments, call the overlay, reply once
 */

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

struct overlay;

/* The user data of the session. */
struct view {
	struct overlay *overlay;
	struct fuse_session *session;
	void (*ready)(void *user); /* once, when the kernel has the view */
	void *ready_user;
};

extern const struct fuse_lowlevel_ops fuse_view_ops;
