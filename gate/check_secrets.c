/* SPDX-License-Identifier: MIT */

/*
 * check_secrets - what must not be in the workspace: keys and passwords that a change brings in
 *
 * Whole files are scanned, and what touches no new line is no finding; so a key of several lines is found when one of them is new.
 * A value that the old version of the same file had already brings nothing in, wherever it stands now. New names, targets of
 * links and extended attributes are scanned as well.
 */

#include <string.h>

#include "gate/check.h"
#include "gate/scan.h"
#include "gate/secret_scan.h"
#include "snapshot/xattr.h"

/* Findings of one file; then the scan of it ends. */
#define FILE_MAX 50
/* Secrets that an old version may have had; what else it had counts as new. */
#define OLD_MAX 100000
#define FINGERPRINT_DIGITS 16

struct secrets {
	struct scan *scan;
	struct scan *old_scan;
	/* Of the change in hand */
	struct gate *gate;
	const struct added *added; /* NULL = all is new */
	const char *where;         /* " in the target of the link", or "" */
	bool has_lines;
	unsigned found;
	GHashTable *old;           /* digests of the old version's values, NULL until one is asked for */
	int failed;                /* -errno of reading that */
};

static char *digest_of(const void *value, size_t size, const char *rule, const char *path)
{
	g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);

	if (path)
		g_checksum_update(sum, (const guchar *)path, strlen(path) + 1);
	g_checksum_update(sum, (const guchar *)rule, strlen(rule) + 1);
	g_checksum_update(sum, value, size);
	return g_strdup(g_checksum_get_string(sum));
}

static bool is_excused(const struct secrets *s, const struct scan_match *m, const char *fingerprint)
{
	const struct gate_config *c = s->gate->config;
	g_autofree char *lower = NULL;

	if (c->baseline && g_hash_table_contains(c->baseline, fingerprint))
		return true;
	if (c->secret_words->len == 0)
		return false;
	lower = g_ascii_strdown((const char *)m->value, m->value_size);
	for (guint i = 0; i < c->secret_words->len; i++)
		if (g_strstr_len(lower, m->value_size, c->secret_words->pdata[i]))
			return true;
	return false;
}

static bool on_old(const struct scan_match *m, void *user)
{
	struct secrets *s = user;

	g_hash_table_add(s->old, digest_of(m->value, m->value_size, "", NULL));
	return g_hash_table_size(s->old) < OLD_MAX;
}

/* The old version is read when something was found, which is seldom. */
static bool was_there(struct secrets *s, const struct scan_match *m)
{
	const struct entry *before = s->gate->change->before;
	g_autofree char *digest = NULL;

	if (!s->added || added_is_all(s->added) || !before || !S_ISREG(before->attr.mode))
		return false;
	if (!s->old) {
		s->old = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
		s->failed = gate_scan_file(s->old_scan, s->gate->job->from, before);
	}
	digest = digest_of(m->value, m->value_size, "", NULL);
	return g_hash_table_contains(s->old, digest);
}

static bool on_found(const struct scan_match *m, void *user)
{
	struct secrets *s = user;
	const char *path = s->gate->change->path;
	g_autofree char *fingerprint = digest_of(m->value, m->value_size, m->rule, path);
	struct gate_finding *f;

	fingerprint[FINGERPRINT_DIGITS] = '\0';
	if ((s->added && !added_touches(s->added, m->start, m->end)) || is_excused(s, m, fingerprint) || was_there(s, m))
		return s->failed == 0;
	f = g_new0(struct gate_finding, 1);
	f->check = GATE_SECRETS;
	f->level = GATE_REFUSE;
	f->path = g_strdup(path);
	f->line = s->has_lines ? m->line : 0;
	f->rule = g_strconcat("secrets/", m->rule, NULL);
	f->message = g_strdup_printf("looks like %s%s", m->what, s->where);
	f->excerpt = g_strdup(m->excerpt);
	f->fingerprint = g_steal_pointer(&fingerprint);
	gate_report_finding(s->gate, f);
	return s->failed == 0 && ++s->found < FILE_MAX;
}

static int scan_contents(struct secrets *s, const struct change *c, GError **error)
{
	int r;

	s->added = gate_added(s->gate, error);
	if (!s->added)
		return -1;
	if (added_is_none(s->added))
		return 0;
	s->has_lines = true;
	s->where = "";
	s->found = 0;
	r = gate_scan_file(s->scan, s->gate->job->to, c->after);
	if (r == 0)
		r = s->failed;
	s->added = NULL;
	g_clear_pointer(&s->old, g_hash_table_unref);
	return r < 0 ? change_error(error, r, "can't read", c->path) : 0;
}

static void scan_text(struct secrets *s, const void *text, size_t size, const char *where)
{
	s->has_lines = false;
	s->added = NULL;
	s->where = where;
	s->found = 0;
	scan_feed(s->scan, text, size);
	scan_finish(s->scan);
}

static int scan_link(struct secrets *s, const struct change *c, GError **error)
{
	g_autofree char *target = NULL;
	int r = tree_readlink(s->gate->job->to, c->after, &target);

	if (r < 0)
		return change_error(error, r, "can't read the link", c->path);
	scan_text(s, target, strlen(target), " in the target of the link");
	return 0;
}

static void scan_xattr(const char *name, const void *value, size_t size, void *user)
{
	struct secrets *s = user;

	scan_text(s, name, strlen(name), " in the name of an extended attribute");
	scan_text(s, value, size, " in an extended attribute");
}

static int scan_xattrs(struct secrets *s, const struct change *c, GError **error)
{
	g_autoptr(GBytes) old = NULL, new = NULL;
	int r = change_xattrs(s->gate->job->to, c->after, &new);

	if (r == 0 && c->before)
		r = change_xattrs(s->gate->job->from, c->before, &old);
	if (r < 0)
		return change_error(error, r, "can't read the extended attributes of", c->path);
	if (new && !xattrs_equal(old, new))
		xattrs_foreach(new, scan_xattr, s);
	return 0;
}

/* Names that only stores of keys have. What stands in them may be encrypted or binary, so it can't be told whether it is a secret. */
static bool is_key_store(const char *path)
{
	static const char *const endings[] = { ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".agekey", ".mobileprovision", NULL };
	static const char *const names[] = { "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", "_netrc", ".pgpass", ".htpasswd",
					     ".git-credentials", ".env", ".vault-token", NULL };
	g_autofree char *name = g_path_get_basename(path);
	g_autofree char *lower = g_ascii_strdown(name, -1);

	if (g_strv_contains(names, lower))
		return true;
	for (const char *const *e = endings; *e; e++)
		if (g_str_has_suffix(lower, *e))
			return true;
	return false;
}

static void scan_name(struct secrets *s, const struct change *c)
{
	if (c->status != CHANGE_ADDED && c->status != CHANGE_RENAMED)
		return;
	scan_text(s, c->path, strlen(c->path), " in the path");
	if (gate_is_file(c) && is_key_store(c->path))
		gate_report(s->gate, GATE_SECRETS, GATE_REVIEW, c->path, 0, "key-file", "a file of this name usually holds keys or passwords");
}

static struct secrets *state_of(struct gate *g)
{
	struct secrets *s = g->state[GATE_SECRETS];

	if (s)
		return s;
	s = g->state[GATE_SECRETS] = g_new0(struct secrets, 1);
	s->gate = g;
	s->scan = scan_new(secret_scan_look, on_found, s);
	s->old_scan = scan_new(secret_scan_look, on_old, s);
	return s;
}

static int secrets_change(struct gate *g, const struct change *c, GError **error)
{
	struct secrets *s = state_of(g);
	int r = 0;

	if (!c->after || gate_patterns_match(g->config->secret_paths, c->path, S_ISDIR(c->after->attr.mode), false))
		return 0;
	scan_name(s, c);
	if (gate_is_file(c))
		r = scan_contents(s, c, error);
	else if (S_ISLNK(c->after->attr.mode) && c->content_changed)
		r = scan_link(s, c, error);
	return r < 0 ? r : scan_xattrs(s, c, error);
}

static void secrets_clear(struct gate *g)
{
	struct secrets *s = g->state[GATE_SECRETS];

	if (!s)
		return;
	scan_free(s->scan);
	scan_free(s->old_scan);
	g_clear_pointer(&s->old, g_hash_table_unref);
	g_free(s);
}

const struct check check_secrets = { .name = "secrets", .change = secrets_change, .clear = secrets_clear };
