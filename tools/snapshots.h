/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * snapshots - how a list of snapshots is shown
 */

#include <glib.h>

/* @all: array of struct snapshot, as store_snapshot_list() gives it. */
GVariant *snapshots_json(const GPtrArray *all); /* floating, aa{sv} */
void snapshots_print(const GPtrArray *all, const char *indent);
