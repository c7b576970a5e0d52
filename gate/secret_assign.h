/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * secret_assign - a value that is assigned to a name which says that it is a secret
 *
 *   DB_PASSWORD=...   "api_key": "..."   client_secret: ...   token := "..."   key="ApiKey" value="..."   <password>...</password>
 *   setenv("API_TOKEN", "...")   --password ...   machine h login u password ...   - name: X_TOKEN \n value: ...   IDENTIFIED BY '...'
 */

#include "gate/secret_match.h"

/* secret_assign_anchors() - parts of such names; ended by a NULL literal. */
const struct secret_anchor *secret_assign_anchors(void);
