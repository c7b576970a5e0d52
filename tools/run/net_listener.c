/* SPDX-License-Identifier: MIT */
#include "tools/run/net_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/run/fd_message.h"

#define BACKLOG 128

/* IP_FREEBIND: the address is there only once the loopback is up. -errno */
static int listen_here(unsigned port)
{
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int yes = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &yes, sizeof(yes)) < 0 || bind(fd, (const void *)&a, sizeof(a)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return -errno;
	return fd;
}

/* The user namespace that owns it first: in there we have all capabilities. */
static int enter(int namespace)
{
	int owner = ioctl(namespace, NS_GET_USERNS);

	if (owner < 0 || setns(owner, CLONE_NEWUSER) < 0 || setns(namespace, CLONE_NEWNET) < 0)
		return -errno;
	return 0;
}

/* In the child, of a process with threads: system calls only. */
static void hand_out(int namespace, unsigned port, int to)
{
	int r = enter(namespace);
	int fd = r < 0 ? r : listen_here(port);

	_exit(fd < 0 ? MIN(-fd, 255) : fd_message_send(to, "l", 1, fd) ? 0 : EIO);
}

static int run_child(int namespace, unsigned port, const int pair[2], int *ret_fd)
{
	pid_t pid = fork();
	int status;
	char byte;

	if (pid == 0)
		hand_out(namespace, port, pair[1]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
	return fd_message_receive(pair[0], &byte, 1, ret_fd) == 1 && *ret_fd >= 0 ? 0 : -EIO;
}

int net_listener_new(pid_t first, unsigned port, GError **error)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/ns/net", (int)first);
	int namespace = open(path, O_RDONLY | O_CLOEXEC);
	int pair[2] = { -1, -1 }, fd = -1, r = 0;

	if (namespace < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		r = -errno;
	if (r == 0)
		r = run_child(namespace, port, pair, &fd);
	if (r < 0)
		tool_error(error, EXIT_PLATFORM, NULL,
			   "the program was not run, because its way to the network could not be made: port %u in its namespace: "
			   "%s; with "
			   "--net off it needs none",
			   port, g_strerror(-r));
	for (unsigned i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
	if (namespace >= 0)
		close(namespace);
	return r < 0 ? -1 : fd;
}
