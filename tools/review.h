/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * review - the state of one `sbxfs review`, and its three screens: the list, one change, the end
 *
 * What is on the screen is one pinned state. Nothing is done before review_end() got its yes: it takes the lock of commits, and does
 * nothing when the view is not what was shown any more.
 */

#include <glib.h>
#include <stdbool.h>

#include "snapshot/selection.h"
#include "tools/commit_steps.h"
#include "tools/roll_back.h"

struct attached;

/* Beside each offer of the selection. */
struct review_item {
	char *title;	     /* safe for the screen */
	char *note;	     /* NULL = none */
	GPtrArray *findings; /* struct gate_finding about its path; borrowed from ->gate */
	char *counts;	     /* "+3 -1", made when it is first seen */
};

struct review {
	struct attached *attached;
	struct tree *from, *to;
	int64_t epoch; /* of @to */
	char **paths;
	char *reason;
	GPtrArray *changes;
	char *digest; /* of @changes: what is shown */
	struct selection *selection;
	struct gate_result *gate; /* of all changes, without the tests */
	GPtrArray *items;	  /* struct review_item */
	guint at, top;		  /* in the list */
	/* What came of it */
	struct commit_steps steps;
	struct roll_back_result rolled_back;
	bool committed;
	GError *error; /* ends the review */
};

enum review_next {
	REVIEW_STAY,
	REVIEW_QUIT,
	REVIEW_FAILED, /* ->error */
	REVIEW_END,    /* to the end's screen */
	REVIEW_BACK,   /* to the list */
	REVIEW_DONE,   /* it was done */
};

/* review_list() - REVIEW_QUIT, REVIEW_FAILED or REVIEW_END. */
enum review_next review_list(struct review *r);
/* review_change() - offer ->at; REVIEW_BACK, REVIEW_QUIT, REVIEW_FAILED or REVIEW_END. */
enum review_next review_change(struct review *r);
/* review_end() - REVIEW_BACK, REVIEW_QUIT, REVIEW_FAILED or REVIEW_DONE. */
enum review_next review_end(struct review *r);

/* For the screens */

struct review_item *review_item(struct review *r, guint i);
/* review_edit_note() - of offer @i. */
void review_edit_note(struct review *r, guint i);
/* review_ask_quit() - true when nothing was decided, or leaving was confirmed. */
bool review_ask_quit(struct review *r);
/* review_totals() - "12 changes: 3 accepted, 1 rejected, 1 in part, 7 open"; caller frees. */
char *review_totals(struct review *r);
/* review_add_findings() - a line for each, at most @max. */
void review_add_findings(GPtrArray *lines, const GPtrArray *findings, guint max);
/* review_help() - shows @text until a key is pressed. */
void review_help(const char *text);
const char *review_word(enum choice choice); /* "accepted", ... */
