/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * roster - what the kernel may name, in memory that outlives the process
 *
 * An entry for each node that the kernel holds: its number, how often it was looked up, and what the index does not say of it: a
 * place (number of the directory and name), and of what has no name any more the workspace path whose bytes still show. See fs/node.h for what a
 * node is made of. The memory is shared with the process that made it (fs/keeper.h) and with every worker that this forks, so what
 * stands in it is there for the next one however the last one ended: an entry is written whole before its number is, which is one store, and a
 * changed one is published beside the old one, which goes then. Of two with one number the later one counts.
 *
 * Two halves: one is in use, the next worker writes the other one anew and changes over with one store (roster_renew()), so holes do
 * not pile up, and a worker that dies on the way leaves the first as it was. What tells free room from used one is private.
 *
 * One process writes at a time, one thread at a time (overlay->lock).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct roster;
struct roster_entry;

/* A node as it is written down, and read back. */
struct roster_node {
	uint64_t ino; /* never 0 */
	uint64_t lookups;
	uint32_t type;   /* of the mode: S_IFMT */
	uint64_t parent; /* 0 = it has no name */
	const char *name;
	const char *origin; /* workspace path; NULL = that of the parent plus the name, or none */
	uint64_t dev, print_ino; /* of the workspace object; print_ino 0 = the node's own number on the workspace's file system */
	int64_t btime;
	const void *mark; /* whatever the caller wants to have back, up to ROSTER_MARK_MAX bytes */
	size_t mark_size;
};
#define ROSTER_MARK_MAX 255

/* roster_new() - an empty one with room for @size bytes, which take memory only as they are used; halved as often as the system wants. NULL: none. */
struct roster *roster_new(size_t size);
void roster_free(struct roster *r);

/*
 * roster_put() - writes @n down. *@entry: NULL, or what is known of the node so far, which @n replaces. When there is no room *@entry is
 * NULL afterwards, and roster_is_whole() false for good.
 */
void roster_put(struct roster *r, struct roster_entry **entry, const struct roster_node *n);
void roster_drop(struct roster *r, struct roster_entry *entry);
/* roster_is_whole() - nothing is missing. */
bool roster_is_whole(const struct roster *r);

/* roster_each() - every node that stands in the half in use, once each, in no order. Strings are borrowed until the next change. */
void roster_each(const struct roster *r, void (*fn)(const struct roster_node *n, void *user), void *user);

/* roster_renew() - what is put from now on goes to the other half, which is empty; roster_renewed() - which is the one in use from now on. */
void roster_renew(struct roster *r);
void roster_renewed(struct roster *r);
