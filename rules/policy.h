/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * policy - what may be done with each path of a workspace
 *
 * A policy is loaded from profiles in INI files, never changes after that, and answers for paths. All functions that take a const
 * policy may be called from many threads at the same time, without a lock. They do no input or output.
 *
 * Layers. Up to three profiles speak at the same time, each for one trust layer, each with its own verdict; the most closed verdict
 * holds:
 *   managed    the profile in the managed directory (/etc/sbxfs) that no other there extends. It always applies, and there may be
 *              only one: an administrator who has several writes one more that extends them.
 *   user       the profile that was asked for, or POLICY_DEFAULT_PROFILE. It is always there.
 *   workspace  the profile in the workspace's own .sbxfs.ini, if it has one.
 * In each layer the last rule that matches decides. A rule that matches a directory covers all below it. Where no rule of the user
 * layer matches, the verdict is POLICY_DEFAULT_ACTION (read); where none of another layer matches, that layer has no opinion. So
 * the managed and the workspace layer can only close.
 *
 * Profiles. "extends" puts the rules of other profiles in front of one's own, each profile once, in the order of their names. A name
 * is looked for in: the same file, then the place where that file was found and the places behind it, in this order: $SBXFS_CONFIG
 * (a file or a directory), the user's directory, the managed directory, the shipped directory. A workspace file looks only into
 * itself, the managed and the shipped directory. In a directory all files *.ini count; two profiles of one name in one directory are an
 * error when that name is wanted. A profile may extend another of its own name, found further on.
 *
 * Paths are bytes relative to the workspace, without a leading or trailing slash, "" is the root; they need not be UTF-8.
 *
 * Anything that is not understood is an error (POLICY_ERROR, see policy_error.h), and there is no policy then.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "rules/action.h"
#include "rules/policy_error.h"

struct policy;

enum policy_layer { POLICY_MANAGED, POLICY_USER, POLICY_WORKSPACE };
#define POLICY_LAYERS 3

#define POLICY_DEFAULT_ACTION ACTION_READ
#define POLICY_DEFAULT_PROFILE "workspace-edit-no-net"
#define POLICY_WORKSPACE_FILE ".sbxfs.ini"

const char *policy_layer_name(enum policy_layer layer);

/* Sources */

/* Where to look. Strings may be NULL: there is no such place. Directories need not exist, but what exists must be readable. */
struct policy_sources {
	char *profile;     /* a name, or a file's path if it has a slash in it or ends in .ini; NULL = the default profile */
	char *workspace;   /* the directory whose POLICY_WORKSPACE_FILE is read */
	char *config;      /* a file or directory, which must exist */
	char *user_dir;
	char *managed_dir;
	char *shipped_dir;
};

/*
 * policy_sources_init() - the usual places
 *
 * $SBXFS_CONFIG, $XDG_CONFIG_HOME/sbxfs, /etc/sbxfs, and the shipped profiles: ../share/sbxfs/profiles as seen from the running
 * program's directory, else where they were configured to be installed. @profile and @workspace are copied and may be NULL.
 */
void policy_sources_init(struct policy_sources *s, const char *profile, const char *workspace);
void policy_sources_clear(struct policy_sources *s);

/* Life */

struct policy *policy_load(const struct policy_sources *sources, GError **error);

/*
 * policy_load_text() - from memory
 *
 * @text is what policy_to_ini() gave (all layers come back, with their first origins), or an ordinary policy file without others to
 * extend (its last profile that no other extends becomes the user layer). @origin stands for the file in messages.
 */
struct policy *policy_load_text(const char *text, const char *origin, GError **error);
void policy_free(struct policy *p);

/*
 * policy_to_ini() - the merged policy as text, which loads again to the same decisions and the same answers of policy_explain()
 *
 * Each line has its origin in a comment above it. Caller frees.
 */
char *policy_to_ini(const struct policy *p);
/* policy_to_ini_renewed() - the same, with the managed and the workspace layer of @others, which may have none, in place of @p's own. */
char *policy_to_ini_renewed(const struct policy *p, const struct policy *others);
/* policy_layer_text() - the rules and settings of one layer in that form, without their origins: to be compared and shown. Caller frees. */
char *policy_layer_text(const struct policy *p, enum policy_layer layer);

/* policy_name(), policy_description() - of the user layer's profile; the description may be NULL. */
const char *policy_name(const struct policy *p);
const char *policy_description(const struct policy *p);
/* policy_layer_profile() - the profile that speaks for a layer, NULL for none. */
const char *policy_layer_profile(const struct policy *p, enum policy_layer layer);

/* Decisions */

/*
 * Which rule decides, per layer: the index of the last rule that matches the path or one of its parents, -1 for none. A plain
 * value to keep with each node; the match of a child follows from its parent's.
 */
struct policy_match {
	int16_t rule[POLICY_LAYERS];
};
extern const struct policy_match POLICY_MATCH_NONE;

/* policy_match_child() - of @path, whose parent directory has @parent; of the root "" with POLICY_MATCH_NONE. */
struct policy_match policy_match_child(const struct policy *p, struct policy_match parent, const char *path, bool is_dir);

/* policy_match_path() - of @path by itself, from the root down. */
struct policy_match policy_match_path(const struct policy *p, const char *path, bool is_dir);

/* policy_action() - the verdict, over all layers. */
enum action policy_action(const struct policy *p, struct policy_match m);

/*
 * policy_action_granted() - the verdict when a human has said yes: that of the layers which do not ask
 *
 * Where one layer asks and another says read, a yes opens what can be read, and no more.
 */
enum action policy_action_granted(const struct policy *p, struct policy_match m);

/* policy_has_action() - whether some rule of some layer says @a. */
bool policy_has_action(const struct policy *p, enum action a);

/*
 * policy_may_open_below() - may a path below the directory @path, which has @m, get a more open verdict than @path?
 *
 * True when unsure. False is certain, whatever names will ever exist there: all below is as closed or more so.
 */
bool policy_may_open_below(const struct policy *p, struct policy_match m, const char *path);

/*
 * policy_names_open_below() - does a more open rule name @path itself, letter by letter, as the way to something below?
 *
 * "write = /vault/pub" names vault; "write = *.example", "read = re:..." and "write = /?ault/pub" name nothing. Implies
 * policy_may_open_below(). For a hidden directory: that some exception might match in it is no reason to show that it is there.
 */
bool policy_names_open_below(const struct policy *p, struct policy_match m, const char *path);

/*
 * policy_names_closed_below() - does a rule that closes more than @m name @path itself as the way to something below?
 *
 * "read = /conf/app/key" names conf and conf/app. A symbolic link there would lead the name that the rule protects to
 * another place. Closing means ACTION_READ and above.
 */
bool policy_names_closed_below(const struct policy *p, struct policy_match m, const char *path);

/* Why */

/* Borrowed from the policy. */
struct policy_reason {
	enum action action;
	enum policy_layer layer;
	const char *pattern; /* NULL where no rule matched: the default of the user layer */
	const char *profile;
	const char *file;    /* NULL with @pattern */
	unsigned line;
};

/* policy_explain() - what decided; false when no rule did. @ret_reason is filled in either case. */
bool policy_explain(const struct policy *p, struct policy_match m, struct policy_reason *ret_reason);

/* Settings: the keys of [network], [limits], [ask], [run], [audit] and [gate], as text. */

struct policy_setting {
	enum policy_layer layer;
	const char *section;
	const char *key;
	const char *value;
	const char *profile;
	const char *file;
	unsigned line;
};

/* policy_layer_setting() - of one layer, of its last profile that has it; NULL for none. */
const struct policy_setting *policy_layer_setting(const struct policy *p, enum policy_layer layer, const char *section, const char *key);

/* policy_setting() - the user layer's, of its last profile that has it; NULL for none. */
const struct policy_setting *policy_setting(const struct policy *p, const char *section, const char *key);

/* policy_trusted_setting() - the managed layer's, else the user's: whoever writes into the workspace has no say in it. NULL for none. */
const struct policy_setting *policy_trusted_setting(const struct policy *p, const char *section, const char *key);

/*
 * policy_settings() - all of all layers, for keys that may be repeated. Borrowed. By layer, then by section; in a section in the
 * order in which they were written, those of extended profiles first.
 */
const struct policy_setting *policy_settings(const struct policy *p, unsigned *ret_count);

/* The profiles there are */

struct policy_profile {
	char *name;
	char *description; /* or NULL */
	char *file;
	unsigned line;
};

/* policy_list_profiles() - of all places but the workspace, in the order in which they are searched. Caller frees. */
GPtrArray *policy_list_profiles(const struct policy_sources *sources, GError **error);
