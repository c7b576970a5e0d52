/* SPDX-License-Identifier: MIT */
#pragma once

/* plan_private - a plan in the making: shared by plan.c and plan_own.c */

#include "snapshot/plan.h"

enum phase {
	PHASE_HOLD,
	PHASE_DIRS,
	PHASE_FILES,
	PHASE_DELETE,       /* reversed */
	PHASE_REPLACE_DIRS, /* reversed */
	PHASE_ATTR,
	PHASE_DIR_ATTR,     /* reversed */
	PHASES,
};

/* One object to stage. */
struct staging {
	struct step *step; /* owned by its phase, later by the journal */
	struct entry *entry;  /* borrowed from the change, or from plan->implied */
	uint32_t set;
	struct attr attr;
	GBytes *xattrs;
	GBytes *bytes; /* a merged text */
};

struct plan {
	const struct apply_job *job;
	struct notes *notes;
	struct resolver resolver;
	GPtrArray *conflicts;
	GPtrArray *changes;    /* those of the job, by path */
	GHashTable *after;     /* paths that have something afterwards -> change */
	GHashTable *gone;      /* paths that have nothing afterwards */
	GHashTable *made;      /* directories that this commit makes */
	GHashTable *kept;      /* directories that can't go */
	GHashTable *mounts;    /* directory -> uint64_t[2] */
	GHashTable *attr_done; /* inodes that have a STEP_ATTR */
	GHashTable *holds;     /* steps that put what another one holds -> that one */
	GPtrArray *implied;    /* entries of directories that are not in the list */
	GPtrArray *phases[PHASES];
	GPtrArray *staging;
	struct journal *journal;
	int files;
	uint64_t files_mount[2];
	uint64_t written, deleted;
};

/* plan.c */

/* plan_add() - the step is the plan's. */
struct step *plan_add(struct plan *p, enum phase phase, enum step_kind kind, const char *path);
struct step *plan_add_attr(struct plan *p, enum phase phase, const char *path, const struct fingerprint *before, uint32_t set,
			   const struct attr *attr, GBytes *xattrs);
/* plan_must_copy() - whether rename(2) can't take an object of files/ to @path. 0 or -errno. */
int plan_must_copy(struct plan *p, const char *path, bool *ret);
/* plan_same_mount() - whether it could from one to the other. */
bool plan_same_mount(struct plan *p, const char *a, const char *b);

/* plan_own.c */

/* plan_shows_lower() - @e has the bytes that are at @path, and none of its own. */
bool plan_shows_lower(const struct entry *e, const char *path);
/* plan_put_own() - by the workspace's own object, if there is one to be had: @ret. 0 or -errno. */
int plan_put_own(struct plan *p, const struct change *c, const struct resolution *res, bool *ret);
