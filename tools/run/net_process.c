/* SPDX-License-Identifier: MIT */
#include "tools/run/net_process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/run/fd_message.h"
#include "tools/run/landlock.h"
#include "tools/run/net_dial.h"
#include "tools/run/net_link.h"
#include "tools/run/syscalls.h"

#define NOBODY 65534
#define FILES_MAX 2048 /* four for each connection, and the resolver's */

/* What the system's resolver reads. */
static const char *const readable[] = { "/etc",
					"/usr",
					"/lib",
					"/lib32",
					"/lib64",
					"/nix/store",
					"/gnu/store",
					"/dev/null",
					"/dev/urandom",
					"/run/systemd/resolve",
					"/run/resolvconf",
					"/run/NetworkManager",
					"/run/connman" };

/* Nothing of the caller's: not its files, terminal, directory, environment. */
static void leave_caller(int link)
{
	const struct rlimit files = { FILES_MAX, FILES_MAX }, none = { 0, 0 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (char **variable = environ; *variable; variable++)
		explicit_bzero(*variable, strlen(*variable));
	clearenv();
	if (chdir("/") < 0 || null < 0)
		_exit(EXIT_INTERNAL);
	for (int fd = 0; fd <= 2; fd++)
		dup2(null, fd);
	if (link > 3)
		close_range(3, (unsigned)link - 1, 0);
	close_range((unsigned)link + 1, ~0U, 0);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_FSIZE, &none);
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		g_debug("it has fewer files");
}

static bool drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	return syscall(SYS_capset, &header, none) == 0;
}

/* Where root's namespace has no such user, or root may not become another, it keeps its number and loses its capabilities. */
static bool drop_user(void)
{
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0))
		g_debug("it stays user 0: %s", g_strerror(errno));
	return drop_capabilities();
}

static bool harden(pid_t parent)
{
	if (!drop_user() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return false;
	/* A change of user takes this back, so it comes after it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return false;
	return landlock_enter(readable, G_N_ELEMENTS(readable)) && syscalls_enter_proxy();
}

static void resolve(void *user, const char *name, GArray *ret)
{
	(void)user;
	net_dial_resolve(name, ret);
}

static int connect_to(void *user, const struct address *a, unsigned port)
{
	(void)user;
	return net_dial_connect(a, port);
}

static void G_GNUC_NORETURN work(const struct network *rules, int link, pid_t parent)
{
	struct net_backend backend = net_link_backend(&link);
	int listener;
	char byte;

	prctl(PR_SET_NAME, "sbxfs-net");
	signal(SIGPIPE, SIG_IGN);
	leave_caller(link);
	net_dial_init();
	if (!harden(parent))
		_exit(EXIT_INTERNAL);
	backend.resolve = resolve;
	backend.connect = connect_to;
	fd_message_send(link, "r", 1, -1); /* it is confined */
	if (fd_message_receive(link, &byte, 1, &listener) != 1 || listener < 0)
		_exit(EXIT_DONE);
	net_proxy_run(net_proxy_new(rules, &backend), listener, link);
	_exit(EXIT_DONE);
}

bool net_process_start(const struct network *rules, pid_t *ret_pid, int *ret_link, GError **error)
{
	pid_t parent = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		tool_error_errno(error, -errno, NULL, "socketpair");
		return false;
	}
	fflush(NULL);
	*ret_pid = fork();
	if (*ret_pid == 0)
		work(rules, pair[1], parent);
	close(pair[1]);
	*ret_link = pair[0];
	if (*ret_pid > 0)
		return true;
	tool_error_errno(error, -errno, NULL, "fork");
	close(pair[0]);
	return false;
}

bool net_process_serve(int link, int listener, GError **error)
{
	int none;
	char ready;

	if (fd_message_receive(link, &ready, 1, &none) == 1 && fd_message_send(link, "l", 1, listener))
		return true;
	tool_error(error, EXIT_PLATFORM, NULL,
		   "the program was not run, because the process of its proxy could not be confined (capabilities, Landlock, "
		   "seccomp); with "
		   "--net off it needs none");
	return false;
}
