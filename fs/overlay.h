/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * overlay - the view as a file system, without a kernel
 *
 * The workspace (lower), what changed (store) and the rules (policy) joined into the operations of a file system, by inode number as a
 * low-level FUSE session asks for them. It knows no FUSE and can be used and tested without a mount.
 *
 * Every call returns 0 or -errno and is complete when it returns: a change is committed in the store, so it survives the death of
 * the process. One that needs a human's yes returns OVERLAY_ASKS and has done nothing: overlay_ask(), then the same call again. Calls
 * come from any thread; one lock, taken inside, orders them. What the kernel must forget because of a change that it did not ask for
 * itself is told to a struct overlay_watcher, outside the lock.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/statvfs.h>

#include "fs/question.h"
#include "snapshot/attr.h"
#include "snapshot/audit_record.h"

struct lower;
struct audit_options;
struct overlay;
struct policy;
struct store;
struct heritage;

/* Who asks. */
struct caller {
	uint32_t uid;
	uint32_t gid;
	int32_t pid;
	uint32_t umask;
	bool kill_privileges; /* the kernel asks for the setuid and setgid bits and file capabilities to go with this change */
};

struct overlay_entry {
	uint64_t ino; /* 0 = no such name (a negative answer that may be cached) */
	struct attr attr;
	/* Nothing can change it without overlay_watcher hearing of it: what the name stands for, and the attributes. */
	bool name_cacheable;
	bool attr_cacheable;
	bool guarded; /* both must be asked for each time: see overlay_getattr() */
};

/* What the kernel has to forget. Called without locks, from a thread that serves no request. */
struct overlay_watcher {
	void (*begin)(void *user); /* first of all, in that thread; may be NULL */
	void (*expire_entry)(uint64_t parent, const char *name, void *user); /* the next use asks again; who is in there stays */
	void (*inval_inode)(uint64_t ino, bool data, void *user);
	void *user;
};

/* Life */

/* overlay_new() - takes @store, @lower and @policy. */
struct overlay *overlay_new(struct store *store, struct lower *lower, struct policy *policy);
void overlay_free(struct overlay *o);
/*
 * overlay_watch() - from now on @w (copied) hears of changes: those of rollbacks and commits, and those that the owner makes in the
 * workspace, whose directories are watched as they are shown. Starts the threads for it.
 */
void overlay_watch(struct overlay *o, const struct overlay_watcher *w);

/* overlay_drain() - returns when the kernel has been told of every change made before. Not from a thread that serves requests. */
void overlay_drain(struct overlay *o);

/*
 * overlay_audit() - from now on everything is recorded in the audit of the store (snapshot/audit.h), and a change that can't be recorded fails.
 * @options: NULL = keep all, copy nothing. Starts a thread, and one for each copy; overlay_free() completes the audit.
 */
bool overlay_audit(struct overlay *o, const struct audit_options *options, GError **error);
/* overlay_record() - what is no operation of the overlay. */
int overlay_record(struct overlay *o, enum audit_kind kind, const char *operation, const char *detail);
/* overlay_append() - a record that somebody else made: it says itself who did what. */
int overlay_append(struct overlay *o, struct audit_record *r);
/* overlay_caller() - on whose behalf this thread calls from now on; for the audit. */
void overlay_caller(int32_t pid, uint32_t uid);

/* A process that is replaced: see fs/keeper.h */

/*
 * overlay_inherit() - right after overlay_new(): everything that the next worker needs is kept in @h from now on, and what a worker before this one
 * has left there is taken over.
 */
int overlay_inherit(struct overlay *o, struct heritage *h);
struct heritage *overlay_heritage(struct overlay *o); /* NULL: nobody comes after this process */
/*
 * overlay_refresh() - after overlay_watch() and fuse_device_resend(), by who took over: the owner may have changed the workspace while nobody looked, so the kernel
 * forgets what it has of it, and its directories are watched again. Starts a thread for it: large trees take a while.
 */
void overlay_refresh(struct overlay *o);
/* overlay_request() - which request of the kernel this thread serves from now on (0 = none), and whether it comes @again. */
void overlay_request(uint64_t unique, bool again);
/* overlay_was_done() - a worker before this one has done what the request asks for, and died before it could say so. */
bool overlay_was_done(struct overlay *o);

/* Questions */

/* What an operation returns that waits for a human; no errno. */
#define OVERLAY_ASKS (-4000)

/*
 * overlay_questions() - from now on operations that the policy says ask for do, after overlay_audit(); without it they are refused. A
 * command that is told of questions is run as [ask] says.
 */
int overlay_questions(struct overlay *o);
/* overlay_questions_close() - whoever waits is refused, and from now on everybody. */
void overlay_questions_close(struct overlay *o);
/* overlay_asked() - the questions; NULL without overlay_questions(). */
struct questions *overlay_asked(struct overlay *o);
/* overlay_asks_to_read() - whether reading some file may wait for a human. */
bool overlay_asks_to_read(struct overlay *o);
/*
 * overlay_ask() - after this thread's call returned OVERLAY_ASKS: waits, without any lock, for the answer. @over: see questions_wait().
 * 0: make the call again; -EINTR: the caller does not wait any longer; -EACCES: there is no question.
 */
int overlay_ask(struct overlay *o, bool (*over)(void *user), void *user);
/* overlay_question() - asks what no operation asks, such as a connection; waits in the same way and records it. After overlay_questions(). */
void overlay_question(struct overlay *o, const struct question_about *about, unsigned timeout, bool (*over)(void *user), void *user,
		      struct question_answer *ret);
/*
 * overlay_answer() - by whoever this thread works for (overlay_caller()); @program: its name when the process is gone, or NULL. Recorded
 * first; an answer that cannot be recorded, or kept where that is its scope, is none. -ENOENT: nothing waits under that number.
 */
int overlay_answer(struct overlay *o, uint32_t id, bool allow, enum question_scope scope, const char *program);

/*
 * overlay_on_wait() - @fn is called before an operation waits for a disk or a human, without the lock: whoever serves it may have others served
 * meanwhile. At the start.
 */
void overlay_on_wait(struct overlay *o, void (*fn)(void));
/* overlay_set_limit() - of the store, in bytes, until the view is unmounted; 0 = none. */
int overlay_set_limit(struct overlay *o, uint64_t bytes);
struct store *overlay_store(struct overlay *o);   /* borrowed; use only under overlay_lock() */
struct lower *overlay_lower(struct overlay *o);   /* borrowed */
const struct policy *overlay_policy(struct overlay *o);
void overlay_lock(struct overlay *o);
void overlay_unlock(struct overlay *o);
/*
 * overlay_flush() - lets others read in the index what was changed here; every change is safe from kill -9 before that. To be called before anybody is
 * told of a change, and now and then. Takes the lock where there is something to do. overlay_flush_idle() - the same when nothing waits, unless it
 * would take the disk's time.
 */
int overlay_flush(struct overlay *o);
int overlay_flush_idle(struct overlay *o);

/* Names */

int overlay_lookup(struct overlay *o, uint64_t parent, const char *name, struct overlay_entry *ret);
void overlay_forget(struct overlay *o, uint64_t ino, uint64_t count);
int overlay_mknod(struct overlay *o, uint64_t parent, const char *name, uint32_t mode, uint64_t rdev, const struct caller *who,
		  struct overlay_entry *ret);
int overlay_mkdir(struct overlay *o, uint64_t parent, const char *name, uint32_t mode, const struct caller *who,
		  struct overlay_entry *ret);
int overlay_symlink(struct overlay *o, const char *target, uint64_t parent, const char *name, const struct caller *who,
		    struct overlay_entry *ret);
int overlay_link(struct overlay *o, uint64_t ino, uint64_t parent, const char *name, struct overlay_entry *ret);
int overlay_unlink(struct overlay *o, uint64_t parent, const char *name);
int overlay_rmdir(struct overlay *o, uint64_t parent, const char *name);
/* overlay_rename() - @flags as renameat2(2). */
int overlay_rename(struct overlay *o, uint64_t parent, const char *name, uint64_t new_parent, const char *new_name, unsigned int flags);
int overlay_readlink(struct overlay *o, uint64_t ino, char **ret);

/*
 * overlay_readdir() - entries after the cookie @offset (0 = from the start, which also takes a fresh listing), until @fn
 * returns false, which means that the entry did not fit and counts as not given. A cookie follows from the name, so it stays good while names
 * come and go, and across a restart. With @plus entries are looked up (they count as lookups) and carry attributes.
 */
typedef bool (*overlay_dir_fn)(const char *name, const struct overlay_entry *entry, uint64_t next_offset, void *user);
int overlay_readdir(struct overlay *o, uint64_t ino, uint64_t offset, bool plus, overlay_dir_fn fn, void *user);

/* Attributes */

enum overlay_set {
	SET_MODE = 1,
	SET_UID = 2,
	SET_GID = 4,
	SET_SIZE = 8,
	SET_ATIME = 16,
	SET_MTIME = 32,
	SET_ATIME_NOW = 64,
	SET_MTIME_NOW = 128,
};

/*
 * overlay_getattr() - @for_data: asked on behalf of a read or write, not of stat(2)
 *
 * A denied file has no size, and the kernel reads nothing from an empty file without asking anybody. But it asks for the attributes
 * first when they are not cached, and says what for; the refusal comes then.
 */
int overlay_getattr(struct overlay *o, uint64_t ino, bool for_data, struct overlay_entry *ret);
int overlay_setattr(struct overlay *o, uint64_t ino, unsigned int set, const struct attr *attr, const struct caller *who,
		    struct overlay_entry *ret);
/* overlay_getxattr() - the value; caller frees. -ENODATA. */
int overlay_getxattr(struct overlay *o, uint64_t ino, const char *name, GBytes **ret);
int overlay_listxattr(struct overlay *o, uint64_t ino, GByteArray **ret);
/* overlay_setxattr() - @flags: XATTR_CREATE, XATTR_REPLACE. */
int overlay_setxattr(struct overlay *o, uint64_t ino, const char *name, const void *value, size_t size, int flags);
int overlay_removexattr(struct overlay *o, uint64_t ino, const char *name);
int overlay_statfs(struct overlay *o, struct statvfs *ret);

/* Data */

ssize_t overlay_read(struct overlay *o, uint64_t ino, void *buf, size_t size, uint64_t offset);
int overlay_write(struct overlay *o, uint64_t ino, const void *buf, size_t size, uint64_t offset, const struct caller *who);
int overlay_fallocate(struct overlay *o, uint64_t ino, int mode, uint64_t offset, uint64_t length);
int64_t overlay_lseek(struct overlay *o, uint64_t ino, uint64_t offset, int whence);
int overlay_fsync(struct overlay *o, uint64_t ino);

/* States: see fs/control.h for their meaning */

int overlay_snapshot(struct overlay *o, const char *name, int64_t *ret_epoch);
/* overlay_pin() - the present state as an immutable one without a name, until overlay_unpin(). */
int overlay_pin(struct overlay *o, int64_t *ret_epoch);
/* overlay_pin_again() - a state that was pinned in a process that died. -ENOENT: not a past one. */
int overlay_pin_again(struct overlay *o, int64_t epoch);
void overlay_unpin(struct overlay *o, int64_t epoch);
/*
 * overlay_release() - at a mount: whiteouts that lasted as long as somebody read, whose process died before it ended them, would hide what the
 * owner makes there. Not at a takeover, whose readers come back: there they end with the next overlay_unpin() that leaves none.
 */
void overlay_release(struct overlay *o);
/*
 * overlay_gc() - snapshot/gc.h, while the view goes on; @automatic and @dry_run as there. The result is in @ret, for gc_free().
 * Not beside a commit, an undo or a rollback: their callers see to it.
 */
struct gc;
int overlay_gc(struct overlay *o, bool automatic, bool dry_run, struct gc **ret);
/*
 * overlay_rollback() - to the state of @epoch (0 = the start), all of it or only @paths and what is below them. What the rules call
 * scratch stays as it is, and the directories on the way to it, unless @scratch; paths that are named are always rolled back.
 */
int overlay_rollback(struct overlay *o, int64_t epoch, const char *const *paths, bool scratch, uint64_t *ret_names, uint64_t *ret_nodes);
/*
 * overlay_keep() - @paths of the workspace are about to be made equal to the state of @epoch, or to be put back to what they were before: what
 * the view shows of them at other paths becomes its own.
 */
int overlay_keep(struct overlay *o, int64_t epoch, const char *const *paths);
/*
 * overlay_settle() - @paths of the workspace were made equal to the state of @epoch. Of those in @partial (NULL = none) only a part was
 * written: the view shows what it did, and the rest is its change now.
 */
int overlay_settle(struct overlay *o, int64_t epoch, const char *const *paths, const char *const *partial);
/*
 * overlay_unfollow() - @paths, which have what the state of @epoch had, are about to be put back: what the view takes from them becomes its own,
 * so that it shows the same all the while. overlay_unsettle() is to follow; doing it again is harmless.
 */
int overlay_unfollow(struct overlay *o, int64_t epoch, const char *const *paths);
/*
 * overlay_refollow() - what the commit had moved or deleted is where it was before it, and its new places are not taken away yet: what was not
 * given bytes of its own follows the former from now on.
 */
int overlay_refollow(struct overlay *o, int64_t epoch, const char *const *paths);
/* overlay_unsettle() - and were put back: what the commit wrote is pending again. */
int overlay_unsettle(struct overlay *o, int64_t epoch, const char *const *paths);

/* For status: requests served and objects known. */
struct overlay_counters {
	uint64_t nodes;
	bool watches_full; /* some directories are checked once a second instead of being watched */
};
void overlay_counters(struct overlay *o, struct overlay_counters *ret);
