/* SPDX-License-Identifier: MIT */

/* check_control - files that steer what is outside of the program: a human has to look, whoever wrote them */

#include <string.h>

#include "gate/check.h"
#include "gate/control_files.h"

#define PIECE (256 * 1024)
#define OVERLAP 64

static void look_at(struct gate *g, const char *path, bool is_new_dir)
{
	enum control_kind kind = control_kind_of(path);

	/* An empty directory steers nothing, what comes in it is looked at; but one called .git makes a repository. */
	if (kind == CONTROL_NONE || (is_new_dir && kind != CONTROL_GIT_CODE))
		return;
	gate_report(g, GATE_CONTROL, kind == CONTROL_GIT_CODE ? GATE_REFUSE : GATE_REVIEW, path, 0, control_kind_rule(kind), "%s",
		    control_kind_text(kind));
}

static bool may_be_kubernetes(const char *path)
{
	g_autofree char *lower = g_ascii_strdown(path, -1);

	return g_str_has_suffix(lower, ".yaml") || g_str_has_suffix(lower, ".yml") || g_str_has_suffix(lower, ".json");
}

/* As a key of YAML or JSON: at any depth, with or without quotes. */
static bool has_key(const char *text, const char *key)
{
	for (const char *p = text; (p = strstr(p, key)); p += strlen(key)) {
		const char *end = p + strlen(key);

		if (p > text && (g_ascii_isalnum(p[-1]) || strchr("_-.", p[-1])))
			continue;
		end += *end == '"' || *end == '\'';
		end += strspn(end, " \t");
		if (*end == ':')
			return true;
	}
	return false;
}

/* What Kubernetes takes has both keys, under any name. The end of each piece is looked at again with the next one. */
static int check_kubernetes(struct gate *g, const struct change *c, GError **error)
{
	g_autoptr(tree_file_t) f = NULL;
	g_autofree char *text = g_malloc(OVERLAP + PIECE + 1);
	uint64_t offset = 0;
	size_t kept = 0;
	bool version = false, kind = false;
	ssize_t n = 1;
	int r = tree_file_open(g->job->to, c->after, &f);

	while (r == 0 && n > 0 && !(version && kind)) {
		size_t size = kept;

		n = tree_file_read(f, text + kept, PIECE, offset);
		for (ssize_t i = 0; i < n; i++)
			if (text[kept + i])
				text[size++] = text[kept + i];
		text[size] = '\0';
		offset += MAX(n, 0);
		version = version || has_key(text, "apiVersion");
		kind = kind || has_key(text, "kind");
		kept = MIN(size, OVERLAP);
		memmove(text, text + size - kept, kept);
	}
	if (r < 0 || n < 0)
		return change_error(error, r < 0 ? r : (int)n, "can't read", c->path);
	if (version && kind)
		gate_report(g, GATE_CONTROL, GATE_REVIEW, c->path, 0, "kubernetes", "is something for Kubernetes");
	return 0;
}

static int control_change(struct gate *g, const struct change *c, GError **error)
{
	bool is_new_dir = c->status == CHANGE_ADDED && S_ISDIR(c->after->attr.mode);

	look_at(g, c->path, is_new_dir);
	if (c->from_path && control_kind_of(c->from_path) != control_kind_of(c->path))
		look_at(g, c->from_path, false);
	if (gate_is_file(c) && c->content_changed && may_be_kubernetes(c->path) && control_kind_of(c->path) == CONTROL_NONE)
		return check_kubernetes(g, c, error);
	return 0;
}

const struct check check_control = { .name = "control", .change = control_change };
