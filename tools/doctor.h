/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * doctor - is everything there that sbxfs needs, and are the sandboxes sound?
 *
 * What can be tried is tried, by the same code that needs it later, instead of judged by versions and settings: /dev/fuse is
 * opened, namespaces are made. Nothing is repaired or changed.
 */

#include <glib.h>

struct sandbox;

/* Both append to @findings, of struct finding. */
void doctor_platform(GPtrArray *findings);
void doctor_sandbox(GPtrArray *findings, const struct sandbox *s);
