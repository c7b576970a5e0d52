/* SPDX-License-Identifier: MIT */
#include "snapshot/lines.h"

#include <errno.h>
#include <git2.h>
#include <string.h>

#include "snapshot/store.h"

struct job {
	lines_write write;
	const struct lines_visitor *visitor;
	lines_binary_fn binary;
	void *user;
	GArray *edits;
	uint64_t added;
	uint64_t removed;
};

/* For the life of the process: starting it costs, and others here use it too. */
static void lines_init(void)
{
	static gsize once;

	if (g_once_init_enter(&once)) {
		git_libgit2_init();
		g_once_init_leave(&once, 1);
	}
}

static int on_hunk(const git_diff_delta *delta, const git_diff_hunk *hunk, void *user)
{
	struct job *job = user;

	(void)delta;
	job->write(hunk->header, hunk->header_len, job->user);
	return 0;
}

static int on_line(const git_diff_delta *delta, const git_diff_hunk *hunk, const git_diff_line *line, void *user)
{
	struct job *job = user;

	(void)delta;
	(void)hunk;
	/* The "no newline" lines carry their own text, line break in front included. */
	if (line->origin == GIT_DIFF_LINE_CONTEXT || line->origin == GIT_DIFF_LINE_ADDITION ||
	    line->origin == GIT_DIFF_LINE_DELETION)
		job->write(&line->origin, 1, job->user);
	job->write(line->content, line->content_len, job->user);
	return 0;
}

static int on_counted_line(const git_diff_delta *delta, const git_diff_hunk *hunk, const git_diff_line *line,
			   void *user)
{
	struct job *job = user;

	(void)delta;
	(void)hunk;
	job->added += line->origin == GIT_DIFF_LINE_ADDITION;
	job->removed += line->origin == GIT_DIFF_LINE_DELETION;
	return 0;
}

/* A side without lines is said to begin at the line before. */
static int on_edit(const git_diff_delta *delta, const git_diff_hunk *hunk, void *user)
{
	const struct lines_edit e = {
		.old_at = hunk->old_start - (hunk->old_lines > 0),
		.old_count = hunk->old_lines,
		.new_at = hunk->new_start - (hunk->new_lines > 0),
		.new_count = hunk->new_lines,
	};
	struct job *job = user;

	(void)delta;
	g_array_append_val(job->edits, e);
	return 0;
}

static int on_visited_hunk(const git_diff_delta *delta, const git_diff_hunk *hunk, void *user)
{
	struct job *job = user;
	struct lines_hunk h = { .old_start = hunk->old_start,
				.old_lines = hunk->old_lines,
				.new_start = hunk->new_start,
				.new_lines = hunk->new_lines };
	const char *ranges = g_strstr_len(hunk->header, hunk->header_len, " @@");

	(void)delta;
	/* Behind "@@ -1,7 +1,8 @@ ". */
	if (ranges) {
		h.heading = ranges + strlen(" @@");
		h.heading_size = hunk->header + hunk->header_len - h.heading;
		while (h.heading_size && g_ascii_isspace(*h.heading)) {
			h.heading++;
			h.heading_size--;
		}
		while (h.heading_size && h.heading[h.heading_size - 1] == '\n')
			h.heading_size--;
	}
	job->visitor->hunk(&h, job->user);
	return 0;
}

static int on_visited_line(const git_diff_delta *delta, const git_diff_hunk *hunk, const git_diff_line *line, void *user)
{
	struct job *job = user;
	const struct lines_line l = { .origin = line->origin,
				      .old_line = MAX(line->old_lineno, 0),
				      .new_line = MAX(line->new_lineno, 0),
				      .text = line->content,
				      .size = line->content_len };

	(void)delta;
	(void)hunk;
	/* A missing line break at the end shows in the text, the lines about it say nothing more. */
	if (l.origin == GIT_DIFF_LINE_CONTEXT || l.origin == GIT_DIFF_LINE_ADDITION || l.origin == GIT_DIFF_LINE_DELETION)
		job->visitor->line(&l, job->user);
	return 0;
}

static int on_binary(const git_diff_delta *delta, const git_diff_binary *binary, void *user)
{
	const git_diff_binary_file *files[] = { &binary->new_file, &binary->old_file };
	struct job *job = user;

	(void)delta;
	for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
		struct lines_binary half = { .delta = files[i]->type == GIT_DIFF_BINARY_DELTA,
					     .data = files[i]->data,
					     .size = files[i]->datalen,
					     .inflated_size = files[i]->inflatedlen };

		job->binary(&half, job->user);
	}
	return 0;
}

static int run(struct job *job, GBytes *before, GBytes *after, uint32_t flags, git_diff_hunk_cb hunk_cb,
	       git_diff_line_cb line_cb, GError **error)
{
	git_diff_options options = GIT_DIFF_OPTIONS_INIT;
	gsize old_size = 0, new_size = 0;
	const void *old = before ? g_bytes_get_data(before, &old_size) : NULL;
	const void *new = after ? g_bytes_get_data(after, &new_size) : NULL;
	const git_error *e;

	lines_init();
	options.flags = flags;
	options.max_size = -1;
	if (job->edits)
		options.context_lines = 0;
	if (git_diff_buffers(old, old_size, NULL, new, new_size, NULL, &options, NULL, job->binary ? on_binary : NULL,
			     hunk_cb, line_cb, job) == 0)
		return 0;
	e = git_error_last();
	g_set_error(error, STORE_ERROR, STORE_ERROR_FAILED, "%s", e ? e->message : "libgit2 failed");
	return -EIO;
}

int lines_hunks(GBytes *before, GBytes *after, lines_write write, void *user, GError **error)
{
	struct job job = { .write = write, .user = user };

	return run(&job, before, after, GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC, on_hunk, on_line, error);
}

int lines_each(GBytes *before, GBytes *after, const struct lines_visitor *visitor, void *user, GError **error)
{
	struct job job = { .visitor = visitor, .user = user };

	return run(&job, before, after, GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC, on_visited_hunk, on_visited_line, error);
}

int lines_count(GBytes *before, GBytes *after, uint64_t *ret_added, uint64_t *ret_removed, GError **error)
{
	struct job job = { 0 };
	int r = run(&job, before, after, GIT_DIFF_FORCE_TEXT, NULL, on_counted_line, error);

	if (r == 0) {
		*ret_added = job.added;
		*ret_removed = job.removed;
	}
	return r;
}

int lines_edits(GBytes *before, GBytes *after, GArray **ret, GError **error)
{
	g_autoptr(GArray) edits = g_array_new(FALSE, FALSE, sizeof(struct lines_edit));
	struct job job = { .edits = edits };
	int r = run(&job, before, after, GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC, on_edit, NULL, error);

	if (r == 0)
		*ret = g_steal_pointer(&edits);
	return r;
}

int lines_binary(GBytes *before, GBytes *after, lines_binary_fn fn, void *user, GError **error)
{
	struct job job = { .binary = fn, .user = user };

	return run(&job, before, after, GIT_DIFF_FORCE_BINARY | GIT_DIFF_SHOW_BINARY, NULL, NULL, error);
}

static git_merge_file_input merge_input(GBytes *bytes)
{
	git_merge_file_input in = GIT_MERGE_FILE_INPUT_INIT;
	gsize size;
	const char *data = g_bytes_get_data(bytes, &size);

	in.ptr = data ? data : "";
	in.size = size;
	return in;
}

int lines_merge(GBytes *base, GBytes *ours, GBytes *theirs, const char *our_name, const char *their_name, bool *ret_clean, GBytes **ret)
{
	const git_merge_file_input a = merge_input(base), b = merge_input(ours), c = merge_input(theirs);
	git_merge_file_options options = GIT_MERGE_FILE_OPTIONS_INIT;
	git_merge_file_result result = { 0 };

	lines_init();
	options.our_label = our_name;
	options.their_label = their_name;
	if (git_merge_file(&result, &a, &b, &c, &options) < 0)
		return -EIO;
	*ret_clean = result.automergeable;
	*ret = g_bytes_new(result.ptr, result.len);
	git_merge_file_result_free(&result);
	return 0;
}
