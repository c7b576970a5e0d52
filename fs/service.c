/* SPDX-License-Identifier: MIT */
#include "fs/service.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "fs/control.h"
#include "fs/fuse_device.h"
#include "fs/fuse_loop.h"
#include "fs/fuse_ops.h"
#include "fs/heritage.h"
#include "fs/keeper.h"
#include "fs/mount.h"
#include "fs/mount_table.h"
#include "fs/overlay.h"
#include "fs/roster.h"
#include "rules/policy.h"
#include "snapshot/audit_writer.h"
#include "snapshot/store.h"

/* Threads that serve requests. */
#define WORKERS 8

struct service {
	const struct mount_options *options;
	struct policy *policy; /* until the overlay takes it */
	struct keeper_held *held;
	struct heritage *heritage;
	bool takes_over; /* the view is mounted, and its last process died */
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
	struct service *s = user;

	if (s->heritage)
		__atomic_store_n(&s->heritage->ready, 1, __ATOMIC_RELEASE);
	service_report(s, NULL);
	if (s->options->foreground && s->options->ready)
		s->options->ready(s->options->ready_user);
}

/*
 * The kernel may let this thread wait for a lock that it holds until one of our requests is answered; killed, it would keep the locks of the store and
 * the audit from the process that has to answer. So it has nothing but the connection.
 */
static void leave_files(void *user)
{
	unsigned fd = (unsigned)fuse_session_fd(((struct service *)user)->session);

	if (close_range(fd + 1, ~0U, CLOSE_RANGE_UNSHARE) < 0 || close_range(3, fd - 1, 0) < 0)
		g_debug("the invalidating thread shares the descriptors");
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

static void add_held(const struct roster_node *n, void *user)
{
	if (n->lookups > 0)
		g_hash_table_add(user, g_memdup2(&n->ino, sizeof(n->ino)));
}

static bool is_held(uint64_t ino, void *user)
{
	return g_hash_table_contains(user, &ino);
}

static struct store *open_store(struct service *s, GError **error)
{
	g_autoptr(GHashTable) held = NULL;

	if (!s->takes_over)
		return store_open_patiently(s->options->store, error);
	held = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	roster_each(s->heritage->roster, add_held, held);
	return store_take_over(s->options->store, s->held->fds[KEEPER_LOCK], is_held, held, error);
}

/* The store's errors come from below; here they become what a mount can say about them. */
static struct overlay *open_overlay(struct service *s, GError **error)
{
	struct lower *lower;
	struct store *store;
	GError *why = NULL;
	int r = s->takes_over ? lower_open_given(&s->held->fds[KEEPER_WORKSPACE], s->options->workspace, &lower) :
				lower_open(s->options->workspace, &lower);

	if (r < 0) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "workspace %s: %s", s->options->workspace, g_strerror(-r));
		return NULL;
	}
	store = open_store(s, &why);
	if (!store) {
		bool busy = g_error_matches(why, STORE_ERROR, STORE_ERROR_BUSY);

		g_set_error(error, MOUNT_ERROR, busy ? MOUNT_ERROR_BUSY : MOUNT_ERROR_STORE, "%s", why->message);
		g_error_free(why);
		lower_close(lower);
		return NULL;
	}
	if (!s->takes_over)
		store_set(store, "mountpoint", s->options->mountpoint);
	r = store_set_limit(store, s->takes_over ? s->heritage->disk_limit : s->options->disk_limit);
	if (r < 0) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_STORE, "store %s: the limit disk: %s", s->options->store, g_strerror(-r));
		store_close(store);
		lower_close(lower);
		return NULL;
	}
	return overlay_new(store, lower, g_steal_pointer(&s->policy));
}

static enum mount_error code_of_audit(const GError *why)
{
	return g_error_matches(why, AUDIT_ERROR, AUDIT_ERROR_BUSY)   ? MOUNT_ERROR_BUSY
	       : g_error_matches(why, AUDIT_ERROR, AUDIT_ERROR_SINK) ? MOUNT_ERROR_POLICY
								     : MOUNT_ERROR_STORE;
}

/* Old records go at a mount only: a program in the view could push out by much what it did, and kill this process somehow. */
static bool open_audit(struct service *s, GError **error)
{
	struct audit_options options = { 0 };
	GError *why = NULL;

	if (s->options->audit)
		options = *s->options->audit;
	if (s->takes_over)
		options.keep_time = options.keep_bytes = 0;
	if (overlay_audit(s->view.overlay, &options, &why))
		return true;
	g_set_error(error, MOUNT_ERROR, code_of_audit(why), "%s%s", why->message,
		    g_error_matches(why, AUDIT_ERROR, AUDIT_ERROR_SINK) ? " (asked for by [audit] of the policy)" : "");
	g_error_free(why);
	return false;
}

static bool service_open(struct service *s, GError **error)
{
	int r;

	s->view.overlay = open_overlay(s, error);
	if (!s->view.overlay)
		return false;
	if (s->heritage && !s->takes_over)
		s->heritage->disk_limit = s->options->disk_limit;
	r = s->heritage ? overlay_inherit(s->view.overlay, s->heritage) : 0;
	if (r < 0) {
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_STORE, "store %s: what the kernel holds is not found: %s", s->options->store, g_strerror(-r));
		return false;
	}
	if (!s->takes_over)
		overlay_release(s->view.overlay);
	if (!open_audit(s, error))
		return false;
	r = overlay_questions(s->view.overlay);
	if (r < 0)
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_STORE, "what was allowed before cannot be read: %s", g_strerror(-r));
	return r == 0;
}


static bool make_session(struct service *s, GError **error)
{
	static const char *const arguments[] = { "sbxfs", "-d", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(s->options->debug ? 2 : 1, (char **)arguments);

	s->session = fuse_session_new(&args, &fuse_view_ops, sizeof(fuse_view_ops), &s->view);
	fuse_opt_free_args(&args);
	s->view.session = s->session;
	fuse_device_inherit(s->heritage);
	if (!s->session)
		g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "libfuse starts no session");
	return s->session;
}

static bool attach_session(struct service *s, int fd, GError **error)
{
	if (fuse_device_attach(s->session, fd) == 0)
		return true;
	close(fd);
	g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "libfuse does not take the connection");
	return false;
}

static bool give(struct service *s, int device)
{
	int fds[KEEPER_FDS] = { [KEEPER_DEVICE] = device, [KEEPER_LOCK] = store_lock(overlay_store(s->view.overlay)) };

	lower_give(overlay_lower(s->view.overlay), &fds[KEEPER_WORKSPACE]);
	return keeper_give(s->held, fds);
}

static bool service_mount(struct service *s, GError **error)
{
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
	if (!make_session(s, error))
		return false;
	fd = fuse_device_mount(s->options->mountpoint, options, error);
	if (fd < 0)
		return false;
	s->mounted = true;
	if (s->held && !give(s, fd))
		g_printerr("sbxfs: nobody replaces this process if it dies\n");
	return attach_session(s, fd, error);
}

/* The same without a mount: the kernel has the view already, and goes on with it as with the process before. */
static bool service_resume(struct service *s, GError **error)
{
	if (!make_session(s, error) || !attach_session(s, s->held->fds[KEEPER_DEVICE], error))
		return false;
	if (fuse_device_resume(s->session))
		return true;
	g_set_error(error, MOUNT_ERROR, MOUNT_ERROR_FAILED, "libfuse does not take up the connection");
	return false;
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

/* Async-signal-safe. */
static void die(int signal_number)
{
	char text[] = "sbxfs: signal 00 in the process that serves the view\n";

	text[sizeof("sbxfs: signal ") - 1] = (char)('0' + signal_number / 10);
	text[sizeof("sbxfs: signal ")] = (char)('0' + signal_number % 10);
	/* Nothing can be done where the log takes no more. */
	while (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 && errno == EINTR)
		;
	kill(getpid(), SIGKILL);
}

/*
 * A signal that dumps core waits for all threads with their descriptors open, also for one that the kernel lets wait until the next process
 * answers: leave_files(). And bytes of the workspace have no business in a core. A handler that is there already has its reasons (sanitizers).
 */
static void dump_no_core(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP };
	struct sigaction act = { .sa_handler = die, .sa_flags = SA_ONSTACK }, before;

	for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
			sigaction(signals[i], &act, NULL);
}

/* What could not be committed waits, and is tried again. */
static void not_flushed(int r)
{
	if (r < 0)
		g_debug("changes are not committed: %s", g_strerror(-r));
}

#define CHECKPOINT_PAUSE (G_TIME_SPAN_SECOND / 2)
#define CHECKPOINT_IDLE (16 * G_TIME_SPAN_SECOND)

static uint64_t requests_so_far(void)
{
	uint64_t counts[FUSE_DEVICE_OPCODES], all = 0;

	fuse_device_counts(counts);
	for (int i = 0; i < FUSE_DEVICE_OPCODES; i++)
		all += counts[i];
	return all;
}

/*
 * Keeps the write-ahead log short without making a request wait for it, until something is pushed on the queue. A view that nobody uses wakes
 * no processor twice a second; what comes right after such a pause is kept short by the commits themselves.
 */
static gpointer checkpoint_main(gpointer data)
{
	struct service *s = data;
	uint64_t before = 0;
	int64_t pause = CHECKPOINT_PAUSE;

	while (!g_async_queue_timeout_pop(s->checkpoint_stop, pause)) {
		uint64_t requests = requests_so_far();

		pause = requests == before ? MIN(2 * pause, CHECKPOINT_IDLE) : CHECKPOINT_PAUSE;
		before = requests;
		not_flushed(overlay_flush(s->view.overlay));
		store_checkpoint(overlay_store(s->view.overlay));
	}
	return NULL;
}

static void service_record(struct service *s, const char *operation)
{
	g_autofree char *detail = g_strdup_printf("%s, policy %s", s->options->mountpoint, policy_name(overlay_policy(s->view.overlay)));

	overlay_record(s->view.overlay, AUDIT_MOUNT, operation, detail);
}

static bool service_start(struct service *s, GError **error)
{
	struct overlay_watcher watcher = { .begin = leave_files, .expire_entry = expire_entry, .inval_inode = inval_inode, .user = s };
	bool ok = service_open(s, error);

	if (!ok)
		return false;
	block_signals(true);
	ok = s->takes_over ? service_resume(s, error) : service_mount(s, error);
	if (ok) {
		overlay_watch(s->view.overlay, &watcher);
		overlay_on_wait(s->view.overlay, fuse_loop_may_wait);
		s->checkpoint_stop = g_async_queue_new();
		s->checkpoint = g_thread_new("checkpoint", checkpoint_main, s);
		s->control = control_serve(s->view.overlay, s->options->socket, error);
		ok = s->control != NULL;
	}
	if (ok)
		service_record(s, s->takes_over ? "takeover" : "mount");
	/* Failing before this, a process that takes over leaves the view to the next one. */
	s->mounted = s->mounted || ok;
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
	/* Unmounted by somebody else, another sandbox's view may be there by now; one of this sandbox cannot, for we have the store. */
	if (s->mounted && mount_is_of(s->options->mountpoint, s->options->name))
		mount_detach(s->options->mountpoint, true, &message);
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

static void idle(void *user)
{
	not_flushed(overlay_flush_idle(((struct service *)user)->view.overlay));
}

static void service_loop(struct service *s)
{
	/* Those that wait for a human are not missed by the others. */
	const struct fuse_loop_options options = { .max_threads = WORKERS + QUESTION_WAITING_MAX, .idle = idle, .user = s };
	bool gone = false;

	fuse_set_signal_handlers(s->session);
	if (s->takes_over) {
		gone = fuse_device_resend(s->session) < 0;
		overlay_refresh(s->view.overlay);
	}
	if (!gone)
		fuse_loop_run(s->session, &options);
}

bool service_run(const struct service_start *start, GError **error)
{
	struct service s = { .options = start->options, .policy = start->policy, .ready_fd = start->ready_fd,
			     .held = start->held, .heritage = start->heritage };
	GError *why = NULL;

	if (s.held)
		dump_no_core();
	s.takes_over = s.held && s.held->fds[KEEPER_DEVICE] >= 0;
	s.view.ready = service_ready;
	s.view.ready_user = &s;
	if (service_start(&s, &why)) {
		service_loop(&s);
		service_stop(&s);
		return true;
	}
	service_report(&s, why);
	service_stop(&s);
	g_propagate_error(error, why);
	return false;
}
