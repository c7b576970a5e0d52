/* SPDX-License-Identifier: MIT */
#include "tools/run/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <json-glib/json-glib.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/control.h"
#include "rules/policy.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/paths.h"
#include "tools/quantity.h"
#include "tools/run/exit_info.h"
#include "tools/run/listener.h"
#include "tools/run/process.h"
#include "tools/sandbox.h"

/* bwrap itself, and env(1), which sets signals for the program: see confined.c. */
#define OWN_CALLS 2
#define EVENTS 32
#define KEEP_MAX (16 * 1024 * 1024)
#define BATCH 64      /* ends that are recorded together */
#define BATCH_MS 25   /* how long the first of them waits */
#define LAST_MS 200   /* for ends that the kernel has not told when the run is over */
/* What an event is about, beside the pids of processes */
#define EVENT_CALL UINT64_C(0)
#define EVENT_STOP UINT64_MAX

struct process {
	pid_t pid;
	int pidfd;
	uid_t uid;
	int64_t started; /* monotonic, us */
	unsigned commands;
	char *path;   /* of the last program */
	bool told;    /* exit_group(2) was seen, with @status */
	int status;   /* as of wait(2) */
};

struct commands {
	struct listener *listener;
	struct control *control;
	GThread *thread;
	int epoll, stop; /* an eventfd: the run is over */
	bool exit_info;
	char *workspace;
	int root;		/* of everything inside; -1 = not known yet */
	unsigned own_calls;    /* of OWN_CALLS, still to come */
	GHashTable *processes; /* pid -> struct process */
	GPtrArray *ended;      /* GByteArray, encoded records */
	bool complained;
};

static void process_free(gpointer data)
{
	struct process *p = data;

	close(p->pidfd);
	g_free(p->path);
	g_free(p);
}

/* Records */

/* All ends so far and, when given, one more record. Clears the ends in either case: what failed once is told. */
static bool send_records(struct commands *c, const struct audit_record *r, GError **error)
{
	bool ok = control_records(c->control, c->ended, r, error);

	g_ptr_array_set_size(c->ended, 0);
	return ok;
}

static void complain(struct commands *c, const GError *failure)
{
	if (!c->complained)
		output_note("a command cannot be recorded, so it is refused: %s", failure->message);
	c->complained = true;
}

static void add_text(JsonBuilder *b, const char *key, const char *bytes)
{
	g_autofree char *valid = bytes ? g_utf8_make_valid(bytes, -1) : NULL;

	if (key)
		json_builder_set_member_name(b, key);
	json_builder_add_string_value(b, valid ? valid : "");
}

static void add_int(JsonBuilder *b, const char *key, int64_t value)
{
	json_builder_set_member_name(b, key);
	json_builder_add_int_value(b, value);
}

static void add_mark(JsonBuilder *b, const char *key, bool set)
{
	if (!set)
		return;
	json_builder_set_member_name(b, key);
	json_builder_add_boolean_value(b, TRUE);
}

static void add_list(JsonBuilder *b, const char *key, const GPtrArray *strings)
{
	json_builder_set_member_name(b, key);
	json_builder_begin_array(b);
	for (unsigned i = 0; strings && i < strings->len; i++)
		add_text(b, NULL, strings->pdata[i]);
	json_builder_end_array(b);
}

/* Frees @b. */
static char *json_text(JsonBuilder *b)
{
	JsonNode *root = json_builder_get_root(b);
	char *text = json_to_string(root, FALSE);

	json_node_unref(root);
	g_object_unref(b);
	return text;
}

/* Ends */

static char *exit_json(const struct process *p, bool known, int status)
{
	JsonBuilder *b = json_builder_new();

	json_builder_begin_object(b);
	add_text(b, "path", p->path);
	if (known && WIFEXITED(status))
		add_int(b, "exit", WEXITSTATUS(status));
	else if (known && WIFSIGNALED(status))
		add_int(b, "signal", WTERMSIG(status));
	add_int(b, "duration_ms", (g_get_monotonic_time() - p->started) / 1000);
	add_int(b, "commands", p->commands);
	json_builder_end_object(b);
	return json_text(b);
}

static void take_end(struct commands *c, struct process *p)
{
	int status = p->status;
	bool known = exit_info_read(p->pidfd, &status) || p->told;
	g_autofree char *detail = exit_json(p, known, status);
	const char *slash = p->path ? strrchr(p->path, '/') : NULL;
	GByteArray *encoded = g_byte_array_new();
	struct audit_record r = { .kind = AUDIT_COMMAND, .operation = "exit", .pid = p->pid, .uid = p->uid,
				  .program = slash ? slash + 1 : p->path, .detail = detail };

	/* A process none of whose programs was let start has nothing to end. */
	if (p->commands > 0) {
		audit_record_encode(&r, encoded);
		g_ptr_array_add(c->ended, g_steal_pointer(&encoded));
	}
	g_clear_pointer(&encoded, g_byte_array_unref);
	g_hash_table_remove(c->processes, GINT_TO_POINTER(p->pid));
}

/* Execution */

struct exec {
	struct process_identity who;
	char *path, *cwd;
	GPtrArray *argv, *environment;
	bool argv_cut, environment_cut;
};

static void exec_clear(struct exec *e)
{
	g_free(e->path);
	g_free(e->cwd);
	g_clear_pointer(&e->argv, g_ptr_array_unref);
	g_clear_pointer(&e->environment, g_ptr_array_unref);
}

/* Of execveat(2): @path may be relative to a descriptor, or empty, which means the descriptor itself. Takes @path. */
static char *from_descriptor(pid_t tid, int fd, char *path)
{
	g_autofree char *given = path;
	g_autofree char *base = !path || *path == '/' || fd == AT_FDCWD ? NULL : process_descriptor(tid, fd);

	if (!base)
		return g_steal_pointer(&given);
	return *path ? g_build_filename(base, path, NULL) : g_steal_pointer(&base);
}

/* execve(path, argv, env), execveat(dir, path, argv, env, flags) */
static void exec_read(const struct listener_call *call, struct exec *ret)
{
	const __u64 *args = call->request.data.args + (call->request.data.nr == SYS_execveat ? 1 : 0);
	pid_t tid = (pid_t)call->request.pid;

	*ret = (struct exec){ .who = { .pid = tid } };
	process_identify(tid, &ret->who);
	ret->cwd = process_cwd(tid);
	ret->path = process_string(tid, args[0], PATH_MAX);
	if (call->request.data.nr == SYS_execveat)
		ret->path = from_descriptor(tid, (int)call->request.data.args[0], ret->path);
	ret->argv = process_strings(tid, args[1], '\0', COMMANDS_TEXT_MAX, &ret->argv_cut);
	ret->environment = process_strings(tid, args[2], '=', COMMANDS_TEXT_MAX, &ret->environment_cut);
}

static char *exec_json(const struct exec *e, bool watched)
{
	JsonBuilder *b = json_builder_new();

	json_builder_begin_object(b);
	add_text(b, "path", e->path);
	add_list(b, "argv", e->argv);
	add_mark(b, "argv_cut", e->argv_cut);
	add_text(b, "cwd", e->cwd);
	add_list(b, "environment", e->environment);
	add_mark(b, "environment_cut", e->environment_cut);
	add_int(b, "parent", e->who.parent);
	add_mark(b, "unread", !e->path || !e->argv || !e->environment || !e->cwd);
	add_mark(b, "end_unwatched", !watched);
	json_builder_end_object(b);
	return json_text(b);
}

static bool has_ended(const struct commands *c, const struct process *p)
{
	struct pollfd fd = { .fd = p->pidfd, .events = POLLIN };

	return poll(&fd, 1, 0) > 0 && (fd.revents & (short)exit_info_events(c->exit_info));
}

/* NULL when there are too many, or it is gone. */
static struct process *watch(struct commands *c, const struct process_identity *who)
{
	struct process *p = g_hash_table_lookup(c->processes, GINT_TO_POINTER(who->pid));
	struct epoll_event event = { .events = exit_info_events(c->exit_info) };
	int pidfd;

	/* A number is given anew as soon as its process was waited for, perhaps before we have heard of that. */
	if (p && !has_ended(c, p))
		return p;
	if (p)
		take_end(c, p);
	pidfd = g_hash_table_size(c->processes) < COMMANDS_WATCHED_MAX ? (int)syscall(SYS_pidfd_open, who->pid, 0) : -1;
	if (pidfd < 0)
		return NULL;
	p = g_new0(struct process, 1);
	event.data.u64 = (uint64_t)who->pid;
	*p = (struct process){ .pid = who->pid, .uid = who->uid, .pidfd = pidfd, .started = g_get_monotonic_time() };
	g_hash_table_insert(c->processes, GINT_TO_POINTER(who->pid), p);
	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, pidfd, &event) == 0)
		return p;
	g_hash_table_remove(c->processes, GINT_TO_POINTER(who->pid));
	return NULL;
}

/*
 * Is there nothing at @path? Sure only of what leads through no symlink, not to /proc, which shows us something else, and not into the
 * view, where looking would have its own records.
 */
static bool is_absent(struct commands *c, pid_t pid, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS };
	long fd;

	if (!path || path[0] != '/' || paths_below(path, "/proc") || paths_below(path, c->workspace))
		return false;
	if (c->root < 0)
		c->root = process_root(pid);
	if (c->root < 0)
		return false;
	fd = syscall(SYS_openat2, c->root, path, &how, sizeof(how));
	if (fd >= 0)
		close((int)fd);
	return fd < 0 && errno == ENOENT;
}

static void take_exec(struct commands *c, const struct listener_call *call)
{
	g_autoptr(GError) failure = NULL;
	g_autofree char *detail = NULL;
	struct audit_record r;
	struct process *p;
	struct exec e;

	exec_read(call, &e);
	/* The call was broken off; who has that number now is somebody else. */
	if (!listener_is_waiting(c->listener, call)) {
		exec_clear(&e);
		return;
	}
	if (call->request.data.nr == SYS_execve && is_absent(c, e.who.pid, e.path)) {
		listener_answer(c->listener, call, ENOENT);
		exec_clear(&e);
		return;
	}
	p = watch(c, &e.who);
	detail = exec_json(&e, p != NULL);
	r = (struct audit_record){ .kind = AUDIT_COMMAND, .operation = "exec", .pid = e.who.pid, .uid = e.who.uid,
				   .program = e.who.name, .detail = detail };
	if (send_records(c, &r, &failure)) {
		listener_answer(c->listener, call, 0);
		if (p) {
			p->commands++;
			g_free(p->path);
			p->path = g_steal_pointer(&e.path);
		}
	} else {
		listener_answer(c->listener, call, g_error_matches(failure, CONTROL_ERROR, CONTROL_ERROR_NO_SPACE) ? ENOSPC : EIO);
		complain(c, failure);
	}
	exec_clear(&e);
}

/* Only where nothing else tells how a process ends. */
static void take_exit_group(struct commands *c, const struct listener_call *call)
{
	struct process_identity who = { 0 };
	struct process *p = NULL;

	if (process_identify((pid_t)call->request.pid, &who) && listener_is_waiting(c->listener, call))
		p = g_hash_table_lookup(c->processes, GINT_TO_POINTER(who.pid));
	if (p) {
		p->told = true;
		p->status = (int)(call->request.data.args[0] & 0xff) << 8;
	}
	listener_answer(c->listener, call, 0);
}

static void take_call(struct commands *c)
{
	struct listener_call call;

	if (!listener_receive(c->listener, &call))
		return;
	if (call.request.data.nr == SYS_exit_group) {
		take_exit_group(c, &call);
	} else if (c->own_calls > 0) {
		c->own_calls--;
		listener_answer(c->listener, &call, 0);
	} else {
		take_exec(c, &call);
	}
}

/* The thread */

static void flush(struct commands *c)
{
	g_autoptr(GError) failure = NULL;

	if (c->ended->len > 0 && !send_records(c, NULL, &failure) && !c->complained) {
		output_note("ends of commands cannot be recorded: %s", failure->message);
		c->complained = true;
	}
}

static int patience(const struct commands *c, bool over)
{
	return over ? LAST_MS : c->ended->len > 0 ? BATCH_MS : -1;
}

/* True when it says that the run is over. */
static bool take_event(struct commands *c, const struct epoll_event *event)
{
	struct process *p;

	if (event->data.u64 == EVENT_STOP) {
		epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->stop, NULL);
		return true;
	}
	if (event->data.u64 != EVENT_CALL) {
		p = g_hash_table_lookup(c->processes, GINT_TO_POINTER((pid_t)event->data.u64));
		if (p && has_ended(c, p))
			take_end(c, p);
	} else if (event->events & EPOLLIN) {
		take_call(c);
	} else {
		/* Nobody is left who could call. */
		epoll_ctl(c->epoll, EPOLL_CTL_DEL, listener_fd(c->listener), NULL);
	}
	return false;
}

static gpointer commands_main(gpointer data)
{
	struct commands *c = data;
	bool over = false;

	for (;;) {
		struct epoll_event events[EVENTS];
		int n = epoll_wait(c->epoll, events, EVENTS, patience(c, over));

		if (n < 0 && errno == EINTR)
			continue;
		for (int i = 0; i < n; i++)
			over = take_event(c, &events[i]) || over;
		if (n <= 0 || c->ended->len >= BATCH)
			flush(c);
		if (over && (n <= 0 || g_hash_table_size(c->processes) == 0))
			break;
	}
	flush(c);
	return NULL;
}

/* What is wanted */

static bool setting_is(const struct policy_setting *s, const char *key)
{
	return g_str_equal(s->section, "run") && g_str_equal(s->key, key);
}

static bool read_switch(const struct policy_setting *s, bool *yes, bool *no, GError **error)
{
	/* In a layer the last one holds. */
	*yes = g_str_equal(s->value, "yes");
	*no = g_str_equal(s->value, "no");
	if (*yes || *no)
		return true;
	tool_error(error, EXIT_POLICY, s->file, "%s:%u: command_log = \"%s\" must be yes or no", s->file, s->line, s->value);
	return false;
}

static bool read_keep(const struct policy_setting *s, size_t *keep, GError **error)
{
	uint64_t size = 0;

	if (s->layer == POLICY_WORKSPACE)
		return true;
	if (!g_str_equal(s->value, "no") && (!quantity_parse(QUANTITY_BYTES, s->value, &size) || size > KEEP_MAX))
		return tool_error(error, EXIT_POLICY, s->file, "%s:%u: output_log = \"%s\" must be no, or a size like 64K, at most 16M",
				  s->file, s->line, s->value),
		       false;
	*keep = (size_t)size;
	return true;
}

bool commands_wanted(const struct policy *policy, bool *ret_wanted, size_t *ret_keep, GError **error)
{
	unsigned count;
	const struct policy_setting *all = policy_settings(policy, &count);
	bool yes[POLICY_LAYERS] = { false }, no[POLICY_LAYERS] = { false };

	*ret_keep = COMMANDS_KEEP;
	for (unsigned i = 0; i < count; i++) {
		if (setting_is(&all[i], "command_log") && !read_switch(&all[i], &yes[all[i].layer], &no[all[i].layer], error))
			return false;
		if (setting_is(&all[i], "output_log") && !read_keep(&all[i], ret_keep, error))
			return false;
	}
	*ret_wanted = yes[POLICY_MANAGED] || yes[POLICY_USER] || yes[POLICY_WORKSPACE] || !(no[POLICY_MANAGED] || no[POLICY_USER]);
	return true;
}

/* Life */

struct commands *commands_new(const struct sandbox *s, GError **error)
{
	static const char *const calls[] = { "execve", "execveat", NULL }, *const calls_and_exit[] = { "execve", "execveat",
													 "exit_group", NULL };
	struct commands *c = g_new0(struct commands, 1);

	c->exit_info = exit_info_works();
	c->workspace = g_strdup(s->workspace);
	c->root = -1;
	c->own_calls = OWN_CALLS;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->stop = eventfd(0, EFD_CLOEXEC);
	c->processes = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, process_free);
	c->ended = g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
	c->listener = listener_new(c->exit_info ? calls : calls_and_exit, error);
	c->control = c->listener ? control_reach(s->socket, error) : NULL;
	if (c->control)
		return c;
	commands_free(c);
	return NULL;
}

bool commands_enter(const struct commands *c)
{
	return listener_enter(c->listener);
}

/* A descriptor for each process that is watched. The program's own limit was inherited before. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		g_debug("setrlimit: %s", g_strerror(errno));
}

bool commands_start(struct commands *c, GError **error)
{
	struct epoll_event call = { .events = EPOLLIN, .data.u64 = EVENT_CALL }, stop = { .events = EPOLLIN, .data.u64 = EVENT_STOP };

	if (!listener_take(c->listener, error))
		return false;
	raise_limit();
	epoll_ctl(c->epoll, EPOLL_CTL_ADD, listener_fd(c->listener), &call);
	epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->stop, &stop);
	c->thread = g_thread_new("commands", commands_main, c);
	return true;
}

void commands_output(struct commands *c, const char *stream, const char *text)
{
	struct audit_record r = { .kind = AUDIT_COMMAND, .operation = stream, .pid = (int32_t)getpid(), .uid = getuid(), .detail = text };
	g_autoptr(GError) failure = NULL;

	if (!control_record(c->control, &r, &failure))
		output_note("the %s of the command is not in the audit: %s", stream, failure->message);
}

void commands_finish(struct commands *c)
{
	if (!c->thread)
		return;
	eventfd_write(c->stop, 1);
	g_thread_join(g_steal_pointer(&c->thread));
}

void commands_free(struct commands *c)
{
	if (!c)
		return;
	commands_finish(c);
	control_close(c->control);
	g_clear_pointer(&c->listener, listener_free);
	g_hash_table_unref(c->processes);
	g_ptr_array_unref(c->ended);
	if (c->root >= 0)
		close(c->root);
	close(c->epoll);
	close(c->stop);
	g_free(c->workspace);
	g_free(c);
}
