/* SPDX-License-Identifier: MIT */
#include "snapshot/audit_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/audit.h"
#include "snapshot/audit_json.h"
#include "snapshot/audit_writer.h"

/* Read at a time, so that no transaction is open while something is written. */
#define CHUNK_LINES 256
#define CHUNK_BYTES (1024 * 1024)
#define TICK_MS 100

struct audit_sink {
	char *dir;
	enum audit_sink_kind kind;
	audit_sink_left_fn left;
	void *user;
	GThread *thread;
	int fd;
	/* Of the thread */
	struct audit *audit;
	int64_t taken; /* the last record that is out */
	GPtrArray *lines;
	GArray *numbers; /* int64_t, of the lines */
	size_t bytes;

	GMutex lock; /* protects all below */
	GCond wake;
	bool news, complete;
	int64_t deadline; /* monotonic, us; 0 = not closing */
};

const char *audit_sink_kind_name(enum audit_sink_kind kind)
{
	static const char *const names[] = { "file", "syslog", "command" };

	return names[kind];
}

/* Writing */

static bool out_of_patience(struct audit_sink *s)
{
	bool over;

	g_mutex_lock(&s->lock);
	over = s->deadline && g_get_monotonic_time() >= s->deadline;
	g_mutex_unlock(&s->lock);
	return over;
}

/* Until it can be written to, or nobody wants to wait any more. */
static int wait_for(struct audit_sink *s)
{
	struct pollfd fd = { .fd = s->fd, .events = POLLOUT };

	while (poll(&fd, 1, TICK_MS) <= 0)
		if (out_of_patience(s))
			return -ETIMEDOUT;
	return 0;
}

static int put_stream(struct audit_sink *s, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(s->fd, data, size);
		int r = 0;

		if (n < 0 && errno != EINTR)
			r = errno == EAGAIN ? wait_for(s) : -errno;
		if (r < 0)
			return r;
		if (n > 0) {
			data += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static int put_datagram(struct audit_sink *s, const char *line)
{
	g_autofree char *name = g_path_get_basename(s->dir);
	g_autofree char *text = NULL;
	time_t now = time(NULL);
	struct tm tm;
	char stamp[32];

	localtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%h %e %T", &tm);
	text = g_strdup_printf("<%d>%s sbxfs-%s[%d]: %.*s", LOG_USER | LOG_INFO, stamp, name, (int)getpid(), AUDIT_SINK_LOG_MAX, line);
	while (send(s->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		int r = errno == EAGAIN || errno == ENOBUFS ? wait_for(s) : errno == EINTR ? 0 : -errno;

		if (r < 0)
			return r;
	}
	return 0;
}

static int put_line(struct audit_sink *s, const char *line)
{
	g_autofree char *ended = NULL;

	if (s->kind == AUDIT_SINK_SYSLOG)
		return put_datagram(s, line);
	ended = g_strconcat(line, "\n", NULL);
	return put_stream(s, ended, strlen(ended));
}

/* The thread */

static bool collect(const struct audit_record *r, const uint8_t *hash, void *user)
{
	struct audit_sink *s = user;
	char *line = audit_json_line(r, hash);

	s->bytes += strlen(line);
	g_ptr_array_add(s->lines, line);
	g_array_append_val(s->numbers, r->seq);
	return s->lines->len < CHUNK_LINES && s->bytes < CHUNK_BYTES;
}

/* Some records. Returns how many lines went out, 0 when there are none. */
static int take_chunk(struct audit_sink *s)
{
	const struct audit_filter f = { .after = s->taken };
	int r;

	g_ptr_array_set_size(s->lines, 0);
	g_array_set_size(s->numbers, 0);
	s->bytes = 0;
	r = audit_list(s->audit, s->dir, false, &f, collect, s);
	for (guint i = 0; r == 0 && i < s->lines->len; i++) {
		r = out_of_patience(s) ? -ETIMEDOUT : put_line(s, s->lines->pdata[i]);
		if (r == 0)
			s->taken = g_array_index(s->numbers, int64_t, i);
	}
	return r < 0 ? r : (int)s->lines->len;
}

/* False when the sink is closed and everything was said. */
static bool wait_for_news(struct audit_sink *s)
{
	bool more;

	g_mutex_lock(&s->lock);
	while (!s->news && !s->deadline)
		g_cond_wait(&s->wake, &s->lock);
	more = s->news;
	s->news = false;
	g_mutex_unlock(&s->lock);
	return more;
}

static gpointer sink_main(gpointer data)
{
	struct audit_sink *s = data;
	int r = 0;

	while (r >= 0 && wait_for_news(s))
		do
			r = take_chunk(s);
		while (r > 0);
	/* Who closes it is told by the answer. */
	if (r < 0 && r != -ETIMEDOUT)
		s->left(s->kind, r == -EPIPE ? "nobody reads it any more" : g_strerror(-r), s->user);
	g_mutex_lock(&s->lock);
	s->complete = r != -ETIMEDOUT;
	g_mutex_unlock(&s->lock);
	return NULL;
}

/* Opening */

static int open_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || g_strlcpy(address.sun_path, path, sizeof(address.sun_path)) >= sizeof(address.sun_path) ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		int r = fd < 0 || errno ? -errno : -ENAMETOOLONG;

		if (fd >= 0)
			close(fd);
		return r;
	}
	return fd;
}

/* In the child: signals as a program expects them, not as our threads have them. */
static void child_setup(gpointer user)
{
	sigset_t none;

	(void)user;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
}

static int open_command(const char *dir, const char *command, GError **error)
{
	const GSpawnFlags flags = G_SPAWN_SEARCH_PATH | G_SPAWN_CLOEXEC_PIPES | G_SPAWN_STDOUT_TO_DEV_NULL;
	g_autofree char *name = g_path_get_basename(dir);
	g_auto(GStrv) argv = NULL;
	g_auto(GStrv) environment = g_environ_setenv(g_get_environ(), "SBXFS_SANDBOX", name, TRUE);
	int fd;

	/* Without DO_NOT_REAP_CHILD a process of GLib's in between is its parent, so it is nobody's to wait for. */
	if (!g_shell_parse_argv(command, NULL, &argv, error) ||
	    !g_spawn_async_with_pipes("/", argv, environment, flags, child_setup, NULL, NULL, &fd, NULL, NULL, error))
		return -1;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static int open_target(const char *dir, enum audit_sink_kind kind, const char *target, GError **error)
{
	int fd;

	errno = 0;
	if (kind == AUDIT_SINK_COMMAND)
		return open_command(dir, target, error);
	if (kind == AUDIT_SINK_SYSLOG) {
		fd = open_socket(target);
	} else {
		fd = open(target, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
		fd = fd < 0 ? -errno : fd;
	}
	if (fd < 0)
		g_set_error(error, AUDIT_ERROR, AUDIT_ERROR_SINK, "%s: %s", target, g_strerror(-fd));
	return fd;
}

static void sink_free(struct audit_sink *s)
{
	if (s->fd >= 0)
		close(s->fd);
	audit_close(s->audit);
	g_ptr_array_unref(s->lines);
	g_array_unref(s->numbers);
	g_mutex_clear(&s->lock);
	g_cond_clear(&s->wake);
	g_free(s->dir);
	g_free(s);
}

struct audit_sink *audit_sink_open(const char *dir, enum audit_sink_kind kind, const char *target, int64_t after, audit_sink_left_fn left,
				   void *user, GError **error)
{
	struct audit_sink *s = g_new0(struct audit_sink, 1);
	g_autoptr(GError) failure = NULL;
	sigset_t all, before;

	*s = (struct audit_sink){ .dir = g_strdup(dir), .kind = kind, .left = left, .user = user, .taken = after, .fd = -1 };
	g_mutex_init(&s->lock);
	g_cond_init(&s->wake);
	s->lines = g_ptr_array_new_with_free_func(g_free);
	s->numbers = g_array_new(FALSE, FALSE, sizeof(int64_t));
	if (audit_open(dir, false, &s->audit) < 0)
		g_set_error(&failure, AUDIT_ERROR, AUDIT_ERROR_SINK, "%s: the audit cannot be read", dir);
	else
		s->fd = open_target(dir, kind, target, &failure);
	if (s->fd < 0) {
		g_set_error(error, AUDIT_ERROR, AUDIT_ERROR_SINK, "the copy of the audit (%s): %s", audit_sink_kind_name(kind), failure->message);
		sink_free(s);
		return NULL;
	}
	/* Signals are the main thread's; that nobody reads a pipe is an error here. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	s->news = true;
	s->thread = g_thread_new("audit-sink", sink_main, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return s;
}

void audit_sink_wake(struct audit_sink *s)
{
	g_mutex_lock(&s->lock);
	s->news = true;
	g_cond_signal(&s->wake);
	g_mutex_unlock(&s->lock);
}

bool audit_sink_close(struct audit_sink *s)
{
	bool complete;

	g_mutex_lock(&s->lock);
	s->news = true;
	s->deadline = g_get_monotonic_time() + AUDIT_SINK_PATIENCE_MS * 1000;
	g_cond_signal(&s->wake);
	g_mutex_unlock(&s->lock);
	g_thread_join(s->thread);
	complete = s->complete;
	sink_free(s);
	return complete;
}
