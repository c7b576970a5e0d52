/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * landlock - a process that can read some files and change none (landlock(7))
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * landlock_enter() - from here on this process and its children can only read what is at or below @readable; what does not
 * exist is left out. It can also send no signal and use no abstract socket outside, where the kernel knows of that. True also
 * on a kernel without Landlock: the caller has other guards. Needs no_new_privs.
 */
bool landlock_enter(const char *const *readable, size_t count);
