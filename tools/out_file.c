/* SPDX-License-Identifier: MIT */
#include "tools/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/paths.h"
#include "tools/sandbox.h"

/* By the file system's number, so it does not matter how the place is spelled or what it is reached through. */
static bool lies_in_view(const char *dir, const struct sandbox *s)
{
	struct stat view, there;

	return s->mounted && stat(s->mountpoint, &view) == 0 && stat(dir, &there) == 0 && view.st_dev == there.st_dev;
}

static bool fail(const struct out_file *f, int failure, GError **error)
{
	tool_error_errno(error, failure ? -failure : -EIO, f->path, "cannot write %s", f->path);
	return false;
}

static mode_t usual_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

/* Nothing to replace: a pipe, a terminal, a device. */
static bool open_as_it_is(struct out_file *f, GError **error)
{
	f->stream = fopen(f->path, "we");
	return f->stream || fail(f, errno, error);
}

/* @old: what is there; NULL = nothing. */
static bool open_temporary(struct out_file *f, const struct stat *old, GError **error)
{
	int fd;

	f->temporary = g_strconcat(f->target, ".XXXXXX", NULL);
	fd = mkostemp(f->temporary, O_CLOEXEC);
	if (fd < 0) {
		g_clear_pointer(&f->temporary, g_free);
		return fail(f, errno, error);
	}
	if (fchmod(fd, old ? old->st_mode & 0777 : usual_mode()) < 0)
		g_debug("%s: %s", f->temporary, g_strerror(errno));
	f->stream = fdopen(fd, "w");
	return f->stream || fail(f, errno, error);
}

static bool open_place(struct out_file *f, const struct sandbox *s, GError **error)
{
	g_autofree char *dir = NULL;
	struct stat st;
	bool exists = stat(f->path, &st) == 0;

	if (exists && S_ISDIR(st.st_mode))
		return fail(f, EISDIR, error);
	if (exists && !S_ISREG(st.st_mode))
		return open_as_it_is(f, error);
	f->target = exists ? paths_resolve(f->path) : g_strdup(f->path);
	if (!f->target)
		return fail(f, errno, error);
	dir = g_path_get_dirname(f->target);
	if (!lies_in_view(dir, s))
		return open_temporary(f, exists ? &st : NULL, error);
	tool_error(error, EXIT_USAGE, f->path,
		   "%s lies in the view, where it would be one more change of sandbox %s; name a place outside of %s", f->path,
		   s->name, s->mountpoint);
	return false;
}

static void clear(struct out_file *f)
{
	g_clear_pointer(&f->path, g_free);
	g_clear_pointer(&f->target, g_free);
	g_clear_pointer(&f->temporary, g_free);
	f->stream = NULL;
}

bool out_file_open(struct out_file *f, const char *path, const struct sandbox *s, GError **error)
{
	*f = (struct out_file){ .path = g_strdup(path) };
	if (g_str_equal(path, "-"))
		f->stream = stdout;
	else if (!open_place(f, s, error))
		clear(f);
	return f->stream;
}

void out_file_write(const char *data, size_t size, void *user)
{
	fwrite(data, 1, size, ((struct out_file *)user)->stream);
}

bool out_file_close(struct out_file *f, bool keep, GError **error)
{
	bool ok = fflush(f->stream) == 0 && !ferror(f->stream) && (!f->temporary || fsync(fileno(f->stream)) == 0);
	int failure = errno;

	if (f->stream != stdout && fclose(f->stream) != 0 && ok) {
		failure = errno;
		ok = false;
	}
	if (ok && keep && f->temporary && rename(f->temporary, f->target) < 0) {
		failure = errno;
		ok = false;
	}
	if (f->temporary && !(ok && keep))
		unlink(f->temporary);
	if (!ok)
		fail(f, failure, keep ? error : NULL);
	clear(f);
	return ok;
}
