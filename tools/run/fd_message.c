/* SPDX-License-Identifier: MIT */
#include "tools/run/fd_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union space {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

bool fd_message_send(int to, const void *data, size_t size, int fd)
{
	struct iovec part = { (void *)data, size };
	union space space = { 0 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		m.msg_control = &space;
		m.msg_controllen = sizeof(space);
		*CMSG_FIRSTHDR(&m) =
			(struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(fd));
	}
	do
		n = sendmsg(to, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size;
}

static int take_fd(struct msghdr *m)
{
	int fd = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

ssize_t fd_message_receive(int from, void *data, size_t size, int *ret_fd)
{
	struct iovec part = { data, size };
	union space space;
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof(space) };
	ssize_t n;

	*ret_fd = -1;
	do
		n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	*ret_fd = take_fd(&m);
	if (!(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return n;
	if (*ret_fd >= 0)
		close(*ret_fd);
	*ret_fd = -1;
	errno = EMSGSIZE;
	return -1;
}
