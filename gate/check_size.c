/* SPDX-License-Identifier: MIT */

/*
 * check_size - more than a human would expect: files, lines, deletions, bytes, share of the workspace
 *
 * The workspace is counted only as far as it takes to know that the share is not exceeded, so that costs what changed, too.
 */

#include <inttypes.h>

#include "gate/check.h"

/* Below so many touched files the share says nothing: of a workspace with three files, two are quickly changed. */
#define SHARE_FILES_MIN 20

struct size_counts {
	uint64_t files;
	uint64_t lines;
	uint64_t deleted;
	uint64_t touched; /* files of the workspace that are modified or deleted */
};

static int size_change(struct gate *g, const struct change *c, GError **error)
{
	struct size_counts *n = g->state[GATE_SIZE];
	const struct entry *e = c->after ? c->after : c->before;
	const struct added *added;

	if (!n)
		n = g->state[GATE_SIZE] = g_new0(struct size_counts, 1);
	if (S_ISDIR(e->attr.mode) && !(c->before && !S_ISDIR(c->before->attr.mode)))
		return 0;
	n->files++;
	n->deleted += !c->after;
	n->touched += c->before != NULL;
	if (gate_is_file(c) && c->content_changed && c->after->attr.size > g->config->limits.size)
		gate_report(g, GATE_SIZE, GATE_REVIEW, c->path, 0, "large-file", "has %" PRIu64 " bytes, more than %" PRIu64,
			    c->after->attr.size, g->config->limits.size);
	if (!c->content_changed)
		return 0;
	added = gate_added(g, error);
	if (!added)
		return -1;
	n->lines += added_lines(added) + added_removed_lines(added);
	return 0;
}

/* Counts the workspace's files until there are @enough. */
static int count_files(struct tree *t, const struct entry *dir, uint64_t enough, uint64_t *count)
{
	g_autoptr(GPtrArray) list = NULL;
	int r = tree_list(t, dir, &list);

	for (guint i = 0; r == 0 && i < list->len && *count < enough; i++) {
		const struct entry *e = list->pdata[i];

		if (!S_ISDIR(e->attr.mode))
			(*count)++;
		else
			r = count_files(t, e, enough, count);
	}
	return r;
}

static int check_share(struct gate *g, const struct size_counts *n, GError **error)
{
	const uint64_t share = g->config->limits.share;
	g_autoptr(entry_t) root = NULL;
	uint64_t enough, count = 0;
	int r;

	if (n->touched < SHARE_FILES_MIN || share == 0 || share >= 100)
		return 0;
	enough = n->touched * 100 / share + 1;
	r = tree_root(g->job->from, &root);
	if (r == 0)
		r = count_files(g->job->from, root, enough, &count);
	if (r < 0)
		return change_error(error, r, "can't count the files of", "the workspace");
	if (count < enough)
		gate_report(g, GATE_SIZE, GATE_REVIEW, NULL, 0, "share",
			    "touches %" PRIu64 " of the workspace's %" PRIu64 " files, more than %" PRIu64 " %%", n->touched, count, share);
	return 0;
}

static void check_count(struct gate *g, uint64_t n, uint64_t limit, const char *rule, const char *what)
{
	if (n > limit)
		gate_report(g, GATE_SIZE, GATE_REVIEW, NULL, 0, rule, "%" PRIu64 " %s, more than %" PRIu64, n, what, limit);
}

static int size_finish(struct gate *g, GError **error)
{
	const struct gate_limits *l = &g->config->limits;
	const struct size_counts *n = g->state[GATE_SIZE];

	check_count(g, n->files, l->files, "files", "changed files");
	check_count(g, n->lines, l->lines, "lines", "added and removed lines");
	check_count(g, n->deleted, l->deleted, "deletions", "deleted files");
	return check_share(g, n, error);
}

static void size_clear(struct gate *g)
{
	g_free(g->state[GATE_SIZE]);
}

const struct check check_size = { .name = "size", .change = size_change, .finish = size_finish, .clear = size_clear };
