/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * question - what a human is asked, who waits for the answer, and what was answered
 *
 * Knows neither files nor FUSE: it is about texts. What an answer counts for is a list of *keys*, opaque strings that whoever asks makes
 * of its subject ("read secret.txt"); an operation may need several. A yes holds
 *   once    for the process that asked, for QUESTION_ONCE_SECONDS: a kernel makes several messages of what is one step to a program;
 *   path    for these keys, whoever asks, until the view is unmounted;
 *   always  the same for the life of the sandbox: the caller keeps them (fs/overlay_ask.c) and gives them back with questions_grant().
 * A no, or no answer, holds for the process that asked for QUESTION_ONCE_SECONDS, so that a program that tries again does not ask again;
 * but for one that was interrupted. Where no process is known (asker.pid 0) nothing but the calls that wait are answered.
 *
 * Equal questions (same kind, operation, subjects and keys) asked at the same time are one, with one deadline. At most QUESTION_WAITING_MAX
 * threads wait; whoever comes then gets QUESTION_BUSY at once. questions_close() ends all waiting with QUESTION_CLOSED, and nobody waits
 * after it.
 *
 * Thread-safe; one lock inside, under which nothing else is taken, so it may be called with overlay->lock held, but for
 * questions_wait() and questions_free(), which wait.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define QUESTION_WAITING_MAX 32
#define QUESTION_ONCE_SECONDS 10
#define QUESTION_TIMEOUT_SECONDS 60

struct question;
struct questions;

enum question_scope { QUESTION_ONCE, QUESTION_PATH, QUESTION_ALWAYS };
enum question_verdict {
	QUESTION_ALLOW,
	QUESTION_DENY,
	QUESTION_TIMEOUT, /* nobody answered */
	QUESTION_ENDED,   /* nobody waits for it any more: interrupted, killed */
	QUESTION_CLOSED,  /* the view is being unmounted */
	QUESTION_BUSY,    /* too many wait */
};
const char *question_verdict_name(enum question_verdict v);
const char *question_scope_name(enum question_scope s);
bool question_scope_from_name(const char *name, enum question_scope *ret);

/* A process, by its number and start, so that a number that is used again is another. */
struct question_asker {
	int32_t pid; /* of the process, not of a thread; 0 = not known */
	uint64_t started;
	uint32_t uid;
};
/* question_asker_read() - of the process that the thread @tid belongs to. */
void question_asker_read(int32_t tid, uint32_t uid, struct question_asker *ret);

/* What is asked. Strings are bytes; all but kind, operation and subject may be NULL. */
struct question_about {
	char *kind;        /* "file", "deletions", "network" */
	char *operation;
	char *subject;     /* a path, or host:port */
	char *new_subject; /* of a rename or a link */
	char *rule;        /* which asks, with file and line */
	char *program;
	GPtrArray *keys;   /* frees itself */
	struct question_asker asker;
};
void question_about_clear(struct question_about *a);

/* questions_new() - @timeout: seconds that a question waits; @last_id: the number of the last one there was. */
struct questions *questions_new(unsigned timeout, uint32_t last_id);
/* questions_free() - after questions_close(), when nobody waits any more. */
void questions_free(struct questions *q);
/* questions_set_clock() - microseconds that only grow, in place of the system's. For tests. */
void questions_set_clock(struct questions *q, int64_t (*clock)(void));
int64_t questions_now(const struct questions *q);
void questions_close(struct questions *q);

/* What is known */

enum question_known { QUESTION_OPEN, QUESTION_YES, QUESTION_YES_ONCE, QUESTION_NO };
enum question_known questions_known(struct questions *q, const char *key, const struct question_asker *who);
/* questions_known_to_all() - the same where it does not depend on who asks, which costs less: OPEN or YES. */
enum question_known questions_known_to_all(struct questions *q, const char *key);
/* questions_refused() - whether somebody has a no for @key; costs nothing where nobody has. */
bool questions_refused(struct questions *q, const char *key);
/* questions_use_up() - a yes that counted once ends with this use. */
void questions_use_up(struct questions *q, const char *key, const struct question_asker *who);
/* questions_grant() - a yes for @key whoever asks. */
void questions_grant(struct questions *q, const char *key);

/* Asking */

struct question_answer {
	enum question_verdict verdict;
	enum question_scope scope;
	char *by;      /* who; NULL for nobody. Caller frees. */
	bool reported; /* somebody recorded the end of the question: an answer is, by whoever gave it */
};

/*
 * questions_join() - takes part in the question @about, which stays the caller's; @ret_new: it is the first to ask it, and others are to
 * be told. NULL with QUESTION_BUSY or QUESTION_CLOSED in @ret_why, which is a no.
 */
struct question *questions_join(struct questions *q, const struct question_about *about, unsigned timeout, bool *ret_new,
				enum question_verdict *ret_why);
/*
 * questions_wait() - until somebody answers, the time is up, or @over (may be NULL; called without locks, some times a second) says that
 * the caller does not wait any longer (QUESTION_ENDED). Leaves the question. Any other answer is known to questions_known() when it
 * returns.
 */
void questions_wait(struct questions *q, struct question *question, const struct question_asker *who, bool (*over)(void *user), void *user,
		    struct question_answer *ret);

/* Answering */

/* questions_answer() - @by: who, for people. False when no such question waits. */
bool questions_answer(struct questions *q, uint32_t id, bool allow, enum question_scope scope, const char *by);
/* questions_find() - a copy of what a waiting question is about, question_about_clear(). False when there is none. */
bool questions_find(struct questions *q, uint32_t id, struct question_about *ret_about);
/* questions_end_all() - those that wait now get QUESTION_CLOSED; how many they were. */
unsigned questions_end_all(struct questions *q);

uint32_t question_id(const struct question *question);
/* question_ref() - for who looks at it without waiting. */
struct question *question_ref(struct question *question);
void question_unref(struct question *question);
/* question_is_waiting() - false once it has its answer, whatever that is. */
bool question_is_waiting(struct questions *q, const struct question *question);
/*
 * question_describe() - a{sv}: id u, kind, operation, subject, new_subject, rule, program s (valid UTF-8; KEY_b64 has the exact bytes where
 * they are not), pid i, uid u, since x (wall clock, ns), seconds_left x, waiting u (threads). Floating.
 */
GVariant *question_describe(struct questions *q, struct question *question);
/* questions_list() - those that wait, oldest first: aa{sv}. Floating. */
GVariant *questions_list(struct questions *q);
