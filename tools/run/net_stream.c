/* SPDX-License-Identifier: MIT */
#include "tools/run/net_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DRAIN_US (200 * 1000)
#define DRAIN_MAX (1024 * 1024)

struct net_stream *net_stream_new(int fd)
{
	struct net_stream *s = g_malloc(sizeof(*s));

	s->fd = fd;
	s->start = s->passed = s->end = 0;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		g_debug("fcntl: %s", g_strerror(errno));
	return s;
}

void net_stream_free(struct net_stream *s)
{
	if (!s)
		return;
	close(s->fd);
	g_free(s);
}

const uint8_t *net_stream_at(const struct net_stream *s)
{
	return s->data + s->start;
}

size_t net_stream_left(const struct net_stream *s)
{
	return s->end - s->start;
}

void net_stream_use(struct net_stream *s, size_t size)
{
	s->start += size;
	s->passed = MAX(s->passed, s->start);
	if (s->start == s->end)
		s->start = s->passed = s->end = 0;
}

static int wait_ms(int64_t deadline)
{
	int64_t left = deadline - g_get_monotonic_time();

	if (!deadline)
		return -1;
	return left <= 0 ? 0 : (int)MIN(left / 1000 + 1, G_MAXINT);
}

static bool wait_for(int fd, short events, int64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n;

	do
		n = poll(&p, 1, wait_ms(deadline));
	while (n < 0 && errno == EINTR);
	return n > 0;
}

static void make_room(struct net_stream *s)
{
	if (!s->start)
		return;
	memmove(s->data, s->data + s->start, s->end - s->start);
	s->passed -= s->start;
	s->end -= s->start;
	s->start = 0;
}

static bool is_full(const struct net_stream *s)
{
	return s->end - s->start == sizeof(s->data);
}

/* Bytes read; 0 at the end, and for an error, which is one; -1 when there is nothing yet. */
static ssize_t read_some(struct net_stream *s)
{
	ssize_t n;

	make_room(s);
	n = recv(s->fd, s->data + s->end, sizeof(s->data) - s->end, 0);
	if (n > 0)
		s->end += (size_t)n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -1;
	return MAX(n, 0);
}

bool net_stream_fill(struct net_stream *s, int64_t deadline)
{
	ssize_t n = -1;

	while (!is_full(s) && n < 0 && wait_for(s->fd, POLLIN, deadline))
		n = read_some(s);
	return n > 0;
}

bool net_stream_write(struct net_stream *s, const void *data, size_t size, int64_t deadline)
{
	const char *at = data;

	while (size) {
		ssize_t n = send(s->fd, at, size, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (n < 0 && errno == EAGAIN && !wait_for(s->fd, POLLOUT, deadline))
			return false;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return true;
}

/* A socket that is closed with unread bytes sends a reset, and the peer may lose what it has not read. */
void net_stream_drain(struct net_stream *s)
{
	int64_t deadline = g_get_monotonic_time() + DRAIN_US;

	shutdown(s->fd, SHUT_WR);
	for (size_t taken = 0; taken < DRAIN_MAX; taken += NET_STREAM_SIZE) {
		net_stream_use(s, net_stream_left(s));
		if (!net_stream_fill(s, deadline))
			break;
	}
}

/* Joining */

/* One direction. */
struct pump {
	struct net_stream *from, *to;
	uint64_t *count;
	bool ended;  /* nothing more is read */
	bool closed; /* the other side has been told */
	bool open;   /* the filter has let something through, or there is none */
};

static bool wants_read(const struct pump *p)
{
	return !p->ended && !is_full(p->from);
}

static bool wants_write(const struct pump *p)
{
	return p->from->passed > p->from->start;
}

/* False: refused. */
static bool filter(const struct net_relay *r, struct pump *p)
{
	enum net_filter_state state = NET_FILTER_PASS;
	struct net_stream *s = p->from;
	size_t n = s->end - s->passed;

	if (r->filter && p->from == r->client && n && !p->closed)
		n = r->filter(r->user, s->data + s->passed, n, &state);
	if (state == NET_FILTER_REFUSE || (state == NET_FILTER_MORE && (is_full(s) || p->ended)))
		return false;
	if (state == NET_FILTER_MORE)
		return true;
	s->passed += n;
	p->open = p->open || n > 0;
	if (state == NET_FILTER_LAST) {
		p->ended = p->closed = true; /* the server is not told: some take that for a reason to stop */
		s->end = s->passed;
	}
	return true;
}

static bool pump_in(const struct net_relay *r, struct pump *p)
{
	if (read_some(p->from) == 0)
		p->ended = true;
	return filter(r, p);
}

/* False: the other side takes nothing any more. */
static bool pump_out(struct pump *p)
{
	struct net_stream *s = p->from;
	ssize_t n = send(p->to->fd, s->data + s->start, s->passed - s->start, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	*p->count += (uint64_t)n;
	net_stream_use(s, (size_t)n);
	return true;
}

static void pump_end(struct pump *p)
{
	if (!p->ended || p->closed || wants_write(p))
		return;
	shutdown(p->to->fd, SHUT_WR);
	p->closed = true;
}

static bool is_over(const struct net_relay *r, const struct pump *up, const struct pump *down)
{
	return down->closed && (up->closed || r->one_answer) && !wants_write(down);
}

static short events(const struct pump *in, const struct pump *out)
{
	return (short)((wants_read(in) ? POLLIN : 0) | (wants_write(out) ? POLLOUT : 0));
}

static bool may_read(const struct pump *p, short revents)
{
	return wants_read(p) && revents & (POLLIN | POLLHUP | POLLERR);
}

static bool may_write(const struct pump *p, short revents)
{
	return wants_write(p) && revents & (POLLOUT | POLLHUP | POLLERR);
}

enum net_relay_end net_relay_run(struct net_relay *r)
{
	struct pump up = { r->client, r->server, &r->up, .open = !r->filter },
		    down = { r->server, r->client, &r->down, .open = true };

	if (!filter(r, &up) || !filter(r, &down))
		return NET_RELAY_REFUSED;
	for (;;) {
		struct pollfd fds[] = { { .fd = r->client->fd, .events = events(&up, &down) },
					{ .fd = r->server->fd, .events = events(&down, &up) } };
		int n;

		pump_end(&up);
		pump_end(&down);
		if (is_over(r, &up, &down))
			return NET_RELAY_DONE;
		/* Nothing to wait for there: poll(2) would still report a hang-up, over and over. */
		for (unsigned i = 0; i < G_N_ELEMENTS(fds); i++)
			if (!fds[i].events)
				fds[i].fd = -1;
		n = poll(fds, G_N_ELEMENTS(fds), wait_ms(up.open ? 0 : r->deadline));
		if (n == 0)
			return NET_RELAY_LATE;
		if (n < 0)
			continue;
		if (may_read(&up, fds[0].revents) && !pump_in(r, &up))
			return NET_RELAY_REFUSED;
		if (may_read(&down, fds[1].revents))
			pump_in(r, &down);
		if ((may_write(&up, fds[1].revents) && !pump_out(&up)) || (may_write(&down, fds[0].revents) && !pump_out(&down)))
			return NET_RELAY_DONE;
	}
}
