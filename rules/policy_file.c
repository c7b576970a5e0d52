/* SPDX-License-Identifier: MIT */
#include "rules/policy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rules/policy_error.h"

char *policy_file_read(const char *path, bool follow, size_t *ret_len, GError **error)
{
	g_autofree char *text = NULL;
	const char *why = NULL;
	struct stat st;
	size_t len = 0;
	ssize_t n = 1;
	int fd;

	/* O_NONBLOCK: a fifo must not hold us up before we see that it is one. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW));
	if (fd < 0) {
		g_set_error(error, POLICY_ERROR, errno == ENOENT ? POLICY_ERROR_NOT_FOUND : POLICY_ERROR_UNREADABLE,
			    "%s: cannot be read: %s", path,
			    errno == ELOOP && !follow ? "it is a symbolic link; put a file there" : g_strerror(errno));
		return NULL;
	}
	if (fstat(fd, &st) < 0)
		why = g_strerror(errno);
	else if (!S_ISREG(st.st_mode))
		why = "it is not a regular file";
	text = g_malloc(POLICY_FILE_MAX + 2);
	while (!why && n > 0 && len <= POLICY_FILE_MAX) {
		n = read(fd, text + len, POLICY_FILE_MAX + 1 - len);
		if (n > 0)
			len += (size_t)n;
		else if (n < 0 && errno != EINTR)
			why = g_strerror(errno);
		else if (n < 0)
			n = 1;
	}
	close(fd);
	if (!why && len > POLICY_FILE_MAX)
		why = "it is larger than 1 MiB; split it and use \"extends\"";
	if (why) {
		g_set_error(error, POLICY_ERROR, POLICY_ERROR_UNREADABLE, "%s: cannot be read: %s", path, why);
		return NULL;
	}
	text[len] = '\0';
	*ret_len = len;
	return g_realloc(g_steal_pointer(&text), len + 1);
}

/* Parsing */

struct parser {
	const char *name; /* of the file */
	const char *next; /* what inih has not asked for yet */
	const char *end;
	unsigned line; /* of the line that inih has now */
	char *note;
	policy_file_func func;
	void *user;
	GError *error;
};

static void set_inih_up(void)
{
	static size_t done;

	if (!g_once_init_enter(&done))
		return;
	ini_allow_multiline = false;
	ini_allow_inline_comments = false;
	ini_allow_no_value = false;
	ini_allow_bom = true;
	ini_stop_on_first_error = true;
	ini_use_stack = false;
	ini_max_line = POLICY_LINE_MAX + 3; /* it wants room for \r, \n and \0 */
	ini_initial_alloc = ini_max_line;
	g_once_init_leave(&done, 1);
}

G_GNUC_PRINTF(2, 3) static bool fail(struct parser *p, const char *format, ...)
{
	g_autofree char *message = NULL;
	va_list args;

	if (p->error)
		return false;
	va_start(args, format);
	message = g_strdup_vprintf(format, args);
	va_end(args);
	g_set_error(&p->error, POLICY_ERROR, POLICY_ERROR_SYNTAX, "%s:%u: %s", p->name, p->line, message);
	return false;
}

static bool pass_on(struct parser *p, struct policy_file_item item)
{
	bool ok;

	item.note = p->note;
	item.line = p->line;
	ok = p->func(&item, p->user, &p->error);
	g_clear_pointer(&p->note, g_free);
	return ok;
}

static bool check_section(struct parser *p, const char *s)
{
	const char *close = strchr(s, ']');
	g_autofree char *section = NULL;

	if (!close)
		return fail(p, "a section has no \"]\"");
	if (close[1])
		return fail(p, "text behind a section's \"]\"; comments need a line of their own");
	section = g_strndup(s + 1, (gsize)(close - s - 1));
	if (strlen(section) > POLICY_NAME_MAX)
		return fail(p, "a section of %zu bytes is too long (at most %d): \"%.60s...\"", strlen(section), POLICY_NAME_MAX,
			    section);
	return pass_on(p, (struct policy_file_item){ .section = section });
}

static bool check_key(struct parser *p, const char *s)
{
	size_t key = strcspn(s, "=:");
	const char *value = s + key;

	if (!*value)
		return fail(p, "a line without \"=\": \"%.60s\"; a long list is written as several lines with the same key", s);
	while (key > 0 && g_ascii_isspace(s[key - 1]))
		key--;
	if (key == 0)
		return fail(p, "a line without a key before its \"%c\"", *value);
	if (key > POLICY_NAME_MAX)
		return fail(p, "a key of %zu bytes is too long (at most %d): \"%.60s...\"", key, POLICY_NAME_MAX, s);
	if (strlen(value) > POLICY_VALUE_MAX)
		return fail(p, "a value of more than %d bytes is too long; write several lines with the same key",
			    POLICY_VALUE_MAX);
	return true;
}

/* Whatever is wrong or would be changed in @line (of @len bytes, without its end) is found here. */
static bool check_line(struct parser *p, const char *line, size_t len)
{
	g_autofree char *s = NULL;

	if (len > POLICY_LINE_MAX)
		return fail(p, "a line of %zu bytes is too long (at most %d)", len, POLICY_LINE_MAX);
	if (memchr(line, '\0', len))
		return fail(p, "a NUL byte; this is not a text file");
	if (p->line == 1 && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
		line += 3;
		len -= 3;
	}
	s = g_strstrip(g_strndup(line, len));
	if (g_str_has_prefix(s, ";@")) {
		g_free(p->note);
		p->note = g_strdup(g_strchug(s + 2));
		return true;
	}
	if (*s == '[' || !*s || *s == ';' || *s == '#') {
		g_clear_pointer(&p->note, g_free);
		return *s == '[' ? check_section(p, s) : true;
	}
	return check_key(p, s);
}

/* inih asks for its next line. NULL is the end, also after an error. */
static char *give_line(char *buf, int size, void *stream)
{
	struct parser *p = stream;
	const char *eol;
	size_t len;

	if (p->error || p->next >= p->end)
		return NULL;
	eol = memchr(p->next, '\n', (size_t)(p->end - p->next));
	len = (size_t)((eol ? eol : p->end) - p->next);
	p->line++;
	if (!check_line(p, p->next, len))
		return NULL;
	if (len + 2 > (size_t)size) {
		fail(p, "a line of %zu bytes is too long for this inih (%d)", len, size);
		return NULL;
	}
	memcpy(buf, p->next, len);
	strcpy(buf + len, "\n");
	p->next = eol ? eol + 1 : p->end;
	return buf;
}

static int take_key(void *user, const char *section, const char *key, const char *value)
{
	struct parser *p = user;

	if (p->error)
		return 0;
	return pass_on(p, (struct policy_file_item){ .section = section, .key = key, .value = value });
}

/* inih hands one pointer to the reader and another to the handler; here they are the same. */
bool policy_file_parse(const char *text, size_t len, const char *name, policy_file_func func, void *user, GError **error)
{
	struct parser p = { .name = name, .next = text, .end = text + len, .func = func, .user = user };
	int rc;

	set_inih_up();
	rc = ini_parse_stream(give_line, &p, take_key, &p);
	g_free(p.note);
	if (rc != 0 && !p.error)
		fail(&p, rc > 0 ? "this line is neither [section] nor key = value" : "out of memory");
	if (p.error)
		g_propagate_error(error, p.error);
	return !p.error;
}
