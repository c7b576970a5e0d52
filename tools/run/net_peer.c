/* SPDX-License-Identifier: MIT */
#include "tools/run/net_peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINK_SIZE 64

static bool read_link(const char *path, char text[static LINK_SIZE])
{
	ssize_t n = readlink(path, text, LINK_SIZE - 1);

	text[MAX(n, 0)] = '\0';
	return n > 0;
}

/* The socket whose own end is that port: proc_net_tcp(5). 0 = none. */
static uint64_t find_inode(pid_t first, unsigned port)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/net/tcp", (int)first);
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return 0;
	lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; *line; line++) {
		unsigned local;
		uint64_t inode;

		if (sscanf(*line, " %*u: %*8x:%4x %*8x:%*4x %*x %*x:%*x %*x:%*x %*x %*u %*u %" SCNu64, &local, &inode) == 2 &&
		    local == port)
			return inode;
	}
	return 0;
}

static bool has_socket(const char *pid, const char *wanted)
{
	g_autofree char *fds = g_build_filename("/proc", pid, "fd", NULL);
	GDir *dir = g_dir_open(fds, 0, NULL);
	char link[LINK_SIZE];
	const char *name;
	bool found = false;

	while (!found && dir && (name = g_dir_read_name(dir))) {
		g_autofree char *path = g_build_filename(fds, name, NULL);

		found = read_link(path, link) && g_str_equal(link, wanted);
	}
	if (dir)
		g_dir_close(dir);
	return found;
}

static bool is_in_namespace(const char *pid, const char *namespace)
{
	g_autofree char *path = g_build_filename("/proc", pid, "ns/net", NULL);
	char link[LINK_SIZE];

	return g_ascii_isdigit(*pid) && read_link(path, link) && g_str_equal(link, namespace);
}

static void describe(const char *pid, struct net_peer *ret)
{
	g_autofree char *path = g_build_filename("/proc", pid, "comm", NULL);
	g_autofree char *name = NULL;

	ret->pid = atoi(pid);
	if (g_file_get_contents(path, &name, NULL, NULL))
		g_strlcpy(ret->program, g_strchomp(name), sizeof(ret->program));
}

void net_peer_find(pid_t first, unsigned port, struct net_peer *ret)
{
	g_autofree char *own = g_strdup_printf("/proc/%d/ns/net", (int)first);
	g_autofree char *wanted = g_strdup_printf("socket:[%" PRIu64 "]", find_inode(first, port));
	GDir *dir = g_dir_open("/proc", 0, NULL);
	char namespace[LINK_SIZE];
	const char *pid;

	*ret = (struct net_peer){ 0 };
	while (dir && !ret->pid && !g_str_equal(wanted, "socket:[0]") && read_link(own, namespace) && (pid = g_dir_read_name(dir)))
		if (is_in_namespace(pid, namespace) && has_socket(pid, wanted))
			describe(pid, ret);
	if (dir)
		g_dir_close(dir);
}
