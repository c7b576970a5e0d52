/* SPDX-License-Identifier: MIT */
#include "tools/local_view.h"

#include "fs/control.h"
#include "fs/overlay.h"
#include "rules/policy.h"
#include "snapshot/lower.h"
#include "snapshot/store.h"
#include "tools/audit_config.h"
#include "tools/policy_store.h"
#include "tools/sandbox.h"

struct local_view {
	struct overlay *overlay;
};

struct local_view *local_view_open(const struct sandbox *s, GError **error)
{
	g_autoptr(store_t) index = store_open(s->dir, STORE_WRITE, error);
	g_autoptr(lower_t) workspace = NULL;
	struct audit_options audit;
	struct policy *policy;
	struct local_view *v;

	if (!index || !sandbox_open_workspace(s, &workspace, error))
		return NULL;
	policy = policy_store_load(s->dir, error);
	if (!policy)
		return NULL;
	v = g_new0(struct local_view, 1);
	v->overlay = overlay_new(g_steal_pointer(&index), g_steal_pointer(&workspace), policy);
	if (!audit_config_read(overlay_policy(v->overlay), s->name, s->workspace, NULL, &audit, error) ||
	    !overlay_audit(v->overlay, &audit, error))
		g_clear_pointer(&v, local_view_close);
	audit_config_clear(&audit);
	return v;
}

struct control *local_view_control(struct local_view *v)
{
	return control_local(v->overlay);
}

void local_view_close(struct local_view *v)
{
	overlay_free(v->overlay);
	g_free(v);
}
