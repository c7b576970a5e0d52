/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * asked - the questions of a view that wait for a human, as the commands show them
 *
 * A question is the a{sv} that the serving process gives: see "questions" in fs/control.h.
 */

#include <glib.h>
#include <stdbool.h>

struct control;

/* asked_list() - aa{sv}; caller unrefs. NULL with @error. */
GVariant *asked_list(struct control *c, GError **error);
/* asked_print() - a line or two for each. */
void asked_print(GVariant *questions, const char *indent);
void asked_print_one(GVariant *question, const char *indent);
