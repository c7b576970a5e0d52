/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * cgroup - a control group for one run, where we may make one: in ours, with the controller of processes
 *
 * Both layouts are known: version 2, where the controller must have been delegated, and the "pids" hierarchy of
 * version 1. The group goes when the run ends; that of a killed one is empty, and is removed by the next run.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup;

/* cgroup_new() - NULL when it cannot be made, which is usual for an ordinary user. */
struct cgroup *cgroup_new(uint64_t processes);
/* cgroup_add() - @pid and all that it forks from then on. */
bool cgroup_add(const struct cgroup *c, pid_t pid);
/* cgroup_free() - after everything in it has been ended. */
void cgroup_free(struct cgroup *c);
