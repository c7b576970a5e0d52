/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * policy_renew - the policy of a sandbox that was kept, with what others say now
 *
 * What a mount without -p has in force is the user's layer as it was kept, and the two layers that can only close as they are at the moment: the
 * managed profile, which is the administrator's, and the workspace's own file, which is the workspace's. A mistake in one of them is no mount.
 */

#include <glib.h>

struct policy;

/* policy_renew() - of @kept, for @workspace; a policy of its own. */
struct policy *policy_renew(const struct policy *kept, const char *workspace, GError **error);

/*
 * policy_renew_notes() - lines for a terminal: each rule and setting of those two layers that @now has and @kept has not, or the other way round. None
 * when they are the same. Caller unrefs.
 */
GPtrArray *policy_renew_notes(const struct policy *kept, const struct policy *now);
