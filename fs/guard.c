/* SPDX-License-Identifier: MIT */
#include "fs/guard.h"

#include <errno.h>
#include <string.h>

static bool action_asks(enum action a)
{
	return a == ACTION_ASK || a == ACTION_ASK_CHANGE;
}

static bool denies_all_below(const struct policy *p, struct policy_match m, const char *path)
{
	return policy_action(p, m) >= ACTION_DENY && !policy_may_open_below(p, m, path);
}

/* @lower: where the workspace object is; @path itself for what has none. */
static void verdict_finish(const struct policy *p, const char *path, const char *lower, bool is_dir, struct verdict *v)
{
	v->action = MAX(policy_action(p, v->view), policy_action(p, v->lower));
	v->granted = v->action;
	if (action_asks(v->action))
		v->granted = MAX(policy_action_granted(p, v->view), policy_action_granted(p, v->lower));
	v->walkable = v->action == ACTION_DENY && is_dir && !denies_all_below(p, v->view, path) && !denies_all_below(p, v->lower, lower);
}

void guard_verdict(const struct policy *p, const struct node *dir, const char *path, const char *lower, bool inherit, bool is_dir,
		   struct verdict *ret)
{
	ret->view = policy_match_child(p, dir->verdict.view, path, is_dir);
	if (!lower)
		ret->lower = ret->view;
	else if (inherit && strcmp(path, lower) == 0 && memcmp(&dir->verdict.view, &dir->verdict.lower, sizeof(ret->view)) == 0)
		ret->lower = ret->view;
	else if (inherit)
		ret->lower = policy_match_child(p, dir->verdict.lower, lower, is_dir);
	else
		ret->lower = policy_match_path(p, lower, is_dir);
	verdict_finish(p, path, lower ? lower : path, is_dir, ret);
}

void guard_root(const struct policy *p, struct verdict *ret)
{
	ret->view = ret->lower = policy_match_path(p, "", true);
	verdict_finish(p, "", "", true, ret);
}

int guard_look(const struct verdict *v)
{
	return v->action >= ACTION_HIDE ? -ENOENT : v->action >= ACTION_DENY ? -EACCES : 0;
}

int guard_read(const struct verdict *v)
{
	return v->action == ACTION_ASK ? GUARD_ASKS : guard_look(v);
}

int guard_change(const struct verdict *v)
{
	int r = guard_look(v);

	if (r < 0)
		return r;
	return v->granted >= ACTION_READ ? -EROFS : action_asks(v->action) ? GUARD_ASKS : 0;
}

int guard_read_xattr(const struct verdict *v)
{
	return v->action == ACTION_MASK ? -EACCES : guard_look(v);
}

bool guard_is_masked(const struct verdict *v)
{
	return v->action == ACTION_MASK;
}

int guard_create(const struct verdict *v)
{
	int r = guard_change(v);

	return r == -ENOENT ? -EACCES : r;
}

int guard_link_above(const struct policy *p, const struct verdict *v, const char *path)
{
	return policy_names_closed_below(p, v->view, path) ? -EACCES : 0;
}

int guard_traverse(const struct verdict *v)
{
	return v->walkable ? 0 : guard_look(v);
}

bool guard_is_hidden(const struct verdict *v)
{
	return v->action >= ACTION_HIDE;
}

void guard_attr(const struct verdict *v, struct attr *attr)
{
	if (v->action >= ACTION_DENY) {
		uint32_t mode = (attr->mode & S_IFMT) | (v->walkable ? 0111 : 0);

		*attr = (struct attr){ .mode = mode, .uid = attr->uid, .gid = attr->gid, .nlink = 1 };
	} else if (v->granted >= ACTION_READ && !S_ISDIR(attr->mode) && !S_ISLNK(attr->mode)) {
		/* A directory keeps its bits: what is made in it comes to us and gets EROFS, which says more than EACCES. */
		attr->mode &= ~0222u;
	}
}
