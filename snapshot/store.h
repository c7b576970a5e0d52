/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * store - the private side of one sandbox: a SQLite index of nodes and names with lifetimes, and the large contents
 *
 * One directory (0700) holds store.db, objects/, policy.ini and lock. Rows are versions: `born` is the epoch in which a row was
 * written, `died` the epoch in which it stopped being true, EPOCH_LIVE while it holds. The state at epoch E is every row with
 * born <= E < died. The store's current epoch only grows; taking a snapshot writes one row and adds one to it, and from then
 * on the first change of a row closes the old version and inserts a new one. Contents (snapshot/content.h) follow the
 * same rule: one that was made before the current epoch is never written again.
 *
 * Only what differs from the workspace has rows, plus the directories on the way to it ("anchors": rows that still follow the
 * workspace). A path without rows is the workspace's own.
 *
 * Every change is made between store_begin() and store_commit() or store_promise(); from then on it survives kill -9 of the process, and a
 * power cut once store_sync() returned. A struct store is used under one lock of its caller. Functions return 0 or -errno
 * (-ENOSPC for a full disk, -EUCLEAN for a damaged database); opening also explains itself in a GError.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "snapshot/attr.h"
#include "snapshot/lower.h"

struct store;

#define EPOCH_LIVE INT64_MAX
#define STORE_ERROR (store_error_quark())
GQuark store_error_quark(void);
enum store_error {
	STORE_ERROR_FAILED,
	STORE_ERROR_NOT_FOUND,
	STORE_ERROR_BUSY,   /* another process serves this store */
	STORE_ERROR_SCHEMA, /* written by a newer sbxfs */
	STORE_ERROR_NO_SPACE,
	STORE_ERROR_EXISTS,
	STORE_ERROR_DENIED, /* modes, owners or a read-only file system forbid it */
};

#define ROOT_INO 1 /* also FUSE's number for the root */
/* Numbers from here on belong to objects that have no counterpart in the workspace. */
#define FIRST_OWN_INO (UINT64_C(1) << 62)

/* A workspace object as it was when the sandbox first covered it: what a commit checks against. */
struct origin {
	int64_t id; /* 0 = none: nothing was there */
	char *path; /* workspace-relative */
	struct fingerprint print;
	int64_t seen;       /* wall clock of the recording, ns */
	bool has_sha256;    /* the content was read whole at that time */
	uint8_t sha256[32];
};

/*
 * Node flags. What a node with an origin does not own it shows as its origin in the workspace is now; a node without origin owns all.
 * With own content, size and times are always its own.
 */
enum node_flags {
	NODE_OWN_ATTR = 1,  /* mode and owner are in the row */
	NODE_OWN_TIMES = 2, /* atime and mtime are in the row */
	NODE_OWN_XATTR = 4, /* xattrs are in the row */
};

struct node_row {
	uint64_t ino;
	int64_t born;    /* epoch of the live version; 0 = no live row yet */
	uint32_t flags;  /* enum node_flags */
	struct attr attr;
	int64_t content; /* snapshot/content.h; 0 = the origin's bytes, or none at all without an origin */
	int64_t origin;  /* the workspace object whose bytes (files) or entries (directories: merged) show through; 0 = none */
	char *target;    /* of a symlink without origin */
	GBytes *xattrs;
};

struct name_row {
	uint64_t parent;
	char *name;
	int64_t born;
	uint64_t ino;   /* 0 = whiteout: the name is deleted */
	int64_t covers; /* origin: the workspace object at this very path when the sandbox first touched the name; 0 = nothing there */
};

struct snapshot {
	int64_t id;
	char *name; /* unique; automatic ones start with '@' */
	int64_t epoch;
	int64_t time; /* wall clock, ns */
};

/* node_row_attr() - what stat shows of @n while its origin looks like @lower (NULL: it has none). */
void node_row_attr(const struct node_row *n, const struct attr *lower, struct attr *ret);

void origin_clear(struct origin *o);
void node_row_clear(struct node_row *n);
void name_row_clear(struct name_row *n);
void snapshot_free(struct snapshot *s);

/* Life */

/* store_create() - makes @dir and an empty store for @workspace in it; STORE_ERROR_EXISTS if there is one. */
struct store *store_create(const char *dir, const char *workspace, GError **error);

enum store_mode {
	STORE_READ,  /* beside a process that serves it; sees a consistent state per transaction, with all that process has committed */
	STORE_WRITE, /* takes the lock for the life of the handle: STORE_ERROR_BUSY when somebody has it */
};
struct store *store_open(const char *dir, enum store_mode mode, GError **error);
/* store_open_patiently() - for writing; waits up to 2 s while it is busy: a command that has it, or looks whether somebody has it, is soon done. */
struct store *store_open_patiently(const char *dir, GError **error);
/*
 * store_take_over() - for writing, by a process that has the lock already as @lock (taken, also on failure; store_lock()), after the one that
 * wrote died. Nodes without a name stay of which @held says that somebody has them open.
 */
struct store *store_take_over(const char *dir, int lock, bool (*held)(uint64_t ino, void *user), void *user, GError **error);
int store_lock(const struct store *s); /* borrowed: the store is locked as long as any process has it open */
void store_close(struct store *s);
typedef struct store store_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(store_t, store_close)

const char *store_dir(const struct store *s);
int store_objects_fd(const struct store *s); /* borrowed directory descriptor */
struct object_dir *store_objects(struct store *s); /* for snapshot/object.h; borrowed */
/* store_get() - a setting ("workspace", ...); NULL when unset; caller frees. */
char *store_get(struct store *s, const char *key);
int store_set(struct store *s, const char *key, const char *value);
/* store_settings() - all whose keys begin with @prefix. */
int store_settings(struct store *s, const char *prefix, void (*fn)(const char *key, const char *value, void *user), void *user);

/* Transactions */

/*
 * A change begins with store_begin() and ends with one of the three below it. store_promise() is for many small ones: it lasts as if it
 * were committed, and who reads through this handle sees it; other processes, and store_sync(), have it after the next store_commit() or
 * store_flush(). For that to come soon the caller cares.
 */
int store_begin(struct store *s);
int store_commit(struct store *s);
int store_promise(struct store *s);
void store_abort(struct store *s);
/* store_flush() - commits what was promised; between changes. On failure it stays promised. */
int store_flush(struct store *s);
/*
 * store_waits() - whether there is something to flush. @cheap: and nothing of it was synced, so that the flush does not wait for the disk. Needs
 * no lock.
 */
bool store_waits(const struct store *s, bool cheap);
/*
 * store_sync_begin(), store_sync() - what was changed so far survives a power cut. The second waits for the disk, and needs no lock.
 */
struct store_sync {
	enum store_sync_what { STORE_SYNC_NOTHING, STORE_SYNC_PROMISED, STORE_SYNC_INDEX } what;
	uint64_t commits;
	bool objects; /* were created since the last */
};
int store_sync_begin(struct store *s, struct store_sync *ret);
int store_sync(struct store *s, const struct store_sync *what);
/*
 * store_free_reserve() - a full disk must not forbid deleting: gives back the space that the store keeps for that. True when there
 * was some. store_checkpoint() takes it again when it can.
 */
bool store_free_reserve(struct store *s);
/* store_checkpoint() - keeps the write-ahead log short; on a connection of its own, from any thread, without the caller's lock. */
int store_checkpoint(struct store *s);

/*
 * Room. What counts is the blocks of objects/, and the pages of the index that are in use; not the write-ahead log (16 MiB, until
 * it is moved), the reserve, the audit, or what a commit keeps for its undoing. Extents that are shared with the workspace
 * count in full. The sum is kept, not found: see store_usage.c.
 */
struct store_usage {
	uint64_t used;
	uint64_t limit; /* 0 = none */
};
/* store_set_limit() - from now on. Counts what is there when nobody knows. */
int store_set_limit(struct store *s, uint64_t limit);
uint64_t store_limit(struct store *s);
/* store_usage() - also in a transaction, of which it counts the pages. @used is 0 for a store that was never counted. */
void store_usage(struct store *s, struct store_usage *ret);

/* Epochs and snapshots */

int64_t store_epoch(const struct store *s);
/* store_epoch_next() - begins the next epoch: the state so far is immutable from here on. @ret_epoch: its number. */
int store_epoch_next(struct store *s, int64_t *ret_epoch);
/* store_snapshot_create() - O(1): a row and epoch + 1. @ret_epoch: the state that the snapshot names. -EEXIST. */
int store_snapshot_create(struct store *s, const char *name, int64_t *ret_epoch);
int store_snapshot_delete(struct store *s, const char *name); /* -ENOENT */
/* store_snapshot_find() - -ENOENT. */
int store_snapshot_find(struct store *s, const char *name, int64_t *ret_epoch);
int store_snapshot_list(struct store *s, GPtrArray **ret); /* of struct snapshot, frees itself; oldest first */

/* Origins */

int store_origin_add(struct store *s, struct origin *o); /* sets o->id */
int store_origin_get(struct store *s, int64_t id, struct origin *ret); /* -ENOENT; origin_clear() */
int store_origin_set_sha256(struct store *s, int64_t id, const uint8_t sha256[32]);

/* Rows. @epoch is EPOCH_LIVE or a past epoch; absence is 0 with ret->ino == 0 (nodes) or ret->born == 0 (names). */

uint64_t store_new_ino(struct store *s);
int store_node_get(struct store *s, int64_t epoch, uint64_t ino, struct node_row *ret);
/* store_has_workspace_rows() - whether some node has the number of a workspace object; true when unsure. */
bool store_has_workspace_rows(struct store *s);
/* store_node_put() - writes the live version; takes care of closing the old one; sets n->born. */
int store_node_put(struct store *s, struct node_row *n);
int store_node_drop(struct store *s, uint64_t ino);
int store_name_get(struct store *s, int64_t epoch, uint64_t parent, const char *name, struct name_row *ret);
int store_name_put(struct store *s, struct name_row *n);
int store_name_drop(struct store *s, uint64_t parent, const char *name);
int store_names_drop(struct store *s, uint64_t parent); /* all of a directory */
/* store_names() - all names of a directory, whiteouts too, with their nodes (node->ino == 0 for a whiteout), sorted by name. */
typedef int (*store_names_fn)(const struct name_row *name, const struct node_row *node, void *user);
int store_names(struct store *s, int64_t epoch, uint64_t parent, store_names_fn fn, void *user);
/* store_bare_whiteouts() - those of now that cover nothing, anywhere. Reads the whole table. */
int store_bare_whiteouts(struct store *s, store_names_fn fn, void *user);
/* store_all_names() - every name row at @epoch, in no order; @node as in store_names(). Reads the whole table. */
int store_all_names(struct store *s, int64_t epoch, store_names_fn fn, void *user);
/*
 * store_has_moved() - whether any name at @epoch has a node whose origin lies at another path than the name. Costs a fraction of
 * store_all_names().
 */
int store_has_moved(struct store *s, int64_t epoch, bool *ret);
/* store_count_names() - names that have a row at @epoch. An upper bound of the changed paths: anchors are among them. */
int store_count_names(struct store *s, int64_t epoch, uint64_t *ret);

/*
 * store_rows_since() - every (parent, name) and every ino whose version at @epoch differs from the live one, once each.
 * What a rollback has to touch.
 */
typedef void (*store_changed_name_fn)(uint64_t parent, const char *name, void *user);
typedef void (*store_changed_node_fn)(uint64_t ino, void *user);
int store_rows_since(struct store *s, int64_t epoch, store_changed_name_fn name_fn, store_changed_node_fn node_fn, void *user);
/* Make the live version of one row what it was at @epoch (a step forward, not a deletion of history). */
int store_name_restore(struct store *s, int64_t epoch, uint64_t parent, const char *name);
int store_node_restore(struct store *s, int64_t epoch, uint64_t ino);
