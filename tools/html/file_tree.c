/* SPDX-License-Identifier: MIT */
#include "tools/html/file_tree.h"

#include <inttypes.h>
#include <string.h>

#include "tools/html/text.h"

/* More files than this, and the directories start out closed. */
#define OPEN_MAX 400

/* A directory that is open in the page: all that begins with the first @length bytes of its items' paths, "/" included. */
struct level {
	size_t length;
	guint end; /* the item after its last */
};

static const char *path_of(const struct file_tree_item *item)
{
	return item->change->path;
}

static void put_counts(GString *out, uint64_t n, const char *class, const char *sign)
{
	if (n)
		g_string_append_printf(out, " <span class=%s>%s%" PRIu64 "</span>", class, sign, n);
}

void file_tree_counts(GString *out, uint64_t added, uint64_t removed)
{
	put_counts(out, added, "plus", "+");
	put_counts(out, removed, "minus", "\xe2\x88\x92");
}

static void put_file(GString *out, const struct file_tree_item *item, size_t skip)
{
	const struct change *c = item->change;

	g_string_append_printf(out, "<li><a href=#f%u><span class=\"st %c\">%c</span> ", item->number, c->status, c->status);
	html_path(out, c->path + skip);
	if (S_ISDIR((c->after ? c->after : c->before)->attr.mode))
		g_string_append_c(out, '/');
	if (c->from_path) {
		g_string_append(out, " <small>from ");
		html_path(out, c->from_path);
		g_string_append(out, "</small>");
	}
	if (item->level)
		g_string_append_printf(out, " <span class=\"flag %s\">%s</span>", item->level, item->level);
	file_tree_counts(out, item->added, item->removed);
	g_string_append(out, "</a></li>\n");
}

static void open_level(GString *out, const struct file_tree_item *items, guint first, size_t skip, const struct level *l, bool open)
{
	uint64_t added = 0, removed = 0;

	for (guint i = first; i < l->end; i++) {
		added += items[i].added;
		removed += items[i].removed;
	}
	g_string_append_printf(out, "<li><details%s><summary>", open ? " open" : "");
	html_name(out, path_of(&items[first]) + skip, l->length - skip);
	g_string_append_printf(out, " <small>%u</small>", l->end - first);
	file_tree_counts(out, added, removed);
	g_string_append(out, "</summary><ul>\n");
}

/* The directory that item @i opens below the first @skip bytes of its path, with all of a chain of only children; false for a file. */
static bool next_level(const struct file_tree_item *items, guint i, guint end, size_t skip, struct level *ret)
{
	const char *path = path_of(&items[i]), *slash = strchr(path + skip, '/');
	size_t common;

	if (!slash)
		return false;
	ret->length = slash + 1 - path;
	for (ret->end = i + 1; ret->end < end && strncmp(path_of(&items[ret->end]), path, ret->length) == 0; ret->end++)
		;
	/* In order of their paths the first and the last have in common what all have. */
	common = ret->length;
	for (size_t at = common; path[at] && path[at] == path_of(&items[ret->end - 1])[at]; at++)
		if (path[at] == '/')
			common = at + 1;
	ret->length = common;
	return true;
}

void file_tree(GString *out, const struct file_tree_item *items, guint n)
{
	struct level levels[FILE_TREE_DEPTH];
	guint depth = 0;

	g_string_append(out, "<ul class=tree>\n");
	for (guint i = 0; i < n; i++) {
		size_t skip;

		for (; depth && levels[depth - 1].end <= i; depth--)
			g_string_append(out, "</ul></details></li>\n");
		for (;;) {
			guint end = depth ? levels[depth - 1].end : n;

			skip = depth ? levels[depth - 1].length : 0;
			if (depth == FILE_TREE_DEPTH || !next_level(items, i, end, skip, &levels[depth]))
				break;
			open_level(out, items, i, skip, &levels[depth], n <= OPEN_MAX);
			depth++;
		}
		put_file(out, &items[i], skip);
	}
	for (; depth; depth--)
		g_string_append(out, "</ul></details></li>\n");
	g_string_append(out, "</ul>\n");
}
