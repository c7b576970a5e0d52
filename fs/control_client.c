/* SPDX-License-Identifier: MIT */
/*
 * control_client - calling the operations of control.h: over the socket of a mounted view, or in this process
 *
 * The process that serves a view may die and be replaced (fs/keeper.h). The next call then waits for the new one, and goes there.
 */
#include <gio/gunixsocketaddress.h>
#include <string.h>
#include <unistd.h>

#include "fs/control.h"
#include "fs/control_message.h"
#include "fs/overlay.h"

struct control {
	char *path;
	GSocketConnection *connection;
	GArray *pins; /* int64_t: the epochs that this connection holds */
	bool dead; /* nobody took over */
	struct overlay *overlay; /* without a connection */
};

static GSocketConnection *connect_to(const char *path, GError **error)
{
	g_autoptr(GSocketClient) client = g_socket_client_new();
	g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);

	return g_socket_client_connect(client, G_SOCKET_CONNECTABLE(address), NULL, error);
}

static struct control *control_new(const char *path)
{
	struct control *c = g_new0(struct control, 1);

	c->path = g_strdup(path);
	c->pins = g_array_new(FALSE, FALSE, sizeof(int64_t));
	return c;
}

struct control *control_connect(const char *path, GError **error)
{
	GSocketConnection *connection = connect_to(path, error);
	struct control *c;

	if (!connection)
		return NULL;
	c = control_new(path);
	c->connection = connection;
	return c;
}

struct control *control_local(struct overlay *o)
{
	struct control *c = control_new(NULL);

	c->overlay = o;
	return c;
}

/* A process that takes over */

/* The socket of one that ended by itself is gone; that of one that died refuses until the next one is there. */
#define STEP_US (20 * G_TIME_SPAN_MILLISECOND)
#define STEPS 500       /* 10 s */
#define STEPS_MISSING 5 /* the next one makes it anew */

static GSocketConnection *reach(const char *path, GError **error)
{
	GSocketConnection *connection = NULL;
	int missing = 0;

	for (int i = 0; !connection && i < STEPS && missing < STEPS_MISSING; i++) {
		if (i > 0)
			g_usleep(STEP_US);
		if (error)
			g_clear_error(error);
		connection = connect_to(path, error);
		missing = connection || g_file_test(path, G_FILE_TEST_EXISTS) ? 0 : missing + 1;
	}
	return connection;
}

struct control *control_reach(const char *path, GError **error)
{
	GSocketConnection *connection = reach(path, error);
	struct control *c = connection ? control_new(path) : NULL;

	if (c)
		c->connection = connection;
	return c;
}

/* However the kernel says it. */
static bool is_gone(const GError *error)
{
	return g_error_matches(error, G_IO_ERROR, G_IO_ERROR_BROKEN_PIPE) || g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED) ||
	       g_error_matches(error, CONTROL_ERROR, CONTROL_ERROR_GONE);
}

/* NULL with *ret_gone: nobody answers on this connection any more. @ret_sent: the request may have been carried out all the same. */
static GVariant *call_once(struct control *c, const char *operation, GVariant *arguments, int *ret_fd, bool *ret_sent, bool *ret_gone, GError **error)
{
	GSocket *socket = g_socket_connection_get_socket(c->connection);
	g_autoptr(GVariant) message = NULL, answer = NULL;
	const char *text = "no reason given";
	int code = CONTROL_ERROR_FAILED;
	GError *why = NULL;
	gboolean ok;

	*ret_sent = control_message_send(socket, g_variant_new("(s@a{sv})", operation, arguments), -1, &why);
	if (*ret_sent)
		message = control_message_receive(socket, CONTROL_ANSWER, ret_fd, &why);
	*ret_gone = !message && is_gone(why);
	if (*ret_gone) {
		g_error_free(why);
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_GONE, "the process that serves the view ended");
	} else if (!message) {
		g_propagate_error(error, why);
	}
	if (!message)
		return NULL;
	g_variant_get(message, "(b@a{sv})", &ok, &answer);
	if (ok)
		return g_steal_pointer(&answer);
	g_variant_lookup(answer, "code", "i", &code);
	g_variant_lookup(answer, "message", "&s", &text);
	g_set_error(error, CONTROL_ERROR, code, "%s", text);
	return NULL;
}

/* What is the same done twice. Of the others nobody can say here whether they were done. */
static bool may_repeat(const char *operation)
{
	static const char *const once[] = { "snapshot", "snapshot-delete", "rollback", "gc", NULL };

	return !g_strv_contains(once, operation);
}

static GVariant *pin_arguments(int64_t epoch)
{
	return g_variant_ref_sink(g_variant_new_parsed("{'epoch': <%x>}", epoch));
}

/* A new connection, which holds what the old one did. */
static bool reconnect(struct control *c)
{
	GSocketConnection *connection = c->dead ? NULL : reach(c->path, NULL);

	c->dead = !connection;
	if (c->dead)
		return false;
	g_object_unref(c->connection);
	c->connection = connection;
	for (guint i = 0; i < c->pins->len; i++) {
		g_autoptr(GVariant) arguments = pin_arguments(g_array_index(c->pins, int64_t, i));
		g_autoptr(GVariant) answer = NULL;
		bool sent, gone;
		int fd = -1;

		answer = call_once(c, "pin", arguments, &fd, &sent, &gone, NULL);
	}
	return true;
}

static void note_pin(struct control *c, const char *operation, GVariant *arguments, GVariant *answer)
{
	int64_t epoch;

	if (strcmp(operation, "pin") == 0 && g_variant_lookup(answer, "epoch", "x", &epoch))
		g_array_append_val(c->pins, epoch);
	else if (strcmp(operation, "unpin") == 0 && g_variant_lookup(arguments, "epoch", "x", &epoch))
		for (guint i = c->pins->len; i-- > 0;)
			if (g_array_index(c->pins, int64_t, i) == epoch)
				g_array_remove_index_fast(c->pins, i);
}

#define CALL_TRIES 10

static GVariant *call_remote(struct control *c, const char *operation, GVariant *given, int *ret_fd, GError **error)
{
	g_autoptr(GVariant) arguments = g_variant_ref_sink(given ? given : g_variant_new("a{sv}", NULL));

	for (int i = 0;; i++) {
		GError *why = NULL;
		bool sent, gone;
		GVariant *answer = call_once(c, operation, arguments, ret_fd, &sent, &gone, &why);

		if (answer) {
			note_pin(c, operation, arguments, answer);
			return answer;
		}
		if (!gone || (sent && !may_repeat(operation)) || i == CALL_TRIES || !reconnect(c)) {
			g_propagate_error(error, why);
			return NULL;
		}
		g_error_free(why);
	}
}

static GVariant *call_any(struct control *c, const char *operation, GVariant *arguments, int *ret_fd, GError **error)
{
	*ret_fd = -1;
	return c->overlay ? control_handle(c->overlay, operation, arguments, NULL, ret_fd, error) :
			    call_remote(c, operation, arguments, ret_fd, error);
}

GVariant *control_call(struct control *c, const char *operation, GVariant *arguments, GError **error)
{
	int fd;
	GVariant *answer = call_any(c, operation, arguments, &fd, error);

	if (fd >= 0)
		close(fd);
	return answer;
}

int control_root_fd(struct control *c, GError **error)
{
	int fd;
	g_autoptr(GVariant) answer = call_any(c, "root", NULL, &fd, error);

	if (answer && fd < 0)
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_FAILED, "no descriptor of the workspace came back");
	return answer ? fd : -1;
}

static void add_record(GVariantBuilder *records, const GByteArray *encoded)
{
	g_variant_builder_add_value(records, g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, encoded->data, encoded->len, 1));
}

bool control_records(struct control *c, const GPtrArray *encoded, const struct audit_record *last, GError **error)
{
	g_autoptr(GByteArray) last_encoded = g_byte_array_new();
	g_autoptr(GVariant) answer = NULL;
	GVariantBuilder records;
	GVariantDict d;

	g_variant_builder_init(&records, G_VARIANT_TYPE("aay"));
	for (guint i = 0; encoded && i < encoded->len; i++)
		add_record(&records, encoded->pdata[i]);
	if (last) {
		audit_record_encode(last, last_encoded);
		add_record(&records, last_encoded);
	}
	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert_value(&d, "records", g_variant_builder_end(&records));
	answer = control_call(c, "record", g_variant_dict_end(&d), error);
	return answer != NULL;
}

bool control_record(struct control *c, const struct audit_record *r, GError **error)
{
	return control_records(c, NULL, r, error);
}

void control_close(struct control *c)
{
	if (!c)
		return;
	g_clear_object(&c->connection);
	g_array_unref(c->pins);
	g_free(c->path);
	g_free(c);
}
