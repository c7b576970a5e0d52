/* SPDX-License-Identifier: MIT */
#include "fs/heritage.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fs/roster.h"

/* Some ten million names. */
#define ROSTER_SIZE ((size_t)4 << 30)

struct heritage *heritage_new(void)
{
	struct heritage *h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (h == MAP_FAILED)
		return NULL;
	h->roster = roster_new(ROSTER_SIZE);
	if (!h->roster) {
		munmap(h, sizeof(*h));
		return NULL;
	}
	h->keeper = getpid();
	return h;
}
