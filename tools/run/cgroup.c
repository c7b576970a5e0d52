/* SPDX-License-Identifier: MIT */
#include "tools/run/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOP "/sys/fs/cgroup"
#define PREFIX "sbxfs-run-"
#define WAIT_STEP_US (10 * 1000)
#define WAIT_STEPS 200

struct cgroup {
	char *dir;
};

static bool put(const char *dir, const char *name, const char *value)
{
	g_autofree char *path = g_build_filename(dir, name, NULL);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* The group that this process is in: "N:pids:/path" has the controller in version 1, "0::/path" is version 2. */
static char *own_dir(const char *mark, const char *top)
{
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;

	if (!g_file_get_contents("/proc/self/cgroup", &text, NULL, NULL))
		return NULL;
	lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; *line; line++) {
		const char *rest = strchr(*line, ':');

		if (rest && g_str_has_prefix(rest, mark))
			return g_build_filename(top, rest + strlen(mark), NULL);
	}
	return NULL;
}

/* What runs left that were killed. */
static void sweep(const char *parent)
{
	GDir *dir = g_dir_open(parent, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *path = g_build_filename(parent, name, NULL);
		int pid = g_str_has_prefix(name, PREFIX) ? atoi(name + strlen(PREFIX)) : 0;

		if (pid > 0 && kill(pid, 0) < 0 && errno == ESRCH && rmdir(path) < 0)
			g_debug("%s: %s", path, g_strerror(errno));
	}
	if (dir)
		g_dir_close(dir);
}

static struct cgroup *make(char *parent, const char *limit)
{
	g_autofree char *owned = parent;
	struct cgroup *c;

	if (!parent)
		return NULL;
	sweep(parent);
	c = g_new0(struct cgroup, 1);
	c->dir = g_strdup_printf("%s/" PREFIX "%d", parent, (int)getpid());
	if (mkdir(c->dir, 0755) == 0 && put(c->dir, "pids.max", limit))
		return c;
	cgroup_free(c);
	return NULL;
}

struct cgroup *cgroup_new(uint64_t processes)
{
	g_autofree char *limit = g_strdup_printf("%" PRIu64, processes);
	struct cgroup *c = make(own_dir(":pids:", TOP "/pids"), limit);

	return c ? c : make(own_dir("::", TOP), limit);
}

bool cgroup_add(const struct cgroup *c, pid_t pid)
{
	g_autofree char *text = g_strdup_printf("%d", (int)pid);

	return put(c->dir, "cgroup.procs", text);
}

void cgroup_free(struct cgroup *c)
{
	if (!c)
		return;
	for (int i = 0; i < WAIT_STEPS && rmdir(c->dir) < 0 && errno == EBUSY; i++)
		g_usleep(WAIT_STEP_US);
	g_free(c->dir);
	g_free(c);
}
