/* SPDX-License-Identifier: MIT */

/*
 * bench-audit [DIR] - what a record costs on the path of a request: the median of 50 rounds of 1,000, in us, and how
 * long the thread takes to move them
 */

#include <stdio.h>
#include <stdlib.h>

#include "snapshot/audit_writer.h"

#define ROUNDS 50
#define RECORDS 1000

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double round_of(struct audit_writer *w, void (*one)(struct audit_writer *w, struct audit_record *r))
{
	gint64 start = g_get_monotonic_time();

	for (int i = 0; i < RECORDS; i++) {
		struct audit_record r = {
			.kind = AUDIT_CHANGE,
			.operation = "write",
			.program = "tar",
			.path = "src/some/directory/with/a/file.c",
			.verdict = "write",
			.rule = "/etc/sbxfs/base.ini:12: write = ** (profile workspace-edit-no-net, user)",
			.pid = 4711
		};

		one(w, &r);
	}
	return (double)(g_get_monotonic_time() - start) / RECORDS;
}

static void change(struct audit_writer *w, struct audit_record *r)
{
	if (audit_writer_prepare(w, r, false) < 0)
		abort();
	audit_writer_settle(w, 0);
}

static void measure(struct audit_writer *w, const char *name,
		    void (*one)(struct audit_writer *w, struct audit_record *r))
{
	double us[ROUNDS];
	gint64 moving = 0;

	for (int i = 0; i < ROUNDS; i++) {
		gint64 start;

		us[i] = round_of(w, one);
		start = g_get_monotonic_time();
		audit_writer_flush(w);
		moving += g_get_monotonic_time() - start;
	}
	qsort(us, ROUNDS, sizeof(us[0]), compare);
	printf("%-7s %.2f us a record, best %.2f, then %.2f us to move it\n", name, us[ROUNDS / 2], us[0],
	       (double)moving / ROUNDS / RECORDS);
}

int main(int argc, char **argv)
{
	g_autofree char *made = argc > 1 ? NULL : g_dir_make_tmp("bench-audit-XXXXXX", NULL);
	struct audit_writer *w = audit_writer_open(argc > 1 ? argv[1] : made, NULL);

	if (!w)
		return 1;
	measure(w, "change", change);
	measure(w, "read", audit_writer_note);
	audit_writer_close(w);
	if (made)
		printf("left in %s\n", made);
	return 0;
}
