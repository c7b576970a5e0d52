/* SPDX-License-Identifier: MIT */
#include "tools/output.h"

#include <errno.h>
#include <fcntl.h>
#include <json-glib/json-glib.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/exit.h"

static enum output_level output_level = OUTPUT_NORMAL;
static pid_t pager_pid; /* 0 = none */
static int output_error; /* of standard output, the first */

void output_set_level(enum output_level level)
{
	output_level = level;
}

bool output_goes_on(void)
{
	if (ferror(stdout) && !output_error)
		output_error = errno;
	return !output_error;
}

G_GNUC_PRINTF(1, 0)
static void output_line(const char *format, va_list args)
{
	g_autofree char *text = g_strdup_vprintf(format, args), *plain = text_plain(text);

	/* Where both streams are one terminal, the answer so far comes first. */
	if (fflush(stdout) != 0)
		output_goes_on();
	fprintf(stderr, "%s\n", plain);
}

void output_note(const char *format, ...)
{
	va_list args;

	if (output_level < OUTPUT_NORMAL)
		return;
	va_start(args, format);
	output_line(format, args);
	va_end(args);
}

void output_detail(const char *format, ...)
{
	va_list args;

	if (output_level < OUTPUT_VERBOSE)
		return;
	va_start(args, format);
	output_line(format, args);
	va_end(args);
}

/* The pager */

static void pager_exec(int fd)
{
	const char *pager = g_getenv("PAGER");

	dup2(fd, STDIN_FILENO);
	setenv("LESS", "FRX", 0);
	signal(SIGPIPE, SIG_DFL);
	execlp("sh", "sh", "-c", pager ? pager : "less", (char *)NULL);
	_exit(127);
}

static bool terminal_is_dumb(void)
{
	const char *term = g_getenv("TERM");

	return !term || g_str_equal(term, "dumb");
}

/* $PAGER may be empty or cat, which is to say none; less by itself would only complain about a dumb terminal. */
static bool wants_pager(void)
{
	const char *pager = g_getenv("PAGER");
	g_autofree char *less = pager ? NULL : g_find_program_in_path("less");

	if (!isatty(STDOUT_FILENO))
		return false;
	return pager ? *pager && !g_str_equal(pager, "cat") : less && !terminal_is_dumb();
}

void output_pager(void)
{
	int fds[2];

	if (!wants_pager())
		return;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	fflush(stdout);
	pager_pid = fork();
	if (pager_pid == 0)
		pager_exec(fds[0]);
	if (pager_pid > 0)
		dup2(fds[1], STDOUT_FILENO);
	else
		pager_pid = 0;
	close(fds[0]);
	close(fds[1]);
}

/* An error of an earlier write has left its mark on the stream, but errno is by now another's; of a pipe, poll(2) still knows. */
static int output_failure(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	if (fflush(stdout) != 0 && !output_error)
		output_error = errno;
	if (!output_error && ferror(stdout))
		output_error = poll(&out, 1, 0) == 1 && out.revents & POLLERR ? EPIPE : EIO;
	return output_error;
}

bool output_finish(GError **error)
{
	int failed = output_failure();

	if (pager_pid > 0) {
		fclose(stdout);
		while (waitpid(pager_pid, NULL, 0) < 0 && errno == EINTR)
			;
		pager_pid = 0;
	}
	if (!failed || failed == EPIPE)
		return true;
	tool_error_errno(error, -failed, NULL, "standard output");
	return false;
}

bool output_has_color(int fd)
{
	const char *no_color = g_getenv("NO_COLOR");

	return isatty(fd) && !(no_color && *no_color) && !terminal_is_dumb();
}

/* Colours */

const char *output_line_color(char kind)
{
	return kind == '+' ? "\033[32m" : kind == '-' ? "\033[31m" : kind == '@' ? "\033[36m" : NULL;
}

struct patch_colorer {
	FILE *out;
	GString *line;
	/* Lines of the present hunk still to come: only inside one is + and - an addition or a deletion. */
	long old_left;
	long new_left;
};

struct patch_colorer *patch_colorer_new(FILE *out)
{
	struct patch_colorer *p = g_new0(struct patch_colorer, 1);

	p->out = out;
	p->line = g_string_new(NULL);
	return p;
}

/* Of "12,3" or "12". */
/* Reads "LINE" or "LINE,COUNT" and returns what is behind it. */
static const char *hunk_count(const char *text, long *ret_count)
{
	text += strspn(text, "0123456789");
	*ret_count = 1;
	if (*text == ',')
		*ret_count = strtol(++text, NULL, 10);
	return text + strspn(text, "0123456789");
}

static void hunk_start(struct patch_colorer *p, const char *line)
{
	const char *at = hunk_count(line + strlen("@@ -"), &p->old_left);

	at = strchr(at, '+');
	p->new_left = 0;
	if (at)
		hunk_count(at + 1, &p->new_left);
}

static const char *line_color(struct patch_colorer *p, const char *line)
{
	if (p->old_left > 0 || p->new_left > 0) {
		p->old_left -= *line != '+' && *line != '\\';
		p->new_left -= *line != '-' && *line != '\\';
		return output_line_color(*line == '@' ? ' ' : *line);
	}
	if (g_str_has_prefix(line, "@@ -")) {
		hunk_start(p, line);
		return output_line_color('@');
	}
	return *line == '\\' ? NULL : "\033[1m";
}

static void patch_colorer_line(struct patch_colorer *p)
{
	const char *color;
	bool newline = p->line->len > 0 && p->line->str[p->line->len - 1] == '\n';

	if (p->line->len == 0)
		return;
	color = line_color(p, p->line->str);
	if (color)
		fputs(color, p->out);
	fwrite(p->line->str, 1, p->line->len - newline, p->out);
	fputs(color ? COLOR_END : "", p->out);
	fputs(newline ? "\n" : "", p->out);
	g_string_truncate(p->line, 0);
}

void patch_colorer_write(struct patch_colorer *p, const char *data, size_t size)
{
	while (size > 0) {
		const char *end = memchr(data, '\n', size);
		size_t n = end ? (size_t)(end - data) + 1 : size;

		g_string_append_len(p->line, data, n);
		if (end)
			patch_colorer_line(p);
		data += n;
		size -= n;
	}
}

void patch_colorer_free(struct patch_colorer *p)
{
	patch_colorer_line(p);
	g_string_free(p->line, TRUE);
	g_free(p);
}

/* JSON */

void json_add(GVariantBuilder *b, const char *key, GVariant *value)
{
	g_variant_builder_add(b, "{sv}", key, value);
}

void json_add_string(GVariantBuilder *b, const char *key, const char *value)
{
	g_autofree char *valid = value ? g_utf8_make_valid(value, -1) : NULL;

	json_add(b, key, valid ? g_variant_new_string(valid) : g_variant_new_maybe(G_VARIANT_TYPE_STRING, NULL));
}

void json_add_int(GVariantBuilder *b, const char *key, int64_t value)
{
	json_add(b, key, g_variant_new_int64(value));
}

void json_add_bool(GVariantBuilder *b, const char *key, bool value)
{
	json_add(b, key, g_variant_new_boolean(value));
}

void json_add_path(GVariantBuilder *b, const char *key, const char *path)
{
	g_autofree char *encoded = NULL;
	g_autofree char *encoded_key = NULL;

	json_add_string(b, key, path);
	if (!path || g_utf8_validate(path, -1, NULL))
		return;
	encoded = g_base64_encode((const guchar *)path, strlen(path));
	encoded_key = g_strconcat(key, "_b64", NULL);
	json_add_string(b, encoded_key, encoded);
}

void json_print(FILE *out, GVariant *value)
{
	g_autoptr(GVariant) owned = g_variant_ref_sink(value);
	g_autofree char *text = json_gvariant_serialize_data(owned, NULL);

	fprintf(out, "%s\n", text);
}

/* Words */

char *text_plain(const char *text)
{
	GString *plain = g_string_new(NULL);

	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		/* The second half of the control characters is two bytes long in UTF-8. */
		if (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) {
			g_string_append_printf(plain, "\\%03o\\%03o", p[0], p[1]);
			p++;
		} else if (*p < 0x20 || *p == 0x7f) {
			g_string_append_printf(plain, "\\%03o", *p);
		} else {
			g_string_append_c(plain, (char)*p);
		}
	}
	return g_string_free(plain, FALSE);
}

char *text_time(int64_t ns)
{
	g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(ns / (1000 * 1000 * 1000));

	return time ? g_date_time_format_iso8601(time) : g_strdup("?");
}

char *text_size(uint64_t bytes)
{
	return g_format_size(bytes);
}
