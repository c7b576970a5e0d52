/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * place - one name in the workspace, ready to be written: the descriptor of its directory and the last component
 *
 * Everything a commit does to the workspace goes through a place. The directory is walked to from the root's descriptor without
 * following a symlink, crossing a magic link or leaving the root (openat2(2)), anew for each use: a descriptor kept from
 * before would still write when the directory was meanwhile moved somewhere else.
 */

#include "snapshot/lower.h"

struct place {
	int dirfd;        /* O_PATH, owned */
	const char *name; /* points into the path given; "." for the root itself */
};

/* place_open() - -ENOENT, -ENOTDIR or -ELOOP when the directory is gone, none, or behind a symlink; -EINVAL for "." and "..". */
int place_open(int root, const char *path, struct place *ret);
void place_close(struct place *p);
typedef struct place place_t; /* for g_auto() only: initialise with PLACE_NONE */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(place_t, place_close)
#define PLACE_NONE { .dirfd = -1 }

/* place_stat() - @ret->attr.mode is 0 when there is no such name in its directory; errors are those of place_open(). */
int place_stat(int root, const char *path, struct fingerprint *ret);
int place_stat_at(int dirfd, const char *name, struct fingerprint *ret);
/* place_is_empty_dir() - 1, or 0 when the directory has entries or is none; -errno. */
int place_is_empty_dir(int dirfd, const char *name);
/* place_mount() - tells mounts (and btrfs subvolumes) apart: rename(2) works between equal ones only. */
int place_mount(int dirfd, uint64_t ret[2]);
