/* SPDX-License-Identifier: MIT */

/* check_manifests - what a change would let package managers fetch and run */

#include <string.h>

#include "gate/check.h"
#include "gate/manifest.h"

#define SIZE_MAX_READ (4 * 1024 * 1024)
#define SPEC_SHOWN 120

static const struct {
	const char *rule;
	const char *what;
} parts[] = {
	[MANIFEST_DEPENDENCY] = { "dependency", "dependency" },
	[MANIFEST_SOURCE] = { "source", "source of packages" },
	[MANIFEST_INSTALL] = { "install-script", "command that runs on installation:" },
	[MANIFEST_SCRIPT] = { "script", "command:" },
	[MANIFEST_BUILD] = { "build-code", "code that runs when the package is built or installed:" },
};

static void report(struct gate *g, uint64_t line, const char *rule, const char *message)
{
	gate_report(g, GATE_MANIFESTS, GATE_REVIEW, g->change->path, line, rule, "%s", message);
}

/* Without the control characters and tails that a spec may have: it is shown. */
static char *shown(const char *spec)
{
	return g_strdup_printf("%.*s%s", SPEC_SHOWN, spec, strlen(spec) > SPEC_SHOWN ? "..." : "");
}

static void report_item(struct gate *g, const struct manifest_item *new, const struct manifest_item *old)
{
	g_autofree char *name = shown(new->name), *spec = shown(new->spec), *before = old ? shown(old->spec) : NULL;
	g_autofree char *rule = g_strdup_printf("%s-%s", old ? "changed" : "new", parts[new->part].rule);
	const char *what = parts[new->part].what;
	bool same = g_str_equal(name, spec) || !*spec;

	if (old)
		gate_report(g, GATE_MANIFESTS, GATE_REVIEW, g->change->path, new->line, rule, "changed %s %s: %s, was %s", what, name, spec,
			    before);
	else
		gate_report(g, GATE_MANIFESTS, GATE_REVIEW, g->change->path, new->line, rule, "new %s %s%s%s", what, name, same ? "" : " = ",
			    same ? "" : spec);
}

static int compare_lines(const void *a, const void *b)
{
	const struct manifest_item *x = *(struct manifest_item *const *)a, *y = *(struct manifest_item *const *)b;

	return x->line != y->line ? (x->line < y->line ? -1 : 1) : strcmp(x->name, y->name);
}

static void compare(struct gate *g, GHashTable *old, GHashTable *new)
{
	g_autoptr(GPtrArray) order = g_ptr_array_new();
	g_autoptr(GHashTable) befores = g_hash_table_new(NULL, NULL);
	GHashTableIter iter;
	void *key, *value;

	g_hash_table_iter_init(&iter, new);
	while (g_hash_table_iter_next(&iter, &key, &value)) {
		struct manifest_item *before = old ? g_hash_table_lookup(old, key) : NULL;

		if (before && g_str_equal(before->spec, ((struct manifest_item *)value)->spec))
			continue;
		g_ptr_array_add(order, value);
		if (before)
			g_hash_table_insert(befores, value, before);
	}
	g_ptr_array_sort(order, compare_lines);
	for (guint i = 0; i < order->len; i++)
		report_item(g, order->pdata[i], g_hash_table_lookup(befores, order->pdata[i]));
}

/* NULL with 0: there is none, or it is larger than a manifest (@ret_large). Caller frees. */
static int read_whole(struct tree *t, const struct entry *e, char **ret, size_t *ret_size, bool *ret_large)
{
	g_autoptr(tree_file_t) f = NULL;
	g_autofree char *buf = NULL;
	size_t used = 0;
	ssize_t n;
	int r;

	*ret = NULL;
	*ret_size = 0;
	if (!e || !S_ISREG(e->attr.mode))
		return 0;
	r = tree_file_open(t, e, &f);
	if (r < 0)
		return r;
	buf = g_malloc(SIZE_MAX_READ + 1);
	while ((n = tree_file_read(f, buf + used, SIZE_MAX_READ + 1 - used, used)) > 0)
		used += n;
	if (n < 0)
		return n;
	*ret_large = *ret_large || used > SIZE_MAX_READ;
	*ret_size = used;
	*ret = g_steal_pointer(&buf);
	return 0;
}

static int look_inside(struct gate *g, const struct change *c, enum manifest_kind kind, GError **error)
{
	g_autofree char *old_text = NULL, *new_text = NULL;
	g_autoptr(GHashTable) old = NULL, new = NULL;
	size_t old_size, new_size;
	bool large = false;
	int r = read_whole(g->job->from, c->before, &old_text, &old_size, &large);

	if (r == 0)
		r = read_whole(g->job->to, c->after, &new_text, &new_size, &large);
	if (r < 0)
		return change_error(error, r, "can't read", c->path);
	if (large) {
		report(g, 0, "unreadable", "is too large for a manifest, so nobody looked at its dependencies");
		return 0;
	}
	/* An old version that is not understood has nothing: all is new then. */
	old = old_text ? manifest_items(kind, old_text, old_size) : NULL;
	new = manifest_items(kind, new_text, new_size);
	if (!new)
		report(g, 0, "unreadable", "can't be understood, so nobody looked at its dependencies");
	else
		compare(g, old, new);
	return 0;
}

static int manifests_change(struct gate *g, const struct change *c, GError **error)
{
	enum manifest_kind kind = manifest_kind_of(c->path);
	const struct entry *e = c->after ? c->after : c->before;

	if (kind == MANIFEST_NONE || S_ISDIR(e->attr.mode))
		return 0;
	if (!c->after) {
		report(g, 0, "deleted", kind == MANIFEST_LOCK ? "lock file is deleted: other versions may be fetched" : "manifest is deleted");
		return 0;
	}
	if (!c->content_changed && !c->from_path)
		return 0;
	if (kind == MANIFEST_LOCK)
		report(g, 0, "lock-file", "lock file: which packages exactly are fetched");
	else if (kind == MANIFEST_CODE)
		report(g, 0, "build-code", "runs when the package is built or installed");
	else if (kind == MANIFEST_OTHER)
		report(g, 0, "changed", "says what package managers fetch, from where, or what they run");
	else if (!gate_is_file(c))
		report(g, 0, "unreadable", "is no file, so nobody looked at its dependencies");
	else
		return look_inside(g, c, kind, error);
	return 0;
}

const struct check check_manifests = { .name = "manifests", .change = manifests_change };
