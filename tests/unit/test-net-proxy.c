/* SPDX-License-Identifier: MIT */
/*
 * test-net-proxy - the proxy of a run, between a client and a server that this process plays
 *
 * Its backend is of this test: names and connections are made up, so any name has any address and the ports 80 and 443 need
 * nobody's leave; and each request for an address is seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rules/policy.h"
#include "tests/unit/hello.h"
#include "tools/run/net_ask.h"
#include "tools/run/net_proxy.h"

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"

struct world {
	struct network *rules;
	struct net_backend backend;
	struct net_proxy *proxy;
	GThread *thread;
	int listener, stop[2];
	unsigned port;
	GMutex lock;					   /* protects what follows */
	GPtrArray *resolved, *connected, *asked, *records; /* text */
	unsigned answer;				   /* which of @addresses the resolver gives next */
	const char *addresses[4];
	bool allow, fail_record;
	GString *received; /* by the server */
	GThread *servers[32];
	unsigned server_count;
};

/* The server: takes what comes, answers, closes. */

struct served {
	struct world *world;
	int fd;
};

static void *serve(void *data)
{
	struct served *s = data;
	char buffer[4096];
	bool answered = false;
	ssize_t n;

	while ((n = recv(s->fd, buffer, sizeof(buffer), 0)) > 0) {
		g_mutex_lock(&s->world->lock);
		g_string_append_len(s->world->received, buffer, n);
		g_mutex_unlock(&s->world->lock);
		if (!answered && send(s->fd, ANSWER, strlen(ANSWER), MSG_NOSIGNAL) < 0)
			break;
		answered = true;
		if (memmem(buffer, (size_t)n, "Connection: ", 12))
			shutdown(s->fd, SHUT_WR); /* and goes on listening for what should not come */
		if (memmem(buffer, (size_t)n, "END", 3))
			break;
	}
	close(s->fd);
	g_free(s);
	return NULL;
}

/* The backend */

static void note(struct world *w, GPtrArray *list, char *text)
{
	g_mutex_lock(&w->lock);
	g_ptr_array_add(list, text);
	g_mutex_unlock(&w->lock);
}

static void who(void *user, unsigned port, struct net_peer *ret)
{
	(void)user;
	*ret = (struct net_peer){ .pid = port ? 42 : 0 };
	g_strlcpy(ret->program, "tester", sizeof(ret->program));
}

static bool ask(void *user, const char *subject, const char *operation, const struct net_peer *peer, char **ret_by)
{
	struct world *w = user;

	assert_int_equal(peer->pid, 42);
	note(w, w->asked, g_strdup_printf("%s %s", operation, subject));
	*ret_by = g_strdup(w->allow ? "allowed by me" : "denied by me");
	return w->allow;
}

static bool record(void *user, const struct net_record *r)
{
	struct world *w = user;

	note(w, w->records,
	     g_strdup_printf("%s %s %s %d by %s (%s)", r->operation, r->subject, r->verdict, r->result, r->rule ? r->rule : "-",
			     r->detail));
	return !w->fail_record;
}

/* Another answer each time. */
static void resolve(void *user, const char *name, GArray *ret)
{
	struct world *w = user;
	struct address a;
	g_auto(GStrv) all = NULL;

	note(w, w->resolved, g_strdup(name));
	g_mutex_lock(&w->lock);
	all = g_strsplit(w->addresses[w->answer], " ", -1);
	if (w->addresses[w->answer + 1])
		w->answer++;
	g_mutex_unlock(&w->lock);
	for (char **text = all; *text; text++) {
		if (!**text)
			continue;
		assert_true(address_parse(*text, &a));
		g_array_append_val(ret, a);
	}
}

static int connect_server(void *user, const struct address *a, unsigned port)
{
	struct world *w = user;
	char text[ADDRESS_TEXT_SIZE];
	struct served *s;
	int pair[2];

	note(w, w->connected, g_strdup_printf("%s %u", address_text(a, text), port));
	if (g_str_equal(text, "9.9.9.9"))
		return -ECONNREFUSED;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	s = g_new0(struct served, 1);
	*s = (struct served){ w, pair[1] };
	g_mutex_lock(&w->lock);
	assert_true(w->server_count < G_N_ELEMENTS(w->servers));
	w->servers[w->server_count++] = g_thread_new("server", serve, s);
	g_mutex_unlock(&w->lock);
	return pair[0];
}

/* Life */

static void *run(void *data)
{
	struct world *w = data;

	net_proxy_run(w->proxy, w->listener, w->stop[0]);
	return NULL;
}

static struct world *world_new(const char *lines, const char *addresses)
{
	g_autofree char *text = g_strdup_printf("[profile t]\n[network t]\n%s\n", lines);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct world *w = g_new0(struct world, 1);
	g_autoptr(GError) error = NULL;
	struct policy *p = policy_load_text(text, "t.ini", &error);
	socklen_t size = sizeof(a);

	if (!p)
		fail_msg("%s", error->message);
	w->rules = network_new(p);
	policy_free(p);
	g_mutex_init(&w->lock);
	w->resolved = g_ptr_array_new_with_free_func(g_free);
	w->connected = g_ptr_array_new_with_free_func(g_free);
	w->asked = g_ptr_array_new_with_free_func(g_free);
	w->records = g_ptr_array_new_with_free_func(g_free);
	w->received = g_string_new(NULL);
	w->addresses[0] = addresses;
	w->backend = (struct net_backend){ who, ask, record, resolve, connect_server, w };
	w->proxy = net_proxy_new(w->rules, &w->backend);
	w->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(w->listener, (void *)&a, sizeof(a)), 0);
	assert_int_equal(listen(w->listener, 16), 0);
	assert_int_equal(getsockname(w->listener, (void *)&a, &size), 0);
	w->port = ntohs(a.sin_port);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, w->stop), 0);
	w->thread = g_thread_new("proxy", run, w);
	return w;
}

/* Ends the proxy and all its connections: from here on nothing changes. */
static void world_stop(struct world *w)
{
	if (!w->thread)
		return;
	close(w->stop[1]);
	g_thread_join(g_steal_pointer(&w->thread));
	for (unsigned i = 0; i < w->server_count; i++)
		g_thread_join(w->servers[i]);
}

static void world_free(struct world *w)
{
	world_stop(w);
	close(w->stop[0]);
	close(w->listener);
	net_proxy_free(w->proxy);
	network_free(w->rules);
	g_ptr_array_unref(w->resolved);
	g_ptr_array_unref(w->connected);
	g_ptr_array_unref(w->asked);
	g_ptr_array_unref(w->records);
	g_string_free(w->received, TRUE);
	g_mutex_clear(&w->lock);
	g_free(w);
}

/* The client */

static int dial(const struct world *w)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)w->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (void *)&a, sizeof(a)), 0);
	return fd;
}

static void put(int fd, const void *data, size_t size)
{
	if (send(fd, data, size, MSG_NOSIGNAL) < 0)
		return;
}

static void put_text(int fd, const char *text)
{
	put(fd, text, strlen(text));
}

/* To the end. Caller frees. */
static GString *get(int fd)
{
	GString *all = g_string_new(NULL);
	char buffer[4096];
	ssize_t n;

	while ((n = recv(fd, buffer, sizeof(buffer), 0)) > 0)
		g_string_append_len(all, buffer, n);
	close(fd);
	return all;
}

/* Waits until so much has come. */
static void get_some(int fd, void *data, size_t size)
{
	assert_int_equal(recv(fd, data, size, MSG_WAITALL), size);
}

static char *talk(const struct world *w, const char *request)
{
	int fd = dial(w);

	put_text(fd, request);
	return g_string_free(get(fd), FALSE);
}

static const char *last(const GPtrArray *list)
{
	return list->len ? list->pdata[list->len - 1] : "";
}

static void check_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* Tests */

static void test_plain_request(void **state)
{
	struct world *w = world_new("allow = a.com", "1.1.1.1");
	g_autofree char *answer =
		talk(w, "POST http://a.com/x HTTP/1.1\r\nHost: a.com\r\nUser-Agent: npm/9\r\nContent-Length: 3\r\n\r\nabc");

	(void)state;
	assert_string_equal(answer, ANSWER);
	world_stop(w);
	check_has(w->received->str, "POST /x HTTP/1.1\r\nHost: a.com\r\n");
	check_has(w->received->str, "Connection: close\r\n\r\nabc");
	assert_string_equal(last(w->connected), "1.1.1.1 80");
	check_has(w->records->pdata[0],
		  "request a.com:80 allow 0 by t.ini:3: allow = a.com (protocol=http address=1.1.1.1 client=npm");
	check_has(w->records->pdata[1], "request-end a.com:80 allow 0");
	check_has(w->records->pdata[1], " down=59 ");
	world_free(w);
}

static void test_refusal_names_all(void **state)
{
	struct world *w = world_new("allow = a.com", "1.1.1.1");
	g_autofree char *answer = talk(w, "GET http://b.com/ HTTP/1.1\r\nHost: b.com\r\n\r\n");
	g_autofree char *tunnel = talk(w, "CONNECT b.com:8443 HTTP/1.1\r\n\r\n");

	(void)state;
	check_has(answer, "HTTP/1.1 403 Refused by sbxfs (no rule of profile t)\r\n");
	check_has(answer, "X-Sbxfs-Refused: b.com:80; rule=\"no rule of profile t\"\r\n");
	check_has(answer, "adds \"allow = b.com\" to [network t]");
	check_has(tunnel, "HTTP/1.1 403 ");
	check_has(tunnel, "adds \"allow = b.com:8443\" to [network t]");
	world_stop(w);
	assert_int_equal(w->connected->len, 0);
	assert_int_equal(w->resolved->len, 0); /* no name that no rule lets through is asked for */
	assert_int_equal(w->records->len, 2);
	check_has(w->records->pdata[1], "request b.com:8443 deny 13 by no rule of profile t (protocol=connect");
	world_free(w);
}

/* A second request in one connection is nobody's. */
static void test_no_second_request(void **state)
{
	static const char *const requests[] = {
		"GET http://a.com/1 HTTP/1.1\r\nHost: a.com\r\n\r\nGET /2 HTTP/1.1\r\nHost: evil.com\r\n\r\n",
		"POST http://a.com/1 HTTP/1.1\r\nHost: a.com\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /2 "
		"HTTP/1.1\r\nHost: evil.com\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(requests); i++) {
		struct world *w = world_new("allow = a.com", "1.1.1.1");
		int fd = dial(w);
		char answer[sizeof(ANSWER) - 1];

		put_text(fd, requests[i]);
		get_some(fd, answer, sizeof(answer));
		put_text(fd, "GET /3 HTTP/1.1\r\nHost: evil.com\r\n\r\n");
		world_stop(w);
		close(fd);
		check_has(w->received->str, "/1 HTTP/1.1");
		assert_null(strstr(w->received->str, "evil.com"));
		world_free(w);
	}
}

/* What was checked is what is connected to, and the resolver is asked once. */
static void test_addresses(void **state)
{
	static const struct {
		const char *first, *then; /* what the resolver says */
		const char *connected;	  /* NULL: refused */
		const char *rule;
	} cases[] = {
		{ "1.1.1.1", "127.0.0.1", "1.1.1.1 80", "allow = a.com" },
		{ "127.0.0.1", "1.1.1.1", NULL, "built in: loopback" },
		{ "10.0.0.1 1.1.1.1", "10.0.0.1", "1.1.1.1 80", "allow = a.com" },
		{ "::ffff:169.254.169.254", NULL, NULL, "built in: cloud metadata" },
		{ "64:ff9b::7f00:1", NULL, NULL, "built in: loopback" },
		{ "fd00::1 fe80::1", NULL, NULL, "built in" },
		{ "0.0.0.0", NULL, NULL, "built in: unspecified" },
		{ "2606:4700::1111", NULL, "2606:4700::1111 80", "allow = a.com" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct world *w = world_new("allow = a.com", cases[i].first);
		g_autofree char *answer = NULL;

		w->addresses[1] = cases[i].then;
		answer = talk(w, "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n");
		check_has(answer, cases[i].connected ? "200 OK" : "403 ");
		world_stop(w);
		assert_int_equal(w->resolved->len, 1);
		assert_int_equal(w->connected->len, cases[i].connected ? 1 : 0);
		if (cases[i].connected)
			assert_string_equal(last(w->connected), cases[i].connected);
		check_has(w->records->pdata[0], cases[i].rule);
		world_free(w);
	}
}

static void test_next_address(void **state)
{
	struct world *w = world_new("allow = a.com", "9.9.9.9 1.1.1.1");
	g_autofree char *answer = talk(w, "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n"), *none = NULL, *unreached = NULL;

	(void)state;
	assert_string_equal(answer, ANSWER);
	world_stop(w);
	check_has(w->records->pdata[0], " address=9.9.9.9,1.1.1.1"); /* all that it may have spoken to */
	check_has(w->records->pdata[1], " address=1.1.1.1");
	world_free(w);
	w = world_new("allow = a.com", "");
	none = talk(w, "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n");
	check_has(none, "502 Bad Gateway");
	world_free(w);
	w = world_new("allow = a.com", "9.9.9.9");
	unreached = talk(w, "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n");
	check_has(unreached, "Connection refused");
	world_stop(w);
	check_has(last(w->records), "request-end a.com:80 allow 111");
	world_free(w);
}

static void test_audit_comes_first(void **state)
{
	struct world *w = world_new("allow = a.com", "1.1.1.1");
	g_autofree char *answer = NULL;

	(void)state;
	w->fail_record = true;
	answer = talk(w, "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n");
	check_has(answer, "502 ");
	check_has(answer, "cannot be recorded");
	world_stop(w);
	assert_int_equal(w->connected->len, 0);
	world_free(w);
}

/* TLS */

static void check_tls(const char *policy, const char *target, GByteArray *hello, bool good, const char *rule)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	struct world *w = world_new(policy, "1.1.1.1");
	g_autofree char *request = g_strdup_printf("CONNECT %s HTTP/1.1\r\n\r\n", target);
	int fd = dial(w);
	char head[sizeof(established) - 1];
	GString *rest;

	put_text(fd, request);
	get_some(fd, head, sizeof(head));
	assert_memory_equal(head, established, sizeof(head));
	/* in pieces, as a network may bring it */
	put(fd, hello->data, 7);
	put(fd, hello->data + 7, hello->len - 7);
	put(fd, "END", 3);
	shutdown(fd, SHUT_WR);
	rest = get(fd);
	world_stop(w);
	if (good) {
		assert_string_equal(rest->str, ANSWER);
		assert_int_equal(w->received->len, hello->len + 3);
		check_has(last(w->records), "allow 0");
	} else {
		assert_memory_equal(rest->str, "\x15\x03\x03\0\2\2\x70", 7); /* an alert */
		assert_int_equal(w->received->len, 0);
		check_has(last(w->records), "deny 13");
	}
	check_has(last(w->records), rule);
	g_string_free(rest, TRUE);
	g_byte_array_unref(hello);
	world_free(w);
}

static GByteArray *text(const char *s)
{
	return g_byte_array_append(g_byte_array_new(), (const guint8 *)s, (guint)strlen(s));
}

static void test_tls(void **state)
{
	(void)state;
	check_tls("allow = a.com", "a.com:443", hello_new("a.com", 0), true, "allow = a.com");
	check_tls("allow = a.com", "A.com.:443", hello_new("a.COM", HELLO_ECH), true, " ech");
	check_tls("allow = a.com", "a.com:443", hello_new("evil.com", 0), false, "another host (SNI)");
	check_tls("allow = *.a.com", "x.a.com:443", hello_new("y.a.com", 0), false, "another host (SNI)");
	check_tls("allow = a.com", "a.com:443", hello_new(NULL, 0), false, "must say its host (SNI)");
	check_tls("allow = a.com", "a.com:443", hello_new("a.com", HELLO_TWO_RECORDS), false, "must begin as TLS");
	check_tls("allow = a.com", "a.com:443", text("SSH-2.0-OpenSSH_9\r\n"), false, "must begin as TLS");
	check_tls("allow = a.com", "a.com:443", text("GET / HTTP/1.1\r\n\r\n"), false, "must begin as TLS");
	/* an address has no name */
	check_tls("allow = 1.1.1.1", "1.1.1.1:443", hello_new(NULL, 0), true, "allow = 1.1.1.1");
	check_tls("allow = 1.1.1.1", "1.1.1.1:443", hello_new("evil.com", 0), false, "another host (SNI)");
	/* on other ports TLS is not a must */
	check_tls("allow = a.com:2222", "a.com:2222", text("SSH-2.0-OpenSSH_9\r\n"), true, "allow = a.com:2222");
	check_tls("allow = a.com:8443", "a.com:8443", hello_new("a.com", 0), true, "allow = a.com:8443");
	check_tls("allow = a.com:8443", "a.com:8443", hello_new("evil.com", 0), false, "another host (SNI)");
}

/* A tunnel to port 80 is HTTP for its host. */
static void test_tunnel_to_port_80(void **state)
{
	static const struct {
		const char *request;
		bool good;
	} cases[] = {
		{ "GET /x HTTP/1.1\r\nHost: a.com\r\n\r\n", true },
		{ "GET /x HTTP/1.1\r\nHost: evil.com\r\n\r\n", false },
		{ "SSH-2.0-x\r\n\r\n", false },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct world *w = world_new("allow = a.com", "1.1.1.1");
		g_autofree char *request = g_strconcat("CONNECT a.com:80 HTTP/1.1\r\n\r\n", cases[i].request, NULL);
		int fd = dial(w);
		GString *answer;

		put_text(fd, request);
		shutdown(fd, SHUT_WR);
		answer = get(fd);
		check_has(answer->str, "200 Connection established");
		check_has(answer->str, cases[i].good ? "200 OK" : "400 Bad Request");
		g_string_free(answer, TRUE);
		world_stop(w);
		assert_int_equal(w->received->len > 0, cases[i].good);
		check_has(last(w->records), cases[i].good ? "request-end a.com:80 allow 0" : "request-end a.com:80 deny 13");
		world_free(w);
	}
}

/* SOCKS */

static void test_socks(void **state)
{
	static const struct {
		const char *request;
		size_t size;
		char reply;
		const char *connected;
	} cases[] = {
		{ "\5\1\0\3\5a.com\x08\xae", 12, 0, "1.1.1.1 2222" },
		{ "\5\1\0\3\5b.com\x08\xae", 12, 2, NULL },
		{ "\5\1\0\1\x7f\0\0\1\x08\xae", 10, 2, NULL },
		{ "\5\1\0\3\x09"
		  "127.0.0.1\x08\xae",
		  16, 2, NULL },
		{ "\5\1\0\3\x0a"
		  "2130706433\x08\xae",
		  17, 2, NULL },
		{ "\5\2\0\3\5a.com\x08\xae", 12, 2, NULL },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct world *w = world_new("allow = a.com:2222", "1.1.1.1");
		int fd = dial(w);
		char greeting[2], reply[10];
		GString *rest;

		put(fd, "\5\1\0", 3);
		get_some(fd, greeting, 2);
		assert_memory_equal(greeting, "\5\0", 2);
		put(fd, cases[i].request, cases[i].size);
		get_some(fd, reply, sizeof(reply));
		assert_int_equal(reply[1], cases[i].reply);
		put(fd, "END", 3);
		rest = get(fd);
		assert_string_equal(rest->str, cases[i].connected ? ANSWER : "");
		g_string_free(rest, TRUE);
		world_stop(w);
		assert_string_equal(last(w->connected), cases[i].connected ? cases[i].connected : "");
		check_has(w->records->pdata[0], "protocol=socks5");
		world_free(w);
	}
}

/* Asking */

static void test_asking(void **state)
{
	(void)state;
	for (unsigned allow = 0; allow < 2; allow++) {
		struct world *w = world_new("ask = a.com\nask = 10.0.0.0/8", "1.1.1.1");
		g_autofree char *name = NULL, *address = NULL;

		w->allow = allow;
		name = talk(w, "GET http://a.com:8080/ HTTP/1.1\r\nHost: a.com:8080\r\n\r\n");
		address = talk(w, "GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
		check_has(name, allow ? "200 OK" : "rule: t.ini:3: ask = a.com (denied by me)");
		check_has(address, allow ? "200 OK" : "403 ");
		world_stop(w);
		assert_string_equal(w->asked->pdata[0], "http a.com:8080");
		assert_string_equal(w->asked->pdata[1], "http 10.0.0.1:80");
		assert_int_equal(w->resolved->len, allow); /* not before somebody said yes */
		assert_int_equal(w->connected->len, allow ? 2 : 0);
		check_has(w->records->pdata[0], allow ? "ask 0 by t.ini:3: ask = a.com (allowed by me)"
						      : "deny 13 by t.ini:3: ask = a.com (denied by me)");
		world_free(w);
	}
}

/* Where nobody can be asked, the answer is no, and the reason is said. */
static void test_asking_nobody(void **state)
{
	struct net_asker *a = net_asker_new("/nonexistent/socket");
	const struct net_peer peer = { .pid = 1, .program = "x" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		g_autofree char *by = NULL;

		assert_false(net_asker_ask(a, "a.com:443", "connect", &peer, &by));
		check_has(by, "nobody can be asked: ");
	}
	net_asker_free(a);
}

/* Hostile input */

static void test_hostile_input(void **state)
{
	static const char *const requests[] = {
		"GET http://user@a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n",
		"GET http://0x7f000001/ HTTP/1.1\r\nHost: 0x7f000001\r\n\r\n",
		"GET http://127.1/ HTTP/1.1\r\nHost: 127.1\r\n\r\n",
		"CONNECT a.com:22 HTTP/1.1\r\n\r\n",
		"CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1\r\n\r\n",
		"CONNECT 127.0.0.1:3128 HTTP/1.1\r\n\r\n",
		"CONNECT 93.184.216.34:443 HTTP/1.1\r\n\r\n",
		"CONNECT localhost:443 HTTP/1.1\r\n\r\n",
		"\4\1\0\x50\x7f\0\0\1",
		"GET http://a.com/ HTTP/1.1\r\nHost: evil.com\r\n\r\n",
		"\x16\x03\x01\x02\r\n\r\n",
		"POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
	};
	struct world *w = world_new("allow = a.com", "1.1.1.1");
	g_autofree char *large = g_strnfill(100000, 'x'), *answer = NULL;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(requests); i++) {
		int fd = dial(w);
		GString *all;

		put_text(fd, requests[i]);
		shutdown(fd, SHUT_WR);
		all = get(fd);
		assert_true(g_str_has_prefix(all->str, "HTTP/1.1 4"));
		g_string_free(all, TRUE);
	}
	answer = talk(w, large);
	check_has(answer, "the head of the request is too large");
	world_stop(w);
	assert_int_equal(w->connected->len, 0);
	assert_int_equal(w->records->len, G_N_ELEMENTS(requests) + 1);
	for (unsigned i = 0; i < w->records->len; i++)
		check_has(w->records->pdata[i], " deny 13 by ");
	world_free(w);
}

/* A websocket goes on after the server has agreed, and not before. The server of this test never does. */
static void test_upgrade_without_consent(void **state)
{
	struct world *w = world_new("allow = a.com", "1.1.1.1");
	int fd = dial(w);
	GString *answer;

	(void)state;
	put_text(fd, "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
		     "GET /evil HTTP/1.1\r\n\r\n");
	shutdown(fd, SHUT_WR);
	answer = get(fd);
	assert_string_equal(answer->str, ANSWER);
	g_string_free(answer, TRUE);
	world_stop(w);
	check_has(w->received->str, "Upgrade: websocket");
	assert_null(strstr(w->received->str, "evil"));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_request),
		cmocka_unit_test(test_refusal_names_all),
		cmocka_unit_test(test_no_second_request),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_next_address),
		cmocka_unit_test(test_audit_comes_first),
		cmocka_unit_test(test_tls),
		cmocka_unit_test(test_tunnel_to_port_80),
		cmocka_unit_test(test_socks),
		cmocka_unit_test(test_asking),
		cmocka_unit_test(test_asking_nobody),
		cmocka_unit_test(test_hostile_input),
		cmocka_unit_test(test_upgrade_without_consent),
	};

	return cmocka_run_group_tests_name("net-proxy", tests, NULL, NULL);
}
