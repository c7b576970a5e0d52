/* SPDX-License-Identifier: MIT */

/*
 * The parts of the page that `sbxfs diff --html` writes: bytes as text, words that differ, the tree of paths. The whole page is looked at by
 * tests/cases/webpage.py.
 */

#include <glib.h>
#include <string.h>

#include "snapshot/lines.h"
#include "tools/html/file_tree.h"
#include "tools/html/rows.h"
#include "tools/html/text.h"
#include "tools/html/words.h"

/* Text */

static char *text(const char *bytes, size_t size)
{
	GString *s = g_string_new(NULL);

	html_text(s, bytes, size);
	return g_string_free(s, FALSE);
}

static void check_text(const char *bytes, size_t size, const char *expected)
{
	g_autofree char *got = text(bytes, size);

	g_assert_cmpstr(got, ==, expected);
}

#define CHECK_TEXT(bytes, expected) check_text(bytes, sizeof(bytes) - 1, expected)

static void test_markup_is_text(void)
{
	CHECK_TEXT("</script><img src=x onerror='a(\"1\")'>&amp;",
		   "&lt;/script&gt;&lt;img src=x onerror=&#39;a(&quot;1&quot;)&#39;&gt;&amp;amp;");
	CHECK_TEXT("", "");
	CHECK_TEXT("a\tb \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xe3\x80\x80",
		   "a\tb \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xe3\x80\x80");
}

static void test_the_unseen_is_shown(void)
{
	CHECK_TEXT("\x1b[1m\a\r\n\x7f",
		   "<samp>\\x1b</samp>[1m<samp>\\x07</samp><samp>\\r</samp><samp>\\n</samp><samp>\\x7f</samp>");
	CHECK_TEXT("a\0b", "a<samp>\\x00</samp>b");
	CHECK_TEXT("\xe2\x80\xae"
		   "x\xe2\x81\xa6y",
		   "<samp>\\u{202e}</samp>x<samp>\\u{2066}</samp>y");
	CHECK_TEXT("\xe2\x80\x8b\xef\xbb\xbf\xc2\xad\xc2\x85",
		   "<samp>\\u{200b}</samp><samp>\\u{feff}</samp><samp>\\u{ad}</samp><samp>\\u{85}</samp>");
	CHECK_TEXT("\xc2\xa0\xe2\x80\xa8\xee\x80\x80", "<samp>\\u{a0}</samp><samp>\\u{2028}</samp><samp>\\u{e000}</samp>");
	CHECK_TEXT("\xf3\xa0\x81\xa1\xf3\xa0\x84\x80\xe3\x85\xa4",
		   "<samp>\\u{e0061}</samp><samp>\\u{e0100}</samp><samp>\\u{3164}</samp>");
}

static void test_what_is_no_utf8(void)
{
	CHECK_TEXT("\xff", "<samp>\\xff</samp>");
	CHECK_TEXT("a\xe2\x82", "a<samp>\\xe2</samp><samp>\\x82</samp>");
	CHECK_TEXT("\xc0\xaf", "<samp>\\xc0</samp><samp>\\xaf</samp>");			      /* "/" in two bytes */
	CHECK_TEXT("\xed\xa0\x80", "<samp>\\xed</samp><samp>\\xa0</samp><samp>\\x80</samp>"); /* half of a pair */
	CHECK_TEXT("\xe2<b>", "<samp>\\xe2</samp>&lt;b&gt;");
}

/* Whatever the bytes are: no "<" but ours, no control character, valid UTF-8. */
static void test_any_bytes(void)
{
	g_autoptr(GRand) rand = g_rand_new_with_seed(7);
	static const char spice[] = "<>&\"'/\\ab\x80\xbf\xc2\xe2\xf0\xff\n\r\x1b";

	for (int i = 0; i < 20000; i++) {
		char bytes[24];
		size_t size = g_rand_int_range(rand, 0, sizeof(bytes));
		g_autofree char *got = NULL;
		GString *rest;

		for (size_t k = 0; k < size; k++)
			bytes[k] = g_rand_boolean(rand) ? (char)g_rand_int_range(rand, 0, 256)
							: spice[g_rand_int_range(rand, 0, sizeof(spice))];
		got = text(bytes, size);
		g_assert_true(g_utf8_validate(got, -1, NULL));
		rest = g_string_new(got);
		g_string_replace(rest, "<samp>", "", 0);
		g_string_replace(rest, "</samp>", "", 0);
		g_assert_null(strpbrk(rest->str, "<>\"'\n\r\x1b\x7f"));
		g_string_free(rest, TRUE);
	}
}

static void test_titles_and_paths(void)
{
	g_autoptr(GString) s = g_string_new(NULL);

	html_plain(s, "a<b>\x1b\xff");
	g_assert_cmpstr(s->str, ==, "a&lt;b&gt;\\x1b\\xff");
	g_string_truncate(s, 0);
	html_path(s, "");
	html_path(s, "/a\nb");
	g_assert_cmpstr(s->str, ==, "<bdi>.</bdi><bdi>/a<samp>\\n</samp>b</bdi>");
}

static void test_long_text_is_folded_and_whole(void)
{
	g_autofree char *bytes = g_strnfill(10000, 'x');
	g_autoptr(GString) s = g_string_new(NULL);
	unsigned letters = 0;

	memcpy(bytes + 600, "\xe2\x82\xac", 3);
	html_folded(s, bytes, 10000, 900);
	g_assert_true(
		g_str_has_prefix(strstr(s->str, "<details"), "<details class=fold><summary>9175 more bytes</summary>\xe2\x82\xac"));
	for (const char *p = s->str; *p; p++)
		letters += *p == 'x';
	g_assert_cmpuint(letters, ==, 10000 - 3);
	g_string_truncate(s, 0);
	html_folded(s, bytes, 900, 900);
	g_assert_null(strchr(s->str, '<'));
}

/* Words */

/* Both lines with brackets around what differs. */
static char *compared(const char *before, const char *after)
{
	g_autoptr(GArray) a = g_array_new(FALSE, FALSE, sizeof(struct word_span)),
			  b = g_array_new(FALSE, FALSE, sizeof(struct word_span));
	const char *lines[] = { before, after };
	GArray *spans[] = { a, b };
	GString *s = g_string_new(NULL);

	words_compare(before, strlen(before), after, strlen(after), a, b);
	for (int side = 0; side < 2; side++) {
		size_t at = 0;

		g_string_append(s, side ? " | " : "");
		for (guint i = 0; i < spans[side]->len; i++) {
			struct word_span *w = &g_array_index(spans[side], struct word_span, i);

			g_assert_cmpuint(w->start, <, w->end);
			g_assert_true(i == 0 || at < w->start);
			g_string_append_len(s, lines[side] + at, w->start - at);
			g_string_append_printf(s, "[%.*s]", (int)(w->end - w->start), lines[side] + w->start);
			at = w->end;
		}
		g_string_append(s, lines[side] + at);
	}
	return g_string_free(s, FALSE);
}

static void check_words(const char *before, const char *after, const char *expected)
{
	g_autofree char *got = compared(before, after);

	g_assert_cmpstr(got, ==, expected);
}

static void test_words(void)
{
	check_words("int a = one;", "int a = two;", "int a = [one]; | int a = [two];");
	check_words("f(a, b)", "f(a, x, b)", "f(a, b) | f(a, [x, ]b)");
	check_words("return fifo;", "return a named pipe;", "return [fifo]; | return [a named pipe];");
	check_words("\tx = 1", "    x = 1", "[\t]x = 1 | [    ]x = 1");
	check_words("first and again last", "other and again least", "[first] and again [last] | [other] and again [least]");
	check_words("na\xc3\xafve one", "na\xc3\xa4ve one", "[na\xc3\xafve] one | [na\xc3\xa4ve] one");
	check_words("same", "same", "same | same");
	check_words("abc", "abc.", "abc | abc[.]");
	check_words("a.b.c.d", "a.x.c.y", "a.[b].c.[d] | a.[x].c.[y]");
	/* So little in common that a mark would say nothing. */
	check_words("completely different text", "nothing at all;", "completely different text | nothing at all;");
	check_words("", "x", " | x");
}

static void test_words_of_long_lines(void)
{
	g_autofree char *filler = g_strnfill(20000, 'f');
	g_autofree char *before = g_strconcat(filler, " old ", filler, NULL), *after = g_strconcat(filler, " new ", filler, NULL);
	g_autofree char *got = compared(before, after);
	g_autoptr(GString) many = g_string_new(NULL), others = g_string_new(NULL);
	g_autofree char *marked = NULL;

	g_assert_nonnull(strstr(got, "f [old] f"));
	g_assert_nonnull(strstr(got, "f [new] f"));
	for (int i = 0; i < 500; i++) {
		g_string_append(many, "keepthis a ");
		g_string_append(others, "keepthis b ");
	}
	marked = compared(many->str, others->str);
	g_assert_true(g_str_has_prefix(marked, "keepthis [a keepthis a"));
	g_assert_true(g_str_has_suffix(marked, "keepthis b] "));
}

static unsigned likeness(const char *a, const char *b)
{
	return words_likeness(a, strlen(a), b, strlen(b));
}

static void test_likeness(void)
{
	g_assert_cmpuint(likeness("  same", "\tsame"), ==, 100);
	g_assert_cmpuint(likeness("foo(a);", "foo(a, b);"), >=, 60);
	g_assert_cmpuint(likeness("x = 1", "foo(a, b);"), <, 40);
	g_assert_cmpuint(likeness("", ""), ==, 0);
	g_assert_cmpuint(likeness("", "x"), ==, 0);
}

/* Rows */

static void append(const char *data, size_t size, void *user)
{
	g_string_append_len(user, data, size);
}

/* The rows of a change, with the line breaks of the markup taken out. */
static char *rows_of(const char *before, const char *after, GArray *findings, uint64_t used)
{
	GString *page = g_string_new(NULL);
	g_autoptr(GString) out = g_string_new(NULL);
	g_autoptr(GArray) none = g_array_new(FALSE, FALSE, sizeof(struct rows_finding));
	struct rows rows = { .write = append, .user = page, .out = out, .used = used };
	struct diff_content content = {
		.before = { .mode = before ? 0100644 : 0, .bytes = before ? g_bytes_new(before, strlen(before)) : NULL },
		.after = { .mode = after ? 0100644 : 0, .bytes = after ? g_bytes_new(after, strlen(after)) : NULL },
		.text = true,
		.apart = !before || !after,
	};

	g_assert_cmpint(rows_content(&rows, &content, findings ? findings : none, NULL), ==, 0);
	rows_flush(&rows);
	diff_content_clear(&content);
	g_string_replace(page, ">\n", ">", 0);
	return g_string_free(page, FALSE);
}

static void test_rows_pair_versions_of_a_line(void)
{
	g_autofree char *page = rows_of("a\nfoo(a);\nz\n", "a\nx = 1;\nfoo(a, b);\nz\n", NULL, 0);

	g_assert_nonnull(strstr(page, "<u></u><b>2</b><ins>x = 1;</ins>"));
	g_assert_nonnull(strstr(page, "<i>2</i><del>foo(a);</del><b>3</b><ins>foo(a<mark>, b</mark>);</ins>"));
	g_assert_nonnull(strstr(page, "<i>3</i><div class=l aria-hidden=true>z</div><b>4</b><div>z</div>"));
}

static void test_rows_of_one_side(void)
{
	g_autofree char *page = rows_of(NULL, "one\ntwo", NULL, 0);
	g_autofree char *gone = rows_of("<b>\n", NULL, NULL, 0);

	g_assert_nonnull(strstr(
		page, "<div class=\"k one\"><b>1</b><ins>one</ins><b>2</b><ins>two<em>no newline at end of file</em></ins></div>"));
	g_assert_nonnull(strstr(gone, "<div class=\"k one\"><i>1</i><del>&lt;b&gt;</del></div>"));
}

static void test_rows_never_cut(void)
{
	g_autoptr(GString) before = g_string_new(NULL), after = g_string_new(NULL);
	g_autofree char *page = NULL, *late = NULL;

	for (int i = 0; i < ROWS_FILE_MAX + 700; i++) {
		g_string_append_printf(before, "old %d.\n", i);
		g_string_append_printf(after, "new %d.\n", i);
	}
	page = rows_of(before->str, after->str, NULL, 0);
	for (int i = 0; i < ROWS_FILE_MAX + 700; i++) {
		g_autofree char *old = g_strdup_printf("%s%d.%s", i < ROWS_FILE_MAX ? "<mark>old</mark> " : "-old ", i,
						       i < ROWS_FILE_MAX ? "</del>" : "\n");
		g_autofree char *new = g_strdup_printf("%s%d.%s", i < ROWS_FILE_MAX ? "<mark>new</mark> " : "+new ", i,
						       i < ROWS_FILE_MAX ? "</ins>" : "\n");

		g_assert_nonnull(strstr(page, old));
		g_assert_nonnull(strstr(page, new));
	}
	late = rows_of("a\nb\n", "a\nc\n", NULL, ROWS_PAGE_MAX);
	g_assert_nonnull(strstr(late, "<div class=\"plain\"> a\n-b\n+c\n</div>"));
}

static void test_findings_at_their_lines(void)
{
	struct gate_finding whole = { .level = GATE_REVIEW, .rule = (char *)"modes/x", .message = (char *)"whole" };
	struct gate_finding above = { .level = GATE_REVIEW, .line = 1, .rule = (char *)"a/b", .message = (char *)"above" };
	struct gate_finding at = {
		.level = GATE_REFUSE, .line = 10, .rule = (char *)"a/b", .message = (char *)"<at>", .excerpt = (char *)"k=*"
	};
	struct gate_finding below = { .level = GATE_REFUSE, .line = 99, .rule = (char *)"a/b", .message = (char *)"below" };
	const struct rows_finding list[] = { { &whole, 1 }, { &above, 2 }, { &at, 3 }, { &below, 4 } };
	g_autoptr(GArray) findings = g_array_new(FALSE, FALSE, sizeof(struct rows_finding));
	g_autofree char *page = NULL;

	g_array_append_vals(findings, list, G_N_ELEMENTS(list));
	page = rows_of("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\nTEN\n11\n", findings, 0);
	g_assert_true(g_str_has_prefix(
		page, "<div class=\"finding review\" id=g1><strong>review</strong> <span class=rule>modes/x</span> whole</div>"
		      "<div class=\"finding review\" id=g2><strong>review</strong> <span class=rule>a/b</span> line 1: above</div>"
		      "<div class=hunk>"));
	g_assert_nonnull(strstr(
		page, "TEN</ins><div class=\"finding refuse\" id=g3><strong>refuse</strong> <span class=rule>a/b</span> &lt;at&gt;"
		      "<pre>k=*</pre></div>"));
	g_assert_true(g_str_has_suffix(page, "line 99: below</div>"));
}

/* The tree */

static char *tree_of(const char *const *paths, guint n)
{
	g_autofree struct file_tree_item *items = g_new0(struct file_tree_item, n);
	g_autofree struct change *changes = g_new0(struct change, n);
	struct entry file = { .attr.mode = S_IFREG | 0644 };
	GString *s = g_string_new(NULL);

	for (guint i = 0; i < n; i++) {
		changes[i] = (struct change){ .path = (char *)paths[i], .status = CHANGE_ADDED, .after = &file };
		items[i] = (struct file_tree_item){ .change = &changes[i], .number = i + 1, .added = 1 };
	}
	file_tree(s, items, n);
	g_string_replace(s, "\n", "", 0);
	return g_string_free(s, FALSE);
}

#define LEAF(number, name)                                                                                                         \
	"<li><a href=#f" number "><span class=\"st A\">A</span> <bdi>" name "</bdi> <span class=plus>+1</span></a></li>"
#define LEVEL(name, count)                                                                                                         \
	"<li><details open><summary><bdi>" name "</bdi> <small>" count "</small> <span class=plus>+" count "</span></summary><ul>"
#define END "</ul></details></li>"

static void test_tree(void)
{
	const char *const paths[] = { "a", "d/e/x", "d/e/y/z", "d/f", "lone/deep/er/file" };
	g_autofree char *tree = tree_of(paths, G_N_ELEMENTS(paths));

	g_assert_cmpstr(tree, ==,
			"<ul class=tree>" LEAF("1", "a") LEVEL("d/", "3") LEVEL("e/", "2") LEAF("2", "x") LEVEL("y/", "1")
				LEAF("3", "z") END END LEAF("4", "f") END LEVEL("lone/deep/er/", "1") LEAF("5", "file") END
			"</ul>");
}

static void test_deep_tree(void)
{
	g_autoptr(GString) path = g_string_new(NULL);
	g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
	g_autofree char *tree = NULL;
	unsigned levels = 0;

	for (int i = 0; i < 300; i++) {
		g_string_append(path, "d");
		g_ptr_array_add(paths, g_strdup(path->str));
		g_string_append(path, "/");
	}
	tree = tree_of((const char *const *)paths->pdata, paths->len);
	for (const char *p = tree; (p = strstr(p, "<details")); p++)
		levels++;
	g_assert_cmpuint(levels, ==, FILE_TREE_DEPTH);
	g_assert_nonnull(strstr(tree, "<a href=#f300>"));
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/html/text/markup_is_text", test_markup_is_text);
	g_test_add_func("/html/text/the_unseen_is_shown", test_the_unseen_is_shown);
	g_test_add_func("/html/text/what_is_no_utf8", test_what_is_no_utf8);
	g_test_add_func("/html/text/any_bytes", test_any_bytes);
	g_test_add_func("/html/text/titles_and_paths", test_titles_and_paths);
	g_test_add_func("/html/text/long_text_is_folded_and_whole", test_long_text_is_folded_and_whole);
	g_test_add_func("/html/words/words", test_words);
	g_test_add_func("/html/words/long_lines", test_words_of_long_lines);
	g_test_add_func("/html/words/likeness", test_likeness);
	g_test_add_func("/html/rows/pair_versions_of_a_line", test_rows_pair_versions_of_a_line);
	g_test_add_func("/html/rows/one_side", test_rows_of_one_side);
	g_test_add_func("/html/rows/never_cut", test_rows_never_cut);
	g_test_add_func("/html/rows/findings_at_their_lines", test_findings_at_their_lines);
	g_test_add_func("/html/tree/tree", test_tree);
	g_test_add_func("/html/tree/deep", test_deep_tree);
	return g_test_run();
}
