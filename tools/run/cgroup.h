/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * cgroup - a control group for one run, where we may make one: what the kernel counts there, nobody gets away from
 *
 * Version 2: a group below the nearest of our own group and its ancestors where we may and which hands on the controllers that
 * are needed (delegated by systemd or a container's runtime; root's own). Where that gives no controller, the hierarchies of version 1. What
 * neither has, the caller keeps by other means. CPU time is counted in every group of version 2.
 *
 * The group goes when the run ends. For a run that is killed a process of its own waits, and removes the group; should that be killed as well,
 * the next run does it.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup;

/* cgroup_new() - @processes, @memory (bytes): limits, 0 = none; @cpu: its time is needed. NULL when nothing of it can be had. */
struct cgroup *cgroup_new(uint64_t processes, uint64_t memory, bool cpu);
/* cgroup_add() - @pid and all that it forks from then on. False: the group keeps nothing. */
bool cgroup_add(struct cgroup *c, pid_t pid);
/* What the kernel keeps, after cgroup_add(). NULL keeps nothing. */
bool cgroup_has_processes(const struct cgroup *c);
bool cgroup_has_memory(const struct cgroup *c);
/* cgroup_cpu_ms() - used by all in it, also by those that are gone. False when it is not known. */
bool cgroup_cpu_ms(const struct cgroup *c, uint64_t *ret);
/* cgroup_out_of_memory() - the kernel has killed something in it for the limit's sake. */
bool cgroup_out_of_memory(const struct cgroup *c);
/* cgroup_free() - after everything in it has been ended. NULL is none. */
void cgroup_free(struct cgroup *c);
