/* SPDX-License-Identifier: MIT */
#include "tools/run/syscalls.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/exit.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

#define LOW_32_BITS 0xffffffffu
#define SOCKET_TYPE 0xfu /* without SOCK_CLOEXEC and SOCK_NONBLOCK */

/* By name: a libseccomp that does not know a call yet is no reason to leave out the others. */
static const char *const refused[] = {
	/* Mounts and roots */
	"mount",
	"umount",
	"umount2",
	"pivot_root",
	"chroot",
	"move_mount",
	"open_tree",
	"open_tree_attr",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"mount_setattr",
	"setns",
	"swapon",
	"swapoff",
	"quotactl",
	"quotactl_fd",
	"open_by_handle_at",
	"fanotify_init",
	/* The kernel itself */
	"bpf",
	"perf_event_open",
	"kexec_load",
	"kexec_file_load",
	"init_module",
	"finit_module",
	"delete_module",
	"reboot",
	"syslog",
	"acct",
	"iopl",
	"ioperm",
	"uselib",
	"lookup_dcookie",
	"nfsservctl",
	"_sysctl",
	"vhangup",
	"settimeofday",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"stime",
	"sethostname",
	"setdomainname",
	/* Keys are those of the user, not of a namespace. */
	"keyctl",
	"add_key",
	"request_key",
	/* Much kernel for little use */
	"userfaultfd",
	"vm86",
	"vm86old",
};

/* Programs that find these missing do without. */
static const char *const absent[] = { "io_uring_setup", "io_uring_enter", "io_uring_register" };

static const int namespaces[] = {
	CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,    CLONE_NEWNET,
	CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_NEWTIME,
};

static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

static int refuse(scmp_filter_ctx ctx, const char *name, int error, const struct scmp_arg_cmp *arguments,
		  unsigned count)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number == __NR_SCMP_ERROR)
		return 0;
	return seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(error), number, count, arguments);
}

static int refuse_names(scmp_filter_ctx ctx, const char *const *names, size_t count, int error)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		r = refuse(ctx, names[i], error, NULL, 0);
	return r;
}

/*
 * The flags of clone3() are in memory, where no filter sees them; without it, everything falls back to clone().
 * A value of CLONE_NEWTIME is a part of the exit signal in clone(), where it means nothing else.
 */
static int refuse_namespaces(scmp_filter_ctx ctx)
{
	int r = refuse(ctx, "clone3", ENOSYS, NULL, 0);

	for (size_t i = 0; i < G_N_ELEMENTS(namespaces) && r == 0; i++) {
		unsigned flag = namespaces[i];
#if defined(__s390x__) || defined(__s390__) || defined(__CRIS__)
		const struct scmp_arg_cmp clone_flags = SCMP_A1(SCMP_CMP_MASKED_EQ, flag, flag);
#else
		const struct scmp_arg_cmp clone_flags = SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag);
#endif
		const struct scmp_arg_cmp unshare_flags = SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag);

		r = refuse(ctx, "unshare", EPERM, &unshare_flags, 1);
		if (r == 0 && flag != CLONE_NEWTIME)
			r = refuse(ctx, "clone", EPERM, &clone_flags, 1);
	}
	return r;
}

/*
 * Only what a program needs to speak locally and to the network. Some of the other families, vsock for one, do not
 * know of network namespaces. Garbage in the upper half of an argument, which the kernel does not look at, is refused
 * too.
 */
static int refuse_sockets(scmp_filter_ctx ctx)
{
	int r = 0;

	for (int family = 0; family <= AF_NETLINK && r == 0; family++) {
		const struct scmp_arg_cmp is_family = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)family);
		bool allowed = false;

		for (size_t i = 0; i < G_N_ELEMENTS(families); i++)
			allowed = allowed || families[i] == family;
		if (!allowed)
			r = refuse(ctx, "socket", EAFNOSUPPORT, &is_family, 1);
	}
	if (r == 0) {
		const struct scmp_arg_cmp above = SCMP_A0(SCMP_CMP_GT, AF_NETLINK);

		r = refuse(ctx, "socket", EAFNOSUPPORT, &above, 1);
	}
	/* Netlink calls itself raw and is not. */
	for (int family = AF_INET; family <= AF_INET6 && r == 0; family += AF_INET6 - AF_INET) {
		const struct scmp_arg_cmp raw[] = { SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)family),
						    SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPE, SOCK_RAW) };

		r = refuse(ctx, "socket", EPERM, raw, G_N_ELEMENTS(raw));
	}
	return r;
}

/* The kernel looks at the lower half of the request, so this does too. */
static int refuse_typing(scmp_filter_ctx ctx)
{
	const unsigned requests[] = { TIOCSTI, TIOCLINUX };
	int r = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(requests) && r == 0; i++) {
		const struct scmp_arg_cmp is_request = SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_32_BITS, requests[i]);

		r = refuse(ctx, "ioctl", EPERM, &is_request, 1);
	}
	return r;
}

static int fill(scmp_filter_ctx ctx)
{
	int r = refuse_names(ctx, refused, G_N_ELEMENTS(refused), EPERM);

	if (r == 0)
		r = refuse_names(ctx, absent, G_N_ELEMENTS(absent), ENOSYS);
	if (r == 0)
		r = refuse_namespaces(ctx);
	if (r == 0)
		r = refuse_sockets(ctx);
	return r == 0 ? refuse_typing(ctx) : r;
}

/* Beside that: no other program, no process of its own or that of others, and no socket of a local service. */
static int fill_proxy(scmp_filter_ctx ctx)
{
	static const char *const more[] = {
		"execve",	    "execveat",		"fork",	       "vfork",	      "ptrace",	     "process_vm_readv",
		"process_vm_writev", "pidfd_open",	"pidfd_getfd", "kill",	      "tkill",	     "pidfd_send_signal",
		"memfd_create",	    "landlock_add_rule", "setpgid",
	};
	const struct scmp_arg_cmp is_unix = SCMP_A0(SCMP_CMP_EQ, AF_UNIX);
#if defined(__s390x__) || defined(__s390__) || defined(__CRIS__)
	const struct scmp_arg_cmp no_thread = SCMP_A1(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0);
#else
	const struct scmp_arg_cmp no_thread = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0);
#endif
	int r = fill(ctx);

	if (r == 0)
		r = refuse_names(ctx, more, G_N_ELEMENTS(more), EPERM);
	if (r == 0)
		r = refuse(ctx, "clone", EPERM, &no_thread, 1);
	return r == 0 ? refuse(ctx, "socket", EPERM, &is_unix, 1) : r;
}

bool syscalls_enter_proxy(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	bool ok = ctx && fill_proxy(ctx) == 0 && seccomp_load(ctx) == 0;

	if (ctx)
		seccomp_release(ctx);
	return ok;
}

int syscalls_filter(GError **error)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int fd = memfd_create("sbxfs-syscalls", MFD_CLOEXEC);
	int r = ctx && fd >= 0 ? fill(ctx) : -ENOMEM;

	if (r == 0)
		r = seccomp_export_bpf(ctx, fd);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (ctx)
		seccomp_release(ctx);
	if (r == 0)
		return fd;
	tool_error(error, EXIT_PLATFORM, NULL, "the filter of system calls cannot be made: %s", g_strerror(-r));
	if (fd >= 0)
		close(fd);
	return -1;
}
