/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * ask_hook - the command that is told of each question: on_ask in [ask]
 *
 * The command comes from a profile that the workspace cannot write, and is split into arguments when the policy is read; no shell sees
 * any of it unless it names one. It gets the question on its standard input, as one JSON object on a line (the keys of
 * question_describe(), "schema" "sbxfs.question/1" and "sandbox"); what the sandboxed program chose (paths, its name) is nowhere else. It
 * answers by ending with status 0 and a first line of its standard output that is `allow once`, `allow path`, `allow always` or `deny`;
 * anything else answers nothing, and the question waits on. It is killed, with what it started, when the question is answered otherwise,
 * and runs as the user whom the view belongs to.
 */

struct ask_hooks;
struct overlay;
struct question;

struct ask_hooks *ask_hooks_new(struct overlay *o, const char *command);
/* ask_hooks_free() - after questions_close(); waits until none runs. */
void ask_hooks_free(struct ask_hooks *h);
/* ask_hooks_run() - in a thread of its own. */
void ask_hooks_run(struct ask_hooks *h, struct question *question);
