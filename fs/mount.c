/* SPDX-License-Identifier: MIT */
#include "fs/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/control.h"
#include "fs/fuse_device.h"
#include "fs/fuse_ops.h"
#include "fs/overlay.h"
#include "rules/policy.h"
#include "snapshot/audit_writer.h"
#include "snapshot/store.h"

G_DEFINE_QUARK(sbxfs-mount-error-quark, mount_error)

/* How long an unmount waits for a thread of ours or of the kernel's to let go, in tries of UNMOUNT_PAUSE us. */
#define UNMOUNT_TRIES 20
#define UNMOUNT_PAUSE 50000

/* Threads that serve requests. */
#define WORKERS 8

/* The table of mounts */

/* Mountpoints have blanks, tabs, newlines and backslashes as octal escapes in /proc/self/mountinfo. */
static char *mount_unescape(const char *field)
{
	GString *s = g_string_new(NULL);

	for (; *field; field++) {
		if (field[0] == '\\' && g_ascii_isdigit(field[1]) && g_ascii_isdigit(field[2]) && g_ascii_isdigit(field[3])) {
			g_string_append_c(s, (field[1] - '0') * 64 + (field[2] - '0') * 8 + (field[3] - '0'));
			field += 3;
		} else {
			g_string_append_c(s, *field);
		}
	}
	return g_string_free(s, FALSE);
}

/* The type of the topmost file system mounted on @mountpoint; NULL when it is no mountpoint. Asks nothing of the file system. */
static char *mount_type(const char *mountpoint)
{
	g_autofree char *table = NULL;
	g_auto(GStrv) lines = NULL;
	char *type = NULL;

	if (!g_file_get_contents("/proc/self/mountinfo", &table, NULL, NULL))
		return NULL;
	lines = g_strsplit(table, "\n", -1);
	for (char **line = lines; *line; line++) {
		g_auto(GStrv) fields = g_strsplit(*line, " ", -1);
		g_autofree char *where = g_strv_length(fields) > 6 ? mount_unescape(fields[4]) : NULL;
		guint i = 6;

		if (!where || strcmp(where, mountpoint) != 0)
			continue;
		while (fields[i] && strcmp(fields[i], "-") != 0)
			i++;
		g_free(type);
		type = g_strdup(fields[i] ? fields[i + 1] : NULL);
	}
	return type;
}

static bool mount_is_ours(const char *mountpoint)
{
	g_autofree char *type = mount_type(mountpoint);

	return type && g_str_has_prefix(type, "fuse.sbxfs");
}

/* stat() in a process of its own, for it may never return. */
static int probe(const char *path)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct stat st;

		alarm(2);
		_exit(stat(path, &st) < 0 ? errno : 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EIO;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

bool mount_is_stale(const char *mountpoint)
{
	return mount_is_ours(mountpoint) && probe(mountpoint) == ENOTCONN;
}

static bool unmount_once(const char *mountpoint, bool lazy, char **ret_message)
{
	const char *argv[] = { "fusermount3", "-u", lazy ? "-qz" : "-q", "--", mountpoint, NULL };
	g_autoptr(GError) error = NULL;
	int status;

	if (geteuid() == 0) {
		if (umount2(mountpoint, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
			return true;
		*ret_message = g_strdup(g_strerror(errno));
		return false;
	}
	if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, ret_message, &status, &error)) {
		*ret_message = g_strdup(error->message);
		return false;
	}
	return g_spawn_check_wait_status(status, NULL);
}

bool mount_unmount(const char *mountpoint, GError **error)
{
	g_autofree char *message = NULL;

	if (!mount_is_ours(mountpoint)) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_MOUNTPOINT, "%s is not mounted by sbxfs", mountpoint);
		return false;
	}
	if (unmount_once(mountpoint, mount_is_stale(mountpoint), &message))
		return true;
	g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_BUSY, "%s is in use (%s): end the programs that work in it, then unmount again", mountpoint,
		    message && *message ? g_strchomp(message) : "busy");
	return false;
}

/* Serving */

struct service {
	const struct mount_options *options;
	struct policy *policy; /* until the overlay takes it */
	struct view view;
	struct fuse_session *session;
	struct control_server *control;
	GAsyncQueue *checkpoint_stop;
	GThread *checkpoint;
	int ready_fd; /* the process that waits for the view; -1 = none */
	bool mounted;
};

static void service_report(struct service *s, const GError *error)
{
	g_autofree char *text = NULL;

	if (s->ready_fd < 0)
		return;
	text = error ? g_strdup_printf("%d %s", error->code, error->message) : g_strdup("ready");
	if (write(s->ready_fd, text, strlen(text)) < 0)
		g_debug("nobody waits for the view");
	close(s->ready_fd);
	s->ready_fd = -1;
}

static void service_ready(void *user)
{
	service_report(user, NULL);
}

static void expire_entry(uint64_t parent, const char *name, void *user)
{
	struct fuse_session *session = ((struct service *)user)->session;

	/* A kernel before 6.2 can only drop it. */
	if (fuse_lowlevel_notify_expire_entry(session, parent, name, strlen(name), FUSE_LL_EXPIRE_ONLY) == -ENOSYS)
		fuse_lowlevel_notify_inval_entry(session, parent, name, strlen(name));
}

/* Offset -1: the attributes alone. */
static void inval_inode(uint64_t ino, bool data, void *user)
{
	fuse_lowlevel_notify_inval_inode(((struct service *)user)->session, ino, data ? 0 : -1, 0);
}

static enum mount_error code_of_audit(const GError *why)
{
	return g_error_matches(why, AUDIT_ERROR, AUDIT_ERROR_BUSY)   ? MOUNT_ERROR_BUSY
	       : g_error_matches(why, AUDIT_ERROR, AUDIT_ERROR_SINK) ? MOUNT_ERROR_POLICY
								     : MOUNT_ERROR_STORE;
}

/* The store's errors come from below; here they become what a mount can say about them. */
static bool service_open(struct service *s, GError **error)
{
	struct lower *lower;
	struct store *store;
	GError *why = NULL;
	int r = lower_open(s->options->workspace, &lower);

	if (r < 0) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "workspace %s: %s", s->options->workspace, g_strerror(-r));
		return false;
	}
	store = store_open(s->options->store, STORE_WRITE, &why);
	if (!store) {
		bool busy = g_error_matches(why, STORE_ERROR, STORE_ERROR_BUSY);

		g_set_error(error, MOUNT_ERROR, busy ? MOUNT_ERROR_BUSY : MOUNT_ERROR_STORE, "%s", why->message);
		g_error_free(why);
		lower_close(lower);
		return false;
	}
	store_set(store, "mountpoint", s->options->mountpoint);
	r = store_set_limit(store, s->options->disk_limit);
	if (r < 0) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_STORE, "store %s: the limit disk: %s", s->options->store, g_strerror(-r));
		store_close(store);
		lower_close(lower);
		return false;
	}
	s->view.overlay = overlay_new(store, lower, g_steal_pointer(&s->policy));
	if (overlay_audit(s->view.overlay, s->options->audit, &why)) {
		r = overlay_questions(s->view.overlay);
		if (r < 0)
			g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_STORE, "what was allowed before cannot be read: %s", g_strerror(-r));
		return r == 0;
	}
	g_set_error(error, MOUNT_ERROR, code_of_audit(why), "%s%s", why->message,
		    g_error_matches(why, AUDIT_ERROR, AUDIT_ERROR_SINK) ? " (asked for by [audit] of the policy)" : "");
	g_error_free(why);
	return false;
}

static bool service_mount(struct service *s, GError **error)
{
	static const char *const arguments[] = { "sbxfs", "-d", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(s->options->debug ? 2 : 1, (char **)arguments);
	g_autofree char *options =
		g_strdup_printf("fsname=%s,subtype=sbxfs,default_permissions%s%s%s", s->options->name, geteuid() == 0 ? ",dev,suid" : "",
				s->options->extra && *s->options->extra ? "," : "", s->options->extra ? s->options->extra : "");
	int fd;

	if (access("/dev/fuse", R_OK | W_OK) < 0) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_PLATFORM, "/dev/fuse: %s: %s", g_strerror(errno),
			    errno == ENOENT ? "load the kernel module fuse, or give the container the device /dev/fuse" :
					      "let this user read and write the device (chmod 666 /dev/fuse, or a udev rule)");
		return false;
	}
	s->session = fuse_session_new(&args, &fuse_view_ops, sizeof(fuse_view_ops), &s->view);
	fuse_opt_free_args(&args);
	s->view.session = s->session;
	if (!s->session) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "libfuse starts no session");
		return false;
	}
	fd = fuse_device_mount(s->options->mountpoint, options, error);
	if (fd < 0)
		return false;
	s->mounted = true;
	if (fuse_device_attach(s->session, fd) < 0) {
		close(fd);
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "libfuse does not take the connection");
		return false;
	}
	return true;
}

/* Threads that are no workers of libfuse must leave the signals to the main thread, which waits for them. */
static void block_signals(bool block)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

#define CHECKPOINT_PAUSE 500000 /* us */

/* Keeps the write-ahead log short without making a request wait for it, until something is pushed on the queue. */
static gpointer checkpoint_main(gpointer data)
{
	struct service *s = data;

	while (!g_async_queue_timeout_pop(s->checkpoint_stop, CHECKPOINT_PAUSE))
		store_checkpoint(overlay_store(s->view.overlay));
	return NULL;
}

static void service_record(struct service *s, const char *operation)
{
	g_autofree char *detail = g_strdup_printf("%s, policy %s", s->options->mountpoint, policy_name(overlay_policy(s->view.overlay)));

	overlay_record(s->view.overlay, AUDIT_MOUNT, operation, detail);
}

static bool service_start(struct service *s, GError **error)
{
	struct overlay_watcher watcher = { .expire_entry = expire_entry, .inval_inode = inval_inode, .user = s };
	bool ok = service_open(s, error);

	if (!ok)
		return false;
	block_signals(true);
	ok = service_mount(s, error);
	if (ok) {
		overlay_watch(s->view.overlay, &watcher);
		s->checkpoint_stop = g_async_queue_new();
		s->checkpoint = g_thread_new("checkpoint", checkpoint_main, s);
		s->control = control_serve(s->view.overlay, s->options->socket, error);
		ok = s->control != NULL;
	}
	if (ok)
		service_record(s, "mount");
	block_signals(false);
	return ok;
}

/* After the last request. The kernel aborts what is still open when the connection goes. */
static void service_stop(struct service *s)
{
	g_autofree char *message = NULL;

	if (s->view.overlay)
		overlay_questions_close(s->view.overlay);
	control_stop(s->control);
	if (s->mounted && mount_is_ours(s->options->mountpoint))
		unmount_once(s->options->mountpoint, true, &message);
	if (s->checkpoint) {
		g_async_queue_push(s->checkpoint_stop, s);
		g_thread_join(s->checkpoint);
		g_async_queue_unref(s->checkpoint_stop);
	}
	if (s->mounted && s->control) {
		overlay_caller(getpid(), getuid());
		service_record(s, "umount");
	}
	/* Before the session, to which its threads speak. */
	overlay_free(s->view.overlay);
	if (s->session) {
		fuse_remove_signal_handlers(s->session);
		fuse_session_destroy(s->session);
	}
	policy_free(s->policy);
}

static bool service_run(struct service *s, GError **error)
{
	struct fuse_loop_config *config;
	GError *why = NULL;

	if (!service_start(s, &why)) {
		service_report(s, why);
		service_stop(s);
		g_propagate_error(error, why);
		return false;
	}
	fuse_set_signal_handlers(s->session);
	config = fuse_loop_cfg_create();
	fuse_loop_cfg_set_clone_fd(config, 0);
	/* Those that wait for a human are not missed by the others. */
	fuse_loop_cfg_set_max_threads(config, WORKERS + QUESTION_WAITING_MAX);
	fuse_loop_cfg_set_idle_threads(config, 4);
	fuse_session_loop_mt(s->session, config);
	fuse_loop_cfg_destroy(config);
	service_stop(s);
	return true;
}

/* Starting */

static void daemon_detach(const struct mount_options *options)
{
	g_autofree char *log = g_build_filename(options->store, "log", NULL);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), out;

	setsid();
	if (chdir("/") < 0)
		g_debug("chdir /: %s", g_strerror(errno));
	out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	dup2(null, STDIN_FILENO);
	if (out >= 0) {
		dup2(out, STDOUT_FILENO);
		dup2(out, STDERR_FILENO);
		close(out);
	}
	close(null);
}

static bool wait_for_view(int fd, pid_t pid, GError **error)
{
	char text[1024];
	size_t used = 0;
	ssize_t n;
	char *end;
	long code;

	while (used < sizeof(text) - 1) {
		n = read(fd, text + used, sizeof(text) - 1 - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		used += n;
	}
	text[used] = '\0';
	if (strcmp(text, "ready") == 0)
		return true;
	waitpid(pid, NULL, 0);
	code = strtol(text, &end, 10);
	if (*end == ' ')
		g_set_error(error, MOUNT_ERROR, code, "%s", end + 1);
	else
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "the serving process ended before the view answered; its log is in the store");
	return false;
}

static bool run_in_background(struct service *s, GError **error)
{
	int fds[2];
	bool ok;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "pipe: %s", g_strerror(errno));
		return false;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		s->ready_fd = fds[1];
		daemon_detach(s->options);
		_exit(service_run(s, NULL) ? 0 : 1);
	}
	close(fds[1]);
	if (pid < 0)
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "fork: %s", g_strerror(errno));
	ok = pid > 0 && wait_for_view(fds[0], pid, error);
	close(fds[0]);
	policy_free(g_steal_pointer(&s->policy));
	return ok;
}

bool mount_run(const struct mount_options *options, struct policy *policy, GError **error)
{
	struct service s = { .options = options, .policy = policy, .ready_fd = -1 };
	g_autofree char *message = NULL;

	s.view.ready = service_ready;
	s.view.ready_user = &s;
	if (mount_is_stale(options->mountpoint) && !unmount_once(options->mountpoint, true, &message)) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_BUSY, "the stale mount on %s can't be cleared: %s", options->mountpoint,
			    message ? message : "");
		policy_free(policy);
		return false;
	}
	if (mount_is_ours(options->mountpoint)) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_BUSY, "%s is mounted already", options->mountpoint);
		policy_free(policy);
		return false;
	}
	if (options->foreground)
		return service_run(&s, error);
	return run_in_background(&s, error);
}
