/* SPDX-License-Identifier: MIT */
/*
 * overlay_rollback - making a past state the present one, under a live view
 *
 * A step forward: the rows of the past are inserted again as new versions, so what is left stays reachable through the snapshot that was taken
 * before. It costs what changed since. Memory then follows the store, and the kernel forgets what it cached.
 */
#include <errno.h>

#include "fs/overlay_resync.h"
#include "snapshot/restoring.h"

static int restore_rows(struct overlay *o, int64_t epoch, const struct changed_rows *c)
{
	int r = 0;

	for (guint i = 0; r == 0 && i < c->nodes->len; i++)
		r = store_node_restore(o->store, epoch, g_array_index(c->nodes, uint64_t, i));
	for (guint i = 0; r == 0 && i < c->names->len; i++) {
		const struct changed_name *n = &g_array_index(c->names, struct changed_name, i);

		r = store_name_restore(o->store, epoch, n->parent, n->name);
	}
	return r;
}

/*
 * Keeping scratch
 *
 * The rows of scratch paths, then and now, and of the directories above them now.
 */

struct keeping {
	struct overlay *overlay;
	GHashTable *names; /* "parent/name" */
	GHashTable *nodes; /* ino */
};

static char *name_key(uint64_t parent, const char *name)
{
	return g_strdup_printf("%" G_GUINT64_FORMAT "/%s", parent, name);
}

struct kept_child {
	uint64_t ino;
	char *name;
	bool is_dir;
};

static void kept_child_clear(gpointer data)
{
	g_free(((struct kept_child *)data)->name);
}

static int collect_child(const struct name_row *name, const struct node_row *node, void *user)
{
	struct kept_child c = { .ino = name->ino, .name = g_strdup(name->name), .is_dir = S_ISDIR(node->attr.mode) };

	g_array_append_val((GArray *)user, c);
	return 0;
}

static void keep_row(struct keeping *k, uint64_t parent, const struct kept_child *c)
{
	g_hash_table_add(k->names, name_key(parent, c->name));
	if (c->ino)
		g_hash_table_add(k->nodes, g_memdup2(&c->ino, sizeof(c->ino)));
}

/* 1 when something below @dir is scratch, 0 when not, or -errno. */
static int keep_below(struct keeping *k, int64_t epoch, uint64_t dir, const char *path, struct policy_match match)
{
	g_autoptr(GArray) children = g_array_new(FALSE, FALSE, sizeof(struct kept_child));
	int r, found = 0;

	g_array_set_clear_func(children, kept_child_clear);
	r = store_names(k->overlay->store, epoch, dir, collect_child, children);
	for (guint i = 0; r >= 0 && i < children->len; i++) {
		const struct kept_child *c = &g_array_index(children, struct kept_child, i);
		g_autofree char *child = path_join(path, c->name);
		struct policy_match m = policy_match_child(k->overlay->policy, match, child, c->is_dir);
		bool scratch = policy_action(k->overlay->policy, m) == ACTION_SCRATCH;

		r = c->is_dir ? keep_below(k, epoch, c->ino, child, m) : 0;
		if (r < 0 || !(scratch || r > 0))
			continue;
		found = 1;
		if (scratch || epoch == EPOCH_LIVE)
			keep_row(k, dir, c);
	}
	return r < 0 ? r : found;
}

static int keep_scratch(struct overlay *o, int64_t epoch, struct changed_rows *c)
{
	struct policy_match root = policy_match_path(o->policy, "", true);
	struct keeping k = { .overlay = o };
	int r;

	if (!policy_has_action(o->policy, ACTION_SCRATCH))
		return 0;
	k.names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	k.nodes = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	r = keep_below(&k, EPOCH_LIVE, ROOT_INO, "", root);
	if (r >= 0)
		r = keep_below(&k, epoch, ROOT_INO, "", root);
	for (guint i = c->names->len; r >= 0 && i-- > 0;) {
		const struct changed_name *n = &g_array_index(c->names, struct changed_name, i);
		g_autofree char *key = name_key(n->parent, n->name);

		if (g_hash_table_contains(k.names, key))
			g_array_remove_index_fast(c->names, i);
	}
	for (guint i = c->nodes->len; r >= 0 && i-- > 0;)
		if (g_hash_table_contains(k.nodes, &g_array_index(c->nodes, uint64_t, i)))
			g_array_remove_index_fast(c->nodes, i);
	g_hash_table_unref(k.names);
	g_hash_table_unref(k.nodes);
	return MIN(r, 0);
}

/* Rolling back some paths */

static int select_paths(struct overlay *o, int64_t epoch, const char *const *paths, struct changed_rows *rows)
{
	g_autoptr(restoring_t) restoring = NULL;
	int r = restoring_new(o->store, EPOCH_LIVE, epoch, paths, &restoring);

	if (r == 0)
		restoring_each(restoring, changed_rows_add_name, changed_rows_add_node, rows);
	return r;
}

static int count_dir(const struct name_row *name, const struct node_row *node, void *user)
{
	(void)name;
	if (node->ino && S_ISDIR(node->attr.mode))
		++*(uint32_t *)user;
	return 0;
}

/* Directories of our own count their subdirectories: of those that stay while some of these were restored, the count is made again. */
static int recount_links(struct overlay *o, struct changed_rows *c)
{
	g_autoptr(GHashTable) done = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	int r = 0;

	for (guint i = 0; r == 0 && i < c->names->len; i++) {
		uint64_t ino = g_array_index(c->names, struct changed_name, i).parent;
		uint32_t links = 2;
		struct node_row n;

		if (!g_hash_table_add(done, g_memdup2(&ino, sizeof(ino))))
			continue;
		r = store_node_get(o->store, EPOCH_LIVE, ino, &n);
		if (r < 0)
			return r;
		if (n.ino && ino != ROOT_INO && n.origin == 0 && n.attr.nlink > 0) {
			r = store_names(o->store, EPOCH_LIVE, ino, count_dir, &links);
			if (r == 0 && n.attr.nlink != links) {
				n.attr.nlink = links;
				r = store_node_put(o->store, &n);
				changed_rows_add_node(ino, c);
			}
		}
		node_row_clear(&n);
	}
	return r;
}

static int rollback_rows(struct overlay *o, int64_t epoch, bool some, struct changed_rows *c)
{
	int r = restore_rows(o, epoch, c);

	return r == 0 && some ? recount_links(o, c) : r;
}

int overlay_rollback(struct overlay *o, int64_t epoch, const char *const *paths, bool scratch, uint64_t *ret_names, uint64_t *ret_nodes)
{
	g_autofree char *detail = NULL;
	struct changed_rows c;
	int r;

	changed_rows_init(&c);
	overlay_lock(o);
	orphans_drop(o);
	if (paths)
		r = select_paths(o, epoch, paths, &c);
	else
		r = store_rows_since(o->store, epoch, changed_rows_add_name, changed_rows_add_node, &c);
	if (r == 0 && !paths && !scratch)
		r = keep_scratch(o, epoch, &c);
	detail = g_strdup_printf("to epoch %" G_GINT64_FORMAT ": %u names, %u files and directories%s", epoch, c.names->len, c.nodes->len,
				 paths ? " of some paths" : "");
	audit_begin(o, &(struct audit_about){ .kind = AUDIT_ROLLBACK, .operation = "rollback", .detail = detail });
	if (r == 0)
		r = overlay_begin(o);
	if (r == 0)
		r = overlay_end(o, rollback_rows(o, epoch, paths != NULL, &c));
	audit_paths(o, AUDIT_ROLLBACK, "rollback", r == 0 ? paths : NULL);
	audit_end(o, r);
	if (r == 0)
		r = overlay_resync(o, &c);
	overlay_unlock(o);
	if (r == 0) {
		*ret_names = c.names->len;
		*ret_nodes = c.nodes->len;
		overlay_drain(o);
	}
	changed_rows_clear(&c);
	return r;
}
