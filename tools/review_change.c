/* SPDX-License-Identifier: MIT */
#include "tools/change_lines.h"
#include "tools/page.h"
#include "tools/review.h"
#include "tools/screen.h"
#include "tools/terminal_text.h"

/* Of a change that is not in parts; what is more than this is looked at elsewhere, which is said. */
#define WHOLE_LINES 20000
#define FINDINGS 20

static const char help[] =
	"One change\n"
	"\n"
	"  Up Down k j, PgUp PgDn b Space, Home End   scroll\n"
	"  Tab ], [                                   to the next hunk, to the one before\n"
	"  a, r, u                                    accept, reject, open again: this hunk, or the change if it is in no hunks\n"
	"  A, R, U                                    the whole change\n"
	"  s                                          split the hunk\n"
	"  n                                          a note\n"
	"  > <                                        the next change, the one before\n"
	"  c                                          to the end\n"
	"  Left, Esc, q                               back to the list\n"
	"\n"
	"Rejected hunks are rolled back when every hunk of the file is decided; else they stay in the sandbox, like open ones.";

/* Parts count from 1: the attributes, if they can be chosen, then the hunks. */
struct looking {
	struct review *r;
	struct offer *offer;
	GPtrArray *lines;
	struct page page;
	guint part; /* 0 = no parts */
};

static guint part_count(const struct looking *l)
{
	return l->offer->hunks ? l->offer->attributes + hunks_count(l->offer->hunks) : 0;
}

static bool is_attributes(const struct looking *l, guint part)
{
	return l->offer->attributes && part == 1;
}

static guint part_hunk(const struct looking *l, guint part)
{
	return part - 1 - l->offer->attributes;
}

static enum choice part_choice(const struct looking *l, guint part)
{
	return is_attributes(l, part) ? l->offer->attributes_choice : hunks_choice(l->offer->hunks, part_hunk(l, part));
}

/* Lines */

static void add_part(struct looking *l, guint part)
{
	const char *word = review_word(part_choice(l, part));

	change_lines_add(l->lines, '#', part, g_strdup_printf("(%u/%u) %s", part, part_count(l), word));
	if (is_attributes(l, part))
		change_lines_words(l->lines, l->offer->change);
	else
		change_lines_hunk(l->lines, l->offer->hunks, part_hunk(l, part), part);
}

static bool make_lines(struct looking *l)
{
	const struct review_item *item = review_item(l->r, l->r->at);
	int r = 0;

	g_clear_pointer(&l->lines, g_ptr_array_unref);
	l->lines = change_lines_new();
	if (item->note)
		change_lines_add(l->lines, '#', 0, g_strdup_printf("note: %s", item->note));
	review_add_findings(l->lines, item->findings, FINDINGS);
	for (guint part = 1; part <= part_count(l); part++)
		add_part(l, part);
	if (!l->offer->hunks)
		r = change_lines_whole(l->lines, l->offer->change, l->r->from, l->r->to, WHOLE_LINES, &l->r->error);
	page_set(&l->page, l->lines);
	return r >= 0;
}

/* Keys */

static void go_to(struct looking *l, guint part)
{
	if (part < 1 || part > part_count(l))
		return;
	l->part = part;
	page_go_to(&l->page, part);
}

static bool choose(struct looking *l, enum choice choice)
{
	if (part_count(l) == 0)
		selection_choose(l->r->selection, l->r->at, choice);
	else if (is_attributes(l, l->part))
		l->offer->attributes_choice = choice;
	else
		hunks_choose(l->offer->hunks, part_hunk(l, l->part), choice);
	if (!make_lines(l))
		return false;
	go_to(l, l->part + 1);
	return true;
}

static bool choose_all(struct looking *l, enum choice choice)
{
	selection_choose(l->r->selection, l->r->at, choice);
	return make_lines(l);
}

static bool split(struct looking *l)
{
	if (part_count(l) > 0 && !is_attributes(l, l->part) && hunks_can_split(l->offer->hunks, part_hunk(l, l->part)))
		hunks_split(l->offer->hunks, part_hunk(l, l->part));
	return make_lines(l);
}

static bool show_change(struct looking *l)
{
	if (selection_load(l->r->selection, l->r->at, &l->r->error) < 0)
		return false;
	l->offer = selection_at(l->r->selection, l->r->at);
	l->part = part_count(l) > 0;
	l->page.top = 0;
	return make_lines(l);
}

static bool show_other(struct looking *l, int by)
{
	int at = (int)l->r->at + by;

	if (at < 0 || at >= (int)selection_count(l->r->selection))
		return true;
	l->r->at = (guint)at;
	return show_change(l);
}

static enum review_next stay_if(bool ok)
{
	return ok ? REVIEW_STAY : REVIEW_FAILED;
}

static enum review_next act(struct looking *l, guint key)
{
	switch (key) {
	case 'a':
		return stay_if(choose(l, CHOICE_TAKEN));
	case 'r':
		return stay_if(choose(l, CHOICE_REFUSED));
	case 'u':
		return stay_if(choose(l, CHOICE_OPEN));
	case 'A':
		return stay_if(choose_all(l, CHOICE_TAKEN));
	case 'R':
		return stay_if(choose_all(l, CHOICE_REFUSED));
	case 'U':
		return stay_if(choose_all(l, CHOICE_OPEN));
	case 's':
		return stay_if(split(l));
	case 'n':
		review_edit_note(l->r, l->r->at);
		return stay_if(make_lines(l));
	case '>':
		return stay_if(show_other(l, 1));
	case '<':
		return stay_if(show_other(l, -1));
	case '\t':
	case ']':
		go_to(l, l->part + 1);
		break;
	case '[':
		go_to(l, l->part - 1);
		break;
	case '?':
		review_help(help);
		break;
	case 'c':
		return REVIEW_END;
	case 'q':
	case 'h':
	case SCREEN_KEY_LEFT:
	case SCREEN_KEY_ESCAPE:
		return REVIEW_BACK;
	case SCREEN_KEY_INTERRUPT:
		return review_ask_quit(l->r) ? REVIEW_QUIT : REVIEW_STAY;
	case SCREEN_KEY_END:
		return REVIEW_QUIT;
	default:
		break;
	}
	return REVIEW_STAY;
}

static void draw(struct looking *l)
{
	guint rows = screen_rows();
	g_autofree char *title =
		g_strdup_printf("(%u/%u) %s - %s", l->r->at + 1, selection_count(l->r->selection),
				review_item(l->r, l->r->at)->title, review_word(selection_state(l->r->selection, l->r->at)));

	screen_clear();
	screen_bar(0, SCREEN_BAR, title);
	page_draw(&l->page, 1, rows > 2 ? rows - 2 : 1, l->part);
	screen_bar(rows - 1, SCREEN_BAR,
		   "a: accept  r: reject  u: open  Tab: next hunk  s: split  n: note  > <: changes  Left: list  ?: help");
}

enum review_next review_change(struct review *r)
{
	struct looking l = { .r = r };
	enum review_next next = stay_if(show_change(&l));

	while (next == REVIEW_STAY) {
		guint key;

		draw(&l);
		key = screen_key();
		if (page_key(&l.page, key))
			l.part = page_part(&l.page, l.part);
		else
			next = act(&l, key);
	}
	page_clear(&l.page);
	g_clear_pointer(&l.lines, g_ptr_array_unref);
	return next;
}
