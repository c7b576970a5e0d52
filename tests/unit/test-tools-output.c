/* SPDX-License-Identifier: MIT */

/*
 * What the commands print: JSON of awkward names, coloured patches, errors and their exit codes.
 */

#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "fs/control.h"
#include "fs/mount.h"
#include "rules/policy_error.h"
#include "snapshot/store.h"
#include "tools/exit.h"
#include "tools/output.h"

struct capture {
	FILE *file;
	char *text;
	size_t size;
};

static void capture_open(struct capture *c)
{
	c->file = open_memstream(&c->text, &c->size);
}

static void capture_check(struct capture *c, const char *expected)
{
	fclose(c->file);
	g_assert_cmpstr(c->text, ==, expected);
	free(c->text);
}

static void test_json(void)
{
	struct capture c;
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "z", "first");
	json_add_path(&b, "path", "caf\xe9");
	json_add_path(&b, "plain", "a\"\n");
	json_add_string(&b, "none", NULL);
	json_add_int(&b, "n", INT64_C(1) << 53);
	json_add_bool(&b, "yes", true);
	json_add(&b, "list", g_variant_new("aa{sv}", NULL));
	capture_open(&c);
	json_print(c.file, g_variant_builder_end(&b));
	capture_check(&c, "{\"z\":\"first\",\"path\":\"caf\xef\xbf\xbd\",\"path_b64\":\"Y2Fm6Q==\",\"plain\":"
			  "\"a\\\"\\n\",\"none\":null,"
			  "\"n\":9007199254740992,\"yes\":true,\"list\":[]}\n");
}

/* A line "--- x" inside of a hunk is a deletion, not a header. */
static void test_patch_colors(void)
{
	const char patch[] =
		"--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n-- x\n-a\n+b\n\\ No newline at end of file\ndiff --git a/g b/g\n";
	struct capture c;
	struct patch_colorer *p;

	capture_open(&c);
	p = patch_colorer_new(c.file);
	for (size_t i = 0; i < strlen(patch); i++)
		patch_colorer_write(p, patch + i, 1);
	patch_colorer_free(p);
	capture_check(&c, "\033[1m--- a/f\033[m\n\033[1m+++ b/f\033[m\n\033[36m@@ -1,2 +1 @@\033[m\n\033[31m-- "
			  "x\033[m\n\033[31m-a\033[m\n"
			  "\033[32m+b\033[m\n\\ No newline at end of file\n\033[1mdiff --git a/g b/g\033[m\n");
}

static void test_plain(void)
{
	static const char *const words[][2] = {
		{ "", "" },
		{ "as it is, \303\251 \303\233", "as it is, \303\251 \303\233" },
		{ "a\033[2K\r\nb\t\177", "a\\033[2K\\015\\012b\\011\\177" },
		{ "\302\233m \302\240 \302", "\\302\\233m \302\240 \302" },
	};

	for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
		g_autofree char *plain = text_plain(words[i][0]);

		g_assert_cmpstr(plain, ==, words[i][1]);
	}
}

static void test_exit_codes(void)
{
	const struct {
		GQuark domain;
		int code;
		enum exit_code exit;
	} cases[] = {
		{ G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, EXIT_USAGE },
		{ POLICY_ERROR, POLICY_ERROR_PATTERN, EXIT_POLICY },
		{ STORE_ERROR, STORE_ERROR_BUSY, EXIT_BUSY },
		{ STORE_ERROR, STORE_ERROR_NOT_FOUND, EXIT_NOT_FOUND },
		{ STORE_ERROR, STORE_ERROR_NO_SPACE, EXIT_NO_SPACE },
		{ STORE_ERROR, STORE_ERROR_FAILED, EXIT_INTERNAL },
		{ CONTROL_ERROR, CONTROL_ERROR_EXISTS, EXIT_USAGE },
		{ CONTROL_ERROR, CONTROL_ERROR_NO_SPACE, EXIT_NO_SPACE },
		{ CONTROL_ERROR, CONTROL_ERROR_GONE, EXIT_BUSY },
		{ MOUNT_ERROR, MOUNT_ERROR_PLATFORM, EXIT_PLATFORM },
		{ MOUNT_ERROR, MOUNT_ERROR_BUSY, EXIT_BUSY },
		{ MOUNT_ERROR, MOUNT_ERROR_OPTION, EXIT_USAGE },
		{ MOUNT_ERROR, MOUNT_ERROR_POLICY, EXIT_POLICY },
		{ G_FILE_ERROR, G_FILE_ERROR_NOSPC, EXIT_NO_SPACE },
		{ G_MARKUP_ERROR, 0, EXIT_INTERNAL },
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GError) error = g_error_new_literal(cases[i].domain, cases[i].code, "x");

		g_assert_cmpint(exit_code_of(error), ==, cases[i].exit);
	}
}

static void test_errno(void)
{
	const struct {
		int e;
		enum exit_code exit;
	} cases[] = {
		{ ENOENT, EXIT_NOT_FOUND }, { ENOSPC, EXIT_NO_SPACE }, { EDQUOT, EXIT_NO_SPACE },
		{ EBUSY, EXIT_BUSY },	    { EACCES, EXIT_USAGE },  { EIO, EXIT_INTERNAL },
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GError) error = NULL;
		g_autofree char *expected = g_strdup_printf("reading x: %s", g_strerror(cases[i].e));

		tool_error_errno(&error, -cases[i].e, "x", "reading %s", "x");
		g_assert_cmpint(exit_code_of(error), ==, cases[i].exit);
		g_assert_cmpstr(error->message, ==, expected);
	}
}

static void report_not_found(void)
{
	g_autoptr(GError) error = NULL;

	tool_error(&error, EXIT_NOT_FOUND, "/a\xff", "no %s", "such thing");
	exit(exit_report(error, "sbxfs x", true));
}

static void test_json_error(void)
{
	if (g_test_subprocess())
		report_not_found();
	g_test_trap_subprocess(NULL, 0, 0);
	g_test_trap_assert_failed();
	g_test_trap_assert_stderr("*{\"error\":{\"code\":\"not-found\",\"message\":\"no such "
				  "thing\",\"path\":\"/a*\",\"path_b64\":\"L2H/\"}}*");
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/tools/output/json", test_json);
	g_test_add_func("/tools/output/patch_colors", test_patch_colors);
	g_test_add_func("/tools/output/plain", test_plain);
	g_test_add_func("/tools/exit/codes", test_exit_codes);
	g_test_add_func("/tools/exit/errno", test_errno);
	g_test_add_func("/tools/exit/json_error", test_json_error);
	return g_test_run();
}
