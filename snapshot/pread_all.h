/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * pread_all - a record of a file, whole or not at all
 */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* pread_all() - all of @size; -ENODATA where the file ends before. */
static inline int pread_all(int fd, void *buf, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(fd, (char *)buf + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		done += (size_t)n;
	}
	return 0;
}
