/* SPDX-License-Identifier: MIT */
#include "tools/view_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/exit.h"
#include "tools/paths.h"

#define STEP_US (20 * 1000)
#define WAIT_STEPS 500 /* 10 s */
#define OFFSET_MASK INT64_C(0x3ffffffffffffffc) /* four bytes each */

/* What this process has. Closing any descriptor of the file would end all its locks, so there is one, and it stays open. */
struct held {
	off_t offset;
	unsigned times;
	enum view_hold how;
};

static GMutex mutex;
static int file = -1;	    /* protected by @mutex, as is @held */
static GHashTable *held;    /* struct held by its offset */

/* Two names that share their bytes only wait for each other. */
static off_t offset_of(const char *name, enum view_part part)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
	return (off_t)(hash & OFFSET_MASK) + part;
}

static bool open_file(GError **error)
{
	g_autofree char *state = NULL, *path = NULL;
	struct stat st;

	if (file >= 0)
		return true;
	state = paths_state_dir(error);
	if (!state || (stat(state, &st) < 0 && (!paths_make_private_dir(state, error) || stat(state, &st) < 0)))
		return false;
	path = g_build_filename(state, ".views.lock", NULL);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	/* Root among another user's sandboxes leaves the file to him. */
	if (file >= 0 && (st.st_uid == geteuid() || fchown(file, st.st_uid, st.st_gid) == 0))
		return true;
	tool_error_errno(error, -errno, path, "%s", path);
	return false;
}

static bool set(off_t offset, enum view_hold how, bool wait)
{
	static const short types[] = { [VIEW_FREE] = F_UNLCK, [VIEW_SHARED] = F_RDLCK, [VIEW_EXCLUSIVE] = F_WRLCK };
	struct flock l = { .l_type = types[how], .l_whence = SEEK_SET, .l_start = offset, .l_len = 1 };

	while (fcntl(file, wait ? F_SETLKW : F_SETLK, &l) < 0)
		if (errno != EINTR)
			return false;
	return true;
}

static struct held *held_at(off_t offset)
{
	int64_t key = offset;

	return held ? g_hash_table_lookup(held, &key) : NULL;
}

static void note(off_t offset, enum view_hold how)
{
	struct held *h = held_at(offset);

	if (!held)
		held = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
	if (!h) {
		h = g_new0(struct held, 1);
		h->offset = offset;
		g_hash_table_insert(held, &h->offset, h);
	}
	h->times++;
	h->how = MAX(h->how, how);
}

static bool has(off_t offset, enum view_hold how)
{
	const struct held *h = held_at(offset);

	return h && h->how >= how;
}

static bool lock(off_t offset, enum view_hold how, bool wait, GError **error)
{
	bool ok;

	g_mutex_lock(&mutex);
	ok = open_file(error);
	if (ok && !has(offset, how)) {
		ok = set(offset, how, wait);
		if (!ok)
			tool_error_errno(error, -errno, NULL, "the lock of a view");
	}
	if (ok)
		note(offset, how);
	g_mutex_unlock(&mutex);
	return ok;
}

bool view_lock(const char *name, enum view_part part, enum view_hold how, GError **error)
{
	return lock(offset_of(name, part), how, true, error);
}

bool view_lock_try(const char *name, enum view_part part, enum view_hold how)
{
	return lock(offset_of(name, part), how, false, NULL);
}

void view_unlock(const char *name, enum view_part part)
{
	off_t offset = offset_of(name, part);
	struct held *h;

	g_mutex_lock(&mutex);
	h = held_at(offset);
	if (h && --h->times == 0) {
		set(offset, VIEW_FREE, false);
		g_hash_table_remove(held, &h->offset);
	}
	g_mutex_unlock(&mutex);
}

enum view_hold view_lock_of_others(const char *name, enum view_part part)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset_of(name, part), .l_len = 1 };
	bool ok;

	g_mutex_lock(&mutex);
	ok = open_file(NULL) && fcntl(file, F_GETLK, &l) == 0;
	g_mutex_unlock(&mutex);
	if (!ok || l.l_type == F_UNLCK)
		return VIEW_FREE;
	return l.l_type == F_RDLCK ? VIEW_SHARED : VIEW_EXCLUSIVE;
}

void view_lock_forget(void)
{
	file = -1;
	g_clear_pointer(&held, g_hash_table_destroy);
}

static bool is_own(const char *name, enum view_part part)
{
	bool own;

	g_mutex_lock(&mutex);
	own = has(offset_of(name, part), VIEW_SHARED);
	g_mutex_unlock(&mutex);
	return own;
}

/* Kept for runs, and there is none. */
static bool is_left(const char *name)
{
	return view_lock_of_others(name, VIEW_KEPT) != VIEW_FREE && !is_own(name, VIEW_RUN) && view_lock_of_others(name, VIEW_RUN) != VIEW_SHARED;
}

bool view_change_begin(const char *name, GError **error)
{
	for (int i = 0; i < WAIT_STEPS; i++) {
		if (!view_lock(name, VIEW_CHANGE, VIEW_EXCLUSIVE, error))
			return false;
		if (!view_lock(name, VIEW_USE, VIEW_SHARED, error)) {
			view_unlock(name, VIEW_CHANGE);
			return false;
		}
		if (!is_left(name))
			return true;
		view_change_end(name);
		g_usleep(STEP_US);
	}
	tool_error(error, EXIT_BUSY, name,
		   "the view of sandbox %s was mounted by a run that has ended, and a command still works with it; try again when that is done", name);
	return false;
}

void view_change_end(const char *name)
{
	view_unlock(name, VIEW_USE);
	view_unlock(name, VIEW_CHANGE);
}
