/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * fuse_device - the connection to the kernel: getting it, and every message on it
 *
 * The session reads and writes through here (fuse_session_custom_io()), which gives what libfuse 3.14 has no words for:
 *  - FUSE_HANDLE_KILLPRIV_V2 in the answer to INIT. The kernel then says with each change whether it takes the setuid and setgid bits and
 *    file capabilities along, and no longer asks for security.capability before every write.
 *  - counts of the messages by operation, for `status` and for measuring;
 *  - the kernel's pending requests once more for a process that takes over (FUSE_NOTIFY_RESEND, Linux 6.9). INIT came to the first process,
 *    so the message is kept and given to libfuse again in each later one; the answer to that goes nowhere.
 * One descriptor serves all threads, not one clone each: a replacement process takes over the very same open file.
 *
 * Format of the messages: include/uapi/linux/fuse.h of the kernel.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct fuse_session;
struct heritage;

/*
 * fuse_device_mount() - mounts through fusermount3, which may do it for everybody. @options as of fusermount3 -o.
 * Returns the descriptor, or -1 with @error set (domain MOUNT_ERROR).
 */
int fuse_device_mount(const char *mountpoint, const char *options, GError **error);

/* fuse_device_attach() - the session talks through @fd from now on and owns it. 0 or -errno. */
int fuse_device_attach(struct fuse_session *se, int fd);

/* fuse_device_inherit() - before the first message: INIT is kept in @h, and answers are noted in it. */
void fuse_device_inherit(struct heritage *h);
/* fuse_device_resume() - in place of INIT, by a process that took over: the session is as the first one was. False when it is not. */
bool fuse_device_resume(struct fuse_session *se);
/* fuse_device_resend() - the kernel sends all requests again that were given out and not answered. 0 or -errno: -ENODEV, unmounted. */
int fuse_device_resend(struct fuse_session *se);
/*
 * fuse_device_refuse() - in place of a session: asks for all pending requests on @fd again and answers those that come within @ms with an error, so
 * that whoever waits for an answer, in a program or in the kernel, waits no longer.
 */
void fuse_device_refuse(int fd, int ms);
/* fuse_device_can_resend() - says the INIT message in @h. Else requests that were given out can't be had again: who waits for them waits for ever. */
bool fuse_device_can_resend(const struct heritage *h);
/* fuse_device_unique() - of the message that this thread serves right now, the same each time that it comes; @ret_again: it did before. */
uint64_t fuse_device_unique(bool *ret_again);

/* fuse_device_kills_privileges() - said by the message that this thread serves right now. */
bool fuse_device_kills_privileges(void);

/* Messages received since the start, by operation. */
#define FUSE_DEVICE_OPCODES 64
void fuse_device_counts(uint64_t ret[FUSE_DEVICE_OPCODES]);
const char *fuse_device_opcode_name(unsigned int opcode); /* NULL for one that is not known */
