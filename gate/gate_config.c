/* SPDX-License-Identifier: MIT */
#include "gate/gate_config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rules/pattern.h"
#include "rules/policy.h"

#define CHECKS_ALL (((1u << GATE_CHECKS) - 1) & ~(1u << GATE_PERSONAL))
#define TEST_SECONDS (15 * 60)
#define BASELINE_MAX (16 * 1024 * 1024)
#define SECRET_WORD_MIN 4

struct maker {
	const struct policy *policy;
	const char *workspace;
	struct gate_config *config;
	bool managed_secrets; /* only the managed layer may excuse secrets */
};

G_GNUC_PRINTF(3, 4)
static bool fail(GError **error, const struct policy_setting *s, const char *format, ...)
{
	g_autofree char *message = NULL;
	va_list args;

	va_start(args, format);
	message = g_strdup_vprintf(format, args);
	va_end(args);
	if (s)
		g_set_error(error, POLICY_ERROR, POLICY_ERROR_INVALID, "%s:%u: %s = \"%s\": %s", s->file, s->line, s->key, s->value, message);
	else
		g_set_error_literal(error, POLICY_ERROR, POLICY_ERROR_INVALID, message);
	return false;
}

/* Settings */

/* The last of one layer, as policy_setting() has it of the user's. */
static const struct policy_setting *setting_of(const struct policy *p, enum policy_layer layer, const char *key)
{
	return policy_layer_setting(p, layer, "gate", key);
}

typedef bool (*item_fn)(void *user, const struct policy_setting *s, const char *item, GError **error);

/* One item when it begins with re:, else those between commas; "\," is a comma. */
static bool each_item(const struct policy_setting *s, item_fn fn, void *user, GError **error)
{
	g_autofree char *copy = g_strdup(s->value);
	bool last = false;

	if (g_str_has_prefix(s->value, "re:"))
		return fn(user, s, s->value, error);
	for (char *p = copy, *end; !last; p = end + 1) {
		for (end = p; *end && *end != ',';)
			end += end[0] == '\\' && end[1] ? 2 : 1;
		last = !*end;
		*end = '\0';
		if (!fn(user, s, g_strstrip(p), error))
			return false;
	}
	return true;
}

/* All lines of a list that @layer has. */
static bool each_of(const struct policy *p, enum policy_layer layer, const char *key, item_fn fn, void *user, GError **error)
{
	unsigned n;
	const struct policy_setting *all = policy_settings(p, &n);

	for (unsigned i = 0; i < n; i++)
		if (all[i].layer == layer && g_str_equal(all[i].section, "gate") && g_str_equal(all[i].key, key) &&
		    !each_item(&all[i], fn, user, error))
			return false;
	return true;
}

static bool add_pattern(void *user, const struct policy_setting *s, const char *item, GError **error)
{
	struct pattern *p = pattern_new(item, false, error);

	if (!p) {
		g_prefix_error(error, "%s:%u: ", s->file, s->line);
		return false;
	}
	g_ptr_array_add(user, p);
	return true;
}

static bool add_word(void *user, const struct policy_setting *s, const char *item, GError **error)
{
	if (strlen(item) < SECRET_WORD_MIN)
		return fail(error, s, "\"%s\" is shorter than %d characters and would excuse too much", item, SECRET_WORD_MIN);
	g_ptr_array_add(user, g_ascii_strdown(item, -1));
	return true;
}

/* Checks */

struct checks {
	unsigned bits;
	bool tests_named;
};

static bool parse_checks(const char *list, const struct policy_setting *s, struct checks *ret, GError **error)
{
	g_auto(GStrv) names = g_strsplit(list, ",", -1);
	struct checks c = { 0 };
	bool none = false;

	if (!names[0])
		return fail(error, s, "names no check; to run none, write none");
	for (char **n = names; *n; n++) {
		enum gate_check check;

		g_strstrip(*n);
		if (g_str_equal(*n, "none")) {
			none = true;
		} else if (g_str_equal(*n, "all")) {
			c.bits |= CHECKS_ALL;
		} else if (gate_check_from_name(*n, &check)) {
			c.bits |= 1u << check;
			c.tests_named = c.tests_named || check == GATE_TESTS;
		} else {
			return fail(error, s, "there is no check \"%s\"; known are all, none, scope, secrets, personal, manifests, control, "
				    "modes, size and tests", *n);
		}
	}
	if (none && (c.bits || g_strv_length(names) > 1))
		return fail(error, s, "\"none\" stands alone");
	*ret = c;
	return true;
}

bool gate_config_set_checks(struct gate_config *c, const char *list, GError **error)
{
	struct checks checks;

	if (!parse_checks(list, NULL, &checks, error))
		return false;
	c->checks = checks.bits;
	c->tests_named = checks.tests_named;
	return true;
}

/* The user's layer speaks, if only by saying nothing: all. The others add. */
static bool take_checks(struct maker *m, GError **error)
{
	m->config->checks = CHECKS_ALL;
	for (int layer = POLICY_USER; layer >= 0; layer = layer == POLICY_USER ? POLICY_MANAGED : layer == POLICY_MANAGED ? POLICY_WORKSPACE : -1) {
		const struct policy_setting *s = setting_of(m->policy, layer, "checks");
		struct checks c;

		if (!s)
			continue;
		if (!parse_checks(s->value, s, &c, error))
			return false;
		m->config->checks = c.bits | (layer == POLICY_USER ? 0 : m->config->checks);
		m->config->tests_named = m->config->tests_named || c.tests_named;
		m->managed_secrets = m->managed_secrets || (layer == POLICY_MANAGED && c.bits & 1u << GATE_SECRETS);
	}
	return true;
}

/* Numbers */

/* 400, 16M */
static bool parse_number(const struct policy_setting *s, uint64_t *ret, GError **error)
{
	char *end;
	uint64_t n, factor = 1;

	errno = 0;
	n = g_ascii_strtoull(s->value, &end, 10);
	if (*end) {
		static const char units[] = "KMG";
		const char *unit = strchr(units, *end);

		for (int i = 0; unit && i <= unit - units; i++)
			factor *= 1024;
		end += unit != NULL;
	}
	if (!g_ascii_isdigit(*s->value) || errno || *end || n > G_MAXINT64 / factor)
		return fail(error, s, "must be a number; K, M and G may follow it");
	*ret = n * factor;
	return true;
}

static bool take_limit(struct maker *m, const char *key, uint64_t *limit, GError **error)
{
	uint64_t n;
	const struct policy_setting *user = setting_of(m->policy, POLICY_USER, key), *managed = setting_of(m->policy, POLICY_MANAGED, key);

	if (user) {
		if (!parse_number(user, limit, error))
			return false;
	}
	if (managed) {
		if (!parse_number(managed, &n, error))
			return false;
		*limit = user ? MIN(*limit, n) : n;
	}
	return true;
}

static bool take_limits(struct maker *m, GError **error)
{
	struct gate_limits *l = &m->config->limits;

	*l = (struct gate_limits){ .files = 400, .lines = 20000, .deleted = 50, .size = 16 * 1024 * 1024, .share = 50 };
	return take_limit(m, "max_files", &l->files, error) && take_limit(m, "max_lines", &l->lines, error) &&
	       take_limit(m, "max_deleted", &l->deleted, error) && take_limit(m, "max_size", &l->size, error) &&
	       take_limit(m, "max_share", &l->share, error);
}

/* Tests */

static const struct policy_setting *trusted(const struct maker *m, const char *key)
{
	const struct policy_setting *s = setting_of(m->policy, POLICY_MANAGED, key);

	return s ? s : setting_of(m->policy, POLICY_USER, key);
}

static bool take_test(struct maker *m, GError **error)
{
	const struct policy_setting *s = trusted(m, "test"), *time = trusted(m, "test_time");
	char *end;
	uint64_t n;

	m->config->test_seconds = TEST_SECONDS;
	m->config->test = s ? g_strdup(s->value) : NULL;
	if (!time)
		return true;
	n = g_ascii_strtoull(time->value, &end, 10);
	if (*end == 'm')
		n *= 60;
	if (*end == 'h')
		n *= 3600;
	if (*end && strchr("smh", *end))
		end++;
	if (!g_ascii_isdigit(*time->value) || *end || n == 0 || n > 7 * 24 * 3600)
		return fail(error, time, "must be a time such as 90, 15m or 2h");
	m->config->test_seconds = (unsigned)n;
	return true;
}

/* The baseline */

static bool lies_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

/* Ours or root's, and nobody else can write it: else it would be configuration that the sandboxed program may have written. */
static bool read_trusted(const struct maker *m, const struct policy_setting *s, char **ret, gsize *ret_size, GError **error)
{
	g_autofree char *real = NULL;
	g_autoptr(GError) failure = NULL;
	struct stat st;
	char *resolved;

	if (!g_path_is_absolute(s->value))
		return fail(error, s, "must be an absolute path");
	resolved = realpath(s->value, NULL);
	if (!resolved || stat(resolved, &st) < 0) {
		free(resolved);
		return fail(error, s, "%s", g_strerror(errno));
	}
	real = g_strdup(resolved);
	free(resolved);
	if (m->workspace && lies_in(real, m->workspace))
		return fail(error, s, "lies in the workspace, where the sandboxed program's work goes");
	if (!S_ISREG(st.st_mode) || st.st_size > BASELINE_MAX)
		return fail(error, s, "must be a file of at most 16 MiB");
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || st.st_mode & (S_IWGRP | S_IWOTH))
		return fail(error, s, "must belong to you or to root, and only its owner may be able to write it");
	if (!g_file_get_contents(real, ret, ret_size, &failure))
		return fail(error, s, "%s", failure->message);
	return true;
}

static bool take_baseline(struct maker *m, enum policy_layer layer, GError **error)
{
	const struct policy_setting *s = setting_of(m->policy, layer, "baseline");
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;
	gsize size;

	if (!s)
		return true;
	if (!read_trusted(m, s, &text, &size, error))
		return false;
	if (!m->config->baseline)
		m->config->baseline = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	lines = g_strsplit(text, "\n", -1);
	for (char **l = lines; *l; l++) {
		g_strdelimit(g_strchug(*l), " \t\r#", '\0');
		if (**l)
			g_hash_table_add(m->config->baseline, g_strdup(*l));
	}
	return true;
}

/* Life */

static void pattern_free(void *p)
{
	pattern_unref(p);
}

static bool take_allow(struct maker *m, enum policy_layer layer, GPtrArray **list, GError **error)
{
	if (!setting_of(m->policy, layer, "allow"))
		return true;
	*list = g_ptr_array_new_with_free_func(pattern_free);
	return each_of(m->policy, layer, "allow", add_pattern, *list, error);
}

static bool take_excuses(struct maker *m, GError **error)
{
	struct gate_config *c = m->config;

	for (enum policy_layer layer = POLICY_MANAGED; layer <= POLICY_USER; layer++) {
		if (layer == POLICY_USER && m->managed_secrets)
			break;
		if (!each_of(m->policy, layer, "secret_paths", add_pattern, c->secret_paths, error) ||
		    !each_of(m->policy, layer, "secret_words", add_word, c->secret_words, error) || !take_baseline(m, layer, error))
			return false;
	}
	return true;
}

static bool take_all(struct maker *m, GError **error)
{
	struct gate_config *c = m->config;

	for (int layer = 0; layer < POLICY_LAYERS; layer++)
		if (!each_of(m->policy, layer, "review", add_pattern, c->review, error))
			return false;
	return take_checks(m, error) && take_allow(m, POLICY_MANAGED, &c->allow[0], error) && take_allow(m, POLICY_USER, &c->allow[1], error) &&
	       take_excuses(m, error) && take_limits(m, error) && take_test(m, error);
}

struct gate_config *gate_config_new(const struct policy *p, const char *workspace, GError **error)
{
	struct gate_config *c = g_new0(struct gate_config, 1);
	struct maker m = { .policy = p, .workspace = workspace, .config = c };

	c->review = g_ptr_array_new_with_free_func(pattern_free);
	c->secret_paths = g_ptr_array_new_with_free_func(pattern_free);
	c->secret_words = g_ptr_array_new_with_free_func(g_free);
	if (take_all(&m, error))
		return c;
	gate_config_free(c);
	return NULL;
}

void gate_config_free(struct gate_config *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < G_N_ELEMENTS(c->allow); i++)
		g_clear_pointer(&c->allow[i], g_ptr_array_unref);
	g_ptr_array_unref(c->review);
	g_ptr_array_unref(c->secret_paths);
	g_ptr_array_unref(c->secret_words);
	g_clear_pointer(&c->baseline, g_hash_table_unref);
	g_free(c->test);
	g_free(c);
}

/* Matching */

static bool match_one(GPtrArray *patterns, const char *path, size_t len, bool is_dir, bool unsure)
{
	struct pattern_subject s;
	bool found = false;

	pattern_subject_init(&s, path, len, is_dir);
	for (unsigned i = 0; i < patterns->len && !found; i++) {
		enum pattern_result r = pattern_match(patterns->pdata[i], &s);

		found = r == PATTERN_YES || (r == PATTERN_UNSURE && unsure);
	}
	pattern_subject_clear(&s);
	return found;
}

bool gate_patterns_match(GPtrArray *patterns, const char *path, bool is_dir, bool unsure)
{
	if (patterns->len == 0)
		return false;
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		if (match_one(patterns, path, slash - path, true, unsure))
			return true;
	return match_one(patterns, path, strlen(path), is_dir, unsure);
}
