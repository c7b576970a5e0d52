/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "snapshot/diff.h"
#include "tools/attach.h"
#include "tools/review.h"
#include "tools/sandbox.h"
#include "tools/screen.h"
#include "tools/terminal_text.h"

static const char help[] = "The list of changes\n"
			   "\n"
			   "  Up Down k j, PgUp PgDn, Home End   move\n"
			   "  Enter, Right                       look at the change, and choose hunks of it\n"
			   "  a                                  accept: it will be committed\n"
			   "  r                                  reject: it will be rolled back\n"
			   "  u                                  open again: it stays in the sandbox\n"
			   "  A                                  accept all that is open\n"
			   "  n                                  a note, for the summary and the audit\n"
			   "  c                                  to the end: see all of it once more, and do it\n"
			   "  q                                  leave, with nothing done\n"
			   "\n"
			   "  [+] accepted   [-] rejected   [~] in part   [ ] open\n"
			   "  !  the gate wants a human's look at it   !!  the gate refuses it   *  has a note";

/* Drawing */

static void count_lines(struct review *r, guint i)
{
	const struct change *c = selection_at(r->selection, i)->change;
	struct review_item *item = review_item(r, i);
	uint64_t added = 0, removed = 0;
	bool binary = false;

	if (item->counts)
		return;
	/* What cannot be read says so when it is looked at. */
	if (diff_count_lines(c, r->from, r->to, &added, &removed, &binary, NULL) < 0)
		item->counts = g_strdup("?");
	else if (binary)
		item->counts = g_strdup("binary");
	else
		item->counts = g_strdup_printf("+%" PRIu64 " -%" PRIu64, added, removed);
}

static const char *finding_mark(const struct review_item *item)
{
	enum gate_level level = GATE_PASS;

	for (guint i = 0; i < item->findings->len; i++)
		level = MAX(level, ((const struct gate_finding *)item->findings->pdata[i])->level);
	return level == GATE_REFUSE ? "!!" : level == GATE_REVIEW ? " !" : "  ";
}

static void draw_item(struct review *r, guint i, guint row)
{
	static const char marks[] = { [CHOICE_OPEN] = ' ', [CHOICE_TAKEN] = '+', [CHOICE_REFUSED] = '-', [CHOICE_MIXED] = '~' };
	static const enum screen_style styles[] = {
		[CHOICE_OPEN] = SCREEN_PLAIN,
		[CHOICE_TAKEN] = SCREEN_ADDED,
		[CHOICE_REFUSED] = SCREEN_REMOVED,
		[CHOICE_MIXED] = SCREEN_HUNK,
	};
	const struct review_item *item = review_item(r, i);
	enum choice state = selection_state(r->selection, i);
	enum screen_style style = i == r->at ? SCREEN_CURSOR : styles[state];
	g_autofree char *head = g_strdup_printf("[%c] %s%c ", marks[state], finding_mark(item), item->note ? '*' : ' '),
			*line = NULL;
	guint room = screen_columns(), tail;

	count_lines(r, i);
	tail = terminal_width(item->counts) + 1;
	line = g_strconcat(head, item->title, NULL);
	screen_bar(row, style, room > tail ? terminal_cut(line, room - tail) : "");
	if (room > tail)
		screen_put(row, room - tail + 1, style, item->counts);
}

static void draw(struct review *r)
{
	guint height = screen_rows() > 2 ? screen_rows() - 2 : 1, count = selection_count(r->selection);
	g_autofree char *totals = review_totals(r), *title = NULL;

	title = g_strdup_printf("sbxfs review %s - %s - gate: %s", r->attached->sandbox->name, totals,
				gate_level_name(r->gate->verdict));
	r->top = MIN(r->top, r->at);
	if (r->at >= r->top + height)
		r->top = r->at - height + 1;
	screen_clear();
	screen_bar(0, SCREEN_BAR, title);
	for (guint i = 0; i < height && r->top + i < count; i++)
		draw_item(r, r->top + i, i + 1);
	screen_bar(screen_rows() - 1, SCREEN_BAR,
		   "Enter: look  a: accept  r: reject  u: open  n: note  c: to the end  q: leave  ?: help");
}

/* Keys */

static void move(struct review *r, int by)
{
	int at = (int)r->at + by, last = (int)selection_count(r->selection) - 1;

	r->at = (guint)CLAMP(at, 0, last);
}

static bool move_key(struct review *r, guint key)
{
	int page = MAX((int)screen_rows() - 3, 1), count = (int)selection_count(r->selection);

	switch (key) {
	case SCREEN_KEY_UP:
	case 'k':
		move(r, -1);
		return true;
	case SCREEN_KEY_DOWN:
	case 'j':
		move(r, 1);
		return true;
	case SCREEN_KEY_PAGE_UP:
		move(r, -page);
		return true;
	case SCREEN_KEY_PAGE_DOWN:
	case ' ':
		move(r, page);
		return true;
	case SCREEN_KEY_HOME:
	case 'g':
		move(r, -count);
		return true;
	case SCREEN_KEY_LAST:
	case 'G':
		move(r, count);
		return true;
	default:
		return false;
	}
}

static void choose(struct review *r, enum choice choice)
{
	selection_choose(r->selection, r->at, choice);
	move(r, 1);
}

static void accept_open(struct review *r)
{
	for (guint i = 0; i < selection_count(r->selection); i++)
		if (selection_state(r->selection, i) == CHOICE_OPEN)
			selection_choose(r->selection, i, CHOICE_TAKEN);
}

static enum review_next act(struct review *r, guint key)
{
	switch (key) {
	case 'a':
		choose(r, CHOICE_TAKEN);
		break;
	case 'r':
		choose(r, CHOICE_REFUSED);
		break;
	case 'u':
		choose(r, CHOICE_OPEN);
		break;
	case 'A':
		accept_open(r);
		break;
	case 'n':
		review_edit_note(r, r->at);
		break;
	case 'c':
		return REVIEW_END;
	case '?':
		review_help(help);
		break;
	case '\r':
	case '\n':
	case SCREEN_KEY_RIGHT:
	case 'l':
		return review_change(r);
	case SCREEN_KEY_END:
		return REVIEW_QUIT;
	case 'q':
	case SCREEN_KEY_INTERRUPT:
		return review_ask_quit(r) ? REVIEW_QUIT : REVIEW_STAY;
	default:
		break;
	}
	return REVIEW_STAY;
}

enum review_next review_list(struct review *r)
{
	enum review_next next = REVIEW_STAY;

	while (next == REVIEW_STAY || next == REVIEW_BACK) {
		guint key;

		draw(r);
		key = screen_key();
		next = move_key(r, key) ? REVIEW_STAY : act(r, key);
	}
	return next;
}
