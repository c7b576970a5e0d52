/* SPDX-License-Identifier: MIT */
#include "gate/gate.h"

#include <stdarg.h>
#include <string.h>

#include "gate/check.h"
#include "gate/scan.h"

/* Findings of one level that one check lists; more only count. What is refused is not pushed off the list by what wants a review. */
#define LISTED_MAX 1000
#define CHUNK (256 * 1024)

static const struct check *const checks[GATE_CHECKS] = {
	[GATE_SCOPE] = &check_scope,	   [GATE_SECRETS] = &check_secrets, [GATE_PERSONAL] = &check_personal,
	[GATE_MANIFESTS] = &check_manifests, [GATE_CONTROL] = &check_control, [GATE_MODES] = &check_modes,
	[GATE_SIZE] = &check_size,	   [GATE_TESTS] = &check_tests,
};

/* Names */

const char *gate_level_name(enum gate_level level)
{
	static const char *const names[] = { "pass", "review", "refuse" };

	return names[level];
}

const char *gate_check_name(enum gate_check check)
{
	return checks[check]->name;
}

bool gate_check_from_name(const char *name, enum gate_check *ret)
{
	for (unsigned i = 0; i < GATE_CHECKS; i++) {
		if (g_str_equal(checks[i]->name, name)) {
			*ret = (enum gate_check)i;
			return true;
		}
	}
	return false;
}

/* Findings */

void gate_finding_free(void *data)
{
	struct gate_finding *f = data;

	if (!f)
		return;
	g_free(f->path);
	g_free(f->rule);
	g_free(f->message);
	g_free(f->excerpt);
	g_free(f->fingerprint);
	g_free(f);
}

/* What moves a terminal's cursor, or turns the order of what is read around, or can't be seen. */
static bool is_unseen(gunichar c)
{
	switch (g_unichar_type(c)) {
	case G_UNICODE_CONTROL:
	case G_UNICODE_FORMAT:
	case G_UNICODE_LINE_SEPARATOR:
	case G_UNICODE_PARAGRAPH_SEPARATOR:
		return true;
	default:
		return false;
	}
}

/* One line of UTF-8 that a terminal shows as it is. */
static char *make_readable(char *text)
{
	g_autofree char *taken = text, *valid = NULL;
	GString *s;

	if (!text)
		return NULL;
	valid = g_utf8_make_valid(text, -1);
	s = g_string_sized_new(strlen(valid));
	for (const char *p = valid; *p; p = g_utf8_next_char(p)) {
		gunichar c = g_utf8_get_char(p);

		g_string_append_unichar(s, !is_unseen(c) ? c : c < 0x80 ? ' ' : 0xfffd);
	}
	return g_string_free(s, FALSE);
}

void gate_report_finding(struct gate *g, struct gate_finding *f)
{
	struct gate_result *r = g->result;

	r->verdict = MAX(r->verdict, f->level);
	if (++g->listed[f->check][f->level] > LISTED_MAX) {
		r->unlisted++;
		gate_finding_free(f);
		return;
	}
	f->message = make_readable(f->message);
	f->excerpt = make_readable(f->excerpt);
	g_ptr_array_add(r->findings, f);
}

void gate_report(struct gate *g, enum gate_check check, enum gate_level level, const char *path, uint64_t line, const char *rule,
		 const char *format, ...)
{
	struct gate_finding *f = g_new0(struct gate_finding, 1);
	va_list args;

	f->check = check;
	f->level = level;
	f->path = g_strdup(path);
	f->line = line;
	f->rule = g_strconcat(gate_check_name(check), "/", rule, NULL);
	va_start(args, format);
	f->message = g_strdup_vprintf(format, args);
	va_end(args);
	gate_report_finding(g, f);
}

static int compare_findings(const void *a, const void *b)
{
	const struct gate_finding *x = *(struct gate_finding *const *)a, *y = *(struct gate_finding *const *)b;
	int r;

	if (x->level != y->level)
		return (int)y->level - (int)x->level;
	r = g_strcmp0(x->path, y->path);
	if (r != 0)
		return r;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return (int)x->check - (int)y->check;
}

/* A run */

bool gate_is_file(const struct change *c)
{
	return c->after && S_ISREG(c->after->attr.mode);
}

const struct added *gate_added(struct gate *g, GError **error)
{
	int r;

	if (g->added)
		return g->added;
	r = added_new(g->change, g->job->from, g->job->to, &g->added);
	if (r < 0)
		change_error(error, r, "can't read", g->change->path);
	return g->added;
}

int gate_scan_file(struct scan *scan, struct tree *t, const struct entry *e)
{
	g_autoptr(tree_file_t) f = NULL;
	g_autofree uint8_t *buf = NULL;
	uint64_t offset = 0;
	ssize_t n;
	int r = tree_file_open(t, e, &f);

	if (r < 0)
		return r;
	buf = g_malloc(CHUNK);
	while ((n = tree_file_read(f, buf, CHUNK, offset)) > 0) {
		offset += n;
		if (!scan_feed(scan, buf, n))
			break;
	}
	scan_finish(scan);
	return n < 0 ? n : 0;
}

static bool enabled(const struct gate *g, unsigned check)
{
	return g->config->checks & 1u << check;
}

static int run_checks(struct gate *g, GError **error)
{
	int r = 0;

	for (guint i = 0; r >= 0 && i < g->job->changes->len; i++) {
		g->change = g->job->changes->pdata[i];
		for (unsigned k = 0; r >= 0 && k < GATE_CHECKS; k++)
			if (enabled(g, k) && checks[k]->change)
				r = checks[k]->change(g, g->change, error);
		g_clear_pointer(&g->added, added_free);
	}
	for (unsigned k = 0; r >= 0 && k < GATE_CHECKS; k++)
		if (enabled(g, k) && checks[k]->finish)
			r = checks[k]->finish(g, error);
	return r;
}

bool gate_run(const struct gate_job *job, struct gate_result **ret, GError **error)
{
	g_autoptr(gate_result_t) result = g_new0(struct gate_result, 1);
	struct gate g = { .job = job, .config = job->config, .result = result };
	int r;

	result->checks = job->config->checks;
	result->findings = g_ptr_array_new_with_free_func(gate_finding_free);
	r = job->changes->len > 0 ? run_checks(&g, error) : 0;
	for (unsigned k = 0; k < GATE_CHECKS; k++)
		if (checks[k]->clear)
			checks[k]->clear(&g);
	if (r < 0)
		return false;
	g_ptr_array_sort(result->findings, compare_findings);
	*ret = g_steal_pointer(&result);
	return true;
}

void gate_result_free(struct gate_result *r)
{
	if (!r)
		return;
	g_ptr_array_unref(r->findings);
	g_free(r->test.command);
	g_free(r->test.reason);
	g_free(r);
}
