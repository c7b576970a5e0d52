/* SPDX-License-Identifier: MIT */
#include "rules/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "rules/glob.h"
#include "rules/policy_error.h"
#include "rules/regex_literal.h"

/*
 * What one match may cost. A path has at most a few thousand bytes and an honest expression takes some steps per byte; the limit is
 * reached by those that backtrack exponentially, after about a millisecond.
 */
#define MATCH_LIMIT 100000
#define DEPTH_LIMIT 10000
#define HEAP_LIMIT_KIB 4096
#define JIT_STACK_MIN (32 * 1024)
#define JIT_STACK_MAX (512 * 1024)

#define STRAY_BYTE_BASE 0x10ff00u

struct pattern {
	gatomicrefcount refs;
	char *text;
	bool nocase;
	bool ascii_shape;  /* a nocase glob whose shape answers for ASCII paths */
	struct glob *glob; /* NULL for re: */
	pcre2_code *code;  /* NULL where the glob's shape always answers */
	char *literal;
};

GQuark policy_error_quark(void)
{
	return g_quark_from_static_string("sbxfs-policy-error");
}

/* Stray bytes */

/* @s in UTF-8 whatever its bytes; NULL when it is UTF-8 as it stands. */
static char *make_utf8(const char *s, size_t len, size_t *ret_len)
{
	const char *p = s, *end = s + len, *bad;
	GString *out;
	char buf[6];

	if (g_utf8_validate_len(s, len, NULL))
		return NULL;
	out = g_string_sized_new(len + 16);
	while (!g_utf8_validate_len(p, (size_t)(end - p), &bad)) {
		g_string_append_len(out, p, bad - p);
		g_string_append_len(out, buf, g_unichar_to_utf8(STRAY_BYTE_BASE + (unsigned char)*bad, buf));
		p = bad + 1;
	}
	g_string_append_len(out, p, end - p);
	*ret_len = out->len;
	return g_string_free(out, FALSE);
}

static bool is_ascii(const char *s, size_t len)
{
	unsigned char any = 0;

	for (size_t i = 0; i < len; i++)
		any |= (unsigned char)s[i];
	return any < 0x80;
}

void pattern_subject_init(struct pattern_subject *s, const char *path, size_t len, bool is_dir)
{
	const char *slash = memrchr(path, '/', len);

	*s = (struct pattern_subject){
		.path = path,
		.len = len,
		.name = slash ? slash + 1 : path,
		.is_dir = is_dir,
		.is_ascii = is_ascii(path, len),
	};
}

void pattern_subject_clear(struct pattern_subject *s)
{
	if (s->text != s->path)
		g_free(s->text);
}

static void subject_need_text(struct pattern_subject *s)
{
	if (s->text)
		return;
	s->text = s->is_ascii ? NULL : make_utf8(s->path, s->len, &s->text_len);
	if (!s->text) {
		s->text = (char *)s->path;
		s->text_len = s->len;
	}
}

/* Compiling */

static pcre2_code *compile(const char *regex, bool nocase, GError **error)
{
	uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C |
			   PCRE2_NO_UTF_CHECK | (nocase ? PCRE2_CASELESS : 0);
	size_t len = strlen(regex), offset = 0;
	g_autofree char *utf8 = make_utf8(regex, len, &len);
	pcre2_code *code;
	int rc = 0;

	code = pcre2_compile((PCRE2_SPTR)(utf8 ? utf8 : regex), len, options, &rc, &offset, NULL);
	if (!code) {
		PCRE2_UCHAR words[160] = "";

		pcre2_get_error_message(rc, words, sizeof(words));
		g_set_error(error, POLICY_ERROR, POLICY_ERROR_PATTERN, "%s at character %zu", (const char *)words,
			    (size_t)g_utf8_strlen(utf8 ? utf8 : regex, (gssize)offset) + 1);
		return NULL;
	}
	/* Without it (no JIT here, or no executable memory) the interpreter does the work. */
	pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
	return code;
}

/*
 * Letters that have a case variant outside ASCII (K: the Kelvin sign, s: the long s) and all others outside ASCII are not in
 * a literal of a nocase pattern, since the index compares ASCII only.
 */
static char *literal_for_nocase(const char *literal)
{
	const char *best = literal, *p = literal;
	size_t best_len = 0;

	while (*p) {
		size_t n = 0;

		while (p[n] && (unsigned char)p[n] < 0x80 && !strchr("kKsS", p[n]))
			n++;
		if (n > best_len) {
			best = p;
			best_len = n;
		}
		p += n + (p[n] != '\0');
	}
	return g_strndup(best, best_len);
}

static bool glob_is_ascii(const struct glob *g)
{
	return (!g->first || is_ascii(g->first, strlen(g->first))) && (!g->second || is_ascii(g->second, strlen(g->second)));
}

static bool pattern_compile(struct pattern *p, GError **error)
{
	g_autofree char *literal = NULL;

	if (g_str_has_prefix(p->text, "re:")) {
		if (!p->text[3]) {
			g_set_error_literal(error, POLICY_ERROR, POLICY_ERROR_PATTERN, "an empty regular expression");
			return false;
		}
		p->code = compile(p->text + 3, p->nocase, error);
		if (!p->code)
			return false;
		literal = regex_literal(p->text + 3);
	} else {
		p->glob = glob_new(p->text, error);
		if (!p->glob)
			return false;
		p->ascii_shape = p->nocase && p->glob->shape != GLOB_REGEX && glob_is_ascii(p->glob);
		if (p->glob->shape == GLOB_REGEX || (p->nocase && p->glob->shape != GLOB_ALL)) {
			p->code = compile(p->glob->regex, p->nocase, error);
			if (!p->code)
				return false;
		}
		literal = g_strdup(p->glob->literal);
	}
	p->literal = p->nocase ? literal_for_nocase(literal) : g_steal_pointer(&literal);
	return true;
}

struct pattern *pattern_new(const char *text, bool nocase, GError **error)
{
	struct pattern *p;

	if (strlen(text) > PATTERN_MAX) {
		g_set_error(error, POLICY_ERROR, POLICY_ERROR_PATTERN,
			    "a pattern of %zu bytes is too long (at most %d): \"%.40s...\"", strlen(text), PATTERN_MAX, text);
		return NULL;
	}
	p = g_new0(struct pattern, 1);
	g_atomic_ref_count_init(&p->refs);
	p->text = g_strdup(text);
	p->nocase = nocase;
	if (!pattern_compile(p, error)) {
		g_prefix_error(error, "bad pattern \"%s\": ", text);
		pattern_unref(p);
		return NULL;
	}
	return p;
}

struct pattern *pattern_ref(struct pattern *p)
{
	g_atomic_ref_count_inc(&p->refs);
	return p;
}

void pattern_unref(struct pattern *p)
{
	if (!p || !g_atomic_ref_count_dec(&p->refs))
		return;
	glob_free(p->glob);
	pcre2_code_free(p->code);
	g_free(p->literal);
	g_free(p->text);
	g_free(p);
}

const char *pattern_text(const struct pattern *p)
{
	return p->text;
}

bool pattern_is_nocase(const struct pattern *p)
{
	return p->nocase;
}

const char *pattern_literal(const struct pattern *p, bool *ret_in_name)
{
	*ret_in_name = p->glob && p->glob->in_name;
	return p->literal;
}

/* Matching */

/* What pcre2_match() needs besides the code. One per thread. */
struct scratch {
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
};

static void scratch_free(void *p)
{
	struct scratch *s = p;

	pcre2_jit_stack_free(s->stack);
	pcre2_match_context_free(s->context);
	pcre2_match_data_free(s->data);
	g_free(s);
}

static GPrivate thread_scratch = G_PRIVATE_INIT(scratch_free);

static struct scratch *scratch_get(void)
{
	struct scratch *s = g_private_get(&thread_scratch);

	if (s)
		return s;
	s = g_new0(struct scratch, 1);
	s->data = pcre2_match_data_create(1, NULL);
	s->context = pcre2_match_context_create(NULL);
	s->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, NULL);
	if (s->context) {
		pcre2_set_match_limit(s->context, MATCH_LIMIT);
		pcre2_set_depth_limit(s->context, DEPTH_LIMIT);
		pcre2_set_heap_limit(s->context, HEAP_LIMIT_KIB);
		if (s->stack)
			pcre2_jit_stack_assign(s->context, NULL, s->stack);
	}
	g_private_set(&thread_scratch, s);
	return s;
}

static enum pattern_result run(const pcre2_code *code, const char *text, size_t len)
{
	struct scratch *s = scratch_get();
	int rc;

	if (!s->data || !s->context) /* out of memory; without the limits it may not run */
		return PATTERN_UNSURE;
	rc = pcre2_match(code, (PCRE2_SPTR)text, len, 0, PCRE2_NO_UTF_CHECK, s->data, s->context);
	if (rc >= 0)
		return PATTERN_YES;
	return rc == PCRE2_ERROR_NOMATCH ? PATTERN_NO : PATTERN_UNSURE;
}

enum pattern_result pattern_match(const struct pattern *p, struct pattern_subject *s)
{
	const struct glob *g = p->glob;
	const char *slash;

	if (g) {
		if (g->shape == GLOB_ALL)
			return PATTERN_YES;
		if (s->len == 0 || (g->dir_only && !s->is_dir))
			return PATTERN_NO;
		if (!p->code || (p->ascii_shape && s->is_ascii))
			return glob_shape_matches(g, s->path, s->len, s->name, p->nocase) ? PATTERN_YES : PATTERN_NO;
	}
	subject_need_text(s);
	if (!g || !g->in_name)
		return run(p->code, s->text, s->text_len);
	slash = memrchr(s->text, '/', s->text_len);
	slash = slash ? slash + 1 : s->text;
	return run(p->code, slash, s->text_len - (size_t)(slash - s->text));
}

enum pattern_below pattern_match_below(const struct pattern *p, const char *path, size_t len)
{
	if (!p->glob)
		return PATTERN_BELOW_MAYBE;
	switch (glob_match_below(p->glob, path, len, p->nocase)) {
	case GLOB_BELOW_NEVER:
		return PATTERN_BELOW_NEVER;
	case GLOB_BELOW_NAMED:
		return PATTERN_BELOW_NAMED;
	default:
		return PATTERN_BELOW_MAYBE;
	}
}
