/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * fuse_device - the connection to the kernel: getting it, and every message on it
 *
 * The session reads and writes through here (fuse_session_custom_io()), which gives what libfuse 3.14 has no words for:
 *  - FUSE_HANDLE_KILLPRIV_V2 in the answer to INIT. The kernel then says with each change whether it takes the setuid and setgid bits and
 *    file capabilities along, and no longer asks for security.capability before every write.
 *  - counts of the messages by operation, for `status` and for measuring.
 * One descriptor serves all threads, not one clone each: a replacement process must be able to take over the very same open file.
 *
 * Format of the messages: include/uapi/linux/fuse.h of the kernel.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct fuse_session;

/*
 * fuse_device_mount() - mounts through fusermount3, which may do it for everybody. @options as of fusermount3 -o.
 * Returns the descriptor, or -1 with @error set (domain MOUNT_ERROR).
 */
int fuse_device_mount(const char *mountpoint, const char *options, GError **error);

/* fuse_device_attach() - the session talks through @fd from now on and owns it. 0 or -errno. */
int fuse_device_attach(struct fuse_session *se, int fd);

/* fuse_device_kills_privileges() - said by the message that this thread serves right now. */
bool fuse_device_kills_privileges(void);

/* Messages received since the start, by operation. */
#define FUSE_DEVICE_OPCODES 64
void fuse_device_counts(uint64_t ret[FUSE_DEVICE_OPCODES]);
const char *fuse_device_opcode_name(unsigned int opcode); /* NULL for one that is not known */
