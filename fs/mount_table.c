/* SPDX-License-Identifier: MIT */
#include "fs/mount_table.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/mount.h"

G_DEFINE_QUARK(sbxfs-mount-error-quark, mount_error)

/* Mountpoints have blanks, tabs, newlines and backslashes as octal escapes in /proc/self/mountinfo. */
static char *mount_unescape(const char *field)
{
	GString *s = g_string_new(NULL);

	for (; *field; field++) {
		if (field[0] == '\\' && g_ascii_isdigit(field[1]) && g_ascii_isdigit(field[2]) && g_ascii_isdigit(field[3])) {
			g_string_append_c(s, (field[1] - '0') * 64 + (field[2] - '0') * 8 + (field[3] - '0'));
			field += 3;
		} else {
			g_string_append_c(s, *field);
		}
	}
	return g_string_free(s, FALSE);
}

/*
 * The topmost file system mounted on @mountpoint, as "TYPE SOURCE"; NULL when it is no mountpoint. A view's source is the name of its sandbox. Asks
 * nothing of the file system.
 */
static char *mount_at(const char *mountpoint)
{
	g_autofree char *table = NULL;
	g_auto(GStrv) lines = NULL;
	char *what = NULL;

	if (!g_file_get_contents("/proc/self/mountinfo", &table, NULL, NULL))
		return NULL;
	lines = g_strsplit(table, "\n", -1);
	for (char **line = lines; *line; line++) {
		g_auto(GStrv) fields = g_strsplit(*line, " ", -1);
		g_autofree char *where = g_strv_length(fields) > 6 ? mount_unescape(fields[4]) : NULL;
		guint i = 6;

		if (!where || strcmp(where, mountpoint) != 0)
			continue;
		while (fields[i] && strcmp(fields[i], "-") != 0)
			i++;
		g_free(what);
		what = fields[i] && fields[i + 1] && fields[i + 2] ? g_strconcat(fields[i + 1], " ", fields[i + 2], NULL) : NULL;
	}
	return what;
}

bool mount_is_ours(const char *mountpoint)
{
	g_autofree char *what = mount_at(mountpoint);

	return what && g_str_has_prefix(what, "fuse.sbxfs ");
}

bool mount_is_of(const char *mountpoint, const char *name)
{
	g_autofree char *what = mount_at(mountpoint), *view = g_strconcat("fuse.sbxfs ", name, NULL);

	return g_strcmp0(what, view) == 0;
}

/* stat() in a process of its own, for it may never return. */
static int probe(const char *path)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct stat st;

		alarm(2);
		_exit(stat(path, &st) < 0 ? errno : 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EIO;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

bool mount_is_stale(const char *mountpoint)
{
	return mount_is_ours(mountpoint) && probe(mountpoint) == ENOTCONN;
}

bool mount_detach(const char *mountpoint, bool lazy, char **ret_message)
{
	const char *argv[] = { "fusermount3", "-u", lazy ? "-qz" : "-q", "--", mountpoint, NULL };
	g_autoptr(GError) error = NULL;
	int status;

	if (geteuid() == 0) {
		if (umount2(mountpoint, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
			return true;
		*ret_message = g_strdup(g_strerror(errno));
		return false;
	}
	if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, ret_message, &status, &error)) {
		*ret_message = g_strdup(error->message);
		return false;
	}
	return g_spawn_check_wait_status(status, NULL);
}

bool mount_unmount(const char *mountpoint, GError **error)
{
	g_autofree char *message = NULL;

	if (!mount_is_ours(mountpoint)) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_MOUNTPOINT, "%s is not mounted by sbxfs", mountpoint);
		return false;
	}
	if (mount_detach(mountpoint, mount_is_stale(mountpoint), &message))
		return true;
	g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_BUSY, "%s is in use (%s): end the programs that work in it, then unmount again", mountpoint,
		    message && *message ? g_strchomp(message) : "busy");
	return false;
}
