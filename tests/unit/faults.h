/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * faults - one write to the store fails
 *
 * Programs that use it are linked with -Wl,--wrap for each function that faults.c wraps (see meson.build).
 */

#include <stdbool.h>

/* fault_arm() - the @n-th write from now on (1 = the next) fails with @error, a negative errno. */
void fault_arm(unsigned int n, int error);
/* fault_disarm() - whether it came to that. */
bool fault_disarm(void);
