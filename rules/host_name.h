/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * host_name - domain names in one spelling, so that they can be compared byte by byte
 *
 * Lower case, without the dot at the end, internationalised names in their ASCII form (xn--...). Labels are of letters, digits,
 * "-" and "_". What the resolver of some system would read as an address (2130706433, 0x7f.1, 127.1: the last label is a number)
 * is no name.
 */

#include <glib.h>

#define HOST_NAME_BYTES 253

/* host_name_new() - caller frees; NULL when @text is no name. */
char *host_name_new(const char *text);
