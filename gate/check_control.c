/* SPDX-License-Identifier: MIT */

/* check_control - files that steer what is outside of the program: a human has to look, whoever wrote them */

#include <string.h>

#include "gate/check.h"
#include "gate/control_files.h"

#define YAML_MAX (1024 * 1024)

static void look_at(struct gate *g, const char *path, bool is_new_dir)
{
	enum control_kind kind = control_kind_of(path);

	/* An empty directory steers nothing, what comes in it is looked at; but one called .git makes a repository. */
	if (kind == CONTROL_NONE || (is_new_dir && kind != CONTROL_GIT_CODE))
		return;
	gate_report(g, GATE_CONTROL, kind == CONTROL_GIT_CODE ? GATE_REFUSE : GATE_REVIEW, path, 0, control_kind_rule(kind), "%s",
		    control_kind_text(kind));
}

static bool is_yaml(const char *path)
{
	return g_str_has_suffix(path, ".yaml") || g_str_has_suffix(path, ".yml");
}

static bool has_line(const char *text, const char *start)
{
	g_autofree char *inner = g_strconcat("\n", start, NULL);

	return g_str_has_prefix(text, start) || strstr(text, inner);
}

/* What Kubernetes takes has both keys at the beginning of a line, under any name. */
static int check_kubernetes(struct gate *g, const struct change *c, GError **error)
{
	g_autoptr(tree_file_t) f = NULL;
	g_autofree char *text = g_malloc(YAML_MAX + 1);
	size_t used = 0;
	ssize_t n = 1;
	int r = tree_file_open(g->job->to, c->after, &f);

	while (r == 0 && n > 0 && used < YAML_MAX) {
		n = tree_file_read(f, text + used, YAML_MAX - used, used);
		used += MAX(n, 0);
	}
	if (r < 0 || n < 0)
		return change_error(error, r < 0 ? r : (int)n, "can't read", c->path);
	for (size_t i = 0; i < used; i++)
		text[i] = text[i] ? text[i] : ' ';
	text[used] = '\0';
	if (has_line(text, "apiVersion:") && has_line(text, "kind:"))
		gate_report(g, GATE_CONTROL, GATE_REVIEW, c->path, 0, "kubernetes", "is something for Kubernetes");
	return 0;
}

static int control_change(struct gate *g, const struct change *c, GError **error)
{
	bool is_new_dir = c->status == CHANGE_ADDED && S_ISDIR(c->after->attr.mode);

	look_at(g, c->path, is_new_dir);
	if (c->from_path && control_kind_of(c->from_path) != control_kind_of(c->path))
		look_at(g, c->from_path, false);
	if (gate_is_file(c) && c->content_changed && is_yaml(c->path) && control_kind_of(c->path) == CONTROL_NONE)
		return check_kubernetes(g, c, error);
	return 0;
}

const struct check check_control = { .name = "control", .change = control_change };
