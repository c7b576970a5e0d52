/* SPDX-License-Identifier: MIT */
#include "tools/gating.h"

#include <stdio.h>

#include "gate/gate_config.h"
#include "gate/gate_report.h"
#include "tools/attach.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/sandbox.h"

static bool configure(struct gate_config *c, const struct gating *gating, GError **error)
{
	g_autoptr(GError) wrong = NULL;

	if (gating->checks && !gate_config_set_checks(c, gating->checks, &wrong)) {
		tool_error(error, EXIT_USAGE, NULL, "--checks: %s", wrong->message);
		return false;
	}
	if (gating->test && !*gating->test) {
		tool_error(error, EXIT_USAGE, NULL, "--test: an empty command tests nothing; leave the option out, or name a command");
		return false;
	}
	if (gating->test) {
		g_free(c->test);
		c->test = g_strdup(gating->test);
		c->checks |= 1u << GATE_TESTS;
	}
	if (gating->only_read)
		c->checks &= ~(1u << GATE_TESTS);
	return true;
}

bool gating_run(struct attached *a, struct tree *from, struct tree *to, GPtrArray *changes, const struct gating *gating,
		struct gate_result **ret, GError **error)
{
	const struct sandbox *s = a->sandbox;
	g_autoptr(gate_config_t) config = gate_config_new(a->policy, s->workspace, error);
	struct gate_job job = {
		.from = from,
		.to = to,
		.changes = changes,
		.config = config,
		.view = s->live && s->mounted ? s->mountpoint : NULL,
		.reason = gating->reason,
	};

	return config && configure(config, gating, error) && gate_run(&job, ret, error);
}

static void write_note(const char *data, size_t size, void *user)
{
	(void)user;
	fwrite(data, 1, size, stderr);
}

bool gating_check(const struct gate_result *r, bool reviewed, GError **error)
{
	g_autofree char *counts = gate_report_counts(r);

	if (r->verdict == GATE_PASS)
		return true;
	fflush(stdout);
	gate_report_text(r, false, write_note, NULL);
	if (r->verdict == GATE_REFUSE) {
		tool_error(error, EXIT_DIFFERENCES, NULL, "the gate refuses these changes (%s); nothing was written", counts);
		return false;
	}
	if (reviewed)
		return true;
	tool_error(error, EXIT_REVIEW, NULL,
		   "the gate wants a human's review of these changes (%s); nothing was written. Look at them (sbxfs diff) and commit "
		   "with --reviewed", counts);
	return false;
}
