/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * node - the objects of a view that the kernel or the store knows, and the names they have
 *
 * A node is one inode, a dentry one name of it. Nodes are found by number in one table; the number is what the kernel calls nodeid
 * and what stat shows. It is derived from the object, never from the order of lookups: an object of the workspace has its own inode
 * number there, one made in the view has the number that its row carries. So a process that takes over a mount finds every node that
 * the kernel may name: those with rows from the store, the others from (number, parent's number, name), which is all that a node without row is
 * made of; the kernel holds no other state with us, as there are no open files.
 *
 * A node stays while the kernel counts lookups on it, while a dentry with a row leads to it, or while it has dentries below.
 * A dentry without row exists only together with its node.
 *
 * Lock order: overlay->lock, then one of those of the audit's writer, the questions and the invalidator, under which nothing else is taken.
 * Everything here is protected by overlay->lock.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "rules/policy.h"
#include "snapshot/content.h"
#include "snapshot/lower.h"
#include "snapshot/store.h"

struct node;
struct node_table;
struct listing;
struct roster_entry;

/* What the rules say of a node, by the path it has and by the path it came from. */
struct verdict {
	struct policy_match view;  /* of the path in the view */
	struct policy_match lower; /* of the workspace path whose bytes show */
	uint8_t action;            /* enum action: the more closed of the two */
	uint8_t granted;           /* the same, of rules that do not ask: what is left of it after a yes */
	bool walkable;             /* a denied directory below which something is allowed */
};

struct dentry {
	struct node *parent;
	char *name;
	struct node *node; /* NULL = whiteout */
	struct dentry *next_of_node;
	int64_t born; /* of the row; 0 = no row: the workspace's own name */
	int64_t covers;
};

struct node {
	uint64_t ino;
	uint64_t lookups;   /* the kernel's references; node_count() */
	struct node_table *table;
	struct roster_entry *entry; /* what stands of it in the roster; NULL = nothing */
	guint touched;      /* its place in the table's list of these, plus 1 */
	struct node_row row; /* row.born == 0: no row, the workspace's own object */
	struct dentry *names;
	char *origin; /* workspace path that shows through; NULL with @is_lower: that of the parent plus the name */
	bool is_lower; /* something of the workspace shows through (bytes, attributes or entries) */
	bool rows_loaded; /* directories: all names with rows are in @children */
	uint64_t read_version; /* of the bytes whose reading is recorded: see fs/audit_note.c */
	bool watched;     /* directories: changes of the workspace directory are reported, so it may be cached without end */
	struct verdict verdict;
	GHashTable *children; /* name -> dentry; NULL = none */
	struct listing *listing; /* the last READDIR from the start */
	struct content *content; /* open handle of row.content, or NULL */
	GList open_link;         /* of those that have one */
	GBytes *masked;          /* what a masked file shows, as made from bytes of @masked_of; or NULL */
	struct {
		uint64_t size;
		int64_t mtime, ctime;
	} masked_of;
	/* The workspace object as last seen: to know it again, and to notice that it changed. */
	uint64_t print_dev;
	uint64_t print_ino;
	int64_t print_btime;
	uint64_t seen_size;
	int64_t seen_mtime;
	int64_t seen_ctime;
};

/* node_table_new() - @gone is called for each node right before it is freed. */
struct node_table *node_table_new(void (*gone)(struct node *n, void *user), void *user);
void node_table_free(struct node_table *t); /* with all nodes */
/* node_find() - NULL when the number is not known. */
struct node *node_find(struct node_table *t, uint64_t ino);
struct node *node_add(struct node_table *t, uint64_t ino);
/* node_release() - frees a node that nothing holds any more, then its parents likewise. Any node that is still held is left alone. */
void node_release(struct node_table *t, struct node *n);
/* node_count() - the kernel has @change references more. */
void node_count(struct node *n, int64_t change);
guint node_table_size(const struct node_table *t);
/* node_foreach() - @fn must not add or release nodes. */
void node_foreach(struct node_table *t, void (*fn)(struct node *n, void *user), void *user);

/*
 * node_table_follow() - from now on the table lists which nodes have other references, names or objects than before. node_touch() lists one
 * by hand. node_touched_each() - those, once each; then the list is empty.
 */
void node_table_follow(struct node_table *t);
void node_touch(struct node *n);
void node_touched_each(struct node_table *t, void (*fn)(struct node *n, void *user), void *user);

bool node_is_dir(const struct node *n);

/* Names */

struct dentry *dentry_find(const struct node *dir, const char *name);
/* dentry_add() - @node NULL: a whiteout. The name must be free. */
struct dentry *dentry_add(struct node *dir, const char *name, struct node *node);
/* dentry_remove() - frees @d; its node may then be released. */
void dentry_remove(struct dentry *d);
/* dentry_set_node() - another node, or a whiteout, under the same name. */
void dentry_set_node(struct dentry *d, struct node *node);

/* Paths; caller frees. */

/* node_path() - in the view, by the first name; NULL for a node without name. "" is the root. */
char *node_path(const struct node *n);
char *dentry_path(const struct node *dir, const char *name);
/* node_lower_path() - in the workspace; NULL when nothing shows through. */
char *node_lower_path(const struct node *n);
/* dentry_lower_path() - of the name itself, whatever it shows; NULL when its directory shows nothing of the workspace. */
char *dentry_lower_path(const struct dentry *d);
/* node_is_below() - whether @n is @ancestor or lies below it. */
bool node_is_below(const struct node *n, const struct node *ancestor);
/* node_is_attached() - whether a way leads to @n from the root: else it, or a directory above it, was removed or moved by its owner. */
bool node_is_attached(const struct node *n);

/* Listings: see fs/overlay_dir.c */
void listing_free(struct listing *l);
