/* SPDX-License-Identifier: MIT */
#include "tools/audit_config.h"

#include <syslog.h>

#include "rules/policy.h"
#include "tools/exit.h"
#include "tools/paths.h"
#include "tools/quantity.h"

#define KEEP_TIME_MS (UINT64_C(366) * 24 * 3600 * 1000)
#define KEEP_BYTES (UINT64_C(1) << 30)

/* Of one layer the last profile that has a key; NULL = none. */
static const struct policy_setting *find(const struct policy *policy, enum policy_layer layer, const char *key)
{
	const struct policy_setting *found = NULL, *all;
	unsigned count;

	all = policy_settings(policy, &count);
	for (unsigned i = 0; i < count; i++)
		if (all[i].layer == layer && g_str_equal(all[i].section, "audit") && g_str_equal(all[i].key, key))
			found = &all[i];
	return found;
}

static bool wrong(const struct policy_setting *s, const char *what, GError **error)
{
	tool_error(error, EXIT_POLICY, s->file, "%s:%u: %s = \"%s\" %s", s->file, s->line, s->key, s->value, what);
	return false;
}

static bool read_amount(const struct policy *policy, const char *key, enum quantity kind, uint64_t *ret, GError **error)
{
	const struct policy_setting *s = find(policy, POLICY_MANAGED, key);

	if (!s)
		s = find(policy, POLICY_USER, key);
	if (!s || quantity_parse(kind, s->value, ret))
		return true;
	return wrong(s, kind == QUANTITY_TIME ? "is no time; it looks like 90d" : "is no size; it looks like 500M", error);
}

static void add_sink(struct audit_options *o, enum audit_sink_kind kind, char *target)
{
	struct audit_sink_target t = { .kind = kind, .target = target };

	g_array_append_val(o->sinks, t);
}

/* What lies in the view would be recorded when it is written, and so on without end. */
static bool lies_in(const char *path, const char *dir)
{
	g_autofree char *real = dir ? paths_resolve(dir) : NULL;

	return dir && (paths_below(path, dir) || (real && paths_below(path, real)));
}

static bool add_file(struct audit_options *o, const struct policy_setting *s, const char *sandbox, const char *workspace,
		     const char *mountpoint, GError **error)
{
	GString *path = g_string_new(s->value);
	g_autofree char *file = NULL, *dir = NULL, *real = NULL, *name = NULL;

	g_string_replace(path, "%n", sandbox, 0);
	file = g_string_free(path, FALSE);
	dir = g_path_get_dirname(file);
	if (!g_path_is_absolute(file))
		return wrong(s, "must be an absolute path", error);
	real = paths_resolve(dir);
	if (!real)
		return wrong(s, "lies in a directory that is not there", error);
	if (lies_in(real, workspace) || lies_in(real, mountpoint))
		return wrong(s, "lies in the workspace or its view; take another place", error);
	name = g_path_get_basename(file);
	add_sink(o, AUDIT_SINK_FILE, g_build_filename(real, name, NULL));
	return true;
}

static bool add_command(struct audit_options *o, const struct policy_setting *s, GError **error)
{
	g_autoptr(GError) failure = NULL;

	if (!g_shell_parse_argv(s->value, NULL, NULL, &failure))
		return wrong(s, failure->message, error);
	add_sink(o, AUDIT_SINK_COMMAND, g_strdup(s->value));
	return true;
}

static bool add_layer(struct audit_options *o, const struct policy *policy, enum policy_layer layer, const char *sandbox,
		      const char *workspace, const char *mountpoint, GError **error)
{
	const struct policy_setting *file = find(policy, layer, "file"), *log = find(policy, layer, "syslog"),
				    *command = find(policy, layer, "command");

	if (file && !add_file(o, file, sandbox, workspace, mountpoint, error))
		return false;
	if (log && g_str_equal(log->value, "yes"))
		add_sink(o, AUDIT_SINK_SYSLOG, g_strdup(_PATH_LOG));
	else if (log && !g_str_equal(log->value, "no"))
		return wrong(log, "must be yes or no", error);
	return !command || add_command(o, command, error);
}

static void sink_target_clear(gpointer data)
{
	g_free(((struct audit_sink_target *)data)->target);
}

bool audit_config_read(const struct policy *policy, const char *sandbox, const char *workspace, const char *mountpoint,
		       struct audit_options *ret, GError **error)
{
	uint64_t time = KEEP_TIME_MS;

	*ret = (struct audit_options){ .keep_bytes = KEEP_BYTES };
	ret->sinks = g_array_new(FALSE, FALSE, sizeof(struct audit_sink_target));
	g_array_set_clear_func(ret->sinks, sink_target_clear);
	if (!read_amount(policy, "keep", QUANTITY_TIME, &time, error) ||
	    !read_amount(policy, "keep_size", QUANTITY_BYTES, &ret->keep_bytes, error) ||
	    !add_layer(ret, policy, POLICY_MANAGED, sandbox, workspace, mountpoint, error) ||
	    !add_layer(ret, policy, POLICY_USER, sandbox, workspace, mountpoint, error))
		return false;
	/* Longer than there are nanoseconds is for ever. */
	ret->keep_time = time > (uint64_t)INT64_MAX / 1000000 ? 0 : (int64_t)time * 1000000;
	return true;
}

void audit_config_clear(struct audit_options *o)
{
	g_clear_pointer(&o->sinks, g_array_unref);
}
