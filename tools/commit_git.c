/* SPDX-License-Identifier: MIT */
#include "tools/commit_git.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/diff.h"
#include "tools/attach.h"
#include "tools/exit.h"
#include "tools/out_file.h"
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

bool commit_git_write_patch(const struct commit_git *g, struct attached *a, struct tree *from, struct tree *to, GPtrArray *changes,
			    GError **error)
{
	struct out_file out;
	bool ok;

	if (!out_file_open(&out, g->patch, a->sandbox, error))
		return false;
	ok = diff_patch(changes, from, to, out_file_write, &out, error) >= 0;
	return out_file_close(&out, ok, ok ? error : NULL) && ok;
}
