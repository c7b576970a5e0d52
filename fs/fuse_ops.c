/* SPDX-License-Identifier: MIT */
#include "fs/fuse_ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "fs/fuse_device.h"
#include "fs/overlay.h"

/* The kernel may keep what can't change without our telling it; the rest it asks for again after this long, in seconds. */
#define TIMEOUT_OURS (365.0 * 24 * 3600)
#define TIMEOUT_OUTSIDE 1.0

#define MAX_IO (1024 * 1024)

/* Each operation begins with it. */
static struct overlay *req_overlay(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	bool again;
	uint64_t unique = fuse_device_unique(&again);

	overlay_caller(ctx->pid, ctx->uid);
	overlay_request(unique, again);
	return ((struct view *)fuse_req_userdata(req))->overlay;
}

static struct caller req_caller(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return (struct caller){ .uid = ctx->uid, .gid = ctx->gid, .pid = ctx->pid, .umask = ctx->umask,
				.kill_privileges = fuse_device_kills_privileges() };
}

/* The caller was interrupted or killed. Nobody but those who wait hears that the session ends, and it ends after them. */
static bool request_is_over(void *user)
{
	fuse_req_t req = user;
	const struct view *view = fuse_req_userdata(req);

	if (fuse_session_exited(view->session))
		overlay_questions_close(view->overlay);
	return fuse_req_interrupted(req);
}

/*
 * asks() - after each operation that may have to wait for a human: waits, and says whether it is to be tried again. What it costs the caller's
 * neighbours is written in ARCHITECTURE.md, "One question".
 */
static bool asks(fuse_req_t req, int *r)
{
	if (*r != OVERLAY_ASKS)
		return false;
	*r = overlay_ask(req_overlay(req), request_is_over, req);
	return *r == 0;
}

/* Replies */

static double attr_timeout(const struct overlay_entry *e)
{
	return e->guarded ? 0 : e->attr_cacheable ? TIMEOUT_OURS : TIMEOUT_OUTSIDE;
}

static void stat_from_attr(uint64_t ino, const struct attr *a, struct stat *ret)
{
	*ret = (struct stat){
		.st_ino = ino, .st_mode = a->mode, .st_nlink = a->nlink, .st_uid = a->uid, .st_gid = a->gid, .st_rdev = a->rdev,
		.st_size = a->size, .st_blocks = a->blocks, .st_blksize = 4096, .st_atim = nsec_to_timespec(a->atime),
		.st_mtim = nsec_to_timespec(a->mtime), .st_ctim = nsec_to_timespec(a->ctime),
	};
}

static void entry_param(const struct overlay_entry *e, struct fuse_entry_param *ret)
{
	*ret = (struct fuse_entry_param){ .ino = e->ino, .attr_timeout = attr_timeout(e),
					  .entry_timeout = e->guarded ? 0 : e->name_cacheable ? TIMEOUT_OURS : TIMEOUT_OUTSIDE };
	stat_from_attr(e->ino, &e->attr, &ret->attr);
}

static void reply_entry(fuse_req_t req, int r, const struct overlay_entry *e)
{
	struct fuse_entry_param param;

	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	entry_param(e, &param);
	/* A reply that comes too late (the caller was killed) leaves a lookup that the kernel never counted. */
	if (fuse_reply_entry(req, &param) < 0 && e->ino)
		overlay_forget(req_overlay(req), e->ino, 1);
}

static void reply_attr(fuse_req_t req, int r, const struct overlay_entry *e)
{
	struct stat st;

	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	stat_from_attr(e->ino, &e->attr, &st);
	fuse_reply_attr(req, &st, attr_timeout(e));
}

static void reply_status(fuse_req_t req, int r)
{
	fuse_reply_err(req, r < 0 ? -r : 0);
}

/*
 * Before each change: a worker that died has made it and could not say so any more. Then the answer is made of what is there; the caller
 * still holds the kernel's locks that keep it as it was made.
 */

static bool was_done(fuse_req_t req)
{
	if (!overlay_was_done(req_overlay(req)))
		return false;
	fuse_reply_err(req, 0);
	return true;
}

static bool was_made(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct overlay_entry e = { 0 };
	int r;

	if (!overlay_was_done(req_overlay(req)))
		return false;
	r = overlay_lookup(req_overlay(req), parent, name, &e);
	reply_entry(req, r == 0 && !e.ino ? -EIO : r, &e);
	return true;
}

/* Session */

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct view *view = userdata;

	/*
	 * ATOMIC_O_TRUNC must go: there is no OPEN that could truncate. AUTO_INVAL_DATA would drop a file's pages after each of our own
	 * writes. EXPLICIT_INVAL_DATA would keep them when an answer brings another size, and show the bytes of before under the size of
	 * after an edit of the owner's; without it, measured, our own writes still cost no page. Locks are left to the kernel: the view
	 * is one machine's.
	 */
	conn->want &= ~(unsigned int)(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_POSIX_LOCKS |
				      FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
	conn->want |= conn->capable & (FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS |
				       FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_ASYNC_READ | FUSE_CAP_EXPIRE_ONLY |
				       FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT);
	conn->max_write = MAX_IO;
	conn->max_read = 0;
	conn->max_readahead = MAX_IO;
	conn->max_background = 64;
	conn->time_gran = 1;
	/* A read that the kernel does not wait for itself cannot be interrupted; who is killed would leave his question behind. */
	if (overlay_asks_to_read(view->overlay))
		conn->want &= ~(unsigned int)FUSE_CAP_ASYNC_READ;
	if (view->ready)
		view->ready(view->ready_user);
}

/* Names */

/*
 * Does the kernel's permission check let this caller pass a mode of 0000? An open(2) by such a caller reaches nobody, and only its
 * first read would be refused; so it is refused the name. Unsure means yes.
 */
static bool caller_overrides_modes(fuse_req_t req)
{
	const uint64_t override = UINT64_C(1) << 1 | UINT64_C(1) << 2; /* CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH */
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	g_autofree char *path = g_strdup_printf("/proc/%d/status", (int)ctx->pid), *text = NULL;
	const char *line;

	if (ctx->pid > 0 && g_file_get_contents(path, &text, NULL, NULL) && (line = strstr(text, "\nCapEff:")))
		return g_ascii_strtoull(line + strlen("\nCapEff:"), NULL, 16) & override;
	return ctx->uid == 0;
}

/*
 * Does the caller wait in a system call that only asks for attributes? It sleeps until we answer, so what it is in can't change
 * meanwhile. Unsure means no.
 */
static bool caller_only_looks(fuse_req_t req)
{
	static const long looks[] = {
#ifdef SYS_stat
		SYS_stat, SYS_lstat, SYS_access,
#endif
		SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_faccessat2, SYS_getxattr, SYS_lgetxattr, SYS_listxattr, SYS_llistxattr,
	};
	g_autofree char *path = g_strdup_printf("/proc/%d/syscall", (int)fuse_req_ctx(req)->pid), *text = NULL;
	char *end;
	long number;

	if (fuse_req_ctx(req)->pid <= 0 || !g_file_get_contents(path, &text, NULL, NULL))
		return false;
	number = strtol(text, &end, 10);
	for (size_t i = 0; end != text && *end == ' ' && i < G_N_ELEMENTS(looks); i++)
		if (looks[i] == number)
			return true;
	return false;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct overlay_entry e;
	int r = overlay_lookup(req_overlay(req), parent, name, &e);

	if (r == 0 && e.ino && e.guarded && !(e.attr.mode & 0111) && caller_overrides_modes(req) && !caller_only_looks(req)) {
		overlay_forget(req_overlay(req), e.ino, 1);
		r = -EACCES;
	}
	reply_entry(req, r, &e);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	overlay_forget(req_overlay(req), ino, count);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		overlay_forget(req_overlay(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct caller who = req_caller(req);
	struct overlay_entry e;
	int r;

	if (was_made(req, parent, name))
		return;
	do
		r = overlay_mknod(req_overlay(req), parent, name, mode, rdev, &who, &e);
	while (asks(req, &r));
	reply_entry(req, r, &e);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct caller who = req_caller(req);
	struct overlay_entry e;
	int r;

	if (was_made(req, parent, name))
		return;
	do
		r = overlay_mkdir(req_overlay(req), parent, name, mode, &who, &e);
	while (asks(req, &r));
	reply_entry(req, r, &e);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct caller who = req_caller(req);
	struct overlay_entry e;
	int r;

	if (was_made(req, parent, name))
		return;
	do
		r = overlay_symlink(req_overlay(req), target, parent, name, &who, &e);
	while (asks(req, &r));
	reply_entry(req, r, &e);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct overlay_entry e;
	int r;

	if (was_made(req, parent, name))
		return;
	do
		r = overlay_link(req_overlay(req), ino, parent, name, &e);
	while (asks(req, &r));
	reply_entry(req, r, &e);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	int r;

	if (was_done(req))
		return;
	do
		r = overlay_unlink(req_overlay(req), parent, name);
	while (asks(req, &r));
	reply_status(req, r);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	int r;

	if (was_done(req))
		return;
	do
		r = overlay_rmdir(req_overlay(req), parent, name);
	while (asks(req, &r));
	reply_status(req, r);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name, unsigned int flags)
{
	int r;

	if (was_done(req))
		return;
	do
		r = overlay_rename(req_overlay(req), parent, name, new_parent, new_name, flags);
	while (asks(req, &r));
	reply_status(req, r);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	g_autofree char *target = NULL;
	int r = overlay_readlink(req_overlay(req), ino, &target);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_readlink(req, target);
}

struct dir_buffer {
	fuse_req_t req;
	bool plus;
	char *data;
	size_t used, size;
};

static bool dir_buffer_add(const char *name, const struct overlay_entry *e, uint64_t next_offset, void *user)
{
	struct dir_buffer *b = user;
	struct fuse_entry_param param = { 0 };
	struct stat st = { .st_ino = e->ino, .st_mode = e->attr.mode };
	bool dots = name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
	size_t n;

	if (!b->plus) {
		n = fuse_add_direntry(b->req, b->data + b->used, b->size - b->used, name, &st, next_offset);
	} else {
		if (dots)
			param.attr = st; /* no lookup: nodeid 0 */
		else
			entry_param(e, &param);
		n = fuse_add_direntry_plus(b->req, b->data + b->used, b->size - b->used, name, &param, next_offset);
	}
	if (n > b->size - b->used)
		return false;
	b->used += n;
	return true;
}

static void read_dir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, bool plus)
{
	g_autofree char *data = g_malloc(size);
	struct dir_buffer b = { .req = req, .plus = plus, .data = data, .size = size };
	int r = overlay_readdir(req_overlay(req), ino, offset, plus, dir_buffer_add, &b);

	if (r < 0 && b.used == 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_buf(req, data, b.used);
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

/* Opening and closing reach nobody: see DESIGN in ARCHITECTURE.md, "No open files". */

static void op_no_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	fuse_reply_err(req, ENOSYS);
}

/* Attributes */

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct overlay_entry e;
	int r = overlay_getattr(req_overlay(req), ino, fi != NULL, &e);

	reply_attr(req, r, &e);
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set, struct fuse_file_info *fi)
{
	static const struct {
		int fuse;
		unsigned int ours;
	} bits[] = {
		{ FUSE_SET_ATTR_MODE, SET_MODE },   { FUSE_SET_ATTR_UID, SET_UID },     { FUSE_SET_ATTR_GID, SET_GID },
		{ FUSE_SET_ATTR_SIZE, SET_SIZE },   { FUSE_SET_ATTR_ATIME, SET_ATIME }, { FUSE_SET_ATTR_MTIME, SET_MTIME },
		{ FUSE_SET_ATTR_ATIME_NOW, SET_ATIME | SET_ATIME_NOW }, { FUSE_SET_ATTR_MTIME_NOW, SET_MTIME | SET_MTIME_NOW },
	};
	struct attr a = { .mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid, .size = st->st_size,
			  .atime = nsec_from_timespec(st->st_atim), .mtime = nsec_from_timespec(st->st_mtim) };
	struct caller who = req_caller(req);
	struct overlay_entry e;
	unsigned int set = 0;
	int r;

	(void)fi;
	for (size_t i = 0; i < G_N_ELEMENTS(bits); i++)
		if (to_set & bits[i].fuse)
			set |= bits[i].ours;
	if (overlay_was_done(req_overlay(req))) {
		op_getattr(req, ino, NULL);
		return;
	}
	do
		r = overlay_setattr(req_overlay(req), ino, set, &a, &who, &e);
	while (asks(req, &r));
	reply_attr(req, r, &e);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs st;
	int r = overlay_statfs(req_overlay(req), &st);

	(void)ino;
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_statfs(req, &st);
}

/* A value or a list of names: the caller first asks for its size with a size of 0. */
static void reply_sized(fuse_req_t req, int r, const void *data, size_t have, size_t size)
{
	if (r < 0)
		fuse_reply_err(req, -r);
	else if (size == 0)
		fuse_reply_xattr(req, have);
	else if (have > size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, data, have);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	g_autoptr(GBytes) value = NULL;
	const void *data;
	gsize have = 0;
	int r;

	do
		r = overlay_getxattr(req_overlay(req), ino, name, &value);
	while (asks(req, &r));
	data = value ? g_bytes_get_data(value, &have) : NULL;
	reply_sized(req, r, data, have, size);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	g_autoptr(GByteArray) names = NULL;
	int r = overlay_listxattr(req_overlay(req), ino, &names);

	reply_sized(req, r, names ? names->data : NULL, names ? names->len : 0, size);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
	int r;

	if (was_done(req))
		return;
	do
		r = overlay_setxattr(req_overlay(req), ino, name, value, size, flags);
	while (asks(req, &r));
	reply_status(req, r);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	int r;

	if (was_done(req))
		return;
	do
		r = overlay_removexattr(req_overlay(req), ino, name);
	while (asks(req, &r));
	reply_status(req, r);
}

/* Data */

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	static GPrivate buffers = G_PRIVATE_INIT(g_free); /* one a thread */
	char *buffer = g_private_get(&buffers);
	int n;

	(void)fi;
	if (!buffer) {
		buffer = g_malloc(MAX_IO);
		g_private_set(&buffers, buffer);
	}
	do
		n = (int)overlay_read(req_overlay(req), ino, buffer, MIN(size, MAX_IO), offset);
	while (asks(req, &n));
	if (n < 0)
		fuse_reply_err(req, -n);
	else
		fuse_reply_buf(req, buffer, n);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct caller who = req_caller(req);
	int r;

	(void)fi;
	if (overlay_was_done(req_overlay(req))) {
		fuse_reply_write(req, size);
		return;
	}
	do
		r = overlay_write(req_overlay(req), ino, data, size, offset, &who);
	while (asks(req, &r));
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_write(req, size);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info *fi)
{
	int r;

	(void)fi;
	if (was_done(req))
		return;
	do
		r = overlay_fallocate(req_overlay(req), ino, mode, offset, length);
	while (asks(req, &r));
	reply_status(req, r);
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *fi)
{
	int64_t at;
	int r;

	(void)fi;
	do {
		at = overlay_lseek(req_overlay(req), ino, offset, whence);
		r = (int)MIN(at, 0);
	} while (asks(req, &r));
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_lseek(req, at);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)datasync;
	(void)fi;
	reply_status(req, overlay_fsync(req_overlay(req), ino));
}

const struct fuse_lowlevel_ops fuse_view_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.symlink = op_symlink,
	.link = op_link,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.rename = op_rename,
	.readlink = op_readlink,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.open = op_no_open,
	.opendir = op_no_open,
	.flush = op_no_open,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.statfs = op_statfs,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.setxattr = op_setxattr,
	.removexattr = op_removexattr,
	.read = op_read,
	.write = op_write,
	.fallocate = op_fallocate,
	.lseek = op_lseek,
	.fsync = op_fsync,
	.fsyncdir = op_fsync,
};
