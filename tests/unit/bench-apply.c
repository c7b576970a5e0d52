/* SPDX-License-Identifier: MIT */

/* Commits N new and N changed small files, and says how long that took. Usage: bench-apply [N [DIR]] */

#include <stdio.h>
#include <stdlib.h>

#include "applied.h"

static double now(void)
{
	return g_get_monotonic_time() / 1e6;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10000;
	g_autoptr(GPtrArray) conflicts = NULL;
	g_autoptr(GError) error = NULL;
	struct apply_result r = { 0 };
	struct committing c;
	struct layered *l;
	double t;

	if (argc > 2)
		g_setenv("TMPDIR", argv[2], TRUE);
	l = layered_new();
	for (int i = 0; i < n / 2; i++) {
		g_autofree char *path = g_strdup_printf("d%d/f%d", i % 100, i);

		host_text(l, path, "the old text of this file\n");
	}
	for (int i = 0; i < n; i++) {
		g_autofree char *path = g_strdup_printf("d%d/f%d", i % 100, i);

		view_text(l, path, "the new text of this file\n");
	}
	t = now();
	committing_init(&c, l, NULL);
	printf("changes: %u in %.3f s\n", c.job.changes->len, now() - t);
	t = now();
	apply_changes(&c.job, &r, &conflicts, &error);
	if (error || conflicts)
		g_error("%s", error ? error->message : "conflicts");
	printf("commit: %.3f s\n", now() - t);
	t = now();
	apply_finish(l->store, r.id, &error);
	apply_undo(l->store, l->lower, NULL, NULL, &r, &conflicts, &error);
	if (error || conflicts)
		g_error("%s", error ? error->message : "conflicts");
	printf("undo: %.3f s\n", now() - t);
	committing_clear(&c);
	layered_free(l);
	return 0;
}
