/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * unmounting - the way back of mounting: the view is gone, its process has ended, what mount made is away
 */

#include <glib.h>
#include <stdbool.h>

struct sandbox;

/*
 * unmounting_run() - returns when the process of the view has ended. Clears what a killed one left, too. EXIT_BUSY
 * while files in the view are in use, EXIT_NOT_FOUND when nothing is mounted. The changes stay in the store.
 */
bool unmounting_run(const struct sandbox *s, GError **error);
