/* SPDX-License-Identifier: MIT */

/*
 * Who waits for whom before a view is mounted, taken down or used. The others are processes; there is no view.
 */

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

	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
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

	g_assert_cmpint(write(o->link, &wish, sizeof(wish)), ==, sizeof(wish));
}

static void other_has(const struct other *o)
{
	bool ok = false;

	g_assert_cmpint(read(o->link, &ok, sizeof(ok)), ==, sizeof(ok));
	g_assert_true(ok);
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

	g_assert_true(g_file_get_contents("/proc/locks", &table, NULL, NULL));
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
		g_assert_cmpint(recv(o->link, &none, 1, MSG_PEEK | MSG_DONTWAIT), <, 0);
		g_usleep(STEP_US);
	}
	g_error("process %d waits for nothing", (int)o->pid);
}

static void in_own_place(void (*test)(void))
{
	g_autofree char *top = NULL, *state = NULL, *remove = NULL;

	if (!g_test_subprocess()) {
		g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
		g_test_trap_assert_passed();
		return;
	}
	top = g_dir_make_tmp("sbxfs-test.XXXXXX", NULL);
	state = g_build_filename(top, "state", NULL);
	g_setenv("XDG_STATE_HOME", state, TRUE);
	test();
	remove = g_strdup_printf("rm -rf '%s'", top);
	g_assert_cmpint(system(remove), ==, 0);
}

static void last_run(void)
{
	struct other runs[2] = { other_new(), other_new() }, taker = other_new();

	for (int i = 0; i < 2; i++)
		other_takes(&runs[i], VIEW_RUN, VIEW_SHARED);
	g_assert_cmpint(view_lock_of_others(NAME, VIEW_RUN), ==, VIEW_SHARED);
	g_assert_false(view_lock_try(NAME, VIEW_RUN, VIEW_EXCLUSIVE));
	other_begins(&taker, VIEW_RUN, VIEW_EXCLUSIVE);
	other_waits(&taker);
	other_ends(&runs[0]);
	other_waits(&taker);
	/* However it ends. */
	other_ends(&runs[1]);
	other_has(&taker);
	g_assert_cmpint(view_lock_of_others(NAME, VIEW_RUN), ==, VIEW_EXCLUSIVE);
	other_ends(&taker);
	g_assert_cmpint(view_lock_of_others(NAME, VIEW_RUN), ==, VIEW_FREE);
}

static void test_last_run(void)
{
	in_own_place(last_run);
}

/* Taken twice and given back once, a part is still had; another name has parts of its own. */
static void nested(void)
{
	struct other other = other_new();

	g_assert_true(view_lock(NAME, VIEW_USE, VIEW_SHARED, NULL));
	g_assert_true(view_lock(NAME, VIEW_USE, VIEW_SHARED, NULL));
	g_assert_true(view_lock("another", VIEW_USE, VIEW_EXCLUSIVE, NULL));
	view_unlock("another", VIEW_USE);
	view_unlock(NAME, VIEW_USE);
	other_begins(&other, VIEW_USE, VIEW_EXCLUSIVE);
	other_waits(&other);
	view_unlock(NAME, VIEW_USE);
	other_has(&other);
	other_ends(&other);
}

static void test_nested(void)
{
	in_own_place(nested);
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
	g_assert_true(view_change_begin(NAME, NULL));
	g_assert_true(*over);
	view_change_end(NAME);
	waitpid(later, NULL, 0);
	other_ends(&other);
	munmap(over, sizeof(*over));
}

/* While another one does, while a view is taken down, and while one that was left by runs only waits for that. */
static void change_waits(void)
{
	change_waits_for(VIEW_CHANGE, VIEW_EXCLUSIVE);
	change_waits_for(VIEW_USE, VIEW_EXCLUSIVE);
	change_waits_for(VIEW_KEPT, VIEW_SHARED);
}

static void test_change_waits(void)
{
	in_own_place(change_waits);
}

/* With a run in it, it stays; whoever wants to mount finds it, be it that run. */
static void change_finds_a_view_in_use(void)
{
	struct other keeper = other_new(), run = other_new();

	other_takes(&keeper, VIEW_KEPT, VIEW_SHARED);
	other_takes(&run, VIEW_RUN, VIEW_SHARED);
	g_assert_true(view_change_begin(NAME, NULL));
	view_change_end(NAME);
	other_ends(&run);
	g_assert_true(view_lock(NAME, VIEW_RUN, VIEW_SHARED, NULL));
	g_assert_true(view_change_begin(NAME, NULL));
	view_change_end(NAME);
	view_unlock(NAME, VIEW_RUN);
	other_ends(&keeper);
}

static void test_change_finds_a_view_in_use(void)
{
	in_own_place(change_finds_a_view_in_use);
}

/* Of the locks of this test. */
static void wait_for_a_waiter(void)
{
	g_autofree char *path = g_build_filename(g_getenv("XDG_STATE_HOME"), "sbxfs", ".views.lock", NULL), *mark = NULL;
	struct stat st;

	g_assert_cmpint(stat(path, &st), ==, 0);
	mark = g_strdup_printf(":%ju ", (uintmax_t)st.st_ino);
	for (int i = 0; i < STEPS && !somebody_waits(mark); i++)
		g_usleep(STEP_US);
	g_assert_true(somebody_waits(mark));
}

static void wait_for_end_of_keeper(void)
{
	for (int i = 0; i < STEPS && view_lock_of_others(NAME, VIEW_KEPT) != VIEW_FREE; i++)
		g_usleep(STEP_US);
	g_assert_cmpint(view_lock_of_others(NAME, VIEW_KEPT), ==, VIEW_FREE);
}

/* A command works with the view: it stays after the last run, and others may come meanwhile. */
static void keeper_waits_for_commands(void)
{
	struct other command = other_new();
	struct hold *h = hold_new(NAME, NULL);

	g_assert_true(hold_start_keeper(h, NULL));
	g_assert_cmpint(view_lock_of_others(NAME, VIEW_KEPT), ==, VIEW_SHARED);
	hold_mounted(h);
	other_takes(&command, VIEW_USE, VIEW_SHARED);
	g_assert_true(hold_free(h, NULL));
	for (int i = 0; i < 5; i++) {
		wait_for_a_waiter();
		g_assert_cmpint(view_lock_of_others(NAME, VIEW_KEPT), ==, VIEW_SHARED);
		h = hold_new(NAME, NULL);
		g_assert_false(hold_is_shared(h));
		g_assert_true(hold_free(h, NULL));
	}
	other_takes(&command, VIEW_USE, VIEW_FREE);
	wait_for_end_of_keeper();
	other_ends(&command);
}

static void test_keeper_waits_for_commands(void)
{
	in_own_place(keeper_waits_for_commands);
}

/* Alone, the run that mounted ends the keeper itself. */
static void last_run_needs_no_keeper(void)
{
	struct hold *h = hold_new(NAME, NULL);

	g_assert_true(hold_start_keeper(h, NULL));
	hold_mounted(h);
	g_assert_true(hold_free(h, NULL));
	g_assert_cmpint(view_lock_of_others(NAME, VIEW_KEPT), ==, VIEW_FREE);
	g_assert_cmpint(view_lock_of_others(NAME, VIEW_RUN), ==, VIEW_FREE);
}

static void test_last_run_needs_no_keeper(void)
{
	in_own_place(last_run_needs_no_keeper);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/last-run", test_last_run);
	g_test_add_func("/nested", test_nested);
	g_test_add_func("/change-waits", test_change_waits);
	g_test_add_func("/change-finds-a-view-in-use", test_change_finds_a_view_in_use);
	g_test_add_func("/keeper-waits-for-commands", test_keeper_waits_for_commands);
	g_test_add_func("/last-run-needs-no-keeper", test_last_run_needs_no_keeper);
	return g_test_run();
}
