/* SPDX-License-Identifier: MIT */
#include "tools/commit_steps.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/attach.h"
#include "tools/exit.h"
#include "tools/gating.h"
#include "tools/output.h"

void commit_steps_clear(struct commit_steps *c)
{
	apply_result_clear(&c->result);
	g_clear_pointer(&c->gate, gate_result_free);
	g_clear_pointer(&c->conflicts, g_ptr_array_unref);
}

bool commit_steps_gate(struct commit_steps *c, GError **error)
{
	const struct gating gating = { .reason = c->reason };

	g_clear_pointer(&c->gate, gate_result_free);
	return gating_run(c->attached, c->from, c->to, c->changes, &gating, &c->gate, error);
}

static struct apply_job job_of(const struct commit_steps *c)
{
	return (struct apply_job){
		.store = c->attached->store,
		.lower = c->attached->lower,
		.to = c->to,
		.epoch = c->epoch,
		.changes = c->changes,
		.merge = c->merge,
	};
}

/* What else would help: the next step of --merge, or nothing more. */
static const char *const remedies[] = {
	[TEXT_MERGE_NONE] = ", or have texts merged with --merge",
	[TEXT_MERGE_CLEAN] = "; --merge cannot merge these, --merge=markers writes both versions of a text",
	[TEXT_MERGE_MARKERS] = "; no text of before is known for these, so they cannot be merged",
};

/* Takes @conflicts, which may be NULL or empty. */
static bool has_none(struct commit_steps *c, GPtrArray *conflicts, GError **error)
{
	g_clear_pointer(&c->conflicts, g_ptr_array_unref);
	if (!conflicts || conflicts->len == 0) {
		g_clear_pointer(&conflicts, g_ptr_array_unref);
		return true;
	}
	c->conflicts = conflicts;
	tool_error(error, EXIT_CONFLICT, ((const struct conflict *)conflicts->pdata[0])->path,
		   "conflicts with the workspace: %u; nothing was written. Commit the other paths with -- PATH, or roll these back%s",
		   conflicts->len, remedies[c->merge]);
	return false;
}

bool commit_steps_check(struct commit_steps *c, GError **error)
{
	const struct apply_job job = job_of(c);
	GPtrArray *conflicts;

	return conflicts_find(&job, &conflicts, error) >= 0 && has_none(c, conflicts, error);
}

bool commit_steps_write(struct commit_steps *c, GError **error)
{
	const struct apply_job job = job_of(c);
	g_autoptr(GPtrArray) written = changes_paths(c->changes);
	GPtrArray *conflicts;

	return attached_keep(c->attached, c->epoch, written, error) && apply_changes(&job, &c->result, &conflicts, error) >= 0 &&
	       has_none(c, conflicts, error) && attached_finish(c->attached, &c->result, error);
}

void commit_steps_print(const struct commit_steps *c)
{
	for (unsigned i = 0; c->result.notes && i < c->result.notes->len; i++)
		output_note("note: %s", (const char *)c->result.notes->pdata[i]);
	printf("committed: %" PRIu64 " written, %" PRIu64 " deleted%s%s\n", c->result.written, c->result.deleted,
	       c->result.id ? ", commit " : "", c->result.id ? c->result.id : "");
}
