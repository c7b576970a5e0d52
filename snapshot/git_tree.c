/* SPDX-License-Identifier: MIT */
/*
 * git_tree - which changes belong into a git tree, and as which blobs
 *
 * libgit2 looks for .gitignore and .gitattributes in a work tree. It gets one that holds nothing but these files, copied from the
 * view as far as directories with changes need them, so neither the real work tree nor the agent's view is walked.
 */
#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <string.h>

#include "snapshot/blob.h"
#include "snapshot/git_private.h"

#define CHUNK (1024 * 1024)
#define RULES_MAX (1024 * 1024)

static const char *const rule_files[] = { ".gitignore", ".gitattributes" };

/* What holds for all that lies in a directory. */
struct place_rules {
	bool nested;    /* a repository of its own */
	bool submodule; /* the same, known to HEAD */
	bool ignored;
};

struct item {
	const struct change *change;
	char *path; /* in the repository */
};

struct builder {
	struct git *git;
	GHashTable *dirs;   /* path in the workspace -> struct place_rules */
	GPtrArray *removed; /* paths in the repository */
	GPtrArray *added;   /* struct item */
	GPtrArray *filtered;
	uint64_t paths;
};

static void item_free(gpointer data)
{
	struct item *i = data;

	g_free(i->path);
	g_free(i);
}

static char *full_path(struct builder *b, const char *path)
{
	const char *prefix = b->git->place.prefix;

	return *prefix && *path ? path_join(prefix, path) : g_strdup(*path ? path : prefix);
}

static const git_index_entry *entry_at(struct builder *b, const char *full)
{
	return *full ? git_index_get_bypath(b->git->index, full, 0) : NULL;
}

static bool is_gitlink(const git_index_entry *e)
{
	return e && e->mode == GIT_FILEMODE_COMMIT;
}

/* The work tree of rules */

static void put_rules(struct builder *b, const char *full_dir, const char *name, GBytes *bytes)
{
	g_autofree char *dir = g_build_filename(b->git->dir, "view", full_dir, NULL);
	g_autofree char *file = g_build_filename(dir, name, NULL);
	gsize size;
	const char *data = g_bytes_get_data(bytes, &size);

	/* Without them less is left out; the commit shows it. */
	if (g_mkdir_with_parents(dir, 0700) < 0 || !g_file_set_contents(file, data ? data : "", (gssize)size, NULL))
		notes_add(b->git->notes, "the rules of git could not be read", full_dir);
}

static int rules_of_view(struct builder *b, const char *dir)
{
	struct tree *t = b->git->job->to;
	g_autofree char *full = full_path(b, dir);
	int r = 0;

	for (size_t i = 0; r == 0 && i < G_N_ELEMENTS(rule_files); i++) {
		g_autofree char *path = path_join(dir, rule_files[i]);
		g_autoptr(entry_t) e = NULL;
		struct blob blob = { 0 };

		r = tree_lookup_path(t, path, &e);
		if (r == 0 && e && S_ISREG(e->attr.mode) && e->attr.size <= RULES_MAX) {
			r = blob_open((struct side){ t, e }, &blob);
			if (r == 0 && blob.bytes)
				put_rules(b, full, rule_files[i], blob.bytes);
			blob_clear(&blob);
		}
	}
	return r;
}

static void rules_of_disk(struct builder *b, const char *full_dir)
{
	for (size_t i = 0; i < G_N_ELEMENTS(rule_files); i++) {
		g_autofree char *proc = g_strdup_printf("/proc/self/fd/%d", b->git->place.top);
		g_autofree char *path = g_build_filename(proc, full_dir, rule_files[i], NULL);
		g_autofree char *data = NULL;
		gsize size;

		if (g_file_test(path, G_FILE_TEST_IS_SYMLINK) || !g_file_get_contents(path, &data, &size, NULL))
			continue;
		g_autoptr(GBytes) bytes = g_bytes_new_take(g_steal_pointer(&data), size);

		put_rules(b, full_dir, rule_files[i], bytes);
	}
}

/* The directories above the workspace: its owner's, as they are. */
static void rules_above(struct builder *b)
{
	const char *prefix = b->git->place.prefix;

	if (!*prefix)
		return;
	rules_of_disk(b, "");
	for (const char *slash = strchr(prefix, '/'); slash; slash = strchr(slash + 1, '/')) {
		g_autofree char *dir = g_strndup(prefix, slash - prefix);

		rules_of_disk(b, dir);
	}
}

static int is_ignored(struct builder *b, const char *full, bool dir, bool *ret)
{
	g_autofree char *path = dir ? g_strconcat(full, "/", NULL) : g_strdup(full);
	int ignored = 0;

	if (*full && git_ignore_path_is_ignored(&ignored, b->git->repo, path) < 0)
		return -EIO;
	*ret = ignored;
	return 0;
}

static int look_at_dir(struct builder *b, const char *dir, struct place_rules *ret)
{
	g_autofree char *full = full_path(b, dir);
	g_autofree char *git = path_join(dir, ".git");
	g_autoptr(entry_t) e = NULL;
	int r = rules_of_view(b, dir);

	ret->submodule |= is_gitlink(entry_at(b, full));
	if (r == 0 && *dir && !ret->nested)
		r = tree_lookup_path(b->git->job->to, git, &e);
	ret->nested |= e != NULL;
	/* Nothing below an ignored directory can be taken out again by a pattern: git's rule, which libgit2 does not know. */
	return r == 0 && !ret->ignored ? is_ignored(b, full, true, &ret->ignored) : r;
}

/* @dir of the workspace and all above it; borrowed. */
static int rules_for(struct builder *b, const char *dir, const struct place_rules **ret)
{
	struct place_rules rules = { 0 };
	const char *slash = strrchr(dir, '/');
	int r = 0;

	*ret = g_hash_table_lookup(b->dirs, dir);
	if (*ret)
		return 0;
	if (*dir) {
		g_autofree char *above = g_strndup(dir, slash ? slash - dir : 0);

		r = rules_for(b, above, ret);
		if (r < 0)
			return r;
		rules = **ret;
	}
	r = look_at_dir(b, dir, &rules);
	if (r < 0)
		return r;
	*ret = g_memdup2(&rules, sizeof(rules));
	g_hash_table_insert(b->dirs, g_strdup(dir), (gpointer)*ret);
	return 0;
}

/* Choosing */

static bool has_git_part(const char *path)
{
	g_auto(GStrv) parts = g_strsplit(path, "/", -1);

	for (char **p = parts; *p; p++)
		if (g_ascii_strcasecmp(*p, ".git") == 0)
			return true;
	return false;
}

/* Both sides of a change: is @path in something that is another repository's business? */
static int is_foreign(struct builder *b, const char *path, const struct place_rules **ret_rules, bool *ret)
{
	const char *slash = strrchr(path, '/');
	g_autofree char *dir = g_strndup(path, slash ? slash - path : 0);
	int r = rules_for(b, dir, ret_rules);

	*ret = false;
	if (r < 0)
		return r;
	if ((*ret_rules)->submodule) {
		notes_add(b->git->notes, "not in the git commit, as it is in a submodule", path);
		*ret = true;
	} else if (has_git_part(path)) {
		notes_add(b->git->notes, "not in the git commit, as it belongs to a repository of its own", path);
		*ret = true;
	}
	return 0;
}

static int choose_removed(struct builder *b, const char *path, bool stays_dir)
{
	g_autofree char *full = full_path(b, path);
	const git_index_entry *e = entry_at(b, full);
	const struct place_rules *rules;
	bool foreign;
	int r = is_foreign(b, path, &rules, &foreign);

	if (r < 0 || foreign || !e || (stays_dir && is_gitlink(e)))
		return r;
	g_ptr_array_add(b->removed, g_steal_pointer(&full));
	return 0;
}

/* A path with a filter that we can't run. */
static bool has_filter(struct builder *b, const char *full)
{
	const char *value = NULL;

	return git_attr_get(&value, b->git->repo, GIT_ATTR_CHECK_FILE_THEN_INDEX, full, "filter") == 0 &&
	       git_attr_value(value) == GIT_ATTR_VALUE_STRING;
}

static int choose_untracked(struct builder *b, const struct change *c, const char *full, const struct place_rules *rules, bool *ret)
{
	bool ignored = rules->ignored;
	int r = ignored ? 0 : is_ignored(b, full, false, &ignored);

	*ret = false;
	if (r < 0)
		return r;
	if (rules->nested)
		notes_add(b->git->notes, "not in the git commit, as it is in a repository of its own", c->path);
	else if (ignored)
		notes_add(b->git->notes, "not in the git commit, as git ignores it", c->path);
	else
		*ret = c->content_changed || c->status == CHANGE_RENAMED || c->status == CHANGE_ADDED;
	return 0;
}

static int choose_added(struct builder *b, const struct change *c)
{
	g_autofree char *full = full_path(b, c->path);
	const git_index_entry *e = entry_at(b, full);
	const struct place_rules *rules;
	struct item *item;
	bool foreign, wanted = true;
	int r = is_foreign(b, c->path, &rules, &foreign);

	if (r == 0 && !foreign && !e)
		r = choose_untracked(b, c, full, rules, &wanted);
	if (r < 0 || foreign || !wanted)
		return r;
	if (S_ISREG(c->after->attr.mode) && has_filter(b, full)) {
		g_ptr_array_add(b->filtered, g_strdup(c->path));
		return 0;
	}
	item = g_new0(struct item, 1);
	item->change = c;
	item->path = g_steal_pointer(&full);
	g_ptr_array_add(b->added, item);
	return 0;
}

static int choose(struct builder *b, const struct change *c)
{
	int r = 0;

	if (c->status == CHANGE_RENAMED)
		r = choose_removed(b, c->from_path, false);
	if (r == 0 && c->after && blob_mode(c->after))
		return choose_added(b, c);
	if (r == 0)
		r = choose_removed(b, c->path, c->after && S_ISDIR(c->after->attr.mode));
	return r;
}

static int choose_all(struct builder *b, GError **error)
{
	GPtrArray *changes = b->git->job->changes;

	rules_above(b);
	for (guint i = 0; i < changes->len; i++) {
		const struct change *c = g_ptr_array_index(changes, i);
		int r = choose(b, c);

		if (r == -EIO && git_error_last())
			return git_failed(error, c->path);
		if (r < 0)
			return change_error(error, r, "can't read", c->path);
	}
	if (b->filtered->len == 0)
		return 0;
	g_ptr_array_add(b->filtered, NULL);
	g_autofree char *list = g_strjoinv(", ", (char **)b->filtered->pdata);

	g_set_error(error, GIT_COMMIT_ERROR, GIT_COMMIT_ERROR_FILTER,
		    "the repository has a filter (such as Git LFS) for these paths, which only git itself can run: %s. Leave them out with "
		    "-- PATH, or commit to the workspace and use git add", list);
	return -EOPNOTSUPP;
}

/* Blobs */

static int blob_from_bytes(struct builder *b, const char *full, struct blob *blob, bool write, git_oid *ret)
{
	git_filter_list *filters = NULL;
	git_buf filtered = { 0 };
	gsize size;
	const char *data = g_bytes_get_data(blob->bytes, &size);
	int r = 0;

	if (S_ISREG(blob->mode))
		r = git_filter_list_load(&filters, b->git->repo, NULL, full, GIT_FILTER_TO_ODB, GIT_FILTER_ALLOW_UNSAFE);
	if (r == 0 && filters)
		r = git_filter_list_apply_to_buffer(&filtered, filters, data ? data : "", size);
	if (r == 0 && filters) {
		data = filtered.ptr;
		size = filtered.size;
	}
	if (r == 0 && write)
		r = git_blob_create_from_buffer(ret, b->git->repo, data ? data : "", size);
	else if (r == 0)
		r = git_odb_hash(ret, data ? data : "", size, GIT_OBJECT_BLOB);
	git_filter_list_free(filters);
	git_buf_dispose(&filtered);
	return r < 0 ? -EIO : 0;
}

/* Too large for memory, so binary, so without ends of lines to convert. */
static int blob_from_file(struct builder *b, struct blob *blob, git_oid *ret)
{
	g_autofree char *buf = g_malloc(CHUNK);
	git_odb_stream *out = NULL;
	git_odb *odb = NULL;
	int r = git_repository_odb(&odb, b->git->repo), read = 0;

	if (r == 0)
		r = git_odb_open_wstream(&out, odb, (git_object_size_t)blob->size, GIT_OBJECT_BLOB);
	for (uint64_t offset = 0; r == 0 && read == 0 && offset < blob->size; offset += CHUNK) {
		size_t size = MIN(CHUNK, blob->size - offset);

		read = blob_read(blob, buf, size, offset);
		if (read == 0)
			r = git_odb_stream_write(out, buf, size);
	}
	if (r == 0 && read == 0)
		r = git_odb_stream_finalize_write(ret, out);
	git_odb_stream_free(out);
	git_odb_free(odb);
	return read < 0 ? read : r < 0 ? -EIO : 0;
}

/*
 * What HEAD has is not what the workspace has: the commit will also hold what its owner changed there and did not commit. Said, not
 * refused: nobody could take the two apart.
 */
static int note_uncommitted(struct builder *b, const struct change *c, const git_index_entry *e, const char *full)
{
	struct blob blob = { 0 };
	git_oid id;
	int r;

	if (!e || !c->before || blob_mode(c->before) == 0 || c->before->attr.size > BLOB_WHOLE_MAX)
		return 0;
	r = blob_open((struct side){ b->git->job->from, c->before }, &blob);
	if (r == 0 && blob.bytes)
		r = blob_from_bytes(b, full, &blob, false, &id);
	if (r == 0 && blob.bytes && !git_oid_equal(&id, &e->id))
		notes_add(b->git->notes, "the git commit also has what the workspace changed since HEAD", c->path);
	blob_clear(&blob);
	return r;
}

static int add_item(struct builder *b, const struct item *item)
{
	const struct change *c = item->change;
	const git_index_entry *now = entry_at(b, item->path);
	git_index_entry e = { .path = item->path };
	struct blob blob = { 0 };
	int r = c->status == CHANGE_RENAMED ? 0 : note_uncommitted(b, c, now, item->path);

	if (r == 0)
		r = blob_open((struct side){ b->git->job->to, c->after }, &blob);
	e.mode = blob.mode;
	if (r == 0)
		r = blob.bytes ? blob_from_bytes(b, item->path, &blob, true, &e.id) : blob_from_file(b, &blob, &e.id);
	blob_clear(&blob);
	if (r < 0 || (now && now->mode == e.mode && git_oid_equal(&now->id, &e.id)))
		return r;
	if (git_index_add(b->git->index, &e) == 0) {
		b->paths++;
		return 0;
	}
	if (git_error_last()->klass != GIT_ERROR_INDEX)
		return -EIO;
	notes_add(b->git->notes, "not in the git commit, as git takes no such name", c->path);
	return 0;
}

static int put_all(struct builder *b, GError **error)
{
	for (guint i = 0; i < b->removed->len; i++) {
		const char *path = g_ptr_array_index(b->removed, i);
		int r = git_index_remove(b->git->index, path, 0);

		if (r < 0 && r != GIT_ENOTFOUND)
			return git_failed(error, path);
		b->paths += r == 0;
	}
	for (guint i = 0; i < b->added->len; i++) {
		const struct item *item = g_ptr_array_index(b->added, i);
		int r;

		git_error_clear();
		r = add_item(b, item);
		if (r == -EIO && git_error_last())
			return git_failed(error, item->path);
		if (r < 0)
			return change_error(error, r, "can't read", item->path);
	}
	return 0;
}

int git_changes_apply(struct git *g, uint64_t *ret_paths, GError **error)
{
	struct builder b = { .git = g };
	int r;

	b.dirs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	b.removed = g_ptr_array_new_with_free_func(g_free);
	b.added = g_ptr_array_new_with_free_func(item_free);
	b.filtered = g_ptr_array_new_with_free_func(g_free);
	git_error_clear();
	r = choose_all(&b, error);
	if (r == 0 && g->job->dry_run)
		b.paths = b.removed->len + b.added->len;
	else if (r == 0)
		r = put_all(&b, error);
	if (r == 0)
		*ret_paths = b.paths;
	g_hash_table_unref(b.dirs);
	g_ptr_array_unref(b.removed);
	g_ptr_array_unref(b.added);
	g_ptr_array_unref(b.filtered);
	return r;
}
