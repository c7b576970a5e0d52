/* SPDX-License-Identifier: MIT */
#include "tools/run/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOP "/sys/fs/cgroup"
#define PREFIX "sbxfs-run-"
#define WAIT_STEP_US (10 * 1000)
#define WAIT_STEPS 200
#define REMOVER_STEPS 6000

enum controller { PIDS, MEMORY, CPU };
#define CONTROLLERS 3

/* CPU is only read. */
static const struct {
	const char *name[2]; /* of version 1 and 2 */
	const char *limit[2];
} known[CONTROLLERS] = {
	[PIDS] = { { "pids", "pids" }, { "pids.max", "pids.max" } },
	[MEMORY] = { { "memory", "memory" }, { "memory.limit_in_bytes", "memory.max" } },
	[CPU] = { { "cpuacct", NULL }, { NULL, NULL } },
};

struct cgroup {
	char *dir[CONTROLLERS]; /* the group that has it; NULL = none */
	int version[CONTROLLERS];
	pid_t remover; /* 0 = none */
	int alive;     /* its pipe, closed by our end; -1 */
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

static char *get(const char *dir, const char *name)
{
	g_autofree char *path = g_build_filename(dir, name, NULL);
	char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) ? text : NULL;
}

/* The number behind @key in a file of "key number" lines, or of a number alone; 0 when it is not there. */
static uint64_t get_number(const char *dir, const char *name, const char *key)
{
	g_autofree char *text = get(dir, name);
	const char *at = text;

	if (text && key) {
		g_autofree char *line = g_strconcat("\n", key, " ", NULL);

		at = g_str_has_prefix(text, line + 1) ? text : strstr(text, line);
		at = at ? strchr(at, ' ') : NULL;
	}
	return at ? g_ascii_strtoull(at, NULL, 10) : 0;
}

/* The group that this process is in: "N:pids:/path" has the controller in version 1, "0::/path" is version 2. */
static char *own_dir(const char *mark, const char *top)
{
	g_autofree char *text = get("/proc/self", "cgroup");
	g_auto(GStrv) lines = NULL;

	if (!text)
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

/* A new group below @parent, or NULL. */
static char *make(const char *parent)
{
	char *dir = g_strdup_printf("%s/" PREFIX "%d", parent, (int)getpid());

	sweep(parent);
	if (mkdir(dir, 0755) < 0)
		g_clear_pointer(&dir, g_free);
	return dir;
}

/* Sets the limit of a controller that @dir has. */
static void take(struct cgroup *c, enum controller which, const char *dir, int version, uint64_t limit)
{
	g_autofree char *text = g_strdup_printf("%" PRIu64, limit);
	const char *file = known[which].limit[version - 1];

	if (file && !put(dir, file, text))
		return;
	c->dir[which] = g_strdup(dir);
	c->version[which] = version;
}

/* Version 2 */

static bool hands_on(const char *parent, const char *controller)
{
	g_autofree char *text = get(parent, "cgroup.subtree_control");
	g_autofree char *add = g_strconcat("+", controller, NULL);
	g_auto(GStrv) have = g_strsplit_set(text ? text : "", " \n", -1);

	/* It can be asked to, unless it has processes of its own beside the groups below it. */
	return g_strv_contains((const char *const *)have, controller) || put(parent, "cgroup.subtree_control", add);
}

/* How many of the needed controllers a group below @parent would have; -1: we may not make one there. */
static int suits(const char *parent, const uint64_t *limits)
{
	g_autofree char *procs = g_build_filename(parent, "cgroup.procs", NULL);
	int n = 0;

	if (access(parent, W_OK) < 0 || access(procs, W_OK) < 0)
		return -1;
	for (int i = 0; i < CONTROLLERS; i++)
		n += limits[i] && known[i].name[1] && hands_on(parent, known[i].name[1]);
	return n;
}

static void add_version2(struct cgroup *c, const char *top, const uint64_t *limits)
{
	g_autofree char *controllers = g_build_filename(top, "cgroup.controllers", NULL);
	g_autofree char *parent = access(controllers, R_OK) == 0 ? own_dir("::", top) : NULL;
	g_autofree char *best = NULL, *dir = NULL;
	int most = -1;

	while (parent && g_str_has_prefix(parent, top)) {
		char *up = g_path_get_dirname(parent);
		int n = suits(parent, limits);

		if (n > most) {
			g_free(best);
			best = g_strdup(parent);
			most = n;
		}
		g_free(parent);
		parent = up;
	}
	dir = best ? make(best) : NULL;
	if (!dir)
		return;
	for (int i = 0; i < CONTROLLERS; i++)
		if (limits[i])
			take(c, (enum controller)i, dir, 2, limits[i]);
	/* All of it ends when one is killed, and what is too much does not go to the swap instead. */
	if (c->dir[MEMORY])
		put(dir, "memory.oom.group", "1");
	if (c->dir[MEMORY])
		put(dir, "memory.swap.max", "0");
	if (!c->dir[PIDS] && !c->dir[MEMORY] && !c->dir[CPU])
		rmdir(dir);
}

/* Version 1 */

static void add_version1(struct cgroup *c, enum controller which, uint64_t limit)
{
	const char *name = known[which].name[0];
	g_autofree char *top = g_build_filename(TOP, name, NULL);
	g_autofree char *mark = g_strdup_printf(":%s:", name);
	g_autofree char *parent = own_dir(mark, top);
	g_autofree char *dir = parent ? make(parent) : NULL;

	if (!dir)
		return;
	take(c, which, dir, 1, limit);
	if (!c->dir[which])
		rmdir(dir);
}

/* Removing */

static void leave(const char *dir, unsigned steps)
{
	for (unsigned i = 0; i < steps && rmdir(dir) < 0 && errno == EBUSY; i++)
		g_usleep(WAIT_STEP_US);
}

/* In the child: system calls only. Nothing of the caller's is kept but the pipe. */
static void G_GNUC_NORETURN remove_later(const struct cgroup *c, int pipe)
{
	char byte;

	setsid();
	prctl(PR_SET_NAME, "sbxfs-cgroup");
	if (chdir("/") < 0 || dup2(pipe, STDIN_FILENO) < 0)
		_exit(1);
	close_range(1, ~0U, 0);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	for (int i = 0; i < CONTROLLERS; i++)
		if (c->dir[i])
			leave(c->dir[i], REMOVER_STEPS);
	_exit(0);
}

/* Where it cannot be started, the next run has a group of ours to sweep up. */
static void start_remover(struct cgroup *c)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	c->remover = fork();
	if (c->remover == 0)
		remove_later(c, fds[0]);
	close(fds[0]);
	c->alive = fds[1];
	c->remover = MAX(c->remover, 0);
}

static void end_remover(struct cgroup *c)
{
	if (c->remover) {
		kill(c->remover, SIGKILL);
		waitpid(c->remover, NULL, 0);
	}
	if (c->alive >= 0)
		close(c->alive);
}

/* Life */

struct cgroup *cgroup_new(uint64_t processes, uint64_t memory, bool cpu)
{
	const uint64_t limits[CONTROLLERS] = { [PIDS] = processes, [MEMORY] = memory, [CPU] = cpu };
	struct cgroup *c = g_new0(struct cgroup, 1);
	bool any = false;

	c->alive = -1;
	add_version2(c, TOP, limits);
	if (!c->dir[PIDS] && !c->dir[MEMORY] && !c->dir[CPU])
		add_version2(c, TOP "/unified", limits);
	for (int i = 0; i < CONTROLLERS; i++) {
		if (limits[i] && !c->dir[i])
			add_version1(c, (enum controller)i, limits[i]);
		any = any || c->dir[i];
	}
	if (any)
		start_remover(c);
	else
		g_clear_pointer(&c, cgroup_free);
	return c;
}

/* After the last look. */
static void drop(struct cgroup *c, enum controller which)
{
	leave(c->dir[which], WAIT_STEPS);
	g_clear_pointer(&c->dir[which], g_free);
}

bool cgroup_add(struct cgroup *c, pid_t pid)
{
	g_autofree char *text = g_strdup_printf("%d", (int)pid);
	bool any = false;

	for (int i = 0; i < CONTROLLERS; i++) {
		if (c->dir[i] && !put(c->dir[i], "cgroup.procs", text))
			drop(c, (enum controller)i);
		any = any || c->dir[i];
	}
	return any;
}

bool cgroup_has_processes(const struct cgroup *c)
{
	return c && c->dir[PIDS];
}

bool cgroup_has_memory(const struct cgroup *c)
{
	return c && c->dir[MEMORY];
}

bool cgroup_cpu_ms(const struct cgroup *c, uint64_t *ret)
{
	if (!c || !c->dir[CPU])
		return false;
	*ret = c->version[CPU] == 2 ? get_number(c->dir[CPU], "cpu.stat", "usage_usec") / 1000
				    : get_number(c->dir[CPU], "cpuacct.usage", NULL) / 1000000;
	return true;
}

bool cgroup_out_of_memory(const struct cgroup *c)
{
	if (!cgroup_has_memory(c))
		return false;
	return get_number(c->dir[MEMORY], c->version[MEMORY] == 2 ? "memory.events" : "memory.oom_control", "oom_kill") > 0;
}

void cgroup_free(struct cgroup *c)
{
	if (!c)
		return;
	for (int i = 0; i < CONTROLLERS; i++)
		if (c->dir[i])
			drop(c, (enum controller)i);
	end_remover(c);
	g_free(c);
}
