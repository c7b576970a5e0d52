/* SPDX-License-Identifier: MIT */
#include "tools/run/places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rules/policy.h"
#include "tools/exit.h"
#include "tools/paths.h"
#include "tools/run/git_dir.h"
#include "tools/sandbox.h"

#define DEPTH_MAX 12

static const char *const system_dirs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc" };

/* Whatever their modes are. Patterns of fnmatch(3) for the path below /etc. */
static const char *const secrets[] = {
	"shadow*",
	"gshadow*",
	"sudoers*",
	"security/opasswd",
	"ssh/ssh_host_*_key",
	"ssl/private",
	"krb5.keytab",
	"*/*.keytab",
	"wireguard",
	"NetworkManager",
	"netplan",
	"wpa_supplicant",
	"ppp",
	"docker",
	"kubernetes",
	"rancher",
	"containers/auth.json",
	"credstore*",
	"cloud",
	"fstab",
	"crypttab",
	"exports",
};

/* A root without capabilities still owns these. */
static const char *const proc_files[] = { "kcore",	 "kmsg",       "keys",		"key-users",
					  "kpagecount",	 "kpageflags", "kpagecgroup",	"sysrq-trigger",
					  "sched_debug", "timer_list", "latency_stats", "slabinfo" };
static const char *const proc_dirs[] = { "acpi", "asound", "fs", "scsi" };

/* Arguments */

static void add(GPtrArray *argv, ...)
{
	va_list args;
	const char *word;

	va_start(args, argv);
	while ((word = va_arg(args, const char *)))
		g_ptr_array_add(argv, g_strdup(word));
	va_end(args);
}

static void add_memory(GPtrArray *argv, const struct places *p, const char *mode, const char *path)
{
	g_autofree char *size = g_strdup_printf("%" G_GUINT64_FORMAT, p->memory);

	add(argv, "--size", size, "--perms", mode, "--tmpfs", path, NULL);
}

static void hide(GPtrArray *argv, const char *path, bool is_dir)
{
	if (is_dir)
		add(argv, "--perms", "0555", "--tmpfs", path, "--remount-ro", path, NULL);
	else
		add(argv, "--ro-bind", "/dev/null", path, NULL);
}

/* The system */

static bool is_secret(const char *name, const struct stat *st)
{
	mode_t needed = S_ISDIR(st->st_mode) ? S_IROTH | S_IXOTH : S_IROTH;

	if ((st->st_mode & needed) != needed || !(S_ISDIR(st->st_mode) || S_ISREG(st->st_mode)))
		return true;
	for (unsigned i = 0; i < G_N_ELEMENTS(secrets); i++)
		if (fnmatch(secrets[i], name, FNM_PATHNAME) == 0)
			return true;
	return false;
}

/* Takes @fd, of the directory @path; @skip is the length of the part of its name that the patterns do not have. */
static void hide_secrets(GPtrArray *argv, int fd, const char *path, size_t skip, int depth)
{
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (e = readdir(dir))) {
		g_autofree char *below = NULL;
		struct stat st;

		if (g_str_equal(e->d_name, ".") || g_str_equal(e->d_name, "..") ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode))
			continue;
		below = g_build_filename(path, e->d_name, NULL);
		if (is_secret(below + skip, &st) || (S_ISDIR(st.st_mode) && depth == 0))
			hide(argv, below, S_ISDIR(st.st_mode));
		else if (S_ISDIR(st.st_mode))
			hide_secrets(argv,
				     openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
				     below, skip, depth - 1);
	}
	if (dir)
		closedir(dir);
}

static void add_system(GPtrArray *argv)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(system_dirs); i++) {
		const char *dir = system_dirs[i];
		g_autofree char *target = g_file_read_link(dir, NULL);

		if (target)
			add(argv, "--symlink", target, dir, NULL);
		else if (g_file_test(dir, G_FILE_TEST_IS_DIR))
			add(argv, "--ro-bind", dir, dir, NULL);
	}
	hide_secrets(argv, open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "/etc", strlen("/etc/"), DEPTH_MAX);
	hide_secrets(argv, open("/usr/local/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "/usr/local/etc",
		     strlen("/usr/local/etc/"), DEPTH_MAX);
}

static void hide_proc(GPtrArray *argv, const char *name, bool is_dir)
{
	g_autofree char *path = g_build_filename("/proc", name, NULL);

	if (g_file_test(path, G_FILE_TEST_EXISTS))
		hide(argv, path, is_dir);
}

static void add_own(GPtrArray *argv, const struct places *p)
{
	/* bwrap covers only what it finds writable, and that it does not ask of each file in there. */
	add(argv, "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", NULL);
	for (unsigned i = 0; i < G_N_ELEMENTS(proc_files); i++)
		hide_proc(argv, proc_files[i], false);
	for (unsigned i = 0; i < G_N_ELEMENTS(proc_dirs); i++)
		hide_proc(argv, proc_dirs[i], true);
	add(argv, "--dev", "/dev", NULL);
	add_memory(argv, p, "1777", "/dev/shm");
	add(argv, "--remount-ro", "/dev", "--dir", "/run", NULL);
	add_memory(argv, p, "1777", "/tmp");
	add_memory(argv, p, "1777", "/var/tmp");
}

/* What may be shown */

/* Does one of the two hold the other? */
static bool overlap(const char *a, const char *b)
{
	return paths_below(a, b) || paths_below(b, a);
}

static bool check_shown(const struct places *p, const char *path, GError **error)
{
	g_autofree char *stores = g_path_get_dirname(p->sandbox->dir);
	g_autofree char *runtime = g_path_get_dirname(p->sandbox->socket);
	const char *const own[] = { stores, runtime };

	for (unsigned i = 0; i < G_N_ELEMENTS(own); i++) {
		g_autofree char *real = paths_resolve(own[i]);

		if (!real || overlap(real, path)) {
			tool_error(error, EXIT_POLICY, path,
				   "%s would be in sight of the program, and with it %s, where sbxfs keeps what is "
				   "its own",
				   path, own[i]);
			return false;
		}
	}
	return true;
}

static bool check_system(const struct places *p, GError **error)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(system_dirs); i++) {
		g_autofree char *real = paths_resolve(system_dirs[i]);

		if (real && !check_shown(p, real, error))
			return false;
	}
	return true;
}

static bool check_workspace(const char *workspace, GError **error)
{
	static const char *const reserved[] = { "/proc", "/sys", "/dev", "/etc", "/bin", "/sbin", "/lib", "/lib64" };
	static const char *const holders[] = { "/usr", "/tmp", "/var/tmp", "/run" };
	bool refused = g_str_equal(workspace, "/");

	for (unsigned i = 0; i < G_N_ELEMENTS(reserved); i++)
		refused = refused || paths_below(workspace, reserved[i]);
	for (unsigned i = 0; i < G_N_ELEMENTS(holders); i++)
		refused = refused || paths_below(holders[i], workspace);
	if (refused)
		tool_error(
			error, EXIT_USAGE, workspace,
			"%s is a part of the system, so its view cannot lie at its path; take a directory in it, or a "
			"copy elsewhere",
			workspace);
	return !refused;
}

/* Home */

static bool is_usable_home(const char *home)
{
	if (!g_path_is_absolute(home) || g_str_equal(home, "/") || paths_below("/tmp", home) ||
	    paths_below("/var/tmp", home) || paths_below("/run", home))
		return false;
	for (unsigned i = 0; i < G_N_ELEMENTS(system_dirs); i++)
		if (overlap(home, system_dirs[i]))
			return false;
	return !overlap(home, "/proc") && !overlap(home, "/sys") && !overlap(home, "/dev");
}

char *places_home(void)
{
	g_autofree char *home = paths_resolve(g_get_home_dir());

	return home && is_usable_home(home) ? g_steal_pointer(&home) : g_strdup("/home/user");
}

static bool is_plain_relative(const char *path)
{
	g_auto(GStrv) parts = g_strsplit(path, "/", -1);

	for (char **part = parts; *part; part++)
		if (!**part || g_str_equal(*part, ".") || g_str_equal(*part, ".."))
			return false;
	return *path;
}

/* Only the user's own profile opens something: a workspace may not ask for the home of whoever works in it. */
static bool is_home_setting(const struct policy_setting *s)
{
	return s->layer == POLICY_USER && g_str_equal(s->section, "run") && g_str_has_prefix(s->key, "home.");
}

/* @entry is cut: blanks around it and a slash at its end. */
static bool check_home_entry(const struct policy_setting *s, char *entry, GError **error)
{
	g_strstrip(entry);
	if (g_str_has_suffix(entry, "/"))
		entry[strlen(entry) - 1] = '\0';
	if (is_plain_relative(entry))
		return true;
	tool_error(error, EXIT_POLICY, entry, "%s:%u: %s = \"%s\" must be a path below the home directory, like .cargo/bin",
		   s->file, s->line, s->key, entry);
	return false;
}

bool places_check_home(const struct policy *policy, GError **error)
{
	unsigned count;
	const struct policy_setting *all = policy_settings(policy, &count);

	for (unsigned i = 0; i < count; i++) {
		g_auto(GStrv) entries = is_home_setting(&all[i]) ? g_strsplit(all[i].value, ",", -1) : NULL;

		for (char **entry = entries; entry && *entry; entry++)
			if (!check_home_entry(&all[i], *entry, error))
				return false;
	}
	return true;
}

static bool add_home_entry(GPtrArray *argv, const struct places *p, const struct policy_setting *s, char *entry,
			   GError **error)
{
	bool write = g_str_equal(s->key, "home.write");
	g_autofree char *target = NULL;
	g_autofree char *source = NULL;

	if (!check_home_entry(s, entry, error))
		return false;
	source = g_build_filename(g_get_home_dir(), entry, NULL);
	target = paths_resolve(source);
	if (!target)
		return true; /* one list for all machines: what is not there is left out */
	if (!check_shown(p, target, error)) {
		g_prefix_error(error, "%s:%u: ", s->file, s->line);
		return false;
	}
	if (overlap(target, p->sandbox->workspace)) {
		tool_error(error, EXIT_POLICY, target,
			   "%s:%u: %s = \"%s\" would show the workspace itself beside its view", s->file, s->line,
			   s->key, entry);
		return false;
	}
	g_free(source);
	source = g_build_filename(p->home, entry, NULL);
	add(argv, write ? "--bind" : "--ro-bind", target, source, NULL);
	return true;
}

static bool add_home(GPtrArray *argv, const struct places *p, GError **error)
{
	unsigned count;
	const struct policy_setting *all = policy_settings(p->policy, &count);

	add_memory(argv, p, "0700", p->home);
	for (unsigned i = 0; i < count; i++) {
		g_auto(GStrv) entries = NULL;

		if (!is_home_setting(&all[i]))
			continue;
		entries = g_strsplit(all[i].value, ",", -1);
		for (char **entry = entries; *entry; entry++)
			if (!add_home_entry(argv, p, &all[i], *entry, error))
				return false;
	}
	return true;
}

static bool add_git(GPtrArray *argv, const struct places *p, GError **error)
{
	g_autofree char *dir = git_dir_outside(p->workspace_fd, p->sandbox->workspace);

	if (!dir)
		return true;
	if (!check_shown(p, dir, error))
		return false;
	add(argv, "--ro-bind", dir, dir, NULL);
	return true;
}

bool places_add(GPtrArray *argv, const struct places *p, GError **error)
{
	if (!check_workspace(p->sandbox->workspace, error) || !check_system(p, error))
		return false;
	add_system(argv);
	add_own(argv, p);
	if (!add_home(argv, p, error) || !add_git(argv, p, error))
		return false;
	add(argv, "--bind", p->sandbox->mountpoint, p->sandbox->workspace, "--remount-ro", "/", "--chdir",
	    p->directory, NULL);
	return true;
}
