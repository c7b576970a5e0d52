/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * scan - bytes of any length shown to a matcher through a window
 *
 * Bytes are fed in pieces of any size. The matcher gets them in windows: it looks for matches that begin in [from, to) and may
 * read up to SCAN_BEHIND bytes in front of that and SCAN_AHEAD behind, so no border of a piece or a window hides anything shorter.
 * Where a window has NUL bytes, the characters of UTF-16 and UTF-32 texts (either order, at any offset, with or without a mark)
 * are pulled together and shown once more, with everything else replaced by 0xff.
 *
 * Memory is one window; time is that of the matcher times two.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCAN_BEHIND 512
#define SCAN_AHEAD (16 * 1024)

struct scan;

struct scan_view {
	const uint8_t *data;
	size_t size;
	size_t from, to;
	/* Of the scan */
	const uint32_t *map; /* byte of @data -> byte of the window; NULL = the same */
	uint64_t base;       /* offset of the window in all that was fed */
};

/* What the matcher found. Valid for the call. */
struct scan_match {
	const char *rule;
	const char *what;      /* "a GitHub token" */
	const char *excerpt;   /* nothing in it is secret; not necessarily UTF-8 */
	const uint8_t *value;  /* what was found itself */
	size_t value_size;
	uint64_t start, end;   /* where it is in all that was fed */
	uint64_t line;         /* of @start, from 1 */
};

typedef void (*scan_look)(struct scan *s, const struct scan_view *v);
/* False ends the scan. */
typedef bool (*scan_found)(const struct scan_match *m, void *user);

struct scan *scan_new(scan_look look, scan_found found, void *user);
void scan_free(struct scan *s);
typedef struct scan scan_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(scan_t, scan_free)

/* scan_feed() - false when @found has had enough. */
bool scan_feed(struct scan *s, const void *data, size_t size);
/* scan_finish() - the end; the scan can be fed something else then. */
void scan_finish(struct scan *s);

/*
 * scan_report() - for the matcher: bytes @start to before @end of @v. Passed on unless it overlaps with one that was passed on.
 * False when the scan is over.
 */
bool scan_report(struct scan *s, const struct scan_view *v, size_t start, size_t end, const char *rule, const char *what,
		 const char *excerpt);
/* scan_is_reported() - something at @at was. */
bool scan_is_reported(const struct scan *s, const struct scan_view *v, size_t at);
