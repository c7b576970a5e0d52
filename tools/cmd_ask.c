/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "fs/control.h"
#include "tools/asked.h"
#include "tools/command.h"
#include "tools/exit.h"
#include "tools/output.h"
#include "tools/sandbox.h"

#define WATCH_MS 200
#define CTRL_C 3
#define CTRL_D 4

struct ask {
	struct sandbox *sandbox;
	struct control *control;
	gboolean once, path, always;
	bool json;
};
typedef struct ask ask_t; /* for g_auto() only */

static void ask_clear(struct ask *a)
{
	g_clear_pointer(&a->control, control_close);
	g_clear_pointer(&a->sandbox, sandbox_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ask_t, ask_clear)

static bool connect_to(struct ask *a, const char *target, GError **error)
{
	a->sandbox = sandbox_resolve(target, error);
	a->control = a->sandbox ? sandbox_connect(a->sandbox, error) : NULL;
	return a->control;
}

/* Listing */

static int ask_list(struct ask *a, const char *target, GError **error)
{
	g_autoptr(GVariant) questions = NULL;

	if (!connect_to(a, target, error))
		return EXIT_INTERNAL;
	questions = asked_list(a->control, error);
	if (!questions)
		return EXIT_INTERNAL;
	if (a->json)
		json_print(stdout, g_variant_new_parsed("{'schema': <'sbxfs.questions/1'>, 'sandbox': <%s>, 'questions': <%@aa{sv}>}",
							a->sandbox->name, questions));
	else if (g_variant_n_children(questions) == 0)
		output_note("sandbox %s asks nothing", a->sandbox->name);
	else
		asked_print(questions, "");
	return EXIT_DONE;
}

/* Answering */

static bool send_answer(struct ask *a, uint32_t id, bool allow, const char *scope, GError **error)
{
	g_autoptr(GVariant) arguments = g_variant_ref_sink(
		g_variant_new_parsed("{'id': <%u>, 'verdict': <%s>, 'scope': <%s>}", id, allow ? "allow" : "deny", scope));
	g_autoptr(GError) failure = NULL;
	g_autoptr(GVariant) answer = control_call(a->control, "answer", arguments, &failure);

	if (answer)
		return true;
	if (g_error_matches(failure, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND))
		tool_error(error, EXIT_NOT_FOUND, NULL,
			   "no question %" PRIu32 " waits in sandbox %s; it was answered, or nobody waits for it any more (sbxfs ask list)", id,
			   a->sandbox->name);
	else
		g_propagate_error(error, g_steal_pointer(&failure));
	return false;
}

static bool parse_id(const char *text, uint32_t *ret, GError **error)
{
	guint64 id;

	if (!g_ascii_string_to_unsigned(text, 10, 1, UINT32_MAX, &id, NULL)) {
		tool_error(error, EXIT_USAGE, text, "'%s' is no question's number; `sbxfs ask list` shows them", text);
		return false;
	}
	*ret = (uint32_t)id;
	return true;
}

static int ask_answer(struct ask *a, const char *number, const char *target, bool allow, GError **error)
{
	const char *scope = a->always ? "always" : a->path ? "path" : "once";
	uint32_t id;

	if (a->once + a->path + a->always > 1 || (!allow && a->once + a->path + a->always > 0)) {
		tool_error(error, EXIT_USAGE, NULL, allow ? "--once, --path and --always exclude each other" :
							    "--once, --path and --always are for allow: a no is about this question only");
		return EXIT_USAGE;
	}
	if (!parse_id(number, &id, error) || !connect_to(a, target, error) || !send_answer(a, id, allow, scope, error))
		return EXIT_INTERNAL;
	if (a->json)
		json_print(stdout, g_variant_new_parsed("{'schema': <'sbxfs.answer/1'>, 'sandbox': <%s>, 'id': <%u>, 'verdict': <%s>, 'scope': <%s>}",
							a->sandbox->name, id, allow ? "allow" : "deny", allow ? scope : "once"));
	else
		output_note("question %" PRIu32 " of sandbox %s: %s%s%s", id, a->sandbox->name, allow ? "allowed" : "denied", allow ? ", " : "",
			    allow ? scope : "");
	return EXIT_DONE;
}

/* Watching */

static guint32 id_of(GVariant *question)
{
	guint32 id = 0;

	g_variant_lookup(question, "id", "u", &id);
	return id;
}

/* The first that was not shown yet; NULL for none. Numbers grow. */
static GVariant *next_question(GVariant *questions, guint32 after)
{
	for (gsize i = 0; i < g_variant_n_children(questions); i++) {
		GVariant *question = g_variant_get_child_value(questions, i);

		if (id_of(question) > after)
			return question;
		g_variant_unref(question);
	}
	return NULL;
}

static bool still_waits(struct ask *a, guint32 id)
{
	g_autoptr(GVariant) questions = asked_list(a->control, NULL);
	g_autoptr(GVariant) question = questions ? next_question(questions, id - 1) : NULL;

	return question && id_of(question) == id;
}

/* A key, without its line; 0 after a moment without one. Ctrl-C and the end of the input are a q, so that the terminal is put back. */
static int read_key(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	char key;

	if (poll(&p, 1, WATCH_MS) <= 0)
		return 0;
	return read(STDIN_FILENO, &key, 1) != 1 || key == CTRL_C || key == CTRL_D ? 'q' : key;
}

static int wait_for_key(struct ask *a, guint32 id)
{
	while (still_waits(a, id)) {
		int key = read_key();

		if (key > 0 && strchr("ypanq", key))
			return key;
	}
	puts("  nobody waits for it any more");
	return 0;
}

/* False when the human has enough. */
static bool let_answer(struct ask *a, GVariant *question)
{
	g_autoptr(GError) error = NULL;
	guint32 id = id_of(question);
	int key;

	/* What was typed before the question was there is no answer to it. */
	tcflush(STDIN_FILENO, TCIFLUSH);
	asked_print_one(question, "");
	fputs("  y once, p for the path, a always, n no, q quit: ", stdout);
	fflush(stdout);
	key = wait_for_key(a, id);
	if (key > 0)
		printf("%c\n", key);
	if (key == 'q')
		return false;
	if (key && !send_answer(a, id, key != 'n', key == 'a' ? "always" : key == 'p' ? "path" : "once", &error))
		printf("  %s\n", error->message);
	return true;
}

static bool show(struct ask *a, GVariant *question, bool interactive)
{
	if (interactive)
		return let_answer(a, question);
	json_print(stdout, g_variant_ref(question));
	return fflush(stdout) == 0;
}

/* Until the view goes, the human has enough, or nobody reads. */
static bool follow(struct ask *a, bool interactive, GError **error)
{
	guint32 shown = 0;

	for (;;) {
		g_autoptr(GVariant) questions = asked_list(a->control, error);
		g_autoptr(GVariant) question = questions ? next_question(questions, shown) : NULL;

		if (!questions)
			return false;
		if (question) {
			shown = id_of(question);
			if (!show(a, question, interactive))
				return true;
		} else if (!interactive) {
			g_usleep(WATCH_MS * 1000);
		} else if (read_key() == 'q') {
			return true;
		}
	}
}

static int ask_watch(struct ask *a, const char *target, GError **error)
{
	bool interactive = !a->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	g_autoptr(GError) failure = NULL;
	struct termios before, raw;

	if (!connect_to(a, target, error))
		return EXIT_INTERNAL;
	if (interactive && tcgetattr(STDIN_FILENO, &before) == 0) {
		output_note("questions of sandbox %s; q quits", a->sandbox->name);
		raw = before;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	if (!follow(a, interactive, &failure) && !g_error_matches(failure, CONTROL_ERROR, CONTROL_ERROR_GONE))
		g_propagate_error(error, g_steal_pointer(&failure));
	if (interactive)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	return EXIT_DONE;
}

int cmd_ask(struct invocation *inv, GError **error)
{
	g_auto(ask_t) a = { 0 };
	const GOptionEntry options[] = {
		{ "once", 0, 0, G_OPTION_ARG_NONE, &a.once, "The yes counts for the process that asks, for ten seconds (default)", NULL },
		{ "path", 0, 0, G_OPTION_ARG_NONE, &a.path, "The yes counts for this path until the view is unmounted", NULL },
		{ "always", 0, 0, G_OPTION_ARG_NONE, &a.always, "The yes counts for this path for the life of the sandbox", NULL },
		{ NULL },
	};
	const struct command_syntax syntax = {
		.arguments = "list [TARGET] | allow ID [TARGET] | deny ID [TARGET] | watch [TARGET]",
		.description = "Operations in the view that the policy says ask for wait for an answer to a question, and are "
			       "refused when none comes in time. Lists the questions, answers one, or watches for them: on a "
			       "terminal each is answered by a key, elsewhere each is a line of JSON.",
		.options = options,
		.min_args = 1,
		.max_args = 3,
		.json = true,
	};
	const char *verb, *first, *second;

	if (!command_parse(inv, &syntax, error))
		return EXIT_DONE;
	a.json = inv->json;
	verb = command_arg(inv, 0);
	first = command_arg(inv, 1);
	second = command_arg(inv, 2);
	if (g_str_equal(verb, "list") && !second)
		return ask_list(&a, first, error);
	if (g_str_equal(verb, "watch") && !second)
		return ask_watch(&a, first, error);
	if ((g_str_equal(verb, "allow") || g_str_equal(verb, "deny")) && first)
		return ask_answer(&a, first, second, g_str_equal(verb, "allow"), error);
	tool_error(error, EXIT_USAGE, verb, "usage: %s %s", inv->program, syntax.arguments);
	return EXIT_USAGE;
}
