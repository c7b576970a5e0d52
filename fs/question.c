/* SPDX-License-Identifier: MIT */
#include "fs/question.h"

#include <stdio.h>
#include <string.h>

/*
 * A waiting thread looks this often whether its caller is still there. Told by polling: a session that ends tells nobody, and libfuse calls
 * back for an interrupt with its own locks held. Humans are slower than that.
 */
#define POLL_US (50 * G_TIME_SPAN_MILLISECOND)

struct question {
	gatomicrefcount refs;
	uint32_t id;
	struct question_about about;
	int64_t since;    /* wall clock, ns */
	int64_t deadline; /* of the clock of struct questions */
	unsigned waiting; /* threads */
	bool answered;    /* the rest holds */
	bool reported;
	enum question_verdict verdict;
	enum question_scope scope;
	char *by;
};

/* An answer that holds for one process for a while. */
struct held {
	char *key;
	struct question_asker who;
	int64_t until;
	bool allow;
};

struct questions {
	GMutex lock;
	GCond changed;
	int64_t (*clock)(void);
	unsigned timeout;
	uint32_t last_id;
	unsigned waiting; /* threads, of all questions */
	bool closed;
	GPtrArray *pending; /* struct question, oldest first */
	GHashTable *granted; /* keys */
	GArray *held;
};

static const char *const verdict_names[] = {
	[QUESTION_ALLOW] = "allow", [QUESTION_DENY] = "deny",     [QUESTION_TIMEOUT] = "timeout",
	[QUESTION_ENDED] = "ended", [QUESTION_CLOSED] = "unmount", [QUESTION_BUSY] = "busy",
};
static const char *const scope_names[] = { [QUESTION_ONCE] = "once", [QUESTION_PATH] = "path", [QUESTION_ALWAYS] = "always" };

const char *question_verdict_name(enum question_verdict v)
{
	return verdict_names[v];
}

const char *question_scope_name(enum question_scope s)
{
	return scope_names[s];
}

bool question_scope_from_name(const char *name, enum question_scope *ret)
{
	for (size_t i = 0; i < G_N_ELEMENTS(scope_names); i++) {
		if (strcmp(scope_names[i], name) != 0)
			continue;
		*ret = (enum question_scope)i;
		return true;
	}
	return false;
}

/* Who */

/* The number behind @label in a file of /proc; 0 when it can't be told. */
static int32_t status_number(const char *text, const char *label)
{
	const char *line = strstr(text, label);

	return line ? (int32_t)g_ascii_strtoll(line + strlen(label), NULL, 10) : 0;
}

/* Field 22 of /proc/PID/stat, counted from behind the name, which may hold anything. */
static uint64_t start_of(int32_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/stat", pid), *text = NULL;
	const char *p;

	if (!g_file_get_contents(path, &text, NULL, NULL) || !(p = strrchr(text, ')')))
		return 0;
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? g_ascii_strtoull(p, NULL, 10) : 0;
}

void question_asker_read(int32_t tid, uint32_t uid, struct question_asker *ret)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/status", tid), *text = NULL;

	*ret = (struct question_asker){ .uid = uid };
	if (tid <= 0 || !g_file_get_contents(path, &text, NULL, NULL))
		return;
	ret->pid = status_number(text, "\nTgid:");
	ret->started = start_of(ret->pid);
	if (!ret->started)
		ret->pid = 0;
}

static bool asker_same(const struct question_asker *a, const struct question_asker *b)
{
	return a->pid != 0 && a->pid == b->pid && a->started == b->started;
}

/* What */

void question_about_clear(struct question_about *a)
{
	g_free(a->kind);
	g_free(a->operation);
	g_free(a->subject);
	g_free(a->new_subject);
	g_free(a->rule);
	g_free(a->program);
	g_clear_pointer(&a->keys, g_ptr_array_unref);
	*a = (struct question_about){ 0 };
}

static void about_copy(const struct question_about *from, struct question_about *ret)
{
	*ret = (struct question_about){ .kind = g_strdup(from->kind), .operation = g_strdup(from->operation),
					.subject = g_strdup(from->subject), .new_subject = g_strdup(from->new_subject),
					.rule = g_strdup(from->rule), .program = g_strdup(from->program), .asker = from->asker };
	ret->keys = g_ptr_array_new_with_free_func(g_free);
	for (guint i = 0; from->keys && i < from->keys->len; i++)
		g_ptr_array_add(ret->keys, g_strdup(g_ptr_array_index(from->keys, i)));
}

static bool about_same(const struct question_about *a, const struct question_about *b)
{
	if (strcmp(a->kind, b->kind) != 0 || strcmp(a->operation, b->operation) != 0 || strcmp(a->subject, b->subject) != 0 ||
	    g_strcmp0(a->new_subject, b->new_subject) != 0 || a->keys->len != b->keys->len)
		return false;
	for (guint i = 0; i < a->keys->len; i++)
		if (strcmp(g_ptr_array_index(a->keys, i), g_ptr_array_index(b->keys, i)) != 0)
			return false;
	return true;
}

/* Life */

struct question *question_ref(struct question *question)
{
	g_atomic_ref_count_inc(&question->refs);
	return question;
}

void question_unref(struct question *question)
{
	if (!g_atomic_ref_count_dec(&question->refs))
		return;
	question_about_clear(&question->about);
	g_free(question->by);
	g_free(question);
}

static void question_unref_void(void *question)
{
	question_unref(question);
}

static void held_clear(void *held)
{
	g_free(((struct held *)held)->key);
}

struct questions *questions_new(unsigned timeout, uint32_t last_id)
{
	struct questions *q = g_new0(struct questions, 1);

	g_mutex_init(&q->lock);
	g_cond_init(&q->changed);
	q->clock = g_get_monotonic_time;
	q->timeout = timeout;
	q->last_id = last_id;
	q->pending = g_ptr_array_new_with_free_func(question_unref_void);
	q->granted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	q->held = g_array_new(FALSE, FALSE, sizeof(struct held));
	g_array_set_clear_func(q->held, held_clear);
	return q;
}

void questions_free(struct questions *q)
{
	if (!q)
		return;
	g_ptr_array_unref(q->pending);
	g_hash_table_unref(q->granted);
	g_array_unref(q->held);
	g_cond_clear(&q->changed);
	g_mutex_clear(&q->lock);
	g_free(q);
}

void questions_set_clock(struct questions *q, int64_t (*clock)(void))
{
	q->clock = clock;
}

int64_t questions_now(const struct questions *q)
{
	return q->clock();
}

/* All below: q->lock is held, but for the functions of the header, which take it. */

static void end(struct questions *q, struct question *question, enum question_verdict verdict, const char *by)
{
	if (question->answered)
		return;
	question->answered = true;
	question->verdict = verdict;
	question->by = g_strdup(by);
	g_ptr_array_remove(q->pending, question);
	g_cond_broadcast(&q->changed);
}

static unsigned end_all(struct questions *q)
{
	unsigned n = 0;

	for (; q->pending->len > 0; n++)
		end(q, g_ptr_array_index(q->pending, 0), QUESTION_CLOSED, NULL);
	return n;
}

unsigned questions_end_all(struct questions *q)
{
	unsigned n;

	g_mutex_lock(&q->lock);
	n = end_all(q);
	g_mutex_unlock(&q->lock);
	return n;
}

void questions_close(struct questions *q)
{
	g_mutex_lock(&q->lock);
	q->closed = true;
	end_all(q);
	g_mutex_unlock(&q->lock);
}

/* What is known */

/* The index of what @who was answered about @key, or -1. Drops what is over. */
static int held_find(struct questions *q, const char *key, const struct question_asker *who)
{
	int64_t now = q->clock();

	for (guint i = q->held->len; i-- > 0;) {
		const struct held *h = &g_array_index(q->held, struct held, i);

		if (h->until <= now)
			g_array_remove_index_fast(q->held, i);
	}
	for (guint i = 0; i < q->held->len; i++) {
		const struct held *h = &g_array_index(q->held, struct held, i);

		if (asker_same(&h->who, who) && strcmp(h->key, key) == 0)
			return (int)i;
	}
	return -1;
}

static void hold(struct questions *q, const char *key, const struct question_asker *who, bool allow)
{
	struct held h = { .who = *who, .until = q->clock() + QUESTION_ONCE_SECONDS * G_TIME_SPAN_SECOND, .allow = allow };
	int old = held_find(q, key, who);

	if (!who->pid)
		return;
	if (old >= 0)
		g_array_remove_index_fast(q->held, (guint)old);
	h.key = g_strdup(key);
	g_array_append_val(q->held, h);
}

static void hold_all(struct questions *q, const struct question_about *about, const struct question_asker *who, bool allow)
{
	for (guint i = 0; i < about->keys->len; i++)
		hold(q, g_ptr_array_index(about->keys, i), who, allow);
}

enum question_known questions_known_to_all(struct questions *q, const char *key)
{
	enum question_known known;

	g_mutex_lock(&q->lock);
	known = g_hash_table_contains(q->granted, key) ? QUESTION_YES : QUESTION_OPEN;
	g_mutex_unlock(&q->lock);
	return known;
}

enum question_known questions_known(struct questions *q, const char *key, const struct question_asker *who)
{
	enum question_known known = questions_known_to_all(q, key);
	int i;

	if (known == QUESTION_YES)
		return known;
	g_mutex_lock(&q->lock);
	i = held_find(q, key, who);
	if (i >= 0)
		known = g_array_index(q->held, struct held, i).allow ? QUESTION_YES_ONCE : QUESTION_NO;
	g_mutex_unlock(&q->lock);
	return known;
}

bool questions_refused(struct questions *q, const char *key)
{
	bool found = false;

	g_mutex_lock(&q->lock);
	for (guint i = 0; !found && i < q->held->len; i++) {
		const struct held *h = &g_array_index(q->held, struct held, i);

		found = !h->allow && strcmp(h->key, key) == 0;
	}
	g_mutex_unlock(&q->lock);
	return found;
}

void questions_use_up(struct questions *q, const char *key, const struct question_asker *who)
{
	int i;

	g_mutex_lock(&q->lock);
	i = held_find(q, key, who);
	if (i >= 0)
		g_array_remove_index_fast(q->held, (guint)i);
	g_mutex_unlock(&q->lock);
}

void questions_grant(struct questions *q, const char *key)
{
	g_mutex_lock(&q->lock);
	g_hash_table_add(q->granted, g_strdup(key));
	g_mutex_unlock(&q->lock);
}

/* Asking */

static struct question *find_equal(struct questions *q, const struct question_about *about)
{
	for (guint i = 0; i < q->pending->len; i++) {
		struct question *question = g_ptr_array_index(q->pending, i);

		if (about_same(&question->about, about))
			return question;
	}
	return NULL;
}

static struct question *question_new(struct questions *q, const struct question_about *about, unsigned timeout)
{
	struct question *question = g_new0(struct question, 1);

	g_atomic_ref_count_init(&question->refs);
	about_copy(about, &question->about);
	question->id = ++q->last_id;
	question->since = g_get_real_time() * 1000;
	question->deadline = q->clock() + (int64_t)(timeout ? timeout : q->timeout) * G_TIME_SPAN_SECOND;
	g_ptr_array_add(q->pending, question);
	return question;
}

struct question *questions_join(struct questions *q, const struct question_about *about, unsigned timeout, bool *ret_new,
				enum question_verdict *ret_why)
{
	struct question *question = NULL;

	g_mutex_lock(&q->lock);
	*ret_new = false;
	*ret_why = q->closed ? QUESTION_CLOSED : QUESTION_BUSY;
	if (!q->closed && q->waiting < QUESTION_WAITING_MAX) {
		question = find_equal(q, about);
		*ret_new = !question;
		question = question_ref(question ? question : question_new(q, about, timeout));
		question->waiting++;
		q->waiting++;
	} else {
		hold_all(q, about, &about->asker, false);
	}
	g_mutex_unlock(&q->lock);
	return question;
}

/* False when the caller does not wait any longer. */
static bool wait_a_little(struct questions *q, bool (*over)(void *user), void *user)
{
	bool stays;

	g_cond_wait_until(&q->changed, &q->lock, g_get_monotonic_time() + POLL_US);
	if (!over)
		return true;
	g_mutex_unlock(&q->lock);
	stays = !over(user);
	g_mutex_lock(&q->lock);
	return stays;
}

void questions_wait(struct questions *q, struct question *question, const struct question_asker *who, bool (*over)(void *user), void *user,
		    struct question_answer *ret)
{
	bool stays = true;

	g_mutex_lock(&q->lock);
	while (!question->answered && stays) {
		if (q->clock() >= question->deadline)
			end(q, question, QUESTION_TIMEOUT, NULL);
		else
			stays = wait_a_little(q, over, user);
	}
	question->waiting--;
	q->waiting--;
	if (!question->answered && question->waiting == 0)
		end(q, question, QUESTION_ENDED, NULL);
	*ret = (struct question_answer){ .verdict = question->answered ? question->verdict : QUESTION_ENDED, .scope = question->scope,
					 .reported = !question->answered || question->reported };
	ret->by = g_strdup(question->by);
	question->reported = question->reported || question->answered;
	if (ret->verdict != QUESTION_ENDED)
		hold_all(q, &question->about, who, ret->verdict == QUESTION_ALLOW);
	g_mutex_unlock(&q->lock);
	question_unref(question);
}

/* Answering */

static struct question *find_id(struct questions *q, uint32_t id)
{
	for (guint i = 0; i < q->pending->len; i++) {
		struct question *question = g_ptr_array_index(q->pending, i);

		if (question->id == id)
			return question;
	}
	return NULL;
}

bool questions_answer(struct questions *q, uint32_t id, bool allow, enum question_scope scope, const char *by)
{
	struct question *question;

	g_mutex_lock(&q->lock);
	question = find_id(q, id);
	if (question) {
		for (guint i = 0; allow && scope != QUESTION_ONCE && i < question->about.keys->len; i++)
			g_hash_table_add(q->granted, g_strdup(g_ptr_array_index(question->about.keys, i)));
		question->scope = scope;
		question->reported = true;
		end(q, question, allow ? QUESTION_ALLOW : QUESTION_DENY, by);
	}
	g_mutex_unlock(&q->lock);
	return question != NULL;
}

bool questions_find(struct questions *q, uint32_t id, struct question_about *ret_about)
{
	struct question *question;

	g_mutex_lock(&q->lock);
	question = find_id(q, id);
	if (question)
		about_copy(&question->about, ret_about);
	g_mutex_unlock(&q->lock);
	return question != NULL;
}

bool question_is_waiting(struct questions *q, const struct question *question)
{
	bool waiting;

	g_mutex_lock(&q->lock);
	waiting = !question->answered;
	g_mutex_unlock(&q->lock);
	return waiting;
}

uint32_t question_id(const struct question *question)
{
	return question->id;
}

static void describe_bytes(GVariantBuilder *b, const char *key, const char *value)
{
	g_autofree char *valid = value ? g_utf8_make_valid(value, -1) : NULL;

	if (!value)
		return;
	g_variant_builder_add(b, "{sv}", key, g_variant_new_string(valid));
	if (strcmp(valid, value) != 0) {
		g_autofree char *exact = g_base64_encode((const guchar *)value, strlen(value));
		g_autofree char *exact_key = g_strconcat(key, "_b64", NULL);

		g_variant_builder_add(b, "{sv}", exact_key, g_variant_new_string(exact));
	}
}

static GVariant *describe(struct questions *q, const struct question *question)
{
	const struct question_about *a = &question->about;
	int64_t left = question->deadline - q->clock();
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE_VARDICT);
	g_variant_builder_add(&b, "{sv}", "id", g_variant_new_uint32(question->id));
	describe_bytes(&b, "kind", a->kind);
	describe_bytes(&b, "operation", a->operation);
	describe_bytes(&b, "subject", a->subject);
	describe_bytes(&b, "new_subject", a->new_subject);
	describe_bytes(&b, "rule", a->rule);
	describe_bytes(&b, "program", a->program);
	g_variant_builder_add(&b, "{sv}", "pid", g_variant_new_int32(a->asker.pid));
	g_variant_builder_add(&b, "{sv}", "uid", g_variant_new_uint32(a->asker.uid));
	g_variant_builder_add(&b, "{sv}", "since", g_variant_new_int64(question->since));
	g_variant_builder_add(&b, "{sv}", "seconds_left", g_variant_new_int64(MAX(left, 0) / G_TIME_SPAN_SECOND));
	g_variant_builder_add(&b, "{sv}", "waiting", g_variant_new_uint32(question->waiting));
	return g_variant_builder_end(&b);
}

GVariant *question_describe(struct questions *q, struct question *question)
{
	GVariant *v;

	g_mutex_lock(&q->lock);
	v = describe(q, question);
	g_mutex_unlock(&q->lock);
	return v;
}

GVariant *questions_list(struct questions *q)
{
	GVariantBuilder b;

	g_variant_builder_init(&b, G_VARIANT_TYPE("aa{sv}"));
	g_mutex_lock(&q->lock);
	for (guint i = 0; i < q->pending->len; i++)
		g_variant_builder_add_value(&b, describe(q, g_ptr_array_index(q->pending, i)));
	g_mutex_unlock(&q->lock);
	return g_variant_builder_end(&b);
}
