/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * fd_message - one message and one descriptor over a unix socket (SCM_RIGHTS)
 *
 * For sockets that keep messages apart. Async-signal-safe.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* fd_message_send() - @fd stays the caller's; -1 = none. */
bool fd_message_send(int to, const void *data, size_t size, int fd);
/*
 * fd_message_receive() - bytes, 0 when the other end is closed, or -1 with errno; EMSGSIZE for what was larger than @size.
 * @ret_fd: the caller's, -1 = none came.
 */
ssize_t fd_message_receive(int from, void *data, size_t size, int *ret_fd);
