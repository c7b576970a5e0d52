/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <git2.h>
#include <string.h>

#include "snapshot/git_private.h"

#define BRANCHES "git-branches"
#define BRANCHES_HEAD "sbxfs-git-branches 1\n"
#define HEADS "refs/heads/"

/* Which commits of which branches were made here */

static char *branches_read(struct git *g)
{
	g_autofree char *path = g_build_filename(store_dir(g->job->store), BRANCHES, NULL);
	char *text = NULL;

	if (!g_file_get_contents(path, &text, NULL, NULL) || !g_str_has_prefix(text, BRANCHES_HEAD)) {
		g_free(text);
		return g_strdup(BRANCHES_HEAD);
	}
	return text;
}

static char *branches_line(const char *ref, const git_oid *id)
{
	return g_strdup_printf("%s %s\n", ref, git_oid_tostr_s(id));
}

static bool is_ours(struct git *g, const char *ref, const git_oid *id)
{
	g_autofree char *text = branches_read(g);
	g_autofree char *line = branches_line(ref, id);

	return strstr(text, line) != NULL;
}

/* Before the branch moves: a line too many does no harm. Lines of commits that the branch has left behind are dropped. */
static int remember(struct git *g, const struct git_target *b, const git_oid *id, GError **error)
{
	g_autofree char *path = g_build_filename(store_dir(g->job->store), BRANCHES, NULL);
	g_autofree char *text = branches_read(g);
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	g_autofree char *prefix = g_strconcat(b->ref, " ", NULL);
	g_autofree char *old = b->tip ? branches_line(b->ref, git_commit_id(b->tip)) : NULL;
	g_autofree char *new = branches_line(b->ref, id);
	g_autoptr(GString) next = g_string_new(NULL);

	for (char **line = lines; *line && **line; line++)
		if (!g_str_has_prefix(*line, prefix))
			g_string_append_printf(next, "%s\n", *line);
	if (old && b->on_top)
		g_string_append(next, old);
	g_string_append(next, new);
	if (g_file_set_contents_full(path, next->str, (gssize)next->len, G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0600,
				     error))
		return 0;
	return -EIO;
}

/* Choosing */

/* @why is a sentence that goes on after the branch's name. */
static int refuse(GError **error, enum git_commit_error code, const char *ref, const char *why)
{
	g_set_error(error, GIT_COMMIT_ERROR, code, "branch %s %s", ref + (g_str_has_prefix(ref, HEADS) ? strlen(HEADS) : 0), why);
	return -EINVAL;
}

static int name_branch(struct git *g, struct git_target *b, GError **error)
{
	const char *name = g->job->branch;
	int valid = 0;

	if (g_str_has_prefix(name, HEADS))
		name += strlen(HEADS);
	if (git_branch_name_is_valid(&valid, name) < 0 || !valid)
		return refuse(error, GIT_COMMIT_ERROR_REQUEST, g->job->branch, "has a name that git does not allow");
	b->ref = g_strconcat(HEADS, name, NULL);
	return 0;
}

static int find_tip(struct git *g, struct git_target *b, GError **error)
{
	git_oid id;
	int r = git_reference_name_to_id(&id, g->repo, b->ref);

	if (r == GIT_ENOTFOUND)
		return 0;
	if (r == 0)
		r = git_commit_lookup(&b->tip, g->repo, &id);
	return r < 0 ? git_failed(error, b->ref) : 0;
}

static int is_a_branch(const char *name, void *user)
{
	*(char **)user = g_strdup(name);
	return 1;
}

/* A branch is a file, so none can lie below another. */
static int check_neighbours(struct git *g, const struct git_target *b, GError **error)
{
	g_autofree char *above = g_strdup(b->ref), *below = g_strconcat(b->ref, "/*", NULL), *found = NULL, *why = NULL;
	git_oid id;
	int r = GIT_ENOTFOUND;

	for (char *slash = strrchr(above, '/'); r == GIT_ENOTFOUND && slash > above + strlen(HEADS); slash = strrchr(above, '/')) {
		*slash = '\0';
		r = git_reference_name_to_id(&id, g->repo, above);
	}
	if (r == 0)
		found = g_strdup(above);
	else if (r != GIT_ENOTFOUND)
		return git_failed(error, above);
	else
		git_reference_foreach_glob(g->repo, below, is_a_branch, &found);
	if (!found)
		return 0;
	why = g_strdup_printf("cannot be made beside the branch %s: choose a name that is not a part of the other", found + strlen(HEADS));
	return refuse(error, GIT_COMMIT_ERROR_REQUEST, b->ref, why);
}

static int place_on_tip(struct git *g, struct git_target *b, GError **error)
{
	const git_oid *tip = git_commit_id(b->tip), *head = g->head ? git_commit_id(g->head) : NULL;
	int contained = head && git_oid_equal(tip, head) ? 1 : head ? git_graph_descendant_of(g->repo, head, tip) : 0;
	int on_head;

	if (contained < 0)
		return git_failed(error, b->ref);
	if (contained)
		return 0;
	on_head = head ? git_graph_descendant_of(g->repo, tip, head) : 1;
	if (on_head < 0)
		return git_failed(error, b->ref);
	if (!is_ours(g, b->ref, tip))
		return refuse(error, GIT_COMMIT_ERROR_BRANCH, b->ref,
			      "has commits that are neither in HEAD nor were made from this sandbox; they would be taken back without "
			      "a word. Name another branch");
	if (!on_head)
		return refuse(error, GIT_COMMIT_ERROR_BRANCH, b->ref,
			      "is behind: HEAD has moved on since the last commit from this sandbox. Name another branch, or merge this one first");
	b->on_top = true;
	return 0;
}

int git_target_choose(struct git *g, struct git_target *ret, GError **error)
{
	struct git_target b = { 0 };
	int r = name_branch(g, &b, error);

	if (r == 0)
		r = find_tip(g, &b, error);
	if (r == 0 && b.tip && git_place_has_head(&g->place, b.ref))
		r = refuse(error, GIT_COMMIT_ERROR_BRANCH, b.ref,
			   "is checked out: to move it would make the work tree look changed. Name another branch, or commit to the "
			   "workspace and use git there");
	if (r == 0)
		r = b.tip ? place_on_tip(g, &b, error) : check_neighbours(g, &b, error);
	if (r < 0)
		git_target_clear(&b);
	else
		*ret = b;
	return r;
}

void git_target_clear(struct git_target *b)
{
	git_commit_free(b->tip);
	g_free(b->ref);
	*b = (struct git_target){ 0 };
}

int git_target_move(struct git *g, const struct git_target *b, const struct git_oid *id, const char *log, GError **error)
{
	git_reference *ref = NULL;
	int r = remember(g, b, id, error);

	if (r < 0)
		return r;
	/* The branch must not name what a power cut could take away. */
	r = git_place_sync(&g->place);
	if (r < 0) {
		g_set_error(error, GIT_COMMIT_ERROR, GIT_COMMIT_ERROR_FAILED, "cannot write the repository: %s", g_strerror(-r));
		return r;
	}
	git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
	r = git_reference_create_matching(&ref, g->repo, b->ref, id, b->tip != NULL, b->tip ? git_commit_id(b->tip) : NULL, log);
	git_reference_free(ref);
	if (r == GIT_ELOCKED)
		return refuse(error, GIT_COMMIT_ERROR_BRANCH, b->ref,
			      "is locked: another git is at it. Try again; if there is none, remove its .lock file in the repository");
	if (r == GIT_EMODIFIED || r == GIT_EEXISTS)
		return refuse(error, GIT_COMMIT_ERROR_BRANCH, b->ref, "was moved by another git meanwhile. Try again");
	return r < 0 ? git_failed(error, b->ref) : 0;
}
