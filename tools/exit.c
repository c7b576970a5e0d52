/* SPDX-License-Identifier: MIT */
#include "tools/exit.h"

#include <errno.h>
#include <gio/gio.h>
#include <stdarg.h>
#include <stdio.h>

#include "fs/control.h"
#include "fs/mount.h"
#include "rules/policy_error.h"
#include "snapshot/git_commit.h"
#include "snapshot/audit_writer.h"
#include "snapshot/store.h"
#include "tools/output.h"

static const struct exit_meaning meanings[] = {
	{ EXIT_DONE, "done", "done" },
	{ EXIT_DIFFERENCES, "differences", "differences were found (--exit-code), or the gate refused" },
	{ EXIT_USAGE, "usage", "wrong usage: options, arguments, names, a mountpoint that cannot be used" },
	{ EXIT_POLICY, "policy", "policy or configuration error" },
	{ EXIT_REVIEW, "review", "needs a human's review, or the human said no" },
	{ EXIT_CONFLICT, "conflict", "conflict with the workspace" },
	{ EXIT_DIGEST, "digest", "the digest is another than the expected one" },
	{ EXIT_NOT_FOUND, "not-found", "not found" },
	{ EXIT_BUSY, "busy", "busy, or in the way of something that must not be lost" },
	{ EXIT_NO_SPACE, "no-space", "no space or quota left" },
	{ EXIT_PLATFORM, "platform", "the platform lacks something" },
	{ EXIT_INTERNAL, "internal", "internal error" },
	{ 0, NULL, NULL },
};

const struct exit_meaning *exit_meanings(void)
{
	return meanings;
}

/* The path travels with the error, so that a JSON error can name it apart from the sentence. */
typedef struct {
	char *path;
} ToolErrorPrivate;

static void tool_error_private_init(ToolErrorPrivate *p)
{
	p->path = NULL;
}

static void tool_error_private_copy(const ToolErrorPrivate *from, ToolErrorPrivate *to)
{
	to->path = g_strdup(from->path);
}

static void tool_error_private_clear(ToolErrorPrivate *p)
{
	g_free(p->path);
}

G_DEFINE_EXTENDED_ERROR(ToolError, tool_error)

static void tool_error_set(GError **error, enum exit_code code, const char *path, const char *message)
{
	if (!error)
		return;
	*error = g_error_new_literal(TOOL_ERROR, code, message);
	tool_error_get_private(*error)->path = g_strdup(path);
}

void tool_error(GError **error, enum exit_code code, const char *path, const char *format, ...)
{
	g_autofree char *message = NULL;
	va_list args;

	va_start(args, format);
	message = g_strdup_vprintf(format, args);
	va_end(args);
	tool_error_set(error, code, path, message);
}

static enum exit_code code_of_errno(int e)
{
	switch (e) {
	case ENOENT:
	case ENOTDIR:
		return EXIT_NOT_FOUND;
	/* What the user gave is closed to him, or no place for this. */
	case EACCES:
	case EPERM:
	case EROFS:
	case ENAMETOOLONG:
		return EXIT_USAGE;
	case EBUSY:
	case EAGAIN:
	case ENOTCONN:
		return EXIT_BUSY;
	case ENOSPC:
	case EDQUOT:
		return EXIT_NO_SPACE;
	case ENOSYS:
	case EOPNOTSUPP:
		return EXIT_PLATFORM;
	default:
		return EXIT_INTERNAL;
	}
}

void tool_error_errno(GError **error, int negative_errno, const char *path, const char *format, ...)
{
	g_autofree char *message = NULL;
	g_autofree char *whole = NULL;
	va_list args;

	va_start(args, format);
	message = g_strdup_vprintf(format, args);
	va_end(args);
	whole = g_strdup_printf("%s: %s", message, g_strerror(-negative_errno));
	tool_error_set(error, code_of_errno(-negative_errno), path, whole);
}

static enum exit_code code_of_store(int code)
{
	switch (code) {
	case STORE_ERROR_NOT_FOUND:
		return EXIT_NOT_FOUND;
	case STORE_ERROR_BUSY:
		return EXIT_BUSY;
	case STORE_ERROR_NO_SPACE:
		return EXIT_NO_SPACE;
	case STORE_ERROR_EXISTS:
	case STORE_ERROR_DENIED:
		return EXIT_USAGE;
	case STORE_ERROR_SCHEMA:
		return EXIT_POLICY;
	default:
		return EXIT_INTERNAL;
	}
}

static enum exit_code code_of_audit(int code)
{
	switch (code) {
	case AUDIT_ERROR_BUSY:
		return EXIT_BUSY;
	case AUDIT_ERROR_VERSION:
		return EXIT_POLICY;
	case AUDIT_ERROR_NO_SPACE:
		return EXIT_NO_SPACE;
	default:
		return EXIT_INTERNAL;
	}
}

static enum exit_code code_of_control(int code)
{
	switch (code) {
	case CONTROL_ERROR_NOT_FOUND:
		return EXIT_NOT_FOUND;
	case CONTROL_ERROR_EXISTS:
		return EXIT_USAGE;
	case CONTROL_ERROR_BUSY:
	case CONTROL_ERROR_GONE:
		return EXIT_BUSY;
	case CONTROL_ERROR_NO_SPACE:
		return EXIT_NO_SPACE;
	default:
		return EXIT_INTERNAL;
	}
}

static enum exit_code code_of_mount(int code)
{
	switch (code) {
	case MOUNT_ERROR_BUSY:
		return EXIT_BUSY;
	case MOUNT_ERROR_PLATFORM:
		return EXIT_PLATFORM;
	case MOUNT_ERROR_MOUNTPOINT:
	case MOUNT_ERROR_OPTION:
		return EXIT_USAGE;
	case MOUNT_ERROR_POLICY:
		return EXIT_POLICY;
	default:
		return EXIT_INTERNAL;
	}
}

static enum exit_code code_of_io(int code)
{
	switch (code) {
	case G_IO_ERROR_NOT_FOUND:
	case G_IO_ERROR_NOT_DIRECTORY:
		return EXIT_NOT_FOUND;
	case G_IO_ERROR_BUSY:
		return EXIT_BUSY;
	case G_IO_ERROR_NO_SPACE:
		return EXIT_NO_SPACE;
	case G_IO_ERROR_NOT_SUPPORTED:
		return EXIT_PLATFORM;
	default:
		return EXIT_INTERNAL;
	}
}

static enum exit_code code_of_file(int code)
{
	switch (code) {
	case G_FILE_ERROR_NOENT:
	case G_FILE_ERROR_NOTDIR:
		return EXIT_NOT_FOUND;
	case G_FILE_ERROR_NOSPC:
		return EXIT_NO_SPACE;
	default:
		return EXIT_INTERNAL;
	}
}

static enum exit_code code_of_git(int code)
{
	switch (code) {
	case GIT_COMMIT_ERROR_REPOSITORY:
		return EXIT_NOT_FOUND;
	case GIT_COMMIT_ERROR_REQUEST:
		return EXIT_USAGE;
	case GIT_COMMIT_ERROR_BRANCH:
		return EXIT_BUSY;
	case GIT_COMMIT_ERROR_FILTER:
		return EXIT_PLATFORM;
	default:
		return EXIT_INTERNAL;
	}
}

enum exit_code exit_code_of(const GError *error)
{
	if (error->domain == TOOL_ERROR)
		return error->code;
	if (error->domain == G_OPTION_ERROR)
		return EXIT_USAGE;
	if (error->domain == POLICY_ERROR)
		return EXIT_POLICY;
	if (error->domain == STORE_ERROR)
		return code_of_store(error->code);
	if (error->domain == GIT_COMMIT_ERROR)
		return code_of_git(error->code);
	if (error->domain == AUDIT_ERROR)
		return code_of_audit(error->code);
	if (error->domain == CONTROL_ERROR)
		return code_of_control(error->code);
	if (error->domain == MOUNT_ERROR)
		return code_of_mount(error->code);
	if (error->domain == G_IO_ERROR)
		return code_of_io(error->code);
	if (error->domain == G_FILE_ERROR)
		return code_of_file(error->code);
	return EXIT_INTERNAL;
}

static const char *name_of(enum exit_code code)
{
	for (const struct exit_meaning *m = meanings; m->name; m++)
		if (m->code == code)
			return m->name;
	return "internal";
}

static void report_json(const GError *error, enum exit_code code)
{
	const char *path = error->domain == TOOL_ERROR ? tool_error_get_private(error)->path : NULL;
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "code", name_of(code));
	json_add_string(&b, "message", error->message);
	if (path)
		json_add_path(&b, "path", path);
	json_print(stderr, g_variant_new_parsed("{'error': <%@a{sv}>}", g_variant_builder_end(&b)));
}

enum exit_code exit_report(const GError *error, const char *program, bool as_json)
{
	g_autofree char *plain = text_plain(error->message);
	enum exit_code code = exit_code_of(error);

	fflush(stdout);
	if (as_json)
		report_json(error, code);
	else
		fprintf(stderr, "%s: %s\n", program, plain);
	return code;
}
