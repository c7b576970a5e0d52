/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "fs/control.h"
#include "rules/policy.h"
#include "snapshot/diff.h"
#include "snapshot/git_history.h"
#include "tools/attach.h"
#include "tools/doctor.h"
#include "tools/finding.h"
#include "tools/hard_links.h"
#include "tools/policy_store.h"
#include "tools/sandbox.h"
#include "tools/tracked.h"

/* The view */

static char *lock_owner(const struct sandbox *s)
{
	g_autofree char *path = g_build_filename(s->dir, "lock", NULL);
	char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) && *g_strstrip(text) ? text : (g_free(text), g_strdup("?"));
}

static void check_mount(GPtrArray *findings, const struct sandbox *s)
{
	g_autofree char *mountpoint = s->mountpoint ? diff_quote_path(s->mountpoint) : NULL;
	g_autofree char *owner = lock_owner(s);
	g_autofree char *remedy = NULL;

	if (s->mounted && !s->live && !sandbox_is_locked(s->dir)) {
		remedy = g_strdup_printf("sbxfs umount %s clears it; the changes are kept", s->name);
		finding_add(findings, FINDING_LACKING, "mount", s->name, remedy, "the process of the view at %s is gone",
			    mountpoint);
	} else if (s->mounted && !s->live) {
		remedy = g_strdup_printf("end process %s, then sbxfs umount %s; the changes are kept", owner, s->name);
		finding_add(findings, FINDING_LACKING, "mount", s->name, remedy,
			    "process %s, which serves the view at %s, does not answer", owner, mountpoint);
	} else if (!s->live && sandbox_is_locked(s->dir)) {
		finding_add(findings, FINDING_NOTE, "mount", s->name, "if that does not end: look at it, then end it",
			    "process %s works on the store just now", owner);
	} else if (s->live && !s->mounted) {
		remedy = g_strdup_printf("sbxfs umount %s where it is mounted, or end process %s", s->name, owner);
		finding_add(findings, FINDING_NOTE, "mount", s->name, remedy,
			    "its view is mounted in another mount namespace only");
	} else {
		finding_add(findings, FINDING_OK, "mount", s->name, NULL, "%s", sandbox_state(s));
	}
}

static void check_watches(GPtrArray *findings, struct attached *a)
{
	g_autoptr(GVariant) none = g_variant_ref_sink(g_variant_new("a{sv}", NULL));
	g_autoptr(GVariant) live = a->control ? control_call(a->control, "status", none, NULL) : NULL;
	gboolean full = FALSE;

	if (live && g_variant_lookup(live, "watches-full", "b", &full) && full)
		finding_add(findings, FINDING_NOTE, "watches", a->sandbox->name,
			    "as root: sysctl fs.inotify.max_user_watches=524288, and mount again",
			    "all watches are used: some directories are checked once a second");
}

/* The rules */

/* What is in force is a copy of its own; that the file has an error by now shows at the next mount with it. */
static void check_policy(GPtrArray *findings, const struct sandbox *s, const struct policy *in_force)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *profile = NULL;
	g_autofree char *path = NULL;
	g_autofree char *now = NULL;
	g_autofree char *then = policy_to_ini(in_force);
	struct policy *found = policy_find(s->policy_path ? s->policy_path : s->profile, s->workspace, &profile, &path, &error);

	now = found ? policy_to_ini(found) : NULL;
	if (!found)
		finding_add(findings, FINDING_NOTE, "policy", s->name,
			    "mend it before the next mount with -p; the copy in the store stays in force",
			    "the policy %s cannot be read any more: %s", s->profile, error->message);
	else if (!g_str_equal(now, then))
		finding_add(findings, FINDING_NOTE, "policy", s->name, "to take it over: sbxfs umount, then sbxfs mount with -p",
			    "the policy %s was changed since the mount that took it", s->profile);
	else
		finding_add(findings, FINDING_OK, "policy", s->name, NULL, "%s", s->profile);
	g_clear_pointer(&found, policy_free);
}

#define COMMITS_MAX 10000

struct tracked {
	const struct policy *policy;
	const char *dir; /* of the repository */
	bool readable;
	char *path, *commit; /* the first that is closed */
	unsigned count;
};

static void note_tracked(const char *path, const char *commit, void *user)
{
	struct tracked *t = user;

	if (!t->readable || !tracked_is_closed(t->policy, t->dir, path))
		return;
	if (t->count++ == 0) {
		t->path = *t->dir ? g_build_filename(t->dir, path, NULL) : g_strdup(path);
		t->commit = g_strdup(commit);
	}
}

/* What was committed is in the object store, and that is not closed by closing the name. */
static void check_repository(GPtrArray *findings, const struct attached *a, const char *dir)
{
	struct tracked t = { .policy = a->policy, .dir = dir, .readable = tracked_is_readable(a->policy, dir) };
	g_autofree char *place = g_build_filename(dir, ".git", NULL);
	g_autofree char *shown = diff_quote_path(place);
	g_autoptr(GError) error = NULL;
	int r = git_history_each(a->lower, dir, COMMITS_MAX, note_tracked, &t, &error);
	g_autofree char *path = t.path ? diff_quote_path(t.path) : NULL;

	if (r < 0)
		finding_add(findings, FINDING_NOTE, "git-history", a->sandbox->name, NULL, "%s cannot be looked into: %s", shown,
			    error ? error->message : g_strerror(-r));
	if (t.count > 0)
		finding_add(findings, FINDING_LACKING, "git-history", a->sandbox->name,
			    "revoke such secrets, or close .git too, or rewrite the history",
			    "of %u closed path%s in its commits the contents can be read through %s: %s in %.12s", t.count,
			    t.count == 1 ? "" : "s", shown, path, t.commit);
	else if (r >= 0)
		finding_add(findings, r == 0 ? FINDING_OK : FINDING_NOTE, "git-history", a->sandbox->name, NULL,
			    "%s: no closed path was committed%s", shown, r == 0 ? "" : " in the last 10,000 commits; older ones were not looked at");
	g_free(t.path);
	g_free(t.commit);
}

/* And the repositories that the same walk meets. */
static void check_hard_links(GPtrArray *findings, struct attached *a)
{
	struct hard_links links = { 0 };

	hard_links_find(a->lower, a->policy, &links);
	for (unsigned i = 0; i < links.repositories->len; i++)
		check_repository(findings, a, links.repositories->pdata[i]);
	for (unsigned i = 0; i < links.found->len; i++) {
		const struct hard_link *l = links.found->pdata[i];
		g_autofree char *closed = diff_quote_path(l->closed);
		g_autofree char *open = diff_quote_path(l->open);

		finding_add(findings, FINDING_LACKING, "hard-links", a->sandbox->name,
			    "make one of them a copy of its own, or close the other name by a rule too",
			    "%s is closed by the policy, but %s is the same file and can be read in the view", closed, open);
	}
	if (links.unreadable > 0)
		finding_add(findings, FINDING_NOTE, "hard-links", a->sandbox->name, NULL,
			    "%" PRIu64 " directories of the workspace cannot be looked into", links.unreadable);
	if (links.found->len == 0)
		finding_add(findings, FINDING_OK, "hard-links", a->sandbox->name, NULL, "no closed file has an open name");
	hard_links_clear(&links);
}

void doctor_sandbox(GPtrArray *findings, const struct sandbox *s)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(attached_t) a = NULL;
	g_autoptr(GError) lower_error = NULL;

	if (s->problem) {
		finding_add(findings, FINDING_LACKING, "store", s->name,
			    "the workspace is not concerned; sbxfs fsck tells more, sbxfs destroy --force drops the sandbox", "%s", s->problem);
		return;
	}
	check_mount(findings, s);
	a = attached_open(s->name, ATTACH_READ, &error);
	if (!a) {
		finding_add(findings, FINDING_LACKING, "store", s->name, NULL, "%s", error->message);
		return;
	}
	check_watches(findings, a);
	check_policy(findings, s, a->policy);
	if (attached_has_lower(a, &lower_error))
		check_hard_links(findings, a);
	else
		finding_add(findings, FINDING_LACKING, "workspace", s->name, "put it back, or drop the sandbox with sbxfs destroy",
			    "%s", lower_error->message);
}
