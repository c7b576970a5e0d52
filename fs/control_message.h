/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * control_message - one message of control.h on a socket: a 32-bit length, then that many bytes. A descriptor rides on the length.
 */

#include <gio/gio.h>
#include <stdbool.h>

#define CONTROL_REQUEST G_VARIANT_TYPE("(sa{sv})")
#define CONTROL_ANSWER G_VARIANT_TYPE("(ba{sv})")

/* control_message_send() - @message may be floating. @fd: -1, or a descriptor that stays the caller's. */
bool control_message_send(GSocket *socket, GVariant *message, int fd, GError **error);
/* control_message_receive() - waits. @ret_fd: NULL, or where a descriptor that came with it is put; -1 before. */
GVariant *control_message_receive(GSocket *socket, const GVariantType *type, int *ret_fd, GError **error);
