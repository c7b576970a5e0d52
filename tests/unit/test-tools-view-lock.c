/* SPDX-License-Identifier: MIT */

/*
 * Who waits for whom before a view is mounted, taken down or used. The others are processes; there is no view.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <glib.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/run/hold.h"
#include "tools/view_lock.h"

#define NAME "box"
#define STEP_US (5 * 1000)
#define STEPS 4000 /* 20 s */

/* Another process that has parts. */
struct other {
	pid_t pid;
	int link;
};

struct wish {
	enum view_part part;
	enum view_hold how;
};

static void serve(int link)
{
	struct wish wish;

	view_lock_forget();
	while (read(link, &wish, sizeof(wish)) == sizeof(wish)) {
		bool ok = true;

		if (wish.how == VIEW_FREE)
			view_unlock(NAME, wish.part);
		else
			ok = view_lock(NAME, wish.part, wish.how, NULL);
		if (write(link, &ok, sizeof(ok)) != sizeof(ok))
			break;
	}
	_exit(0);
}

static struct other other_new(void)
{
	struct other o;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	o.pid = fork();
	if (o.pid == 0) {
		close(fds[1]);
		serve(fds[0]);
	}
	close(fds[0]);
	o.link = fds[1];
	return o;
}

static void other_begins(const struct other *o, enum view_part part, enum view_hold how)
{
	const struct wish wish = { .part = part, .how = how };

	assert_int_equal(write(o->link, &wish, sizeof(wish)), sizeof(wish));
}

static void other_has(const struct other *o)
{
	bool ok = false;

	assert_int_equal(read(o->link, &ok, sizeof(ok)), sizeof(ok));
	assert_true(ok);
}

static void other_takes(const struct other *o, enum view_part part, enum view_hold how)
{
	other_begins(o, part, how);
	other_has(o);
}

static void other_ends(const struct other *o)
{
	kill(o->pid, SIGKILL);
	waitpid(o->pid, NULL, 0);
	close(o->link);
}

/* The kernel tells who waits, and for which file: "1: -> POSIX ADVISORY WRITE PID 08:01:INODE 0 0". */
static bool somebody_waits(const char *mark)
{
	g_autofree char *table = NULL;
	g_auto(GStrv) lines = NULL;

	assert_true(g_file_get_contents("/proc/locks", &table, NULL, NULL));
	lines = g_strsplit(table, "\n", -1);
	for (char **line = lines; *line; line++)
		if (strstr(*line, "->") && strstr(*line, mark))
			return true;
	return false;
}

static bool is_waiting(pid_t pid)
{
	g_autofree char *mark = g_strdup_printf(" %d ", (int)pid);

	return somebody_waits(mark);
}

static void other_waits(const struct other *o)
{
	char none;

	for (int i = 0; i < STEPS; i++) {
		if (is_waiting(o->pid))
			return;
		assert_true(recv(o->link, &none, 1, MSG_PEEK | MSG_DONTWAIT) < 0);
		g_usleep(STEP_US);
	}
	fail_msg("process %d waits for nothing", (int)o->pid);
}

static void test_last_run(void **state)
{
	struct other runs[2] = { other_new(), other_new() }, taker = other_new();

	(void)state;
	for (int i = 0; i < 2; i++)
		other_takes(&runs[i], VIEW_RUN, VIEW_SHARED);
	assert_int_equal(view_lock_of_others(NAME, VIEW_RUN), VIEW_SHARED);
	assert_false(view_lock_try(NAME, VIEW_RUN, VIEW_EXCLUSIVE));
	other_begins(&taker, VIEW_RUN, VIEW_EXCLUSIVE);
	other_waits(&taker);
	other_ends(&runs[0]);
	other_waits(&taker);
	/* However it ends. */
	other_ends(&runs[1]);
	other_has(&taker);
	assert_int_equal(view_lock_of_others(NAME, VIEW_RUN), VIEW_EXCLUSIVE);
	other_ends(&taker);
	assert_int_equal(view_lock_of_others(NAME, VIEW_RUN), VIEW_FREE);
}

/* Taken twice and given back once, a part is still had; another name has parts of its own. */
static void test_nested(void **state)
{
	struct other other = other_new();

	(void)state;
	assert_true(view_lock(NAME, VIEW_USE, VIEW_SHARED, NULL));
	assert_true(view_lock(NAME, VIEW_USE, VIEW_SHARED, NULL));
	assert_true(view_lock("another", VIEW_USE, VIEW_EXCLUSIVE, NULL));
	view_unlock("another", VIEW_USE);
	view_unlock(NAME, VIEW_USE);
	other_begins(&other, VIEW_USE, VIEW_EXCLUSIVE);
	other_waits(&other);
	view_unlock(NAME, VIEW_USE);
	other_has(&other);
	other_ends(&other);
}

/* After a while *over, and what it had is free. */
static pid_t ends_later(const struct other *o, bool *over)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	g_usleep(40 * STEP_US);
	*over = true;
	kill(o->pid, SIGKILL);
	_exit(0);
}

/* Before @part, which another process has, is free, nobody mounts or unmounts. */
static void change_waits_for(enum view_part part, enum view_hold how)
{
	bool *over = mmap(NULL, sizeof(*over), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct other other = other_new();
	pid_t later;

	other_takes(&other, part, how);
	later = ends_later(&other, over);
	assert_true(view_change_begin(NAME, NULL));
	assert_true(*over);
	view_change_end(NAME);
	waitpid(later, NULL, 0);
	other_ends(&other);
	munmap(over, sizeof(*over));
}

/* While another one does, while a view is taken down, and while one that was left by runs only waits for that. */
static void test_change_waits(void **state)
{
	(void)state;
	change_waits_for(VIEW_CHANGE, VIEW_EXCLUSIVE);
	change_waits_for(VIEW_USE, VIEW_EXCLUSIVE);
	change_waits_for(VIEW_KEPT, VIEW_SHARED);
}

/* With a run in it, it stays; whoever wants to mount finds it, be it that run. */
static void test_change_finds_a_view_in_use(void **state)
{
	struct other keeper = other_new(), run = other_new();

	(void)state;
	other_takes(&keeper, VIEW_KEPT, VIEW_SHARED);
	other_takes(&run, VIEW_RUN, VIEW_SHARED);
	assert_true(view_change_begin(NAME, NULL));
	view_change_end(NAME);
	other_ends(&run);
	assert_true(view_lock(NAME, VIEW_RUN, VIEW_SHARED, NULL));
	assert_true(view_change_begin(NAME, NULL));
	view_change_end(NAME);
	view_unlock(NAME, VIEW_RUN);
	other_ends(&keeper);
}

/* Of the locks of this test. */
static void wait_for_a_waiter(void)
{
	g_autofree char *path = g_build_filename(g_getenv("XDG_STATE_HOME"), "sbxfs", ".views.lock", NULL), *mark = NULL;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	mark = g_strdup_printf(":%ju ", (uintmax_t)st.st_ino);
	for (int i = 0; i < STEPS && !somebody_waits(mark); i++)
		g_usleep(STEP_US);
	assert_true(somebody_waits(mark));
}

static void wait_for_end_of_keeper(void)
{
	for (int i = 0; i < STEPS && view_lock_of_others(NAME, VIEW_KEPT) != VIEW_FREE; i++)
		g_usleep(STEP_US);
	assert_int_equal(view_lock_of_others(NAME, VIEW_KEPT), VIEW_FREE);
}

/* A command works with the view: it stays after the last run, and others may come meanwhile. */
static void test_keeper_waits_for_commands(void **state)
{
	struct other command = other_new();
	struct hold *h = hold_new(NAME, NULL);

	(void)state;
	assert_true(hold_start_keeper(h, NULL));
	assert_int_equal(view_lock_of_others(NAME, VIEW_KEPT), VIEW_SHARED);
	hold_mounted(h);
	other_takes(&command, VIEW_USE, VIEW_SHARED);
	assert_true(hold_free(h, NULL));
	for (int i = 0; i < 5; i++) {
		wait_for_a_waiter();
		assert_int_equal(view_lock_of_others(NAME, VIEW_KEPT), VIEW_SHARED);
		h = hold_new(NAME, NULL);
		assert_false(hold_is_shared(h));
		assert_true(hold_free(h, NULL));
	}
	other_takes(&command, VIEW_USE, VIEW_FREE);
	wait_for_end_of_keeper();
	other_ends(&command);
}

/* Alone, the run that mounted ends the keeper itself. */
static void test_last_run_needs_no_keeper(void **state)
{
	struct hold *h = hold_new(NAME, NULL);

	(void)state;
	assert_true(hold_start_keeper(h, NULL));
	hold_mounted(h);
	assert_true(hold_free(h, NULL));
	assert_int_equal(view_lock_of_others(NAME, VIEW_KEPT), VIEW_FREE);
	assert_int_equal(view_lock_of_others(NAME, VIEW_RUN), VIEW_FREE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_run),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_change_waits),
		cmocka_unit_test(test_change_finds_a_view_in_use),
		cmocka_unit_test(test_keeper_waits_for_commands),
		cmocka_unit_test(test_last_run_needs_no_keeper),
	};
	g_autofree char *top = g_dir_make_tmp("sbxfs-test.XXXXXX", NULL), *state = g_build_filename(top, "state", NULL);
	g_autofree char *remove = g_strdup_printf("rm -rf '%s'", top);
	int failed;

	g_setenv("XDG_STATE_HOME", state, TRUE);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	return system(remove) != 0 || failed;
}
