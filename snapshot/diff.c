/* SPDX-License-Identifier: MIT */
#include "snapshot/diff.h"

#include <string.h>

#include "snapshot/lines.h"

static void quote_char(GString *s, unsigned char c)
{
	static const char plain[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
	const char *found = c ? strchr(plain, c) : NULL;

	if (found)
		g_string_append_printf(s, "\\%c", letters[found - plain]);
	else if (c < 0x20 || c >= 0x7f)
		g_string_append_printf(s, "\\%03o", c);
	else
		g_string_append_c(s, c);
}

char *diff_quote_path(const char *path)
{
	GString *s = g_string_new("\"");

	for (const char *p = path; *p; p++)
		quote_char(s, *p);
	if (s->len == strlen(path) + 1) {
		g_string_free(s, TRUE);
		return g_strdup(*path ? path : ".");
	}
	return g_string_free(g_string_append_c(s, '"'), FALSE);
}

/* Names */

static void append_path(GString *s, const char *path, bool nul)
{
	g_autofree char *quoted = nul ? g_strdup(*path ? path : ".") : diff_quote_path(path);

	g_string_append(s, quoted);
}

int diff_name_status(GPtrArray *changes, bool nul, diff_write write, void *user, GError **error)
{
	g_autoptr(GString) s = g_string_new(NULL);

	(void)error;
	for (guint i = 0; i < changes->len; i++) {
		const struct change *c = g_ptr_array_index(changes, i);

		g_string_truncate(s, 0);
		g_string_append_c(s, c->status);
		if (c->status == CHANGE_RENAMED) {
			g_string_append_printf(s, "%03d%c", c->similarity, nul ? '\0' : '\t');
			append_path(s, c->from_path, nul);
		}
		g_string_append_c(s, nul ? '\0' : '\t');
		append_path(s, c->path, nul);
		g_string_append_c(s, nul ? '\0' : '\n');
		write(s->str, s->len, user);
	}
	return 0;
}

/* Words */

static const char *type_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFBLK:
		return "block device";
	default:
		return "character device";
	}
}

char *diff_describe(const struct change *c)
{
	const struct entry *a = c->before, *b = c->after, *one = b ? b : a;
	GString *s = g_string_new(NULL);

	if (c->status == CHANGE_TYPE)
		g_string_append_printf(s, ", %s -> %s", type_name(a->attr.mode), type_name(b->attr.mode));
	else if (!S_ISREG(one->attr.mode) && !S_ISLNK(one->attr.mode))
		g_string_append_printf(s, ", %s", type_name(one->attr.mode));
	if (a && b && !S_ISLNK(b->attr.mode) && c->status != CHANGE_TYPE &&
	    (a->attr.mode & 07777) != (b->attr.mode & 07777))
		g_string_append_printf(s, ", mode %04o -> %04o", a->attr.mode & 07777, b->attr.mode & 07777);
	if (a && b && (a->attr.uid != b->attr.uid || a->attr.gid != b->attr.gid))
		g_string_append_printf(s, ", owner %u:%u -> %u:%u", a->attr.uid, a->attr.gid, b->attr.uid, b->attr.gid);
	if (c->xattrs_changed)
		g_string_append(s, ", xattrs");
	if (!s->len) {
		g_string_free(s, TRUE);
		return NULL;
	}
	g_string_erase(s, 0, strlen(", "));
	return g_string_free(s, FALSE);
}

/* Lines */

static uint64_t count_all(const struct blob *b)
{
	const char *data = b->bytes ? g_bytes_get_data(b->bytes, NULL) : NULL, *end = data + b->size;
	uint64_t lines = 0;

	while (data && data < end) {
		const char *next = memchr(data, '\n', end - data);

		lines++;
		data = next ? next + 1 : end;
	}
	return lines;
}

int diff_content_open(const struct change *c, struct tree *from, struct tree *to, struct diff_content *ret, GError **error)
{
	int r = 0;

	*ret = (struct diff_content){ 0 };
	if (c->content_changed)
		r = blob_open((struct side){ from, c->before }, &ret->before);
	if (r == 0 && c->content_changed)
		r = blob_open((struct side){ to, c->after }, &ret->after);
	if (r < 0)
		return change_error(error, r, "can't read", c->path);
	ret->text = blobs_are_text(&ret->before, &ret->after);
	ret->apart = !ret->before.mode || !ret->after.mode || c->status == CHANGE_TYPE;
	return 0;
}

void diff_content_clear(struct diff_content *content)
{
	blob_clear(&content->before);
	blob_clear(&content->after);
}

int diff_content_lines(const struct diff_content *content, const struct lines_visitor *visitor, void *user, GError **error)
{
	int r = 0;

	if (!content->apart)
		return lines_each(content->before.bytes, content->after.bytes, visitor, user, error);
	if (content->before.mode)
		r = lines_each(content->before.bytes, NULL, visitor, user, error);
	if (r == 0 && content->after.mode)
		r = lines_each(NULL, content->after.bytes, visitor, user, error);
	return r;
}

int diff_count_lines(const struct change *c, struct tree *from, struct tree *to, uint64_t *ret_added,
		     uint64_t *ret_removed, bool *ret_binary, GError **error)
{
	struct diff_content content;
	uint64_t added = 0, removed = 0;
	int r = diff_content_open(c, from, to, &content, error);

	if (r == 0 && content.text && !content.apart) {
		r = lines_count(content.before.bytes, content.after.bytes, &added, &removed, error);
	} else if (r == 0 && content.text) {
		added = count_all(&content.after);
		removed = count_all(&content.before);
	}
	if (r == 0) {
		*ret_added = added;
		*ret_removed = removed;
		*ret_binary = !content.text;
	}
	diff_content_clear(&content);
	return r;
}
