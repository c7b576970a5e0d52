/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * choose - `sbxfs commit -i`: changes and hunks one by one on a terminal, as `git add -p` asks for them
 */

#include <glib.h>
#include <stdbool.h>

#include "snapshot/selection.h"

/* choose_can_ask() - there is a terminal; else EXIT_USAGE. */
bool choose_can_ask(GError **error);
/* choose_run() - asks on the terminal (standard error and input) until all is answered; the end of the input is as "q". */
bool choose_run(struct selection *s, struct tree *from, struct tree *to, GError **error);
