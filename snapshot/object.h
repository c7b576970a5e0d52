/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * object - one regular file in objects/, named by the hexadecimal id of its content
 *
 * Only bytes: what they mean is in the index. The descriptor is counted, so that a sync can go on without any lock
 * while its content is closed or changed. Mode 0600; sparse. All names lie in one directory: with hashed directories
 * (ext4, xfs, btrfs) a level of sub-directories would only add inodes.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* objects/, and the bytes that its files take on the disk (st_blocks), as far as they changed through here. */
struct object_dir {
	int fd;
	int64_t used; /* atomic */
	int created;  /* atomic: some were since that was last set to 0 */
};

struct object {
	int refs; /* atomic */
	int fd;
	struct object_dir *dir; /* borrowed */
	uint64_t size;		/* of the file, as we made it; protected by the lock of its content */
	int64_t used;		/* what it has in dir->used; the same */
};

/* object_create() - a new, empty file. One that is there is a leftover without a row, and is replaced. */
int object_create(struct object_dir *dir, int64_t id, struct object **ret);
/* object_open() - -EUCLEAN when it is missing. */
int object_open(struct object_dir *dir, int64_t id, bool writable, struct object **ret);
int object_remove(struct object_dir *dir, int64_t id);
/* object_disk_size() - what it takes on the disk, in bytes; 0 when it is missing. */
uint64_t object_disk_size(int dirfd, int64_t id);
/* object_parse_name() - the id that a file in objects/ belongs to; -1 for a name that is none. */
int64_t object_parse_name(const char *name);
struct object *object_ref(struct object *o);
void object_unref(struct object *o);
typedef struct object object_t; /* for g_autoptr() only */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(object_t, object_unref)

/* object_read() - all of @size; zeros where the file has a hole or ends. */
int object_read(struct object *o, void *buf, size_t size, uint64_t offset);
/*
 * object_writev() - all of it. After an error the bytes of the range are undefined, as is the file's size up to its
 * end. Uses up @iov.
 */
int object_writev(struct object *o, struct iovec *iov, int count, uint64_t offset);
int object_truncate(struct object *o, uint64_t size);
/*
 * object_zero() - zeros for [offset, offset + length), as a hole (@punch) or reserved, never beyond the end of the
 * file.
 */
int object_zero(struct object *o, bool punch, uint64_t offset, uint64_t length);
/* object_account() - after its blocks were changed by other means. */
void object_account(struct object *o);
