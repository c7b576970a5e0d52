/* SPDX-License-Identifier: MIT */

/*
 * diff_patch() - the change list in git's patch format. The headers are written here, since libgit2 writes them only
 * for objects of a repository; what comes below them is from lines.c and binary_patch.c.
 */

#include "snapshot/diff.h"

#include <string.h>

#include "snapshot/binary_patch.h"
#include "snapshot/blob.h"
#include "snapshot/lines.h"

#define FLUSH_SIZE (64 * 1024)

struct patch {
	struct tree *from;
	struct tree *to;
	diff_write write;
	void *user;
	GString *buf;
};

static void patch_flush(struct patch *p)
{
	if (p->buf->len)
		p->write(p->buf->str, p->buf->len, p->user);
	g_string_truncate(p->buf, 0);
}

static void patch_put(const char *data, size_t size, void *user)
{
	struct patch *p = user;

	g_string_append_len(p->buf, data, size);
	if (p->buf->len >= FLUSH_SIZE)
		patch_flush(p);
}

static bool ends_component(const char *p)
{
	p += strspn(p, ". ");
	return !*p || *p == '/' || *p == '\\' || *p == ':';
}

/*
 * Git refuses every patch that names .git, in any case and in the spellings that some file system takes for it, and
 * .gitmodules as a symlink (read-cache.c, verify_path()). One such part would make the whole patch useless.
 */
static bool git_takes_path(const char *path, const struct entry *e)
{
	for (const char *p = path; p; p = strpbrk(p, "/\\")) {
		p += *p == '/' || *p == '\\';
		if (g_ascii_strncasecmp(p, ".git", 4) == 0 && ends_component(p + 4))
			return false;
		if (g_ascii_strncasecmp(p, "git~1", 5) == 0 && ends_component(p + 5))
			return false;
		if (S_ISLNK(e->attr.mode) && g_ascii_strncasecmp(p, ".gitmodules", 11) == 0 && ends_component(p + 11))
			return false;
		if (S_ISLNK(e->attr.mode) && g_ascii_strncasecmp(p, "gitmod~", 7) == 0)
			return false;
	}
	return true;
}

/* One part of a patch: a side that git does not know, or that is left out, is absent. */
struct part {
	const char *old_path;
	const char *new_path;
	const struct entry *before;
	const struct entry *after;
	bool content_changed;
	int similarity; /* -1 = no rename */
};

static void put_line(struct patch *p, const char *key, const char *path)
{
	g_autofree char *quoted = diff_quote_path(path);

	g_string_append_printf(p->buf, "%s %s\n", key, quoted);
}

/* A tab ends a name with spaces, or what follows the first one would be read as a date. */
static void put_side(struct patch *p, const char *key, const char *prefix, const char *path, bool present)
{
	g_autofree char *name = g_strconcat(prefix, path, NULL);
	g_autofree char *quoted = diff_quote_path(name);

	g_string_append_printf(p->buf, "%s %s%s\n", key, present ? quoted : "/dev/null",
			       present && strchr(path, ' ') ? "\t" : "");
}

/*
 * A name in the first line. Git splits that line at a space where both halves look alike, but gives up at a name like
 * "a /b" (which it prints itself); quotes, needless as they are, get it through.
 */
static char *header_name(const char *prefix, const char *path)
{
	g_autofree char *name = g_strconcat(prefix, path, NULL);
	g_autofree char *quoted = diff_quote_path(name);

	return *quoted != '"' && strstr(path, " /") ? g_strdup_printf("\"%s\"", quoted) : g_steal_pointer(&quoted);
}

static void put_header(struct patch *p, const struct part *part)
{
	uint32_t before = blob_mode(part->before), after = blob_mode(part->after);
	g_autofree char *old_name = header_name("a/", part->old_path), *new_name = header_name("b/", part->new_path);

	g_string_append_printf(p->buf, "diff --git %s %s\n", old_name, new_name);
	if (!before)
		g_string_append_printf(p->buf, "new file mode %06o\n", after);
	else if (!after)
		g_string_append_printf(p->buf, "deleted file mode %06o\n", before);
	else if (before != after)
		g_string_append_printf(p->buf, "old mode %06o\nnew mode %06o\n", before, after);
	if (part->similarity < 0)
		return;
	g_string_append_printf(p->buf, "similarity index %d%%\n", part->similarity);
	put_line(p, "rename from", part->old_path);
	put_line(p, "rename to", part->new_path);
}

static int put_content(struct patch *p, const struct part *part, const struct blob *a, const struct blob *b,
		       GError **error)
{
	if (!blobs_are_text(a, b))
		return binary_patch(a, b, patch_put, p, error);
	if (a->size == 0 && b->size == 0)
		return 0;
	put_side(p, "---", "a/", part->old_path, a->mode);
	put_side(p, "+++", "b/", part->new_path, b->mode);
	return lines_hunks(a->bytes, b->bytes, patch_put, p, error);
}

static int put_changed_content(struct patch *p, const struct part *part, bool header, GError **error)
{
	struct blob a = { 0 }, b = { 0 };
	char old_id[BLOB_ID_SIZE], new_id[BLOB_ID_SIZE];
	int r = blob_open((struct side){ p->from, part->before }, &a);

	if (r == 0)
		r = blob_open((struct side){ p->to, part->after }, &b);
	if (r == 0)
		r = blob_id(&a, old_id);
	if (r == 0)
		r = blob_id(&b, new_id);
	if (r < 0) {
		change_error(error, r, "can't read", part->new_path);
	} else if (strcmp(old_id, new_id) != 0) {
		/*
		 * Without anything to say git would call the part garbage: a file may be equal again by the time it is
		 * read.
		 */
		if (!header)
			put_header(p, part);
		g_string_append_printf(p->buf, "index %s..%s", old_id, new_id);
		if (a.mode == b.mode)
			g_string_append_printf(p->buf, " %06o", a.mode);
		g_string_append_c(p->buf, '\n');
		r = put_content(p, part, &a, &b, error);
		if (r < 0)
			g_prefix_error(error, "%s: ", part->new_path);
	}
	blob_clear(&a);
	blob_clear(&b);
	return r;
}

static int put_part(struct patch *p, const struct part *part, GError **error)
{
	bool header = blob_mode(part->before) != blob_mode(part->after) || part->similarity >= 0;

	if (header)
		put_header(p, part);
	return part->content_changed ? put_changed_content(p, part, header, error) : 0;
}

static void put_note(struct patch *p, const struct change *c, const char *path, const char *why)
{
	g_autofree char *name = diff_quote_path(path);
	g_autofree char *words = why ? g_strdup(why) : diff_describe(c);

	g_string_append_printf(p->buf, "# sbxfs: %c %s%s%s\n", c->status, name, words ? ": " : "", words ? words : "");
}

/* What came of an object of one type that git's header lines can tell: whether it is executable. */
static bool git_tells_all(const struct change *c)
{
	mode_t a = c->before->attr.mode, b = c->after->attr.mode;

	if (c->xattrs_changed || c->before->attr.uid != c->after->attr.uid || c->before->attr.gid != c->after->attr.gid)
		return false;
	return S_ISLNK(b) || (a & 07777) == (b & 07777) || (blob_mode(c->before) != blob_mode(c->after) && (a & 07000) == (b & 07000));
}

static int patch_change(struct patch *p, const struct change *c, GError **error)
{
	static const char refused[] = "not in this patch, git refuses the path";
	const char *old_path = c->from_path ? c->from_path : c->path;
	bool takes_old = c->before && git_takes_path(old_path, c->before),
	     takes_new = c->after && git_takes_path(c->path, c->after);
	const struct entry *before = takes_old ? c->before : NULL, *after = takes_new ? c->after : NULL;
	uint32_t old_mode = blob_mode(before), new_mode = blob_mode(after);
	struct part part = { .old_path = old_path,
			     .new_path = c->path,
			     .before = before,
			     .after = after,
			     .content_changed = c->content_changed,
			     .similarity = -1 };
	int r = 0;

	if (c->before && !takes_old && !S_ISDIR(c->before->attr.mode))
		put_note(p, c, old_path, refused);
	else if (c->after && !takes_new && !S_ISDIR(c->after->attr.mode))
		put_note(p, c, c->path, refused);
	if (!old_mode && !new_mode) {
		bool directory = S_ISDIR((c->after ? c->after : c->before)->attr.mode);
		bool plain = c->status == CHANGE_ADDED || c->status == CHANGE_DELETED;

		if ((takes_old || takes_new) && !(directory && plain))
			put_note(p, c, c->path, NULL);
		return 0;
	}
	if (!old_mode)
		part.old_path = part.new_path;
	if (!new_mode)
		part.new_path = part.old_path;
	if (c->status == CHANGE_RENAMED && old_mode && new_mode)
		part.similarity = c->similarity;
	if (old_mode && new_mode && (old_mode & S_IFMT) == (new_mode & S_IFMT)) {
		if (!git_tells_all(c))
			put_note(p, c, c->path, NULL);
		return put_part(p, &part, error);
	}
	/* Another type, or one side only: whole contents. */
	part.content_changed = true;
	part.after = NULL;
	if (old_mode)
		r = put_part(p, &part, error);
	part.after = after;
	part.before = NULL;
	if (r == 0 && new_mode)
		r = put_part(p, &part, error);
	return r;
}

int diff_patch(GPtrArray *changes, struct tree *from, struct tree *to, diff_write write, void *user, GError **error)
{
	struct patch p = {
		.from = from, .to = to, .write = write, .user = user, .buf = g_string_sized_new(2 * FLUSH_SIZE)
	};
	int r = 0;

	for (guint i = 0; r == 0 && i < changes->len; i++) {
		r = patch_change(&p, g_ptr_array_index(changes, i), error);
		if (p.buf->len >= FLUSH_SIZE)
			patch_flush(&p);
	}
	patch_flush(&p);
	g_string_free(p.buf, TRUE);
	return r;
}
