/* SPDX-License-Identifier: MIT */
#include "tools/hard_links.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rules/policy.h"

struct walk {
	struct lower *lower;
	const struct policy *policy;
	GHashTable *files; /* "DEV:INO" -> struct hard_link, one of its names may be missing */
	GQueue todo;	   /* struct directory */
	GPtrArray *repositories;
	uint64_t unreadable;
};

struct directory {
	char *path;
	struct policy_match match;
};

static void hard_link_free(gpointer data)
{
	struct hard_link *l = data;

	g_free(l->closed);
	g_free(l->open);
	g_free(l);
}

static void directory_free(struct directory *d)
{
	g_free(d->path);
	g_free(d);
}

static void add_directory(struct walk *w, const char *path, struct policy_match match)
{
	struct directory *d = g_new(struct directory, 1);

	*d = (struct directory){ .path = g_strdup(path), .match = match };
	g_queue_push_tail(&w->todo, d);
}

static void add_file(struct walk *w, const char *path, struct policy_match match, const struct fingerprint *f)
{
	g_autofree char *key = g_strdup_printf("%" G_GINT64_MODIFIER "x:%" G_GINT64_MODIFIER "x", f->dev, f->ino);
	struct hard_link *l = g_hash_table_lookup(w->files, key);
	char **name;

	if (!l) {
		l = g_new0(struct hard_link, 1);
		g_hash_table_insert(w->files, g_steal_pointer(&key), l);
	}
	name = policy_action(w->policy, match) > ACTION_READ ? &l->closed : &l->open;
	if (!*name)
		*name = g_strdup(path);
}

static void look_at(struct walk *w, const struct directory *parent, int fd, const char *name)
{
	g_autofree char *path = *parent->path ? g_build_filename(parent->path, name, NULL) : g_strdup(name);
	struct policy_match match;
	struct fingerprint f;
	bool is_dir;

	if (lower_stat_at(fd, name, &f) < 0)
		return;
	is_dir = S_ISDIR(f.attr.mode);
	match = policy_match_child(w->policy, parent->match, path, is_dir);
	if (g_str_equal(name, ".git") && policy_action(w->policy, match) < ACTION_DENY)
		g_ptr_array_add(w->repositories, g_strdup(parent->path));
	if (is_dir)
		add_directory(w, path, match);
	else if (S_ISREG(f.attr.mode) && f.attr.nlink > 1)
		add_file(w, path, match, &f);
}

static void walk_directory(struct walk *w, const struct directory *d)
{
	g_autoptr(GPtrArray) names = NULL;
	int fd = lower_open_file(w->lower, d->path, O_RDONLY | O_DIRECTORY);

	if (fd < 0 || lower_list(w->lower, d->path, &names) < 0)
		w->unreadable++;
	for (unsigned i = 0; names && i < names->len; i++)
		look_at(w, d, fd, ((const struct lower_name *)names->pdata[i])->name);
	if (fd >= 0)
		close(fd);
}

static void take_pairs(GHashTable *files, GPtrArray *ret)
{
	GHashTableIter iter;
	gpointer key, value;

	g_hash_table_iter_init(&iter, files);
	while (g_hash_table_iter_next(&iter, &key, &value)) {
		const struct hard_link *l = value;

		if (!l->closed || !l->open)
			continue;
		g_hash_table_iter_steal(&iter);
		g_ptr_array_add(ret, value);
		g_free(key);
	}
}

void hard_links_find(struct lower *l, const struct policy *p, struct hard_links *ret)
{
	struct walk w = {
		.lower = l,
		.policy = p,
		.files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, hard_link_free),
		.todo = G_QUEUE_INIT,
		.repositories = g_ptr_array_new_with_free_func(g_free),
	};
	struct directory *d;

	add_directory(&w, "", policy_match_child(p, POLICY_MATCH_NONE, "", true));
	while ((d = g_queue_pop_tail(&w.todo))) {
		walk_directory(&w, d);
		directory_free(d);
	}
	ret->found = g_ptr_array_new_with_free_func(hard_link_free);
	ret->unreadable = w.unreadable;
	ret->repositories = w.repositories;
	take_pairs(w.files, ret->found);
	g_hash_table_unref(w.files);
}

void hard_links_clear(struct hard_links *h)
{
	g_clear_pointer(&h->found, g_ptr_array_unref);
	g_clear_pointer(&h->repositories, g_ptr_array_unref);
}
