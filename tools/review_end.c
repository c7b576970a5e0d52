/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "fs/control.h"
#include "snapshot/pathspec.h"
#include "tools/attach.h"
#include "tools/change_lines.h"
#include "tools/change_text.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/page.h"
#include "tools/review.h"
#include "tools/sandbox.h"
#include "tools/screen.h"
#include "tools/terminal_text.h"

#define FINDINGS 100

/* What is about to be done. */
struct ending {
	struct review *r;
	GPtrArray *taken;   /* struct change; owned by the selection and the review */
	char **refused;     /* paths */
	GPtrArray *lines;
	bool possible;
};

static void show_message(const char *text)
{
	screen_bar(screen_rows() - 1, SCREEN_BAR, text);
	screen_show();
}

/* What is shown is still what is there. */
static bool check_digest(struct review *r)
{
	g_autoptr(tree_t) now = tree_open(r->attached->store, r->attached->lower, EPOCH_LIVE);
	g_autoptr(GPtrArray) changes = NULL;
	g_autofree char *digest = NULL;

	if (!attached_changes(r->attached, r->from, now, r->paths, false, &changes, &r->error))
		return false;
	digest = changes_digest(changes, now, &r->error);
	if (!digest || g_str_equal(digest, r->digest))
		return digest != NULL;
	tool_error(&r->error, EXIT_DIGEST, NULL,
		   "the changes are not those that were shown any more: their digest is %s, it was %s; nothing was done. Review "
		   "them again",
		   digest, r->digest);
	return false;
}

/* Before the question */

static void add_conflicts(struct ending *e)
{
	for (guint i = 0; i < e->r->steps.conflicts->len; i++) {
		const struct conflict *c = e->r->steps.conflicts->pdata[i];
		g_autofree char *path = terminal_text(c->path, strlen(c->path), 0);

		change_lines_add(e->lines, '!', 0, g_strdup_printf("conflict: %s: %s", path, conflict_sentence(c->kind)));
	}
}

/* False only for what ends the review. Conflicts and refusals are lines, and the end is not possible then. */
static bool check_commit(struct ending *e)
{
	struct commit_steps *s = &e->r->steps;
	g_autoptr(GError) error = NULL;

	if (e->taken->len == 0)
		return true;
	*s = (struct commit_steps){ .attached = e->r->attached,
				    .from = e->r->from,
				    .to = e->r->to,
				    .epoch = e->r->epoch,
				    .changes = e->taken,
				    .reason = e->r->reason };
	show_message("The gate looks at what was accepted ...");
	if (!commit_steps_gate(s, &e->r->error))
		return false;
	review_add_findings(e->lines, s->gate->findings, FINDINGS);
	if (s->gate->verdict == GATE_REFUSE) {
		change_lines_add(e->lines, '!', 0, g_strdup("The gate refuses what was accepted: it cannot be committed."));
		e->possible = false;
	}
	if (commit_steps_check(s, &error))
		return true;
	if (!s->conflicts) {
		e->r->error = g_steal_pointer(&error);
		return false;
	}
	add_conflicts(e);
	e->possible = false;
	return true;
}

/* What cannot be rolled back by itself is a line, and the end is not possible then; so is what goes along. */
static bool check_rollback(struct ending *e)
{
	struct review *r = e->r;
	g_autoptr(GPtrArray) changes = NULL;
	g_autoptr(pathspec_t) spec = NULL;
	g_autoptr(GError) error = NULL;
	g_auto(GStrv) all = NULL;

	if (!*e->refused)
		return true;
	if (!attached_changes(r->attached, r->to, r->from, e->refused, true, &changes, &r->error))
		return false;
	if (!roll_back_choose(r->attached, r->epoch, 0, e->refused, changes, &all, &error)) {
		change_lines_add(e->lines, '!', 0, terminal_text(error->message, strlen(error->message), 0));
		e->possible = false;
		return true;
	}
	spec = pathspec_new((const char *const *)e->refused);
	for (char **p = all; *p; p++) {
		g_autofree char *path = terminal_text(*p, strlen(*p), 0);

		if (pathspec_match(spec, *p) != PATHSPEC_ALL)
			change_lines_add(e->lines, '-', 0, g_strdup_printf("goes along, as one change with what was rejected: %s", path));
	}
	return true;
}

static void add_item(struct ending *e, guint i)
{
	struct review_item *item = review_item(e->r, i);
	enum choice state = selection_state(e->r->selection, i);
	static const char kinds[] = { [CHOICE_OPEN] = ' ', [CHOICE_TAKEN] = '+', [CHOICE_REFUSED] = '-', [CHOICE_MIXED] = ' ' };

	if (state == CHOICE_OPEN && !item->note)
		return;
	change_lines_add(e->lines, kinds[state], 0, g_strdup_printf("%s: %s", review_word(state), item->title));
	if (item->note)
		change_lines_add(e->lines, ' ', 0, g_strdup_printf("    note: %s", item->note));
}

static char **refused_paths(struct selection *s)
{
	GPtrArray *paths = selection_refused(s);

	g_ptr_array_add(paths, NULL);
	return (char **)g_ptr_array_free(paths, FALSE);
}

static bool prepare(struct ending *e)
{
	g_autofree char *totals = review_totals(e->r);

	e->possible = true;
	e->lines = change_lines_new();
	e->refused = refused_paths(e->r->selection);
	change_lines_add(e->lines, '#', 0, g_steal_pointer(&totals));
	for (guint i = 0; i < selection_count(e->r->selection); i++)
		add_item(e, i);
	change_lines_add(e->lines, ' ', 0, g_strdup(""));
	return check_rollback(e) && selection_taken(e->r->selection, &e->taken, &e->r->error) >= 0 && check_commit(e);
}

/* Afterwards */

static void record(struct review *r, guint i, GError **error)
{
	enum choice state = selection_state(r->selection, i);
	const struct review_item *item = review_item(r, i);
	const struct change *c = selection_at(r->selection, i)->change;
	const struct audit_record about = {
		.kind = AUDIT_REVIEW,
		.operation = state == CHOICE_TAKEN     ? "accept"
			     : state == CHOICE_REFUSED ? "reject"
			     : state == CHOICE_MIXED   ? "part"
						       : "leave",
		.pid = (int32_t)getpid(),
		.uid = getuid(),
		.program = program_invocation_short_name,
		.path = c->from_path ? c->from_path : c->path,
		.new_path = c->from_path ? c->path : NULL,
		.detail = item->note,
	};

	if (state != CHOICE_OPEN || item->note)
		control_record(r->attached->control, &about, error);
}

static bool record_all(struct review *r)
{
	for (guint i = 0; !r->error && i < selection_count(r->selection); i++)
		record(r, i, &r->error);
	return !r->error;
}

static bool take_back(struct ending *e)
{
	return !*e->refused || roll_back(e->r->attached, 0, e->refused, false, &e->r->rolled_back, &e->r->error);
}

/*
 * Records first: what a human said is in the audit before what came of it. A commit that fails changes nothing, and then nothing is
 * rolled back.
 */
static enum review_next do_all(struct ending *e)
{
	struct review *r = e->r;

	show_message("Writing ...");
	if (!check_digest(r) || !record_all(r))
		return REVIEW_FAILED;
	if (e->taken->len > 0) {
		if (!commit_steps_write(&r->steps, &r->error))
			return REVIEW_FAILED;
		r->committed = true;
	}
	return take_back(e) ? REVIEW_DONE : REVIEW_FAILED;
}

static char *question(const struct ending *e)
{
	const struct commit_steps *s = &e->r->steps;
	bool review = e->taken->len > 0 && s->gate->verdict == GATE_REVIEW;

	if (!e->possible)
		return g_strdup("This cannot be done. Any key: back to the list");
	if (e->taken->len == 0 && !*e->refused)
		return g_strdup("Nothing was decided that could be done. Any key: back to the list");
	return g_strdup_printf("%sCommit %u, roll back %u? y: do it, any other key: back to the list",
			       review ? "Reviewed, as the gate wants? " : "", e->taken->len, g_strv_length(e->refused));
}

static enum review_next ask(struct ending *e)
{
	g_autofree char *text = question(e);
	struct page page = { 0 };
	guint key;

	page_set(&page, e->lines);
	do {
		guint rows = screen_rows();

		screen_clear();
		screen_bar(0, SCREEN_BAR, "The end of the review: this will be done");
		page_draw(&page, 1, rows > 2 ? rows - 2 : 1, 0);
		screen_bar(rows - 1, SCREEN_BAR, text);
		key = screen_key();
	} while (key == SCREEN_KEY_RESIZE || page_key(&page, key));
	page_clear(&page);
	if (key == SCREEN_KEY_END)
		return REVIEW_QUIT;
	if (key != 'y' || !e->possible || (e->taken->len == 0 && !*e->refused))
		return REVIEW_BACK;
	return do_all(e);
}

enum review_next review_end(struct review *r)
{
	struct ending e = { .r = r };
	enum review_next next = REVIEW_FAILED;

	show_message("Comparing with what was shown ...");
	commit_steps_clear(&r->steps);
	if (attached_lock_commits(r->attached, &r->error) && check_digest(r) && prepare(&e))
		next = ask(&e);
	if (next == REVIEW_BACK)
		attached_unlock_commits(r->attached);
	r->steps.changes = NULL;
	g_clear_pointer(&e.taken, g_ptr_array_unref);
	g_clear_pointer(&e.refused, g_strfreev);
	g_clear_pointer(&e.lines, g_ptr_array_unref);
	return next;
}
