/* SPDX-License-Identifier: MIT */
#include "tools/html/rows.h"

#include <inttypes.h>
#include <string.h>

#include "snapshot/lines.h"
#include "tools/html/text.h"
#include "tools/html/words.h"

#define FLUSH_SIZE (64 * 1024)
/* Larger blocks are paired line by line as they stand. */
#define PAIRING_MAX 2500
/* Percent, see words_likeness(). */
#define LIKE_MIN 40
/* Bytes of a line, or a part of it, that are seen before the reader asks for more. */
#define FOLD_SAME 600
#define FOLD_CHANGED 3000
/* Rows, or plain lines, in one element. */
#define BLOCK_ROWS 200
#define PLAIN_LINES 500

enum part {
	PART_NONE,
	PART_CONTEXT,
	PART_CHANGE,
	PART_PLAIN,
};

struct file {
	struct rows *rows;
	const struct diff_content *content;
	bool one_sided;
	bool in_hunk;
	enum part part;	  /* the element that is open inside of the hunk */
	uint64_t in_part; /* rows in it */
	uint64_t used;
	GArray *old, *new; /* struct lines_line: a block that is not yet complete */
	GArray *findings;
	guint next; /* the first finding that is not shown yet */
	GArray *old_spans, *new_spans;
};

void rows_flush(struct rows *r)
{
	if (r->out->len)
		r->write(r->out->str, r->out->len, r->user);
	g_string_truncate(r->out, 0);
}

static void flush_when_full(struct rows *r)
{
	if (r->out->len >= FLUSH_SIZE)
		rows_flush(r);
}

/* Findings */

void rows_finding(struct rows *r, const struct rows_finding *f, bool place)
{
	const struct gate_finding *g = f->finding;

	g_string_append_printf(r->out, "<div class=\"finding %s\" id=g%u><strong>%s</strong> <span class=rule>",
			       gate_level_name(g->level), f->number, gate_level_name(g->level));
	html_string(r->out, g->rule);
	g_string_append(r->out, "</span> ");
	if (place && g->line)
		g_string_append_printf(r->out, "line %" PRIu64 ": ", g->line);
	html_string(r->out, g->message);
	if (g->excerpt) {
		g_string_append(r->out, "<pre>");
		html_string(r->out, g->excerpt);
		g_string_append(r->out, "</pre>");
	}
	g_string_append(r->out, "</div>\n");
}

/* Those whose lines the hunks leave out, up to before @line. */
static void findings_before(struct file *f, uint64_t line)
{
	for (; f->next < f->findings->len; f->next++) {
		const struct rows_finding *finding = &g_array_index(f->findings, struct rows_finding, f->next);

		if (finding->finding->line >= line)
			return;
		rows_finding(f->rows, finding, true);
	}
}

static void findings_at(struct file *f, uint64_t line)
{
	for (; f->next < f->findings->len; f->next++) {
		const struct rows_finding *finding = &g_array_index(f->findings, struct rows_finding, f->next);

		if (finding->finding->line > line)
			return;
		rows_finding(f->rows, finding, finding->finding->line != line);
	}
}

/* Elements */

static void close_part(struct file *f)
{
	if (f->part != PART_NONE)
		g_string_append(f->rows->out, "</div>\n");
	f->part = PART_NONE;
}

static void open_part(struct file *f, enum part part)
{
	static const char *const classes[] = { "", "c", "k", "plain" };
	uint64_t limit = part == PART_PLAIN ? PLAIN_LINES : BLOCK_ROWS;

	if (f->part == part && f->in_part < limit)
		return;
	close_part(f);
	g_string_append_printf(f->rows->out, "<div class=\"%s%s\">", classes[part], f->one_sided ? " one" : "");
	f->part = part;
	f->in_part = 0;
}

static bool has_break(const struct lines_line *l)
{
	return l->size && l->text[l->size - 1] == '\n';
}

static size_t text_size(const struct lines_line *l)
{
	return l->size - has_break(l);
}

/* A link's target has no line break to miss. */
static void put_end(struct file *f, const struct lines_line *l)
{
	const struct blob *side = l->old_line && !l->new_line ? &f->content->before : &f->content->after;

	if (!has_break(l) && S_ISREG(side->mode))
		g_string_append(f->rows->out, "<em>no newline at end of file</em>");
}

/* A line, or with @spans (struct word_span) one that differs from its other version in these. */
static void put_text(struct file *f, const struct lines_line *l, GArray *spans)
{
	GString *out = f->rows->out;
	size_t at = 0, size = text_size(l);

	for (guint i = 0; spans && i < spans->len; i++) {
		const struct word_span *s = &g_array_index(spans, struct word_span, i);

		html_folded(out, l->text + at, s->start - at, FOLD_SAME);
		g_string_append(out, "<mark>");
		html_folded(out, l->text + s->start, s->end - s->start, FOLD_CHANGED);
		g_string_append(out, "</mark>");
		at = s->end;
	}
	html_folded(out, l->text + at, size - at, spans ? FOLD_SAME : FOLD_CHANGED);
	put_end(f, l);
}

/* <i> is an old line's number, <b> a new one's, <u> a side without a line. */
static void put_old(struct file *f, const struct lines_line *l, GArray *spans)
{
	g_string_append_printf(f->rows->out, "<i>%" PRIu64 "</i><del>", l->old_line);
	put_text(f, l, spans);
	g_string_append(f->rows->out, "</del>");
}

static void put_new(struct file *f, const struct lines_line *l, GArray *spans)
{
	g_string_append_printf(f->rows->out, "<b>%" PRIu64 "</b><ins>", l->new_line);
	put_text(f, l, spans);
	g_string_append(f->rows->out, "</ins>");
}

static void put_context(struct file *f, const struct lines_line *l)
{
	GString *out = f->rows->out;

	g_string_append_printf(out, "<i>%" PRIu64 "</i><div class=l aria-hidden=true>", l->old_line);
	put_text(f, l, NULL);
	g_string_append_printf(out, "</div><b>%" PRIu64 "</b><div>", l->new_line);
	put_text(f, l, NULL);
	g_string_append(out, "</div>\n");
	flush_when_full(f->rows);
}

static void put_plain(struct file *f, const struct lines_line *l)
{
	open_part(f, PART_PLAIN);
	f->in_part++;
	g_string_append_c(f->rows->out, l->origin);
	html_folded(f->rows->out, l->text, text_size(l), FOLD_CHANGED);
	put_end(f, l);
	g_string_append_c(f->rows->out, '\n');
	if (l->new_line)
		findings_at(f, l->new_line);
	flush_when_full(f->rows);
}

/* Rows */

static bool is_spent(const struct file *f)
{
	return f->used >= ROWS_FILE_MAX || f->rows->used >= ROWS_PAGE_MAX;
}

/* One row; NULL for a side that has no line there. */
static void put_row(struct file *f, const struct lines_line *old, const struct lines_line *new, bool compare)
{
	open_part(f, PART_CHANGE);
	f->in_part++;
	f->used++;
	f->rows->used++;
	if (compare)
		words_compare(old->text, text_size(old), new->text, text_size(new), f->old_spans, f->new_spans);
	/* Nothing is marked when nearly everything differs. */
	compare = compare && (f->old_spans->len || f->new_spans->len);
	if (old)
		put_old(f, old, compare ? f->old_spans : NULL);
	else if (!f->one_sided)
		g_string_append(f->rows->out, "<u></u>");
	if (new)
		put_new(f, new, compare ? f->new_spans : NULL);
	else if (!f->one_sided)
		g_string_append(f->rows->out, "<u></u>");
	g_string_append_c(f->rows->out, '\n');
	if (new)
		findings_at(f, new->new_line);
	flush_when_full(f->rows);
}

static const struct lines_line *line_at(GArray *lines, guint i)
{
	return i < lines->len ? &g_array_index(lines, struct lines_line, i) : NULL;
}

/* What lies between two pairs: from here to before @old and @new. With @compare side by side they count as versions of each other. */
static void put_gap(struct file *f, guint *i, guint *j, guint old, guint new, bool compare)
{
	while (!is_spent(f) && (*i < old || *j < new)) {
		const struct lines_line *x = *i < old ? line_at(f->old, (*i)++) : NULL,
					*y = *j < new ? line_at(f->new, (*j)++) : NULL;

		put_row(f, x, y, compare && x && y);
	}
	while (*i < old)
		put_plain(f, line_at(f->old, (*i)++));
	while (*j < new)
		put_plain(f, line_at(f->new, (*j)++));
}

/*
 * Which lines of a block are versions of each other: of all ways to pair them in order the one with the most likeness. ret[i] is the
 * new line of old line i, or G_MAXUINT.
 */
static guint *pair_lines(GArray *old, GArray *new)
{
	guint n = old->len, m = new->len, width = m + 1;
	g_autofree guint *best = g_new0(guint, (n + 1) * width);
	g_autofree guint *like = g_new0(guint, n * m);
	guint *ret = g_new(guint, n);

	for (guint i = n; i-- > 0;) {
		ret[i] = G_MAXUINT;
		for (guint j = m; j-- > 0;) {
			const struct lines_line *x = line_at(old, i), *y = line_at(new, j);
			guint pair = words_likeness(x->text, text_size(x), y->text, text_size(y));

			like[i * m + j] = pair = pair >= LIKE_MIN ? pair : 0;
			best[i * width + j] = MAX(MAX(best[(i + 1) * width + j], best[i * width + j + 1]),
						  pair ? pair + best[(i + 1) * width + j + 1] : 0);
		}
	}
	for (guint i = 0, j = 0; i < n && j < m;) {
		guint pair = like[i * m + j];

		if (pair && best[i * width + j] == pair + best[(i + 1) * width + j + 1])
			ret[i++] = j++;
		else if (best[i * width + j] == best[(i + 1) * width + j])
			i++;
		else
			j++;
	}
	return ret;
}

static void put_block(struct file *f)
{
	guint i = 0, j = 0;
	bool few = (uint64_t)f->old->len * f->new->len <= PAIRING_MAX;
	/* A single line on both sides is a pair whatever it says; so are as many as there are, where trying all ways takes too long. */
	bool as_they_stand = !few || (f->old->len == 1 && f->new->len == 1);

	if (!as_they_stand && f->old->len && f->new->len && !is_spent(f)) {
		g_autofree guint *pairs = pair_lines(f->old, f->new);

		for (guint k = 0; k < f->old->len; k++) {
			if (pairs[k] == G_MAXUINT)
				continue;
			put_gap(f, &i, &j, k, pairs[k], false);
			if (is_spent(f))
				break;
			put_row(f, line_at(f->old, i++), line_at(f->new, j++), true);
		}
	}
	put_gap(f, &i, &j, f->old->len, f->new->len, as_they_stand);
}

/* The deleted and added lines that stand together have come to an end. */
static void end_block(struct file *f)
{
	if (f->old->len || f->new->len)
		put_block(f);
	g_array_set_size(f->old, 0);
	g_array_set_size(f->new, 0);
}

/* Hunks */

static void end_hunk(struct file *f)
{
	end_block(f);
	close_part(f);
	if (f->in_hunk)
		g_string_append(f->rows->out, "</div>\n");
	f->in_hunk = false;
}

static void on_hunk(const struct lines_hunk *h, void *user)
{
	struct file *f = user;
	GString *out = f->rows->out;

	end_hunk(f);
	findings_before(f, h->new_start);
	g_string_append_printf(out, "<div class=hunk><h3>@@ \xe2\x88\x92%" PRIu64 ",%" PRIu64 " +%" PRIu64 ",%" PRIu64 " @@",
			       h->old_start, h->old_lines, h->new_start, h->new_lines);
	if (h->heading_size) {
		g_string_append(out, " <span>");
		html_text(out, h->heading, h->heading_size);
		g_string_append(out, "</span>");
	}
	g_string_append(out, "</h3>\n");
	f->in_hunk = true;
}

static void on_line(const struct lines_line *l, void *user)
{
	struct file *f = user;

	if (l->origin == ' ' || (l->origin == '-' && f->new->len))
		end_block(f);
	/* A whole file of one side is one block: it does not have to wait for its end, nor take all of the page's rows. */
	if (f->one_sided && MAX(f->old->len, f->new->len) >= BLOCK_ROWS)
		end_block(f);
	if (l->origin == '-') {
		g_array_append_val(f->old, *l);
	} else if (l->origin == '+') {
		g_array_append_val(f->new, *l);
	} else if (is_spent(f)) {
		put_plain(f, l);
	} else {
		open_part(f, PART_CONTEXT);
		f->in_part++;
		f->used++;
		f->rows->used++;
		put_context(f, l);
		findings_at(f, l->new_line);
	}
}

int rows_content(struct rows *r, const struct diff_content *content, GArray *findings, GError **error)
{
	static const struct lines_visitor visitor = { .hunk = on_hunk, .line = on_line };
	struct file f = {
		.rows = r,
		.content = content,
		.one_sided = content->apart,
		.findings = findings,
		.old = g_array_new(FALSE, FALSE, sizeof(struct lines_line)),
		.new = g_array_new(FALSE, FALSE, sizeof(struct lines_line)),
		.old_spans = g_array_new(FALSE, FALSE, sizeof(struct word_span)),
		.new_spans = g_array_new(FALSE, FALSE, sizeof(struct word_span)),
	};
	int ret = 0;

	findings_before(&f, 1);
	if (content->text)
		ret = diff_content_lines(content, &visitor, &f, error);
	end_hunk(&f);
	findings_before(&f, UINT64_MAX);
	flush_when_full(r);
	g_array_unref(f.old);
	g_array_unref(f.new);
	g_array_unref(f.old_spans);
	g_array_unref(f.new_spans);
	return ret;
}
