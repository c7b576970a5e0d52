/* SPDX-License-Identifier: MIT */
#include "fs/deletions.h"

#include <string.h>

#define SECOND 1000000

/* Empties the seconds that went by without a deletion. */
static void move_on(struct deletions *d, int64_t now)
{
	int64_t second = now / SECOND;

	if (second - d->second >= DELETIONS_SECONDS)
		memset(d->counts, 0, sizeof(d->counts));
	else
		for (int64_t s = d->second + 1; s <= second; s++)
			d->counts[s % DELETIONS_SECONDS] = 0;
	if (second > d->second)
		d->second = second;
}

static uint64_t last_minute(const struct deletions *d)
{
	uint64_t n = 0;

	for (int i = 0; i < DELETIONS_SECONDS; i++)
		n += d->counts[i];
	return n;
}

bool deletions_full(struct deletions *d, int64_t now, const char **ret_limit)
{
	move_on(d, now);
	if (d->limit && d->total >= d->limit)
		*ret_limit = "deletions";
	else if (d->limit_per_minute && last_minute(d) >= d->limit_per_minute)
		*ret_limit = "deletions_per_minute";
	else
		return false;
	return true;
}

void deletions_count(struct deletions *d, int64_t now)
{
	move_on(d, now);
	d->total++;
	d->counts[d->second % DELETIONS_SECONDS]++;
}

void deletions_restart(struct deletions *d)
{
	d->total = 0;
	memset(d->counts, 0, sizeof(d->counts));
}
