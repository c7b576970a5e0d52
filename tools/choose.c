/* SPDX-License-Identifier: MIT */
#include "tools/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/change_lines.h"
#include "tools/exit.h"
#include "tools/output.h"

/* Of a change that is shown whole: more is for sbxfs diff. */
#define WHOLE_LINES 200

/* The parts of one offer: its attributes first, if they can be chosen, then its hunks; or the whole. */
struct asking {
	struct selection *selection;
	struct tree *from, *to;
	guint number; /* of the offer */
	struct offer *offer;
	bool quit;
};

static const char help[] = "y - commit this\n"
			   "n - leave it in the sandbox\n"
			   "q - leave this and all that follows\n"
			   "a - commit this and all later hunks of the file\n"
			   "d - leave this and all later hunks of the file\n"
			   "j - decide later, go to the next hunk\n"
			   "k - go to the previous hunk\n"
			   "s - split the hunk into smaller ones\n"
			   "? - this help\n";

bool choose_can_ask(GError **error)
{
	if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		return true;
	tool_error(error, EXIT_USAGE, NULL,
		   "-i asks for each change, and there is no terminal to ask on; choose paths with -- PATH instead");
	return false;
}

/* Showing */

static void print_line(char kind, const char *text)
{
	const char *color = output_has_color(STDERR_FILENO) ? output_line_color(kind) : NULL;
	const char mark[] = { kind == '@' ? '\0' : kind, kind == '#' ? ' ' : '\0', '\0' };

	fprintf(stderr, "%s%s%s%s\n", color ? color : "", mark, text, color ? COLOR_END : "");
}

static void print_title(const struct asking *a)
{
	g_autofree char *title = change_lines_title(a->offer->change);
	bool color = output_has_color(STDERR_FILENO);

	fprintf(stderr, "%s(%u/%u) %s%s\n", color ? "\033[1m" : "", a->number + 1, selection_count(a->selection), title,
		color ? COLOR_END : "");
}

static guint part_count(const struct asking *a)
{
	return a->offer->hunks ? a->offer->attributes + hunks_count(a->offer->hunks) : 1;
}

/* The hunk of part @i, or -1. */
static int part_hunk(const struct asking *a, guint i)
{
	return a->offer->hunks ? (int)i - a->offer->attributes : -1;
}

static bool show_part(const struct asking *a, guint i, GError **error)
{
	g_autoptr(GPtrArray) lines = change_lines_new();
	int hunk = part_hunk(a, i), r = 0;

	if (hunk >= 0)
		change_lines_hunk(lines, a->offer->hunks, hunk, 0);
	else if (a->offer->hunks)
		change_lines_words(lines, a->offer->change);
	else
		r = change_lines_whole(lines, a->offer->change, a->from, a->to, WHOLE_LINES, error);
	for (guint k = 0; r == 0 && k < lines->len; k++) {
		const struct shown_line *line = lines->pdata[k];

		print_line(line->kind, line->text);
	}
	return r == 0;
}

/* Choosing */

static enum choice part_choice(const struct asking *a, guint i)
{
	int hunk = part_hunk(a, i);

	return hunk >= 0 ? hunks_choice(a->offer->hunks, hunk) : a->offer->hunks ? a->offer->attributes_choice : a->offer->choice;
}

static void choose_part(struct asking *a, guint i, enum choice choice)
{
	int hunk = part_hunk(a, i);

	if (hunk >= 0)
		hunks_choose(a->offer->hunks, hunk, choice);
	else if (a->offer->hunks)
		a->offer->attributes_choice = choice;
	else
		a->offer->choice = choice;
}

static void choose_from(struct asking *a, guint i, enum choice choice)
{
	for (; i < part_count(a); i++)
		choose_part(a, i, choice);
}

static bool can_split(const struct asking *a, guint i)
{
	int hunk = part_hunk(a, i);

	return hunk >= 0 && hunks_can_split(a->offer->hunks, hunk);
}

/* One letter; 0 at the end of the input. */
static char ask(const struct asking *a, guint i)
{
	const char *what = part_hunk(a, i) >= 0 ? "hunk" : a->offer->hunks ? "change of attributes" : "change";
	bool several = part_count(a) > 1;
	g_autofree char *line = NULL;
	size_t size = 0;

	fprintf(stderr, "(%u/%u) Commit this %s [y,n,q%s%s%s%s,?]? ", i + 1, part_count(a), what, several ? ",a,d" : "",
		i + 1 < part_count(a) ? ",j" : "", i > 0 ? ",k" : "", can_split(a, i) ? ",s" : "");
	fflush(stderr);
	if (getline(&line, &size, stdin) <= 0) {
		fputc('\n', stderr);
		return '\0';
	}
	return *line == '\n' ? '\n' : line[1] == '\n' || line[1] == '\0' ? *line : '?';
}

/* The next part that is not decided, from @i on. */
static guint next_open(const struct asking *a, guint i)
{
	while (i < part_count(a) && part_choice(a, i) != CHOICE_OPEN)
		i++;
	return i;
}

/* Acts on an answer and returns the part to go to; it is @i for one that is not understood. */
static guint answer(struct asking *a, guint i, char letter)
{
	switch (letter) {
	case 'y':
	case 'n':
		choose_part(a, i, letter == 'y' ? CHOICE_TAKEN : CHOICE_REFUSED);
		return next_open(a, i + 1);
	case 'a':
	case 'd':
		choose_from(a, i, letter == 'a' ? CHOICE_TAKEN : CHOICE_REFUSED);
		return part_count(a);
	case '\0':
	case 'q':
		a->quit = true;
		return part_count(a);
	case 'j':
		if (i + 1 < part_count(a))
			return i + 1;
		break;
	case 'k':
		if (i > 0)
			return i - 1;
		break;
	case 's':
		if (!can_split(a, i))
			break;
		hunks_split(a->offer->hunks, part_hunk(a, i));
		return i;
	default:
		break;
	}
	fputs(help, stderr);
	return i;
}

static bool ask_offer(struct asking *a, GError **error)
{
	guint i = 0;

	print_title(a);
	while (i < part_count(a)) {
		if (!show_part(a, i, error))
			return false;
		i = answer(a, i, ask(a, i));
	}
	return true;
}

bool choose_run(struct selection *s, struct tree *from, struct tree *to, GError **error)
{
	struct asking a = { .selection = s, .from = from, .to = to };

	fflush(stdout);
	for (guint i = 0; i < selection_count(s) && !a.quit; i++) {
		if (selection_load(s, i, error) < 0)
			return false;
		a.number = i;
		a.offer = selection_at(s, i);
		if (!ask_offer(&a, error))
			return false;
	}
	return true;
}
