/* SPDX-License-Identifier: MIT */
#include "tools/run/usage.h"

#include <glib.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/run/process.h"

static void add_pids(GArray *all, const char *path)
{
	g_autofree char *text = NULL;
	char *at, *end;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return;
	for (at = text;; at = end) {
		pid_t pid = (pid_t)strtol(at, &end, 10);

		if (end == at)
			break;
		g_array_append_val(all, pid);
	}
}

/* A child belongs to the thread that forked it. */
static void add_children(GArray *all, pid_t pid)
{
	g_autofree char *tasks = g_strdup_printf("/proc/%d/task", (int)pid);
	GDir *dir = g_dir_open(tasks, 0, NULL);
	const char *task;

	while (dir && (task = g_dir_read_name(dir))) {
		g_autofree char *path = g_build_filename(tasks, task, "children", NULL);

		add_pids(all, path);
	}
	if (dir)
		g_dir_close(dir);
}

/* All below @first, which is the first of them. */
static GArray *descendants(pid_t first, uint64_t enough)
{
	GArray *all = g_array_new(FALSE, FALSE, sizeof(pid_t));

	g_array_append_val(all, first);
	for (unsigned i = 0; i < all->len && all->len - 1 < enough; i++)
		add_children(all, g_array_index(all, pid_t, i));
	return all;
}

static uint64_t private_memory(pid_t pid)
{
	char text[PROCESS_TEXT_SIZE];
	uint64_t resident, shared;

	if (!process_read_text(pid, "statm", text) || sscanf(text, "%*s %" SCNu64 " %" SCNu64, &resident, &shared) != 2)
		return 0;
	return (resident - MIN(shared, resident)) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Fields 14 to 17 of proc_pid_stat(5); the name before them may hold anything. */
static uint64_t cpu_time(pid_t pid)
{
	char text[PROCESS_TEXT_SIZE];
	uint64_t t[4];
	const char *rest;

	if (!process_read_text(pid, "stat", text))
		return 0;
	rest = strrchr(text, ')');
	if (!rest ||
	    sscanf(rest + 1,
		   " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &t[0],
		   &t[1], &t[2], &t[3]) != 4)
		return 0;
	return (t[0] + t[1] + t[2] + t[3]) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

void usage_read(pid_t first, uint64_t enough, struct usage *ret)
{
	g_autoptr(GArray) all = descendants(first, enough);

	*ret = (struct usage){ .processes = all->len - 1 };
	for (unsigned i = 0; i < all->len; i++) {
		ret->memory += private_memory(g_array_index(all, pid_t, i));
		ret->cpu_ms += cpu_time(g_array_index(all, pid_t, i));
	}
}

uint64_t usage_shared_memory(pid_t first)
{
	g_autoptr(GArray) all = descendants(first, UINT64_MAX);
	uint64_t sum = 0;

	for (unsigned i = 0; i < all->len; i++) {
		char text[PROCESS_TEXT_SIZE];
		const char *line;
		uint64_t kilobytes;

		if (!process_read_text(g_array_index(all, pid_t, i), "smaps_rollup", text))
			continue;
		line = strstr(text, "\nPss:");
		if (line && sscanf(line, " Pss: %" SCNu64, &kilobytes) == 1)
			sum += kilobytes * 1024;
	}
	return sum;
}

void usage_signal_children(pid_t first, int number)
{
	g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(pid_t));

	if (!first)
		return;
	add_children(all, first);
	for (unsigned i = 0; i < all->len; i++)
		kill(g_array_index(all, pid_t, i), number);
}
