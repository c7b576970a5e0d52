/* SPDX-License-Identifier: MIT */
/*
 * test-mask - what a masked file shows
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "fs/mask.h"

static const struct {
	const char *text;
	const char *shown;
} cases[] = {
	{ "", "" },
	{ "A=1\nB=two\n", "A=<masked>\nB=<masked>\n" },
	{ "export TOKEN = abc\n", "export TOKEN =<masked>\n" },
	{ "# key abc\n; key abc\n\n", "#\n;\n\n" },
	{ "A=\n", "A=<masked>\n" },
	{ "A=1", "A=<masked>\n" },
	{ "A=1\r\n", "A=<masked>\n" },
	/* A quoted value goes on to its closing quote. */
	{ "A=\"one\ntwo\"\nB=3\n", "A=<masked>\nB=<masked>\n" },
	{ "A='one\ntwo=2\n'\nB=3\n", "A=<masked>\nB=<masked>\n" },
	{ "A=\"a\\\"b\"\nB=3\n", "A=<masked>\nB=<masked>\n" },
	{ "A=\"never closed\nsecret\n", "" },
	{ "A=\"a\nb\\\"c\nd==\n\"\nB=3\n", "A=<masked>\nB=<masked>\n" },
	/* And any value after a backslash, or indented deeper than its key. */
	{ "A=one\\\ntwo==\nB=3\n", "A=<masked>\nB=<masked>\n" },
	{ "A=\"one\" \\\ntwo==\nB=3\n", "A=<masked>\nB=<masked>\n" },
	{ "A=one\\", "A=<masked>\n" },
	{ "[a]\n\tpassword = one\n\t  two=\n\n\thost = h\n", "[a]\n\tpassword =<masked>\n\n\thost = h\n" },
	/* With sections only the values of credentials go. */
	{ "[db]\nhost = h\npassword = p\nport: 1\napi_key: k\n", "[db]\nhost = h\npassword =<masked>\nport: 1\napi_key:<masked>\n" },
	{ "[db]\nserver = ftp://me:secret@h/\nat = ftp://h/\n", "[db]\nserver =<masked>\nat = ftp://h/\n" },
	{ "[remote \"origin\"] \r\nhost = h\n", "[remote \"origin\"] \r\nhost = h\n" },
	/* A value that holds settings is looked at as well. */
	{ "[Service]\nEnvironment=\"DB_PASSWORD=p\"\nUser=u\n", "[Service]\nEnvironment=<masked>\nUser=u\n" },
	{ "[http]\n\textra = AUTHORIZATION: basic c2VjcmV0\n", "[http]\n\textra =<masked>\n" },
	{ "[a]\ndb = { user = 'u', password = 's' }\nnote = its password is s\n", "[a]\ndb =<masked>\nnote =<masked>\n" },
	{ "[a]\nweb_hook = http://h/T0/B0/x\ndir = /a/keys\n", "[a]\nweb_hook =<masked>\ndir = /a/keys\n" },
	/* Three quotes end at three. */
	{ "[a]\ntoken = \"\"\"\nc2VjcmV0==\\\"\"\"\nx=\"\"\"\nb = 1\n", "[a]\ntoken =<masked>\nb = 1\n" },
	{ "[a]\ntoken = '''\nit's c2VjcmV0=='''\nb = 1\n", "[a]\ntoken =<masked>\nb = 1\n" },
	{ "A=\"\"\nB=3\n", "A=<masked>\nB=<masked>\n" },
	/* With sections, a value goes on after empty lines. */
	{ "[a]\ntoken = 1\n\n \r\n  c2VjcmV0==\n\nb = 1\n", "[a]\ntoken =<masked>\n\nb = 1\n" },
	{ "A=1\n\n  B=2\n", "A=<masked>\n\n  B=<masked>\n" },
	/* A bracket does not make a section. */
	{ "[\"secret\"]\n", "" },
	{ "[{\"password\": \"secret\"}]\n", "" },
	{ "[prod] password=secret\n", "" },
	{ "[a, b]\n", "" },
	{ "[url \"https://me:secret@h/\"]\ninsteadOf = h:\n", "" },
	/* What is not understood to the last line is not shown at all. */
	{ "A=1\nplain secret\n", "" },
	{ "-----BEGIN KEY-----\nabc\n", "" },
	{ "{\"a\": 1}\n", "" },
	{ "host: h\n", "" },
	{ "=x\n", "" },
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GBytes) shown = mask_text(cases[i].text, strlen(cases[i].text));
		g_autofree char *text = g_strndup(g_bytes_get_data(shown, NULL), g_bytes_get_size(shown));

		assert_string_equal(text, cases[i].shown);
	}
}

static void test_not_text(void **state)
{
	g_autofree char *large = g_malloc0(MASK_MAX + 1);
	g_autoptr(GBytes) binary = mask_text("A=1\n\0B=2\n", 9), all = NULL;

	(void)state;
	assert_int_equal(g_bytes_get_size(binary), 0);
	memset(large, '\n', MASK_MAX + 1);
	all = mask_text(large, MASK_MAX + 1);
	assert_int_equal(g_bytes_get_size(all), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_table), cmocka_unit_test(test_not_text) };

	return cmocka_run_group_tests_name("mask", tests, NULL, NULL);
}
