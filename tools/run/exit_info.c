/* SPDX-License-Identifier: MIT */
#include "tools/run/exit_info.h"

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* linux/pidfd.h, of newer headers than are asked for: the first version of the structure, which all kernels take. */
struct info {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
	int32_t exit_code;
};
#define GET_INFO _IOWR(0xff, 11, struct info)
#define INFO_EXIT (UINT64_C(1) << 3)

bool exit_info_read(int pidfd, int *ret_status)
{
	struct info info = { .mask = INFO_EXIT };

	if (ioctl(pidfd, GET_INFO, &info) < 0 || !(info.mask & INFO_EXIT))
		return false;
	*ret_status = info.exit_code;
	return true;
}

bool exit_info_works(void)
{
	pid_t pid = fork();
	int pidfd, status = 0;
	bool works;

	if (pid == 0)
		_exit(7);
	if (pid < 0)
		return false;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	waitpid(pid, NULL, 0);
	works = pidfd >= 0 && exit_info_read(pidfd, &status) && WIFEXITED(status) && WEXITSTATUS(status) == 7;
	if (pidfd >= 0)
		close(pidfd);
	return works;
}

unsigned exit_info_events(bool works)
{
	/* Readable: it has ended; hung up: and was waited for, after which its status stays with the descriptor. */
	return works ? EPOLLHUP : EPOLLIN;
}
