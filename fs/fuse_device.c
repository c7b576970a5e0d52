/* SPDX-License-Identifier: MIT */
#include "fs/fuse_device.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

#include "fs/heritage.h"
#include "fs/mount.h"

/* Of protocol 7.40, newer than the headers we build with. */
#define NOTIFY_RESEND 7
#define HAS_RESEND2 (1u << (39 - 32)) /* in flags2 */
#define UNIQUE_RESEND (UINT64_C(1) << 63)

static __thread bool kills_privileges;
static __thread uint64_t unique;
static struct heritage *heritage; /* NULL: nobody comes after this process */
static uint64_t counts[FUSE_DEVICE_OPCODES];
static uint64_t init_unique; /* of the INIT that waits for its answer */
static uint32_t more_flags, more_flags2; /* of that answer */
static bool resuming;

/* Mounting */

static int receive_fd(int sock)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n;
	int fd;

	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

int fuse_device_mount(const char *mountpoint, const char *options, GError **error)
{
	const char *argv[] = { "fusermount3", "-o", options, "--", mountpoint, NULL };
	g_autofree char *number = NULL, *said = NULL;
	g_auto(GStrv) env = g_get_environ();
	g_autoptr(GError) spawn_error = NULL;
	int sock[2], fd = -1, status = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock) < 0) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "socketpair: %s", g_strerror(errno));
		return -1;
	}
	/* fusermount3 mounts, sends the descriptor of /dev/fuse over the socket whose number _FUSE_COMMFD names, and ends. */
	number = g_strdup_printf("%d", sock[0]);
	env = g_environ_setenv(env, "_FUSE_COMMFD", number, TRUE);
	if (!g_spawn_sync(NULL, (char **)argv, env, G_SPAWN_SEARCH_PATH | G_SPAWN_LEAVE_DESCRIPTORS_OPEN, NULL, NULL, NULL, &said, &status,
			  &spawn_error)) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_PLATFORM, "fusermount3 does not run (%s): install the package fuse3",
			    spawn_error->message);
	} else if (!g_spawn_check_wait_status(status, NULL)) {
		bool option = strstr(said, "unknown option") || strstr(said, "option allow_other only allowed");

		g_strchomp(said);
		g_set_error(error, MOUNT_ERROR, option ? MOUNT_ERROR_OPTION : MOUNT_ERROR_FAILED, "cannot mount on %s: %s", mountpoint, *said ? said : "fusermount3 failed");
	} else {
		fd = receive_fd(sock[1]);
		if (fd < 0)
			g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "cannot mount on %s: fusermount3 sent no descriptor", mountpoint);
	}
	close(sock[0]);
	close(sock[1]);
	return fd;
}

/* For the process after this one */

void fuse_device_inherit(struct heritage *h)
{
	heritage = h;
}

static void keep_init(const char *buf, size_t size)
{
	if (!heritage || size > sizeof(heritage->init))
		return;
	memcpy(heritage->init, buf, size);
	heritage->init_size = (uint32_t)size;
}

bool fuse_device_can_resend(const struct heritage *h)
{
	struct fuse_init_in in;

	if (h->init_size < sizeof(struct fuse_in_header) + sizeof(in))
		return false;
	memcpy(&in, h->init + sizeof(struct fuse_in_header), sizeof(in));
	return (in.flags & FUSE_INIT_EXT) && (in.flags2 & HAS_RESEND2);
}

bool fuse_device_resume(struct fuse_session *se)
{
	g_autofree char *message = g_memdup2(heritage->init, heritage->init_size);
	struct fuse_buf buf = { .size = heritage->init_size, .mem = message };

	resuming = true;
	fuse_session_process_buf(se, &buf);
	resuming = false;
	return !fuse_session_exited(se);
}

static int resend(int fd)
{
	struct fuse_out_header h = { .len = sizeof(h), .error = NOTIFY_RESEND };

	return write(fd, &h, sizeof(h)) < 0 ? -errno : 0;
}

int fuse_device_resend(struct fuse_session *se)
{
	return resend(fuse_session_fd(se));
}

/* What no write of ours is larger than, with its header. */
#define REFUSE_BUFFER (2 * 1024 * 1024)

void fuse_device_refuse(int fd, int ms)
{
	g_autofree char *buf = g_malloc(REFUSE_BUFFER);
	const struct fuse_in_header *in = (const void *)buf;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (resend(fd) < 0)
		return;
	while (poll(&p, 1, ms) == 1 && read(fd, buf, REFUSE_BUFFER) >= (ssize_t)sizeof(*in)) {
		struct fuse_out_header out = { .len = sizeof(out), .error = -ECONNABORTED, .unique = in->unique };
		bool waits = in->opcode != FUSE_FORGET && in->opcode != FUSE_BATCH_FORGET && in->opcode != FUSE_INTERRUPT;

		if (waits && write(fd, &out, sizeof(out)) < 0)
			g_debug("nobody waits for that answer");
	}
}

uint64_t fuse_device_unique(bool *ret_again)
{
	*ret_again = unique & UNIQUE_RESEND;
	return unique & ~UNIQUE_RESEND;
}

/* Messages */

static void note_init(const char *buf, size_t size)
{
	const struct fuse_in_header *h = (const void *)buf;
	struct fuse_init_in in;

	keep_init(buf, size);
	if (size < sizeof(*h) + sizeof(in))
		return;
	memcpy(&in, buf + sizeof(*h), sizeof(in));
	more_flags = in.flags & FUSE_HANDLE_KILLPRIV_V2;
	if (heritage && fuse_device_can_resend(heritage)) {
		more_flags |= FUSE_INIT_EXT;
		more_flags2 = HAS_RESEND2;
	}
	init_unique = h->unique;
}

static void note_request(const char *buf, size_t size)
{
	const struct fuse_in_header *h = (const void *)buf;
	const char *body = buf + sizeof(*h);

	kills_privileges = false;
	unique = 0;
	if (size < sizeof(*h))
		return;
	unique = h->unique;
	if (h->opcode < FUSE_DEVICE_OPCODES)
		__atomic_add_fetch(&counts[h->opcode], 1, __ATOMIC_RELAXED);
	if (h->opcode == FUSE_SETATTR && size >= sizeof(*h) + sizeof(struct fuse_setattr_in))
		kills_privileges = ((const struct fuse_setattr_in *)body)->valid & FATTR_KILL_SUIDGID;
	else if (h->opcode == FUSE_WRITE && size >= sizeof(*h) + sizeof(struct fuse_write_in))
		kills_privileges = ((const struct fuse_write_in *)body)->write_flags & FUSE_WRITE_KILL_SUIDGID;
	else if (h->opcode == FUSE_INIT)
		note_init(buf, size);
}

#define PAGE 4096

/*
 * The kernel copies a request into @buf page by page. One that is not in memory yet it can't get for a process that was just killed, and then the
 * request ends with EIO instead of waiting for the next process (Linux 6.18; with writes of 100 kB once in some hundred kills). So the pages
 * of each thread's buffer are there before it reads.
 */
static void touch_pages(void *buf, size_t size)
{
	static __thread const void *touched;
	volatile char *p = buf;
	size_t before = (uintptr_t)buf % PAGE;

	if (touched == buf || !heritage)
		return;
	touched = buf;
	if (madvise((char *)buf - before, size + before, MADV_POPULATE_WRITE) == 0)
		return;
	for (size_t at = 0; at < size; at += PAGE)
		p[at] = 0;
	p[size - 1] = 0;
}

static ssize_t device_read(int fd, void *buf, size_t size, void *user)
{
	ssize_t n;

	(void)user;
	touch_pages(buf, size);
	n = read(fd, buf, size);
	if (n > 0)
		note_request(buf, n);
	return n;
}

/* The answer to INIT, with what libfuse doesn't know. */
static ssize_t write_init(int fd, struct iovec *iov)
{
	struct fuse_init_out out;
	struct iovec patched[2] = { iov[0], { &out, sizeof(out) } };

	memcpy(&out, iov[1].iov_base, sizeof(out));
	out.flags |= more_flags;
	out.flags2 |= more_flags2;
	init_unique = 0;
	return writev(fd, patched, 2);
}

static ssize_t device_writev(int fd, struct iovec *iov, int count, void *user)
{
	const struct fuse_out_header *h = iov[0].iov_base;
	ssize_t n;

	(void)user;
	if (resuming)
		return h->len;
	if (init_unique && h->unique == init_unique && h->error == 0 && count == 2 && iov[1].iov_len == sizeof(struct fuse_init_out))
		return write_init(fd, iov);
	n = writev(fd, iov, count);
	if (heritage && h->unique) {
		__atomic_add_fetch(&heritage->answers, 1, __ATOMIC_RELAXED);
		ledger_answered(&heritage->ledger, h->unique & ~UNIQUE_RESEND, h->unique & UNIQUE_RESEND);
	}
	return n;
}

int fuse_device_attach(struct fuse_session *se, int fd)
{
	static const struct fuse_custom_io io = { .read = device_read, .writev = device_writev };

	return fuse_session_custom_io(se, &io, fd) < 0 ? -EINVAL : 0;
}

bool fuse_device_kills_privileges(void)
{
	return kills_privileges;
}

void fuse_device_counts(uint64_t ret[FUSE_DEVICE_OPCODES])
{
	for (int i = 0; i < FUSE_DEVICE_OPCODES; i++)
		ret[i] = __atomic_load_n(&counts[i], __ATOMIC_RELAXED);
}

const char *fuse_device_opcode_name(unsigned int opcode)
{
	static const char *const names[FUSE_DEVICE_OPCODES] = {
		[FUSE_LOOKUP] = "lookup", [FUSE_FORGET] = "forget", [FUSE_GETATTR] = "getattr", [FUSE_SETATTR] = "setattr",
		[FUSE_READLINK] = "readlink", [FUSE_SYMLINK] = "symlink", [FUSE_MKNOD] = "mknod", [FUSE_MKDIR] = "mkdir",
		[FUSE_UNLINK] = "unlink", [FUSE_RMDIR] = "rmdir", [FUSE_RENAME] = "rename", [FUSE_LINK] = "link", [FUSE_OPEN] = "open",
		[FUSE_READ] = "read", [FUSE_WRITE] = "write", [FUSE_STATFS] = "statfs", [FUSE_RELEASE] = "release",
		[FUSE_FSYNC] = "fsync", [FUSE_SETXATTR] = "setxattr", [FUSE_GETXATTR] = "getxattr", [FUSE_LISTXATTR] = "listxattr",
		[FUSE_REMOVEXATTR] = "removexattr", [FUSE_FLUSH] = "flush", [FUSE_INIT] = "init", [FUSE_OPENDIR] = "opendir",
		[FUSE_READDIR] = "readdir", [FUSE_FSYNCDIR] = "fsyncdir", [FUSE_ACCESS] = "access", [FUSE_CREATE] = "create",
		[FUSE_INTERRUPT] = "interrupt", [FUSE_DESTROY] = "destroy", [FUSE_IOCTL] = "ioctl",
		[FUSE_BATCH_FORGET] = "batch_forget", [FUSE_FALLOCATE] = "fallocate", [FUSE_READDIRPLUS] = "readdirplus",
		[FUSE_RENAME2] = "rename2", [FUSE_LSEEK] = "lseek", [FUSE_COPY_FILE_RANGE] = "copy_file_range",
		[FUSE_SYNCFS] = "syncfs",
	};

	return opcode < FUSE_DEVICE_OPCODES ? names[opcode] : NULL;
}
