/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * hello - a TLS ClientHello, good or with one mistake
 */

#include <glib.h>

enum {
	HELLO_NO_NAME = 1 << 0,
	HELLO_NO_EXTENSIONS = 1 << 1,
	HELLO_ECH = 1 << 2,
	/* mistakes; those of extensions only where there are some */
	HELLO_TWO_RECORDS = 1 << 3,
	HELLO_TWO_NAMES = 1 << 4,
	HELLO_LEFT_OVER = 1 << 5,
	HELLO_ALL = 1 << 6,
};
#define HELLO_BROKEN (HELLO_TWO_RECORDS | HELLO_TWO_NAMES | HELLO_LEFT_OVER)

/* hello_new() - caller unrefs. @name NULL: without one. */
GByteArray *hello_new(const char *name, unsigned flags);
