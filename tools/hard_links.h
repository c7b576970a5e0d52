/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * hard_links - files of a workspace whose content a rule closes, and that have a second name which none closes
 *
 * A rule is about names, and for the view such a file is what the open name says. The kernel keeps no list of the names of a
 * file, so finding them takes a walk through the whole workspace.
 */

#include <glib.h>
#include <stdint.h>

#include "snapshot/lower.h"

struct policy;

struct hard_link {
	char *closed; /* a path that is denied, hidden, masked or asked for */
	char *open;   /* another name of the same file, which can be read */
};

struct hard_links {
	GPtrArray *found;    /* struct hard_link, one for each file; in no order */
	GPtrArray *repositories; /* directories with a .git that the policy shows, met on the way */
	uint64_t unreadable; /* directories that could not be looked into */
};

void hard_links_find(struct lower *l, const struct policy *p, struct hard_links *ret);
void hard_links_clear(struct hard_links *h);
