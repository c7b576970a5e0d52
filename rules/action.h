/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * action - what a rule says about a path
 *
 * The values are ordered from open to closed, so the most closed of several verdicts is their maximum. What each one means to a
 * program in the view is written down in ARCHITECTURE.md; here they are only names and an order.
 */

#include <glib.h>
#include <stdbool.h>

enum action {
	ACTION_WRITE,      /* read and change */
	ACTION_SCRATCH,    /* changes stay in the sandbox */
	ACTION_ASK_CHANGE, /* may be read; each change waits for a human */
	ACTION_READ,       /* changes fail with EROFS */
	ACTION_ASK,        /* reading and changing wait for a human */
	ACTION_MASK,       /* readable, with values replaced */
	ACTION_DENY,       /* seen by name only */
	ACTION_HIDE,       /* does not exist */
};
#define ACTION_COUNT (ACTION_HIDE + 1)

/* action_name() - the word for it in a policy file. */
const char *action_name(enum action a);

/* action_from_name() - the reverse; false when there is no such action. Case matters, as in all keys of a policy file. */
bool action_from_name(const char *name, enum action *ret_action);
