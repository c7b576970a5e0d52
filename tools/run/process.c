/* SPDX-License-Identifier: MIT */
#include "tools/run/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define POINTERS_MAX 1024 /* of one list, at a time; what iovecs one call takes */
#define PIECE 256	  /* most strings are shorter */

/* /proc */

bool process_read_text(pid_t pid, const char *name, char text[static PROCESS_TEXT_SIZE])
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, PROCESS_TEXT_SIZE - 1);
	close(fd);
	text[MAX(n, 0)] = '\0';
	return n > 0;
}

static bool find_number(const char *text, const char *key, uint32_t *ret)
{
	const char *line = strstr(text, key);

	return line && sscanf(line + strlen(key), "%" SCNu32, ret) == 1;
}

bool process_identify(pid_t tid, struct process_identity *ret)
{
	char text[PROCESS_TEXT_SIZE];
	uint32_t pid, parent, uid;

	/* The name comes first; newlines in it are escaped, so what looks like a key is one. */
	if (!process_read_text(tid, "status", text) || !find_number(text, "\nTgid:", &pid) ||
	    !find_number(text, "\nPPid:", &parent) || !find_number(text, "\nUid:", &uid))
		return false;
	*ret = (struct process_identity){ .pid = (pid_t)pid, .parent = (pid_t)parent, .uid = uid };
	return sscanf(text, "Name:\t%15[^\n]", ret->name) == 1 || !ret->name[0];
}

static char *read_link(const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target));

	return n > 0 ? g_strndup(target, (gsize)n) : NULL;
}

char *process_cwd(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
	return read_link(path);
}

char *process_descriptor(pid_t pid, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	return read_link(path);
}

int process_root(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Memory. A read stops at the first page that is not there, so none crosses the end of a page that was not asked for. */

static size_t to_page_end(uint64_t address, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return MIN(size, page - address % page);
}

static ssize_t read_at(pid_t pid, uint64_t address, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)address, size };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0);
}

/* Goes on with a string of which @s has the start, until it ends or is @max bytes long. False when its memory is not there. */
static bool read_on(pid_t pid, uint64_t address, char until, size_t max, GString *s)
{
	char piece[PIECE];

	while (s->len < max) {
		size_t want = to_page_end(address + s->len, MIN(sizeof(piece), max - s->len));
		ssize_t n = read_at(pid, address + s->len, piece, want);
		size_t used = 0;

		if (n <= 0)
			return false;
		while (used < (size_t)n && piece[used] && !(until && piece[used] == until))
			used++;
		g_string_append_len(s, piece, (gssize)used);
		if (used < (size_t)n)
			break;
	}
	return true;
}

char *process_string(pid_t pid, uint64_t address, size_t max)
{
	GString *s = g_string_new(NULL);
	bool ok = read_on(pid, address, '\0', max, s);

	return g_string_free(s, !ok);
}

/* Some pointers of the list at @address. Returns how many, 0 when there are none; -1 when they cannot be read. */
static int read_pointers(pid_t pid, uint64_t address, uint64_t pointers[static POINTERS_MAX])
{
	size_t have = 0, n = 0;

	while (have < POINTERS_MAX * sizeof(*pointers)) {
		size_t want = to_page_end(address + have, MIN(PIECE, POINTERS_MAX * sizeof(*pointers) - have));
		ssize_t got = read_at(pid, address + have, (char *)pointers + have, want);

		if (got <= 0)
			return n > 0 ? (int)n : -1;
		have += (size_t)got;
		for (; n < have / sizeof(*pointers); n++)
			if (!pointers[n])
				return (int)n;
	}
	return (int)n;
}

/* The start of each string, with one call for all: what could be read stands in @pieces, ended by NULs. */
static void read_starts(pid_t pid, const uint64_t *pointers, int count, char (*pieces)[PIECE])
{
	g_autofree struct iovec *local = g_new(struct iovec, count);
	g_autofree struct iovec *remote = g_new(struct iovec, count);

	memset(pieces, 0, (size_t)count * PIECE);
	for (int i = 0; i < count; i++) {
		size_t size = to_page_end(pointers[i], PIECE - 1);

		local[i] = (struct iovec){ pieces[i], size };
		remote[i] = (struct iovec){ (void *)(uintptr_t)pointers[i], size };
	}
	if (process_vm_readv(pid, local, (unsigned long)count, remote, (unsigned long)count, 0) < 0)
		memset(pieces, 0, (size_t)count * PIECE);
}

/* One string, of which @piece may be the start. */
static char *take(pid_t pid, uint64_t address, const char *piece, size_t known, char until, size_t max)
{
	size_t used = 0;
	GString *s;

	while (used < known && piece[used] && !(until && piece[used] == until))
		used++;
	s = g_string_new_len(piece, (gssize)MIN(used, max));
	/* Nothing known looks like the empty string. */
	if (used == known || used == 0)
		read_on(pid, address, until, max, s);
	return g_string_free(s, FALSE);
}

GPtrArray *process_strings(pid_t pid, uint64_t address, char until, size_t max, bool *ret_cut)
{
	g_autofree uint64_t *pointers = g_new(uint64_t, POINTERS_MAX);
	g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(g_free);
	int count = address ? read_pointers(pid, address, pointers) : 0;
	g_autofree char(*pieces)[PIECE] = NULL;
	size_t used = 0;

	if (count < 0)
		return NULL;
	pieces = g_malloc((size_t)MAX(count, 1) * PIECE);
	read_starts(pid, pointers, count, pieces);
	*ret_cut = count == POINTERS_MAX;
	for (int i = 0; i < count; i++) {
		char *s;

		if (used >= max) {
			*ret_cut = true;
			break;
		}
		s = take(pid, pointers[i], pieces[i], to_page_end(pointers[i], PIECE - 1), until, max - used);
		used += strlen(s) + 1;
		*ret_cut = *ret_cut || used > max;
		g_ptr_array_add(all, s);
	}
	return g_steal_pointer(&all);
}
