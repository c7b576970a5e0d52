/* SPDX-License-Identifier: MIT */
#include "tools/run/usage.h"

#include <glib.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* The number of kB behind @key, a line's beginning, in bytes; 0 when it is not there. */
static uint64_t kilobytes(const char *text, const char *key)
{
	const char *line = strstr(text, key);

	return line ? g_ascii_strtoull(line + strlen(key), NULL, 10) * 1024 : 0;
}

/* Not what it maps of files: that can be read again. */
static uint64_t resident_memory(pid_t pid)
{
	char text[PROCESS_TEXT_SIZE];

	return process_read_text(pid, "status", text) ? kilobytes(text, "\nRssAnon:") + kilobytes(text, "\nRssShmem:") : 0;
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
		ret->memory += resident_memory(g_array_index(all, pid_t, i));
		ret->cpu_ms += cpu_time(g_array_index(all, pid_t, i));
	}
}

/* Each memfd that is open once, by its device and number. */
static void add_memfds(GHashTable *sizes, pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int)pid);
	GDir *dir = g_dir_open(path, 0, NULL);
	const char *number;

	while (dir && (number = g_dir_read_name(dir))) {
		g_autofree char *fd = g_build_filename(path, number, NULL);
		char target[sizeof("/memfd:")] = "";
		struct stat st;

		if (readlink(fd, target, sizeof(target) - 1) < 0 || !g_str_equal(target, "/memfd:") || stat(fd, &st) < 0)
			continue;
		g_hash_table_insert(sizes, g_strdup_printf("%" PRIu64 ":%" PRIu64, (uint64_t)st.st_dev, (uint64_t)st.st_ino),
				    GSIZE_TO_POINTER((gsize)st.st_blocks));
	}
	if (dir)
		g_dir_close(dir);
}

static uint64_t open_memory(const GArray *all)
{
	g_autoptr(GHashTable) sizes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	GHashTableIter i;
	uint64_t blocks = 0;
	void *value;

	for (unsigned k = 0; k < all->len; k++)
		add_memfds(sizes, g_array_index(all, pid_t, k));
	g_hash_table_iter_init(&i, sizes);
	while (g_hash_table_iter_next(&i, NULL, &value))
		blocks += GPOINTER_TO_SIZE(value);
	return blocks * 512;
}

uint64_t usage_open_memory(pid_t first)
{
	g_autoptr(GArray) all = descendants(first, UINT64_MAX);

	return open_memory(all);
}

/* What of the memfds is mapped is in Pss_Shmem as well; how much, nobody tells. So the larger of the two counts, never both. */
uint64_t usage_exact_memory(pid_t first)
{
	g_autoptr(GArray) all = descendants(first, UINT64_MAX);
	uint64_t own = 0, shared = 0;

	for (unsigned i = 0; i < all->len; i++) {
		char text[PROCESS_TEXT_SIZE];

		if (!process_read_text(g_array_index(all, pid_t, i), "smaps_rollup", text))
			continue;
		own += kilobytes(text, "\nPss_Anon:");
		shared += kilobytes(text, "\nPss_Shmem:");
	}
	return own + MAX(shared, open_memory(all));
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
