/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * exit_info - how a process ended that is no child of ours
 *
 * A descriptor of the process (pidfd_open(2)) tells it since Linux 6.15, also after its parent has asked. Before, the status is
 * only there until then, so who wants to know has to look at exit_group(2) itself, and a signal may stay unknown.
 */

#include <stdbool.h>

/* exit_info_works() - tried with a child that ends. */
bool exit_info_works(void);
/* exit_info_events() - what to wait for on a pidfd, so that exit_info_read() has an answer. */
unsigned exit_info_events(bool works);
/* exit_info_read() - of an ended process: its status as wait(2) gives it. False when it is not known. */
bool exit_info_read(int pidfd, int *ret_status);
