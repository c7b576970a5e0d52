/* SPDX-License-Identifier: MIT */
#include "snapshot/diff.h"

#include <string.h>

/* The bar's width. Paths are never cut, so a line may be longer than any terminal. */
#define GRAPH_WIDTH 50
/* One very long path does not indent all others. */
#define NAME_WIDTH_MAX 100

struct stat_line {
	char *name;
	char *words;
	uint64_t added;
	uint64_t removed;
	bool binary;
	uint64_t size_before;
	uint64_t size_after;
};

static void stat_line_free(gpointer data)
{
	struct stat_line *l = data;

	g_free(l->name);
	g_free(l->words);
	g_free(l);
}

static uint64_t file_size(const struct entry *e)
{
	return e && S_ISREG(e->attr.mode) ? e->attr.size : 0;
}

static int stat_line_new(const struct change *c, struct tree *from, struct tree *to, struct stat_line **ret,
			 GError **error)
{
	struct stat_line l = { .size_before = file_size(c->before), .size_after = file_size(c->after) };
	g_autofree char *old_name = NULL, *name = NULL;
	int r = diff_count_lines(c, from, to, &l.added, &l.removed, &l.binary, error);

	if (r < 0)
		return r;
	name = diff_quote_path(c->path);
	old_name = c->from_path ? diff_quote_path(c->from_path) : NULL;
	l.name = old_name ? g_strdup_printf("%s => %s", old_name, name) : g_steal_pointer(&name);
	l.words = diff_describe(c);
	*ret = g_memdup2(&l, sizeof(l));
	return 0;
}

static uint64_t scale(uint64_t n, uint64_t max)
{
	return n ? 1 + n * (GRAPH_WIDTH - 1) / max : 0;
}

/* As git does: the sum is scaled, then the smaller part, so that neither disappears. */
static void append_graph(GString *s, uint64_t added, uint64_t removed, uint64_t max)
{
	if (max > GRAPH_WIDTH) {
		uint64_t total = scale(added + removed, max);

		if (total < 2 && added && removed)
			total = 2;
		if (added < removed) {
			added = scale(added, max);
			removed = total - added;
		} else {
			removed = scale(removed, max);
			added = total - removed;
		}
	}
	for (; added; added--)
		g_string_append_c(s, '+');
	for (; removed; removed--)
		g_string_append_c(s, '-');
}

static void append_line(GString *s, const struct stat_line *l, int name_width, int number_width, uint64_t max)
{
	g_string_append_printf(s, " %-*s | ", name_width, l->name);
	if (l->binary)
		g_string_append_printf(s, "%*s %" G_GUINT64_FORMAT " -> %" G_GUINT64_FORMAT " bytes", number_width,
				       "Bin", l->size_before, l->size_after);
	else
		g_string_append_printf(s, "%*" G_GUINT64_FORMAT, number_width, l->added + l->removed);
	if (!l->binary && l->added + l->removed) {
		g_string_append_c(s, ' ');
		append_graph(s, l->added, l->removed, max);
	}
	if (l->words)
		g_string_append_printf(s, " (%s)", l->words);
	g_string_append_c(s, '\n');
}

static void append_count(GString *s, uint64_t n, const char *what, char sign)
{
	g_string_append_printf(s, ", %" G_GUINT64_FORMAT " %s%s(%c)", n, what, n == 1 ? "" : "s", sign);
}

static void append_summary(GString *s, guint files, uint64_t added, uint64_t removed)
{
	g_string_append_printf(s, " %u file%s changed", files, files == 1 ? "" : "s");
	if (added || !removed)
		append_count(s, added, "insertion", '+');
	if (removed || !added)
		append_count(s, removed, "deletion", '-');
	g_string_append_c(s, '\n');
}

int diff_stat(GPtrArray *changes, struct tree *from, struct tree *to, diff_write write, void *user, GError **error)
{
	g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(stat_line_free);
	g_autoptr(GString) s = g_string_new(NULL);
	uint64_t added = 0, removed = 0, max = 0;
	int name_width = 0, number_width = 1;

	for (guint i = 0; i < changes->len; i++) {
		struct stat_line *l;
		int r = stat_line_new(g_ptr_array_index(changes, i), from, to, &l, error);

		if (r < 0)
			return r;
		g_ptr_array_add(lines, l);
		added += l->added;
		removed += l->removed;
		max = MAX(max, l->added + l->removed);
		name_width = CLAMP((int)strlen(l->name), name_width, NAME_WIDTH_MAX);
		if (l->binary)
			number_width = MAX(number_width, (int)strlen("Bin"));
	}
	number_width = MAX(number_width, g_snprintf(NULL, 0, "%" G_GUINT64_FORMAT, max));
	for (guint i = 0; i < lines->len; i++) {
		g_string_truncate(s, 0);
		append_line(s, g_ptr_array_index(lines, i), name_width, number_width, max);
		write(s->str, s->len, user);
	}
	if (lines->len) {
		g_string_truncate(s, 0);
		append_summary(s, lines->len, added, removed);
		write(s->str, s->len, user);
	}
	return 0;
}
