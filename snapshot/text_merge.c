/* SPDX-License-Identifier: MIT */
#include "snapshot/text_merge.h"

#include "snapshot/blob.h"
#include "snapshot/lines.h"
#include "snapshot/origin_base.h"

/* Twice the base, and what both have added. */
#define SIDE_MAX (1024 * 1024)

static bool is_mergeable(const struct blob *b)
{
	return b->mode && S_ISREG(b->mode) && !b->binary && b->bytes && b->size <= SIDE_MAX;
}

/* An empty text was not kept: there is nothing in it. */
static int old_text(struct store *s, int64_t base, GBytes **ret)
{
	struct origin origin = { 0 };
	int r = origin_base_get(s, base, ret);

	if (r < 0 || *ret)
		return r;
	r = store_origin_get(s, base, &origin);
	if (r == 0 && S_ISREG(origin.print.attr.mode) && origin.print.attr.size == 0)
		*ret = g_bytes_new(NULL, 0);
	origin_clear(&origin);
	return r;
}

int text_merge(struct tree *to, const struct entry *sandbox, const char *path, const struct attr *now, int64_t base,
	       enum text_merge how, GBytes **ret, bool *ret_clean)
{
	struct entry workspace = { .name = (char *)path, .lower = (char *)path, .attr = *now };
	g_autoptr(GBytes) old = NULL, merged = NULL;
	struct blob here = { 0 }, there = { 0 };
	int r = 0;

	*ret = NULL;
	if (how == TEXT_MERGE_NONE || !base || now->size > SIDE_MAX || sandbox->attr.size > SIDE_MAX)
		return 0;
	r = old_text(tree_store(to), base, &old);
	if (r < 0 || !old)
		return r;
	r = blob_open((struct side){ to, &workspace }, &there);
	if (r == 0)
		r = blob_open((struct side){ to, sandbox }, &here);
	if (r == 0 && is_mergeable(&there) && is_mergeable(&here))
		r = lines_merge(old, there.bytes, here.bytes, "workspace", "sandbox", ret_clean, &merged);
	if (r == 0 && merged && (*ret_clean || how == TEXT_MERGE_MARKERS))
		*ret = g_steal_pointer(&merged);
	blob_clear(&there);
	blob_clear(&here);
	return r;
}
