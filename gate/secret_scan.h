/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * secret_scan - finds secrets in bytes: the matcher for gate/scan.h
 *
 * A table over the first two bytes tells at which places anything can begin at all, so most bytes cost one look-up. Found are the
 * formats of secret_rules.c, private keys, signed tokens, user:password in URLs, Authorization headers and command lines, and values
 * that are assigned to a name that says what they are, in any of the ways in which code and configuration files assign.
 *
 * An excerpt shows the format's prefix or the name, never the value.
 */

#include "gate/scan.h"

/* secret_scan_look() - give it to scan_new(). */
void secret_scan_look(struct scan *s, const struct scan_view *v);
