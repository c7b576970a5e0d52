/* SPDX-License-Identifier: MIT */
#include "gated.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "rules/policy.h"

char *fake_key(unsigned seed)
{
	GRand *r = g_rand_new_with_seed(seed);
	GString *s = g_string_new("gh");

	g_string_append(s, "p_");
	for (int i = 0; i < 36; i++)
		g_string_append_c(s, "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"[g_rand_int_range(r, 0, 56)]);
	g_rand_free(r);
	return g_string_free(s, FALSE);
}

struct policy *policy_of(const char *settings)
{
	g_autofree char *text = g_strdup_printf("[profile p]\n[gate p]\n%s\n", settings);
	g_autoptr(GError) error = NULL;
	struct policy *p = policy_load_text(text, "p.ini", &error);

	g_assert_no_error(error);
	return p;
}

struct gate_config *config_of(const char *settings)
{
	struct policy *p = policy_of(settings);
	g_autoptr(GError) error = NULL;
	struct gate_config *c = gate_config_new(p, "/no/workspace", &error);

	g_assert_no_error(error);
	policy_free(p);
	return c;
}

struct gate_result *run_with(struct layered *l, const char *settings, const char *view, const char *reason)
{
	g_autoptr(gate_config_t) config = config_of(settings);
	g_autoptr(tree_t) from = tree_open(l->store, l->lower, TREE_LOWER), to = tree_open(l->store, l->lower, EPOCH_LIVE);
	g_autoptr(GPtrArray) changes = layered_changes(l, TREE_LOWER, EPOCH_LIVE, NULL);
	const struct gate_job job = { .from = from, .to = to, .changes = changes, .config = config, .view = view, .reason = reason };
	struct gate_result *r = NULL;
	g_autoptr(GError) error = NULL;

	gate_run(&job, &r, &error);
	g_assert_no_error(error);
	return r;
}

char *findings_text(const struct gate_result *r)
{
	GString *s = g_string_new(NULL);

	for (guint i = 0; i < r->findings->len; i++) {
		const struct gate_finding *f = r->findings->pdata[i];

		g_string_append_printf(s, "%s %s %s", gate_level_name(f->level), f->rule, f->path ? f->path : "*");
		if (f->line)
			g_string_append_printf(s, ":%d", (int)f->line);
		g_string_append_c(s, '\n');
	}
	return g_string_free(s, FALSE);
}

void expect(struct layered *l, const char *settings, const char *want)
{
	g_autoptr(gate_result_t) r = run_with(l, settings, NULL, NULL);
	g_autofree char *got = findings_text(r);

	assert_string_equal(got, want);
}

struct gate_config *layered_config(const char *managed, const char *user, const char *workspace)
{
	g_autofree char *dir = g_dir_make_tmp("sbxfs-test-XXXXXX", NULL), *managed_dir = g_build_filename(dir, "m", NULL);
	g_autofree char *file = g_build_filename(managed_dir, "m.ini", NULL), *ws = g_build_filename(dir, "w", NULL);
	g_autofree char *ws_file = g_build_filename(ws, ".sbxfs.ini", NULL), *user_file = g_build_filename(dir, "u.ini", NULL);
	g_autofree char *m = g_strdup_printf("[profile m]\n[gate m]\n%s\n", managed), *u = g_strdup_printf("[profile u]\n[gate u]\n%s\n", user);
	g_autofree char *w = g_strdup_printf("[profile w]\n[gate w]\n%s\n", workspace);
	struct policy_sources s = { .profile = user_file, .workspace = ws, .managed_dir = managed_dir };
	g_autoptr(GError) error = NULL;
	struct gate_config *c;
	struct policy *p;

	g_mkdir(managed_dir, 0755);
	g_mkdir(ws, 0755);
	if (*managed)
		g_assert_true(g_file_set_contents(file, m, -1, NULL));
	if (*workspace)
		g_assert_true(g_file_set_contents(ws_file, w, -1, NULL));
	g_assert_true(g_file_set_contents(user_file, u, -1, NULL));
	p = policy_load(&s, &error);
	g_assert_no_error(error);
	c = gate_config_new(p, ws, &error);
	g_assert_no_error(error);
	policy_free(p);
	unlink(file);
	unlink(ws_file);
	unlink(user_file);
	rmdir(managed_dir);
	rmdir(ws);
	rmdir(dir);
	return c;
}
