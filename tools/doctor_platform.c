/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tools/doctor.h"
#include "tools/finding.h"
#include "tools/mounting.h"
#include "tools/output.h"
#include "tools/paths.h"
#include "tools/run/cgroup.h"
#include "tools/run/platform.h"

#define WATCHES_FEW 65536
#define MIB (UINT64_C(1024) * 1024)
#define SPACE_NEEDED (64 * MIB)
#define SPACE_LITTLE (1024 * MIB)
#define INODES_NEEDED 100

/* Of an error that names its remedy itself. */
static void add_error(GPtrArray *findings, const char *check, const GError *error)
{
	finding_add(findings, FINDING_LACKING, check, NULL, NULL, "%s", error->message);
}

static void check_device(GPtrArray *findings)
{
	g_autoptr(GError) error = NULL;

	if (mounting_check_device(&error))
		finding_add(findings, FINDING_OK, "fuse", NULL, NULL, "/dev/fuse can be opened");
	else
		add_error(findings, "fuse", error);
}

static void check_mount_helper(GPtrArray *findings)
{
	g_autofree char *path = g_find_program_in_path("fusermount3");
	struct stat st;

	if (!path)
		finding_add(findings, FINDING_LACKING, "fusermount3", NULL, "install fuse3 (apt-get install fuse3)",
			    "there is no fusermount3, which mounts the view");
	else if (geteuid() != 0 && (stat(path, &st) < 0 || !(st.st_mode & S_ISUID) || st.st_uid != 0))
		finding_add(findings, FINDING_LACKING, "fusermount3", NULL, "as root: chown root and chmod u+s that file",
			    "%s is not set-user-ID root, so an ordinary user cannot mount", path);
	else
		finding_add(findings, FINDING_OK, "fusermount3", NULL, NULL, "%s", path);
}

static void check_confinement(GPtrArray *findings)
{
	g_autoptr(GError) error = NULL;

	if (platform_check(&error))
		finding_add(findings, FINDING_OK, "confinement", NULL, NULL,
			    "bwrap can make the namespaces that `sbxfs run` needs");
	else
		add_error(findings, "confinement", error);
}

/* An ordinary user's processes are limited by the kernel itself, root's only by a group. */
static void check_control_group(GPtrArray *findings)
{
	struct cgroup *c = geteuid() == 0 ? cgroup_new(1000, 0, false) : NULL;

	if (geteuid() == 0 && !c)
		finding_add(findings, FINDING_NOTE, "control-group", NULL,
			    "let this process make groups below its own, with the controller pids",
			    "no control group can be made; the limit of processes of root's runs is looked at 50 times a second "
			    "instead");
	if (c)
		cgroup_free(c);
}

static void check_kernel(GPtrArray *findings)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	uint32_t action = SECCOMP_RET_ERRNO;
	struct utsname name = { 0 };
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = (int)syscall(SYS_openat2, root, ".", &how, sizeof(how));
	bool has_filter = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;

	uname(&name);
	if (fd < 0)
		finding_add(findings, FINDING_LACKING, "kernel", NULL,
			    "use Linux 5.6 or newer; in a container, allow openat2(2) in its filter of system calls",
			    "%s has no openat2(2), without which no path of a workspace is safe: %s", name.release,
			    g_strerror(errno));
	else if (!has_filter)
		finding_add(findings, FINDING_LACKING, "kernel", NULL, "use a kernel with CONFIG_SECCOMP_FILTER",
			    "%s has no filters of system calls, which `sbxfs run` needs", name.release);
	else
		finding_add(findings, FINDING_OK, "kernel", NULL, NULL, "%s", name.release);
	if (fd >= 0)
		close(fd);
	if (root >= 0)
		close(root);
}

static int64_t read_number(const char *path)
{
	g_autofree char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) ? g_ascii_strtoll(text, NULL, 10) : -1;
}

static void check_inotify(GPtrArray *findings)
{
	int64_t watches = read_number("/proc/sys/fs/inotify/max_user_watches");
	int fd = inotify_init1(IN_CLOEXEC);

	if (fd < 0)
		finding_add(
			findings, FINDING_NOTE, "inotify", NULL, "as root: sysctl fs.inotify.max_user_instances=1024",
			"no more instances can be made (%s): what is edited in a workspace shows in its view only after a second",
			g_strerror(errno));
	else if (watches >= 0 && watches < WATCHES_FEW)
		finding_add(findings, FINDING_NOTE, "inotify", NULL, "as root: sysctl fs.inotify.max_user_watches=524288",
			    "only %" G_GINT64_FORMAT " directories can be watched; others are checked once a second", watches);
	else
		finding_add(findings, FINDING_OK, "inotify", NULL, NULL, "%" G_GINT64_FORMAT " directories can be watched",
			    watches);
	if (fd >= 0)
		close(fd);
}

/* Where the stores lie */

static const struct file_system {
	unsigned long magic; /* of statfs(2) */
	const char *name;
	enum finding_level level;
	const char *why;
} file_systems[] = {
	{ TMPFS_MAGIC, "tmpfs", FINDING_NOTE, "in memory: changes that were not committed are lost at a restart" },
	{ RAMFS_MAGIC, "ramfs", FINDING_NOTE, "in memory: changes that were not committed are lost at a restart" },
	{ NFS_SUPER_MAGIC, "NFS", FINDING_LACKING,
	  "on the network, where SQLite cannot share memory and locks are not to be relied on" },
	{ SMB2_SUPER_MAGIC, "SMB", FINDING_LACKING,
	  "on the network, where SQLite cannot share memory and locks are not to be relied on" },
	{ CIFS_SUPER_MAGIC, "SMB", FINDING_LACKING,
	  "on the network, where SQLite cannot share memory and locks are not to be relied on" },
	{ V9FS_MAGIC, "9p", FINDING_NOTE, "shared with a host: it is slow, and its locks may be no locks" },
	{ FUSE_SUPER_MAGIC, "FUSE", FINDING_NOTE,
	  "a file system of some other program: its locks and syncs are as good as that one makes them" },
	{ OVERLAYFS_SUPER_MAGIC, "overlayfs", FINDING_NOTE, "a container's own layer: it goes with the container" },
	{ EXT4_SUPER_MAGIC, "ext4", FINDING_OK, NULL },
	{ XFS_SUPER_MAGIC, "xfs", FINDING_OK, NULL },
	{ BTRFS_SUPER_MAGIC, "btrfs", FINDING_OK, NULL },
};

static void check_file_system(GPtrArray *findings, const char *dir, const struct statfs *fs)
{
	const char *remedy = "set XDG_STATE_HOME to a directory on a local disk";

	for (unsigned i = 0; i < G_N_ELEMENTS(file_systems); i++) {
		const struct file_system *known = &file_systems[i];

		if ((unsigned long)fs->f_type != known->magic)
			continue;
		finding_add(findings, known->level, "store-file-system", NULL, known->why ? remedy : NULL, "%s is %s%s%s", dir,
			    known->name, known->why ? ", " : "", known->why ? known->why : "");
		return;
	}
	finding_add(findings, FINDING_OK, "store-file-system", NULL, NULL, "%s is of the type %lx", dir, (unsigned long)fs->f_type);
}

static void check_room(GPtrArray *findings, const char *dir, const struct statfs *fs)
{
	uint64_t bytes = (uint64_t)fs->f_bavail * (uint64_t)fs->f_bsize;
	bool no_inodes = fs->f_files > 0 && fs->f_ffree < INODES_NEEDED;
	g_autofree char *size = text_size(bytes);
	enum finding_level level = bytes < SPACE_NEEDED || no_inodes ? FINDING_LACKING
				   : bytes < SPACE_LITTLE	     ? FINDING_NOTE
								     : FINDING_OK;

	finding_add(findings, level, "store-space", NULL,
		    level == FINDING_OK
			    ? NULL
			    : "make room, or set XDG_STATE_HOME to another disk; on a full one no change can be made in a view",
		    "%s are free in %s%s", size, dir, no_inodes ? ", and next to no inodes" : "");
}

/* Stores are made on demand, so it may be the parent of a parent that exists. */
static char *existing_part(const char *dir)
{
	char *path = g_strdup(dir);

	while (!g_file_test(path, G_FILE_TEST_EXISTS)) {
		char *parent = g_path_get_dirname(path);

		g_free(path);
		path = parent;
	}
	return path;
}

static void check_stores(GPtrArray *findings)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *dir = paths_state_dir(&error);
	g_autofree char *there = dir ? existing_part(dir) : NULL;
	struct statfs fs;

	if (!dir) {
		add_error(findings, "store", error);
		return;
	}
	if (access(there, W_OK | X_OK) < 0 || statfs(there, &fs) < 0) {
		finding_add(findings, FINDING_LACKING, "store", NULL,
			    "make it writable for this user, or set XDG_STATE_HOME to another directory",
			    "%s, where stores lie, cannot be used: %s: %s", dir, there, g_strerror(errno));
		return;
	}
	check_file_system(findings, there, &fs);
	check_room(findings, there, &fs);
}

static void check_runtime(GPtrArray *findings)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *dir = paths_runtime_dir(&error);

	if (dir)
		finding_add(findings, FINDING_OK, "runtime-directory", NULL, NULL, "%s", dir);
	else
		add_error(findings, "runtime-directory", error);
}

void doctor_platform(GPtrArray *findings)
{
	check_kernel(findings);
	check_device(findings);
	check_mount_helper(findings);
	check_confinement(findings);
	check_control_group(findings);
	check_inotify(findings);
	check_stores(findings);
	check_runtime(findings);
}
