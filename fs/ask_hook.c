/* SPDX-License-Identifier: MIT */
#include "fs/ask_hook.h"

#include <gio/gio.h>
#include <json-glib/json-glib.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fs/overlay.h"
#include "fs/question.h"
#include "snapshot/store.h"

#define LOOK_MS 100

struct ask_hooks {
	struct overlay *overlay;
	char *sandbox;
	char **argv;
	GMutex lock;
	GCond ended;
	unsigned running; /* protected by @lock */
};

struct run {
	struct ask_hooks *hooks;
	struct question *question;
	GSubprocess *process;
	GCancellable *cancel;
	int32_t pid;
	char *output;
	bool done;
};

struct ask_hooks *ask_hooks_new(struct overlay *o, const char *command)
{
	struct ask_hooks *h = g_new0(struct ask_hooks, 1);

	h->overlay = o;
	h->sandbox = g_path_get_basename(store_dir(overlay_store(o)));
	/* The policy was not read if it cannot be split. */
	if (!g_shell_parse_argv(command, NULL, &h->argv, NULL))
		h->argv = g_new0(char *, 1);
	g_mutex_init(&h->lock);
	g_cond_init(&h->ended);
	return h;
}

void ask_hooks_free(struct ask_hooks *h)
{
	g_mutex_lock(&h->lock);
	while (h->running > 0)
		g_cond_wait(&h->ended, &h->lock);
	g_mutex_unlock(&h->lock);
	g_mutex_clear(&h->lock);
	g_cond_clear(&h->ended);
	g_strfreev(h->argv);
	g_free(h->sandbox);
	g_free(h);
}

static char *question_json(struct run *r)
{
	g_autoptr(GVariant) about = g_variant_ref_sink(question_describe(overlay_asked(r->hooks->overlay), r->question));
	g_autoptr(GVariant) all = NULL;
	g_autofree char *json = NULL;
	GVariantDict d;

	g_variant_dict_init(&d, about);
	g_variant_dict_insert(&d, "schema", "s", "sbxfs.question/1");
	g_variant_dict_insert(&d, "sandbox", "s", r->hooks->sandbox);
	all = g_variant_ref_sink(g_variant_dict_end(&d));
	json = json_gvariant_serialize_data(all, NULL);
	return g_strconcat(json, "\n", NULL);
}

/* The threads that start it have signals blocked, which is nothing to hand on. A group of its own ends as a whole. */
static void child_setup(void *unused)
{
	sigset_t none;

	(void)unused;
	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void communicated(GObject *process, GAsyncResult *result, void *user)
{
	struct run *r = user;

	g_subprocess_communicate_utf8_finish(G_SUBPROCESS(process), result, &r->output, NULL, NULL);
	r->done = true;
}

static gboolean look(void *user)
{
	struct run *r = user;

	if (question_is_waiting(overlay_asked(r->hooks->overlay), r->question))
		return G_SOURCE_CONTINUE;
	/* Unless it was waited for, in which case its number may be another's. */
	if (g_subprocess_get_identifier(r->process))
		kill(-r->pid, SIGKILL);
	g_cancellable_cancel(r->cancel);
	return G_SOURCE_REMOVE;
}

static void answer(struct run *r)
{
	enum question_scope scope = QUESTION_ONCE;
	bool allow;

	if (!r->output || !g_subprocess_get_if_exited(r->process) || g_subprocess_get_exit_status(r->process) != 0)
		return;
	r->output[strcspn(r->output, "\r\n")] = '\0';
	allow = g_str_has_prefix(r->output, "allow ") && question_scope_from_name(r->output + strlen("allow "), &scope);
	if (!allow && strcmp(r->output, "deny") != 0)
		return;
	overlay_caller(r->pid, getuid());
	overlay_answer(r->hooks->overlay, question_id(r->question), allow, scope, r->hooks->argv[0]);
}

/* As a file: a command that ends without reading it has answered all the same, where a pipe would break. -1. */
static int question_file(struct run *r)
{
	g_autofree char *json = question_json(r);
	int fd = memfd_create("question", MFD_CLOEXEC);
	size_t size = strlen(json);

	if (fd >= 0 && write(fd, json, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Until the command ends, or the question. */
static void attend(struct run *r, GMainContext *context)
{
	const char *number = g_subprocess_get_identifier(r->process);
	GSource *timer = g_timeout_source_new(LOOK_MS);

	r->pid = number ? (int32_t)g_ascii_strtoll(number, NULL, 10) : 0;
	g_source_set_callback(timer, look, r, NULL);
	g_source_attach(timer, context);
	g_subprocess_communicate_utf8_async(r->process, NULL, r->cancel, communicated, r);
	while (!r->done)
		g_main_context_iteration(context, TRUE);
	g_source_destroy(timer);
	g_source_unref(timer);
	if (g_cancellable_is_cancelled(r->cancel))
		g_subprocess_wait(r->process, NULL, NULL);
	else
		answer(r);
}

static void *hook_main(void *user)
{
	struct run *r = user;
	g_autoptr(GMainContext) context = g_main_context_new();
	g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE);
	g_autoptr(GError) error = NULL;
	struct ask_hooks *h = r->hooks;
	int question = question_file(r);

	if (question >= 0)
		g_subprocess_launcher_take_stdin_fd(launcher, question);
	g_main_context_push_thread_default(context);
	g_subprocess_launcher_set_cwd(launcher, "/");
	g_subprocess_launcher_set_child_setup(launcher, child_setup, NULL, NULL);
	r->process = g_subprocess_launcher_spawnv(launcher, (const char *const *)h->argv, &error);
	r->cancel = g_cancellable_new();
	if (r->process)
		attend(r, context);
	else
		g_printerr("on_ask: %s\n", error->message);
	g_main_context_pop_thread_default(context);
	question_unref(r->question);
	g_clear_object(&r->process);
	g_clear_object(&r->cancel);
	g_free(r->output);
	g_free(r);
	g_mutex_lock(&h->lock);
	h->running--;
	g_cond_signal(&h->ended);
	g_mutex_unlock(&h->lock);
	return NULL;
}

void ask_hooks_run(struct ask_hooks *h, struct question *question)
{
	struct run *r = g_new0(struct run, 1);

	r->hooks = h;
	r->question = question_ref(question);
	g_mutex_lock(&h->lock);
	h->running++;
	g_mutex_unlock(&h->lock);
	g_thread_unref(g_thread_new("on-ask", hook_main, r));
}
