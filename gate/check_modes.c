/* SPDX-License-Identifier: MIT */

/* check_modes - what permissions, types and links would let others do in the workspace */

#include <errno.h>
#include <string.h>

#include "gate/check.h"
#include "snapshot/xattr.h"

#define LINKS_MAX 40

static void report(struct gate *g, enum gate_level level, const char *rule, const char *message)
{
	gate_report(g, GATE_MODES, level, g->change->path, 0, rule, "%s", message);
}

static bool gained(const struct change *c, uint32_t bits)
{
	return c->after->attr.mode & bits && !(c->before && (c->before->attr.mode & S_IFMT) == (c->after->attr.mode & S_IFMT) &&
					       (c->before->attr.mode & bits) == (c->after->attr.mode & bits));
}

static void check_bits(struct gate *g, const struct change *c)
{
	bool is_file = S_ISREG(c->after->attr.mode);

	if (is_file && gained(c, S_ISUID | S_ISGID))
		report(g, GATE_REFUSE, "setuid", "runs with the rights of its owner or group (setuid, setgid)");
	if (is_file && gained(c, S_IXUSR | S_IXGRP | S_IXOTH))
		report(g, GATE_REVIEW, "executable", c->before ? "becomes executable" : "is a new executable");
	if (!S_ISLNK(c->after->attr.mode) && gained(c, S_IWOTH) && !(c->after->attr.mode & S_ISVTX))
		report(g, GATE_REVIEW, "world-writable", "everyone can write it");
	if (S_ISDIR(c->after->attr.mode) && c->before && gained(c, S_ISGID))
		report(g, GATE_REVIEW, "setgid-directory", "hands its group to what is made in it");
	if (change_mode_changed(c) && (c->before->attr.uid != c->after->attr.uid || c->before->attr.gid != c->after->attr.gid))
		report(g, GATE_REVIEW, "owner", "changes its owner or group");
}

static void check_type(struct gate *g, const struct change *c)
{
	uint32_t mode = c->after->attr.mode;

	if (c->before && (c->before->attr.mode & S_IFMT) == (mode & S_IFMT))
		return;
	if (S_ISBLK(mode) || S_ISCHR(mode))
		report(g, GATE_REFUSE, "device", "is a device");
	else if (S_ISFIFO(mode) || S_ISSOCK(mode))
		report(g, GATE_REVIEW, "special-file", "is a fifo or a socket");
}

static int check_capability(struct gate *g, const struct change *c, GError **error)
{
	g_autoptr(GBytes) old = NULL, new = NULL;
	const void *value;
	size_t size;
	int r = change_xattrs(g->job->to, c->after, &new);

	if (r == 0 && c->before)
		r = change_xattrs(g->job->from, c->before, &old);
	if (r < 0)
		return change_error(error, r, "can't read the extended attributes of", c->path);
	if (!xattrs_equal(old, new) && xattrs_get(new, "security.capability", &value, &size))
		report(g, GATE_REFUSE, "capability", "runs with capabilities of its own");
	return 0;
}

/* Links */

/* Where a walk through the new tree has come to: components, "" is the root. */
struct walk {
	struct gate *gate;
	GString *at;
	unsigned links;
};

enum walk_end { WALK_INSIDE, WALK_OUTSIDE };

static void go_up(GString *at)
{
	const char *slash = strrchr(at->str, '/');

	g_string_truncate(at, slash ? slash - at->str : 0);
}

/* Follows @target from w->at as the kernel would; negative when the tree can't be read. */
static int walk(struct walk *w, const char *target)
{
	g_auto(GStrv) parts = g_strsplit(target, "/", -1);

	if (*target == '/' || ++w->links > LINKS_MAX)
		return *target == '/' ? WALK_OUTSIDE : WALK_INSIDE;
	for (char **p = parts; *p; p++) {
		g_autoptr(entry_t) e = NULL;
		g_autofree char *next = NULL;
		int r;

		if (!**p || g_str_equal(*p, "."))
			continue;
		if (g_str_equal(*p, "..")) {
			if (w->at->len == 0)
				return WALK_OUTSIDE;
			go_up(w->at);
			continue;
		}
		if (w->at->len > 0)
			g_string_append_c(w->at, '/');
		g_string_append(w->at, *p);
		r = tree_lookup_path(w->gate->job->to, w->at->str, &e);
		if (r == -ENAMETOOLONG)
			return WALK_INSIDE;
		if (r == 0 && e && S_ISLNK(e->attr.mode)) {
			r = tree_readlink(w->gate->job->to, e, &next);
			if (r == 0) {
				go_up(w->at);
				r = walk(w, next);
			}
		}
		if (r != 0)
			return r;
	}
	return WALK_INSIDE;
}

static int check_link(struct gate *g, const struct change *c, GError **error)
{
	g_autofree char *target = NULL;
	struct walk w = { .gate = g };
	int r = tree_readlink(g->job->to, c->after, &target);

	if (r == 0) {
		w.at = g_string_new(c->path);
		go_up(w.at);
		r = walk(&w, target);
		g_string_free(w.at, TRUE);
	}
	if (r < 0)
		return change_error(error, r, "can't follow the link", c->path);
	if (r == WALK_OUTSIDE)
		report(g, GATE_REFUSE, "link-outside", "is a link to something outside of the workspace");
	return 0;
}

static int modes_change(struct gate *g, const struct change *c, GError **error)
{
	if (!c->after)
		return 0;
	check_bits(g, c);
	check_type(g, c);
	/* A renamed link leads elsewhere even when its text is the same. */
	if (S_ISLNK(c->after->attr.mode) && (c->content_changed || c->status == CHANGE_RENAMED))
		return check_link(g, c, error);
	return gate_is_file(c) ? check_capability(g, c, error) : 0;
}

const struct check check_modes = { .name = "modes", .change = modes_change };
