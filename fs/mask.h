/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * mask - what may be seen of a masked file: its shape, not its values
 *
 * A file of KEY=value lines (as .env) shows its keys with every value replaced; one with [sections] shows all but the values of keys whose
 * names speak of credentials, URLs with a password, and values that hold such a setting themselves. Comments are emptied. Anything else, or anything that is not understood to the last line, is shown as an
 * empty file: what can't be parsed can't be masked.
 */

#include <glib.h>

#define MASK_VALUE "<masked>"
/* A longer file is shown empty. */
#define MASK_MAX (1024 * 1024)

/* mask_text() - never NULL; caller unrefs. */
GBytes *mask_text(const char *data, size_t size);
