/* SPDX-License-Identifier: MIT */
#include "tools/run/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The numbers of the kernel's interface; the header of Debian 12 does not have the newer ones. */
enum {
	CREATE_RULESET = 444, /* on all architectures */
	ADD_RULE = 445,
	RESTRICT_SELF = 446,
	VERSION_FLAG = 1,
	RULE_PATH_BENEATH = 1,
};
enum { FS_READ_FILE = 1 << 2, FS_READ_DIR = 1 << 3 };
enum { SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0, SCOPE_SIGNAL = 1 << 1 };

struct ruleset {
	uint64_t fs, net, scoped;
};

struct path_beneath {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

/* By version: how many rights on files it knows, and how large the structure was. */
static const struct {
	unsigned rights;
	size_t size;
} versions[] = {
	{ 0, 0 }, { 13, 8 }, { 14, 8 }, { 15, 8 }, { 15, 16 }, { 16, 16 }, { 16, 24 },
};
#define NEWEST (sizeof(versions) / sizeof(*versions) - 1)

static void allow(int ruleset, const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct path_beneath rule = { .allowed = FS_READ_FILE, .parent = fd };
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		rule.allowed |= FS_READ_DIR;
	syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0); /* one that is not there makes it stricter */
	close(fd);
}

bool landlock_enter(const char *const *readable, size_t count)
{
	long version = syscall(CREATE_RULESET, NULL, 0, VERSION_FLAG);
	struct ruleset attributes = { 0 };
	int fd;
	bool ok;

	if (version < 1)
		return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM;
	if ((size_t)version > NEWEST)
		version = NEWEST;
	attributes.fs = (UINT64_C(1) << versions[version].rights) - 1;
	if (version >= 6)
		attributes.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	fd = (int)syscall(CREATE_RULESET, &attributes, versions[version].size, 0);
	if (fd < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		allow(fd, readable[i]);
	ok = syscall(RESTRICT_SELF, fd, 0) == 0;
	close(fd);
	return ok;
}
