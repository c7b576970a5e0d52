/* SPDX-License-Identifier: MIT */
#include "tools/run/net_ask.h"

#include "fs/control.h"

#define TIMEOUT_S 60

enum answer { ANSWER_PENDING, ANSWER_NO, ANSWER_YES };

struct entry {
	enum answer answer;
	char *by;
};

struct net_asker {
	char *socket;
	GMutex lock; /* protects @entries */
	GCond answered;
	GHashTable *entries; /* subject -> struct entry */
};

static void entry_free(void *data)
{
	struct entry *e = data;

	g_free(e->by);
	g_free(e);
}

struct net_asker *net_asker_new(const char *socket)
{
	struct net_asker *a = g_new0(struct net_asker, 1);

	a->socket = g_strdup(socket);
	g_mutex_init(&a->lock);
	g_cond_init(&a->answered);
	a->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, entry_free);
	return a;
}

void net_asker_free(struct net_asker *a)
{
	if (!a)
		return;
	g_hash_table_unref(a->entries);
	g_mutex_clear(&a->lock);
	g_cond_clear(&a->answered);
	g_free(a->socket);
	g_free(a);
}

/* The answer of the view's process: verdict "allow", "deny" or "timeout", and by whom. A connection of its own, since it waits. */
static GVariant *call(const struct net_asker *a, const char *subject, const char *operation, const struct net_peer *peer, GError **error)
{
	struct control *control = control_connect(a->socket, error);
	GVariant *answer;
	GVariantDict d;

	if (!control)
		return NULL;
	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert(&d, "kind", "s", "network");
	g_variant_dict_insert(&d, "subject", "s", subject);
	g_variant_dict_insert(&d, "operation", "s", operation);
	g_variant_dict_insert(&d, "program", "s", peer->program);
	g_variant_dict_insert(&d, "pid", "i", (gint32)peer->pid);
	g_variant_dict_insert(&d, "timeout", "i", TIMEOUT_S);
	answer = control_call(control, "question", g_variant_dict_end(&d), error);
	control_close(control);
	return answer;
}

static enum answer put_question(const struct net_asker *a, const char *subject, const char *operation, const struct net_peer *peer,
				char **ret_by)
{
	g_autoptr(GError) failure = NULL;
	g_autoptr(GVariant) answer = call(a, subject, operation, peer, &failure);
	const char *verdict = "", *by = "";

	if (!answer) {
		*ret_by = g_strdup_printf("nobody can be asked: %s", failure->message);
		return ANSWER_PENDING;
	}
	g_variant_lookup(answer, "verdict", "&s", &verdict);
	g_variant_lookup(answer, "by", "&s", &by);
	if (g_str_equal(verdict, "allow")) {
		*ret_by = g_strdup_printf("allowed by %s", by);
		return ANSWER_YES;
	}
	if (g_str_equal(verdict, "deny")) {
		*ret_by = g_strdup_printf("denied by %s", by);
		return ANSWER_NO;
	}
	*ret_by = g_strdup("asked, and nobody answered in time");
	return ANSWER_PENDING;
}

/* The lock is held before and after, not in between. Those who wait are answered once, also when that is no answer. */
static struct entry *fetch(struct net_asker *a, const char *subject, const char *operation, const struct net_peer *peer, char **ret_by)
{
	struct entry *e = g_new0(struct entry, 1);
	enum answer answer;

	g_hash_table_insert(a->entries, g_strdup(subject), e);
	g_mutex_unlock(&a->lock);
	answer = put_question(a, subject, operation, peer, ret_by);
	g_mutex_lock(&a->lock);
	e->answer = answer;
	e->by = g_strdup(*ret_by);
	if (answer == ANSWER_PENDING) {
		g_hash_table_remove(a->entries, subject);
		e = NULL;
	}
	g_cond_broadcast(&a->answered);
	return e;
}

bool net_asker_ask(struct net_asker *a, const char *subject, const char *operation, const struct net_peer *peer, char **ret_by)
{
	struct entry *e;
	bool waited = false, yes = false;

	g_mutex_lock(&a->lock);
	while ((e = g_hash_table_lookup(a->entries, subject)) && e->answer == ANSWER_PENDING) {
		g_cond_wait(&a->answered, &a->lock);
		waited = true;
	}
	if (e) {
		yes = e->answer == ANSWER_YES;
		*ret_by = g_strdup(e->by);
	} else if (waited) {
		*ret_by = g_strdup("asked, and nobody answered");
	} else {
		e = fetch(a, subject, operation, peer, ret_by);
		yes = e && e->answer == ANSWER_YES;
	}
	g_mutex_unlock(&a->lock);
	return yes;
}
