/* SPDX-License-Identifier: MIT */
#include "tools/tracked.h"

#include "snapshot/git_tracked.h"
#include "tools/output.h"

#define INDEX_MAX (4 * 1024 * 1024) /* bytes; about 40,000 names, 20 ms */

static bool is_closed_below(const struct policy *policy, const char *dir, const char *path, bool is_dir)
{
	g_autofree char *full = *dir ? g_build_filename(dir, path, NULL) : NULL;

	return policy_action(policy, policy_match_path(policy, full ? full : path, is_dir)) >= ACTION_MASK;
}

bool tracked_is_readable(const struct policy *policy, const char *dir)
{
	return !is_closed_below(policy, dir, ".git/objects", true);
}

bool tracked_is_closed(const struct policy *policy, const char *dir, const char *path)
{
	return is_closed_below(policy, dir, path, false);
}

struct tracked {
	const struct policy *policy;
	char *first;
	unsigned count;
};

static void note_tracked(const char *path, void *user)
{
	struct tracked *t = user;

	if (tracked_is_closed(t->policy, "", path) && t->count++ == 0)
		t->first = g_strdup(path);
}

void tracked_warn(const struct policy *policy, const char *workspace, const char *sandbox)
{
	struct tracked t = { .policy = policy };
	struct lower *l = NULL;

	if (!tracked_is_readable(policy, "") || lower_open(workspace, &l) < 0)
		return;
	git_tracked_each(l, INDEX_MAX, note_tracked, &t);
	lower_close(l);
	if (t.count > 0)
		output_note("note: the rules close %s%s, but git tracks it: its contents can be read through .git; `sbxfs doctor %s` tells more",
			    t.first, t.count > 1 ? " and others" : "", sandbox);
	g_free(t.first);
}
