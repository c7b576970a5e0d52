/* SPDX-License-Identifier: MIT */
#pragma once

/* store_private - for the other files of snapshot/ that keep tables in the same index. */

#include "snapshot/db.h"
#include "snapshot/store.h"

struct db *store_db(struct store *s);
