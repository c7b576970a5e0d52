/* SPDX-License-Identifier: MIT */
/*
 * overlay_ask - operations that wait for a human
 *
 * An operation finds out under the lock what it needs a yes for. Where that is not known yet it ends with OVERLAY_ASKS, having changed
 * nothing, and leaves the question with its thread; overlay_ask() waits for the answer without any lock, and the operation begins again
 * from the start, as everything may have changed meanwhile.
 *
 * A read is settled when it is met (ask_to_read()). Of a change all needs are noted first (ask_to_change(), ask_to_make(),
 * ask_to_delete()) and settled in overlay_begin(), without which nothing can be changed: so an operation that fails for another reason
 * asks nothing, and one question covers all paths of a rename.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/ask_hook.h"
#include "fs/overlay_private.h"
#include "fs/question.h"
#include "rules/setting.h"

#define DELETIONS_KEY "deletions"
/* Settings of the store, which no rollback touches: what was allowed for its life. */
#define ALLOWED "allowed "
/* The same: numbers are not used again, or an answer might meet another question after a remount. */
#define LAST_ID "last-question"

struct need {
	char *key;
	uint64_t read_ino; /* the file whose bytes are to be read; 0 = a change */
};

/* The question that an operation of this thread ended with. */
static _Thread_local struct {
	struct overlay *overlay; /* NULL: none */
	struct question_about about;
	uint64_t held[OVERLAY_HELD_MAX];
} draft;

static void need_clear(void *need)
{
	g_free(((struct need *)need)->key);
}

/* Life */

/* The lowest of all layers: each can tighten. 0 = none. */
static uint64_t lowest_limit(const struct policy *p, const char *key)
{
	uint64_t limit = 0, n;

	for (int i = 0; i < POLICY_LAYERS; i++) {
		const struct policy_setting *s = policy_layer_setting(p, (enum policy_layer)i, "limits", key);

		if (s && setting_count(s->value, &n) && (!limit || n < limit))
			limit = n;
	}
	return limit;
}

static void load_allowed(const char *key, const char *value, void *user)
{
	struct overlay *o = user;

	(void)value;
	questions_grant(o->questions, key + strlen(ALLOWED));
}

int overlay_questions(struct overlay *o)
{
	const struct policy_setting *timeout = policy_trusted_setting(o->policy, "ask", "timeout"),
				    *hook = policy_trusted_setting(o->policy, "ask", "on_ask");
	uint64_t seconds = QUESTION_TIMEOUT_SECONDS;
	g_autofree char *last = NULL;
	int r;

	if (timeout && !setting_seconds(timeout->value, &seconds))
		return -EINVAL;
	overlay_lock(o);
	last = store_get(o->store, LAST_ID);
	o->questions = questions_new((unsigned)seconds, last ? (uint32_t)g_ascii_strtoull(last, NULL, 10) : 0);
	o->hooks = hook ? ask_hooks_new(o, hook->value) : NULL;
	o->needs = g_array_new(FALSE, FALSE, sizeof(struct need));
	g_array_set_clear_func(o->needs, need_clear);
	o->deletions->limit = lowest_limit(o->policy, "deletions");
	o->deletions->limit_per_minute = lowest_limit(o->policy, "deletions_per_minute");
	r = store_settings(o->store, ALLOWED, load_allowed, o);
	overlay_unlock(o);
	return r;
}

void overlay_questions_close(struct overlay *o)
{
	if (o->questions)
		questions_close(o->questions);
}

void ask_free(struct overlay *o)
{
	overlay_questions_close(o);
	g_clear_pointer(&o->hooks, ask_hooks_free);
	g_clear_pointer(&o->questions, questions_free);
	g_clear_pointer(&o->needs, g_array_unref);
	g_free(o->limit_text);
}

struct questions *overlay_asked(struct overlay *o)
{
	return o->questions;
}

bool overlay_asks_to_read(struct overlay *o)
{
	return policy_has_action(o->policy, ACTION_ASK);
}

/* What is needed */

static void need_add(struct overlay *o, char *key, uint64_t read_ino)
{
	struct need n = { .key = key, .read_ino = read_ino };

	for (guint i = 0; i < o->needs->len; i++) {
		if (strcmp(g_array_index(o->needs, struct need, i).key, key) != 0)
			continue;
		g_free(key);
		return;
	}
	g_array_append_val(o->needs, n);
}

void ask_begin(struct overlay *o)
{
	if (o->needs && o->needs->len > 0)
		g_array_set_size(o->needs, 0);
}

/*
 * An answer counts for the object at a path: what came there from another place in the workspace is another object. No path has two slashes
 * in a row.
 */
static char *key_of(const char *verb, const char *path, const char *lower)
{
	return g_strconcat(verb, " ", path, lower && strcmp(lower, path) != 0 ? "//" : NULL, lower, NULL);
}

static char *node_key(const struct node *n, const char *verb)
{
	g_autofree char *path = node_path(n), *lower = node_lower_path(n);

	if (!path) /* unlinked, and still open */
		path = g_strdup_printf("//%" G_GUINT64_FORMAT, n->ino);
	return key_of(verb, path, lower);
}

static char *name_key(const struct node *dir, const char *name, const struct node *n)
{
	g_autofree char *path = dentry_path(dir, name), *lower = n ? node_lower_path(n) : NULL;

	return key_of("change", path ? path : name, lower);
}

static int asks_nobody(const struct overlay *o)
{
	return o->questions && o->audit ? 0 : -EACCES;
}

int ask_to_read(struct overlay *o, struct node *n)
{
	int r = guard_read(&n->verdict);

	if (r != GUARD_ASKS)
		return r;
	r = asks_nobody(o);
	if (r < 0)
		return r;
	need_add(o, node_key(n, "read"), n->ino);
	return ask_settle(o);
}

int ask_to_change(struct overlay *o, struct node *n)
{
	int r = guard_change(&n->verdict);

	if (r != GUARD_ASKS)
		return r;
	r = asks_nobody(o);
	if (r == 0)
		need_add(o, node_key(n, "change"), 0);
	return r;
}

/* What the rules say of a name, or of its directory: either way the yes is about the name. */
static int ask_about_name(struct overlay *o, int r, const struct node *dir, const char *name, const struct node *n)
{
	if (r != GUARD_ASKS)
		return r;
	r = asks_nobody(o);
	if (r == 0)
		need_add(o, name_key(dir, name, n), 0);
	return r;
}

int ask_to_change_in(struct overlay *o, struct node *dir, const char *name, const struct node *n)
{
	return ask_about_name(o, guard_change(&dir->verdict), dir, name, n);
}

int ask_to_make(struct overlay *o, struct node *dir, const char *name, const struct verdict *v, const struct node *n)
{
	return ask_about_name(o, guard_create(v), dir, name, n);
}

/* A no is a no, also when the minute is over by then. */
static bool deletion_refused(struct overlay *o)
{
	struct question_asker who;

	if (!questions_refused(o->questions, DELETIONS_KEY))
		return false;
	audit_asker(&who);
	return questions_known(o->questions, DELETIONS_KEY, &who) == QUESTION_NO;
}

int ask_to_delete(struct overlay *o, const struct node *n)
{
	const char *limit = "deletions_per_minute";
	int r;

	if (!o->questions || n->verdict.action == ACTION_SCRATCH ||
	    (!deletions_full(o->deletions, questions_now(o->questions), &limit) && !deletion_refused(o)))
		return 0;
	r = asks_nobody(o);
	if (r < 0)
		return r;
	g_free(o->limit_text);
	o->limit_text = g_strdup_printf("[limits] %s = %" G_GUINT64_FORMAT, limit,
					strcmp(limit, "deletions") == 0 ? o->deletions->limit : o->deletions->limit_per_minute);
	audit_limit(o, o->limit_text);
	need_add(o, g_strdup(DELETIONS_KEY), 0);
	return 0;
}

void ask_deleted(struct overlay *o, const struct node *n)
{
	if (o->questions && n->verdict.action != ACTION_SCRATCH)
		deletions_count(o->deletions, questions_now(o->questions));
}

/* What is known */

/* The inodes that the kernel may have locked while it waits for this operation. */
static void draft_held(struct overlay *o, const struct audit_about *about)
{
	const uint64_t inos[OVERLAY_HELD_MAX] = { about->ino, about->new_ino, audit_child(o, about->ino, about->name),
						  about->new_name ? audit_child(o, about->new_ino, about->new_name) : 0 };

	memcpy(draft.held, inos, sizeof(inos));
}

static int draft_question(struct overlay *o, const struct question_asker *who, const GPtrArray *keys)
{
	struct question_about *a = &draft.about;
	struct audit_record r;
	char *path, *new_path;

	/* It may have no name any more; whoever waits for an answer can be told. */
	if (!who->pid)
		return -EACCES;
	audit_explain(o, &r, &path, &new_path);
	question_about_clear(a);
	*a = (struct question_about){ .kind = g_strdup(keys->len == 1 && strcmp(keys->pdata[0], DELETIONS_KEY) == 0 ? "deletions" : "file"),
				      .operation = g_strdup(r.operation), .subject = path ? path : g_strdup("(unlinked)"), .new_subject = new_path,
				      .rule = g_strdup(r.rule), .program = g_strdup(r.program), .asker = *who,
				      .keys = g_ptr_array_new_with_free_func(g_free) };
	for (guint i = 0; i < keys->len; i++)
		g_ptr_array_add(a->keys, g_strdup(keys->pdata[i]));
	draft_held(o, audit_about(o));
	draft.overlay = o;
	return OVERLAY_ASKS;
}

/* One yes for going beyond the limit is worth as many deletions as the limit itself. */
static void use_up(struct overlay *o, const struct question_asker *who)
{
	for (guint i = 0; i < o->needs->len; i++) {
		const char *key = g_array_index(o->needs, struct need, i).key;

		if (strcmp(key, DELETIONS_KEY) != 0)
			continue;
		questions_use_up(o->questions, key, who);
		deletions_restart(o->deletions);
	}
}

static bool all_granted(struct overlay *o)
{
	for (guint i = 0; i < o->needs->len; i++)
		if (questions_known_to_all(o->questions, g_array_index(o->needs, struct need, i).key) != QUESTION_YES)
			return false;
	return true;
}

int ask_settle(struct overlay *o)
{
	g_autoptr(GPtrArray) open = NULL;
	struct question_asker who;
	int r = 0;

	if (!o->needs || o->needs->len == 0)
		return 0;
	if (all_granted(o)) {
		ask_begin(o);
		return 0;
	}
	open = g_ptr_array_new();
	audit_asker(&who);
	for (guint i = 0; r == 0 && i < o->needs->len; i++) {
		const struct need *n = &g_array_index(o->needs, struct need, i);
		enum question_known known = questions_known(o->questions, n->key, &who);

		if (known == QUESTION_NO)
			r = -EACCES;
		else if (known == QUESTION_OPEN)
			g_ptr_array_add(open, n->key);
		else if (known == QUESTION_YES_ONCE && n->read_ino)
			invalidator_inode(o->invalidator, n->read_ino, true); /* others are to ask for themselves */
	}
	if (r == 0 && open->len > 0)
		r = draft_question(o, &who, open);
	if (r == 0)
		use_up(o, &who);
	ask_begin(o);
	return r;
}

void ask_written(struct overlay *o, const struct node *n)
{
	if (n->verdict.action == ACTION_ASK)
		invalidator_inode(o->invalidator, n->ino, true);
}

/* Asking */

static char *about_text(const struct question_about *a)
{
	return g_strdup_printf("%s by %s[%" G_GINT32_FORMAT "], uid %" G_GUINT32_FORMAT, a->operation, a->program ? a->program : "",
			       a->asker.pid, a->asker.uid);
}

static void record_question(struct overlay *o, const struct question *question, const struct question_about *a)
{
	g_autofree char *id = g_strdup_printf("%" G_GUINT32_FORMAT, question_id(question));
	g_autofree char *detail = g_strconcat("question ", id, NULL);
	struct audit_record r = { .kind = AUDIT_QUESTION, .operation = a->operation, .path = a->subject, .new_path = a->new_subject,
				  .verdict = "ask", .rule = a->rule, .program = a->program, .pid = a->asker.pid, .uid = a->asker.uid,
				  .detail = detail };

	overlay_lock(o);
	audit_add(o, &r);
	if (store_set(o->store, LAST_ID, id) < 0)
		g_debug("the number of question %s may be used again", id);
	overlay_unlock(o);
}

/* Of a question that ended without anybody's doing. */
static void record_end(struct overlay *o, const struct question_about *a, enum question_verdict verdict)
{
	g_autofree char *text = about_text(a);
	struct audit_record r = { .kind = AUDIT_ANSWER, .operation = question_verdict_name(verdict), .path = a->subject,
				  .new_path = a->new_subject, .verdict = "ask", .rule = a->rule, .pid = (int32_t)getpid(), .uid = getuid(),
				  .result = verdict == QUESTION_ENDED ? EINTR : EACCES, .detail = text };

	overlay_lock(o);
	audit_add(o, &r);
	overlay_unlock(o);
}

void overlay_question(struct overlay *o, const struct question_about *about, unsigned timeout, bool (*over)(void *user), void *user,
		      struct question_answer *ret)
{
	enum question_verdict why;
	bool first;
	struct question *question;

	overlay_may_wait(o);
	question = questions_join(o->questions, about, timeout, &first, &why);

	*ret = (struct question_answer){ .verdict = why };
	if (question) {
		if (first)
			record_question(o, question, about);
		if (first && o->hooks)
			ask_hooks_run(o->hooks, question);
		questions_wait(o->questions, question, &about->asker, over, user, ret);
	}
	if (!ret->reported)
		record_end(o, about, ret->verdict);
}

int overlay_ask(struct overlay *o, bool (*over)(void *user), void *user)
{
	struct question_answer answer;

	if (draft.overlay != o)
		return -EACCES;
	draft.overlay = NULL;
	invalidator_hold(o->invalidator, draft.held, OVERLAY_HELD_MAX);
	overlay_question(o, &draft.about, 0, over, user, &answer);
	invalidator_release(o->invalidator, draft.held, OVERLAY_HELD_MAX);
	question_about_clear(&draft.about);
	g_free(answer.by);
	/* Else it is known now: the operation begins again, and a no becomes a denial with its record. */
	return answer.verdict == QUESTION_ENDED ? -EINTR : 0;
}

/* Answering */

static int keep_allowed(struct overlay *o, const struct question_about *a)
{
	int r = 0;

	for (guint i = 0; r == 0 && i < a->keys->len; i++) {
		g_autofree char *key = g_strconcat(ALLOWED, (char *)g_ptr_array_index(a->keys, i), NULL);

		r = store_set(o->store, key, "1");
	}
	return r;
}

/* The record first, as with a change. @ret_by: who answers, as recorded. */
static int record_answer(struct overlay *o, uint32_t id, const struct question_about *a, bool allow, enum question_scope scope,
			 const char *program, char **ret_by)
{
	g_autofree char *text = about_text(a);
	g_autofree char *detail = allow ? g_strdup_printf("question %" G_GUINT32_FORMAT ", %s: %s", id, question_scope_name(scope), text) :
					  g_strdup_printf("question %" G_GUINT32_FORMAT ": %s", id, text);
	struct audit_record r = { .kind = AUDIT_ANSWER, .operation = question_verdict_name(allow ? QUESTION_ALLOW : QUESTION_DENY),
				  .path = a->subject, .new_path = a->new_subject, .verdict = "ask", .rule = a->rule,
				  .result = allow ? 0 : EACCES, .detail = detail };

	audit_who(o, &r);
	if (program)
		r.program = program;
	*ret_by = g_strdup_printf("%s[%" G_GINT32_FORMAT "], uid %" G_GUINT32_FORMAT, r.program ? r.program : "", r.pid, r.uid);
	return audit_add(o, &r);
}

int overlay_answer(struct overlay *o, uint32_t id, bool allow, enum question_scope scope, const char *program)
{
	struct question_about about = { 0 };
	g_autofree char *by = NULL;
	int r = o->questions && questions_find(o->questions, id, &about) ? 0 : -ENOENT;

	if (r < 0)
		return r;
	overlay_lock(o);
	r = record_answer(o, id, &about, allow, scope, program, &by);
	if (r == 0 && allow && scope == QUESTION_ALWAYS)
		r = keep_allowed(o, &about);
	overlay_unlock(o);
	if (r == 0 && !questions_answer(o->questions, id, allow, scope, by))
		r = -ENOENT;
	question_about_clear(&about);
	return r;
}
