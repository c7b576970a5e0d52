/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * overlay_private - shared by the overlay_*.c files; everything here is called with overlay->lock held.
 *
 * A change goes through the store first and reaches the names in memory after its commit, which can't fail any more. Only the row data of nodes
 * and dentries is updated on the way; node_edit() and dentry_edit() remember what it was, and overlay_end() puts it back when the transaction
 * fails.
 */

#include "fs/ask_hook.h"
#include "fs/audit_note.h"
#include "fs/deletions.h"
#include "fs/guard.h"
#include "fs/heritage.h"
#include "fs/invalidate.h"
#include "fs/node.h"
#include "fs/overlay.h"
#include "fs/watch.h"
#include "snapshot/spare.h"
#include "snapshot/tree.h"

/* What a row was before the transaction that runs. */
struct undo {
	struct node *node;
	struct node_row row;
	char *origin;
	bool is_lower;
	struct dentry *dentry;
	int64_t born;
	int64_t covers;
};

/* A name that ended while a reader had it: a commit may be about to write it into the workspace, where it would show through. */
struct held_name {
	uint64_t parent;
	char *name;
};

struct overlay {
	GMutex lock;
	struct store *store;
	struct lower *lower;
	struct spare *spare;             /* links of the workspace's files that are no names of the view's */
	struct policy *policy;
	struct node_table *nodes;
	struct invalidator *invalidator; /* NULL until overlay_watch() */
	void (*on_wait)(void); /* NULL: nobody wants to know */
	int64_t sync_time;     /* atomic: what the last fsync took of the disk's, us */
	struct watch *watch;             /* the same; and where inotify gives nothing */
	GArray *undo;                    /* struct undo, of the transaction that runs */
	GQueue open_contents;            /* nodes with an open content, the last used one first */
	struct audit_note *audit;        /* NULL until overlay_audit() */
	struct questions *questions;     /* NULL until overlay_questions() */
	struct ask_hooks *hooks;         /* NULL: nobody is told */
	struct heritage *heritage;       /* for the worker after this one; NULL: there will be none */
	GThread *refresh;                /* after a takeover; NULL: none */
	gint refresh_ends;               /* atomic: it is to end */
	struct deletions own_deletions;
	struct deletions *deletions;     /* these, or the heritage's */
	uint64_t saved_ino;              /* the row that was written last, and its ctime: what the ledger has of a transaction */
	int64_t saved_ctime;
	GArray *needs;                   /* struct need: what the running operation needs a yes for */
	char *limit_text;                /* the limit of deletions that it is beyond */
	GArray *pins;                    /* int64_t: the epochs that somebody reads, once for each reader */
	GArray *held;                    /* struct held_name: whiteouts that last as long as the pins */
	GArray *orphans;                 /* struct orphan: rows that wait to be dropped together */
	uint64_t orphan_bytes;           /* of their contents */
	struct node *trim;               /* whose content the running transaction cuts, or NULL */
	uint64_t used_before;            /* the store's size when the running transaction began; with a limit */
	bool workspace_rows;             /* some row has the number of a workspace object */
	/* The workspace directory looked into last: lookups come in runs. */
	struct {
		uint64_t ino; /* the node that shows it; 0 = none */
		int fd;
		int64_t until; /* g_get_monotonic_time(): its owner may put another directory in its place */
	} last_dir;
};

/* overlay_ask.c: each returns 0 (go on), OVERLAY_ASKS or the errno of a refusal */

/* ask_to_read() - the bytes of @n. */
int ask_to_read(struct overlay *o, struct node *n);
/* Changes, which overlay_begin() settles. */
int ask_to_change(struct overlay *o, struct node *n);
/* ask_to_change_in() - what the rules of @dir say of making, moving or removing @name (@n, NULL = nothing there yet) in it. */
int ask_to_change_in(struct overlay *o, struct node *dir, const char *name, const struct node *n);
/* ask_to_make() - @name becomes something (@n, NULL = new) with the verdict @v. */
int ask_to_make(struct overlay *o, struct node *dir, const char *name, const struct verdict *v, const struct node *n);
/* ask_to_delete() - a name of @n goes: is it one too many? ask_deleted() - it went. */
int ask_to_delete(struct overlay *o, const struct node *n);
void ask_deleted(struct overlay *o, const struct node *n);
/* ask_written() - what a kernel keeps of bytes that were written is not to be read unasked. */
void ask_written(struct overlay *o, const struct node *n);
/* ask_begin() - an operation begins; ask_settle() - has it what it needs? */
void ask_begin(struct overlay *o);
int ask_settle(struct overlay *o);
void ask_free(struct overlay *o);
/* Of how many inodes the kernel may hold the locks for one operation. */
#define OVERLAY_HELD_MAX 4

/* overlay_state.c: names that end while somebody reads a state that has them */

/* name_is_held() - @name, which ends, is to become a whiteout although nothing lies below it. */
int name_is_held(struct overlay *o, const struct node *dir, const char *name, bool *ret);
/* name_hold() - it became one, which ends with the last pin if nothing else is there by then. */
void name_hold(struct overlay *o, const struct node *dir, const char *name);
void held_name_clear(void *held_name);
/* names_hold_again() - those of a process that died before it let go of them; when the overlay is made. */
void names_hold_again(struct overlay *o);

/* overlay_core.c */

/* overlay_may_wait() - see overlay_on_wait(). */
void overlay_may_wait(struct overlay *o);
/* overlay_begin() - of a change: OVERLAY_ASKS or -EACCES when it needs a yes that is not there. */
int overlay_begin(struct overlay *o);
/* overlay_end() - the change is kept when @r is 0 (store_promise()); else, or when that fails, nothing happened. Returns @r or the error of the commit. */
int overlay_end(struct overlay *o, int r);
/* overlay_has_room() - -ENOSPC when @bytes more are beyond the store's limit. What comes out larger is found by overlay_end(). */
int overlay_has_room(struct overlay *o, uint64_t bytes);
/*
 * transaction_begin(), transaction_end() - the same for what is no part of the operation that runs: nobody is asked, the audit does not
 * hear of it.
 */
int transaction_begin(struct overlay *o);
int transaction_end(struct overlay *o, int r);
/* node_edit() - before the first change of n->row, n->origin or n->is_lower. */
void node_edit(struct overlay *o, struct node *n);
void dentry_edit(struct overlay *o, struct dentry *d);
int node_save(struct overlay *o, struct node *n);
/* dentry_save() - writes the row of @d with @ino (0 = whiteout). */
int dentry_save(struct overlay *o, struct dentry *d, uint64_t ino);

/* overlay_heritage.c */

/* heritage_write() - brings the roster up to date; before the lock is given up, and so before an answer can go out. */
void heritage_write(struct overlay *o);
/* heritage_prepare(), heritage_settle() - around the commit of what this thread's request does; see fs/ledger.h. */
struct ledger_entry *heritage_prepare(struct overlay *o);
void heritage_settle(struct ledger_entry *e, int r);
/* heritage_end() - before the watch and the invalidator go. */
void heritage_end(struct overlay *o);

/* overlay_find.c */

/* overlay_node() - -ESTALE for an unknown number. */
int overlay_node(struct overlay *o, uint64_t ino, struct node **ret);
/* overlay_dir() - the same, -ENOTDIR, and what the rules say of walking through it. */
int overlay_dir(struct overlay *o, uint64_t ino, struct node **ret);

struct child {
	struct dentry *dentry; /* NULL: the name is nowhere known; without @node a whiteout or a row that shows nothing */
	struct node *node;     /* NULL: no such name in the view */
};
/* overlay_child() - what @name in @dir is now; loads rows and looks into the workspace. */
int overlay_child(struct overlay *o, struct node *dir, const char *name, struct child *ret);
/* dentry_shows() - 1 when a name with a row shows something: a row that only follows the workspace needs something to follow. 0 or -errno else. */
int dentry_shows(struct overlay *o, const struct dentry *d);
/* errno_is_absent() - what looking into the workspace says of a path that is not there, or not below directories any more. */
bool errno_is_absent(int r);
/* name_is_cacheable() - what @c says of its name in @dir, positive or negative, can't change unheard. */
bool name_is_cacheable(const struct node *dir, const struct child *c);
/*
 * dir_keep_name() - a directory has one place, and @d is it: other names of its node, known from before its owner or a rollback moved it,
 * go. Does nothing for what is no directory.
 */
void dir_keep_name(struct overlay *o, struct dentry *d);
/*
 * dir_refuse_ring() - before a name of @n is put into @dir. When @dir seems to lie in the directory @n, what is known of the place of @dir is
 * older than the name: -ESTALE, and whoever asked has to look again from the top.
 */
int dir_refuse_ring(struct overlay *o, const struct node *dir, const struct node *n);
/* overlay_load() - all rows of a directory are in memory after it. */
int overlay_load(struct overlay *o, struct node *dir);
/* overlay_lower_has() - whether the workspace has @name in the directory that shows through @dir. */
int overlay_lower_has(struct overlay *o, const struct node *dir, const char *name, struct fingerprint *ret_print);
/* overlay_leave_dir() - forgets o->last_dir: what is under its path may be another directory now. */
void overlay_leave_dir(struct overlay *o);
/* node_same_object() - whether @print is the workspace object of @n, as last seen. */
bool node_same_object(const struct node *n, const struct fingerprint *print);
/* node_shows_lower() - whether a name without a row that has the object @print in the workspace shows it as @n. */
bool node_shows_lower(const struct node *n, const struct fingerprint *print);
void node_set_print(struct node *n, const struct fingerprint *print);
/* node_may_have_row() - false when the index has no row of @ino for certain. */
bool node_may_have_row(const struct overlay *o, uint64_t ino);
/* node_become_lower() - forgets what the sandbox made of @n: it shows @print at its own place in the workspace, without a row. */
void node_become_lower(struct overlay *o, struct node *n, const struct fingerprint *print);
/* node_follow() - @n has a row, and follows @path, where @print is, from now on. In a transaction. */
int node_follow(struct overlay *o, struct node *n, const char *path, const struct fingerprint *print);
/* node_load_row() - takes over the values of @row, and what its origin says. */
int node_load_row(struct overlay *o, struct node *n, const struct node_row *row);

/* node_note_seen() - remembers how the workspace object looked, and has the kernel drop cached pages when its bytes changed under it. */
void node_note_seen(struct overlay *o, struct node *n, const struct attr *a);

/* overlay_links.c */

/* node_leave() - @leaving, a name of @n, is about to go: what follows the workspace at its place follows it at another name's. In a transaction. */
int node_leave(struct overlay *o, struct node *n, const struct dentry *leaving);
/* dentry_anchor_link() - a row for another name of a file that has one, which follows it when it has to. In a transaction. */
int dentry_anchor_link(struct overlay *o, struct dentry *d, const struct fingerprint *print);
/* node_follow_other() - @n has a row, and what it follows is gone: 1 when it follows another of its names now, 0, or -errno. Not in a transaction. */
int node_follow_other(struct overlay *o, struct node *n);
/* node_drop_gone() - of a file without a row: names that the workspace has it by no more; all but one. */
void node_drop_gone(struct overlay *o, struct node *n);
/* node_shown_path() - node_lower_path(), by a name that is there if there is one. */
char *node_shown_path(struct overlay *o, struct node *n);

/* overlay_outside.c */

/* overlay_outside_change() - a watch_fn. */
void overlay_outside_change(uint64_t ino, const char *name, enum watch_event event, void *overlay);
/* dir_watch() - has the workspace directory that @n shows watched from now on, before it is looked at. True when it is. */
bool dir_watch(struct overlay *o, struct node *n);
/* node_forget_cached() - has the kernel drop what it may have of @n: names, attributes, and pages where they are the workspace's. */
void node_forget_cached(struct overlay *o, struct node *n);
/* dentry_is_watched() - whether the owner can't change what is under this name unheard. */
bool dentry_is_watched(const struct dentry *d);

/* overlay_show.c */

/* node_follows() - bytes (files), entries and attributes (directories) or target (symlinks) are the workspace's. */
bool node_follows(const struct node *n);
/* node_attr() - the attributes before the rules; -ESTALE when the workspace object is gone. */
int node_attr(struct overlay *o, struct node *n, struct attr *ret);
int node_entry(struct overlay *o, struct node *n, struct overlay_entry *ret);
void node_update_verdict(struct overlay *o, struct node *n);
/* node_update_verdicts() - of @n and all that is known below it; tells the kernel to forget what it cached of them. */
void node_update_verdicts(struct overlay *o, struct node *n);
void child_verdict(struct overlay *o, struct node *dir, const char *name, const char *lower, bool inherit, bool is_dir, struct verdict *ret);

/* overlay_own.c */

/* node_anchor() - gives @n, all its known names and all directories above them rows that follow the workspace. In a transaction. */
int node_anchor(struct overlay *o, struct node *n);
/* node_own_attr() - node_anchor(), and mode, owner and times are in the row from now on. */
int node_own_attr(struct overlay *o, struct node *n);
/* dentry_anchor() - a row for a name of a workspace object, which covers the object at this very path. In a transaction. */
int dentry_anchor(struct overlay *o, struct dentry *d, const char *lower, const struct fingerprint *print);
int origin_record(struct overlay *o, const char *path, const struct fingerprint *print, int64_t *ret_id);
/* node_forget_unused() - closes what a node without kernel references needs no more, frees what nothing holds; the rows of an orphan wait. */
void node_forget_unused(struct overlay *o, struct node *n);
GArray *orphans_new(void);
/* orphans_drop() - the rows that wait; before each new epoch, to which they would belong. Not in a transaction. */
void orphans_drop(struct overlay *o);

/* overlay_data.c */

/* node_open_content() - the handle of row.content. */
int node_open_content(struct overlay *o, struct node *n, struct content **ret);
void node_close_content(struct overlay *o, struct node *n);
/* node_own_data() - a writable content with at least the first @keep bytes of the present one. In a transaction. */
int node_own_data(struct overlay *o, struct node *n, uint64_t keep, struct content **ret);
/* node_own_bytes() - all of them, in a content that reads nothing from elsewhere. In a transaction. */
int node_own_bytes(struct overlay *o, struct node *n);
/* node_masked() - what a masked file shows; borrowed until the next call for @n. */
int node_masked(struct overlay *o, struct node *n, const struct attr *now, GBytes **ret);
int node_set_size(struct overlay *o, struct node *n, uint64_t size);

/* overlay_xattr.c */

int node_xattrs(struct overlay *o, struct node *n, GBytes **ret);
/* node_own_xattrs() - they are in the row from now on. In a transaction. */
int node_own_xattrs(struct overlay *o, struct node *n);
/* node_drop_capability() - file capabilities do not survive a change of the file. In a transaction. */
int node_drop_capability(struct overlay *o, struct node *n);
