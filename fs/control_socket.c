/* SPDX-License-Identifier: MIT */
/*
 * control_socket - the operations of control.h, answered on a unix socket
 */
#include <errno.h>
#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/control.h"
#include "fs/control_message.h"
#include "fs/overlay.h"

/* A run has two for as long as it lives. */
#define CONNECTIONS 256

/*
 * Each connection has a thread of the service's, which may outlive control_stop(): the server lives until the service does (@refs), and
 * the overlay is out of reach once it was stopped.
 */
struct control_server {
	gatomicrefcount refs;
	GRWLock lock; /* read: an operation runs; write: taking the overlay away */
	struct overlay *overlay; /* NULL: stopped. Protected by @lock */
	char *path;
	GMainContext *context;
	GMainLoop *loop;
	GSocketService *service;
	GThread *thread;
};

static void control_server_unref(struct control_server *s)
{
	if (!g_atomic_ref_count_dec(&s->refs))
		return;
	g_rw_lock_clear(&s->lock);
	g_free(s->path);
	g_free(s);
}

static void control_server_closure_gone(gpointer server, GClosure *closure)
{
	(void)closure;
	control_server_unref(server);
}

static GVariant *server_handle(struct control_server *s, const char *operation, GVariant *arguments, const struct control_caller *caller,
			       int *ret_fd, GError **error)
{
	GVariant *answer = NULL;

	*ret_fd = -1;
	g_rw_lock_reader_lock(&s->lock);
	if (s->overlay)
		answer = control_handle(s->overlay, operation, arguments, caller, ret_fd, error);
	else
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_GONE, "the view is being unmounted; try again in a moment");
	g_rw_lock_reader_unlock(&s->lock);
	return answer;
}

static bool same_namespace(pid_t pid, const char *kind, int *ret_errno)
{
	g_autofree char *theirs = g_strdup_printf("/proc/%d/ns/%s", (int)pid, kind), *ours = g_strdup_printf("/proc/self/ns/%s", kind);
	struct stat a, b;

	*ret_errno = stat(theirs, &a) < 0 ? errno : 0;
	return !*ret_errno && stat(ours, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/*
 * A confined program has namespaces of its own, and the number of its user. What can't be told is refused, but for a root that an
 * ordinary user may not look at: nobody who is confined by that user is root outside.
 */
static bool peer_is_outside(pid_t pid, uid_t uid)
{
	int e;

	if (pid > 0 && same_namespace(pid, "user", &e))
		return same_namespace(pid, "pid", &e);
	return pid > 0 && e == EACCES && uid == 0 && geteuid() != 0;
}

/* The owner, or root; not from inside a confinement. What this thread does from now on is recorded as the peer's. */
static bool peer_is_owner(GSocket *socket)
{
	g_autoptr(GCredentials) peer = g_socket_get_credentials(socket, NULL);
	uid_t uid = peer ? g_credentials_get_unix_user(peer, NULL) : (uid_t)-1;
	pid_t pid = peer ? g_credentials_get_unix_pid(peer, NULL) : 0;

	if (peer)
		overlay_caller(pid, uid);
	return (uid == geteuid() || uid == 0) && peer_is_outside(pid, uid);
}

static bool peer_hung_up(void *socket)
{
	return g_socket_condition_check(socket, G_IO_HUP | G_IO_ERR) != 0;
}

/* Answers one request. False at the end of the connection. */
static bool serve_one(struct control_server *s, GSocket *socket, GArray *pins)
{
	g_autoptr(GVariant) request = control_message_receive(socket, CONTROL_REQUEST, NULL, NULL);
	g_autoptr(GVariant) arguments = NULL, answer = NULL;
	g_autoptr(GError) error = NULL;
	const char *operation;
	GVariantDict failure;
	int64_t epoch;
	int fd = -1;
	bool ok;

	if (!request)
		return false;
	g_variant_get(request, "(&s@a{sv})", &operation, &arguments);
	answer = server_handle(s, operation, arguments, &(struct control_caller){ peer_hung_up, socket }, &fd, &error);
	if (answer && strcmp(operation, "pin") == 0 && g_variant_lookup(answer, "epoch", "x", &epoch))
		g_array_append_val(pins, epoch);
	if (answer) {
		ok = control_message_send(socket, g_variant_new("(b@a{sv})", TRUE, answer), fd, NULL);
	} else {
		g_variant_dict_init(&failure, NULL);
		g_variant_dict_insert(&failure, "code", "i", error->code);
		g_variant_dict_insert(&failure, "message", "s", error->message);
		ok = control_message_send(socket, g_variant_new("(b@a{sv})", FALSE, g_variant_dict_end(&failure)), -1, NULL);
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

static gboolean serve_connection(GThreadedSocketService *service, GSocketConnection *connection, GObject *source, gpointer user)
{
	g_autoptr(GArray) pins = g_array_new(FALSE, FALSE, sizeof(int64_t));
	GSocket *socket = g_socket_connection_get_socket(connection);
	struct control_server *s = user;

	(void)service;
	(void)source;
	if (!peer_is_owner(socket))
		return TRUE;
	while (serve_one(s, socket, pins))
		;
	/* What a tool pinned and did not live to unpin. */
	for (guint i = 0; i < pins->len; i++) {
		g_autoptr(GVariant) arguments = NULL, answer = NULL;
		GVariantDict d;
		int fd;

		g_variant_dict_init(&d, NULL);
		g_variant_dict_insert(&d, "epoch", "x", g_array_index(pins, int64_t, i));
		arguments = g_variant_ref_sink(g_variant_dict_end(&d));
		answer = server_handle(s, "unpin", arguments, NULL, &fd, NULL);
	}
	return TRUE;
}

static gpointer server_main(gpointer data)
{
	struct control_server *s = data;

	g_main_context_push_thread_default(s->context);
	g_main_loop_run(s->loop);
	g_main_context_pop_thread_default(s->context);
	return NULL;
}

struct control_server *control_serve(struct overlay *o, const char *path, GError **error)
{
	g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
	struct control_server *s = g_new0(struct control_server, 1);
	mode_t mask;
	bool ok;

	g_atomic_ref_count_init(&s->refs);
	g_rw_lock_init(&s->lock);
	s->overlay = o;
	s->path = g_strdup(path);
	s->context = g_main_context_new();
	s->loop = g_main_loop_new(s->context, FALSE);
	g_main_context_push_thread_default(s->context);
	/* A connection has a thread for as long as it stays; those that wait for a human are not missed by the others. */
	s->service = g_threaded_socket_service_new(CONNECTIONS + QUESTION_WAITING_MAX);
	/* GLib connects without waiting: what finds no room in the queue of the socket fails. */
	g_socket_listener_set_backlog(G_SOCKET_LISTENER(s->service), CONNECTIONS + QUESTION_WAITING_MAX);
	g_unlink(path); /* the store's lock says that nobody else serves here */
	mask = umask(0177);
	ok = g_socket_listener_add_address(G_SOCKET_LISTENER(s->service), address, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, NULL,
					   NULL, error);
	umask(mask);
	g_main_context_pop_thread_default(s->context);
	if (!ok) {
		g_prefix_error(error, "control socket %s: ", path);
		control_stop(s);
		return NULL;
	}
	g_atomic_ref_count_inc(&s->refs);
	g_signal_connect_data(s->service, "run", G_CALLBACK(serve_connection), s, control_server_closure_gone, 0);
	g_socket_service_start(s->service);
	s->thread = g_thread_new("control", server_main, s);
	return s;
}

void control_stop(struct control_server *s)
{
	if (!s)
		return;
	if (s->thread) {
		g_unlink(s->path);
		g_main_loop_quit(s->loop);
		g_thread_join(s->thread);
	}
	g_socket_listener_close(G_SOCKET_LISTENER(s->service));
	/* Waits for the operation that runs, and is the last: a connection that is still open finds nothing to ask. */
	g_rw_lock_writer_lock(&s->lock);
	s->overlay = NULL;
	g_rw_lock_writer_unlock(&s->lock);
	g_object_unref(s->service);
	g_main_loop_unref(s->loop);
	g_main_context_unref(s->context);
	control_server_unref(s);
}
