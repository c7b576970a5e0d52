/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * local_view - what stands in for a view's process while nothing is mounted
 *
 * The command takes the store's lock and runs the same operations on an overlay of its own. Nobody can mount the
 * sandbox meanwhile.
 */

#include <glib.h>

struct control;
struct sandbox;
struct local_view;

/* local_view_open() - STORE_ERROR_BUSY when the sandbox is mounted or another command has it. */
struct local_view *local_view_open(const struct sandbox *s, GError **error);
/* local_view_control() - the caller closes it, before the view. */
struct control *local_view_control(struct local_view *v);
void local_view_close(struct local_view *v);
