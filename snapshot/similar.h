/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * similar - a deleted and an added file that are nearly the same, told as a rename
 *
 * A program that moves a file and then saves it anew (a temporary file renamed over it), or writes it elsewhere and
 * removes the old one, leaves nothing by which changes_between() could know it again: the list has the whole of the old
 * file as deleted and the whole of the new one as added. Who reads that wants to see the few lines that are new, as with
 * git diff -M.
 *
 * This is for who reads a list, and for nothing else. What is digested, checked by the gate, committed or rolled back is
 * the plain list, as changes_between() gives it; the digest that a diff prints is the plain list's, so it is taken
 * before.
 *
 * Two regular files are one when their bytes are equal (by SHA-256), else when they are texts of which at least
 * SIMILAR_PERCENT is in both (snapshot/spans.h); the best pairs first, of equal ones those with the same last name, then
 * in order of their paths. An empty file is like no other; symlinks and special files are left alone. Nothing is looked
 * at that is not in the list, so what a filter kept out of it (change_filter) is neither read nor becomes half of a
 * rename. A file that can't be read is not paired.
 *
 * The work has a bound: where one of the limits below is exceeded, only equal files are paired.
 */

#include "snapshot/change.h"

#define SIMILAR_PERCENT 50
/* A larger file is not compared by lines. */
#define SIMILAR_SIZE_MAX (1024 * 1024)
/* Deleted times added files; as git's diff.renameLimit of 1,000. */
#define SIMILAR_PAIRS_MAX (1000 * 1000)
/* Bytes that are read for it, and held as up to three times as many. */
#define SIMILAR_BYTES_MAX (64 * 1024 * 1024)
/* Of comparing: the lengths of all pairs' spans. Some 0.4 s. */
#define SIMILAR_STEPS_MAX (64 * 1024 * 1024)

/*
 * similar_join() - makes renames of such pairs in @changes, a list of changes_between(): the added path's change gets
 * status, from_path, before and similarity, the deleted path's goes. The order stays. Hashes are used where the list has
 * them, else only made of files that have a counterpart of the same size.
 */
void similar_join(GPtrArray *changes, struct tree *from, struct tree *to);
