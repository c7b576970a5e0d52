/* SPDX-License-Identifier: MIT */

/* check_personal - addresses, phone and card numbers in new lines. An optional check: most projects have addresses in them. */

#include <string.h>

#include "gate/check.h"
#include "gate/scan.h"

#define FILE_MAX 50
#define NUMBER_MAX 40

struct personal {
	struct scan *scan;
	struct gate *gate;
	const struct added *added;
	unsigned found;
};

static bool is_local(uint8_t b)
{
	return g_ascii_isalnum(b) || (b && strchr("._%+-", b));
}

static bool is_domain(uint8_t b)
{
	return g_ascii_isalnum(b) || b == '.' || b == '-';
}

/* Names kept for examples (RFC 2606), and addresses that are no person's. */
static bool is_example(const char *address)
{
	static const char *const domains[] = { "example.com", "example.org", "example.net", ".example", ".test", ".invalid", ".localhost",
					       "localhost", "users.noreply.github.com", "noreply.com", NULL };
	static const char *const names[] = { "noreply@", "no-reply@", "git@", "hg@", "user@", "test@", "support@", "info@", "security@", NULL };
	g_autofree char *lower = g_ascii_strdown(address, -1);

	for (const char *const *d = domains; *d; d++)
		if (g_str_has_suffix(lower, *d))
			return true;
	for (const char *const *n = names; *n; n++)
		if (g_str_has_prefix(lower, *n))
			return true;
	return false;
}

static bool look_email(struct scan *s, const struct scan_view *v, size_t at)
{
	size_t start = at, end = at + 1;
	g_autofree char *address = NULL, *excerpt = NULL;
	const char *dot;

	while (start > 0 && at - start < 64 && is_local(v->data[start - 1]))
		start--;
	while (end < v->size && end - at < 254 && is_domain(v->data[end]))
		end++;
	while (end > at + 1 && !g_ascii_isalpha(v->data[end - 1]))
		end--;
	address = g_strndup((const char *)v->data + start, end - start);
	dot = strrchr(address, '.');
	/* A domain with a top level of letters; "name@2x.png" and "user@host:path" are something else. */
	if (start == at || end - at < 5 || !dot || dot < address + (at - start) || strlen(dot) < 3 || strlen(dot) > 14 ||
	    g_ascii_isdigit(address[at - start + 1]) || is_example(address))
		return true;
	excerpt = g_strdup_printf("%c****@%s", address[0], address + (at - start) + 1);
	return scan_report(s, v, start, end, "email", "an e-mail address", excerpt);
}

static bool is_luhn(const char *digits, size_t n)
{
	unsigned sum = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned d = digits[n - 1 - i] - '0';

		if (i % 2 == 1)
			d = d > 4 ? d * 2 - 9 : d * 2;
		sum += d;
	}
	return sum % 10 == 0;
}

/* The issuers' ranges; and not the numbers that are made of one digit or published for tests. */
static bool is_card(const char *digits, size_t n)
{
	static const char *const tests[] = { "4111111111111111", "4242424242424242", "5555555555554444", "378282246310005", "371449635398431",
					     "6011111111111117", "4012888888881881", "5105105105105100", "4000056655665556", NULL };
	bool visa = digits[0] == '4' && (n == 13 || n == 16 || n == 19);
	bool master = n == 16 && ((digits[0] == '5' && digits[1] >= '1' && digits[1] <= '5') ||
				  (strncmp(digits, "2221", 4) >= 0 && strncmp(digits, "2720", 4) <= 0));
	bool amex = n == 15 && digits[0] == '3' && (digits[1] == '4' || digits[1] == '7');
	bool other = n == 16 && (strncmp(digits, "6011", 4) == 0 || strncmp(digits, "65", 2) == 0 || strncmp(digits, "35", 2) == 0);

	return (visa || master || amex || other) && !g_strv_contains(tests, digits) && is_luhn(digits, n);
}

/* Digits in groups with single blanks or dashes between them, as people write numbers. */
static size_t take_number(const struct scan_view *v, size_t at, char digits[NUMBER_MAX], size_t *ret_n, unsigned *ret_groups)
{
	size_t n = 0, i = at;
	unsigned groups = 1;

	for (; i < v->size && n < NUMBER_MAX - 1; i++) {
		uint8_t b = v->data[i];

		if (g_ascii_isdigit(b)) {
			digits[n++] = (char)b;
			continue;
		}
		if (!b || !strchr(" -./()", b) || i + 1 >= v->size)
			break;
		if (!g_ascii_isdigit(v->data[i + 1]) && !(v->data[i + 1] == '(' || (b == ')' && v->data[i + 1] == ' ')))
			break;
		groups++;
	}
	digits[n] = '\0';
	*ret_n = n;
	*ret_groups = groups;
	return i;
}

static bool look_number(struct scan *s, const struct scan_view *v, size_t at)
{
	char digits[NUMBER_MAX], excerpt[64];
	unsigned groups;
	size_t n, end;
	bool plus = v->data[at] == '+';

	/* Part of a longer number, a hash or a name. */
	if (at > 0 && (g_ascii_isalnum(v->data[at - 1]) || (v->data[at - 1] && strchr("._-+/", v->data[at - 1]))))
		return true;
	end = take_number(v, at + plus, digits, &n, &groups);
	if (end < v->size && (g_ascii_isalnum(v->data[end]) || v->data[end] == '_'))
		return true;
	if (!plus && n >= 13 && n <= 19 && (groups == 1 || groups >= 3) && is_card(digits, n)) {
		g_snprintf(excerpt, sizeof(excerpt), "**** %s", digits + n - 4);
		return scan_report(s, v, at, end, "card-number", "a card number", excerpt);
	}
	/* With the country's code, as E.164 has it; without it any two numbers with a dash would be one. */
	if (plus && n >= 9 && n <= 15 && digits[0] != '0') {
		g_snprintf(excerpt, sizeof(excerpt), "+%.2s****", digits);
		return scan_report(s, v, at, end, "phone", "a phone number", excerpt);
	}
	return true;
}

static void personal_look(struct scan *s, const struct scan_view *v)
{
	bool in_number = false;

	for (size_t at = v->from; at < v->to; at++) {
		uint8_t b = v->data[at];
		bool starts = g_ascii_isdigit(b) || b == '+';
		bool on = true;

		if (b == '@')
			on = look_email(s, v, at);
		else if (starts && !in_number)
			on = look_number(s, v, at);
		in_number = starts;
		if (!on)
			return;
	}
}

static bool on_found(const struct scan_match *m, void *user)
{
	struct personal *p = user;
	struct gate_finding *f;

	if (!added_touches(p->added, m->start, m->end))
		return true;
	f = g_new0(struct gate_finding, 1);
	f->check = GATE_PERSONAL;
	f->level = GATE_REVIEW;
	f->path = g_strdup(p->gate->change->path);
	f->line = m->line;
	f->rule = g_strconcat("personal/", m->rule, NULL);
	f->message = g_strdup_printf("looks like %s", m->what);
	f->excerpt = g_strdup(m->excerpt);
	gate_report_finding(p->gate, f);
	return ++p->found < FILE_MAX;
}

static int personal_change(struct gate *g, const struct change *c, GError **error)
{
	struct personal *p = g->state[GATE_PERSONAL];
	int r;

	if (!gate_is_file(c) || !c->content_changed)
		return 0;
	if (!p) {
		p = g->state[GATE_PERSONAL] = g_new0(struct personal, 1);
		p->gate = g;
		p->scan = scan_new(personal_look, on_found, p);
	}
	p->added = gate_added(g, error);
	if (!p->added)
		return -1;
	if (added_is_none(p->added))
		return 0;
	p->found = 0;
	r = gate_scan_file(p->scan, g->job->to, c->after);
	return r < 0 ? change_error(error, r, "can't read", c->path) : 0;
}

static void personal_clear(struct gate *g)
{
	struct personal *p = g->state[GATE_PERSONAL];

	if (!p)
		return;
	scan_free(p->scan);
	g_free(p);
}

const struct check check_personal = { .name = "personal", .change = personal_change, .clear = personal_clear };
