/* SPDX-License-Identifier: MIT */
#include "tools/run/platform.h"

#include <stdlib.h>

#include "tools/exit.h"

/* What keeps namespaces from an ordinary user: a file, its value, the remedy. */
static const struct {
	const char *file;
	int value;
	const char *remedy;
} switches[] = {
	{ "/proc/sys/user/max_user_namespaces", 0,
	  "user namespaces are switched off: as root, `sysctl user.max_user_namespaces=10000`" },
	{ "/proc/sys/kernel/unprivileged_userns_clone", 0,
	  "user namespaces are kept from ordinary users: as root, `sysctl kernel.unprivileged_userns_clone=1`" },
	{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
	  "AppArmor restricts user namespaces: as root, install a profile for bwrap (Ubuntu: copy "
	  "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict to /etc/apparmor.d/ and load it with "
	  "`apparmor_parser -r`), or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`" },
};

char *platform_find_bwrap(GError **error)
{
	char *path = g_find_program_in_path("bwrap");

	if (!path)
		tool_error(error, EXIT_PLATFORM, "bwrap",
			   "there is no bwrap, which confines the program: install bubblewrap (apt-get install "
			   "bubblewrap); "
			   "nothing was run");
	return path;
}

static const char *find_switch(void)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(switches); i++) {
		g_autofree char *text = NULL;

		if (g_file_get_contents(switches[i].file, &text, NULL, NULL) && atoi(text) == switches[i].value)
			return switches[i].remedy;
	}
	return NULL;
}

bool platform_check(GError **error)
{
	g_autofree char *bwrap = platform_find_bwrap(error);
	const char *argv[] = { bwrap,		"--unshare-user",	"--unshare-pid", "--unshare-ipc", "--unshare-uts",
			       "--unshare-net", "--unshare-cgroup-try", "--ro-bind",	 "/",		  "/",
			       "--proc",	"/proc",		"--dev",	 "/dev",	  "true",
			       NULL };
	g_autofree char *said = NULL;
	g_autoptr(GError) failure = NULL;
	const char *remedy;
	int status;

	if (!bwrap)
		return false;
	if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL, &said, &status, error))
		return false;
	if (g_spawn_check_wait_status(status, &failure))
		return true;
	remedy = find_switch();
	tool_error(error, EXIT_PLATFORM, "bwrap", "no program can be confined here: %s; %s", *g_strchomp(said) ? said : failure->message,
		   remedy ? remedy :
			    "a container needs CAP_SYS_ADMIN or --security-opt seccomp=unconfined --security-opt apparmor=unconfined, and an "
			    "unmasked /proc (docker: --security-opt systempaths=unconfined)");
	return false;
}

bool platform_explain(pid_t first, GError **error)
{
	const char *remedy = find_switch();

	if (!remedy)
		remedy = first ? "bwrap could not set up the view of the system (its message is above); in a "
				 "container it takes "
				 "an unmasked /proc (docker: --security-opt systempaths=unconfined) and the right to "
				 "mount"
			       : "bwrap could not make namespaces (its message is above); in a container it takes "
				 "CAP_SYS_ADMIN or "
				 "--security-opt seccomp=unconfined --security-opt apparmor=unconfined";
	tool_error(error, EXIT_PLATFORM, NULL, "the program was not run, because it could not be confined: %s",
		   remedy);
	return false;
}
