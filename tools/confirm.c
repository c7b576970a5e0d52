/* SPDX-License-Identifier: MIT */
#include "tools/confirm.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/exit.h"

static bool ask(const char *question)
{
	char *line = NULL;
	size_t size = 0;
	bool yes;

	fflush(stdout);
	fprintf(stderr, "%s [y/N] ", question);
	fflush(stderr);
	yes = getline(&line, &size, stdin) > 0 && (*line == 'y' || *line == 'Y');
	free(line);
	return yes;
}

bool confirm(const char *question, bool yes, GError **error)
{
	if (yes)
		return true;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		tool_error(error, EXIT_USAGE, NULL,
			   "this needs a confirmation and there is no terminal to ask on: add -y to do it, or -n to "
			   "see what it would do");
		return false;
	}
	if (ask(question))
		return true;
	tool_error(error, EXIT_REVIEW, NULL, "not confirmed, nothing was changed");
	return false;
}
