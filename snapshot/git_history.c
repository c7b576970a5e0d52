/* SPDX-License-Identifier: MIT */
#include "snapshot/git_history.h"

#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <unistd.h>

#include "snapshot/git_private.h"
#include "snapshot/journal.h"

struct history {
	git_repository *repo;
	GHashTable *seen; /* paths */
	git_history_fn fn;
	void *user;
	char commit[GIT_OID_HEXSZ + 1];
};

static void note_path(struct history *h, const char *path)
{
	if (path && g_hash_table_add(h->seen, g_strdup(path)))
		h->fn(path, h->commit, h->user);
}

/* Only names are compared, so no content is read. */
static int note_delta(const git_diff *diff, const git_diff_delta *delta, const char *matched, void *user)
{
	(void)diff;
	(void)matched;
	note_path(user, delta->old_file.path);
	note_path(user, delta->new_file.path);
	return 1; /* not kept in the list */
}

static int look_at_commit(struct history *h, const git_oid *id)
{
	git_diff_options options = GIT_DIFF_OPTIONS_INIT;
	git_commit *commit = NULL, *parent = NULL;
	git_tree *tree = NULL, *before = NULL;
	git_diff *diff = NULL;
	int r = git_commit_lookup(&commit, h->repo, id);

	git_oid_tostr(h->commit, sizeof(h->commit), id);
	if (r == 0)
		r = git_commit_tree(&tree, commit);
	if (r == 0 && git_commit_parentcount(commit) > 0)
		r = git_commit_parent(&parent, commit, 0);
	if (r == 0 && parent)
		r = git_commit_tree(&before, parent);
	options.notify_cb = note_delta;
	options.payload = h;
	if (r == 0)
		r = git_diff_tree_to_tree(&diff, h->repo, before, tree, &options);
	git_diff_free(diff);
	git_tree_free(before);
	git_tree_free(tree);
	git_commit_free(parent);
	git_commit_free(commit);
	return r;
}

static int walk(struct history *h, unsigned max)
{
	git_revwalk *revs = NULL;
	unsigned n = 0;
	git_oid id;
	int r = git_revwalk_new(&revs, h->repo);

	if (r == 0)
		r = git_revwalk_sorting(revs, GIT_SORT_TIME);
	if (r == 0)
		r = git_revwalk_push_glob(revs, "refs/*");
	/* There is none before the first commit. */
	if (r == 0 && git_repository_head_unborn(h->repo) == 0)
		r = git_revwalk_push_head(revs);
	while (r == 0 && n < max && (r = git_revwalk_next(&id, revs)) == 0) {
		r = look_at_commit(h, &id);
		n++;
	}
	git_revwalk_free(revs);
	return r == GIT_ITEROVER ? 0 : r < 0 ? r : n == max ? 1 : 0;
}

/* In a directory of links, as git_place.h explains: the repository's path may lead into a view. */
static int open_repository(struct history *h, struct lower *top, const char *links, struct git_place *place)
{
	g_autofree char *path = g_build_filename(links, "git", NULL);
	int dirfd = open(links, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dirfd < 0 ? -errno : git_place_find(top, place);

	if (r == 0)
		r = git_place_link(place, dirfd, "git");
	if (dirfd >= 0)
		close(dirfd);
	if (r < 0)
		return r;
	git_libgit2_init();
	return git_repository_open_ext(&h->repo, path, GIT_REPOSITORY_OPEN_NO_SEARCH | GIT_REPOSITORY_OPEN_BARE, NULL) < 0 ? -EIO : 0;
}

int git_history_each(const struct lower *l, const char *dir, unsigned max, git_history_fn fn, void *user, GError **error)
{
	struct history h = { .fn = fn, .user = user };
	g_auto(git_place_t) place = GIT_PLACE_NONE;
	g_autofree char *links = g_dir_make_tmp("sbxfs-git-XXXXXX", error);
	int fd = links ? lower_open_file(l, dir, O_PATH | O_DIRECTORY) : -EIO, r;
	struct lower *top = NULL;

	if (fd < 0)
		return fd;
	r = lower_open_fd(fd, dir, &top);
	close(fd);
	if (r == 0)
		r = open_repository(&h, top, links, &place);
	h.seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	if (r == 0)
		r = walk(&h, max);
	if (r < 0 && h.repo)
		r = git_failed(error, "its history");
	g_hash_table_unref(h.seen);
	git_repository_free(h.repo);
	remove_tree(AT_FDCWD, links);
	lower_close(top);
	return r;
}
