/* SPDX-License-Identifier: MIT */
#include "tools/run/net_link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/run/fd_message.h"

#define CALL_TYPE G_VARIANT_TYPE("(sa{sv})")

/* Of any text: what is not UTF-8 would make the message invalid. */
static void add_text(GVariantDict *d, const char *key, const char *text)
{
	g_autofree char *valid = text ? g_utf8_make_valid(text, -1) : NULL;

	if (valid)
		g_variant_dict_insert(d, key, "s", valid);
}

static GVariant *decode(const GVariantType *type, const void *data, size_t size)
{
	g_autoptr(GBytes) bytes = g_bytes_new(data, size);
	g_autoptr(GVariant) v = g_variant_ref_sink(g_variant_new_from_bytes(type, bytes, FALSE));

	return g_variant_is_normal_form(v) ? g_steal_pointer(&v) : NULL;
}

static bool send_variant(int to, GVariant *v, int fd)
{
	g_autoptr(GVariant) message = g_variant_ref_sink(v);

	/* An empty message would look like the end. */
	return g_variant_get_size(message) > 0 ? fd_message_send(to, g_variant_get_data(message), g_variant_get_size(message), fd)
					       : fd_message_send(to, "", 1, fd);
}

/* The proxy's side */

/* Until the answer is there, or @link is closed on the other side. */
static bool wait_for(int answer, int link)
{
	struct pollfd fds[] = { { .fd = answer, .events = POLLIN }, { .fd = link, .events = POLLIN } };
	int n;

	do
		n = poll(fds, G_N_ELEMENTS(fds), -1);
	while (n < 0 && errno == EINTR);
	return n > 0 && fds[0].revents;
}

/* @patient: also when the proxy is to end, since the answer comes at once. */
static GVariant *call(const int *link, const char *operation, GVariantDict *arguments, bool patient)
{
	g_autofree char *answer = g_malloc(NET_LINK_MESSAGE_MAX);
	GVariant *message = g_variant_new("(s@a{sv})", operation, g_variant_dict_end(arguments));
	int pair[2], fd = -1;
	ssize_t n = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		g_variant_unref(g_variant_ref_sink(message));
		return NULL;
	}
	if (send_variant(*link, message, pair[1])) {
		close(pair[1]);
		pair[1] = -1;
		if (patient || wait_for(pair[0], *link))
			n = fd_message_receive(pair[0], answer, NET_LINK_MESSAGE_MAX, &fd);
	}
	for (unsigned i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
	if (n == 1)
		n = 0, answer[0] = '\0';
	else if (n <= 0)
		return NULL;
	return decode(G_VARIANT_TYPE_VARDICT, answer, (size_t)n);
}

static void add_peer(GVariantDict *d, const struct net_peer *peer)
{
	g_variant_dict_insert(d, "pid", "i", (gint32)peer->pid);
	add_text(d, "program", peer->program);
}

static void read_peer(GVariant *v, struct net_peer *ret)
{
	const char *program = "";
	gint32 pid = 0;

	g_variant_lookup(v, "pid", "i", &pid);
	g_variant_lookup(v, "program", "&s", &program);
	ret->pid = pid;
	g_strlcpy(ret->program, program, sizeof(ret->program));
}

static void call_who(void *user, unsigned port, struct net_peer *ret)
{
	g_autoptr(GVariant) answer = NULL;
	GVariantDict d;

	*ret = (struct net_peer){ 0 };
	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert(&d, "port", "u", port);
	answer = call(user, "who", &d, true);
	if (answer)
		read_peer(answer, ret);
}

static bool call_ask(void *user, const char *subject, const char *operation, const struct net_peer *peer, char **ret_by)
{
	g_autoptr(GVariant) answer = NULL;
	gboolean allowed = FALSE;
	GVariantDict d;

	g_variant_dict_init(&d, NULL);
	add_text(&d, "subject", subject);
	add_text(&d, "operation", operation);
	add_peer(&d, peer);
	answer = call(user, "ask", &d, false);
	if (!answer || !g_variant_lookup(answer, "by", "s", ret_by))
		*ret_by = g_strdup("nobody can be asked");
	if (answer)
		g_variant_lookup(answer, "allowed", "b", &allowed);
	return allowed;
}

static bool call_record(void *user, const struct net_record *r)
{
	g_autoptr(GVariant) answer = NULL;
	GVariantDict d;

	g_variant_dict_init(&d, NULL);
	add_text(&d, "operation", r->operation);
	add_text(&d, "subject", r->subject);
	add_text(&d, "verdict", r->verdict);
	add_text(&d, "rule", r->rule);
	add_text(&d, "detail", r->detail);
	g_variant_dict_insert(&d, "result", "i", (gint32)r->result);
	add_peer(&d, &r->peer);
	answer = call(user, "record", &d, true);
	return answer != NULL;
}

struct net_backend net_link_backend(const int *link)
{
	return (struct net_backend){ .who = call_who, .ask = call_ask, .record = call_record, .user = (void *)link };
}

/* The side of `sbxfs run` */

struct question {
	const struct net_link_handlers *handlers;
	void *user;
	char *subject, *operation;
	struct net_peer peer;
	int answer_to;
};

static void answer_who(const struct net_link_handlers *h, GVariant *arguments, int to)
{
	struct net_peer peer = { 0 };
	guint32 port = 0;
	GVariantDict d;

	g_variant_lookup(arguments, "port", "u", &port);
	h->who(h->user, port, &peer);
	g_variant_dict_init(&d, NULL);
	add_peer(&d, &peer);
	send_variant(to, g_variant_dict_end(&d), -1);
}

static void answer_record(const struct net_link_handlers *h, GVariant *arguments, int to)
{
	struct net_record r = { .operation = "request", .subject = "?" };
	gint32 result = 0;

	g_variant_lookup(arguments, "operation", "&s", &r.operation);
	g_variant_lookup(arguments, "subject", "&s", &r.subject);
	g_variant_lookup(arguments, "verdict", "&s", &r.verdict);
	g_variant_lookup(arguments, "rule", "&s", &r.rule);
	g_variant_lookup(arguments, "detail", "&s", &r.detail);
	g_variant_lookup(arguments, "result", "i", &result);
	r.result = result;
	read_peer(arguments, &r.peer);
	if (h->record(h->user, &r))
		send_variant(to, g_variant_new("a{sv}", NULL), -1);
}

/* Closed without an answer is a no. */
static void question_free(struct question *q)
{
	close(q->answer_to);
	q->handlers->drop(q->user);
	g_free(q->subject);
	g_free(q->operation);
	g_free(q);
}

static void *put_question(void *data)
{
	struct question *q = data;
	g_autofree char *by = NULL;
	bool allowed = q->handlers->ask(q->user, q->subject, q->operation, &q->peer, &by);
	GVariantDict d;

	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert(&d, "allowed", "b", (gboolean)allowed);
	add_text(&d, "by", by);
	send_variant(q->answer_to, g_variant_dict_end(&d), -1);
	question_free(q);
	return NULL;
}

/* Takes @to. */
static void answer_ask(const struct net_link_handlers *h, GVariant *arguments, int to)
{
	struct question *q = g_new0(struct question, 1);
	g_autoptr(GThread) thread = NULL;

	q->handlers = h;
	q->user = h->hold(h->user);
	q->answer_to = to;
	if (!g_variant_lookup(arguments, "subject", "s", &q->subject))
		q->subject = g_strdup("?");
	if (!g_variant_lookup(arguments, "operation", "s", &q->operation))
		q->operation = g_strdup("?");
	read_peer(arguments, &q->peer);
	thread = g_thread_try_new("net-ask", put_question, q, NULL);
	if (!thread)
		question_free(q);
}

/* Takes @to. */
static void answer(const struct net_link_handlers *h, const void *data, size_t size, int to)
{
	g_autoptr(GVariant) message = decode(CALL_TYPE, data, size), arguments = NULL;
	const char *operation = "";

	if (message)
		g_variant_get(message, "(&s@a{sv})", &operation, &arguments);
	if (g_str_equal(operation, "ask")) {
		answer_ask(h, arguments, to);
		return;
	}
	if (g_str_equal(operation, "who"))
		answer_who(h, arguments, to);
	else if (g_str_equal(operation, "record"))
		answer_record(h, arguments, to);
	close(to);
}

void net_link_serve(int link, const struct net_link_handlers *h)
{
	g_autofree char *data = g_malloc(NET_LINK_MESSAGE_MAX);
	ssize_t n;
	int fd;

	while ((n = fd_message_receive(link, data, NET_LINK_MESSAGE_MAX, &fd)) != 0) {
		if (fd >= 0 && n > 0)
			answer(h, data, (size_t)n, fd);
		else if (fd >= 0)
			close(fd);
		else if (n < 0 && errno != EMSGSIZE)
			break;
	}
}
