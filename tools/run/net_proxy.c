/* SPDX-License-Identifier: MIT */
#include "tools/run/net_proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/run/client_hello.h"
#include "tools/run/http_request.h"
#include "tools/run/net_client.h"
#include "tools/run/net_stream.h"
#include "tools/run/socks.h"

#define HANDSHAKE_US (30 * G_USEC_PER_SEC)
#define RULE_MAX 1000 /* bytes of a rule's text in the head of an answer */
#define FULL_MS 50    /* until we look again whether a connection has ended */

enum { PORT_HTTP = 80, PORT_HTTPS = 443 };

struct connection {
	struct net_proxy *proxy;
	unsigned slot;
	struct net_stream *client, *server;
	struct net_peer peer;
	const char *protocol;
	struct net_target target;
	char *agent;
	struct network_verdict verdict;
	char *by;    /* who was asked */
	char *fault; /* in place of a rule */
	char *remedy;
	struct address address; /* where it went, or may not go */
	char *candidates;	/* all that may be tried */
	bool has_address, encrypted;
	int64_t started;
	uint64_t up, down;
};

struct slot {
	int client, server; /* -1 */
	bool used;
};

struct net_proxy {
	const struct network *rules;
	const struct net_backend *backend;
	GMutex lock; /* protects what follows */
	GCond freed;
	struct slot slots[NET_PROXY_CONNECTIONS];
	unsigned used;
	bool stopping;
};

static int64_t handshake_deadline(void)
{
	return g_get_monotonic_time() + HANDSHAKE_US;
}

/* Records */

static void add_detail(GString *detail, const struct connection *c)
{
	char text[ADDRESS_TEXT_SIZE];
	const char *kind = net_client_kind(c->agent, c->peer.program);

	g_string_append_printf(detail, "protocol=%s", c->protocol);
	if (c->has_address)
		g_string_append_printf(detail, " address=%s", c->candidates ? c->candidates : address_text(&c->address, text));
	if (kind)
		g_string_append_printf(detail, " client=%s", kind);
	if (c->encrypted)
		g_string_append(detail, " ech");
}

static bool record(const struct connection *c, const char *operation, int result, const char *more)
{
	g_autofree char *rule = c->by ? g_strdup_printf("%s (%s)", c->verdict.rule, c->by) : g_strdup(c->verdict.rule);
	GString *detail = g_string_new(NULL);
	struct net_record r = {
		.operation = operation,
		.subject = c->target.text ? c->target.text : "?",
		.verdict = network_action_name(c->verdict.action),
		.rule = rule,
		.result = result,
		.peer = c->peer,
	};
	bool ok;

	add_detail(detail, c);
	if (more)
		g_string_append_printf(detail, " %s", more);
	r.detail = detail->str;
	ok = c->proxy->backend->record(c->proxy->backend->user, &r);
	g_string_free(detail, TRUE);
	return ok;
}

static void record_end(const struct connection *c, int result)
{
	g_autofree char *more = g_strdup_printf("up=%" G_GUINT64_FORMAT " down=%" G_GUINT64_FORMAT " ms=%" G_GINT64_FORMAT, c->up,
						c->down, (g_get_monotonic_time() - c->started) / 1000);

	record(c, "request-end", result, more);
}

/* Answers */

/* What a person may put into a profile to open this. */
static char *remedy_for(const struct connection *c, const char *host)
{
	bool web = c->target.port == PORT_HTTP || c->target.port == PORT_HTTPS;
	bool bracket = strchr(host, ':') && !web;
	g_autofree char *port = web ? g_strdup("") : g_strdup_printf(":%u", c->target.port);

	return g_strdup_printf("to open it, a human adds \"allow = %s%s%s%s\" to [network %s] and starts a new run",
			       bracket ? "[" : "", host, bracket ? "]" : "", port, network_profile(c->proxy->rules));
}

/* For a line of the head: what is not plain text would end it, or mean something. */
static char *plain(const char *text)
{
	char *copy = g_strndup(text, RULE_MAX);

	for (char *p = copy; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return copy;
}

static void say_http(struct connection *c, const char *status, const char *why)
{
	g_autofree char *rule = plain(c->verdict.rule ? c->verdict.rule : why);
	const char *subject = c->target.text ? c->target.text : "?";
	g_autofree char *by = c->by ? g_strdup_printf(" (%s)", c->by) : NULL;
	g_autofree char *body = g_strdup_printf("sbxfs: no connection to %s: %s\nrule: %s%s\n%s%s", subject, why, rule,
						by ? by : "", c->remedy ? c->remedy : "", c->remedy ? "\n" : "");
	g_autofree char *refused = *status == '4' ? g_strdup_printf("X-Sbxfs-Refused: %s; rule=\"%s\"\r\n", subject, rule) : NULL;
	g_autofree char *answer = g_strdup_printf("HTTP/1.1 %s\r\n%sContent-Type: text/plain; charset=utf-8\r\n"
						  "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
						  status, refused ? refused : "", strlen(body), body);

	if (net_stream_write(c->client, answer, strlen(answer), handshake_deadline()))
		net_stream_drain(c->client);
}

static void say_socks(struct connection *c, enum socks_reply code)
{
	uint8_t reply[SOCKS_REPLY_SIZE];

	socks_reply(code, reply);
	if (net_stream_write(c->client, reply, sizeof(reply), handshake_deadline()) && code != SOCKS_DONE)
		net_stream_drain(c->client);
}

static bool is_socks(const struct connection *c)
{
	return g_str_equal(c->protocol, "socks5");
}

/* Some programs show the words of the status line, and nothing else. */
static void say_refused(struct connection *c, const char *why)
{
	g_autofree char *rule = plain(c->verdict.rule);
	g_autofree char *status = g_strdup_printf("403 Refused by sbxfs (%s)", rule);

	if (is_socks(c))
		say_socks(c, SOCKS_REFUSED);
	else
		say_http(c, status, why);
}

static void say_unreachable(struct connection *c, int error)
{
	g_autofree char *why = error == ENOENT	    ? g_strdup("the name has no address")
			       : error == ECANCELED ? g_strdup("what cannot be recorded in the audit is not done")
						    : g_strdup_printf("allowed, but not reached: %s", g_strerror(error));

	if (is_socks(c))
		say_socks(c, error == ENOENT ? SOCKS_UNREACHABLE : SOCKS_NO_CONNECTION);
	else
		say_http(c, "502 Bad Gateway", why);
}

static void set_fault(struct connection *c, const char *fault)
{
	g_free(c->fault);
	c->fault = g_strdup_printf("built in: %s", fault);
	c->verdict = (struct network_verdict){ NETWORK_DENY, c->fault };
}

/* What is no request, or one that cannot be decided on. */
static void refuse_fault(struct connection *c, const char *fault)
{
	set_fault(c, fault);
	if (c->server)
		record_end(c, EACCES);
	else
		record(c, "request", EACCES, NULL);
	if (is_socks(c))
		say_socks(c, SOCKS_REFUSED);
	else
		say_http(c, "400 Bad Request", fault);
}

static void refuse(struct connection *c)
{
	record(c, "request", EACCES, NULL);
	say_refused(c, "refused by a rule");
}

/* Deciding */

static bool ask(struct connection *c, const char *subject)
{
	const struct net_backend *b = c->proxy->backend;

	g_clear_pointer(&c->by, g_free);
	if (b->ask(b->user, subject, c->protocol, &c->peer, &c->by))
		return true;
	c->verdict.action = NETWORK_DENY;
	return false;
}

/* @host: for the remedy, without a port. */
static bool pass(struct connection *c, struct network_verdict v, const char *subject, const char *host)
{
	c->verdict = v;
	if (v.action == NETWORK_ALLOW || (v.action == NETWORK_ASK && ask(c, subject)))
		return true;
	c->remedy = remedy_for(c, host);
	return false;
}

static bool pass_address(struct connection *c, struct network_verdict v)
{
	char text[ADDRESS_TEXT_SIZE];
	g_auto(net_target_t) target = { 0 };

	c->has_address = true;
	address_text(&c->address, text);
	return net_target_init(&target, text, c->target.port) && pass(c, v, target.text, text);
}

/* Leaves in @all those that may be connected to: the allowed ones, else one that a human allowed. */
static bool choose_addresses(struct connection *c, GArray *all)
{
	struct network_verdict best = { NETWORK_DENY, NULL };
	g_autofree struct address *list = g_memdup2(all->data, all->len * sizeof(*list));
	unsigned count = all->len;

	g_array_set_size(all, 0);
	for (unsigned i = 0; i < count; i++) {
		struct network_verdict v = network_address(c->proxy->rules, &list[i], c->target.port);

		if (v.action == NETWORK_ALLOW)
			g_array_append_val(all, list[i]);
		if (i == 0 || v.action < best.action) {
			best = v;
			c->address = list[i];
		}
	}
	if (all->len == 0 && pass_address(c, best))
		g_array_append_val(all, c->address);
	else if (all->len && best.rule && !c->by)
		c->verdict = best;
	return all->len > 0;
}

/* @all: where to connect to. False: refused (@ret_error 0), or the name has no address. */
static bool decide(struct connection *c, GArray *all, int *ret_error)
{
	const struct net_proxy *p = c->proxy;
	const struct net_target *t = &c->target;

	*ret_error = 0;
	if (!t->name) {
		c->address = t->address;
		g_array_append_val(all, t->address);
		return pass_address(c, network_literal(p->rules, &t->address, t->port));
	}
	if (!pass(c, network_name(p->rules, t->name, t->port), t->text, t->name))
		return false;
	p->backend->resolve(p->backend->user, t->name, all);
	if (all->len == 0) {
		*ret_error = ENOENT;
		return false;
	}
	return choose_addresses(c, all);
}

/* Connecting */

static void take_server(struct connection *c, int fd)
{
	struct net_proxy *p = c->proxy;

	c->server = net_stream_new(fd);
	g_mutex_lock(&p->lock);
	p->slots[c->slot].server = fd;
	if (p->stopping)
		shutdown(fd, SHUT_RDWR);
	g_mutex_unlock(&p->lock);
}

/* With all addresses that may be tried. */
static bool record_request(struct connection *c, GArray *all)
{
	GString *list = g_string_new(NULL);
	bool ok;

	for (unsigned i = 0; i < all->len; i++) {
		char text[ADDRESS_TEXT_SIZE];

		g_string_append_printf(list, "%s%s", i ? "," : "", address_text(&g_array_index(all, struct address, i), text));
	}
	c->candidates = list->str;
	c->has_address = true;
	ok = record(c, "request", 0, NULL);
	c->candidates = NULL;
	g_string_free(list, TRUE);
	return ok;
}

/* It is in the audit before the first byte leaves: -ECANCELED when it cannot be. */
static int connect_to(struct connection *c, GArray *all)
{
	const struct net_backend *b = c->proxy->backend;
	int r = -EHOSTUNREACH;

	if (!record_request(c, all))
		return -ECANCELED;
	for (unsigned i = 0; i < all->len && r < 0; i++) {
		c->address = g_array_index(all, struct address, i);
		r = b->connect(b->user, &c->address, c->target.port);
	}
	if (r >= 0)
		take_server(c, r);
	return MIN(r, 0);
}

/* True: there is a connection to the server. Else everything has been said. */
static bool open_server(struct connection *c)
{
	g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(struct address));
	int error;

	if (!decide(c, all, &error)) {
		if (error) {
			record(c, "request", error, NULL);
			say_unreachable(c, error);
		} else {
			refuse(c);
		}
		return false;
	}
	error = -connect_to(c, all);
	if (!error)
		return true;
	record_end(c, error);
	say_unreachable(c, error);
	return false;
}

/* Exchanges */

struct tls_check {
	const struct net_target *target;
	bool required;
	bool done, encrypted;
	const char *fault;
};

static const char *check_hello(const struct tls_check *t, const struct client_hello *hello)
{
	g_auto(net_target_t) named = { 0 };

	if (!*hello->name && (t->required && t->target->name))
		return "TLS to port 443 must say its host (SNI)";
	if (*hello->name && !(net_target_init(&named, hello->name, t->target->port) && net_target_equal(&named, t->target)))
		return "TLS asks for another host (SNI) than the request";
	return NULL;
}

static size_t filter_tls(void *user, const uint8_t *data, size_t size, enum net_filter_state *ret_state)
{
	struct tls_check *t = user;
	struct client_hello hello;
	enum client_hello_state state;

	*ret_state = NET_FILTER_PASS;
	if (t->done)
		return size;
	if (!t->required && !client_hello_is_tls(data, size)) {
		t->done = true;
		return size;
	}
	state = client_hello_parse(data, size, &hello);
	if (state == CLIENT_HELLO_MORE) {
		*ret_state = NET_FILTER_MORE;
		return 0;
	}
	t->fault = state == CLIENT_HELLO_BAD ? "what goes to port 443 must begin as TLS, in one record" : check_hello(t, &hello);
	t->encrypted = hello.encrypted;
	t->done = true;
	if (t->fault)
		*ret_state = NET_FILTER_REFUSE;
	return size;
}

static void end_exchange(struct connection *c, const struct net_relay *r, enum net_relay_end end, const char *fault)
{
	c->up = r->up;
	c->down = r->down;
	if (fault)
		set_fault(c, fault);
	record_end(c, fault ? EACCES : end == NET_RELAY_LATE ? ETIMEDOUT : 0);
}

static void tunnel(struct connection *c)
{
	static const uint8_t alert[] = { 21, 3, 3, 0, 2, 2, 112 }; /* fatal: unrecognized name */
	struct tls_check check = { .target = &c->target, .required = c->target.port == PORT_HTTPS };
	struct net_relay r = {
		.client = c->client,
		.server = c->server,
		.filter = filter_tls,
		.user = &check,
		.deadline = check.required ? handshake_deadline() : 0,
	};
	enum net_relay_end end = net_relay_run(&r);

	c->encrypted = check.encrypted;
	if (end == NET_RELAY_REFUSED && !check.fault)
		check.fault = "what goes to port 443 must begin as TLS, in one record";
	if (check.fault && net_stream_write(c->client, alert, sizeof(alert), handshake_deadline()))
		net_stream_drain(c->client);
	end_exchange(c, &r, end, check.fault);
}

static size_t filter_body(void *user, const uint8_t *data, size_t size, enum net_filter_state *ret_state)
{
	struct http_body *body = user;
	bool bad;
	size_t n = http_body_take(body, data, size, &bad);

	*ret_state = bad ? NET_FILTER_REFUSE : http_body_is_done(body) ? NET_FILTER_LAST : NET_FILTER_PASS;
	return n;
}

/* Has the server agreed to go on in another protocol? Its answer stays to be handed on. */
static bool is_upgraded(struct connection *c)
{
	static const char agreed[] = "HTTP/1.1 101";
	const size_t size = sizeof(agreed) - 1;

	while (net_stream_left(c->server) < size && net_stream_fill(c->server, handshake_deadline()))
		;
	return net_stream_left(c->server) >= size && memcmp(net_stream_at(c->server), agreed, size) == 0;
}

/* One request and its answer. */
static void exchange(struct connection *c, struct http_request *q)
{
	struct net_relay r = {
		.client = c->client, .server = c->server, .filter = filter_body, .user = &q->body, .one_answer = true
	};
	enum net_relay_end end = NET_RELAY_DONE;
	size_t size = strlen(q->head);

	if (net_stream_write(c->server, q->head, size, handshake_deadline())) {
		if (q->upgrade && is_upgraded(c)) {
			r.filter = NULL;
			r.one_answer = false;
		}
		end = net_relay_run(&r);
	}
	r.up += size;
	end_exchange(c, &r, end, end == NET_RELAY_REFUSED ? "the body of the request has chunks that are none" : NULL);
}

/* Reading requests */

/* False: there is none, which was said. @tunnel: as for http_request_init(). */
static bool read_request(struct connection *c, struct http_request *q, const struct net_target *target)
{
	int64_t deadline = handshake_deadline();
	const char *fault;
	size_t size;

	while (!(size = http_head_size(net_stream_at(c->client), MIN(net_stream_left(c->client), HTTP_HEAD_MAX)))) {
		if (net_stream_left(c->client) >= HTTP_HEAD_MAX) {
			refuse_fault(c, "the head of the request is too large");
			return false;
		}
		if (!net_stream_fill(c->client, deadline)) {
			if (net_stream_left(c->client))
				refuse_fault(c, "the request has no end");
			return false;
		}
	}
	fault = http_request_init(q, net_stream_at(c->client), size, target);
	net_stream_use(c->client, size);
	c->protocol = q->connect ? "connect" : c->protocol;
	if (!target) {
		c->target = q->target;
		q->target = (struct net_target){ 0 };
	}
	g_free(c->agent);
	c->agent = g_steal_pointer(&q->agent);
	if (fault)
		refuse_fault(c, fault);
	return !fault;
}

/* The server has been connected to: what the program sends now must be HTTP for that host. */
static void tunnel_http(struct connection *c)
{
	g_auto(http_request_t) q = { 0 };

	c->protocol = "http";
	if (read_request(c, &q, &c->target))
		exchange(c, &q);
	else if (!c->fault)
		record_end(c, 0);
}

static void enter_tunnel(struct connection *c)
{
	if (c->target.port == PORT_HTTP)
		tunnel_http(c);
	else
		tunnel(c);
}

static void serve_http(struct connection *c)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	g_auto(http_request_t) q = { 0 };

	if (!read_request(c, &q, NULL) || !open_server(c))
		return;
	if (!q.connect)
		exchange(c, &q);
	else if (net_stream_write(c->client, established, sizeof(established) - 1, handshake_deadline()))
		enter_tunnel(c);
	else
		record_end(c, EPIPE);
}

static bool greet(struct connection *c, int64_t deadline)
{
	const uint8_t no_authentication[] = { SOCKS_VERSION, 0 };
	enum socks_state state;
	size_t used;

	while ((state = socks_greeting(net_stream_at(c->client), net_stream_left(c->client), &used)) == SOCKS_MORE)
		if (!net_stream_fill(c->client, deadline))
			return false;
	if (state != SOCKS_READY) {
		refuse_fault(c, "this proxy takes SOCKS 5 without authentication");
		return false;
	}
	net_stream_use(c->client, used);
	return net_stream_write(c->client, no_authentication, sizeof(no_authentication), deadline);
}

static void serve_socks(struct connection *c)
{
	int64_t deadline = handshake_deadline();
	enum socks_state state;
	enum socks_reply reply;
	size_t used;

	if (!greet(c, deadline))
		return;
	while ((state = socks_request(net_stream_at(c->client), net_stream_left(c->client), &used, &c->target, &reply)) ==
	       SOCKS_MORE)
		if (!net_stream_fill(c->client, deadline))
			return;
	if (state != SOCKS_READY) {
		refuse_fault(c, reply == SOCKS_NO_COMMAND ? "the only command of SOCKS known here is CONNECT"
							  : "the request has no host that could be decided on");
		return;
	}
	net_stream_use(c->client, used);
	if (!open_server(c))
		return;
	say_socks(c, SOCKS_DONE);
	enter_tunnel(c);
}

/* Connections */

static unsigned peer_port(int fd)
{
	struct sockaddr_in a;
	socklen_t size = sizeof(a);

	return getpeername(fd, (void *)&a, &size) == 0 && a.sin_family == AF_INET ? ntohs(a.sin_port) : 0;
}

static void free_slot(struct net_proxy *p, unsigned slot)
{
	g_mutex_lock(&p->lock);
	p->slots[slot] = (struct slot){ -1, -1, false };
	p->used--;
	g_cond_broadcast(&p->freed);
	g_mutex_unlock(&p->lock);
}

/* The descriptors leave the slot before they are closed: a number that is used again must not be shut down. */
static void connection_free(struct connection *c)
{
	free_slot(c->proxy, c->slot);
	net_stream_free(c->client);
	net_stream_free(c->server);
	net_target_clear(&c->target);
	g_free(c->agent);
	g_free(c->by);
	g_free(c->fault);
	g_free(c->remedy);
	g_free(c);
}

static void *serve(void *data)
{
	struct connection *c = data;
	const struct net_backend *b = c->proxy->backend;

	c->started = g_get_monotonic_time();
	c->protocol = "http";
	if (net_stream_fill(c->client, handshake_deadline())) {
		b->who(b->user, peer_port(c->client->fd), &c->peer);
		if (*net_stream_at(c->client) == SOCKS_VERSION) {
			c->protocol = "socks5";
			serve_socks(c);
		} else if (!g_ascii_isalpha(*net_stream_at(c->client))) {
			refuse_fault(c, "this is neither HTTP nor SOCKS 5");
		} else {
			serve_http(c);
		}
	}
	connection_free(c);
	return NULL;
}

static bool is_full(struct net_proxy *p)
{
	bool full;

	g_mutex_lock(&p->lock);
	full = p->used == NET_PROXY_CONNECTIONS;
	g_mutex_unlock(&p->lock);
	return full;
}

/* There is a free one, and only this thread takes them. */
static unsigned take_slot(struct net_proxy *p, int fd)
{
	unsigned i = 0;

	g_mutex_lock(&p->lock);
	while (p->slots[i].used)
		i++;
	p->slots[i] = (struct slot){ fd, -1, true };
	p->used++;
	g_mutex_unlock(&p->lock);
	return i;
}

static void accept_one(struct net_proxy *p, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct connection *c;
	GThread *thread;

	if (fd < 0)
		return;
	c = g_new0(struct connection, 1);
	c->proxy = p;
	c->slot = take_slot(p, fd);
	c->client = net_stream_new(fd);
	thread = g_thread_try_new("net", serve, c, NULL);
	if (thread)
		g_thread_unref(thread);
	else
		connection_free(c);
}

static void stop_all(struct net_proxy *p)
{
	g_mutex_lock(&p->lock);
	p->stopping = true;
	for (unsigned i = 0; i < NET_PROXY_CONNECTIONS; i++) {
		if (p->slots[i].client >= 0)
			shutdown(p->slots[i].client, SHUT_RDWR);
		if (p->slots[i].server >= 0)
			shutdown(p->slots[i].server, SHUT_RDWR);
	}
	while (p->used)
		g_cond_wait(&p->freed, &p->lock);
	g_mutex_unlock(&p->lock);
}

struct net_proxy *net_proxy_new(const struct network *rules, const struct net_backend *backend)
{
	struct net_proxy *p = g_new0(struct net_proxy, 1);

	p->rules = rules;
	p->backend = backend;
	for (unsigned i = 0; i < NET_PROXY_CONNECTIONS; i++)
		p->slots[i] = (struct slot){ -1, -1, false };
	g_mutex_init(&p->lock);
	g_cond_init(&p->freed);
	return p;
}

void net_proxy_run(struct net_proxy *p, int listener, int stop)
{
	for (;;) {
		bool full = is_full(p);
		struct pollfd fds[] = { { .fd = stop, .events = POLLIN }, { .fd = full ? -1 : listener, .events = POLLIN } };

		if (poll(fds, G_N_ELEMENTS(fds), full ? FULL_MS : -1) < 0)
			continue;
		if (fds[0].revents)
			break;
		if (fds[1].revents)
			accept_one(p, listener);
	}
	stop_all(p);
}

void net_proxy_free(struct net_proxy *p)
{
	g_mutex_clear(&p->lock);
	g_cond_clear(&p->freed);
	g_free(p);
}
