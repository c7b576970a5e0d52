/* SPDX-License-Identifier: MIT */
#include "tools/review.h"

#include <inttypes.h>
#include <string.h>

#include "gate/gate.h"
#include "tools/change_lines.h"
#include "tools/screen.h"
#include "tools/terminal_text.h"

struct review_item *review_item(struct review *r, guint i)
{
	return r->items->pdata[i];
}

const char *review_word(enum choice choice)
{
	static const char *const words[] = {
		[CHOICE_OPEN] = "open",
		[CHOICE_TAKEN] = "accepted",
		[CHOICE_REFUSED] = "rejected",
		[CHOICE_MIXED] = "in part",
	};

	return words[choice];
}

char *review_totals(struct review *r)
{
	static const enum choice order[] = { CHOICE_TAKEN, CHOICE_REFUSED, CHOICE_MIXED, CHOICE_OPEN };
	GString *s = g_string_new(NULL);

	g_string_printf(s, "%u changes:", selection_count(r->selection));
	for (size_t i = 0; i < G_N_ELEMENTS(order); i++)
		g_string_append_printf(s, "%s %u %s", i ? "," : "", selection_count_state(r->selection, order[i]),
				       review_word(order[i]));
	return g_string_free(s, FALSE);
}

void review_edit_note(struct review *r, guint i)
{
	struct review_item *item = review_item(r, i);
	char *text = screen_edit("note: ", item->note ? item->note : "");

	if (!text)
		return;
	g_free(item->note);
	item->note = *text ? text : NULL;
	if (!*text)
		g_free(text);
}

bool review_ask_quit(struct review *r)
{
	if (selection_count_state(r->selection, CHOICE_OPEN) == selection_count(r->selection))
		return true;
	screen_bar(screen_rows() - 1, SCREEN_BAR, "Leave, with nothing done? y: yes, any other key: no");
	switch (screen_key()) {
	case 'y':
	case SCREEN_KEY_INTERRUPT:
	case SCREEN_KEY_END:
		return true;
	default:
		return false;
	}
}

/* Messages and excerpts are readable already, as the gate made them; paths are shown by the caller's title. */
static void add_finding(GPtrArray *lines, const struct gate_finding *f)
{
	GString *s = g_string_new(NULL);
	g_autofree char *path = f->path ? terminal_text(f->path, strlen(f->path), 0) : NULL;
	g_autofree char *text = NULL;

	g_string_printf(s, "gate: %s: %s", gate_level_name(f->level), path ? path : "the changes");
	if (f->line)
		g_string_append_printf(s, ":%" PRIu64, f->line);
	g_string_append_printf(s, ": %s (%s)", f->message, f->rule);
	if (f->excerpt)
		g_string_append_printf(s, ": %s", f->excerpt);
	text = g_string_free(s, FALSE);
	change_lines_add(lines, '!', 0, terminal_text(text, strlen(text), 0));
}

void review_add_findings(GPtrArray *lines, const GPtrArray *findings, guint max)
{
	guint shown = 0;

	for (guint i = 0; findings && i < findings->len; i++) {
		const struct gate_finding *f = findings->pdata[i];

		if (f->level != GATE_PASS && shown++ < max)
			add_finding(lines, f);
	}
	if (shown > max)
		change_lines_add(lines, '!', 0, g_strdup_printf("gate: %u more findings (sbxfs gate)", shown - max));
}

void review_help(const char *text)
{
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

	screen_clear();
	for (guint i = 0; lines[i]; i++)
		screen_put(i, 0, SCREEN_PLAIN, lines[i]);
	screen_bar(screen_rows() - 1, SCREEN_BAR, "Any key: back");
	screen_key();
}
