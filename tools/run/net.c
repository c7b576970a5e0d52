/* SPDX-License-Identifier: MIT */
#include "tools/run/net.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/control.h"
#include "rules/network.h"
#include "rules/policy.h"
#include "snapshot/diff.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/run/net_ask.h"
#include "tools/run/net_link.h"
#include "tools/run/net_listener.h"
#include "tools/run/net_peer.h"
#include "tools/run/net_process.h"

#define PATIENCE_MS 3000 /* for the last records */
#define REFUSED_SHOWN 10

#define STRING(x) STRING_OF(x)
#define STRING_OF(x) #x
#define PROXY "http://127.0.0.1:" STRING(NET_PORT)
#define LOCAL "localhost,127.0.0.1,::1"
#define JAVA                                                                                                                       \
	"-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=" STRING(NET_PORT) " -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=" STRING(  \
		NET_PORT)

struct net {
	gint refs;
	pid_t process; /* of the proxy; 0 = none */
	int link;
	struct network *rules;
	struct control *control; /* the link thread's own */
	struct net_asker *asker;
	struct net_link_handlers handlers;
	GThread *thread; /* serves the link */
	pid_t first;
	GMutex lock; /* protects what follows */
	unsigned requests, refused, unrecorded;
	GHashTable *shown; /* "subject" -> rule, of what was refused */
};

bool net_mode(const char *option, const struct policy *policy, bool *ret_on, GError **error)
{
	struct network *rules;

	if (option && !g_str_equal(option, "off") && !g_str_equal(option, "allowlist")) {
		tool_error(error, EXIT_USAGE, NULL, "--net %s: it is off or allowlist", option);
		return false;
	}
	*ret_on = option && g_str_equal(option, "allowlist");
	if (option || !policy)
		return true;
	rules = network_new(policy);
	*ret_on = network_lets_through(rules);
	network_free(rules);
	return true;
}

/* What the proxy asks */

static void who(void *user, unsigned port, struct net_peer *ret)
{
	struct net *n = user;

	net_peer_find(n->first, port, ret);
}

static bool ask(void *user, const char *subject, const char *operation, const struct net_peer *peer, char **ret_by)
{
	struct net *n = user;

	return net_asker_ask(n->asker, subject, operation, peer, ret_by);
}

static bool record(void *user, const struct net_record *r)
{
	struct net *n = user;
	const struct audit_record a = {
		.kind = AUDIT_NETWORK,
		.operation = r->operation,
		.pid = (int32_t)r->peer.pid,
		.uid = getuid(),
		.program = *r->peer.program ? r->peer.program : NULL,
		.path = r->subject,
		.result = r->result,
		.verdict = r->verdict,
		.rule = r->rule,
		.detail = r->detail,
	};
	g_autoptr(GError) failure = NULL;
	bool ok = control_record(n->control, &a, &failure);

	g_mutex_lock(&n->lock);
	n->requests += g_str_equal(r->operation, "request");
	n->unrecorded += !ok;
	if (r->result == EACCES) {
		n->refused++;
		if (g_hash_table_size(n->shown) < REFUSED_SHOWN)
			g_hash_table_insert(n->shown, g_strdup(r->subject), g_strdup(r->rule ? r->rule : "?"));
	}
	g_mutex_unlock(&n->lock);
	return ok;
}

static void *hold(void *user)
{
	struct net *n = user;

	g_atomic_int_inc(&n->refs);
	return n;
}

static void drop(void *user)
{
	struct net *n = user;

	if (!g_atomic_int_dec_and_test(&n->refs))
		return;
	control_close(n->control);
	net_asker_free(n->asker);
	network_free(n->rules);
	g_hash_table_unref(n->shown);
	g_mutex_clear(&n->lock);
	g_free(n);
}

/* Life */

struct net *net_start(const struct policy *policy, const char *control_socket, GError **error)
{
	struct net *n = g_new0(struct net, 1);

	n->refs = 1;
	n->link = -1;
	n->rules = network_new(policy);
	n->asker = net_asker_new(control_socket);
	n->handlers = (struct net_link_handlers){ .who = who, .ask = ask, .record = record, .hold = hold, .drop = drop, .user = n };
	n->shown = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	g_mutex_init(&n->lock);
	if (!network_lets_through(n->rules))
		output_note("the network lets nothing through: no rule of profile %s does (add \"allow = DOMAIN\" to [network %s])",
			    network_profile(n->rules), network_profile(n->rules));
	if (net_process_start(n->rules, &n->process, &n->link, error))
		n->control = control_reach(control_socket, error);
	if (n->control)
		return n;
	net_free(n);
	return NULL;
}

static void *serve(void *data)
{
	struct net *n = data;

	net_link_serve(n->link, &n->handlers);
	return NULL;
}

bool net_open(struct net *n, pid_t first, GError **error)
{
	int listener = net_listener_new(first, NET_PORT, error);
	bool ok;

	if (listener < 0)
		return false;
	n->first = first;
	ok = net_process_serve(n->link, listener, error);
	if (ok)
		n->thread = g_thread_new("net-link", serve, n);
	close(listener);
	return ok;
}

/* The proxy records what is still open; one that does not come to an end is ended. */
static void end_process(struct net *n)
{
	struct pollfd gone = { .fd = n->process ? (int)syscall(SYS_pidfd_open, n->process, 0) : -1, .events = POLLIN };

	if (!n->process)
		return;
	if (n->thread && gone.fd >= 0 && poll(&gone, 1, 0) == 1)
		output_note("network: the proxy ended before the program did, which then had no network");
	shutdown(n->link, SHUT_WR);
	if (gone.fd < 0 || poll(&gone, 1, n->thread ? PATIENCE_MS : 0) != 1)
		kill(n->process, SIGKILL);
	if (gone.fd >= 0)
		close(gone.fd);
	waitpid(n->process, NULL, 0);
	n->process = 0;
}

/* On a terminal, perhaps: quoted like paths. */
static void say_refused(const struct net *n)
{
	GHashTableIter iter;
	void *subject, *rule;

	g_hash_table_iter_init(&iter, n->shown);
	while (g_hash_table_iter_next(&iter, &subject, &rule)) {
		g_autofree char *where = diff_quote_path(subject);
		g_autofree char *why = diff_quote_path(rule);

		output_note("network: refused %s by %s", where, why);
	}
	if (g_hash_table_size(n->shown))
		output_note("network: to let one through, add \"allow = HOST\" (or HOST:PORT) to [network %s]",
			    network_profile(n->rules));
}

void net_finish(struct net *n)
{
	end_process(n);
	if (n->thread)
		g_thread_join(g_steal_pointer(&n->thread));
	if (n->requests)
		output_note("network: requests: %u, refused: %u (sbxfs log --op request)", n->requests, n->refused);
	if (n->unrecorded)
		output_note("network: %u records are not in the audit", n->unrecorded);
	say_refused(n);
}

void net_free(struct net *n)
{
	end_process(n);
	if (n->thread)
		g_thread_join(n->thread);
	if (n->link >= 0)
		close(n->link);
	n->link = -1;
	drop(n);
}

/* The environment */

/*
 * Not socks5h:// for all_proxy: Python's httpx, which clients of language models use, fails at its sight when the module for it
 * is missing. Not JAVA_TOOL_OPTIONS: each JVM prints it.
 */
char **net_environment(char **environment)
{
	static const char *const variables[][2] = {
		{ "http_proxy", PROXY },	 { "https_proxy", PROXY },
		{ "all_proxy", PROXY },		 { "no_proxy", LOCAL },
		{ "HTTP_PROXY", PROXY },	 { "HTTPS_PROXY", PROXY },
		{ "ALL_PROXY", PROXY },		 { "NO_PROXY", LOCAL },
		{ "npm_config_proxy", PROXY },	 { "npm_config_https_proxy", PROXY },
		{ "npm_config_noproxy", LOCAL }, { "YARN_HTTP_PROXY", PROXY },
		{ "YARN_HTTPS_PROXY", PROXY },	 { "CARGO_HTTP_PROXY", PROXY },
		{ "PIP_PROXY", PROXY },		 { "NODE_USE_ENV_PROXY", "1" },
		{ "MAVEN_OPTS", JAVA },		 { "GRADLE_OPTS", JAVA },
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(variables); i++)
		environment = g_environ_setenv(environment, variables[i][0], variables[i][1], TRUE);
	return environment;
}
