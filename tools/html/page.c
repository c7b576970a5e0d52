/* SPDX-License-Identifier: MIT */
#include "tools/html/page.h"

#include <inttypes.h>
#include <string.h>

#include "gate/gate_report.h"
#include "snapshot/xattr.h"
#include "tools/html/file_tree.h"
#include "tools/html/rows.h"
#include "tools/html/text.h"
#include "tools/html_resources.h"

/* Bytes of an attribute's value that are seen before the reader asks for more. */
#define VALUE_FOLD 400

struct writer {
	const struct html_page *page;
	struct rows rows;
	GString *out;		      /* ->rows.out */
	struct file_tree_item *items; /* of all changes, in their order */
	guint deleted;		      /* how many of them, all in front, are deletions */
	uint64_t added, removed;
	GHashTable *findings; /* path -> GArray of struct rows_finding by line */
};

/* What is known before anything is written */

static int compare_lines(const void *a, const void *b)
{
	const struct rows_finding *x = a, *y = b;

	if (x->finding->line != y->finding->line)
		return x->finding->line < y->finding->line ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void sort_findings(gpointer path, gpointer list, gpointer user)
{
	(void)path;
	(void)user;
	g_array_sort(list, compare_lines);
}

static void find_findings(struct writer *w)
{
	GPtrArray *all = w->page->gate->findings;

	w->findings = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)g_array_unref);
	for (guint i = 0; i < all->len; i++) {
		struct rows_finding f = { .finding = all->pdata[i], .number = i + 1 };
		GArray *list;

		if (!f.finding->path)
			continue;
		list = g_hash_table_lookup(w->findings, f.finding->path);
		if (!list) {
			list = g_array_new(FALSE, FALSE, sizeof(struct rows_finding));
			g_hash_table_insert(w->findings, f.finding->path, list);
		}
		g_array_append_val(list, f);
	}
	g_hash_table_foreach(w->findings, sort_findings, NULL);
}

static const char *worst_level(GArray *findings)
{
	enum gate_level worst = GATE_PASS;

	for (guint i = 0; findings && i < findings->len; i++)
		worst = MAX(worst, g_array_index(findings, struct rows_finding, i).finding->level);
	return worst == GATE_PASS ? NULL : gate_level_name(worst);
}

static int count(struct writer *w, GError **error)
{
	GPtrArray *changes = w->page->changes;

	w->items = g_new0(struct file_tree_item, changes->len);
	for (guint i = 0; i < changes->len; i++) {
		struct file_tree_item *item = &w->items[i];
		bool binary;
		int r;

		item->change = changes->pdata[i];
		item->number = i + 1;
		item->level = worst_level(g_hash_table_lookup(w->findings, item->change->path));
		r = diff_count_lines(item->change, w->page->from_tree, w->page->to_tree, &item->added, &item->removed, &binary,
				     error);
		if (r < 0)
			return r;
		w->added += item->added;
		w->removed += item->removed;
		w->deleted += item->change->status == CHANGE_DELETED;
	}
	return 0;
}

/* Head */

static GBytes *resource(const char *name)
{
	g_autofree char *path = g_strconcat("/sbxfs/", name, NULL);

	return g_resource_lookup_data(html_get_resource(), path, G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
}

static void put_resource(GString *out, GBytes *bytes)
{
	gsize size;
	const char *data = g_bytes_get_data(bytes, &size);

	g_string_append_len(out, data, size);
}

/* What a policy calls 'sha256-...': of the text between the tags. */
static char *resource_hash(GBytes *bytes)
{
	g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
	uint8_t digest[32];
	gsize size, digest_size = sizeof(digest);
	const guchar *data = g_bytes_get_data(bytes, &size);

	g_checksum_update(sum, data, size);
	g_checksum_get_digest(sum, digest, &digest_size);
	return g_base64_encode(digest, digest_size);
}

static void put_head(struct writer *w, GBytes *script)
{
	g_autoptr(GBytes) style = resource("page.css");
	g_autofree char *style_hash = resource_hash(style), *script_hash = resource_hash(script);

	g_string_append_printf(w->out,
			       "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
			       "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'sha256-%s'; "
			       "script-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n"
			       "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
			       "<meta name=color-scheme content=\"light dark\">\n<meta name=referrer content=no-referrer>\n<title>",
			       style_hash, script_hash);
	html_plain(w->out, w->page->sandbox);
	g_string_append(w->out, " \xe2\x80\x93 changes</title>\n<style>");
	put_resource(w->out, style);
	g_string_append(w->out, "</style>\n</head>\n");
}

/* Header */

static void put_fact(GString *out, const char *name, const char *value, const char *class)
{
	g_string_append_printf(out, "<div><dt>%s</dt><dd class=%s>", name, class);
	html_string(out, value);
	g_string_append(out, "</dd></div>\n");
}

static void put_header(struct writer *w)
{
	const struct html_page *p = w->page;
	GString *out = w->out;

	g_string_append(out, "<body>\n<a class=skip href=#changes>Skip to the changes</a>\n<header>\n<h1>");
	html_string(out, p->sandbox);
	g_string_append_printf(out, " <small>%u change%s", p->changes->len, p->changes->len == 1 ? "" : "s");
	file_tree_counts(out, w->added, w->removed);
	g_string_append(out, "</small></h1>\n<dl>\n");
	put_fact(out, "Workspace", p->workspace, "path");
	put_fact(out, "From", p->from, "state");
	put_fact(out, "To", p->to, "state");
	put_fact(out, "Digest", p->digest, "digest");
	g_string_append(out, "</dl>\n<button id=keys hidden>Keys <kbd>?</kbd></button>\n</header>\n");
}

/* Files */

static void put_tree(struct writer *w, const char *title, guint first, guint end)
{
	if (first == end)
		return;
	g_string_append_printf(w->out, "<h2>%s <small>%u</small></h2>\n", title, end - first);
	file_tree(w->out, w->items + first, end - first);
}

static void put_nav(struct writer *w)
{
	GString *out = w->out;

	g_string_append(out, "<nav aria-label=\"Changed files\">\n<p id=find hidden>"
			     "<input type=search aria-label=\"Show only paths that contain\" placeholder=\"Filter paths\"> "
			     "<output></output></p>\n");
	put_tree(w, "Deleted", 0, w->deleted);
	put_tree(w, w->deleted ? "Other changes" : "Changes", w->deleted, w->page->changes->len);
	g_string_append(out, "</nav>\n");
	rows_flush(&w->rows);
}

/* The gate */

static void put_gate_item(struct writer *w, const struct gate_finding *f, guint number, bool linked)
{
	GString *out = w->out;

	g_string_append_printf(out, "<tr class=%s><td>%s</td><td>%s</td><td>", gate_level_name(f->level), gate_level_name(f->level),
			       gate_check_name(f->check));
	if (f->path) {
		if (linked)
			g_string_append_printf(out, "<a href=#g%u>", number);
		html_path(out, f->path);
		if (f->line)
			g_string_append_printf(out, ":%" PRIu64, f->line);
		g_string_append(out, linked ? "</a>" : "");
	}
	g_string_append(out, "</td><td>");
	html_string(out, f->message);
	g_string_append(out, " <span class=rule>");
	html_string(out, f->rule);
	g_string_append(out, "</span></td></tr>\n");
}

static void put_gate(struct writer *w, GHashTable *paths)
{
	const struct gate_result *g = w->page->gate;
	g_autofree char *counts = gate_report_counts(g);
	GString *out = w->out;

	g_string_append_printf(out,
			       "<section id=gate aria-labelledby=gate-title>\n"
			       "<h2 id=gate-title>Gate: <span class=\"flag %s\">%s</span> <small>",
			       gate_level_name(g->verdict), gate_level_name(g->verdict));
	html_string(out, counts);
	g_string_append(out, "</small></h2>\n<p>");
	g_string_append(out, g->checks ? "The policy's checks, without its test command: a commit runs that too."
				       : "The policy switches all checks off.");
	g_string_append(out, "</p>\n");
	if (g->findings->len)
		g_string_append(out, "<div class=scroll><table>\n<thead><tr><th scope=col>Level</th><th scope=col>Check</th>"
				     "<th scope=col>Place</th><th scope=col>Finding</th></tr></thead>\n<tbody>\n");
	for (guint i = 0; i < g->findings->len; i++) {
		const struct gate_finding *f = g->findings->pdata[i];

		put_gate_item(w, f, i + 1, f->path && g_hash_table_contains(paths, f->path));
	}
	if (g->findings->len)
		g_string_append(out, "</tbody></table></div>\n");
	if (g->unlisted)
		g_string_append_printf(
			out, "<p>%" PRIu64 " more findings of the same checks are not listed, but count for the verdict.</p>\n",
			g->unlisted);
	g_string_append(out, "</section>\n");
}

/* One change */

static void put_xattr(const char *name, const void *value, size_t size, void *user)
{
	GString *out = user;

	g_string_append(out, "<li><code>");
	html_string(out, name);
	g_string_append(out, "</code> = ");
	html_folded(out, value, size, VALUE_FOLD);
	g_string_append(out, "</li>");
}

static void put_xattr_side(GString *out, const char *title, GBytes *set)
{
	g_string_append_printf(out, "<div><h3>%s</h3><ul>", title);
	xattrs_foreach(set, put_xattr, out);
	g_string_append(out, set ? "</ul></div>" : "<li>none</li></ul></div>");
}

static int put_xattrs(struct writer *w, const struct change *c)
{
	g_autoptr(GBytes) old = NULL, new = NULL;
	int r = c->before ? change_xattrs(w->page->from_tree, c->before, &old) : 0;

	if (r == 0 && c->after)
		r = change_xattrs(w->page->to_tree, c->after, &new);
	if (r < 0 || xattrs_equal(old, new))
		return r;
	g_string_append(w->out, "<div class=xattrs>");
	put_xattr_side(w->out, "Extended attributes before", old);
	put_xattr_side(w->out, "Extended attributes after", new);
	g_string_append(w->out, "</div>\n");
	return 0;
}

static void put_file_side(GString *out, const char *title, const struct entry *e, const uint8_t *sha256)
{
	if (!e || !S_ISREG(e->attr.mode))
		return;
	g_string_append_printf(out, "<p>%s: %" PRIu64 " bytes", title, e->attr.size);
	if (sha256) {
		g_string_append(out, ", SHA-256 <code>");
		for (int i = 0; i < 32; i++)
			g_string_append_printf(out, "%02x", sha256[i]);
		g_string_append(out, "</code>");
	}
	g_string_append(out, "</p>\n");
}

static void put_binary(GString *out, const struct change *c)
{
	g_string_append(out, "<div class=binary><p>Not shown in lines: binary, or too large for it.</p>\n");
	put_file_side(out, "Before", c->before, c->has_sha256_before ? c->sha256_before : NULL);
	put_file_side(out, "After", c->after, c->has_sha256_after ? c->sha256_after : NULL);
	g_string_append(out, "</div>\n");
}

static const char *status_word(enum change_status status)
{
	switch (status) {
	case CHANGE_ADDED:
		return "added";
	case CHANGE_MODIFIED:
		return "modified";
	case CHANGE_DELETED:
		return "deleted";
	case CHANGE_RENAMED:
		return "renamed";
	case CHANGE_TYPE:
		return "another type";
	case CHANGE_PERMISSION:
		return "permission or owner";
	case CHANGE_XATTR:
		return "extended attributes";
	}
	return "changed";
}

static void put_title(struct writer *w, const struct file_tree_item *item)
{
	const struct change *c = item->change;
	g_autofree char *words = diff_describe(c);
	GString *out = w->out;

	g_string_append_printf(out,
			       "<details open class=file id=f%u><summary><h2><span class=\"st %c\" title=\"%s\">%c</span> "
			       "<span class=path>",
			       item->number, c->status, status_word(c->status), c->status);
	if (c->from_path) {
		html_path(out, c->from_path);
		g_string_append(out, "<span class=to> \xe2\x86\x92 </span>");
	}
	html_path(out, c->path);
	g_string_append(out, "</span></h2><span class=facts>");
	g_string_append(out, status_word(c->status));
	if (c->from_path)
		g_string_append_printf(out, ", %u%% alike", c->similarity);
	if (S_ISLNK((c->after ? c->after : c->before)->attr.mode) && c->status != CHANGE_TYPE)
		g_string_append(out, ", symlink");
	if (words) {
		g_string_append(out, ", ");
		html_string(out, words);
	}
	file_tree_counts(out, item->added, item->removed);
	g_string_append(out, "</span></summary>\n");
}

static int put_change(struct writer *w, const struct file_tree_item *item, GError **error)
{
	const struct change *c = item->change;
	g_autoptr(GArray) none = g_array_new(FALSE, FALSE, sizeof(struct rows_finding));
	GArray *findings = g_hash_table_lookup(w->findings, c->path);
	struct diff_content content;
	int r;

	put_title(w, item);
	r = put_xattrs(w, c);
	if (r < 0)
		return change_error(error, r, "can't read", c->path);
	r = diff_content_open(c, w->page->from_tree, w->page->to_tree, &content, error);
	if (r == 0 && !content.text)
		put_binary(w->out, c);
	if (r == 0)
		r = rows_content(&w->rows, &content, findings ? findings : none, error);
	diff_content_clear(&content);
	g_string_append(w->out, "</details>\n");
	return r;
}

/* Foot */

static void put_foot(struct writer *w, GBytes *script)
{
	static const char *const keys[][2] = {
		{ "j / k", "next, previous file" },
		{ "n / p", "next, previous hunk or finding" },
		{ "g / G", "next, previous finding" },
		{ "x", "fold or unfold the file" },
		{ "v", "file read: fold it, go on" },
		{ "/", "filter the paths" },
		{ "t", "to the top" },
		{ "?", "this help" },
	};
	GString *out = w->out;

	g_string_append(out, "<dialog id=help aria-labelledby=help-title><h2 id=help-title>Keys</h2><dl>\n");
	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		g_string_append_printf(out, "<div><dt><kbd>%s</kbd></dt><dd>%s</dd></div>\n", keys[i][0], keys[i][1]);
	g_string_append(out, "</dl><button>Close</button></dialog>\n<p id=status role=status></p>\n<script>");
	put_resource(out, script);
	g_string_append(out, "</script>\n</body>\n</html>\n");
	rows_flush(&w->rows);
}

static GHashTable *changed_paths(GPtrArray *changes)
{
	GHashTable *paths = g_hash_table_new(g_str_hash, g_str_equal);

	for (guint i = 0; i < changes->len; i++)
		g_hash_table_add(paths, ((struct change *)changes->pdata[i])->path);
	return paths;
}

static int write_all(struct writer *w, GError **error)
{
	g_autoptr(GHashTable) paths = changed_paths(w->page->changes);
	g_autoptr(GBytes) script = resource("page.js");
	int r = count(w, error);

	if (r < 0)
		return r;
	put_head(w, script);
	put_header(w);
	put_nav(w);
	g_string_append(w->out, "<main id=changes tabindex=-1>\n");
	put_gate(w, paths);
	if (w->page->changes->len == 0)
		g_string_append(w->out, "<p class=none>No differences.</p>\n");
	for (guint i = 0; r == 0 && i < w->page->changes->len; i++)
		r = put_change(w, &w->items[i], error);
	if (r < 0)
		return r;
	g_string_append(w->out, "</main>\n");
	put_foot(w, script);
	return 0;
}

int html_page_write(const struct html_page *page, diff_write write, void *user, GError **error)
{
	g_autoptr(GString) out = g_string_new(NULL);
	struct writer w = { .page = page, .rows = { .write = write, .user = user, .out = out }, .out = out };
	int r;

	find_findings(&w);
	r = write_all(&w, error);
	g_hash_table_unref(w.findings);
	g_free(w.items);
	return r;
}
