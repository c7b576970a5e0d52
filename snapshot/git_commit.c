/* SPDX-License-Identifier: MIT */
#include "snapshot/git_commit.h"

#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <git2/sys/repository.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/git_private.h"
#include "snapshot/journal.h"

#define SHADOW "git"

G_DEFINE_QUARK(sbxfs-git-commit-error-quark, git_commit_error)

void git_commit_result_clear(struct git_commit_result *r)
{
	g_free(r->id);
	g_free(r->ref);
	g_clear_pointer(&r->notes, g_ptr_array_unref);
	*r = (struct git_commit_result){ 0 };
}

int git_failed(GError **error, const char *what)
{
	const git_error *e = git_error_last();

	if (e && strstr(e->message, "unsupported extension"))
		g_set_error(error, GIT_COMMIT_ERROR, GIT_COMMIT_ERROR_FILTER,
			    "git: %s: %s: what writes commits here (libgit2) cannot read it; use --patch FILE, and git apply and git commit with it",
			    what, e->message);
	else
		g_set_error(error, GIT_COMMIT_ERROR, GIT_COMMIT_ERROR_FAILED, "git: %s: %s", what, e ? e->message : "libgit2 failed");
	return -EIO;
}

/* The repository */

static int find_place(struct git *g, GError **error)
{
	const char *workspace = lower_path(g->job->lower);
	int r = git_place_find(g->job->lower, &g->place);

	if (r == -ENOENT)
		g_set_error(error, GIT_COMMIT_ERROR, GIT_COMMIT_ERROR_REPOSITORY,
			    "the workspace %s is in no git repository; run `git init` in it, or commit without --git", workspace);
	else if (r < 0)
		g_set_error(error, GIT_COMMIT_ERROR, GIT_COMMIT_ERROR_REPOSITORY, "the git repository of %s cannot be opened: %s", workspace,
			    r == -ELOOP ? ".git is a symlink" : g_strerror(-r));
	return r;
}

static int link_place(struct git *g, GError **error)
{
	int dirfd = open(store_dir(g->job->store), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dirfd < 0 ? -errno : git_place_link(&g->place, dirfd, SHADOW);

	g->dir = g_build_filename(store_dir(g->job->store), SHADOW, NULL);
	if (r == 0) {
		g_autofree char *view = g_build_filename(g->dir, "view", NULL);

		r = g_mkdir_with_parents(view, 0700) < 0 ? -errno : 0;
	}
	if (dirfd >= 0)
		close(dirfd);
	if (r < 0)
		g_set_error(error, GIT_COMMIT_ERROR, GIT_COMMIT_ERROR_FAILED, "cannot use the store %s: %s", store_dir(g->job->store),
			    g_strerror(-r));
	return r;
}

static int read_head(struct git *g, GError **error)
{
	git_tree *tree = NULL;
	git_oid id;
	int r = git_reference_name_to_id(&id, g->repo, "HEAD");

	if (r == GIT_ENOTFOUND)
		return 0; /* nothing was committed yet */
	if (r == 0)
		r = git_commit_lookup(&g->head, g->repo, &id);
	if (r == 0)
		r = git_commit_tree(&tree, g->head);
	if (r == 0)
		r = git_index_read_tree(g->index, tree);
	git_tree_free(tree);
	return r < 0 ? git_failed(error, "HEAD") : 0;
}

static int open_repository(struct git *g, GError **error)
{
	g_autofree char *view = g_build_filename(g->dir, "view", NULL);
	int r;

	git_libgit2_init();
	/* All objects but HEAD's are made here, and those may be absent in a partial clone. */
	git_libgit2_opts(GIT_OPT_ENABLE_STRICT_OBJECT_CREATION, 0);
	r = git_repository_open_ext(&g->repo, g->dir, GIT_REPOSITORY_OPEN_NO_SEARCH | GIT_REPOSITORY_OPEN_BARE, NULL);
	if (r == 0)
		r = git_repository_set_workdir(g->repo, view, 0);
	if (r == 0)
		r = git_index_new(&g->index);
	if (r == 0)
		r = git_repository_set_index(g->repo, g->index);
	return r < 0 ? git_failed(error, "the repository") : read_head(g, error);
}

static int git_open(struct git *g, GError **error)
{
	int r = find_place(g, error);

	if (r == 0)
		r = link_place(g, error);
	return r == 0 ? open_repository(g, error) : r;
}

static void git_close(struct git *g)
{
	int dirfd;

	git_commit_free(g->head);
	git_index_free(g->index);
	git_repository_free(g->repo);
	if (g->dir) {
		dirfd = open(store_dir(g->job->store), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dirfd >= 0) {
			remove_tree(dirfd, SHADOW); /* if it fails, the next one does it */
			close(dirfd);
		}
	}
	g_free(g->dir);
	git_place_clear(&g->place);
	g_clear_pointer(&g->notes, notes_free);
}

/* Who and what */

struct words {
	git_signature *author, *committer;
	char *message;
};

static void words_clear(struct words *w)
{
	git_signature_free(w->author);
	git_signature_free(w->committer);
	g_free(w->message);
}

static git_signature *parse_person(const char *text)
{
	const char *open = strrchr(text, '<'), *close = open ? strchr(open, '>') : NULL;
	g_autofree char *name = open ? g_strstrip(g_strndup(text, open - text)) : NULL;
	g_autofree char *email = close && close[1] == '\0' ? g_strstrip(g_strndup(open + 1, close - open - 1)) : NULL;
	git_signature *who = NULL;

	return name && email && *name && *email && git_signature_now(&who, name, email) == 0 ? who : NULL;
}

/* As git finds it: GIT_AUTHOR_NAME and so on, then the configuration. */
static git_signature *find_person(struct git *g, const char *role)
{
	g_autofree char *name_key = g_strdup_printf("GIT_%s_NAME", role), *email_key = g_strdup_printf("GIT_%s_EMAIL", role);
	const char *name = g_getenv(name_key), *email = g_getenv(email_key);
	git_signature *who = NULL;
	git_config *config = NULL;

	if ((!name || !email) && git_repository_config_snapshot(&config, g->repo) == 0) {
		if (!name)
			git_config_get_string(&name, config, "user.name");
		if (!email)
			git_config_get_string(&email, config, "user.email");
	}
	if (name && email && git_signature_now(&who, name, email) < 0)
		who = NULL;
	git_config_free(config);
	return who;
}

static int find_people(struct git *g, struct words *w, GError **error)
{
	const char *author = g->job->author;

	if (author)
		w->author = parse_person(author);
	if (author && !w->author) {
		g_set_error(error, GIT_COMMIT_ERROR, GIT_COMMIT_ERROR_REQUEST, "'%s' is no author: write it as 'Name <address>'", author);
		return -EINVAL;
	}
	w->committer = find_person(g, "COMMITTER");
	if (!w->author)
		w->author = find_person(g, "AUTHOR");
	if (!w->committer && w->author)
		git_signature_dup(&w->committer, w->author);
	if (w->author && w->committer)
		return 0;
	g_set_error(error, GIT_COMMIT_ERROR, GIT_COMMIT_ERROR_REQUEST,
		    "git does not know who makes the commit: set user.name and user.email in its configuration, or give --author");
	return -EINVAL;
}

static void sign_off(GString *message, const git_signature *who)
{
	g_autofree char *line = g_strdup_printf("Signed-off-by: %s <%s>\n", who->name, who->email);
	git_message_trailer_array trailers = { 0 };

	if (strstr(message->str, line))
		return;
	if (git_message_trailers(&trailers, message->str) < 0 || trailers.count == 0)
		g_string_append_c(message, '\n');
	git_message_trailer_array_free(&trailers);
	g_string_append(message, line);
}

static int make_words(struct git *g, struct words *w, GError **error)
{
	g_autoptr(GString) message = g_string_new(NULL);
	git_buf clean = { 0 };
	int r = find_people(g, w, error);

	if (r < 0)
		return r;
	if (git_message_prettify(&clean, g->job->message ? g->job->message : "", 0, '#') == 0)
		g_string_append_len(message, clean.ptr, (gssize)clean.size);
	git_buf_dispose(&clean);
	if (message->len == 0) {
		g_set_error(error, GIT_COMMIT_ERROR, GIT_COMMIT_ERROR_REQUEST, "a git commit needs a message (-m)");
		return -EINVAL;
	}
	if (g->job->sign_off)
		sign_off(message, w->committer);
	w->message = g_string_free(g_steal_pointer(&message), FALSE);
	return 0;
}

/* The commit */

static void note_signing(struct git *g)
{
	git_config *config = NULL;
	int sign = 0;

	if (git_repository_config_snapshot(&config, g->repo) == 0 && git_config_get_bool(&sign, config, "commit.gpgsign") == 0 && sign)
		notes_add(g->notes, "the commit is not signed, though commit.gpgsign asks for it", "");
	git_config_free(config);
}

/* @tree is what the commit would build upon already. */
static bool adds_nothing(const git_commit *base, const git_oid *tree)
{
	return base && git_oid_equal(git_commit_tree_id(base), tree);
}

static int write_commit(struct git *g, const struct git_target *b, const struct words *w, struct git_commit_result *ret, GError **error)
{
	git_commit *base = b->on_top ? b->tip : g->head;
	const git_commit *parents[] = { base };
	g_autofree char *subject = g_strndup(w->message, strcspn(w->message, "\n"));
	g_autofree char *log = g_strconcat("commit (sbxfs): ", subject, NULL);
	git_tree *tree = NULL;
	git_oid tree_id, id;
	int r = git_index_write_tree_to(&tree_id, g->index, g->repo);

	if (r == 0 && adds_nothing(base, &tree_id)) {
		/* On top of an own commit: the branch has it all. */
		ret->id = b->on_top ? g_strdup(git_oid_tostr_s(git_commit_id(b->tip))) : NULL;
		return 0;
	}
	if (r == 0)
		r = git_tree_lookup(&tree, g->repo, &tree_id);
	if (r == 0)
		r = git_repository_set_ident(g->repo, w->committer->name, w->committer->email);
	if (r == 0)
		r = git_commit_create(&id, g->repo, NULL, w->author, w->committer, NULL, w->message, tree, base ? 1 : 0, parents);
	git_tree_free(tree);
	if (r < 0)
		return git_failed(error, "commit");
	r = git_target_move(g, b, &id, log, error);
	if (r == 0)
		ret->id = g_strdup(git_oid_tostr_s(&id));
	return r;
}

static int commit(struct git *g, struct git_commit_result *ret, GError **error)
{
	struct git_target branch = { 0 };
	struct words words = { 0 };
	int r = make_words(g, &words, error);

	if (r == 0)
		r = git_target_choose(g, &branch, error);
	if (r == 0)
		r = git_changes_apply(g, &ret->paths, error);
	if (r == 0) {
		note_signing(g);
		ret->ref = g_strdup(branch.ref);
		r = g->job->dry_run ? 0 : write_commit(g, &branch, &words, ret, error);
	}
	git_target_clear(&branch);
	words_clear(&words);
	return r;
}

int git_commit_changes(const struct git_commit_job *job, struct git_commit_result *ret, GError **error)
{
	struct git g = { .job = job, .place = GIT_PLACE_NONE, .notes = notes_new() };
	struct git_commit_result result = { 0 };
	int r = git_open(&g, error);

	if (r == 0)
		r = commit(&g, &result, error);
	if (r == 0) {
		result.notes = notes_list(g.notes);
		*ret = result;
	} else {
		git_commit_result_clear(&result);
	}
	git_close(&g);
	return r;
}
