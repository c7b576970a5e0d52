/* SPDX-License-Identifier: MIT */
#pragma once

/* view_checks - what a view is to show, for tests under cmocka */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <string.h>

#include "viewed.h"

static inline void check_text(struct viewed *v, const char *path, const char *want)
{
	g_autofree char *got = NULL;
	int r = view_read(v, path, &got);

	if (r < 0)
		fail_msg("%s: %s", path, g_strerror(-r));
	assert_string_equal(got, want);
}

static inline void check_list(struct viewed *v, const char *path, const char *want)
{
	g_autofree char *got = NULL;

	assert_int_equal(view_list(v, path, &got), 0);
	assert_string_equal(got, want);
}

static inline void check_changes(struct viewed *v, const char *want)
{
	g_autofree char *got = view_changes(v);

	assert_string_equal(got, want);
}

static inline uint32_t links_of(struct viewed *v, const char *path)
{
	struct attr a;

	assert_int_equal(view_stat(v, path, &a), 0);
	return a.nlink;
}
