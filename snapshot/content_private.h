/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * content_private - what content.c (the bytes of one content), content_row.c (its row, its life) and content_copy.c
 * (making one from another) share
 */

#include "snapshot/content.h"
#include "snapshot/object.h"
#include "snapshot/pagemap.h"

enum content_kind {
	CONTENT_INLINE = 0,
	CONTENT_OBJECT = 1,
};

struct content {
	int refs; /* atomic */
	struct store *store; /* borrowed */
	struct lower *lower; /* borrowed, may be NULL */
	int64_t id;
	int64_t epoch;
	bool current;         /* of the epoch it was opened in: the object's descriptor can write */
	uint64_t size;
	GByteArray *data;     /* inline: the bytes; NULL = it is an object */
	uint64_t rewritten;   /* bytes of blobs written because it grew, since it was opened or last empty */

	/* Protects @durable, the pointer @object and the change from inline to object against content_sync(). */
	GMutex object_lock;
	bool durable;         /* inline bytes may have been promised to survive a power cut */
	struct object *object; /* NULL until the first use */

	/* What shows through an object: bytes below base_size of pages that are not in @pages. */
	uint64_t base_size;
	int64_t base_id;      /* older content, or 0 */
	struct content *base; /* of base_id; opened with this one */
	struct origin origin; /* workspace file; .id == 0: none */
	int base_fd;          /* of @origin, -1 until the first use */
	struct page_map *pages;
};

/* Where one home ends and the next begins; variables so that tests need no gigabytes. */
struct content_limits {
	uint64_t inline_max;  /* larger contents are objects */
	uint64_t rewrite_max; /* so many bytes of blobs written make a growing content an object before that */
	uint64_t copy_max;    /* workspace files up to here are copied and hashed at once */
	unsigned depth_max;   /* contents in a chain of bases, from here on the upper ones are merged */
	unsigned depth_full;  /* and from here on all of them, whatever it costs */
	uint64_t merge_max;   /* bytes to copy for a merge before that */
	bool reflink;         /* try it */
};
extern struct content_limits content_limits;

/*
 * content_insert() - the row and the struct of a new content; @kind says which home. Pages and bytes are the caller's
 * to add.
 */
int content_insert(struct store *s, struct lower *lower, enum content_kind kind, const void *data, uint64_t size,
		   struct content **ret);
/* content_set_home() - takes both; @data NULL: an object from now on. */
void content_set_home(struct content *c, GByteArray *data, struct object *object);
/* What the row says, and then memory. */
int content_put_inline(struct content *c);
int content_put_size(struct content *c, uint64_t size, uint64_t base_size);
int content_put_base(struct content *c, int64_t base_id, const struct origin *origin, uint64_t base_size);
/* content_pages_add() - [first, end), at most two chunks, are in the object from now on. */
int content_pages_add(struct content *c, uint64_t first, uint64_t end);
/* content_pages_put() - the whole map of a new content; takes @pages. */
int content_pages_put(struct content *c, struct page_map *pages);
/* content_base() - the older content that shows through, or NULL. */
static inline struct content *content_base(const struct content *c)
{
	return c->base_size > 0 ? c->base : NULL;
}

/* content_has_object() - 1 when the index has a content @id that lies in a file, 0 when it has not, or -errno. */
int content_has_object(struct store *s, int64_t id);
/* content_get_object() - opens it if needed; a reference. */
int content_get_object(struct content *c, struct object **ret);
/*
 * content_settle_pages() - from here on the map says of the chunks of [offset, end) what the index and the object agree
 * on.
 */
int content_settle_pages(struct content *c, uint64_t offset, uint64_t end);
/* content_read_span() - [offset, offset + size) lies within the content; all of it. */
int content_read_span(struct content *c, void *buf, size_t size, uint64_t offset);
/* content_print_check() - the workspace file open as @fd is what @o says, or -ESTALE. */
int content_print_check(int fd, const struct origin *o);
