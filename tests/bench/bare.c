/* SPDX-License-Identifier: MIT */
/*
 * bare - the least that a FUSE file system can do: the floor for what sbxfs is measured against
 *
 *     bare DIRECTORY MOUNTPOINT
 *
 * Passes every request through to DIRECTORY, by one thread, without a store, rules or an overlay, and takes the same course
 * with the kernel as sbxfs: OPEN, OPENDIR and FLUSH answered with ENOSYS, no timeouts, READDIRPLUS. It holds one descriptor
 * for each node that the kernel knows, and stays in the foreground. Only what the workloads need is here.
 */
#define FUSE_USE_VERSION 314
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define FOREVER (365.0 * 24 * 3600)
#define MAX_IO (1024 * 1024)

struct node {
	ino_t ino; /* the key in nodes */
	int fd;    /* O_PATH */
	int io;    /* opened on the first read or write; -1 */
	DIR *dir;
	uint64_t lookups;
};

static struct node root = { .fd = -1, .io = -1 };
static void *nodes; /* tsearch() tree */

static int node_compare(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return (x->ino > y->ino) - (x->ino < y->ino);
}

static struct node *node_of(fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? &root : (struct node *)(uintptr_t)ino;
}

static void node_forget(struct node *n, uint64_t count)
{
	if (n == &root || (n->lookups -= count) > 0)
		return;
	tdelete(n, &nodes, node_compare);
	if (n->dir)
		closedir(n->dir);
	if (n->io >= 0)
		close(n->io);
	close(n->fd);
	free(n);
}

static int node_io(struct node *n, int flags)
{
	char path[64];

	if (n->io < 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", n->fd);
		n->io = open(path, flags | O_CLOEXEC);
		if (n->io < 0 && flags == O_RDWR)
			n->io = open(path, O_RDONLY | O_CLOEXEC);
	}
	return n->io;
}

/* Gives the kernel one more reference to the node of a name. */
static int entry_get(struct node *parent, const char *name, struct fuse_entry_param *ret)
{
	struct node **found, *n;

	*ret = (struct fuse_entry_param){ .attr_timeout = FOREVER, .entry_timeout = FOREVER };
	if (fstatat(parent->fd, name, &ret->attr, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	n = calloc(1, sizeof(*n));
	if (!n)
		abort();
	n->ino = ret->attr.st_ino;
	found = tsearch(n, &nodes, node_compare);
	if (*found != n) {
		free(n);
		n = *found;
	} else {
		n->fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		n->io = -1;
	}
	n->lookups++;
	ret->ino = (uintptr_t)n;
	return 0;
}

static void reply_entry(fuse_req_t req, fuse_ino_t parent, const char *name, int r)
{
	struct fuse_entry_param e;

	if (r < 0)
		r = -errno;
	else
		r = entry_get(node_of(parent), name, &e);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_entry(req, &e);
}

static void reply_errno(fuse_req_t req, int r)
{
	fuse_reply_err(req, r < 0 ? errno : 0);
}

static void op_init(void *user, struct fuse_conn_info *conn)
{
	(void)user;
	conn->want &= ~(unsigned int)(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				      FUSE_CAP_SPLICE_MOVE | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_POSIX_LOCKS);
	conn->want |= conn->capable & (FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
				       FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_ASYNC_READ | FUSE_CAP_NO_OPEN_SUPPORT |
				       FUSE_CAP_NO_OPENDIR_SUPPORT);
	conn->max_write = conn->max_readahead = MAX_IO;
	conn->max_read = 0;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_entry(req, parent, name, 0);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	node_forget(node_of(ino), count);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *all)
{
	for (size_t i = 0; i < count; i++)
		node_forget(node_of(all[i].ino), all[i].nlookup);
	fuse_reply_none(req);
}

static void op_no(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	fuse_reply_err(req, ENOSYS);
}

static void reply_attr(fuse_req_t req, struct node *n)
{
	struct stat st;

	if (fstatat(n->fd, "", &st, AT_EMPTY_PATH) < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_attr(req, &st, FOREVER);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	reply_attr(req, node_of(ino));
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int set, struct fuse_file_info *fi)
{
	struct node *n = node_of(ino);
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };
	char path[64];
	int r = 0;

	(void)fi;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", n->fd);
	if (set & FUSE_SET_ATTR_MODE)
		r = chmod(path, st->st_mode);
	if (r == 0 && (set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
		r = fchownat(n->fd, "", set & FUSE_SET_ATTR_UID ? st->st_uid : (uid_t)-1, set & FUSE_SET_ATTR_GID ? st->st_gid : (gid_t)-1,
			     AT_EMPTY_PATH);
	if (r == 0 && (set & FUSE_SET_ATTR_SIZE))
		r = truncate(path, st->st_size);
	if (set & FUSE_SET_ATTR_ATIME)
		times[0] = set & FUSE_SET_ATTR_ATIME_NOW ? (struct timespec){ .tv_nsec = UTIME_NOW } : st->st_atim;
	if (set & FUSE_SET_ATTR_MTIME)
		times[1] = set & FUSE_SET_ATTR_MTIME_NOW ? (struct timespec){ .tv_nsec = UTIME_NOW } : st->st_mtim;
	if (r == 0 && (set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)))
		r = utimensat(AT_FDCWD, path, times, 0);
	if (r < 0)
		fuse_reply_err(req, errno);
	else
		reply_attr(req, n);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	reply_entry(req, parent, name, mknodat(node_of(parent)->fd, name, mode, rdev));
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	reply_entry(req, parent, name, mkdirat(node_of(parent)->fd, name, mode));
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	reply_entry(req, parent, name, symlinkat(target, node_of(parent)->fd, name));
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", node_of(ino)->fd);
	reply_entry(req, parent, name, linkat(AT_FDCWD, path, node_of(parent)->fd, name, AT_SYMLINK_FOLLOW));
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_errno(req, unlinkat(node_of(parent)->fd, name, 0));
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_errno(req, unlinkat(node_of(parent)->fd, name, AT_REMOVEDIR));
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to, const char *new_name, unsigned int flags)
{
	reply_errno(req, renameat2(node_of(parent)->fd, name, node_of(to)->fd, new_name, flags));
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	char target[4096];
	ssize_t n = readlinkat(node_of(ino)->fd, "", target, sizeof(target) - 1);

	if (n < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	target[n] = '\0';
	fuse_reply_readlink(req, target);
}

static size_t add_entry(fuse_req_t req, struct node *dir, const struct dirent *d, bool plus, char *at, size_t room)
{
	struct stat st = { .st_ino = d->d_ino, .st_mode = (mode_t)DTTOIF(d->d_type) };
	struct fuse_entry_param e = { .attr = st };
	bool dots = strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0;
	size_t need;

	if (!plus)
		return fuse_add_direntry(req, at, room, d->d_name, &st, d->d_off);
	need = fuse_add_direntry_plus(req, NULL, 0, d->d_name, &e, 0);
	if (need > room || (!dots && entry_get(dir, d->d_name, &e) < 0))
		return room + 1;
	return fuse_add_direntry_plus(req, at, room, d->d_name, &e, d->d_off);
}

static void read_dir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, bool plus)
{
	struct node *n = node_of(ino);
	char *data = malloc(size);
	size_t used = 0, more;
	struct dirent *d;

	if (!n->dir)
		n->dir = fdopendir(openat(n->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (!n->dir || !data) {
		free(data);
		fuse_reply_err(req, errno);
		return;
	}
	if (offset == 0)
		rewinddir(n->dir);
	else
		seekdir(n->dir, offset);
	while ((d = readdir(n->dir))) {
		more = add_entry(req, n, d, plus, data + used, size - used);
		if (more > size - used)
			break;
		used += more;
	}
	fuse_reply_buf(req, data, used);
	free(data);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	(void)fi;
	read_dir(req, ino, size, offset, false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	(void)fi;
	read_dir(req, ino, size, offset, true);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	static char buffer[MAX_IO];
	ssize_t n = pread(node_io(node_of(ino), O_RDWR), buffer, size < MAX_IO ? size : MAX_IO, offset);

	(void)fi;
	if (n < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_buf(req, buffer, (size_t)n);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset, struct fuse_file_info *fi)
{
	ssize_t n = pwrite(node_io(node_of(ino), O_RDWR), data, size, offset);

	(void)fi;
	if (n < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_write(req, (size_t)n);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	int fd = node_io(node_of(ino), O_RDWR);

	(void)fi;
	reply_errno(req, datasync ? fdatasync(fd) : fsync(fd));
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct node *n = node_of(ino);
	int fd = openat(n->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)datasync;
	(void)fi;
	reply_errno(req, fd < 0 ? -1 : fsync(fd));
	if (fd >= 0)
		close(fd);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	char path[64], value[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", node_of(ino)->fd);
	n = getxattr(path, name, value, size < sizeof(value) ? size : sizeof(value));
	if (n < 0)
		fuse_reply_err(req, errno);
	else if (size == 0)
		fuse_reply_xattr(req, (size_t)n);
	else
		fuse_reply_buf(req, value, (size_t)n);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs st;

	(void)ino;
	if (fstatvfs(root.fd, &st) < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_statfs(req, &st);
}

static const struct fuse_lowlevel_ops ops = {
	.init = op_init, .lookup = op_lookup, .forget = op_forget, .forget_multi = op_forget_multi, .open = op_no, .opendir = op_no, .flush = op_no,
	.getattr = op_getattr, .setattr = op_setattr, .mknod = op_mknod, .mkdir = op_mkdir, .symlink = op_symlink, .link = op_link,
	.unlink = op_unlink, .rmdir = op_rmdir, .rename = op_rename, .readlink = op_readlink, .readdir = op_readdir,
	.readdirplus = op_readdirplus, .read = op_read, .write = op_write, .fsync = op_fsync, .fsyncdir = op_fsyncdir,
	.getxattr = op_getxattr, .statfs = op_statfs,
};

int main(int argc, char **argv)
{
	char *words[] = { argv[0], (char *)"-odefault_permissions,fsname=bare,subtype=bare" };
	struct fuse_args args = FUSE_ARGS_INIT(2, words);
	struct rlimit files = { 1 << 20, 1 << 20 };
	struct fuse_session *session;
	int r;

	if (argc != 3 || (root.fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
		fprintf(stderr, "usage: bare DIRECTORY MOUNTPOINT\n");
		return 2;
	}
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 && getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	umask(0);
	session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (!session || fuse_set_signal_handlers(session) < 0 || fuse_session_mount(session, argv[2]) < 0)
		return 1;
	r = fuse_session_loop(session);
	fuse_session_unmount(session);
	fuse_session_destroy(session);
	return r < 0;
}
