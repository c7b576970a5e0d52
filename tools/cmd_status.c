/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/control.h"
#include "snapshot/diff.h"
#include "tools/asked.h"
#include "tools/attach.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/sandbox.h"
#include "tools/snapshots.h"

typedef struct status status_t; /* for g_auto() only */
struct status {
	const struct sandbox *sandbox;
	int32_t pid;	 /* 0 = not served */
	int32_t keeper;  /* the process that replaces it; 0 = none */
	uint32_t takeovers;
	int64_t changes; /* -1 = cannot be told */
	uint64_t disk;
	GPtrArray *snapshots;
	GVariant *live; /* what the serving process says of itself; NULL = there is none */
	GVariant *questions; /* that wait; NULL with @live */
};

static void status_clear(struct status *s)
{
	g_clear_pointer(&s->snapshots, g_ptr_array_unref);
	g_clear_pointer(&s->live, g_variant_unref);
	g_clear_pointer(&s->questions, g_variant_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(status_t, status_clear)

/* What the store takes on the disk, two levels deep is all there is. */
static uint64_t disk_use(int dirfd, const char *name, int depth)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	uint64_t bytes = 0;
	struct dirent *e;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.' || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bytes += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth > 0)
			bytes += disk_use(fd, e->d_name, depth - 1);
	}
	closedir(dir);
	return bytes;
}

static void read_processes(struct status *ret)
{
	g_variant_lookup(ret->live, "pid", "i", &ret->pid);
	g_variant_lookup(ret->live, "keeper", "i", &ret->keeper);
	g_variant_lookup(ret->live, "takeovers", "u", &ret->takeovers);
}

static void read_live(struct attached *a, struct status *ret)
{
	g_autoptr(GVariant) none = g_variant_ref_sink(g_variant_new("a{sv}", NULL));

	ret->live = a->control ? control_call(a->control, "status", none, NULL) : NULL;
	if (ret->live)
		read_processes(ret);
	ret->questions = ret->live ? asked_list(a->control, NULL) : NULL;
}

/* Requests of the kernel by kind, as counted since the mount; and whether every directory shown could be watched. */
static void json_live(GVariantBuilder *b, GVariant *live)
{
	g_autoptr(GVariant) messages = g_variant_lookup_value(live, "messages", NULL);
	gboolean full = FALSE;

	g_variant_lookup(live, "watches-full", "b", &full);
	json_add_bool(b, "watches_full", full);
	if (messages)
		json_add(b, "messages", messages);
}

static bool read_status(struct attached *a, struct status *ret, GError **error)
{
	int r = store_snapshot_list(a->store, &ret->snapshots);
	g_autoptr(GError) failure = NULL;
	uint64_t changes;

	if (r < 0) {
		tool_error_errno(error, r, a->sandbox->dir, "snapshots of %s", a->sandbox->name);
		return false;
	}
	ret->sandbox = a->sandbox;
	read_live(a, ret);
	ret->disk = disk_use(AT_FDCWD, a->sandbox->dir, 8);
	ret->changes = -1;
	if (attached_count_changes(a, &changes, &failure))
		ret->changes = (int64_t)changes;
	else
		output_note("%s", failure->message);
	return true;
}

/* False when nothing is mounted, or without a limit. */
static bool disk_limit(const struct status *status, uint64_t *ret_used, uint64_t *ret_limit)
{
	return status->live && g_variant_lookup(status->live, "disk-used", "t", ret_used) &&
	       g_variant_lookup(status->live, "disk-limit", "t", ret_limit) && *ret_limit > 0;
}

static GVariant *json_policy(const struct sandbox *s)
{
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "profile", s->profile);
	json_add_path(&b, "path", s->policy_path);
	return g_variant_builder_end(&b);
}

/* What lies there, and what of it counts against the limit. */
static GVariant *json_disk(const struct status *status)
{
	uint64_t used, limit;
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_int(&b, "bytes", (int64_t)status->disk);
	if (disk_limit(status, &used, &limit)) {
		json_add_int(&b, "used", (int64_t)used);
		json_add_int(&b, "limit", (int64_t)limit);
	}
	return g_variant_builder_end(&b);
}

static void print_json(const struct status *status)
{
	const struct sandbox *s = status->sandbox;
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	json_add_string(&b, "schema", "sbxfs.status/1");
	json_add_string(&b, "sandbox", s->name);
	json_add_path(&b, "workspace", s->workspace);
	json_add_path(&b, "mountpoint", s->mounted ? s->mountpoint : NULL);
	json_add_string(&b, "state", sandbox_state(s));
	json_add_path(&b, "store", s->dir);
	json_add_int(&b, "pid", status->pid);
	json_add_int(&b, "keeper", status->keeper);
	json_add_int(&b, "takeovers", status->takeovers);
	json_add(&b, "policy", json_policy(s));
	json_add(&b, "changes",
		 g_variant_new_maybe(G_VARIANT_TYPE_INT64,
				     status->changes < 0 ? NULL : g_variant_new_int64(status->changes)));
	json_add(&b, "snapshots", snapshots_json(status->snapshots));
	json_add(&b, "disk", json_disk(status));
	json_add(&b, "questions", status->questions ? status->questions : g_variant_new("aa{sv}", NULL));
	if (status->live)
		json_live(&b, status->live);
	json_print(stdout, g_variant_builder_end(&b));
}

static void print_path(const char *label, const char *path)
{
	g_autofree char *quoted = path ? diff_quote_path(path) : NULL;

	printf("%-12s%s\n", label, quoted ? quoted : "-");
}

static void print_state(const struct status *status)
{
	printf("%-12s%s, process %d", "state:", sandbox_state(status->sandbox), status->pid);
	if (status->takeovers)
		printf(", which replaced one that died (%u since the mount; %s/log)", status->takeovers, status->sandbox->dir);
	putchar('\n');
}

static void print_text(const struct status *status)
{
	const struct sandbox *s = status->sandbox;
	g_autofree char *disk = text_size(status->disk);
	uint64_t used, limit;
	gboolean full = FALSE;

	printf("%-12s%s\n", "sandbox:", s->name);
	print_path("workspace:", s->workspace);
	print_path("mountpoint:", s->mounted ? s->mountpoint : NULL);
	if (s->live)
		print_state(status);
	else
		printf("%-12s%s\n", "state:", sandbox_state(s));
	print_path("store:", s->dir);
	printf("%-12s%s (%s)\n", "policy:", s->profile ? s->profile : "-", s->policy_path ? s->policy_path : "-");
	if (status->changes < 0)
		printf("%-12s?\n", "changes:");
	else
		printf("%-12s%" PRId64 "\n", "changes:", status->changes);
	printf("%-12s%s", "disk:", disk);
	if (disk_limit(status, &used, &limit)) {
		g_autofree char *used_text = text_size(used);
		g_autofree char *limit_of = text_size(limit);

		printf(", %s of %s used", used_text, limit_of);
	}
	putchar('\n');
	if (status->live && g_variant_lookup(status->live, "watches-full", "b", &full) && full)
		printf("%-12s%s\n", "watches:", "all used (fs.inotify.max_user_watches): some directories are checked once a second");
	if (status->questions && g_variant_n_children(status->questions) > 0) {
		printf("%-12s%u (sbxfs ask)\n", "questions:", (unsigned)g_variant_n_children(status->questions));
		asked_print(status->questions, "  ");
	}
	printf("%-12s%u\n", "snapshots:", status->snapshots->len);
	snapshots_print(status->snapshots, "  ");
}

int cmd_status(struct invocation *inv, GError **error)
{
	const struct command_syntax syntax = {
		.arguments = "[TARGET]",
		.description = "Shows one sandbox: where it is mounted and by which process, its policy, how many "
			       "paths differ from the workspace, what it asks, its snapshots and how much disk its store "
			       "takes.",
		.max_args = 1,
		.json = true,
	};
	g_autoptr(attached_t) a = NULL;
	g_auto(status_t) status = { 0 };

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	a = attached_open(command_arg(inv, 0), ATTACH_READ, error);
	if (!a || !read_status(a, &status, error))
		return EXIT_INTERNAL;
	if (inv->json)
		print_json(&status);
	else
		print_text(&status);
	return EXIT_DONE;
}
