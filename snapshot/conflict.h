/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * conflict - what the workspace has now, against what the sandbox recorded when it first touched a name
 *
 * Three states of a path meet: the base (struct origin, recorded at the first touch), the workspace as it is now and the
 * sandbox's. Content, mode, owner and xattrs are looked at one by one: what only one side changed is taken from that side, what both
 * changed to the same is done already, what both changed differently is a conflict. Times alone are none: a file whose times
 * changed is unchanged if its bytes hash to what was recorded.
 *
 * A name below a deleted directory has no record of its own. There, a change time later than the moment in which the directory was
 * recorded means that the owner touched it since; commits of our own are recognised by their journals.
 *
 * The base's xattrs are not recorded: when the sandbox changed them and the workspace's inode changed since, different xattrs are a
 * conflict even if only one side touched them.
 */

#include "snapshot/change.h"
#include "snapshot/text_merge.h"

enum conflict_kind {
	CONFLICT_CONTENT, /* both sides changed it */
	CONFLICT_TYPE,    /* it is another kind of object now, or a directory to replace has entries that are not in the list */
	CONFLICT_EXISTS,  /* new here, but the workspace has one too */
	CONFLICT_MISSING, /* changed here, deleted there */
	CONFLICT_PARENT,  /* the directory it belongs in is gone or no directory any more */
	CONFLICT_ATTR,    /* both sides changed mode, owner or xattrs */
};
const char *conflict_kind_name(enum conflict_kind k);

struct conflict {
	char *path;
	enum conflict_kind kind;
	char *base, *workspace, *sandbox; /* for people: "absent", "file 644, 12 bytes", ... */
};
void conflict_free(struct conflict *c);
void conflict_add(GPtrArray *conflicts, const char *path, enum conflict_kind kind, const struct fingerprint *base,
		  const struct fingerprint *now, const struct attr *after);

/* What to do about one path. */
enum resolve_action {
	RESOLVE_NOTHING, /* the workspace has it already */
	RESOLVE_WRITE,   /* the sandbox's object, with the attributes below */
	RESOLVE_MKDIR,   /* nothing is there */
	RESOLVE_ATTR,    /* only attributes */
	RESOLVE_DELETE,
};

struct resolution {
	enum resolve_action action;
	struct fingerprint now; /* .attr.mode 0 = nothing there */
	uint32_t set;           /* enum step_set of snapshot/journal.h */
	struct attr attr;
	GBytes *xattrs;
	GBytes *merged;         /* the text to write instead of the sandbox's */
	bool clean;             /* without markers */
	int64_t seen;           /* when the sandbox first recorded it (or the directory it vanished with), 0 = never */
};
void resolution_clear(struct resolution *r);

struct resolver {
	struct store *store;
	struct lower *lower;
	struct tree *to;
	int64_t epoch;
	enum text_merge merge;
	GPtrArray *conflicts; /* struct conflict; conflicting paths are added, and resolve to RESOLVE_NOTHING */
	GHashTable *known;    /* of fingerprints that our own commits left behind; made when needed */
	int commits;          /* directory of commits */
};
void resolver_clear(struct resolver *r);

/* resolve_after() - for a change with an after side; @parent_new: its directory is made by the same commit. 0 or -errno. */
int resolve_after(struct resolver *r, const struct change *c, bool parent_new, struct resolution *ret);
/*
 * resolve_delete() - @path is to go. @moved: its bytes are taken from the workspace as they are now, so their changes are no conflict.
 * @origin: of the node that went from here to another path, 0 = none; it counts if it was recorded at @path.
 */
int resolve_delete(struct resolver *r, const char *path, bool moved, int64_t origin, struct resolution *ret);
/* resolve_is_newer() - touched after @seen by somebody else than our own commits. */
bool resolve_is_newer(struct resolver *r, const char *path, const struct fingerprint *now, int64_t seen);
