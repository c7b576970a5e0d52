/* SPDX-License-Identifier: MIT */
#include "snapshot/diff.h"

#include <string.h>

#include "snapshot/blob.h"
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
	if (c->status == CHANGE_XATTR)
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

int diff_count_lines(const struct change *c, struct tree *from, struct tree *to, uint64_t *ret_added,
		     uint64_t *ret_removed, bool *ret_binary, GError **error)
{
	struct blob a = { 0 }, b = { 0 };
	uint64_t added = 0, removed = 0;
	bool text;
	int r = 0;

	if (c->content_changed)
		r = blob_open((struct side){ from, c->before }, &a);
	if (r == 0 && c->content_changed)
		r = blob_open((struct side){ to, c->after }, &b);
	text = r == 0 && blobs_are_text(&a, &b);
	if (r < 0) {
		change_error(error, r, "can't read", c->path);
	} else if (text && a.mode && b.mode && c->status != CHANGE_TYPE) {
		r = lines_count(a.bytes, b.bytes, &added, &removed, error);
	} else if (text) {
		added = count_all(&b);
		removed = count_all(&a);
	}
	if (r == 0) {
		*ret_added = added;
		*ret_removed = removed;
		*ret_binary = !text;
	}
	blob_clear(&a);
	blob_clear(&b);
	return r;
}
