/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include "snapshot/content.h"
#include "snapshot/store.h"

static unsigned int left;
static int error;
static bool fired;

void fault_arm(unsigned int n, int with)
{
	left = n;
	error = with;
	fired = false;
}

bool fault_disarm(void)
{
	left = 0;
	return fired;
}

static bool fault_now(void)
{
	if (left == 0 || --left > 0)
		return false;
	fired = true;
	return true;
}

#define WRAP(name, parameters, arguments)                                                                                          \
	int __real_##name parameters;                                                                                              \
	int __wrap_##name parameters;                                                                                              \
	int __wrap_##name parameters                                                                                               \
	{                                                                                                                          \
		if (fault_now())                                                                                                   \
			return error;                                                                                              \
		return __real_##name arguments;                                                                                    \
	}

WRAP(store_begin, (struct store * s), (s))
WRAP(store_node_put, (struct store * s, struct node_row *n), (s, n))
WRAP(store_node_drop, (struct store * s, uint64_t ino), (s, ino))
WRAP(store_name_put, (struct store * s, struct name_row *n), (s, n))
WRAP(store_name_drop, (struct store * s, uint64_t parent, const char *name), (s, parent, name))
WRAP(store_names_drop, (struct store * s, uint64_t parent), (s, parent))
WRAP(store_origin_add, (struct store * s, struct origin *o), (s, o))
WRAP(content_new, (struct store * s, struct lower *l, struct content **ret), (s, l, ret))
WRAP(content_fork, (struct content * c, uint64_t keep, struct content **ret), (c, keep, ret))
WRAP(content_write, (struct content * c, const void *buf, size_t size, uint64_t offset), (c, buf, size, offset))
WRAP(content_truncate, (struct content * c, uint64_t size), (c, size))
WRAP(content_from_lower, (struct store * s, struct lower *l, struct origin *o, uint64_t keep, struct content **ret),
     (s, l, o, keep, ret))

/* The end of a change. A failure ends it, too. */
#define WRAP_END(name)                                                                                                             \
	int __real_##name(struct store *s);                                                                                        \
	int __wrap_##name(struct store *s);                                                                                        \
	int __wrap_##name(struct store *s)                                                                                         \
	{                                                                                                                          \
		if (fault_now()) {                                                                                                 \
			store_abort(s);                                                                                            \
			return error;                                                                                              \
		}                                                                                                                  \
		return __real_##name(s);                                                                                           \
	}

WRAP_END(store_commit)
WRAP_END(store_promise)
