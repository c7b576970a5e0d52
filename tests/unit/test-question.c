/* SPDX-License-Identifier: MIT */
/*
 * test-question - who waits for which answer and for whom it counts, limits of deletions, and the operations of a view that ask; no
 * mount, a clock that the test moves
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/control.h"
#include "fs/deletions.h"
#include "fs/question.h"
#include "viewed.h"

#define SECOND INT64_C(1000000)

static int64_t fake_now = 1000 * SECOND; /* atomic: waiting threads read it */

static int64_t fake_clock(void)
{
	return __atomic_load_n(&fake_now, __ATOMIC_SEQ_CST);
}

static void step(int seconds)
{
	__atomic_add_fetch(&fake_now, seconds * SECOND, __ATOMIC_SEQ_CST);
}

static struct questions *new_questions(void)
{
	struct questions *q = questions_new(60, 0);

	questions_set_clock(q, fake_clock);
	return q;
}

/* A thread that asks. */
struct waiter {
	struct questions *q;
	struct question_about about;
	struct question_answer answer;
	bool first, joined; /* of the question; it was one of those that may wait */
	int over;           /* atomic: the caller has gone */
	GThread *thread;
};

static bool waiter_over(void *user)
{
	return __atomic_load_n(&((struct waiter *)user)->over, __ATOMIC_SEQ_CST);
}

static void *waiter_main(void *user)
{
	struct waiter *w = user;
	struct question *question = questions_join(w->q, &w->about, 0, &w->first, &w->answer.verdict);

	w->joined = question;
	if (question)
		questions_wait(w->q, question, &w->about.asker, waiter_over, w, &w->answer);
	return NULL;
}

static struct question_asker process(int pid)
{
	return (struct question_asker){ .pid = pid, .started = 7, .uid = 1 };
}

static unsigned waiting(struct questions *q)
{
	g_autoptr(GVariant) list = g_variant_ref_sink(questions_list(q));
	unsigned n = 0;

	for (gsize i = 0; i < g_variant_n_children(list); i++) {
		g_autoptr(GVariant) question = g_variant_get_child_value(list, i);
		guint32 count = 0;

		g_variant_lookup(question, "waiting", "u", &count);
		n += count;
	}
	return n;
}

static struct waiter *ask(struct questions *q, const char *subject, int pid)
{
	struct waiter *w = g_new0(struct waiter, 1);
	unsigned before = waiting(q);

	w->q = q;
	w->about = (struct question_about){ .kind = g_strdup("file"), .operation = g_strdup("read"), .subject = g_strdup(subject),
					    .keys = g_ptr_array_new_with_free_func(g_free), .asker = process(pid) };
	g_ptr_array_add(w->about.keys, g_strconcat("read ", subject, NULL));
	w->thread = g_thread_new("ask", waiter_main, w);
	while (waiting(q) == before)
		g_usleep(1000);
	return w;
}

/* What the thread got; frees @w. */
static enum question_verdict ended(struct waiter *w)
{
	enum question_verdict v;

	if (w->thread)
		g_thread_join(w->thread);
	v = w->answer.verdict;
	question_about_clear(&w->about);
	g_free(w->answer.by);
	g_free(w);
	return v;
}

static uint32_t oldest(struct questions *q)
{
	g_autoptr(GVariant) list = g_variant_ref_sink(questions_list(q));
	g_autoptr(GVariant) question = g_variant_n_children(list) ? g_variant_get_child_value(list, 0) : NULL;
	guint32 id = 0;

	if (question)
		g_variant_lookup(question, "id", "u", &id);
	return id;
}

static void close_and_free(struct questions *q)
{
	questions_close(q);
	questions_free(q);
}

static void check_known(struct questions *q, const char *key, int pid, enum question_known want)
{
	const struct question_asker who = process(pid);

	assert_int_equal(questions_known(q, key, &who), want);
}

static void test_once_is_for_who_asked_and_a_while(void **state)
{
	struct questions *q = new_questions();
	struct waiter *w = ask(q, "f", 10);

	(void)state;
	assert_true(questions_answer(q, oldest(q), true, QUESTION_ONCE, "me"));
	assert_int_equal(ended(w), QUESTION_ALLOW);
	check_known(q, "read f", 10, QUESTION_YES_ONCE);
	check_known(q, "read f", 11, QUESTION_OPEN);
	check_known(q, "change f", 10, QUESTION_OPEN);
	/* Its number again, but started later. */
	assert_int_equal(questions_known(q, "read f", &(struct question_asker){ .pid = 10, .started = 8 }), QUESTION_OPEN);
	step(QUESTION_ONCE_SECONDS - 1);
	check_known(q, "read f", 10, QUESTION_YES_ONCE);
	step(1);
	check_known(q, "read f", 10, QUESTION_OPEN);
	close_and_free(q);
}

static void test_a_yes_can_be_used_up(void **state)
{
	struct questions *q = new_questions();
	struct waiter *w = ask(q, "f", 10);
	const struct question_asker who = process(10);

	(void)state;
	questions_answer(q, oldest(q), true, QUESTION_ONCE, NULL);
	ended(w);
	questions_use_up(q, "read f", &who);
	check_known(q, "read f", 10, QUESTION_OPEN);
	close_and_free(q);
}

static void test_wider_scopes_are_for_all(void **state)
{
	struct questions *q = new_questions();

	(void)state;
	for (int scope = QUESTION_PATH; scope <= QUESTION_ALWAYS; scope++) {
		struct waiter *w = ask(q, scope == QUESTION_PATH ? "p" : "a", 10);

		questions_answer(q, oldest(q), true, (enum question_scope)scope, NULL);
		assert_int_equal(ended(w), QUESTION_ALLOW);
	}
	step(100000);
	check_known(q, "read p", 99, QUESTION_YES);
	check_known(q, "read a", 0, QUESTION_YES);
	assert_int_equal(questions_known_to_all(q, "read p"), QUESTION_YES);
	close_and_free(q);
}

static void test_a_no_counts_for_the_process(void **state)
{
	struct questions *q = new_questions();
	struct waiter *w = ask(q, "f", 10);

	(void)state;
	/* A scope opens nothing with it. */
	questions_answer(q, oldest(q), false, QUESTION_ALWAYS, NULL);
	assert_int_equal(ended(w), QUESTION_DENY);
	check_known(q, "read f", 10, QUESTION_NO);
	check_known(q, "read f", 11, QUESTION_OPEN);
	step(QUESTION_ONCE_SECONDS);
	check_known(q, "read f", 10, QUESTION_OPEN);
	close_and_free(q);
}

static void test_time_runs_out(void **state)
{
	struct questions *q = new_questions();
	struct waiter *w = ask(q, "f", 10), *late;

	(void)state;
	step(59);
	late = ask(q, "f", 11); /* one question, one deadline */
	assert_int_equal(waiting(q), 2);
	step(1);
	assert_int_equal(ended(w), QUESTION_TIMEOUT);
	assert_int_equal(ended(late), QUESTION_TIMEOUT);
	check_known(q, "read f", 10, QUESTION_NO);
	check_known(q, "read f", 11, QUESTION_NO);
	assert_int_equal(oldest(q), 0);
	close_and_free(q);
}

static void test_equal_questions_are_one(void **state)
{
	struct questions *q = new_questions();
	struct waiter *a = ask(q, "f", 10), *b = ask(q, "f", 11), *other = ask(q, "g", 10);
	uint32_t id = oldest(q);

	(void)state;
	assert_true(a->first && !b->first && other->first);
	questions_answer(q, id, true, QUESTION_ONCE, NULL);
	assert_int_equal(ended(a), QUESTION_ALLOW);
	assert_int_equal(ended(b), QUESTION_ALLOW);
	/* Both asked. */
	check_known(q, "read f", 10, QUESTION_YES_ONCE);
	check_known(q, "read f", 11, QUESTION_YES_ONCE);
	assert_false(questions_answer(q, id, false, QUESTION_ONCE, NULL));
	assert_int_equal(oldest(q), id + 1);
	questions_close(q);
	assert_int_equal(ended(other), QUESTION_CLOSED);
	questions_free(q);
}

static void test_who_goes_leaves_the_others(void **state)
{
	struct questions *q = new_questions();
	struct waiter *a = ask(q, "f", 10), *b = ask(q, "f", 11);

	(void)state;
	__atomic_store_n(&a->over, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(ended(a), QUESTION_ENDED);
	assert_int_equal(waiting(q), 1);
	check_known(q, "read f", 10, QUESTION_OPEN);
	__atomic_store_n(&b->over, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(ended(b), QUESTION_ENDED);
	assert_int_equal(oldest(q), 0);
	close_and_free(q);
}

/* One thread reports the end of a question, and none an answer. */
static void test_one_reports_the_end(void **state)
{
	struct questions *q = new_questions();
	unsigned reports = 0;

	(void)state;
	for (int round = 0; round < 3; round++) {
		struct waiter *w[3];

		for (int i = 0; i < 3; i++)
			w[i] = ask(q, "f", 0);
		if (round == 0)
			step(60);
		else if (round == 1)
			questions_answer(q, oldest(q), true, QUESTION_ONCE, NULL);
		for (int i = 0; round == 2 && i < 3; i++)
			__atomic_store_n(&w[i]->over, 1, __ATOMIC_SEQ_CST);
		reports = 0;
		for (int i = 0; i < 3; i++) {
			g_thread_join(g_steal_pointer(&w[i]->thread));
			reports += !w[i]->answer.reported;
			ended(w[i]);
		}
		assert_int_equal(reports, round != 1);
	}
	close_and_free(q);
}

static void test_not_too_many_wait(void **state)
{
	struct questions *q = new_questions();
	struct waiter *w[QUESTION_WAITING_MAX];
	struct question_about more = { .kind = (char *)"file", .operation = (char *)"read", .subject = (char *)"more", .asker = process(5) };
	enum question_verdict why;
	bool first;

	(void)state;
	more.keys = g_ptr_array_new();
	g_ptr_array_add(more.keys, (char *)"read more");
	for (int i = 0; i < QUESTION_WAITING_MAX; i++)
		w[i] = ask(q, i % 2 ? "f" : "g", 100 + i);
	assert_null(questions_join(q, &more, 0, &first, &why));
	assert_int_equal(why, QUESTION_BUSY);
	check_known(q, "read more", 5, QUESTION_NO);
	assert_int_equal(questions_end_all(q), 2);
	for (int i = 0; i < QUESTION_WAITING_MAX; i++)
		assert_int_equal(ended(w[i]), QUESTION_CLOSED);
	/* That was for those; the next one waits again. */
	w[0] = ask(q, "more", 6);
	questions_close(q);
	assert_int_equal(ended(w[0]), QUESTION_CLOSED);
	assert_null(questions_join(q, &more, 0, &first, &why));
	assert_int_equal(why, QUESTION_CLOSED);
	g_ptr_array_unref(more.keys);
	questions_free(q);
}

static void test_description(void **state)
{
	struct questions *q = new_questions();
	struct waiter *w = ask(q, "a\xff" "b", 10);
	g_autoptr(GVariant) list = g_variant_ref_sink(questions_list(q));
	g_autoptr(GVariant) question = g_variant_get_child_value(list, 0);
	const char *subject, *exact;
	gint64 left;

	(void)state;
	assert_true(g_variant_lookup(question, "subject", "&s", &subject) && g_utf8_validate(subject, -1, NULL));
	assert_true(g_variant_lookup(question, "subject_b64", "&s", &exact));
	assert_string_equal(exact, "Yf9i");
	assert_true(g_variant_lookup(question, "seconds_left", "x", &left));
	assert_int_equal(left, 60);
	questions_close(q);
	ended(w);
	questions_free(q);
}

static void test_this_process_is_known(void **state)
{
	struct question_asker a, b, none;

	(void)state;
	question_asker_read(getpid(), 5, &a);
	question_asker_read(getpid(), 5, &b);
	assert_int_equal(a.pid, getpid());
	assert_true(a.started > 0 && a.started == b.started);
	question_asker_read(0, 5, &none);
	assert_int_equal(none.pid, 0);
}

/* Deletions */

static void test_deletions(void **state)
{
	struct deletions d = { .limit = 5, .limit_per_minute = 3 };
	const char *limit = NULL;
	int64_t now = 7 * SECOND;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_false(deletions_full(&d, now, &limit));
		deletions_count(&d, now);
		now += 10 * SECOND;
	}
	assert_true(deletions_full(&d, now, &limit));
	assert_string_equal(limit, "deletions_per_minute");
	/* The first leaves the minute. */
	now = 67 * SECOND;
	assert_false(deletions_full(&d, now, &limit));
	deletions_count(&d, now);
	assert_true(deletions_full(&d, now, &limit));
	now += 1000 * SECOND;
	assert_false(deletions_full(&d, now, &limit));
	deletions_count(&d, now);
	now += 1000 * SECOND;
	assert_true(deletions_full(&d, now, &limit));
	assert_string_equal(limit, "deletions");
	deletions_restart(&d);
	assert_false(deletions_full(&d, now, &limit));
	assert_false(deletions_full(&(struct deletions){ .total = 1000000 }, now, &limit));
}

/* Operations */

/* A human who gives one answer to the next question. */
struct human {
	struct overlay *overlay;
	bool allow;
	enum question_scope scope;
	char *asked; /* "operation subject[ -> new]" */
	GThread *thread;
};

static void *human_main(void *user)
{
	struct human *h = user;
	struct questions *q = overlay_asked(h->overlay);
	struct question_about about;
	uint32_t id;

	while (!(id = oldest(q)))
		g_usleep(1000);
	assert_true(questions_find(q, id, &about));
	h->asked = g_strconcat(about.operation, " ", about.subject, about.new_subject ? " -> " : NULL, about.new_subject, NULL);
	question_about_clear(&about);
	assert_int_equal(overlay_answer(h->overlay, id, h->allow, h->scope, NULL), 0);
	return NULL;
}

/* After an operation that asks: what was asked, once it is answered. Caller frees. */
static char *answered(struct viewed *v, bool allow, enum question_scope scope)
{
	struct human h = { .overlay = v->overlay, .allow = allow, .scope = scope };

	h.thread = g_thread_new("human", human_main, &h);
	assert_int_equal(overlay_ask(v->overlay, NULL, NULL), 0);
	g_thread_join(h.thread);
	return h.asked;
}

#define asked_for(v, allow, scope, want)                                  \
	do {                                                              \
		g_autofree char *asked_text = answered(v, allow, scope); \
		assert_string_equal(asked_text, want);                   \
	} while (0)

static void open_asking(struct viewed *v)
{
	GError *error = NULL;

	viewed_open(v);
	assert_true(overlay_audit(v->overlay, NULL, &error));
	assert_int_equal(overlay_questions(v->overlay), 0);
	questions_set_clock(overlay_asked(v->overlay), fake_clock);
	overlay_caller(getpid(), getuid());
}

static struct viewed *new_asking(const char *rules)
{
	struct viewed *v = viewed_new(rules);

	host_text(v, "s", "secret");
	host_text(v, "c", "careful");
	host_text(v, "r", "read");
	host_text(v, "d/x", "x");
	host_text(v, "d/y", "y");
	host_text(v, "f", "free");
	open_asking(v);
	return v;
}

#define RULES "write = **\nask = /s\nask-change = /c, /d\n"

static int read_it(struct viewed *v, const char *path)
{
	g_autofree char *text = NULL;

	return view_read(v, path, &text);
}

static void test_reading_asks(void **state)
{
	g_autoptr(viewed_t) v = new_asking(RULES);
	g_autofree char *names = NULL;
	struct overlay_entry e;
	struct attr a;

	(void)state;
	/* Looking does not. */
	assert_int_equal(view_list(v, "", &names), 0);
	assert_int_equal(view_stat(v, "s", &a), 0);
	assert_int_equal(a.mode & 0777, 0644);
	assert_int_equal(a.size, 6);
	assert_int_equal(overlay_getattr(v->overlay, view_ino(v, "s"), false, &e), 0);
	assert_int_equal(overlay_getattr(v->overlay, view_ino(v, "s"), true, &e), 0);
	assert_int_equal(read_it(v, "c"), 0);
	assert_int_equal(read_it(v, "s"), OVERLAY_ASKS);
	asked_for(v, false, QUESTION_ONCE, "read s");
	assert_int_equal(read_it(v, "s"), -EACCES);
	step(QUESTION_ONCE_SECONDS);
	assert_int_equal(read_it(v, "s"), OVERLAY_ASKS);
	asked_for(v, true, QUESTION_ONCE, "read s");
	assert_int_equal(read_it(v, "s"), 0);
	/* Reading is not changing. */
	assert_int_equal(view_append(v, "s", "more"), OVERLAY_ASKS);
	asked_for(v, true, QUESTION_PATH, "write s");
	assert_int_equal(view_append(v, "s", "more"), 0);
	step(QUESTION_ONCE_SECONDS);
	assert_int_equal(view_append(v, "s", "more"), 0);
	assert_int_equal(read_it(v, "s"), OVERLAY_ASKS);
}

static void test_changes_ask_once_for_all(void **state)
{
	g_autoptr(viewed_t) v = new_asking(RULES);
	g_autofree char *changes = NULL;

	(void)state;
	/* What fails anyway asks nothing. */
	assert_int_equal(view_mkdir(v, "c"), -EEXIST);
	assert_int_equal(view_rmdir(v, "d"), -ENOTEMPTY);
	assert_int_equal(view_rename(v, "d/x", "d/y", 1 /* RENAME_NOREPLACE */), -EEXIST);
	assert_int_equal(view_rename(v, "d/x", "c", 0), OVERLAY_ASKS);
	changes = view_changes(v);
	assert_string_equal(changes, "");
	asked_for(v, true, QUESTION_ONCE, "rename d/x -> c");
	assert_int_equal(view_rename(v, "d/x", "c", 0), 0);
	assert_int_equal(view_create(v, "d/new", 0644), OVERLAY_ASKS);
	asked_for(v, true, QUESTION_ONCE, "create d/new");
	assert_int_equal(view_text(v, "d/new", "text"), 0);
	assert_int_equal(view_unlink(v, "d/y"), OVERLAY_ASKS);
	asked_for(v, false, QUESTION_ONCE, "unlink d/y");
	assert_int_equal(view_unlink(v, "d/y"), -EACCES);
}

/* What moved under a rule keeps asking under its new name, whatever was allowed for another object there. */
static void test_an_answer_is_for_one_object(void **state)
{
	g_autoptr(viewed_t) v = new_asking(RULES);

	(void)state;
	assert_int_equal(read_it(v, "s"), OVERLAY_ASKS);
	asked_for(v, true, QUESTION_ALWAYS, "read s");
	assert_int_equal(view_chmod(v, "s", 0600), OVERLAY_ASKS);
	asked_for(v, true, QUESTION_ALWAYS, "chmod s");
	assert_int_equal(view_rename(v, "s", "moved", 0), OVERLAY_ASKS);
	asked_for(v, true, QUESTION_PATH, "rename s -> moved");
	assert_int_equal(view_rename(v, "s", "moved", 0), 0);
	assert_int_equal(read_it(v, "moved"), OVERLAY_ASKS);
}

static int last_id(struct viewed *v)
{
	g_autofree char *text = NULL;

	overlay_lock(v->overlay);
	text = store_get(overlay_store(v->overlay), "last-question");
	overlay_unlock(v->overlay);
	return text ? atoi(text) : 0;
}

static void test_the_life_of_the_sandbox(void **state)
{
	g_autoptr(viewed_t) v = new_asking(RULES);
	int64_t start = view_snapshot(v, "start");

	(void)state;
	assert_int_equal(read_it(v, "s"), OVERLAY_ASKS);
	asked_for(v, true, QUESTION_ALWAYS, "read s");
	assert_int_equal(view_append(v, "s", "1"), OVERLAY_ASKS);
	asked_for(v, true, QUESTION_PATH, "write s");
	assert_int_equal(view_append(v, "s", "1"), 0);
	view_rollback(v, start, NULL);
	step(1000);
	assert_int_equal(read_it(v, "s"), 0);
	viewed_close(v);
	open_asking(v);
	assert_int_equal(read_it(v, "s"), 0);
	assert_int_equal(view_append(v, "s", "1"), OVERLAY_ASKS);
	/* The third of the sandbox, not the first of this mount: an answer that comes too late meets no other question. */
	assert_int_equal(overlay_answer(v->overlay, 1, true, QUESTION_ONCE, NULL), -ENOENT);
	asked_for(v, false, QUESTION_ONCE, "write s");
	assert_int_equal(last_id(v), 3);
}

static void test_nobody_to_ask(void **state)
{
	g_autoptr(viewed_t) v = viewed_new(RULES);

	(void)state;
	host_text(v, "s", "secret");
	host_text(v, "c", "careful");
	viewed_open(v);
	assert_int_equal(read_it(v, "s"), -EACCES);
	assert_int_equal(view_append(v, "c", "x"), -EACCES);
	assert_int_equal(view_unlink(v, "c"), -EACCES);
	assert_int_equal(overlay_ask(v->overlay, NULL, NULL), -EACCES);
	assert_int_equal(overlay_answer(v->overlay, 1, true, QUESTION_ONCE, NULL), -ENOENT);
	/* Whose caller is not known is not asked for. */
	viewed_close(v);
	open_asking(v);
	overlay_caller(0, 0);
	assert_int_equal(read_it(v, "s"), -EACCES);
}

static void test_beyond_the_limit_deletions_ask(void **state)
{
	g_autoptr(viewed_t) v = new_asking("write = **\nscratch = /tmp\n[limits t]\ndeletions_per_minute = 2\n");

	(void)state;
	assert_int_equal(view_mkdir(v, "tmp"), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(view_text(v, "tmp/t", "t"), 0);
		assert_int_equal(view_unlink(v, "tmp/t"), 0);
	}
	assert_int_equal(view_unlink(v, "d/x"), 0);
	assert_int_equal(view_rename(v, "c", "s", 0), 0);
	assert_int_equal(view_unlink(v, "d/y"), OVERLAY_ASKS);
	assert_int_equal(view_rename(v, "f", "r", 0), OVERLAY_ASKS);
	assert_int_equal(view_rmdir(v, "tmp"), 0);
	assert_int_equal(view_rename(v, "f", "g", 0), 0); /* over nothing */
	assert_int_equal(view_unlink(v, "d/y"), OVERLAY_ASKS);
	asked_for(v, true, QUESTION_ONCE, "unlink d/y");
	/* Worth as many as the limit. */
	assert_int_equal(view_unlink(v, "d/y"), 0);
	assert_int_equal(view_rmdir(v, "d"), 0);
	assert_int_equal(view_unlink(v, "r"), OVERLAY_ASKS);
	asked_for(v, false, QUESTION_ONCE, "unlink r");
	assert_int_equal(view_unlink(v, "r"), -EACCES);
	step(60);
	assert_int_equal(view_unlink(v, "r"), 0);
	assert_int_equal(view_unlink(v, "g"), 0);
	assert_int_equal(view_unlink(v, "s"), OVERLAY_ASKS);
	step(55);
	asked_for(v, false, QUESTION_ONCE, "unlink s");
	step(5); /* the minute is over, but somebody said no */
	assert_int_equal(view_unlink(v, "s"), -EACCES);
	step(5);
	assert_int_equal(view_unlink(v, "s"), 0);
}

/* The control socket */

struct asking_peer {
	struct control *control;
	GVariant *answer;
	GError *error;
	GThread *thread;
};

static GVariant *network_question(guint32 timeout)
{
	return g_variant_ref_sink(g_variant_new_parsed("{'kind': <'network'>, 'subject': <'example.invalid:443'>, 'operation': <'connect'>, "
						       "'program': <'agent'>, 'pid': <%i>, 'timeout': <%u>}", 0, timeout));
}

static void *peer_main(void *user)
{
	struct asking_peer *p = user;
	g_autoptr(GVariant) arguments = network_question(0);

	p->answer = control_call(p->control, "question", arguments, &p->error);
	return NULL;
}

static void peer_ask(struct asking_peer *p, const char *socket)
{
	*p = (struct asking_peer){ .control = control_connect(socket, NULL) };
	assert_non_null(p->control);
	p->thread = g_thread_new("peer", peer_main, p);
}

static void check_verdict(GVariant *answer, const char *want)
{
	const char *verdict;

	assert_non_null(answer);
	assert_true(g_variant_lookup(answer, "verdict", "&s", &verdict));
	assert_string_equal(verdict, want);
	g_variant_unref(answer);
}

static void wait_for_questions(struct viewed *v, bool some)
{
	while ((oldest(overlay_asked(v->overlay)) != 0) != some)
		g_usleep(1000);
}

static GVariant *give_answer(struct control *c, uint32_t id, const char *verdict, const char *scope, GError **error)
{
	g_autoptr(GVariant) arguments = g_variant_ref_sink(g_variant_new_parsed("{'id': <%u>, 'verdict': <%s>, 'scope': <%s>}", id, verdict, scope));

	return control_call(c, "answer", arguments, error);
}

static void test_questions_of_a_proxy(void **state)
{
	g_autoptr(viewed_t) v = new_asking(RULES);
	g_autofree char *path = g_build_filename(v->dir, "socket", NULL);
	g_autoptr(GError) error = NULL;
	struct control_server *server = control_serve(v->overlay, path, &error);
	struct control *c = control_connect(path, &error);
	struct asking_peer peers[40];
	g_autoptr(GVariant) arguments = network_question(0);

	(void)state;
	assert_non_null(server);
	/* A no is for those who wait. */
	peer_ask(&peers[0], path);
	wait_for_questions(v, true);
	g_variant_unref(give_answer(c, oldest(overlay_asked(v->overlay)), "deny", "once", &error));
	g_thread_join(peers[0].thread);
	check_verdict(peers[0].answer, "deny");
	control_close(peers[0].control);
	/* Time runs out. */
	peer_ask(&peers[0], path);
	wait_for_questions(v, true);
	step(60);
	g_thread_join(peers[0].thread);
	check_verdict(peers[0].answer, "timeout");
	control_close(peers[0].control);
	/* All that may wait do, and others are served all the same: the answer comes through. */
	for (int i = 0; i < QUESTION_WAITING_MAX; i++)
		peer_ask(&peers[i], path);
	while (waiting(overlay_asked(v->overlay)) < QUESTION_WAITING_MAX)
		g_usleep(1000);
	peer_ask(&peers[QUESTION_WAITING_MAX], path);
	g_thread_join(peers[QUESTION_WAITING_MAX].thread);
	check_verdict(peers[QUESTION_WAITING_MAX].answer, "deny");
	assert_null(give_answer(c, 9999, "allow", "once", &error));
	assert_true(g_error_matches(error, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND));
	g_clear_error(&error);
	assert_null(give_answer(c, oldest(overlay_asked(v->overlay)), "allow", "ever", &error));
	g_clear_error(&error);
	g_variant_unref(give_answer(c, oldest(overlay_asked(v->overlay)), "allow", "path", &error));
	for (int i = 0; i <= QUESTION_WAITING_MAX; i++) {
		if (i < QUESTION_WAITING_MAX) {
			g_thread_join(peers[i].thread);
			check_verdict(peers[i].answer, "allow");
		}
		control_close(peers[i].control);
	}
	/* Known from now on. */
	check_verdict(control_call(c, "question", arguments, &error), "allow");
	control_close(c);
	control_stop(server);
}

static void test_a_proxy_hangs_up(void **state)
{
	g_autoptr(viewed_t) v = new_asking(RULES);
	g_autofree char *path = g_build_filename(v->dir, "socket", NULL);
	g_autoptr(GError) error = NULL;
	struct control_server *server = control_serve(v->overlay, path, &error);
	struct asking_peer p;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		/* Only what a forked child of threads may do: the connection is made by hand. */
		execl("/proc/self/exe", "test-question", "--ask", path, NULL);
		_exit(1);
	}
	wait_for_questions(v, true);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	wait_for_questions(v, false);
	/* The view goes while somebody waits. */
	peer_ask(&p, path);
	wait_for_questions(v, true);
	overlay_questions_close(v->overlay);
	g_thread_join(p.thread);
	check_verdict(p.answer, "deny");
	control_close(p.control);
	control_stop(server);
}

/* No kind that an operation in the view has can be asked for, or answered in advance, from outside. */
static void test_only_the_network_is_asked_for(void **state)
{
	static const char *const bad[] = {
		"{'kind': <'file'>, 'subject': <'s'>, 'operation': <'read'>}", "{'kind': <'read'>, 'subject': <'s'>, 'operation': <'read'>}",
		"{'kind': <'network'>, 'operation': <'connect'>}", "{'kind': <'network'>, 'subject': <'h:1'>}",
	};
	g_autoptr(viewed_t) v = new_asking(RULES);
	struct control *c = control_local(v->overlay);

	(void)state;
	overlay_questions_close(v->overlay); /* one that were put would have its end at once */
	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
		g_autoptr(GVariant) arguments = g_variant_ref_sink(g_variant_new_parsed(bad[i], NULL));
		g_autoptr(GError) error = NULL;

		assert_null(control_call(c, "question", arguments, &error));
		assert_non_null(error);
	}
	control_close(c);
}

/* The other process of test_a_proxy_hangs_up(). */
static int ask_until_killed(const char *socket)
{
	g_autoptr(GVariant) arguments = network_question(0), answer = NULL;
	struct control *c = control_connect(socket, NULL);

	answer = c ? control_call(c, "question", arguments, NULL) : NULL;
	return 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once_is_for_who_asked_and_a_while),
		cmocka_unit_test(test_a_yes_can_be_used_up),
		cmocka_unit_test(test_wider_scopes_are_for_all),
		cmocka_unit_test(test_a_no_counts_for_the_process),
		cmocka_unit_test(test_time_runs_out),
		cmocka_unit_test(test_equal_questions_are_one),
		cmocka_unit_test(test_who_goes_leaves_the_others),
		cmocka_unit_test(test_one_reports_the_end),
		cmocka_unit_test(test_not_too_many_wait),
		cmocka_unit_test(test_description),
		cmocka_unit_test(test_this_process_is_known),
		cmocka_unit_test(test_deletions),
		cmocka_unit_test(test_reading_asks),
		cmocka_unit_test(test_changes_ask_once_for_all),
		cmocka_unit_test(test_an_answer_is_for_one_object),
		cmocka_unit_test(test_the_life_of_the_sandbox),
		cmocka_unit_test(test_nobody_to_ask),
		cmocka_unit_test(test_beyond_the_limit_deletions_ask),
		cmocka_unit_test(test_questions_of_a_proxy),
		cmocka_unit_test(test_a_proxy_hangs_up),
		cmocka_unit_test(test_only_the_network_is_asked_for),
	};

	if (argc == 3 && strcmp(argv[1], "--ask") == 0)
		return ask_until_killed(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
