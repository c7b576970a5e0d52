/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * policy_store - finding a policy for a mount, and the policy in force beside the store
 *
 * At mount time the profile and all it inherits are merged and written into the store as policy.ini. From then on
 * that text is what counts, until a mount with -p replaces it: editing a profile file does not change a sandbox
 * behind its owner's back. The managed layer and the workspace's are not the owner's, and are those of the day at each mount (tools/policy_renew.h).
 */

#include <glib.h>
#include <stdbool.h>

struct policy;
struct policy_sources;

/* policy_places_init() - policy_sources_init(), and the source's profiles for a program that was not installed. */
void policy_places_init(struct policy_sources *sources, const char *wanted, const char *workspace);
/*
 * policy_find() - the profile or file @wanted (NULL: the default one) for @workspace. @ret_profile and @ret_path
 * (caller frees; the latter may become NULL) tell what was taken.
 */
struct policy *policy_find(const char *wanted, const char *workspace, char **ret_profile, char **ret_path,
			   GError **error);

/* policy_store_load() - what is in force in the store @dir; policy_store_text() - the same as text, caller frees. */
struct policy *policy_store_load(const char *dir, GError **error);
char *policy_store_text(const char *dir, GError **error);
/* policy_store_save() - replaces it at once: after a crash there is the old text or the new one. */
bool policy_store_save(const char *dir, const char *text, GError **error);
