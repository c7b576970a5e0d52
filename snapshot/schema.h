/* SPDX-License-Identifier: MIT */
#pragma once

/* schema - the tables of store.db and the steps from one version to the next. PRAGMA user_version holds the version. */

#include "snapshot/db.h"

#define SCHEMA_VERSION 3
#define SCHEMA_READABLE 2 /* the oldest one whose tables a reader of today understands */

/* schema_upgrade() - creates or migrates, in one transaction. -EPROTO for a database of a newer version. */
int schema_upgrade(struct db *db);
/* schema_check() - for a reader: -EPROTO for a newer version. */
int schema_check(struct db *db, int64_t *ret_version);
