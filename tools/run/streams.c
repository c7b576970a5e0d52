/* SPDX-License-Identifier: MIT */
#include "tools/run/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/run/excerpt.h"

#define BLOCK_SIZE 65536

enum end { END_INPUT, END_OUTPUT, END_ERROR };
#define END_COUNT 3

struct pump {
	struct streams *streams;
	int from, to;
	bool is_input;
	struct excerpt *excerpt; /* NULL = nothing is kept */
	GThread *thread;
};

struct streams {
	int child[END_COUNT];	/* what the program gets */
	bool shares[END_COUNT]; /* the descriptor of the stream before it */
	struct pump pumps[END_COUNT];
	uint64_t limit;
	size_t keep;
	uint64_t written; /* atomic */
	int full;
	int stop; /* becomes readable when nobody needs input any more */
};

/* Pumping */

static bool write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		size -= n;
	}
	return true;
}

/* How much of @n bytes may still go out. */
static size_t count(const struct pump *p, size_t n)
{
	struct streams *s = p->streams;
	uint64_t before;

	if (p->is_input || !s->limit)
		return n;
	before = __atomic_fetch_add(&s->written, n, __ATOMIC_RELAXED);
	if (before + n <= s->limit)
		return n;
	eventfd_write(s->full, 1);
	return before < s->limit ? s->limit - before : 0;
}

/* Input may never come. */
static bool wait_for_input(const struct pump *p)
{
	struct pollfd fds[] = { { .fd = p->from, .events = POLLIN }, { .fd = p->streams->stop, .events = POLLIN } };

	while (poll(fds, G_N_ELEMENTS(fds), -1) < 0)
		if (errno != EINTR)
			return false;
	return !fds[1].revents;
}

/* When nobody takes it any more, the other side learns of it as from a pipe: by SIGPIPE or the end of its input. */
static gpointer pump_main(gpointer data)
{
	struct pump *p = data;
	g_autofree char *block = g_malloc(BLOCK_SIZE);

	while (!p->is_input || wait_for_input(p)) {
		ssize_t n = read(p->from, block, BLOCK_SIZE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (p->excerpt)
			excerpt_add(p->excerpt, block, (size_t)n);
		if (!write_all(p->to, block, count(p, n)))
			break;
	}
	close(p->is_input ? p->to : p->from);
	return NULL;
}

/* Choosing */

static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static bool is_harmless(int fd, const struct stat *st, bool counted)
{
	return isatty(fd) || is_null_device(st) || (S_ISFIFO(st->st_mode) && !counted);
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool make_pump(struct streams *s, enum end which, GError **error)
{
	bool in = which == END_INPUT;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0) {
		tool_error_errno(error, -errno, NULL, "pipe");
		return false;
	}
	s->child[which] = fds[in ? 0 : 1];
	s->pumps[which] = (struct pump){
		.streams = s,
		.from = in ? STDIN_FILENO : fds[0],
		.to = in ? fds[1] : (int)which,
		.is_input = in,
		.excerpt = in || !s->keep ? NULL : excerpt_new(s->keep),
	};
	return true;
}

static bool choose(struct streams *s, enum end which, GError **error)
{
	int fd = which;
	struct stat st;

	if (fstat(fd, &st) < 0) {
		s->child[which] = open("/dev/null", O_RDWR | O_CLOEXEC);
		return true;
	}
	if (S_ISDIR(st.st_mode)) {
		tool_error(error, EXIT_USAGE, NULL,
			   "descriptor %d is a directory, which would lead out of the confinement", fd);
		return false;
	}
	if (is_harmless(fd, &st, which != END_INPUT && (s->limit || s->keep))) {
		s->child[which] = fcntl(fd, F_DUPFD_CLOEXEC, END_COUNT);
		return true;
	}
	/* One pipe for both keeps their lines in order. */
	if (which == END_ERROR && s->pumps[END_OUTPUT].streams && same_file(STDOUT_FILENO, STDERR_FILENO)) {
		s->child[which] = s->child[END_OUTPUT];
		s->shares[which] = true;
		return true;
	}
	return make_pump(s, which, error);
}

struct streams *streams_new(uint64_t limit, size_t keep, GError **error)
{
	struct streams *s = g_new0(struct streams, 1);

	s->limit = limit;
	s->keep = keep;
	s->full = eventfd(0, EFD_CLOEXEC);
	s->stop = eventfd(0, EFD_CLOEXEC);
	for (int i = 0; i < END_COUNT; i++)
		s->child[i] = -1;
	for (int i = 0; i < END_COUNT; i++) {
		if (choose(s, (enum end)i, error))
			continue;
		streams_free(s);
		return NULL;
	}
	return s;
}

bool streams_enter(const struct streams *s)
{
	for (int i = 0; i < END_COUNT; i++)
		if (dup2(s->child[i], i) < 0)
			return false;
	return true;
}

static void close_child_ends(struct streams *s)
{
	for (int i = 0; i < END_COUNT; i++) {
		if (s->child[i] >= 0 && !s->shares[i])
			close(s->child[i]);
		s->child[i] = -1;
	}
}

void streams_start(struct streams *s)
{
	close_child_ends(s);
	for (int i = 0; i < END_COUNT; i++)
		if (s->pumps[i].streams)
			s->pumps[i].thread = g_thread_new("pump", pump_main, &s->pumps[i]);
}

int streams_full_fd(const struct streams *s)
{
	return s->full;
}

void streams_finish(struct streams *s)
{
	eventfd_write(s->stop, 1);
	for (int i = 0; i < END_COUNT; i++)
		if (s->pumps[i].thread)
			g_thread_join(g_steal_pointer(&s->pumps[i].thread));
}

const struct excerpt *streams_excerpt(const struct streams *s, int fd)
{
	return s->pumps[fd].excerpt;
}

void streams_free(struct streams *s)
{
	close_child_ends(s);
	for (int i = 0; i < END_COUNT; i++)
		if (s->pumps[i].excerpt)
			excerpt_free(s->pumps[i].excerpt);
	close(s->full);
	close(s->stop);
	g_free(s);
}
