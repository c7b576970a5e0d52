/* SPDX-License-Identifier: MIT */
#include "snapshot/hunk.h"

#include <string.h>

#include "snapshot/lines.h"

#define CONTEXT 3

struct text {
	GBytes *bytes;
	GArray *ends; /* gsize: where each line ends, its line break included */
};

struct edit {
	struct lines_edit lines;
	enum choice choice;
};

struct hunks {
	struct text before, after;
	GArray *edits;	/* struct edit */
	GArray *firsts; /* guint: the edit that each hunk begins with */
};

/* Texts */

static void text_init(struct text *t, GBytes *bytes)
{
	gsize size;
	const char *data = g_bytes_get_data(bytes, &size);

	t->bytes = g_bytes_ref(bytes);
	t->ends = g_array_new(FALSE, FALSE, sizeof(gsize));
	for (gsize at = 0; at < size;) {
		const char *stop = memchr(data + at, '\n', size - at);

		at = stop ? (gsize)(stop - data) + 1 : size;
		g_array_append_val(t->ends, at);
	}
}

static void text_clear(struct text *t)
{
	g_bytes_unref(t->bytes);
	g_array_unref(t->ends);
}

static gsize text_offset(const struct text *t, guint line)
{
	return line ? g_array_index(t->ends, gsize, line - 1) : 0;
}

static void text_append(const struct text *t, guint from, guint to, GByteArray *out)
{
	const guint8 *data = g_bytes_get_data(t->bytes, NULL);
	gsize start = text_offset(t, from), end = text_offset(t, to);

	if (end > start)
		g_byte_array_append(out, data + start, end - start);
}

static void text_show(const struct text *t, char kind, guint from, guint to, hunk_line fn, void *user)
{
	static const char missing[] = " No newline at end of file";
	const char *data = g_bytes_get_data(t->bytes, NULL);

	for (guint i = from; i < to; i++) {
		gsize start = text_offset(t, i), end = text_offset(t, i + 1);
		bool broken = data[end - 1] == '\n';

		fn(kind, data + start, end - start - broken, user);
		if (!broken)
			fn('\\', missing, strlen(missing), user);
	}
}

/* Hunks */

static struct edit *edit_at(const struct hunks *h, guint i)
{
	return &g_array_index(h->edits, struct edit, i);
}

static guint first_edit(const struct hunks *h, guint i)
{
	return i < h->firsts->len ? g_array_index(h->firsts, guint, i) : h->edits->len;
}

static guint gap_before(const struct hunks *h, guint i)
{
	const struct lines_edit *last = &edit_at(h, i - 1)->lines;

	return edit_at(h, i)->lines.old_at - (last->old_at + last->old_count);
}

int hunks_new(GBytes *before, GBytes *after, struct hunks **ret, GError **error)
{
	g_autoptr(GArray) edits = NULL;
	struct hunks *h;
	int r = lines_edits(before, after, &edits, error);

	if (r < 0)
		return r;
	h = g_new0(struct hunks, 1);
	text_init(&h->before, before);
	text_init(&h->after, after);
	h->edits = g_array_new(FALSE, TRUE, sizeof(struct edit));
	h->firsts = g_array_new(FALSE, FALSE, sizeof(guint));
	for (guint i = 0; i < edits->len; i++) {
		const struct edit e = { .lines = g_array_index(edits, struct lines_edit, i) };

		g_array_append_val(h->edits, e);
		if (i == 0 || gap_before(h, i) > 2 * CONTEXT)
			g_array_append_val(h->firsts, i);
	}
	*ret = h;
	return 0;
}

void hunks_free(struct hunks *h)
{
	if (!h)
		return;
	text_clear(&h->before);
	text_clear(&h->after);
	g_array_unref(h->edits);
	g_array_unref(h->firsts);
	g_free(h);
}

guint hunks_count(const struct hunks *h)
{
	return h->firsts->len;
}

bool hunks_can_split(const struct hunks *h, guint i)
{
	return first_edit(h, i + 1) - first_edit(h, i) > 1;
}

void hunks_split(struct hunks *h, guint i)
{
	for (guint edit = first_edit(h, i) + 1, end = first_edit(h, i + 1); edit < end; edit++)
		g_array_insert_val(h->firsts, ++i, edit);
}

void hunks_choose(struct hunks *h, guint i, enum choice choice)
{
	for (guint edit = first_edit(h, i); edit < first_edit(h, i + 1); edit++)
		edit_at(h, edit)->choice = choice;
}

enum choice hunks_choice(const struct hunks *h, guint i)
{
	return edit_at(h, first_edit(h, i))->choice;
}

enum choice hunks_state(const struct hunks *h)
{
	for (guint i = 1; i < h->edits->len; i++)
		if (edit_at(h, i)->choice != edit_at(h, 0)->choice)
			return CHOICE_MIXED;
	return h->edits->len ? edit_at(h, 0)->choice : CHOICE_OPEN;
}

/*
 * A last line without a line break can only come last here too: what differs behind it would be the same edit, as no equal line
 * lies between.
 */
GBytes *hunks_compose(const struct hunks *h)
{
	GByteArray *out = g_byte_array_new();
	guint at = 0;

	for (guint i = 0; i < h->edits->len; i++) {
		const struct edit *e = edit_at(h, i);

		if (e->choice != CHOICE_TAKEN)
			continue;
		text_append(&h->before, at, e->lines.old_at, out);
		text_append(&h->after, e->lines.new_at, e->lines.new_at + e->lines.new_count, out);
		at = e->lines.old_at + e->lines.old_count;
	}
	text_append(&h->before, at, h->before.ends->len, out);
	return g_byte_array_free_to_bytes(out);
}

/* Showing */

/* Context never reaches into a neighbouring edit, which is another hunk's. */
static guint context_before(const struct hunks *h, guint edit)
{
	guint room = edit > 0 ? gap_before(h, edit) : edit_at(h, edit)->lines.old_at;

	return MIN(room, CONTEXT);
}

static guint context_after(const struct hunks *h, guint edit)
{
	const struct lines_edit *e = &edit_at(h, edit)->lines;
	guint room = edit + 1 < h->edits->len ? gap_before(h, edit + 1) : h->before.ends->len - (e->old_at + e->old_count);

	return MIN(room, CONTEXT);
}

/* As git writes it: without a count of one, and at the line before when there is none. */
static char *range_text(guint at, guint count)
{
	return count == 1 ? g_strdup_printf("%u", at + 1) : g_strdup_printf("%u,%u", at + (count > 0), count);
}

void hunks_show(const struct hunks *h, guint i, hunk_line fn, void *user)
{
	guint from = first_edit(h, i), to = first_edit(h, i + 1) - 1;
	const struct lines_edit *first = &edit_at(h, from)->lines, *last = &edit_at(h, to)->lines;
	guint lead = context_before(h, from), tail = context_after(h, to);
	guint at = first->old_at - lead, end = last->old_at + last->old_count + tail;
	guint new_at = first->new_at - lead, new_end = last->new_at + last->new_count + tail;
	g_autofree char *old_range = range_text(at, end - at), *new_range = range_text(new_at, new_end - new_at);
	g_autofree char *head = g_strdup_printf("@@ -%s +%s @@", old_range, new_range);

	fn('@', head, strlen(head), user);
	for (guint k = from; k <= to; k++) {
		const struct lines_edit *e = &edit_at(h, k)->lines;

		text_show(&h->before, ' ', at, e->old_at, fn, user);
		text_show(&h->before, '-', e->old_at, e->old_at + e->old_count, fn, user);
		text_show(&h->after, '+', e->new_at, e->new_at + e->new_count, fn, user);
		at = e->old_at + e->old_count;
	}
	text_show(&h->before, ' ', at, end, fn, user);
}
