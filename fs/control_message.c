/* SPDX-License-Identifier: MIT */
#include "fs/control_message.h"

#include <gio/gunixfdmessage.h>
#include <unistd.h>

#include "fs/control.h"

#define MESSAGE_MAX (64u * 1024 * 1024)

static bool socket_send_all(GSocket *socket, const void *data, size_t size, int fd, GError **error)
{
	g_autoptr(GSocketControlMessage) rights = NULL;
	const char *p = data;

	if (fd >= 0) {
		rights = g_unix_fd_message_new();
		if (!g_unix_fd_message_append_fd(G_UNIX_FD_MESSAGE(rights), fd, error))
			return false;
	}
	while (size > 0) {
		GOutputVector v = { p, size };
		gssize n = g_socket_send_message(socket, NULL, &v, 1, rights ? &rights : NULL, rights ? 1 : 0, 0, NULL, error);

		if (n < 0)
			return false;
		g_clear_object(&rights);
		p += n;
		size -= n;
	}
	return true;
}

static bool socket_receive_all(GSocket *socket, void *data, size_t size, int *ret_fd, GError **error)
{
	char *p = data;

	while (size > 0) {
		GInputVector v = { p, size };
		GSocketControlMessage **messages = NULL;
		int count = 0;
		gssize n = g_socket_receive_message(socket, NULL, &v, 1, &messages, &count, NULL, NULL, error);

		for (int i = 0; i < count; i++) {
			if (ret_fd && *ret_fd < 0 && G_IS_UNIX_FD_MESSAGE(messages[i])) {
				int fds = 0;
				g_autofree int *list = g_unix_fd_message_steal_fds(G_UNIX_FD_MESSAGE(messages[i]), &fds);

				for (int k = 1; k < fds; k++)
					close(list[k]);
				*ret_fd = fds > 0 ? list[0] : -1;
			}
			g_object_unref(messages[i]);
		}
		g_free(messages);
		if (n < 0)
			return false;
		if (n == 0) {
			g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_GONE, "the process that serves the view ended");
			return false;
		}
		p += n;
		size -= n;
	}
	return true;
}

bool control_message_send(GSocket *socket, GVariant *message, int fd, GError **error)
{
	g_autoptr(GVariant) v = g_variant_ref_sink(message);
	guint32 size = g_variant_get_size(v);

	return socket_send_all(socket, &size, sizeof(size), fd, error) &&
	       (size == 0 || socket_send_all(socket, g_variant_get_data(v), size, -1, error));
}

GVariant *control_message_receive(GSocket *socket, const GVariantType *type, int *ret_fd, GError **error)
{
	g_autoptr(GVariant) v = NULL;
	guint32 size;
	char *data;

	if (!socket_receive_all(socket, &size, sizeof(size), ret_fd, error))
		return NULL;
	if (size > MESSAGE_MAX) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_FAILED, "a message of %u bytes is too long", size);
		return NULL;
	}
	data = g_malloc(size + 1);
	if (!socket_receive_all(socket, data, size, ret_fd, error)) {
		g_free(data);
		return NULL;
	}
	v = g_variant_ref_sink(g_variant_new_from_data(type, data, size, FALSE, g_free, data));
	return g_variant_get_normal_form(v);
}
