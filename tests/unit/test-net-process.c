/* SPDX-License-Identifier: MIT */
/*
 * test-net-process - what the process of the proxy can't do any more, and what it still can
 *
 * Each test confines a child process and looks there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/run/fd_message.h"
#include "tools/run/landlock.h"
#include "tools/run/syscalls.h"

static int in_child(int (*look)(void *user), void *user)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(look(user));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Which check failed; 0 = none. */
static int look_at_files(void *user)
{
	static const char *const readable[] = { "/etc", "/nonexistent" };
	const char *own = user;
	int before = open(own, O_RDWR | O_CLOEXEC);

	if (before < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || !landlock_enter(readable, G_N_ELEMENTS(readable)))
		return 1;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 1)
		return 77;
	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0)
		return 2;
	if (open(own, O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
		return 3;
	if (open("/etc/passwd", O_WRONLY | O_CLOEXEC) >= 0 || errno != EACCES)
		return 4;
	if (open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) >= 0 || unlink(own) == 0 || mkdir("/tmp/sbxfs-was-here", 0700) == 0)
		return 5;
	return write(before, "x", 1) == 1 ? 0 : 6; /* what was open stays so */
}

static void test_files(void **state)
{
	g_autofree char *path = NULL;
	int fd = g_file_open_tmp("net-process.XXXXXX", &path, NULL), code;

	(void)state;
	assert_true(fd >= 0);
	code = in_child(look_at_files, path);
	close(fd);
	unlink(path);
	if (code == 77)
		skip();
	assert_int_equal(code, 0);
}

static void *answer(void *data)
{
	return data;
}

static int look_at_calls(void *user)
{
	static char *const argv[] = { (char *)"/bin/false", NULL }; /* run in our place, it must not look like success */
	int pair[2];
	pid_t pid;

	(void)user;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || !syscalls_enter_proxy())
		return 1;
	if (execv(argv[0], argv) == 0 || errno != EPERM)
		return 2;
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid > 0 || errno != EPERM)
		return 3;
	if (kill(getppid(), 0) == 0 || errno != EPERM)
		return 4;
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || errno != EPERM)
		return 5;
	if (socket(AF_INET, SOCK_RAW, 1) >= 0 || errno != EPERM)
		return 6;
	/* what it works with */
	if (socket(AF_INET, SOCK_STREAM, 0) < 0 || socket(AF_INET6, SOCK_DGRAM, 0) < 0)
		return 7;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return 8;
	return g_thread_join(g_thread_new("x", answer, pair)) == pair ? 0 : 9;
}

static void test_calls(void **state)
{
	(void)state;
	assert_int_equal(in_child(look_at_calls, NULL), 0);
}

static void test_messages(void **state)
{
	int pair[2], fd;
	char text[4];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_true(fd_message_send(pair[0], "ab", 2, pair[0]));
	assert_int_equal(fd_message_receive(pair[1], text, sizeof(text), &fd), 2);
	assert_true(fd >= 0 && fd != pair[0]);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	assert_true(fd_message_send(pair[0], "abcde", 5, pair[0]));
	assert_int_equal(fd_message_receive(pair[1], text, sizeof(text), &fd), -1);
	assert_int_equal(errno, EMSGSIZE);
	assert_int_equal(fd, -1);
	close(pair[0]);
	assert_int_equal(fd_message_receive(pair[1], text, sizeof(text), &fd), 0);
	assert_false(fd_message_send(pair[1], "x", 1, -1));
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_files), cmocka_unit_test(test_calls),
					    cmocka_unit_test(test_messages) };

	return cmocka_run_group_tests_name("net-process", tests, NULL, NULL);
}
