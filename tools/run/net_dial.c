/* SPDX-License-Identifier: MIT */
#include "tools/run/net_dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS 15000
#define IPV4_AT 12 /* in the mapped form */

/* One with a zone leads somewhere only together with it, and is left out. */
static bool from_socket_address(const struct sockaddr *sa, struct address *ret)
{
	const struct sockaddr_in6 *six = (const void *)sa;
	const struct sockaddr_in *four = (const void *)sa;

	*ret = (struct address){ .bytes = { [10] = 0xff, [11] = 0xff } };
	if (sa->sa_family == AF_INET)
		memcpy(ret->bytes + IPV4_AT, &four->sin_addr, sizeof(four->sin_addr));
	else if (sa->sa_family == AF_INET6 && !six->sin6_scope_id)
		memcpy(ret->bytes, &six->sin6_addr, sizeof(ret->bytes));
	else
		return false;
	return true;
}

void net_dial_init(void)
{
	g_setenv("LOCALDOMAIN", "", TRUE);
}

void net_dial_resolve(const char *name, GArray *ret)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *all = NULL;

	if (getaddrinfo(name, NULL, &hints, &all) != 0)
		return;
	for (struct addrinfo *i = all; i && ret->len < NET_DIAL_ADDRESSES; i = i->ai_next) {
		struct address a;

		if (from_socket_address(i->ai_addr, &a))
			g_array_append_val(ret, a);
	}
	freeaddrinfo(all);
}

static int wait_connected(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int error = 0, n;

	do
		n = poll(&p, 1, CONNECT_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIMEDOUT;
	if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -errno;
	return -error;
}

static int connect_socket(int fd, const struct address *a, unsigned port)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	const int yes = 1;
	int r;

	memcpy(&four.sin_addr, a->bytes + IPV4_AT, sizeof(four.sin_addr));
	memcpy(&six.sin6_addr, a->bytes, sizeof(six.sin6_addr));
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0)
		return -errno;
	r = address_is_ipv4(a) ? connect(fd, (void *)&four, sizeof(four)) : connect(fd, (void *)&six, sizeof(six));
	if (r == 0)
		return 0;
	return errno == EINPROGRESS ? wait_connected(fd) : -errno;
}

int net_dial_connect(const struct address *a, unsigned port)
{
	int fd = socket(address_is_ipv4(a) ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = connect_socket(fd, a, port);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}
