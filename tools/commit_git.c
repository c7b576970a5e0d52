/* SPDX-License-Identifier: MIT */
#include "tools/commit_git.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/diff.h"
#include "tools/attach.h"
#include "tools/exit.h"
#include "tools/output.h"

void commit_git_clear(struct commit_git *g)
{
	git_commit_result_clear(&g->result);
	g_free(g->branch);
	g_free(g->message);
	g_free(g->author);
	g_free(g->patch);
}

bool commit_git_check(const struct commit_git *g, GError **error)
{
	const char *problem = NULL;

	if (g->branch && g->patch)
		problem = "--git and --patch exclude each other";
	else if (g->branch && !g->message)
		problem = "--git needs a message: -m MESSAGE";
	else if (!g->branch && (g->message || g->author || g->sign_off))
		problem = "-m, --author and -s go with --git BRANCH";
	if (problem)
		tool_error(error, EXIT_USAGE, NULL, "%s", problem);
	return !problem;
}

bool commit_git_make(struct commit_git *g, struct attached *a, struct tree *from, struct tree *to, GPtrArray *changes,
		     bool dry_run, GError **error)
{
	const struct git_commit_job job = {
		.store = a->store,
		.lower = a->lower,
		.from = from,
		.to = to,
		.changes = changes,
		.branch = g->branch,
		.message = g->message,
		.author = g->author,
		.sign_off = g->sign_off,
		.dry_run = dry_run,
	};

	return git_commit_changes(&job, &g->result, error) >= 0;
}

void commit_git_print(const struct commit_git *g)
{
	const struct git_commit_result *r = &g->result;

	for (unsigned i = 0; r->notes && i < r->notes->len; i++)
		output_note("note: %s", (const char *)r->notes->pdata[i]);
	if (!r->id) {
		output_note("git has nothing to commit; %s was not made", r->ref);
		return;
	}
	printf("committed to %s: %" PRIu64 " paths. The workspace is as it was, so the changes stay pending in the view\n",
	       r->ref, r->paths);
	printf("%s\n", r->id);
}

/* Patches */

static void write_file(const char *data, size_t size, void *user)
{
	fwrite(data, 1, size, user);
}

static bool close_file(FILE *f, const char *path, GError **error)
{
	bool ok = fflush(f) == 0 && !ferror(f) && (fsync(fileno(f)) == 0 || errno == EINVAL || errno == EROFS);
	int failure = errno;

	if (f != stdout)
		fclose(f);
	if (!ok)
		tool_error_errno(error, failure ? -failure : -EIO, path, "cannot write %s", path);
	return ok;
}

static bool write_to(const struct commit_git *g, const char *path, struct tree *from, struct tree *to, GPtrArray *changes,
		     GError **error)
{
	FILE *f = g_str_equal(path, "-") ? stdout : fopen(path, "we");
	bool ok;

	if (!f) {
		tool_error_errno(error, -errno, g->patch, "cannot write %s", g->patch);
		return false;
	}
	ok = diff_patch(changes, from, to, write_file, f, error) >= 0;
	return close_file(f, g->patch, ok ? error : NULL) && ok;
}

bool commit_git_write_patch(const struct commit_git *g, struct tree *from, struct tree *to, GPtrArray *changes,
			    GError **error)
{
	g_autofree char *temporary = NULL;
	struct stat st;

	/* A pipe, a terminal, a device: nothing to replace. */
	if (g_str_equal(g->patch, "-") || (stat(g->patch, &st) == 0 && !S_ISREG(st.st_mode)))
		return write_to(g, g->patch, from, to, changes, error);
	temporary = g_strdup_printf("%s.%d.tmp", g->patch, (int)getpid());
	if (write_to(g, temporary, from, to, changes, error)) {
		if (rename(temporary, g->patch) == 0)
			return true;
		tool_error_errno(error, -errno, g->patch, "cannot write %s", g->patch);
	}
	unlink(temporary);
	return false;
}
