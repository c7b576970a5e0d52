/* SPDX-License-Identifier: MIT */
#include "snapshot/pathspec.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

struct pathspec_item {
	char *text;
	size_t length;
	size_t fixed; /* of a glob: the length of the directory in front of its first special character; else 0 */
	bool glob;
};

struct pathspec {
	GArray *items; /* NULL = everything */
};

/* "./a//b/" is a/b. */
static char *normalize(const char *path)
{
	g_auto(GStrv) parts = g_strsplit(path, "/", -1);
	GString *s = g_string_new(NULL);

	for (char **part = parts; *part; part++) {
		if (!**part || strcmp(*part, ".") == 0)
			continue;
		if (s->len)
			g_string_append_c(s, '/');
		g_string_append(s, *part);
	}
	return g_string_free(s, FALSE);
}

static void item_clear(gpointer data)
{
	g_free(((struct pathspec_item *)data)->text);
}

struct pathspec *pathspec_new(const char *const *items)
{
	struct pathspec *p = g_new0(struct pathspec, 1);

	if (!items)
		return p;
	p->items = g_array_new(FALSE, FALSE, sizeof(struct pathspec_item));
	g_array_set_clear_func(p->items, item_clear);
	for (; *items; items++) {
		struct pathspec_item item = { .text = normalize(*items) };
		size_t special = strcspn(item.text, "*?[");

		item.length = strlen(item.text);
		item.glob = special < item.length;
		while (item.glob && special > 0 && item.text[special - 1] != '/')
			special--;
		item.fixed = item.glob && special > 0 ? special - 1 : 0;
		g_array_append_val(p->items, item);
	}
	return p;
}

void pathspec_free(struct pathspec *p)
{
	if (!p)
		return;
	g_clear_pointer(&p->items, g_array_unref);
	g_free(p);
}

/* Is @path the directory @dir or below it? */
static bool lies_in(const char *path, const char *dir, size_t dir_length)
{
	return dir_length == 0 ||
	       (strncmp(path, dir, dir_length) == 0 && (path[dir_length] == '/' || !path[dir_length]));
}

/* Does the glob match @path or one of its parents? */
static bool glob_covers(const char *glob, const char *path)
{
	g_autofree char *part = g_strdup(path);

	for (;;) {
		char *slash;

		if (fnmatch(glob, part, 0) == 0)
			return true;
		slash = strrchr(part, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
}

static enum pathspec_match item_match(const struct pathspec_item *item, const char *path)
{
	size_t length = strlen(path);

	if (lies_in(path, item->text, item->length))
		return PATHSPEC_ALL;
	if (lies_in(item->text, path, length))
		return PATHSPEC_BELOW;
	if (!item->glob)
		return PATHSPEC_NONE;
	if (glob_covers(item->text, path))
		return PATHSPEC_ALL;
	return lies_in(path, item->text, item->fixed) ? PATHSPEC_BELOW : PATHSPEC_NONE;
}

enum pathspec_match pathspec_match(const struct pathspec *p, const char *path)
{
	enum pathspec_match best = PATHSPEC_NONE;

	if (!p->items)
		return PATHSPEC_ALL;
	for (guint i = 0; i < p->items->len && best != PATHSPEC_ALL; i++)
		best = MAX(best, item_match(&g_array_index(p->items, struct pathspec_item, i), path));
	return best;
}
