/* SPDX-License-Identifier: MIT */
#include "snapshot/spare.h"

#include <errno.h>
#include <fcntl.h>

struct spare {
	char *commits;
	GHashTable *links; /* struct file_id -> how many; NULL = not looked for yet */
};

struct file_id {
	uint64_t dev, ino;
};

static guint file_id_hash(gconstpointer id)
{
	return g_int64_hash(&((const struct file_id *)id)->ino);
}

static gboolean file_id_equal(gconstpointer a, gconstpointer b)
{
	const struct file_id *x = a, *y = b;

	return x->dev == y->dev && x->ino == y->ino;
}

struct spare *spare_new(const char *store_dir)
{
	struct spare *s = g_new0(struct spare, 1);

	s->commits = g_build_filename(store_dir, "commit", NULL);
	return s;
}

void spare_free(struct spare *s)
{
	if (!s)
		return;
	spare_forget(s);
	g_free(s->commits);
	g_free(s);
}

void spare_forget(struct spare *s)
{
	g_clear_pointer(&s->links, g_hash_table_unref);
}

static void add(struct spare *s, const char *file)
{
	struct fingerprint print;
	struct file_id id;
	gpointer known;

	if (lower_stat_at(AT_FDCWD, file, &print) < 0 || S_ISDIR(print.attr.mode) || print.attr.nlink < 2)
		return;
	id = (struct file_id){ .dev = print.dev, .ino = print.ino };
	known = g_hash_table_lookup(s->links, &id);
	g_hash_table_insert(s->links, g_memdup2(&id, sizeof(id)), GUINT_TO_POINTER(GPOINTER_TO_UINT(known) + 1));
}

/* What can't be read now has no spare names for us: the count is then that of stat(2). */
static void find(struct spare *s)
{
	g_autoptr(GDir) commits = g_dir_open(s->commits, 0, NULL);
	const char *id, *name;

	s->links = g_hash_table_new_full(file_id_hash, file_id_equal, g_free, NULL);
	while (commits && (id = g_dir_read_name(commits))) {
		g_autofree char *path = g_build_filename(s->commits, id, "files", NULL);
		g_autoptr(GDir) files = g_dir_open(path, 0, NULL);

		while (files && (name = g_dir_read_name(files))) {
			g_autofree char *file = g_build_filename(path, name, NULL);

			add(s, file);
		}
	}
}

void spare_leave_out(struct spare *s, struct fingerprint *print)
{
	const struct file_id id = { .dev = print->dev, .ino = print->ino };
	guint spare;

	if (S_ISDIR(print->attr.mode) || print->attr.nlink < 2)
		return;
	if (!s->links)
		find(s);
	spare = GPOINTER_TO_UINT(g_hash_table_lookup(s->links, &id));
	print->attr.nlink = print->attr.nlink > spare ? print->attr.nlink - spare : 1;
}
