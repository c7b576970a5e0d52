/* SPDX-License-Identifier: MIT */
#include <glib.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/quantity.h"
#include "tools/run/excerpt.h"
#include "tools/run/exit_info.h"
#include "tools/run/process.h"

static void test_quantity(void)
{
	static const struct {
		enum quantity kind;
		const char *text;
		uint64_t value;
		const char *back;
	} good[] = { { QUANTITY_BYTES, "512", 512, "512" },	    { QUANTITY_BYTES, "2048", 2048, "2K" },
		     { QUANTITY_BYTES, "2G", UINT64_C(2) << 30, "2G" }, { QUANTITY_TIME, "90", 90000, "90s" },
		     { QUANTITY_TIME, "120s", 120000, "2m" },	    { QUANTITY_TIME, "7d", UINT64_C(604800000), "7d" },
		     { QUANTITY_NUMBER, "77", 77, "77" } };
	static const char *const bad[] = { "", "0", "x", "-1", "1K", "1mm", "99999999999999999999d", " 1", "1.5" };
	uint64_t value;

	for (unsigned i = 0; i < G_N_ELEMENTS(good); i++) {
		g_autofree char *back = quantity_text(good[i].kind, good[i].value);

		g_assert_true(quantity_parse(good[i].kind, good[i].text, &value));
		g_assert_cmpuint(value, ==, good[i].value);
		g_assert_cmpstr(back, ==, good[i].back);
	}
	for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++)
		g_assert_false(quantity_parse(QUANTITY_TIME, bad[i], &value));
}

/* Every way to cut a stream in pieces gives the same excerpt: its ends. */
static void test_excerpt(void)
{
	const size_t half = 10;
	char stream[64];

	for (size_t i = 0; i < sizeof(stream); i++)
		stream[i] = (char)('A' + i % 26);
	for (size_t total = 0; total <= sizeof(stream); total++) {
		for (size_t piece = 1; piece <= sizeof(stream); piece++) {
			struct excerpt *e = excerpt_new(2 * half);
			g_autofree char *text = NULL, *head = g_strndup(stream, MIN(total, half)), *want = NULL;
			size_t tail = total > half ? MIN(total - half, half) : 0;
			g_autofree char *end = g_strndup(stream + total - tail, tail);

			for (size_t at = 0; at < total; at += piece)
				excerpt_add(e, stream + at, MIN(piece, total - at));
			if (total > 2 * half)
				want = g_strdup_printf("%s\n[%zu bytes left out]\n%s", head, total - 2 * half, end);
			else
				want = g_strconcat(head, end, NULL);
			text = excerpt_text(e);
			g_assert_cmpstr(text, ==, want);
			excerpt_free(e);
		}
	}
}

static void test_excerpt_is_text(void)
{
	struct excerpt *e = excerpt_new(100);
	g_autofree char *text = NULL;

	excerpt_add(e, "a\0b\xff", 4);
	text = excerpt_text(e);
	g_assert_true(g_utf8_validate(text, -1, NULL));
	g_assert_cmpuint(strlen(text), ==, 8);
	excerpt_free(e);
}

/* Strings that end with the last byte there is, cross a page or are long; and a list that is not there. */
static void test_strings(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *last = memory + 2 * page - 5, *crossing = memory + page - 3;
	g_autofree char *long_one = g_strnfill(1000, 'x');
	const char *list[] = { last, crossing, "", long_one, "NAME=value", NULL };
	const char *expected[] = { "last", "crossing", "", long_one, "NAME=value" };
	bool cut = false;
	g_autoptr(GPtrArray) all = NULL, names = NULL, some = NULL;

	g_assert_true(memory != MAP_FAILED);
	g_assert_cmpint(mprotect(memory + 2 * page, page, PROT_NONE), ==, 0);
	strcpy(last, "last");
	strcpy(crossing, "crossing");
	all = process_strings(getpid(), (uintptr_t)list, '\0', 65536, &cut);
	g_assert_false(cut);
	g_assert_cmpuint(all->len, ==, 5);
	for (unsigned i = 0; i < all->len; i++)
		g_assert_cmpstr(all->pdata[i], ==, expected[i]);
	names = process_strings(getpid(), (uintptr_t)&list[4], '=', 65536, &cut);
	g_assert_cmpstr(names->pdata[0], ==, "NAME");
	some = process_strings(getpid(), (uintptr_t)list, '\0', 100, &cut);
	g_assert_true(cut);
	g_assert_cmpuint(some->len, ==, 4);
	g_assert_cmpuint(strlen(some->pdata[3]), <=, 100);
	g_assert_null(process_strings(getpid(), (uintptr_t)(memory + 2 * page), '\0', 100, &cut));
	g_assert_null(process_string(getpid(), (uintptr_t)(memory + 2 * page), 100));
	munmap(memory, 3 * page);
}

static void test_identity(void)
{
	struct process_identity who;
	g_autofree char *cwd = process_cwd(getpid()), *here = g_get_current_dir();

	g_assert_true(process_identify(getpid(), &who));
	g_assert_cmpint(who.pid, ==, getpid());
	g_assert_cmpint(who.parent, ==, getppid());
	g_assert_cmpuint(who.uid, ==, getuid());
	g_assert_cmpstr(cwd, ==, here);
}

/* Whether the kernel tells or not: what it says is true, and does not wait. */
static void test_exit_info(void)
{
	if (exit_info_works())
		g_test_message("the kernel tells how processes ended");
	else
		g_test_skip("the kernel does not tell (before Linux 6.15)");
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/quantity", test_quantity);
	g_test_add_func("/excerpt", test_excerpt);
	g_test_add_func("/excerpt-is-text", test_excerpt_is_text);
	g_test_add_func("/strings", test_strings);
	g_test_add_func("/identity", test_identity);
	g_test_add_func("/exit-info", test_exit_info);
	return g_test_run();
}
