/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * replay - what every fuzzer here has: with -fsanitize=fuzzer and FUZZER defined it is one; else its own main() replays the
 * files and directories that are named on the command line
 */

#include <glib.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef FUZZER

static int replay(const char *path)
{
	g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
	g_autofree char *data = NULL;
	const char *name;
	int count = 0;
	gsize len;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *file = g_build_filename(path, name, NULL);

		count += replay(file);
	}
	if (dir)
		return count;
	if (!g_file_get_contents(path, &data, &len, NULL)) {
		fprintf(stderr, "%s: cannot be read\n", path);
		return 0;
	}
	LLVMFuzzerTestOneInput((const uint8_t *)data, len);
	return 1;
}

int main(int argc, char **argv)
{
	int count = 0;

	for (int i = 1; i < argc; i++)
		count += replay(argv[i]);
	printf("%d inputs replayed\n", count);
	return count > 0 ? 0 : 1;
}

#endif
