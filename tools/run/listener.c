/* SPDX-License-Identifier: MIT */
#include "tools/run/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/run/fd_message.h"

struct listener {
	struct sock_filter *instructions;
	struct sock_fprog program;
	int pair[2]; /* the child tells by it; parent's, child's */
	int fd;	     /* -1 before listener_take() */
};

/* The filter as the kernel takes it: libseccomp's own way to load it is none for a child between fork and exec. */
static int compile(scmp_filter_ctx ctx, const char *const *calls, struct listener *l)
{
	int fd = memfd_create("sbxfs-listener", MFD_CLOEXEC), r = fd < 0 ? -errno : 0;
	struct stat st;

	for (; r == 0 && *calls; calls++) {
		int number = seccomp_syscall_resolve_name(*calls);

		if (number != __NR_SCMP_ERROR)
			r = seccomp_rule_add(ctx, SCMP_ACT_NOTIFY, number, 0);
	}
	if (r == 0)
		r = seccomp_export_bpf(ctx, fd);
	if (r == 0 && fstat(fd, &st) == 0) {
		l->instructions = g_malloc((size_t)st.st_size);
		l->program.len = (unsigned short)((size_t)st.st_size / sizeof(*l->instructions));
		l->program.filter = l->instructions;
		if (pread(fd, l->instructions, (size_t)st.st_size, 0) != st.st_size)
			r = -EIO;
	}
	if (fd >= 0)
		close(fd);
	return r;
}

struct listener *listener_new(const char *const *calls, GError **error)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	struct listener *l = g_new0(struct listener, 1);
	int r;

	l->pair[0] = l->pair[1] = l->fd = -1;
	r = ctx ? compile(ctx, calls, l) : -ENOMEM;
	if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, l->pair) < 0)
		r = -errno;
	if (ctx)
		seccomp_release(ctx);
	if (r == 0)
		return l;
	tool_error(error, EXIT_PLATFORM, NULL, "the filter that watches system calls cannot be made: %s", g_strerror(-r));
	listener_free(l);
	return NULL;
}

bool listener_enter(const struct listener *l)
{
	unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	long fd = -1;
	int error;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &l->program);
		/* Before Linux 5.19 a signal may begin the call anew, which is recorded again then. */
		if (fd < 0 && errno == EINVAL)
			fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &l->program);
	}
	error = fd < 0 ? errno : 0;
	return fd_message_send(l->pair[1], &error, sizeof(error), (int)fd) && fd >= 0;
}

bool listener_take(struct listener *l, GError **error)
{
	int failure = ECHILD;

	close(l->pair[1]);
	l->pair[1] = -1;
	if (fd_message_receive(l->pair[0], &failure, sizeof(failure), &l->fd) < 0)
		failure = errno;
	if (l->fd >= 0)
		return true;
	tool_error(error, EXIT_PLATFORM, NULL,
		   "the commands of the program cannot be watched: %s%s; command_log = no in [run] of your profile runs it without a "
		   "log of its commands",
		   g_strerror(failure), failure == EBUSY ? " (another program, such as a container's runtime, does that already)" : "");
	return false;
}

int listener_fd(const struct listener *l)
{
	return l->fd;
}

bool listener_receive(const struct listener *l, struct listener_call *ret)
{
	memset(ret, 0, sizeof(*ret));
	return ioctl(l->fd, SECCOMP_IOCTL_NOTIF_RECV, &ret->request) == 0;
}

bool listener_is_waiting(const struct listener *l, const struct listener_call *call)
{
	return ioctl(l->fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &call->request.id) == 0;
}

void listener_answer(const struct listener *l, const struct listener_call *call, int error)
{
	struct {
		struct seccomp_notif_resp response;
		char more[256];
	} answer = { .response = { .id = call->request.id, .error = -error, .flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE } };

	if (ioctl(l->fd, SECCOMP_IOCTL_NOTIF_SEND, &answer.response) < 0)
		g_debug("the caller is gone: %s", g_strerror(errno));
}

void listener_free(struct listener *l)
{
	int fds[] = { l->pair[0], l->pair[1], l->fd };

	for (unsigned i = 0; i < G_N_ELEMENTS(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	g_free(l->instructions);
	g_free(l);
}
