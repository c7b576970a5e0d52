/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * viewed - a workspace in a temporary directory and a view over it without a mount, used as a kernel would use it
 *
 * Paths are looked up part by part; each lookup is counted as a kernel counts it, until kernel_forget() or kernel_forget_all(). For tests
 * only: what can't fail aborts the test. The calls that stand for a system call return 0 or -errno.
 */

#include <glib.h>

#include "fs/overlay.h"
#include "snapshot/selection.h"
#include "snapshot/store.h"

struct viewed {
	char *dir; /* holds all of it */
	char *workspace;
	char *store_dir;
	char *rules;
	struct overlay *overlay;
	GHashTable *held; /* ino -> number of lookups */
};

/* viewed_new() - @rules: lines of a [files] section; NULL = everything may be written. */
struct viewed *viewed_new(const char *rules);
void viewed_free(struct viewed *v);
typedef struct viewed viewed_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(viewed_t, viewed_free)
/* viewed_open() - the view over what the workspace is by now; the first use does it too. viewed_close() ends it as kill -9 would. */
void viewed_open(struct viewed *v);
void viewed_close(struct viewed *v);
void viewed_reopen(struct viewed *v);

/* The workspace, as its owner changes it. */
char *host_path(struct viewed *v, const char *path);
void host_text(struct viewed *v, const char *path, const char *text); /* makes the parents; 0644 */
void host_dir(struct viewed *v, const char *path);
void host_run(struct viewed *v, const char *command);                 /* of the shell, in the workspace */

/* The kernel */

/* kernel_walk() - the number of @path ("" is the root), 0 with -errno in @ret_error. The lookups stay counted. */
uint64_t kernel_walk(struct viewed *v, const char *path, int *ret_error);
void kernel_forget(struct viewed *v, uint64_t ino);
void kernel_forget_all(struct viewed *v);

/* System calls */

extern struct caller somebody;
int view_stat(struct viewed *v, const char *path, struct attr *ret);
uint64_t view_ino(struct viewed *v, const char *path); /* 0 = not there */
int view_create(struct viewed *v, const char *path, uint32_t mode);
int view_mkdir(struct viewed *v, const char *path);
int view_symlink(struct viewed *v, const char *target, const char *path);
int view_link(struct viewed *v, const char *from, const char *to);
int view_unlink(struct viewed *v, const char *path);
int view_rmdir(struct viewed *v, const char *path);
int view_rename(struct viewed *v, const char *from, const char *to, unsigned int flags);
int view_write(struct viewed *v, const char *path, const void *data, size_t size, uint64_t offset);
/* view_text() - creates or truncates, and writes. */
int view_text(struct viewed *v, const char *path, const char *text);
int view_append(struct viewed *v, const char *path, const char *text);
int view_truncate(struct viewed *v, const char *path, uint64_t size);
int view_chmod(struct viewed *v, const char *path, uint32_t mode);
int view_chown(struct viewed *v, const char *path, uint32_t uid, uint32_t gid);
int view_utimens(struct viewed *v, const char *path, int64_t ns);
int view_setxattr(struct viewed *v, const char *path, const char *name, const char *value); /* NULL removes */
int view_getxattr(struct viewed *v, const char *path, const char *name, char **ret);
/* view_read() - all of it as text; caller frees. */
int view_read(struct viewed *v, const char *path, char **ret);
int view_read_ino(struct viewed *v, uint64_t ino, char **ret);
int view_readlink(struct viewed *v, const char *path, char **ret);
/* view_list() - the names as "a b c", sorted; caller frees. */
int view_list(struct viewed *v, const char *path, char **ret);

/* view_paths() - of everything but the root, sorted; array of strings, frees itself. */
GPtrArray *view_paths(struct viewed *v);

/* States */

int64_t view_snapshot(struct viewed *v, const char *name);
/* view_rollback() - @paths: separated by blanks, NULL = all. Takes a snapshot before, as the tools do. */
void view_rollback(struct viewed *v, int64_t epoch, const char *paths);
/* view_commit() - diff, apply, settle, as the tools do. @paths as above. False when there were conflicts; then nothing happened. */
bool view_commit(struct viewed *v, const char *paths);
/* The same in two halves: what is done in between was not reviewed. */
struct committing;
struct committing *view_commit_begin(struct viewed *v, const char *paths);
bool view_commit_end(struct viewed *v, struct committing *c);
/* view_commit_paths() - what the changes speak of; borrowed strings. view_commit_free() - instead of view_commit_end(). */
GPtrArray *view_commit_paths(struct committing *c);
void view_commit_free(struct committing *c);
/* view_commit_choose() - between the two: only what @choose takes is committed. */
void view_commit_choose(struct committing *c, void (*choose)(struct selection *s, void *user), void *user);
/* view_undo() - the last commit, as the tools do. */
void view_undo(struct viewed *v);
/* view_undo_looked_at() - and the view shows the same after each step; how many there were. */
unsigned view_undo_looked_at(struct viewed *v);
/* view_unfollow(), view_refollow() - of struct undo_view, with the struct viewed. */
struct apply_result;
int view_unfollow(const struct apply_result *undone, void *user, GError **error);
int view_refollow(const struct apply_result *undone, void *user, GError **error);
/* view_changes() - "A path\nM path\n" between the workspace and now; caller frees. */
char *view_changes(struct viewed *v);

/* Describing: a line an object, sorted by path; caller frees. */

enum describe {
	DESCRIBE_INO = 1,
	DESCRIBE_TIMES = 2,
	DESCRIBE_LINKS = 4, /* of files */
	DESCRIBE_MTIME = 8, /* of what is no directory */
	DESCRIBE_OWNER = 16,
};
char *view_describe(struct viewed *v, unsigned int what);
/* fresh_describe() - the same of another view that is opened on the store as kill -9 would leave it right now. */
char *fresh_describe(struct viewed *v, unsigned int what);
char *disk_describe(const char *dir, unsigned int what);
/* describe_same() - else says on standard error where they part. */
bool describe_same(const char *a, const char *b);
/* view_check() - memory and index agree, and a way leads to each name in it. */
void view_check(struct viewed *v);
/* view_rows() - live rows of a table ("node", "name", "content"). */
int64_t view_rows(struct viewed *v, const char *table);
/* view_unreachable_rows() - live names to which no way leads from the root. */
int64_t view_unreachable_rows(struct viewed *v);
