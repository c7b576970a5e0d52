/* SPDX-License-Identifier: MIT */
#include "snapshot/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "snapshot/journal.h"
#include "snapshot/place.h"
#include "snapshot/xattr.h"

#define CHUNK (256 * 1024)
#define HOLE 4096 /* zeros of this size and alignment become holes in a file that has holes */

#define XATTR_ACL "system.posix_acl_"

/* Notes */

struct note {
	char *what;
	char *first;
	guint count;
};

struct notes {
	GPtrArray *list;
};

static void note_free(gpointer data)
{
	struct note *n = data;

	g_free(n->what);
	g_free(n->first);
	g_free(n);
}

struct notes *notes_new(void)
{
	struct notes *n = g_new0(struct notes, 1);

	n->list = g_ptr_array_new_with_free_func(note_free);
	return n;
}

void notes_free(struct notes *n)
{
	if (!n)
		return;
	g_ptr_array_unref(n->list);
	g_free(n);
}

void notes_add(struct notes *n, const char *what, const char *path)
{
	struct note *note;

	for (guint i = 0; i < n->list->len; i++) {
		note = g_ptr_array_index(n->list, i);
		if (strcmp(note->what, what) == 0) {
			note->count++;
			return;
		}
	}
	note = g_new0(struct note, 1);
	*note = (struct note){ .what = g_strdup(what), .first = g_strdup(path), .count = 1 };
	g_ptr_array_add(n->list, note);
}

GPtrArray *notes_list(struct notes *n)
{
	GPtrArray *strings = g_ptr_array_new_with_free_func(g_free);

	for (guint i = 0; i < n->list->len; i++) {
		const struct note *note = g_ptr_array_index(n->list, i);

		g_ptr_array_add(strings, note->count == 1 ?
						 g_strdup_printf("%s: %s", note->first, note->what) :
						 g_strdup_printf("%s and %u more: %s", note->first, note->count - 1, note->what));
	}
	return strings;
}

/* Attributes. The magic link of an O_PATH descriptor leads to the very object, a symlink included, and no further. */

struct magic {
	char path[32];
	int fd;
};

static int magic_open(int dirfd, const char *name, struct magic *m)
{
	m->fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (m->fd < 0)
		return -errno;
	snprintf(m->path, sizeof(m->path), "/proc/self/fd/%d", m->fd);
	return 0;
}

static int read_xattrs(const char *magic, GBytes **ret)
{
	g_autofree char *names = NULL, *value = NULL;
	GBytes *set = NULL;
	ssize_t size = xattr_grow(magic, NULL, &names);

	for (char *name = names; size > 0 && name < names + size; name += strlen(name) + 1) {
		ssize_t n = xattr_grow(magic, name, &value);
		GBytes *more;

		if (n < 0)
			continue; /* gone again, or not ours to read */
		more = xattrs_with(set, name, value ? value : "", n);
		g_clear_pointer(&set, g_bytes_unref);
		set = more;
	}
	if (size < 0 && size != -EOPNOTSUPP)
		return size;
	*ret = set;
	return 0;
}

int stage_xattrs(int dirfd, const char *name, GBytes **ret)
{
	struct magic m;
	int r = magic_open(dirfd, name, &m);

	if (r < 0)
		return r;
	r = read_xattrs(m.path, ret);
	close(m.fd);
	return r;
}

/* Labels and seals that the system gives by its own rules are not carried around. */
static bool is_carried(const char *name)
{
	return !g_str_has_prefix(name, "security.") || strcmp(name, "security.capability") == 0;
}

struct xattr_work {
	const char *magic;
	const struct stage_attr *attr;
	int r;
};

static void xattr_failed(struct xattr_work *w, const char *name)
{
	g_autofree char *what = g_strdup_printf("the extended attribute %s could not be set: %s", name, g_strerror(errno));

	if (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EROFS)
		w->r = -errno;
	else
		notes_add(w->attr->notes, what, w->attr->path);
}

static void xattr_set_one(const char *name, const void *value, size_t size, void *user)
{
	struct xattr_work *w = user;

	if (w->r == 0 && is_carried(name) && setxattr(w->magic, name, value, size, 0) < 0)
		xattr_failed(w, name);
}

static void xattr_remove_one(const char *name, const void *value, size_t size, void *user)
{
	struct xattr_work *w = user;

	if (w->r == 0 && is_carried(name) && !xattrs_get(w->attr->xattrs, name, &value, &size) && removexattr(w->magic, name) < 0 &&
	    errno != ENODATA)
		xattr_failed(w, name);
}

/* Their owner may change attributes of a file that he may not write: *ret_opened when it got the bit for that, to be taken back. */
static int set_xattrs(const char *magic, const struct attr *now, const struct stage_attr *attr, bool *ret_opened)
{
	struct xattr_work w = { .magic = magic, .attr = attr };
	GBytes *have = NULL;
	int r = read_xattrs(magic, &have);

	if (r == 0 && !xattrs_equal(have, attr->xattrs)) {
		*ret_opened = !(now->mode & S_IWUSR) && !S_ISLNK(now->mode) && geteuid() != 0 &&
			      chmod(magic, (now->mode & 07777) | S_IWUSR) == 0;
		xattrs_foreach(have, xattr_remove_one, &w);
		xattrs_foreach(attr->xattrs, xattr_set_one, &w);
	}
	g_clear_pointer(&have, g_bytes_unref);
	return r < 0 ? r : w.r;
}

/* Sets *ret_given to whether the object has the wanted owner and group now. */
static int set_owner(int fd, const struct attr *now, const struct stage_attr *attr, bool *ret_given)
{
	*ret_given = true;
	if (now->uid == attr->attr.uid && now->gid == attr->attr.gid)
		return 0;
	if (fchownat(fd, "", attr->attr.uid, attr->attr.gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (errno != EPERM && errno != EINVAL)
		return -errno;
	/* The group alone may be one of ours. */
	if (now->gid != attr->attr.gid)
		(void)!fchownat(fd, "", -1, attr->attr.gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
	*ret_given = false;
	notes_add(attr->notes, "the owner could not be set (not permitted), it is yours now", attr->path);
	return 0;
}

/*
 * The order: chown clears setuid bits and capabilities, so it comes first; an ACL changes the mode's group bits, so chmod comes after the
 * xattrs; everything before changes times.
 */
static int set_attr(struct magic *m, const struct stage_attr *attr)
{
	uint32_t mode = attr->attr.mode & 07777;
	struct fingerprint now;
	bool given = true, opened = false;
	int r = lower_stat_at(m->fd, "", &now);

	if (r == 0 && (attr->set & SET_OWNER))
		r = set_owner(m->fd, &now.attr, attr, &given);
	if (r == 0 && (attr->set & SET_XATTRS))
		r = set_xattrs(m->path, &now.attr, attr, &opened);
	if (r < 0 && opened)
		(void)!chmod(m->path, now.attr.mode & 07777);
	if (r < 0)
		return r;
	if ((opened || (attr->set & (SET_MODE | SET_OWNER))) && !S_ISLNK(now.attr.mode)) {
		if (!(attr->set & SET_MODE))
			mode = now.attr.mode & 07777;
		if (!given && (mode & (S_ISUID | S_ISGID)) && !S_ISDIR(now.attr.mode)) {
			mode &= ~(S_ISUID | S_ISGID);
			notes_add(attr->notes, "setuid and setgid bits are left out, as the owner is another one", attr->path);
		}
		if (chmod(m->path, mode) < 0)
			return -errno;
	}
	if (attr->set & SET_TIMES) {
		struct timespec ts[2] = { nsec_to_timespec(attr->attr.atime), nsec_to_timespec(attr->attr.mtime) };

		if (utimensat(AT_FDCWD, m->path, ts, 0) < 0)
			return -errno;
	}
	return 0;
}

int stage_set_attr(int dirfd, const char *name, const struct stage_attr *attr)
{
	struct magic m;
	int r = magic_open(dirfd, name, &m);

	if (r < 0)
		return r;
	r = set_attr(&m, attr);
	close(m.fd);
	return r;
}

/* Bytes */

static int write_at(int fd, const char *data, size_t size, uint64_t offset)
{
	while (size > 0) {
		ssize_t n = pwrite(fd, data, size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= n;
		offset += n;
	}
	return 0;
}

static bool is_zero(const char *data, size_t size)
{
	return size > 0 && data[0] == 0 && memcmp(data, data + 1, size - 1) == 0;
}

static int write_sparse(int fd, const char *data, size_t size, uint64_t offset)
{
	int r = 0;

	for (size_t done = 0; r == 0 && done < size; done += HOLE) {
		size_t n = MIN(HOLE, size - done);

		if (!is_zero(data + done, n))
			r = write_at(fd, data + done, n, offset + done);
	}
	return r;
}

typedef ssize_t (*read_fn)(void *source, void *buf, size_t size, uint64_t offset);

static ssize_t read_tree(void *source, void *buf, size_t size, uint64_t offset)
{
	return tree_file_read(source, buf, size, offset);
}

static ssize_t read_fd(void *source, void *buf, size_t size, uint64_t offset)
{
	ssize_t n;

	do {
		n = pread(*(int *)source, buf, size, offset);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int copy_bytes(read_fn fn, void *source, int fd, bool sparse)
{
	g_autofree char *buf = g_malloc(CHUNK);
	uint64_t offset = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = fn(source, buf, CHUNK, offset)) != 0) {
		if (n < 0)
			return n;
		r = sparse ? write_sparse(fd, buf, n, offset) : write_at(fd, buf, n, offset);
		offset += n;
	}
	if (r == 0 && sparse && ftruncate(fd, offset) < 0)
		r = -errno;
	return r;
}

static bool has_holes(const struct attr *a)
{
	return a->size >= HOLE && a->blocks * 512 < a->size;
}

/* Of a tree's entry */

static int stage_file(struct tree *t, const struct entry *e, int dirfd, const char *name)
{
	g_autoptr(tree_file_t) f = NULL;
	int fd, r = tree_file_open(t, e, &f);

	if (r < 0)
		return r;
	fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = copy_bytes(read_tree, f, fd, has_holes(&e->attr));
	close(fd);
	return r;
}

static int stage_bytes(GBytes *bytes, int dirfd, const char *name)
{
	gsize size;
	const char *data = g_bytes_get_data(bytes, &size);
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), r;

	if (fd < 0)
		return -errno;
	r = size ? write_at(fd, data, size, 0) : 0;
	close(fd);
	return r;
}

static int stage_symlink(struct tree *t, const struct entry *e, int dirfd, const char *name)
{
	g_autofree char *target = NULL;
	int r = tree_readlink(t, e, &target);

	if (r == 0 && symlinkat(target, dirfd, name) < 0)
		r = -errno;
	return r;
}

static int make_node(const struct attr *a, int dirfd, const char *name)
{
	return mknodat(dirfd, name, (a->mode & S_IFMT) | 0600, a->rdev) < 0 ? -errno : 0;
}

int stage_entry(struct tree *t, const struct entry *e, int dirfd, const char *name, const struct stage_attr *attr)
{
	int r;

	switch (e->attr.mode & S_IFMT) {
	case S_IFREG:
		r = attr->bytes ? stage_bytes(attr->bytes, dirfd, name) : stage_file(t, e, dirfd, name);
		break;
	case S_IFLNK:
		r = stage_symlink(t, e, dirfd, name);
		break;
	case S_IFDIR:
		r = mkdirat(dirfd, name, 0700) < 0 ? -errno : 0;
		break;
	default:
		r = make_node(&e->attr, dirfd, name);
		if (r == -EPERM || r == -EOPNOTSUPP) {
			notes_add(attr->notes, "left out: special files of this kind may not be made here", attr->path);
			return 1;
		}
	}
	return r < 0 ? r : stage_set_attr(dirfd, name, attr);
}

/* As a copy */

static int copy_file(int from, const char *from_name, const struct attr *a, int fd)
{
	int source = openat(from, from_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOATIME);
	int r;

	if (source < 0 && errno == EPERM)
		source = openat(from, from_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (source < 0)
		return -errno;
	r = copy_bytes(read_fd, &source, fd, has_holes(a));
	close(source);
	return r;
}

static int copy_link(int from, const char *from_name, int dirfd, const char *name)
{
	g_autofree char *target = g_malloc(PATH_MAX + 1);
	ssize_t n = readlinkat(from, from_name, target, PATH_MAX);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, dirfd, name) < 0 ? -errno : 0;
}

/* A file without a name, where the file system has that; else under @name. Sets *ret_named. */
static int make_file(int dirfd, const char *name, bool *ret_named)
{
	int fd = openat(dirfd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	*ret_named = false;
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL))
		return fd < 0 ? -errno : fd;
	*ret_named = true;
	fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int copy_regular(int from, const char *from_name, int dirfd, const char *name, const char *temporary,
			const struct stage_attr *attr)
{
	bool named;
	struct magic m;
	int fd = make_file(dirfd, temporary ? temporary : name, &named), r;

	if (fd < 0)
		return fd;
	boundary("copy made");
	snprintf(m.path, sizeof(m.path), "/proc/self/fd/%d", fd);
	m.fd = fd;
	r = copy_file(from, from_name, &attr->attr, fd);
	if (r == 0)
		r = set_attr(&m, attr);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	boundary("copy filled");
	if (r == 0 && !named && linkat(AT_FDCWD, m.path, dirfd, name, AT_SYMLINK_FOLLOW) < 0)
		r = -errno;
	if (r == 0 && named && temporary && renameat2(dirfd, temporary, dirfd, name, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r == -EINVAL && named && temporary) /* no RENAME_NOREPLACE here */
		r = linkat(dirfd, temporary, dirfd, name, 0) < 0 ? -errno : unlinkat(dirfd, temporary, 0);
	if (r < 0 && named)
		unlinkat(dirfd, temporary ? temporary : name, 0);
	close(fd);
	return r;
}

/*
 * Regular files appear under @name complete: they have no name until then, or @temporary on file systems without O_TMPFILE. Symlinks and
 * special files are complete when they are made, and get owner and times right after.
 */
int stage_copy(int from, const char *from_name, int dirfd, const char *name, const char *temporary, const char *path,
	       struct notes *notes)
{
	struct stage_attr attr = { .set = SET_MODE | SET_OWNER | SET_TIMES | SET_XATTRS, .path = path, .notes = notes };
	struct fingerprint print;
	GBytes *xattrs = NULL;
	int r = lower_stat_at(from, from_name, &print);

	if (r == 0)
		r = stage_xattrs(from, from_name, &xattrs);
	if (r < 0)
		return r;
	attr.attr = print.attr;
	attr.xattrs = xattrs;
	if (S_ISREG(print.attr.mode)) {
		r = copy_regular(from, from_name, dirfd, name, temporary, &attr);
	} else {
		if (S_ISLNK(print.attr.mode))
			r = copy_link(from, from_name, dirfd, name);
		else if (S_ISDIR(print.attr.mode))
			r = mkdirat(dirfd, name, 0700) < 0 ? -errno : 0;
		else
			r = make_node(&print.attr, dirfd, name);
		if (r == 0)
			r = stage_set_attr(dirfd, name, &attr);
	}
	g_clear_pointer(&xattrs, g_bytes_unref);
	return r;
}

/* Comparing */

static int equal_files(int a, const char *a_name, int b, const char *b_name)
{
	g_autofree char *x = g_malloc(CHUNK), *y = g_malloc(CHUNK);
	int fa = openat(a, a_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int fb = openat(b, b_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r = fa < 0 || fb < 0 ? -EACCES : 1;

	for (uint64_t offset = 0; r == 1; offset += CHUNK) {
		ssize_t n = read_fd(&fa, x, CHUNK, offset), m = read_fd(&fb, y, CHUNK, offset);

		if (n < 0 || m < 0)
			r = n < 0 ? n : m;
		else if (n != m || memcmp(x, y, n) != 0)
			r = 0;
		else if (n < CHUNK)
			break;
	}
	if (fa >= 0)
		close(fa);
	if (fb >= 0)
		close(fb);
	return r;
}

int stage_equal(int a, const char *a_name, int b, const char *b_name)
{
	char x[PATH_MAX], y[PATH_MAX];
	struct fingerprint fa, fb;
	ssize_t n, m;
	int r = lower_stat_at(a, a_name, &fa);

	if (r == 0)
		r = lower_stat_at(b, b_name, &fb);
	if (r < 0)
		return r;
	if ((fa.attr.mode & S_IFMT) != (fb.attr.mode & S_IFMT))
		return 0;
	switch (fa.attr.mode & S_IFMT) {
	case S_IFREG:
		return fa.attr.size == fb.attr.size ? equal_files(a, a_name, b, b_name) : 0;
	case S_IFLNK:
		n = readlinkat(a, a_name, x, sizeof(x));
		m = readlinkat(b, b_name, y, sizeof(y));
		return n >= 0 && n == m && memcmp(x, y, n) == 0;
	default:
		return fa.attr.rdev == fb.attr.rdev;
	}
}
