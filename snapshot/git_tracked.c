/* SPDX-License-Identifier: MIT */
#include "snapshot/git_tracked.h"

#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/git_place.h"

static int read_index(int fd, const char *prefix, git_tracked_fn fn, void *user)
{
	g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
	size_t skip = *prefix ? strlen(prefix) + 1 : 0;
	git_index *index = NULL;
	int r;

	git_libgit2_init();
	r = git_index_open(&index, path);
	for (size_t i = 0; r == 0 && i < git_index_entrycount(index); i++) {
		const char *name = git_index_get_byindex(index, i)->path;

		if (skip == 0 || (strncmp(name, prefix, skip - 1) == 0 && name[skip - 1] == '/'))
			fn(name + skip, user);
	}
	git_index_free(index);
	return r < 0 ? -EIO : 0;
}

int git_tracked_each(const struct lower *l, uint64_t max, git_tracked_fn fn, void *user)
{
	g_auto(git_place_t) place = GIT_PLACE_NONE;
	struct stat st;
	int r = git_place_find(l, &place), fd;

	if (r < 0)
		return r;
	fd = openat(place.gitdir, "index", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		r = -EIO;
	else if ((uint64_t)st.st_size > max)
		r = 1;
	else
		r = read_index(fd, place.prefix, fn, user);
	close(fd);
	return r;
}
