/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * net_stream - a connected socket with what was read from it and not used yet; and two of them joined
 *
 * One thread uses a stream, and waits in here. Sockets are made non-blocking. Deadlines are of the monotonic clock, in us; 0 = none.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_STREAM_SIZE 65536

struct net_stream {
	int fd;
	size_t start, passed, end; /* of what is in @data; what a filter has let through ends at @passed */
	uint8_t data[NET_STREAM_SIZE];
};

/* net_stream_new() - takes @fd. net_stream_free() closes it. */
struct net_stream *net_stream_new(int fd);
void net_stream_free(struct net_stream *s);
typedef struct net_stream net_stream_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(net_stream_t, net_stream_free)

/* net_stream_at(), net_stream_left() - what was read and not used. */
const uint8_t *net_stream_at(const struct net_stream *s);
size_t net_stream_left(const struct net_stream *s);
/* net_stream_use() - @size bytes are done with. */
void net_stream_use(struct net_stream *s, size_t size);
/* net_stream_fill() - reads more; false at the end, after the deadline, or when the buffer is full. */
bool net_stream_fill(struct net_stream *s, int64_t deadline);
bool net_stream_write(struct net_stream *s, const void *data, size_t size, int64_t deadline);
/* net_stream_drain() - after a refusal: takes in for a moment what the peer still sends, so that it can read what we said. */
void net_stream_drain(struct net_stream *s);

/* Joining */

enum net_filter_state {
	NET_FILTER_MORE, /* cannot tell yet */
	NET_FILTER_PASS, /* the bytes it returns may go on */
	NET_FILTER_LAST, /* these, and no more after them */
	NET_FILTER_REFUSE,
};
/* How many of these bytes, which have not been let through yet, may go on. */
typedef size_t (*net_filter)(void *user, const uint8_t *data, size_t size, enum net_filter_state *ret_state);

struct net_relay {
	struct net_stream *client, *server;
	net_filter filter; /* of what the client sends; NULL = none */
	void *user;
	bool one_answer;   /* all is over when the server ends */
	int64_t deadline;  /* for the filter to let the first byte through */
	uint64_t up, down; /* bytes */
};

enum net_relay_end { NET_RELAY_DONE, NET_RELAY_REFUSED, NET_RELAY_LATE };

/* net_relay_run() - hands bytes on in both directions until both have ended. */
enum net_relay_end net_relay_run(struct net_relay *r);
