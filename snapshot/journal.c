/* SPDX-License-Identifier: MIT */
#include "snapshot/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define JOURNAL_VERSION 3
#define JOURNAL_PREFIX "sbxfs-journal "
#define PRINT_FORMAT "(ttxuuuuttxxx)"
#define STEP_FORMAT "(yub@ay@ay@" PRINT_FORMAT "@" PRINT_FORMAT "u@" PRINT_FORMAT "@ay@ay)"
#define STEPS_TYPE "a(yubayay" PRINT_FORMAT PRINT_FORMAT "u" PRINT_FORMAT "ayay)"
#define JOURNAL_TYPE "(xx" STEPS_TYPE "aayaay)"
#define JOURNAL_TYPE_1 "(xx" STEPS_TYPE "aay)"

void (*boundary_hook)(const char *what);

static const char *const state_names[] = {
	[JOURNAL_APPLYING] = "applying",       [JOURNAL_APPLIED] = "applied",       [JOURNAL_FINISHED] = "finished",
	[JOURNAL_BACKING_OUT] = "backing-out", [JOURNAL_BACKED_OUT] = "backed-out", [JOURNAL_UNDOING] = "undoing",
	[JOURNAL_UNDONE] = "undone",
};

/* Values */

struct step *step_new(enum step_kind kind, const char *path)
{
	struct step *s = g_new0(struct step, 1);

	s->kind = kind;
	s->path = g_strdup(path);
	return s;
}

void step_free(struct step *s)
{
	if (!s)
		return;
	g_free(s->path);
	g_free(s->from);
	g_clear_pointer(&s->xattrs, g_bytes_unref);
	g_clear_pointer(&s->old_xattrs, g_bytes_unref);
	g_free(s);
}

struct journal *journal_new(void)
{
	struct journal *j = g_new0(struct journal, 1);

	j->steps = g_ptr_array_new_with_free_func((GDestroyNotify)step_free);
	j->paths = g_ptr_array_new_with_free_func(g_free);
	j->partial = g_ptr_array_new_with_free_func(g_free);
	return j;
}

void journal_free(struct journal *j)
{
	if (!j)
		return;
	g_free(j->id);
	g_ptr_array_unref(j->steps);
	g_ptr_array_unref(j->paths);
	g_ptr_array_unref(j->partial);
	g_free(j);
}

/* Files */

int fsync_dir(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = fsync(fd) < 0 ? -errno : 0;
	close(fd);
	return r;
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= n;
	}
	return 0;
}

/* Temporary, sync, rename, sync the directory: the name has the whole of it or what it had before. */
static int put_file(int dirfd, const char *name, const char *data, size_t size)
{
	g_autofree char *temporary = g_strconcat(name, ".tmp", NULL);
	int fd = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = write_all(fd, data, size);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	close(fd);
	boundary("temporary written");
	if (r == 0 && renameat(dirfd, temporary, dirfd, name) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(dirfd, temporary, 0);
		return r;
	}
	boundary("temporary renamed");
	return fsync_dir(dirfd);
}

static int get_file(int dirfd, const char *name, GByteArray **ret)
{
	g_autoptr(GByteArray) all = g_byte_array_new();
	guint8 buf[65536];
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR))
		g_byte_array_append(all, buf, MAX(n, 0));
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return n;
	*ret = g_steal_pointer(&all);
	return 0;
}

/* Writing the format */

static GVariant *variant_from_print(const struct fingerprint *p)
{
	const struct attr *a = &p->attr;

	return g_variant_new(PRINT_FORMAT, p->dev, p->ino, p->btime, a->mode, a->uid, a->gid, a->nlink, a->rdev, a->size, a->atime,
			     a->mtime, a->ctime);
}

static GVariant *variant_from_bytes(GBytes *bytes)
{
	gsize size = 0;
	const void *data = bytes ? g_bytes_get_data(bytes, &size) : NULL;

	return g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, data, size, 1);
}

static GVariant *variant_from_step(const struct step *s)
{
	struct fingerprint attr = { .attr = s->attr };

	return g_variant_new(STEP_FORMAT, (guchar)s->kind, s->number, s->copied, g_variant_new_bytestring(s->path),
			     g_variant_new_bytestring(s->from ? s->from : ""), variant_from_print(&s->before),
			     variant_from_print(&s->staged), s->set, variant_from_print(&attr), variant_from_bytes(s->xattrs),
			     variant_from_bytes(s->old_xattrs));
}

static GVariant *variant_from_paths(const GPtrArray *paths)
{
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_BYTESTRING_ARRAY);
	for (guint i = 0; i < paths->len; i++)
		g_variant_builder_add_value(&b, g_variant_new_bytestring(g_ptr_array_index(paths, i)));
	return g_variant_builder_end(&b);
}

static GVariant *variant_from_journal(const struct journal *j)
{
	GVariantBuilder steps;
	GVariant *v;

	g_variant_builder_init(&steps, G_VARIANT_TYPE(STEPS_TYPE));
	for (guint i = 0; i < j->steps->len; i++)
		g_variant_builder_add_value(&steps, variant_from_step(g_ptr_array_index(j->steps, i)));
	v = g_variant_ref_sink(g_variant_new("(xx" STEPS_TYPE "@aay@aay)", j->epoch, j->time, &steps, variant_from_paths(j->paths),
					     variant_from_paths(j->partial)));
	if (G_BYTE_ORDER == G_BIG_ENDIAN) {
		GVariant *swapped = g_variant_byteswap(v);

		g_variant_unref(v);
		v = swapped;
	}
	return v;
}

int journal_write(int dirfd, const struct journal *j)
{
	g_autoptr(GVariant) v = variant_from_journal(j);
	g_autoptr(GBytes) body = g_variant_get_data_as_bytes(v);
	g_autofree char *sum = g_compute_checksum_for_bytes(G_CHECKSUM_SHA256, body);
	g_autoptr(GString) file = g_string_new(NULL);

	g_string_printf(file, JOURNAL_PREFIX "%d\n%s\n", JOURNAL_VERSION, sum);
	g_string_append_len(file, g_bytes_get_data(body, NULL), g_bytes_get_size(body));
	return put_file(dirfd, "journal", file->str, file->len);
}

/* Reading the format */

static void print_from_variant(GVariant *v, struct fingerprint *p)
{
	struct attr *a = &p->attr;

	g_variant_get(v, PRINT_FORMAT, &p->dev, &p->ino, &p->btime, &a->mode, &a->uid, &a->gid, &a->nlink, &a->rdev, &a->size,
		      &a->atime, &a->mtime, &a->ctime);
}

static GBytes *bytes_from_variant(GVariant *v)
{
	gsize size;
	const void *data = g_variant_get_fixed_array(v, &size, 1);

	return size > 0 ? g_bytes_new(data, size) : NULL;
}

static struct step *step_from_variant(GVariant *v)
{
	g_autoptr(GVariant) path = NULL, from = NULL, before = NULL, staged = NULL, attr = NULL, xattrs = NULL, old = NULL;
	struct fingerprint print = { 0 };
	gboolean copied;
	guchar kind;
	guint32 number, set;
	struct step *s;

	g_variant_get(v, STEP_FORMAT, &kind, &number, &copied, &path, &from, &before, &staged, &set, &attr, &xattrs, &old);
	s = step_new(kind, g_variant_get_bytestring(path));
	s->number = number;
	s->copied = copied;
	s->set = set;
	if (*g_variant_get_bytestring(from))
		s->from = g_strdup(g_variant_get_bytestring(from));
	print_from_variant(before, &s->before);
	print_from_variant(staged, &s->staged);
	print_from_variant(attr, &print);
	s->attr = print.attr;
	s->xattrs = bytes_from_variant(xattrs);
	s->old_xattrs = bytes_from_variant(old);
	return s;
}

static void paths_from_variant(GVariant *v, gsize child, GPtrArray *paths)
{
	g_autoptr(GVariant) array = g_variant_get_child_value(v, child);
	gsize n = g_variant_n_children(array);

	for (gsize i = 0; i < n; i++) {
		g_autoptr(GVariant) item = g_variant_get_child_value(array, i);

		g_ptr_array_add(paths, g_strdup(g_variant_get_bytestring(item)));
	}
}

static struct journal *journal_from_variant(GVariant *v)
{
	g_autoptr(GVariantIter) steps = NULL;
	struct journal *j = journal_new();
	GVariant *item;

	g_variant_get_child(v, 0, "x", &j->epoch);
	g_variant_get_child(v, 1, "x", &j->time);
	g_variant_get_child(v, 2, STEPS_TYPE, &steps);
	while ((item = g_variant_iter_next_value(steps))) {
		g_ptr_array_add(j->steps, step_from_variant(item));
		g_variant_unref(item);
	}
	paths_from_variant(v, 3, j->paths);
	if (g_variant_n_children(v) > 4)
		paths_from_variant(v, 4, j->partial);
	return j;
}

/* The two lines before the variant; returns where it begins. */
static int parse_head(const GByteArray *file, guint64 *ret_version, char sum[65], size_t *ret_offset)
{
	const size_t prefix = strlen(JOURNAL_PREFIX);
	const char *text = (const char *)file->data;
	const char *line = memchr(text, '\n', MIN(file->len, 64));

	if (!line || file->len < prefix || memcmp(text, JOURNAL_PREFIX, prefix) != 0)
		return -EUCLEAN;
	*ret_version = g_ascii_strtoull(text + prefix, NULL, 10);
	if (*ret_version > JOURNAL_VERSION)
		return -EPROTO;
	line++;
	if (file->len - (line - text) < 65 || line[64] != '\n')
		return -EUCLEAN;
	memcpy(sum, line, 64);
	sum[64] = '\0';
	*ret_offset = line - text + 65;
	return 0;
}

int journal_read(int dirfd, struct journal **ret)
{
	g_autoptr(GByteArray) file = NULL;
	g_autoptr(GBytes) body = NULL;
	g_autoptr(GVariant) v = NULL;
	g_autofree char *found = NULL;
	guint64 version = 0;
	char sum[65] = "";
	size_t offset = 0;
	int r = get_file(dirfd, "journal", &file);

	if (r == 0)
		r = parse_head(file, &version, sum, &offset);
	if (r < 0)
		return r;
	body = g_bytes_new(file->data + offset, file->len - offset);
	found = g_compute_checksum_for_bytes(G_CHECKSUM_SHA256, body);
	if (strcmp(sum, found) != 0)
		return -EUCLEAN;
	v = g_variant_ref_sink(g_variant_new_from_bytes(G_VARIANT_TYPE(version == 1 ? JOURNAL_TYPE_1 : JOURNAL_TYPE), body, FALSE));
	if (!g_variant_is_normal_form(v))
		return -EUCLEAN;
	if (G_BYTE_ORDER == G_BIG_ENDIAN) {
		GVariant *swapped = g_variant_byteswap(v);

		g_variant_unref(v);
		v = swapped;
	}
	*ret = journal_from_variant(v);
	return 0;
}

/* State */

int journal_set_state(int dirfd, enum journal_state state)
{
	g_autofree char *word = g_strconcat(state_names[state], "\n", NULL);

	return put_file(dirfd, "state", word, strlen(word));
}

int journal_get_state(int dirfd, enum journal_state *ret)
{
	g_autoptr(GByteArray) word = NULL;
	int r;

	if (faccessat(dirfd, "journal", F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
		*ret = JOURNAL_NONE;
		return errno == ENOENT ? 0 : -errno;
	}
	r = get_file(dirfd, "state", &word);
	if (r == -ENOENT) {
		*ret = JOURNAL_APPLYING;
		return 0;
	}
	if (r < 0)
		return r;
	for (enum journal_state s = JOURNAL_APPLYING; s <= JOURNAL_UNDONE; s++) {
		size_t n = strlen(state_names[s]);

		if (word->len == n + 1 && memcmp(word->data, state_names[s], n) == 0) {
			*ret = s;
			return 0;
		}
	}
	return -EUCLEAN;
}

/* The directory of commits */

int commits_open(struct store *s, int *ret_fd)
{
	g_autofree char *path = g_build_filename(store_dir(s), "commit", NULL);
	int fd;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int r = errno == EWOULDBLOCK ? -EBUSY : -errno;

		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

static gint number_order(gconstpointer a, gconstpointer b)
{
	const guint64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int commits_list(int commits, GArray **ret)
{
	g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(guint64));
	int fd = openat(commits, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *d;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while ((d = readdir(dir))) {
		guint64 n;

		if (g_ascii_string_to_unsigned(d->d_name, 10, 1, G_MAXINT64, &n, NULL))
			g_array_append_val(numbers, n);
	}
	closedir(dir);
	g_array_sort(numbers, number_order);
	*ret = g_steal_pointer(&numbers);
	return 0;
}

int commit_new(int commits, char **ret_id, int *ret_fd)
{
	g_autoptr(GArray) numbers = NULL;
	g_autofree char *id = NULL;
	int r = commits_list(commits, &numbers), fd;

	if (r < 0)
		return r;
	id = g_strdup_printf("%" G_GUINT64_FORMAT, numbers->len ? g_array_index(numbers, guint64, numbers->len - 1) + 1 : 1);
	if (mkdirat(commits, id, 0700) < 0)
		return -errno;
	fd = openat(commits, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (mkdirat(fd, "files", 0700) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	*ret_id = g_steal_pointer(&id);
	*ret_fd = fd;
	return 0;
}

int commit_open(int commits, const char *id, int *ret_fd)
{
	guint64 n;
	int fd;

	if (!g_ascii_string_to_unsigned(id, 10, 1, G_MAXINT64, &n, NULL))
		return -ENOENT;
	fd = openat(commits, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int remove_tree(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *d;
	DIR *dir;
	int r = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (r == 0 && (d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, d->d_name, 0) < 0)
			r = errno == EISDIR ? remove_tree(fd, d->d_name) : -errno;
	}
	closedir(dir);
	if (r == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

int commit_drop_files(int dirfd)
{
	return remove_tree(dirfd, "files");
}

int commit_drop(int commits, const char *id)
{
	g_autofree char *journal = g_build_filename(id, "journal", NULL);

	/* First, or a half-removed commit would look like one to go on with. */
	if (unlinkat(commits, journal, 0) < 0 && errno != ENOENT)
		return -errno;
	return remove_tree(commits, id);
}
